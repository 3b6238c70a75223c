/* SPDX-License-Identifier: MIT */
/*
 * reader.h: reads a recording, from this machine or another.
 *
 * What is read is hostile: each chunk's checksum and every number is checked, no length leads to more memory than
 * MW_STORE_CHUNK_MAX, and an event that names a stack or a thread which was not told ends the reading as a damaged
 * file. A recording that was cut off (the end is missing) is good up to its last whole chunk.
 */
#ifndef MW_STORE_READER_H
#define MW_STORE_READER_H

#include "store/store.h"

#include <stddef.h>

/* Does a file that begins so hold a recording, of whatever version? */
bool mw_store_is_recording(const char *head, size_t size);

struct mw_store_reader;

/* Errors: SYSTEM (can't be opened), DATA (no recording, one of another version): with the name and what to do. */
struct mw_error *mw_store_open(const char *path, struct mw_store_reader **out) MW_MUST_CHECK;
void mw_store_close(struct mw_store_reader *reader);

/* How the file ends, known when it has been read once. */
struct mw_store_state {
	bool cut;           /* it goes no further than its last whole chunk */
	const char *why;    /* what is wrong there, as text for people; good until close */
	uint64_t good;      /* bytes that were read */
	uint64_t size;      /* of the file */
	uint32_t processes; /* how many it is of */
};

/*
 * Tell the visitor all of it, from the beginning; may be called again. A file that ends early, or has a chunk that is
 * damaged, is reported up to there, and *state says so. Errors: the visitor's, MEMORY, SYSTEM (it can't be read), DATA
 * where nothing at all is good.
 */
struct mw_error *mw_store_read(struct mw_store_reader *reader, const struct mw_store_visitor *visitor,
			       struct mw_store_state *state) MW_MUST_CHECK;

#endif
