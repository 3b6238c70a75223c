// SPDX-License-Identifier: MIT
/* script.c: what the recorder is to know of an interpreter, and the frames that it found there (jump.h). */
#include "engine/jump/jump.h"

#include "base/cleanup.h"
#include "proc/maps.h"

#include <stdlib.h>
#include <string.h>

/* May the recorder read there? Pages of files that are cut short, and of devices, end a process that reads them. */
static bool is_readable(const struct mw_mapping *mapping)
{
	return mapping->read && !mapping->shared &&
	       (mapping->inode == 0
			? mapping->path[0] != '[' || strcmp(mapping->path, "[heap]") == 0 ||
				  strncmp(mapping->path, "[stack", 6) == 0 || strncmp(mapping->path, "[anon", 5) == 0
			: mapping->write);
}

/* By address; those that touch are one. */
static uint32_t list_ranges(const struct mw_maps *maps, struct mw_ring_region *out)
{
	uint32_t count = 0;

	MW_EACH(mapping, maps->items, maps->count) {
		if (!is_readable(mapping))
			continue;
		if (count && out[count - 1].high == mapping->start)
			out[count - 1].high = mapping->end;
		else if (count < MW_RING_SCRIPT_RANGES)
			out[count++] = (struct mw_ring_region){mapping->start, mapping->end};
	}
	return count;
}

static void publish_ranges(struct jump_process *process, const struct mw_ring_region *ranges, uint32_t count)
{
	const struct jump_shared *shared = &process->recorder.shared;
	struct mw_ring_script *script = &jump_control(shared)->script;
	struct mw_ring_region *out = (void *)(shared->base + shared->geometry.script_ranges);

	__atomic_add_fetch(&script->sequence, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < count; i++) {
		__atomic_store_n(&out[i].low, ranges[i].low, __ATOMIC_RELAXED);
		__atomic_store_n(&out[i].high, ranges[i].high, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&script->range_count, count, __ATOMIC_RELAXED);
	__atomic_add_fetch(&script->sequence, 1, __ATOMIC_RELEASE);
}

void jump_script_publish(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_ring_script *script = &jump_control(&process->recorder.shared)->script;
	struct mw_ring_region *ranges;
	const struct mw_script_layout *layout;
	struct mw_script_place place;
	pid_t tid = mw_live_thread(process->pid);

	if (!process->recorder.shared.geometry.script_ranges || !mw_error_none(mw_maps_read(tid, &maps)))
		return;
	mw_error_destroy(mw_script_take_in(process->survey.script, tid));
	layout = mw_script_layout_of(process->survey.script, &place);
	if (!layout && !mw_v8_is_there(process->survey.v8))
		return;
	ranges = calloc(MW_RING_SCRIPT_RANGES, sizeof(*ranges));
	if (!ranges)
		return;
	if (layout)
		script->layout = *layout;
	publish_ranges(process, ranges, list_ranges(&maps, ranges));
	free(ranges);
	if (!layout || !process->recorder.shared.geometry.script_frames)
		return;
	/* Nothing is read before that. */
	__atomic_store_n(&script->place.own, place.own, __ATOMIC_RELEASE);
	__atomic_store_n(&script->place.current, place.current, __ATOMIC_RELEASE);
}

static uint64_t *codes_of(const struct jump_shared *shared)
{
	return (void *)(shared->base + shared->geometry.script_ranges +
			MW_RING_SCRIPT_RANGES * sizeof(struct mw_ring_region));
}

void jump_script_learn(struct jump_process *process, const struct mw_ring_slot *slot, uint64_t count)
{
	const struct jump_shared *shared = &process->recorder.shared;
	const struct jump_geometry *geometry = &shared->geometry;
	uint32_t ring = __atomic_load_n(&slot->ring, __ATOMIC_ACQUIRE);
	uint64_t *codes = codes_of(shared);
	pid_t tid = mw_live_thread(process->pid);
	const uint64_t *words;

	if (ring == 0 || ring > geometry->ring_count || count > geometry->script_frames)
		return;
	words = (const uint64_t *)(const void *)(shared->base + geometry->scratch) +
		(ring - UINT64_C(1)) * mw_ring_scratch_words(geometry->depth, geometry->script_frames) +
		mw_ring_script_at(geometry->depth);
	for (uint64_t i = 0; i < count; i++) {
		struct mw_script_ref ref;
		bool known, forgotten;
		uint64_t key;

		memcpy(&ref, words + i * MW_SCRIPT_WORDS, sizeof(ref));
		known = mw_script_learn(process->survey.script, tid, &ref, &forgotten);
		if (forgotten)
			memset(codes, 0, MW_RING_SCRIPT_CODES * sizeof(*codes));
		/* What can't be read now is when it is named, if it is there then. */
		if (!known)
			continue;
		key = mw_script_key(&ref);
		__atomic_store_n(&codes[mw_ring_script_code(key)], key, __ATOMIC_RELEASE);
	}
}

void jump_javascript_learn(struct jump_process *process, const struct mw_ring_slot *slot, uint64_t count)
{
	const struct jump_shared *shared = &process->recorder.shared;
	const struct jump_geometry *geometry = &shared->geometry;
	uint32_t ring = __atomic_load_n(&slot->ring, __ATOMIC_ACQUIRE);
	const uint64_t *words;

	if (ring == 0 || ring > geometry->ring_count || count > geometry->depth || !geometry->script_ranges ||
	    !mw_v8_is_there(process->survey.v8))
		return;
	words = (const uint64_t *)(const void *)(shared->base + geometry->scratch) +
		(ring - UINT64_C(1)) * mw_ring_scratch_words(geometry->depth, geometry->script_frames);
	for (uint64_t i = 0; i + MW_JAVASCRIPT_WORDS < count; i++) {
		struct mw_javascript function;
		uint64_t pc = words[i], key;

		if (!(pc & MW_JAVASCRIPT_FRAME))
			continue;
		pc &= ~MW_JAVASCRIPT_FRAME;
		memcpy(&function, words + i + 1, sizeof(function));
		i += MW_JAVASCRIPT_WORDS;
		/* What can't be kept has no name. */
		mw_error_destroy(mw_v8_learn(process->survey.v8, mw_live_thread(process->pid), &function, pc));
		key = mw_javascript_key(&function, pc);
		__atomic_store_n(&codes_of(shared)[mw_ring_script_code(key)], key, __ATOMIC_RELEASE);
	}
}

struct mw_error *jump_help_script(void *context, const struct mw_raw_stack *native, const struct mw_script_ref *refs,
				  uint32_t ref_count, struct mw_raw_frame *out, uint32_t capacity, uint32_t *count,
				  bool *truncated)
{
	struct jump_process *process = context;

	return mw_script_merge(process->survey.script, mw_live_thread(process->pid), native, refs, ref_count, out,
			       capacity, count, truncated);
}
