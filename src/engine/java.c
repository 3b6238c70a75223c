// SPDX-License-Identifier: MIT
/* java.c: the frames of a Java virtual machine's code in stacks (java.h). */
#include "engine/java.h"

#include "proc/status.h"

#include <memwatch/ring.h>

#define INLINED 64 /* calls in one frame */

static bool holds(void *context, mw_addr addr)
{
	const struct mw_java *java = context;
	struct mw_hotspot_range ranges[MW_HOTSPOT_RANGES];
	unsigned count = mw_java_ranges(java, ranges);

	for (unsigned i = 0; i < count; i++)
		if (ranges[i].low <= addr && addr < ranges[i].high)
			return true;
	return false;
}

static uint64_t row_of(void *context, mw_addr pc)
{
	const struct mw_java *java = context;
	struct mw_hotspot_code code;

	if (!mw_hotspot_find(java->hotspot, mw_live_thread(java->pid), pc, &code))
		return mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
	switch (code.kind) {
	case MW_HOTSPOT_COMPILED:
	case MW_HOTSPOT_STUB:
		/* The frame pointer is saved right below the return address by all that HotSpot makes. */
		if (code.frame_size >= 16 && code.frame_size <= INT16_MAX && code.frame_size % 8 == 0)
			return mw_row(code.original_at >= 0 ? MW_ROW_DEOPTIMIZED : MW_ROW_SP, (int32_t)code.frame_size,
				      MW_ROW_FP_SAVED, code.original_at >= 0 ? (int16_t)code.original_at : -16);
		return mw_row_generated();
	case MW_HOTSPOT_INTERPRETER:
		return mw_row(MW_ROW_INTERPRETED, 0, MW_ROW_FP_SAVED, 0);
	default:
		return mw_row_generated();
	}
}

struct mw_error *mw_java_init(struct mw_java *java, pid_t pid, struct mw_modules *modules)
{
	*java = (struct mw_java){.pid = pid, .made = {java, holds, row_of}};
	return mw_hotspot_create(modules, &java->hotspot);
}

void mw_java_deinit(struct mw_java *java)
{
	mw_hotspot_destroy(java->hotspot);
	*java = (struct mw_java){0};
}

struct mw_error *mw_java_interpreted(struct mw_java *java, const struct mw_interpreted *interpreted,
				     struct mw_raw_frame *out)
{
	uint32_t number;

	MW_TRY(mw_hotspot_name_interpreted(java->hotspot, mw_live_thread(java->pid), interpreted->method,
					   interpreted->at, &number));
	*out = (struct mw_raw_frame){number, mw_hotspot_module(java->hotspot)};
	return NULL;
}

/* The numbers of what a frame stands for, innermost first. */
static struct mw_error *numbers_of(struct mw_java *java, mw_addr pc, uint32_t *numbers, unsigned *count)
{
	pid_t tid = mw_live_thread(java->pid);
	struct mw_hotspot_code code;

	*count = 0;
	if (!mw_hotspot_find(java->hotspot, tid, pc, &code))
		return NULL;
	if (code.kind == MW_HOTSPOT_COMPILED)
		return mw_hotspot_name_compiled(java->hotspot, tid, pc, numbers, INLINED, count);
	*count = 1;
	return mw_hotspot_name_stub(java->hotspot, tid, pc, numbers);
}

struct mw_error *mw_java_name(struct mw_java *java, const struct mw_raw_stack *native, struct mw_raw_frame *out,
			      uint32_t capacity, uint32_t *count, bool *truncated)
{
	uint32_t numbers[INLINED];

	*count = 0;
	*truncated = false;
	if (!mw_java_is_there(java))
		return NULL;
	for (uint32_t i = 0; i < native->count; i++) {
		const struct mw_raw_frame *frame = &native->frames[i];
		unsigned named = 0;

		if (frame->module == MW_MODULE_NONE && holds(java, frame->addr - 1))
			MW_TRY(numbers_of(java, frame->addr, numbers, &named));
		for (unsigned j = 0; j < (named ? named : 1); j++) {
			if (*count == capacity) {
				*truncated = true;
				return NULL;
			}
			out[(*count)++] =
				named ? (struct mw_raw_frame){numbers[j], mw_hotspot_module(java->hotspot)} : *frame;
		}
	}
	return NULL;
}
