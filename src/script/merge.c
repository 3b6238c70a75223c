// SPDX-License-Identifier: MIT
/* merge.c: an interpreter's frames among the native ones (script.h). */
#include "script/python.h"

static bool is_loop(const struct mw_script *script, mw_addr pc)
{
	for (size_t i = 0; i < script->loop_count; i++)
		if (pc - 1 >= script->loops[i].start && pc - 1 < script->loops[i].end)
			return true;
	return false;
}

struct merge {
	struct mw_script *script;
	pid_t tid;
	const struct mw_script_ref *refs;
	uint32_t left; /* of them */
	struct mw_raw_frame *out;
	uint32_t count, capacity;
	bool truncated;
};

static void put(struct merge *merge, struct mw_raw_frame frame)
{
	if (merge->count < merge->capacity)
		merge->out[merge->count++] = frame;
	else
		merge->truncated = true;
}

/* The frames of one run of the loop. */
static struct mw_error *put_run(struct merge *merge)
{
	bool last = false;

	while (merge->left && !last && !merge->truncated) {
		struct mw_raw_frame frame = {.module = merge->script->module};
		uint32_t number = 0;

		if (merge->refs->code & ~MW_SCRIPT_LAST) {
			MW_TRY(python_name(merge->script, merge->tid, merge->refs, &number));
			frame.addr = number;
			put(merge, frame);
		}
		last = merge->refs->code & MW_SCRIPT_LAST;
		merge->refs++;
		merge->left--;
	}
	return NULL;
}

static uint32_t count_runs(const struct mw_script_ref *refs, uint32_t count)
{
	uint32_t runs = 0;

	for (uint32_t i = 0; i < count; i++)
		runs += refs[i].code & MW_SCRIPT_LAST || i + 1 == count;
	return runs;
}

struct mw_error *mw_script_merge(struct mw_script *script, pid_t tid, const struct mw_raw_stack *native,
				 const struct mw_script_ref *refs, uint32_t ref_count, struct mw_raw_frame *out,
				 uint32_t capacity, uint32_t *count, bool *truncated)
{
	struct merge merge = {
		.script = script, .tid = tid, .refs = refs, .left = ref_count, .out = out, .capacity = capacity};
	uint32_t runs = count_runs(refs, ref_count), loops = 0;

	for (uint32_t i = 0; i < native->count; i++)
		loops += is_loop(script, native->frames[i].addr);
	for (uint32_t i = 0; i < native->count; i++) {
		if (!merge.left || !is_loop(script, native->frames[i].addr)) {
			put(&merge, native->frames[i]);
			continue;
		}
		/* On a whole stack each run has a frame of the loop. Where one was not recognised, as in a part of the
		 * loop that stands elsewhere, it is taken for the innermost. */
		while (native->cut == MW_STACK_COMPLETE && runs > loops) {
			MW_TRY(put_run(&merge));
			runs--;
		}
		MW_TRY(put_run(&merge));
	}
	/* Of a native stack that was cut. */
	while (merge.left && !merge.truncated)
		MW_TRY(put_run(&merge));
	*count = merge.count;
	*truncated = merge.truncated;
	return NULL;
}
