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

struct mw_store_reader;

/* What a reader tells, in the order of the file. Any may be NULL: it is skipped. An error of theirs ends the reading.
 */
struct mw_store_visitor {
	void *context;
	struct mw_error *(*target)(void *context, uint32_t process, const struct mw_stored_target *target);
	struct mw_error *(*hook)(void *context, uint32_t process, const struct mw_stored_hook *hook);
	struct mw_error *(*module)(void *context, uint32_t process, const struct mw_stored_module *module);
	struct mw_error *(*before)(void *context, uint32_t process, mw_addr start, mw_addr end);
	struct mw_error *(*thread)(void *context, uint32_t process, const struct mw_stored_thread *thread);
	struct mw_error *(*stack)(void *context, uint32_t process, uint32_t number, const struct mw_raw_stack *stack);
	/* In order of time, thread and stack numbers as told before. */
	struct mw_error *(*events)(void *context, uint32_t process, const struct mw_event *events, size_t count);
	struct mw_error *(*sample)(void *context, uint32_t process, const struct mw_stored_sample *sample);
	struct mw_error *(*mark)(void *context, uint32_t process, const struct mw_stored_mark *mark);
	struct mw_error *(*mapping)(void *context, uint32_t process, enum mw_stored_moment moment,
				    const struct mw_stored_mapping *mapping);
	struct mw_error *(*symbol)(void *context, uint32_t process, const struct mw_stored_symbol *symbol);
	struct mw_error *(*end)(void *context, uint32_t process, const struct mw_stored_end *end);
	/* After each chunk, once all that it holds has been told: bytes read of all there are. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
};

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
 * damaged, is told up to there, and *state says so. Errors: the visitor's, MEMORY, SYSTEM (it can't be read), DATA
 * where nothing at all is good.
 */
struct mw_error *mw_store_read(struct mw_store_reader *reader, const struct mw_store_visitor *visitor,
			       struct mw_store_state *state) MW_MUST_CHECK;

#endif
