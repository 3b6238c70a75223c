/* SPDX-License-Identifier: MIT */
/* decode.h: a chunk's records, checked and told to a visitor. */
#ifndef MW_STORE_DECODE_H
#define MW_STORE_DECODE_H

#include "store/format.h"

#include <stdlib.h>

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

/* Bytes that are made anew where more are wanted. */
struct mw_store_buffer {
	uint8_t *bytes;
	size_t size;
};

/* See that there are `wanted`, at least one; what was in them is lost. False without memory: then there are none. */
static inline bool mw_store_buffer_room(struct mw_store_buffer *buffer, size_t wanted)
{
	if (wanted < 1)
		wanted = 1;
	if (wanted <= buffer->size)
		return true;
	free(buffer->bytes);
	buffer->bytes = malloc(wanted);
	buffer->size = buffer->bytes ? wanted : 0;
	return buffer->bytes;
}

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
/* The chunk that ends a recording: how many stand before it. False: it makes no sense. */
bool mw_store_decode_close(const struct mw_store_chunk *chunk, const uint8_t *content, uint64_t *chunks);

#endif
