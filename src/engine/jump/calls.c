// SPDX-License-Identifier: MIT
/* calls.c: calls that have begun and not ended (drain_state.h). */
#include "engine/jump/drain_state.h"

#include "base/vector.h"

#include <string.h>

/* A BEGIN's type is the least of its family, in which END and FAIL follow. */
static enum mw_event_type begin_of(enum mw_event_type type)
{
	if (type >= MW_EVENT_REMAP_BEGIN)
		return MW_EVENT_REMAP_BEGIN;
	return type >= MW_EVENT_UNMAP_BEGIN ? MW_EVENT_UNMAP_BEGIN : MW_EVENT_REALLOC_BEGIN;
}

static enum mw_event_type fail_of(enum mw_event_type begin)
{
	return begin + 2;
}

_Static_assert(MW_EVENT_REALLOC_BEGIN + 2 == MW_EVENT_REALLOC_FAIL && MW_EVENT_UNMAP_BEGIN + 2 == MW_EVENT_UNMAP_FAIL &&
		       MW_EVENT_REMAP_BEGIN + 2 == MW_EVENT_REMAP_FAIL,
	       "BEGIN, END, FAIL");

bool jump_call_begin(struct jump_drain *drain, struct jump_reader *reader, const struct mw_event *event)
{
	(void)drain;
	if (reader->open_count == JUMP_OPEN_CALLS)
		return false;
	if (!MW_VECTOR_ROOM(reader->open, reader->open_count, reader->open_capacity))
		return false;
	reader->open[reader->open_count++] = (struct jump_open_call){
		.addr = event->addr, .size = event->size, .begin = (uint8_t)event->type, .kind = (uint8_t)event->kind};
	return true;
}

bool jump_call_end(struct jump_reader *reader, enum mw_event_type type)
{
	enum mw_event_type begin = begin_of(type);

	/* Calls nest; but one that was left by a jump out of a signal handler may stay open inside another. */
	for (uint32_t i = reader->open_count; i-- > 0;) {
		if (reader->open[i].begin != begin)
			continue;
		memmove(&reader->open[i], &reader->open[i + 1], (reader->open_count - i - 1) * sizeof(*reader->open));
		reader->open_count--;
		return true;
	}
	return false;
}

struct mw_error *jump_calls_cancel(struct jump_drain *drain, struct jump_reader *reader)
{
	while (reader->open_count > 0) {
		const struct jump_open_call *open = &reader->open[--reader->open_count];
		const struct mw_event event = {.time_ns = drain->told_ns,
					       .addr = open->addr,
					       .size = open->begin == MW_EVENT_REALLOC_BEGIN ? 0 : open->size,
					       .stack = MW_STACK_NONE,
					       .type = fail_of((enum mw_event_type)open->begin),
					       .kind = (enum mw_kind)open->kind};

		MW_TRY(jump_drain_tell(drain, reader, &event));
	}
	return NULL;
}
