// SPDX-License-Identifier: MIT
/*
 * sampling.c: windows that are sampled from their beginning, or from where memwatch could not follow (jump.h,
 * stub/sampled_set.h).
 *
 * Where an exact window goes over to sampling, the recorder looks blocks up in another place from then on. What was
 * recorded before has to be put there: all heap blocks that the sink has, and those that it is told of later. Until that is
 * done the recorder reports all frees, as long as rings have room. Those of blocks that are nobody's are dropped here.
 */
#include "engine/jump/jump.h"

#include "base/vector.h"
#include "stub/sampled_set.h"

#include <string.h>

#define OVERLOAD_INTERVAL (UINT64_C(512) << 10)
#define WAIT_SPAN_NS      UINT64_C(100000000)
#define MILLION           1000000u

/* One of the process's own allocator's functions, which calls no other that is hooked? Where a function that does calls
 * another, either of them would be sampled. */
bool jump_is_leaf(const struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_hook *hook = patch->hook == JUMP_NO_HOOK ? NULL : &process->survey.hooks.items[patch->hook];
	enum mw_module_class class = (enum mw_module_class)process->survey.module_class[patch->module];
	bool calloc;

	if (!hook || hook->info.kind != MW_KIND_HEAP || hook->entry->pointer != MW_NO_ARG ||
	    (hook->entry->role != MW_ROLE_MALLOC && hook->entry->role != MW_ROLE_CALLOC))
		return false;
	if (class == MW_MODULE_ALLOCATOR)
		return true;
	calloc = hook->entry->role == MW_ROLE_CALLOC;
	/* musl's calloc calls malloc. */
	if (hook->glibc || class == MW_MODULE_RUNTIME)
		return strcmp(hook->entry->symbol, "malloc") == 0 || (calloc && hook->glibc);
	/* What a program defines by itself may be a wrapper. */
	return strcmp(hook->family->name, "libc") != 0 && strcmp(hook->family->name, "c++") != 0;
}

/* Where a patch's trampoline leads to, in the image. */
uint32_t jump_entry_of(const struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_stub_header *header = jump_header(process);
	const struct mw_entry_point *entry =
		patch->hook == JUMP_NO_HOOK ? NULL : process->survey.hooks.items[patch->hook].entry;

	if (patch->role == MW_STUB_UNWINDER)
		return header->find_fde;
	if (!entry || !process->engine->options.track_heap)
		return header->enter;
	if (patch->role == MW_ROLE_FREE && entry->pointer == 0)
		return header->enter_free;
	if (!jump_is_leaf(process, patch))
		return header->enter;
	if (entry->count == MW_NO_ARG && entry->size <= 1)
		return entry->size == 0 ? header->enter_size0 : header->enter_size1;
	return entry->count == 0 && entry->size == 1 ? header->enter_product : header->enter;
}

/* The number of an interval in the control block; where there are too many, that of the last one. */
static uint32_t number_of(struct jump_process *process, uint64_t bytes)
{
	struct jump_drain *drain = process->drain;
	uint32_t n = 1;

	while (n < drain->sampling.count && drain->sampling.bytes[n] != bytes)
		n++;
	if (n == MW_RING_INTERVALS)
		return n - 1;
	if (n == drain->sampling.count) {
		drain->sampling.bytes[n] = jump_control(&process->recorder.shared)->intervals[n] = bytes;
		drain->sampling.count++;
	}
	return n;
}

void jump_sampling_set(struct jump_process *process, uint64_t bytes)
{
	__atomic_store_n(&jump_control(&process->recorder.shared)->interval, number_of(process, bytes),
			 __ATOMIC_RELEASE);
}

void jump_sampling_prepare(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	struct mw_ring_control *control = jump_control(&process->recorder.shared);

	process->drain->sampling.count = 1;
	process->drain->sampling.on = options->sample_interval != 0;
	jump_sampling_set(process, options->sample_interval ? options->sample_interval : OVERLOAD_INTERVAL);
	control->wait_span = jump_clock_ticks(&process->clock, WAIT_SPAN_NS);
	if (options->overload == MW_OVERLOAD_DROP)
		control->overload = MW_RING_OVERLOAD_DROP;
	else if (options->overload == MW_OVERLOAD_SAMPLE || options->max_wait)
		control->overload = MW_RING_OVERLOAD_SAMPLE;
	if (options->overload == MW_OVERLOAD_WAIT)
		control->wait_share = options->max_wait < MILLION ? options->max_wait : MILLION;
}

uint64_t jump_sampling_from(struct jump_process *process)
{
	uint64_t from = __atomic_load_n(&jump_control(&process->recorder.shared)->sampled_from, __ATOMIC_ACQUIRE);
	uint64_t now = jump_clock_tick();

	if (from == 0)
		return 0;
	/* What the target says it may have made up. */
	from = jump_clock_ns(&process->clock, from < now ? from : now);
	return from ? from : 1;
}

/* --- an exact window goes over to sampling --- */

/* The recorder's table of blocks that were recorded in the exact part. */
static uint32_t *known_of(struct jump_process *process)
{
	return (uint32_t *)(void *)(process->recorder.shared.base + process->recorder.shared.geometry.known);
}

/* Where the entry is still that block's it goes into the set. */
static void adopt_entry(struct jump_process *process, uint32_t n, uint32_t value, mw_addr block)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t *entry = known_of(process) + n;

	if (__atomic_load_n(entry, __ATOMIC_RELAXED) != value)
		return;
	sampled_add(control, block);
	/* It is being freed just now. */
	if (!__atomic_compare_exchange_n(entry, &value, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		(void)sampled_take(control, block);
}

void jump_sampling_adopt(void *context, mw_addr block)
{
	struct jump_process *process = context;
	uint64_t n = block >> 4;
	uint32_t count = process->recorder.shared.geometry.known_count;

	adopt_entry(process, (uint32_t)n & (count - 1), (uint32_t)(n >> __builtin_ctz(count)) + 1, block);
}

static void adopt_all(struct jump_process *process)
{
	uint32_t count = process->recorder.shared.geometry.known_count;

	for (uint32_t n = 0; n < count; n++) {
		uint32_t value = __atomic_load_n(known_of(process) + n, __ATOMIC_RELAXED);

		if (value)
			adopt_entry(process, n, value,
				    ((mw_addr)(value - 1) << __builtin_ctz(count) | n) << MW_RING_FILTER_BLOCK);
	}
}

struct forgotten {
	struct jump_process *process;
	mw_addr *blocks;
	size_t count, capacity;
	bool no_memory;
};

/* Blocks that the sink has, and the recorder has forgotten as another had the same entry; or that were freed while a
 * free could not be reported. */
static void note_forgotten(void *context, mw_addr block)
{
	struct forgotten *forgotten = context;
	const struct mw_ring_control *control = jump_control(&forgotten->process->recorder.shared);

	jump_sampling_adopt(forgotten->process, block);
	if (sampled_has(control, block))
		return;
	if (MW_VECTOR_ROOM(forgotten->blocks, forgotten->count, forgotten->capacity))
		forgotten->blocks[forgotten->count++] = block;
	else
		forgotten->no_memory = true;
}

/* Everything that was recorded before has been told to the sink. */
static struct mw_error *settle(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	struct jump_drain *drain = process->drain;
	struct forgotten forgotten = {.process = process};
	struct mw_error *err = NULL;

	drain->sink.blocks(drain->sink.context, note_forgotten, &forgotten);
	if (!forgotten.no_memory && __atomic_load_n(&control->unseen, __ATOMIC_ACQUIRE) == 0) {
		for (size_t i = 0; i < forgotten.count; i++)
			sampled_add(control, forgotten.blocks[i]);
	} else {
		/* Whether they live nobody can say: what may be no leak is not called one. */
		for (size_t i = 0; i < forgotten.count && !err; i++)
			err = jump_drain_forget(drain, forgotten.blocks[i]);
	}
	free(forgotten.blocks);
	__atomic_store_n(&control->adopted, 1, __ATOMIC_RELEASE);
	return err;
}

struct mw_error *jump_sampling_serve(struct jump_process *process)
{
	struct jump_sampling *sampling = &process->drain->sampling;

	if (!sampling->on || sampling->settled || process->engine->options.sample_interval)
		return NULL;
	if (!sampling->adopts) {
		/* What is read of the rings from here on is adopted as it comes. */
		sampling->adopts = true;
		adopt_all(process);
		sampling->noticed = jump_clock_tick();
		return NULL;
	}
	if (sampling->reported <= sampling->noticed)
		return NULL;
	sampling->settled = true;
	return settle(process);
}
