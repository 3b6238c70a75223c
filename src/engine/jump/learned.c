// SPDX-License-Identifier: MIT
/*
 * learned.c: code that nothing describes (jump.h, memwatch/ring.h).
 *
 * The recorder finds no row for a return address there: it sends the stack to be walked, where that is allowed, or ends
 * it. memwatch then reads the code of each such function once and publishes what the row is, so that the next stack is
 * walked through it. Where the code does not say for certain the row is that the stack is broken there.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "base/vector.h"
#include "proc/peek.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUND_NS  UINT64_C(5000000)
#define STACKS_NS UINT64_C(20000000) /* of CPU time */
#define PIECE     8192u              /* words of a stack that are read at a time */
#define MOST_READ 65536u             /* words of a stack from its stack pointer up */
#define MOST      (MW_RING_LEARNED / 2)
#define MOST_LATE 4096u

#define BROKEN mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0)

static struct mw_ring_cached_row *published(const struct jump_process *process)
{
	return (struct mw_ring_cached_row *)(void *)(process->recorder.shared.base +
						     process->recorder.shared.geometry.learned);
}

static void new_generation(struct jump_process *process)
{
	__atomic_add_fetch(&jump_control(&process->recorder.shared)->generation, 1, __ATOMIC_RELEASE);
}

static struct jump_learned *known(const struct jump_process *process, mw_addr pc)
{
	size_t index = (size_t)(uintptr_t)mw_map_get(&process->learned.at, pc);

	return index ? &process->learned.items[index - 1] : NULL;
}

/* Where its entry is, or is to be: NULL where there is no room. The target may have written over it: then it does not
 * know what it has lost. */
static struct mw_ring_cached_row *entry_of(const struct jump_process *process, mw_addr pc)
{
	struct mw_ring_cached_row *entries = published(process);

	for (uint32_t i = 0; i < MW_RING_PROBES; i++) {
		struct mw_ring_cached_row *entry = &entries[(mw_ring_learned_first(pc) + i) & (MW_RING_LEARNED - 1)];
		uint64_t row = __atomic_load_n(&entry->row, __ATOMIC_RELAXED);
		uint64_t tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);

		if ((!row && !tag) || (row ^ tag) == pc)
			return entry;
	}
	return NULL;
}

static void publish(const struct jump_process *process, const struct jump_learned *learned)
{
	struct mw_ring_cached_row *entry = entry_of(process, learned->pc);

	if (!entry)
		return;
	__atomic_store_n(&entry->row, learned->row, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tag, learned->pc ^ learned->row, __ATOMIC_RELEASE);
	__atomic_store_n(&jump_control(&process->recorder.shared)->learned_any, 1, __ATOMIC_RELEASE);
}

/* Without memory it is not kept, and is looked at again. */
static void keep(struct jump_process *process, const struct jump_learned *learned)
{
	struct mw_error *err;

	if (!MW_VECTOR_ROOM(process->learned.items, process->learned.count, process->learned.capacity))
		return;
	process->learned.items[process->learned.count] = *learned;
	// NOLINTNEXTLINE(performance-no-int-to-ptr)
	err = mw_map_set(&process->learned.at, learned->pc, (void *)(uintptr_t)(process->learned.count + 1));
	if (!err) {
		process->learned.count++;
		publish(process, learned);
	}
	mw_error_destroy(err);
}

uint64_t jump_learn(struct jump_process *process, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);
	const struct jump_learned *before = known(process, pc);
	struct jump_learned learned = {.pc = pc, .row = BROKEN};

	if (before)
		return before->row;
	if (!module || mw_row_kind(jump_rows_find(process, pc)) != MW_ROW_NONE)
		return mw_row(MW_ROW_NONE, 0, MW_ROW_FP_LOST, 0);
	if (process->learned.count == MOST)
		return BROKEN;
	learned.module = module->number;
	learned.row = mw_unwinder_libunwind_row(process->inner, pc);
	if (mw_row_kind(learned.row) == MW_ROW_SLOW || mw_row_kind(learned.row) == MW_ROW_NONE)
		learned.row = BROKEN;
	keep(process, &learned);
	return learned.row;
}

void jump_learn_end(struct jump_process *process, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc);
	struct jump_learned learned = {.pc = pc, .row = mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0)};

	if (!module || known(process, pc) || process->learned.count == MOST)
		return;
	learned.module = module->number;
	keep(process, &learned);
	/* The recorder may go by what describes the code before it. */
	new_generation(process);
}

void jump_learn_later(struct jump_process *process, mw_addr pc)
{
	if (known(process, pc) || process->learned.to_learn_count == MOST_LATE)
		return;
	if (!MW_VECTOR_ROOM(process->learned.to_learn, process->learned.to_learn_count,
			    process->learned.to_learn_capacity))
		return;
	process->learned.to_learn[process->learned.to_learn_count++] = pc;
}

void jump_learn_some(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns();

	while (process->learned.to_learn_count > 0 && mw_clock_ns() - begin < ROUND_NS)
		(void)jump_learn(process, process->learned.to_learn[--process->learned.to_learn_count]);
}

void jump_learn_note_stacks(struct jump_process *process)
{
	const struct mw_quiesce *quiesce = &process->quiesce;

	free(process->learned.stack_pointers);
	process->learned.stack_pointer_count = 0;
	process->learned.stack_pointers = calloc(quiesce->count + 1, sizeof(*process->learned.stack_pointers));
	for (size_t i = 0; process->learned.stack_pointers && i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];
		struct mw_tracee_regs regs;
		struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

		if (thread->stopped && !err)
			process->learned.stack_pointers[process->learned.stack_pointer_count++] =
				regs.general.gpr[process->survey.arch->dwarf_sp] & ~(mw_addr)(sizeof(uint64_t) - 1);
		mw_error_destroy(err);
	}
}

/* Words of a stack may be return addresses of calls that have returned: what is learned of these is true as well.
 * False: there is no time for more. */
static bool learn_from_words(struct jump_process *process, const uint64_t *words, size_t count, uint64_t until)
{
	for (size_t i = 0; i < count; i++) {
		if (!mw_modules_find(process->survey.modules, words[i] - 1) ||
		    mw_row_kind(jump_rows_find(process, words[i])) != MW_ROW_NONE ||
		    !mw_unwinder_libunwind_is_return(process->inner, words[i]))
			continue;
		(void)jump_learn(process, words[i]);
		if (mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) > until)
			return false;
	}
	return mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) <= until;
}

void jump_learn_from_stacks(struct jump_process *process)
{
	uint64_t until = mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) + STACKS_NS;
	uint64_t *words = malloc(PIECE * sizeof(*words));
	struct mw_touched memory;
	bool more = words;

	mw_touched_init(&memory, jump_live_tid(process));
	for (size_t i = 0; more && i < process->learned.stack_pointer_count; i++) {
		mw_addr at = process->learned.stack_pointers[i];
		size_t got = PIECE;

		for (size_t done = 0; more && done < MOST_READ && got == PIECE; done += got) {
			got = mw_touched_read(&memory, at, words, PIECE * sizeof(*words)) / sizeof(*words);
			more = learn_from_words(process, words, got, until);
			at += got * sizeof(*words);
		}
	}
	mw_touched_deinit(&memory);
	free(words);
}

/* It led to what nobody can have called: it is not true, whatever the code looks like. */
static void give_up(struct jump_process *process, struct jump_learned *learned)
{
	learned->row = BROKEN;
	publish(process, learned);
	new_generation(process);
}

/* Can a frame at `inner` return to `pc`? What is no return address (where a handler returns to, where a coroutine
 * begins) is reported as the place behind it. */
static bool leads_to(const struct jump_process *process, mw_addr inner, mw_addr pc)
{
	return mw_unwinder_libunwind_is_return(process->inner, pc) ||
	       mw_unwinder_libunwind_is_return(process->inner, pc - 1) ||
	       process->inner->ops->begins(process->inner, pc - 1, inner);
}

uint32_t jump_learned_check(struct jump_process *process, const struct mw_raw_frame *frames, uint32_t count)
{
	if (!process->learned.count)
		return count;
	for (uint32_t i = 0; i + 1 < count; i++) {
		struct jump_learned *learned = known(process, frames[i].addr);

		if (!learned || (mw_row_kind(learned->row) != MW_ROW_SP && mw_row_kind(learned->row) != MW_ROW_FP))
			continue;
		/* Code of no file may have been made, and gone, since. */
		if (frames[i + 1].module == MW_MODULE_NONE || leads_to(process, frames[i].addr, frames[i + 1].addr))
			continue;
		give_up(process, learned);
		return i + 1;
	}
	return count;
}

void jump_learned_tidy(struct jump_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->learned.count; i++)
		if (!mw_modules_get(process->survey.modules, process->learned.items[i].module)->gone)
			process->learned.items[kept++] = process->learned.items[i];
	process->learned.to_learn_count = 0;
	if (kept == process->learned.count)
		return;
	process->learned.count = 0;
	mw_map_deinit(&process->learned.at);
	/* Each entry by itself is true, or of code that is no more. */
	for (uint32_t i = 0; i < MW_RING_LEARNED; i++) {
		__atomic_store_n(&published(process)[i].tag, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&published(process)[i].row, 0, __ATOMIC_RELAXED);
	}
	for (size_t i = 0; i < kept; i++) {
		const struct jump_learned learned = process->learned.items[i];

		keep(process, &learned);
	}
}
