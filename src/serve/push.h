/* SPDX-License-Identifier: MIT */
/*
 * push.h: profiles sent to a server by HTTP, from a thread of its own.
 *
 * The server's path says in which form:
 *
 *   …/ingest              Pyroscope's: a multipart form with the profile; name, labels and times in the query
 *   …/push.v1.PusherService/Push      Pyroscope's Connect API, as JSON
 *   …/profiles/writeraw   Parca's, as JSON
 *   any other             the profile itself
 *
 * What can't be sent at once is tried again, each time later; at most MW_PUSH_KEPT profiles, and MW_PUSH_BYTES of
 * them, wait; the oldest are dropped.
 */
#ifndef MW_SERVE_PUSH_H
#define MW_SERVE_PUSH_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_PUSH_KEPT  256
#define MW_PUSH_BYTES ((size_t)64 << 20)

struct mw_label {
	char *name, *value; /* malloc'ed */
};

struct mw_labels {
	struct mw_label *items;
	size_t count;
};

/* Set one, in place of another of that name. Errors: MEMORY. */
struct mw_error *mw_labels_set(struct mw_labels *labels, const char *name, const char *value) MW_MUST_CHECK;
void mw_labels_deinit(struct mw_labels *labels);

struct mw_push;

/* `url` is borrowed. Errors: USAGE: it is no URL of http or https; MEMORY, SYSTEM. */
struct mw_error *mw_push_create(const char *url, struct mw_push **out) MW_MUST_CHECK;
/* Send a profile (gzip'ed pprof) of that time, ns since the epoch. `bytes` (malloc'ed) and the labels are taken. */
void mw_push_add(struct mw_push *push, char *bytes, size_t size, struct mw_labels *labels, uint64_t from_ns,
		 uint64_t until_ns);
/* Wait until all is sent, MW_PUSH_PATIENCE_S at most, and free. A message on standard error says what was not. False: there
 * was something. NULL is fine. */
bool mw_push_end(struct mw_push *push);

#define MW_PUSH_PATIENCE_S 10

#endif
