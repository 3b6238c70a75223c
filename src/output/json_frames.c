// SPDX-License-Identifier: MIT
/* json_frames.c: see json_frames.h. A report has each text once: the same texts have the same address. */
#include "output/json_frames.h"

#include <stdlib.h>

#define FIRST_SLOTS 256u

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct mw_report_frame *frame)
{
	uint64_t hash = mix(mix(frame->address, (uint64_t)frame->line << 1 | frame->inlined), frame->offset);

	return mix(hash, (uint64_t)(uintptr_t)frame->function);
}

static bool same(const struct mw_report_frame *a, const struct mw_report_frame *b)
{
	return a->function == b->function && a->module == b->module && a->offset == b->offset &&
	       a->address == b->address && a->file == b->file && a->line == b->line && a->inlined == b->inlined;
}

/* The slot of that frame, or the empty one where it would be. */
static uint32_t *slot_of(const struct mw_json_frames *frames, const struct mw_report_frame *frame)
{
	for (size_t at = (size_t)hash_of(frame);; at++) {
		uint32_t *slot = &frames->slots[at & (frames->slot_count - 1)];

		if (!*slot || same(frames->frames[*slot - 1], frame))
			return slot;
	}
}

static bool grow(struct mw_json_frames *frames)
{
	size_t count = frames->slot_count ? 2 * frames->slot_count : FIRST_SLOTS;
	const struct mw_report_frame **list = reallocarray(frames->frames, count / 2, sizeof(*list));
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (list)
		frames->frames = list;
	if (!list || !slots) {
		free(slots);
		return false;
	}
	free(frames->slots);
	frames->slots = slots;
	frames->slot_count = count;
	for (size_t i = 0; i < frames->count; i++)
		*slot_of(frames, frames->frames[i]) = (uint32_t)i + 1;
	return true;
}

static bool add(struct mw_json_frames *frames, const struct mw_report_frame *frame)
{
	uint32_t *slot;

	if (2 * frames->count >= frames->slot_count && !grow(frames))
		return false;
	slot = slot_of(frames, frame);
	if (*slot)
		return true;
	if (frames->count >= UINT32_MAX - 1)
		return false;
	frames->frames[frames->count++] = frame;
	*slot = (uint32_t)frames->count;
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
	free(frames->slots);
}

uint32_t mw_json_frames_number(const struct mw_json_frames *frames, const struct mw_report_frame *frame)
{
	return *slot_of(frames, frame) - 1;
}
