// SPDX-License-Identifier: MIT
/*
 * sampling.c: windows in which heap blocks are sampled: which functions take the fast path into the recorder, the interval,
 * and the transition of an exact window that memwatch can't keep up with (jump.h). The recorder decides what is sampled
 * (src/stub/sample.c).
 */
#include "engine/jump/jump.h"

#include "alloc/tables.h"

#include <string.h>

static bool is_of_mimalloc(const struct jump_process *process, uint32_t module)
{
	MW_EACH(hook, process->survey.hooks.items, process->survey.hooks.count)
		if (hook->module == module && hook->family == &mw_family_mimalloc)
			return true;
	return false;
}

/*
 * Does it call no other hooked function of the heap? A call that is not sampled leaves no trace, so what it called would be
 * taken for the program's own. mimalloc's functions jump to each other; musl's calloc calls malloc.
 */
static bool is_leaf(const struct jump_process *process, const struct mw_hook *hook)
{
	const char *name = hook->info.function;
	bool calloc = strcmp(name, "calloc") == 0 || strcmp(name, "__libc_calloc") == 0;
	bool malloc = strcmp(name, "malloc") == 0 || strcmp(name, "__libc_malloc") == 0;

	if (!hook->size || is_of_mimalloc(process, hook->module))
		return false;
	switch (process->survey.module_class[hook->module]) {
	case MW_MODULE_ALLOCATOR:
		return true;
	case MW_MODULE_RUNTIME:
		return malloc || (calloc && hook->glibc);
	default:
		return (malloc || calloc) && hook->glibc;
	}
}

/* Where the recorder reads the size from; 0: nowhere but in C. */
static uint32_t entry_by_size(const struct mw_stub_header *header, const struct mw_entry_point *entry)
{
	if (entry->role == MW_ROLE_CALLOC)
		return entry->count == 0 && entry->size == 1 ? header->enter_product : 0;
	if (entry->role != MW_ROLE_MALLOC || entry->count != MW_NO_ARG)
		return 0;
	return entry->size == 0 ? header->enter_size0 : entry->size == 1 ? header->enter_size1 : 0;
}

uint32_t jump_entry_of(struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_stub_header *header = jump_header(process);
	struct mw_stub_context *context = &process->recorder.context;
	const struct mw_hook *hook;
	uint32_t entry;

	if (patch->role == MW_STUB_UNWINDER)
		return header->find_fde;
	if (!jump_may_sample(process) || patch->hook == JUMP_NO_HOOK)
		return header->enter;
	hook = &process->survey.hooks.items[patch->hook];
	if (hook->info.kind != MW_KIND_HEAP)
		return header->enter;
	if (hook->entry->role == MW_ROLE_FREE)
		return hook->entry->pointer == 0 ? header->enter_free : header->enter;
	entry = entry_by_size(header, hook->entry);
	if (!entry || context->leaf_count == MW_STUB_RANGES || !is_leaf(process, hook))
		return header->enter;
	context->leaves[context->leaf_count++] = (struct mw_stub_range){patch->addr, patch->addr + patch->size};
	return entry;
}

struct mw_error *jump_sampling_set(struct jump_process *process, uint64_t bytes)
{
	uint16_t number;

	MW_TRY(jump_memory_fill_filter(process));
	MW_TRY(process->sink.interval(process->sink.context, bytes, &number));
	jump_drain_sampling(process->drain, number, !jump_samples(process));
	process->transition.interval = bytes;
	__atomic_store_n(&jump_control(&process->recorder.shared)->sampling, mw_ring_sampling(bytes, number),
			 __ATOMIC_RELAXED);
	return NULL;
}

/* --- overload ----------------------------------------------------------------------------------------------------- */

#define STEP_NS       UINT64_C(5000000) /* what threads have waited is looked at so often */
#define PERIOD_NS     (STEP_NS * JUMP_WAIT_STEPS)
#define GAP_NS        UINT64_C(50000)      /* longer than any interrupt takes */
#define VISIBLE_NS    UINT64_C(1000000)    /* after which each processor sees what another has written */
#define FIRST         (UINT64_C(64) << 10) /* bytes: the interval */
#define REST_NS       UINT64_C(200000000)  /* after a change, until what it has changed shows */
#define MORE          4                    /* times that, where it does not do */
#define MOST_INTERVAL (UINT64_C(1) << 30)

void jump_waiting_plan(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	const struct mw_engine_options *options = &process->engine->options;

	control->drop = options->overload == MW_OVERLOAD_DROP;
	control->wait_gap = jump_clock_ticks(&process->clock, GAP_NS);
	/* Else any wait is too much. */
	if (options->overload == MW_OVERLOAD_WAIT)
		process->transition.limit_ns = PERIOD_NS / 1000 * options->max_wait / 1000;
	process->transition.limit = jump_clock_ticks(&process->clock, process->transition.limit_ns);
}

/* False: it can't be now. A process that ends may have no memory any more. */
static bool set_guard(struct jump_process *process, uint32_t value)
{
	return mw_error_none(jump_guard_set(process, mw_live_thread(process->pid), value));
}

/*
 * Every block has been recorded until now. From here on:
 *
 *   VISITS    The guard is TRANSITION: allocations are sampled, frees are recorded, each of them. Some threads are in the
 *             recorder still that have seen the guard as it was before; they leave it in their own time.
 *   RECORDS   They have. What they have recorded is read.
 *   DONE      All blocks that live are known, and put into the filter. The guard is SAMPLING: frees of others are not
 *             recorded any more.
 */
static struct mw_error *begin_transition(struct jump_process *process)
{
	uint32_t count = process->recorder.shared.geometry.slot_count;

	if (!process->transition.entries)
		process->transition.entries = calloc(count, sizeof(*process->transition.entries));
	if (!process->transition.entries)
		return mw_error_nomem();
	MW_TRY(jump_sampling_set(process, FIRST));
	if (!set_guard(process, MW_STUB_GUARD_TRANSITION))
		return NULL;
	process->transition.since_ns = jump_now(process);
	process->transition.state = JUMP_TRANSITION_VISITS;
	process->stats.sampled_from_ns = process->transition.since_ns;
	for (uint32_t i = 0; i < count; i++)
		process->transition.entries[i] = UINT64_MAX;
	return NULL;
}

/* Has each thread left the recorder that was in it? */
static bool have_left(struct jump_process *process)
{
	const struct jump_shared *shared = &process->recorder.shared;
	bool all = true;

	for (uint32_t i = 0; i < shared->geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(shared, i);
		uint64_t entries = __atomic_load_n(&slot->entries, __ATOMIC_ACQUIRE),
			 *then = &process->transition.entries[i];

		if (*then == UINT64_MAX)
			*then = entries + 1;
		if (*then != entries + 1 || !__atomic_load_n(&slot->inside, __ATOMIC_ACQUIRE))
			*then = 0;
		all &= !*then;
	}
	return all;
}

static void add_to_filter(void *context, mw_addr block)
{
	const struct jump_shared *shared = context;
	uint32_t *known = (uint32_t *)(void *)(shared->base + shared->geometry.known);

	mw_ring_filter_count(shared->base + shared->geometry.filter, block, 1,
			     !mw_ring_known_claim(known, shared->geometry.known_count, block));
}

static struct mw_error *continue_transition(struct jump_process *process)
{
	if (process->transition.state == JUMP_TRANSITION_VISITS) {
		if (jump_now(process) - process->transition.since_ns < VISIBLE_NS || !have_left(process))
			return NULL;
		jump_drain_await(process->drain);
		process->transition.state = JUMP_TRANSITION_RECORDS;
	}
	if (!jump_drain_caught_up(process->drain))
		return NULL;
	MW_TRY(jump_drain_flush(process->drain));
	process->sink.blocks(process->sink.context, add_to_filter, &process->recorder.shared);
	if (set_guard(process, MW_STUB_GUARD_SAMPLING)) {
		process->transition.state = JUMP_TRANSITION_DONE;
		process->transition.since_ns = jump_now(process);
	}
	return NULL;
}

/* Has a thread waited for more than it may? Only at the first look in each step. */
static bool waits_too_long(struct jump_process *process)
{
	uint64_t step = jump_now(process) / STEP_NS;

	if (step == process->transition.step)
		return false;
	process->transition.step = step;
	return jump_drain_waited(process->drain, step) > process->transition.limit;
}

static bool is_over(const struct jump_process *process)
{
	uint64_t duration_ns = process->engine->options.duration_ns;

	return process->window.length_ns || (duration_ns && jump_now(process) >= duration_ns);
}

struct mw_error *jump_overload_serve(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	bool under_way = process->transition.state == JUMP_TRANSITION_VISITS ||
			 process->transition.state == JUMP_TRANSITION_RECORDS;

	if (process->ended || !process->windowed || control->settling)
		return NULL;
	if (under_way)
		return continue_transition(process);
	/* What comes after the window's end is not in the report. */
	if (is_over(process))
		return NULL;
	if (!jump_may_sample(process) || !waits_too_long(process))
		return NULL;
	if (process->transition.interval && jump_now(process) - process->transition.since_ns < REST_NS)
		return NULL;
	if (process->transition.state == JUMP_TRANSITION_NONE && !jump_samples(process))
		return begin_transition(process);
	process->transition.since_ns = jump_now(process);
	if (process->transition.interval < MOST_INTERVAL)
		return jump_sampling_set(process, process->transition.interval * MORE);
	return NULL;
}
