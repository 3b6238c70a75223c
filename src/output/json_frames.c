// SPDX-License-Identifier: MIT
/* json_frames.c: see json_frames.h. A report has each text once: the same texts have the same address. */
#include "output/json_frames.h"

#include "base/hash.h"
#include "base/vector.h"

#include <stdlib.h>

static uint32_t hash_of(const struct mw_report_frame *frame)
{
	uint64_t hash = mw_hash_add(frame->address, (uint64_t)frame->line << 1 | frame->inlined);

	hash = mw_hash_add(hash, frame->offset);
	return (uint32_t)mw_hash_mix(mw_hash_add(hash, (uint64_t)(uintptr_t)frame->function));
}

static uint32_t hash_of_number(const void *frames, uint32_t number)
{
	return hash_of(((const struct mw_report_frame *const *)frames)[number]);
}

static bool same(const struct mw_report_frame *a, const struct mw_report_frame *b)
{
	return a->function == b->function && a->module == b->module && a->offset == b->offset &&
	       a->address == b->address && a->file == b->file && a->line == b->line && a->inlined == b->inlined;
}

static bool find(const struct mw_json_frames *frames, const struct mw_report_frame *frame, uint32_t *number)
{
	uint32_t hash = hash_of(frame);

	MW_INDEX_EACH(&frames->index, hash, *number)
		if (same(frames->frames[*number], frame))
			return true;
	return false;
}

static bool add(struct mw_json_frames *frames, const struct mw_report_frame *frame)
{
	uint32_t number;

	if (find(frames, frame, &number))
		return true;
	if (!mw_index_reserve(&frames->index, hash_of_number, frames->frames) ||
	    !MW_VECTOR_ROOM(frames->frames, frames->index.count, frames->capacity))
		return false;
	frames->frames[mw_index_put(&frames->index, hash_of(frame))] = frame;
	return true;
}

struct mw_error *mw_json_frames_init(struct mw_json_frames *frames, const struct mw_report *report)
{
	*frames = (struct mw_json_frames){.frames = NULL};
	for (size_t i = 0; i < report->stack_count; i++)
		for (size_t j = 0; j < report->stacks[i].frame_count; j++)
			if (!add(frames, &report->stacks[i].frames[j])) {
				mw_json_frames_deinit(frames);
				return mw_error_nomem();
			}
	return NULL;
}

void mw_json_frames_deinit(struct mw_json_frames *frames)
{
	free(frames->frames);
	mw_index_deinit(&frames->index);
}

uint32_t mw_json_frames_number(const struct mw_json_frames *frames, const struct mw_report_frame *frame)
{
	uint32_t number = 0;

	(void)find(frames, frame, &number);
	return number;
}
