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

struct mw_error *mw_script_merge(struct mw_script *script, pid_t tid, const struct mw_raw_frame *native,
				 uint32_t native_count, const struct mw_script_ref *refs, uint32_t ref_count,
				 struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated)
{
	struct merge merge = {
		.script = script, .tid = tid, .refs = refs, .left = ref_count, .out = out, .capacity = capacity};

	for (uint32_t i = 0; i < native_count; i++) {
		if (merge.left && is_loop(script, native[i].addr))
			MW_TRY(put_run(&merge));
		else
			put(&merge, native[i]);
	}
	/* Of a native stack that was cut; or a run of the loop was not recognised. */
	while (merge.left && !merge.truncated)
		MW_TRY(put_run(&merge));
	*count = merge.count;
	*truncated = merge.truncated;
	return NULL;
}
