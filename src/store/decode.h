/* SPDX-License-Identifier: MIT */
/* decode.h: a chunk's records, checked and told to a visitor. */
#ifndef MW_STORE_DECODE_H
#define MW_STORE_DECODE_H

#include "store/bytes.h"
#include "store/format.h"
#include "store/reader.h"

/* Which numbers of stacks or threads were reported: dense, but for those that are not used. */
struct mw_store_known {
	uint32_t next;    /* lowest number that nothing was said of */
	uint32_t missing; /* of those below, how many are not used */
	uint64_t *bits;   /* one a number: told */
	size_t words;     /* there is room for */
};

struct mw_store_process {
	struct mw_store_known stacks, threads;
};

void mw_store_process_deinit(struct mw_store_process *process);

/* What telling needs: one a reading. */
struct mw_store_emission {
	const struct mw_store_visitor *visitor;
	struct mw_store_buffer list; /* scratch for a record's list, at most MW_STORE_CHUNK_MAX bytes */
};

/*
 * Tell all records of a chunk that is not of events. *why is set where one of them makes no sense: those before it have
 * been reported. Errors: the visitor's, MEMORY.
 */
struct mw_error *mw_store_emit(struct mw_store_emission *emission, struct mw_store_process *process,
			       const struct mw_store_chunk *chunk, const uint8_t *content,
			       const char **why) MW_MUST_CHECK;

/* Do the events name only what was given? */
bool mw_store_knows_all(const struct mw_store_process *process, const struct mw_event *events, size_t count);

#endif
