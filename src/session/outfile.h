/* SPDX-License-Identifier: MIT */
/*
 * outfile.h: where a report goes: known to be writable before anything is recorded, there whole at
 * the end or not at all.
 *
 * A regular file is written without a name (or under a temporary one in the same directory) with
 * mode 0600 and gets its name when it is complete; what stood there before stays untouched until
 * then. A device or FIFO is written directly, as is what /dev/stdout and /dev/fd/N lead to; "-" is standard output.
 * Where links are followed and where not: base/place.h.
 */
#ifndef MW_SESSION_OUTFILE_H
#define MW_SESSION_OUTFILE_H

#include <memwatch/error.h>
#include <memwatch/output.h>

#include <stdbool.h>
#include <stdio.h>

struct mw_outfile;

/* Open for `name`. Errors say what stands in the way: SYSTEM. On failure nothing has changed. */
struct mw_error *mw_outfile_open(const char *name, struct mw_outfile **out) MW_MUST_CHECK;

/* Are these names of one file? One that is yet to be made is known by its directory and its name there. */
bool mw_outfile_same(const char *name, const char *other);

/* The stream to write to; good until commit or abort. Write errors are kept for commit to tell. */
FILE *mw_outfile_stream(struct mw_outfile *file);

/* Does what is written come to a terminal? */
bool mw_outfile_is_terminal(const struct mw_outfile *file);

/* Everything is written: make it last, give it its name and free `file`, also on failure, which leaves nothing. */
struct mw_error *mw_outfile_commit(struct mw_outfile *file) MW_MUST_CHECK;

/* The path to be unlinked should memwatch end now, or NULL; good until commit or abort. */
const char *mw_outfile_partial(const struct mw_outfile *file);

/* Of all files that are being written; NULL where there is none. */
struct mw_partials {
	const char *paths[MW_OUTPUTS_MAX];
};

/* Close, leave nothing and free; NULL is fine. */
void mw_outfile_abort(struct mw_outfile *file);

#endif
