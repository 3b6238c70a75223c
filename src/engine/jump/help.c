// SPDX-License-Identifier: MIT
/*
 * help.c: what the drain asks of the process (jump.h, drain.h), and what is learned of code that nothing describes
 * (memwatch/ring.h).
 *
 * The recorder finds no row for a return address there: it sends the stack to be walked, where that is allowed, or ends
 * it. memwatch then reads the code of each such function once and publishes what the row is, so that the next stack is
 * walked through it. Where the code does not say for certain the row is that the stack is broken there.
 */
#include "engine/jump/jump.h"

#include "unwind/fallback.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ABOVE      (UINT64_C(8) << 20)  /* so much above the piece of stack that was sent may be stack too */
#define SEEK_NS    UINT64_C(1000000000) /* to spend on looking for threads, */
#define SEEK_SHARE 8                    /* … and one part in so many of the time since */
#define ROUND_NS   UINT64_C(5000000)
#define STACKS_NS  UINT64_C(20000000) /* of CPU time */
#define PIECE      8192u              /* words of a stack that are read at a time */
#define MOST_READ  65536u             /* words of a stack from its stack pointer up */
#define MOST       (MW_RING_LEARNED / 2)
#define MOST_LATE  4096u
#define NO_MODULE  UINT32_MAX /* of code that is in no file */

#define JAVA_NS    UINT64_C(10000000) /* between two looks at what has changed in a Java virtual machine, */
#define JAVA_SHARE 128                /* … of which each takes a part in so many of the time */

#define ASKED_WORDS    2048u             /* of the stack of a thread that asks */
#define ASKED_NS       UINT64_C(2000000) /* of CPU time, for one that asks */
#define COLLECTOR_SIZE 64u               /* bytes of mw_generated_code.collector where its call may be */

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

static void publish(struct jump_process *process, const struct jump_learned *learned)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	struct mw_ring_cached_row *entry;

	if (!__atomic_load_n(&control->learned_any, __ATOMIC_RELAXED) && !jump_memory_fill_learned(process))
		return;
	entry = entry_of(process, learned->pc);
	if (!entry)
		return;
	__atomic_store_n(&entry->row, learned->row, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tag, learned->pc ^ learned->row, __ATOMIC_RELEASE);
	__atomic_store_n(&control->learned_any, 1, __ATOMIC_RELEASE);
}

/* Without memory it is not kept, and is looked at again. */
static void keep(struct jump_process *process, const struct jump_learned *learned)
{
	if (!MW_VECTOR_ROOM(process->learned.items, process->learned.count, process->learned.capacity))
		return;
	process->learned.items[process->learned.count] = *learned;
	// NOLINTNEXTLINE(performance-no-int-to-ptr)
	if (mw_error_none(mw_map_set(&process->learned.at, learned->pc, (void *)(process->learned.count + 1)))) {
		process->learned.count++;
		publish(process, learned);
	}
}

/* Is `pc` a return address in code of a runtime that says itself what its frames are? */
static bool is_made(struct jump_process *process, mw_addr pc)
{
	return mw_made_code_holds(&process->survey.java.made, pc - 1);
}

uint64_t jump_learn(struct jump_process *process, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);
	const struct jump_learned *before = known(process, pc);
	struct jump_learned learned = {.pc = pc, .row = BROKEN};

	if (before)
		return before->row;
	if (!module && !is_made(process, pc))
		return mw_row(MW_ROW_NONE, 0, MW_ROW_FP_LOST, 0);
	if (module && mw_row_kind(jump_rows_find(process, pc)) != MW_ROW_NONE)
		return mw_row(MW_ROW_NONE, 0, MW_ROW_FP_LOST, 0);
	if (process->learned.count == MOST)
		return BROKEN;
	learned.module = module ? module->number : NO_MODULE;
	learned.row = mw_fallback_row(mw_unwinder_libunwind_fallback(process->inner), pc);
	if (mw_row_kind(learned.row) == MW_ROW_SLOW || mw_row_kind(learned.row) == MW_ROW_NONE)
		learned.row = BROKEN;
	keep(process, &learned);
	return learned.row;
}

/* Of the learned, the first `kept` items stay. */
static void keep_only(struct jump_process *process, size_t kept)
{
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

static bool is_gone(const struct jump_process *process, const struct jump_learned *learned)
{
	return learned->module != NO_MODULE && mw_modules_get(process->survey.modules, learned->module)->gone;
}

void jump_learned_tidy(struct jump_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->learned.count; i++)
		if (!is_gone(process, &process->learned.items[i]))
			process->learned.items[kept++] = process->learned.items[i];
	process->learned.to_learn_count = 0;
	keep_only(process, kept);
}

/* There is no room: what is needed is asked for again. */
static void forget_made(struct jump_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->learned.count; i++)
		if (process->learned.items[i].module != NO_MODULE)
			process->learned.items[kept++] = process->learned.items[i];
	keep_only(process, kept);
}

/* Every stack that comes to `pc` ends there: nothing has called it, whatever describes the code before it. */
static void learn_end(struct jump_process *process, mw_addr pc)
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
	if (!process->learned.stack_pointers)
		return;
	MW_EACH(thread, quiesce->threads, quiesce->count) {
		struct mw_tracee_regs regs;

		if (jump_regs_of(thread, &regs))
			process->learned.stack_pointers[process->learned.stack_pointer_count++] =
				regs.general.gpr[process->survey.arch->dwarf_sp] & ~(mw_addr)(sizeof(uint64_t) - 1);
	}
}

static bool is_undescribed_return(const struct jump_process *process, mw_addr pc)
{
	return mw_modules_find(process->survey.modules, pc - 1) &&
	       mw_row_kind(jump_rows_find(process, pc)) == MW_ROW_NONE &&
	       mw_fallback_is_return(mw_unwinder_libunwind_fallback(process->inner), pc);
}

/* Words of a stack may be return addresses of calls that have returned: what is learned of these is true as well.
 * False: there is no time for more. */
static bool learn_from_words(struct jump_process *process, const uint64_t *words, size_t count, uint64_t until)
{
	for (size_t i = 0; i < count; i++) {
		if (is_made(process, words[i]) ? known(process, words[i]) != NULL
					       : !is_undescribed_return(process, words[i]))
			continue;
		(void)jump_learn(process, words[i]);
		if (mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) > until)
			return false;
	}
	return mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) <= until;
}

/* A collector allocates a lot in a row: without this all of it would be recorded before its frames are learned. */
static void learn_collectors(struct jump_process *process)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));) {
		uint64_t collector = module->number < process->rows.count
					     ? process->rows.items[module->number].generated.collector
					     : 0;
		mw_addr at = module->bias + collector;

		for (mw_addr pc = at; collector && pc < at + COLLECTOR_SIZE; pc++)
			if (mw_fallback_is_return(mw_unwinder_libunwind_fallback(process->inner), pc))
				(void)jump_learn(process, pc);
	}
}

void jump_learn_from_stacks(struct jump_process *process)
{
	uint64_t until = mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) + STACKS_NS;
	MW_FREE uint64_t *words = malloc(PIECE * sizeof(*words));
	struct mw_touched memory;
	bool more = words;

	learn_collectors(process);
	mw_touched_init(&memory, mw_live_thread(process->pid));
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
}

void jump_learn_asked(struct jump_process *process, const struct mw_ring_slot *slot, mw_addr pc)
{
	mw_addr top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
	uint64_t words[ASKED_WORDS], until = mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) + ASKED_NS;
	struct mw_touched memory;
	size_t got;

	if (process->learned.count > MOST - ASKED_WORDS)
		forget_made(process);
	(void)jump_learn(process, pc);
	/* What it will ask for next. */
	mw_touched_init(&memory, mw_live_thread(process->pid));
	got = mw_touched_read(&memory, top & ~(mw_addr)(sizeof(words[0]) - 1), words, sizeof(words)) / sizeof(words[0]);
	for (size_t i = 0; i < got; i++)
		if (is_made(process, words[i]) && !known(process, words[i])) {
			(void)jump_learn(process, words[i]);
			if (mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) > until)
				break;
		}
	mw_touched_deinit(&memory);
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
	const struct mw_fallback *fallback = mw_unwinder_libunwind_fallback(process->inner);

	return mw_fallback_is_return(fallback, pc) || mw_fallback_is_return(fallback, pc - 1) ||
	       process->inner->ops->begins(process->inner, pc - 1, inner);
}

static bool read_live(void *context, mw_addr addr, void *out, size_t size)
{
	const struct jump_process *process = context;

	return mw_remote_read(mw_live_thread(process->pid), addr, out, size) == size;
}

/* From a frame in generated code the recorder goes on by the frame pointer, until more is learned of the code. */
static bool leads_on(struct jump_process *process, const struct mw_raw_frame *frame, mw_addr next)
{
	struct mw_fallback *fallback = mw_unwinder_libunwind_fallback(process->inner);
	const struct mw_memory_view memory = {.context = process, .read = read_live};
	bool before = known(process, frame->addr);
	uint64_t row = frame->module == MW_MODULE_NONE ? mw_row_generated() : jump_learn(process, frame->addr);

	if (row == mw_row_generated())
		return mw_fallback_can_return(fallback, &memory, next);
	if (!before)
		new_generation(process);
	return before;
}

static bool is_named(const struct jump_process *process, const struct mw_raw_frame *frame)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, frame->module);

	return module && module->named;
}

/* Frames of generated code: how many are right. */
static uint32_t check_generated(struct jump_process *process, struct mw_raw_frame *frames, uint32_t count)
{
	struct mw_fallback *fallback = mw_unwinder_libunwind_fallback(process->inner);

	for (uint32_t i = 0; i + 1 < count; i++) {
		if (!mw_fallback_is_generated(fallback, frames[i].addr - 1))
			continue;
		if (!leads_on(process, &frames[i], frames[i + 1].addr))
			return i + 1;
		/* It goes on at the function's very start. */
		frames[i + 1].addr += mw_fallback_is_entry(fallback, frames[i + 1].addr);
	}
	return count;
}

/* Frames of code that may have made place for other code: how many are right. */
static uint32_t check_made(struct jump_process *process, const struct mw_raw_frame *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct jump_learned *learned;
		uint64_t row;

		if (frames[i].module != MW_MODULE_NONE || !is_made(process, frames[i].addr))
			continue;
		learned = known(process, frames[i].addr);
		row = mw_fallback_row(mw_unwinder_libunwind_fallback(process->inner), frames[i].addr);
		if (!learned || learned->row == row)
			continue;
		learned->row = row;
		publish(process, learned);
		new_generation(process);
		return i + 1;
	}
	return count;
}

uint32_t jump_learned_check(struct jump_process *process, struct mw_raw_frame *frames, uint32_t count)
{
	if (mw_java_is_there(&process->survey.java))
		count = check_made(process, frames, count);
	if (jump_rows_makes_code(process))
		count = check_generated(process, frames, count);
	if (count && frames[count - 1].module == MW_MODULE_NONE)
		jump_rows_met(process, frames[count - 1].addr);
	if (!process->learned.count)
		return count;
	for (uint32_t i = 0; i + 1 < count; i++) {
		struct jump_learned *learned = known(process, frames[i].addr);

		if (!learned || (mw_row_kind(learned->row) != MW_ROW_SP && mw_row_kind(learned->row) != MW_ROW_FP))
			continue;
		/* Code of no file may have been made, and gone, since; a frame that is named has no address. */
		if (frames[i + 1].module == MW_MODULE_NONE || is_named(process, &frames[i + 1]) ||
		    leads_to(process, frames[i].addr, frames[i + 1].addr))
			continue;
		give_up(process, learned);
		return i + 1;
	}
	return count;
}

/* The piece of stack that the recorder sent, and memory that does not change so soon. */
struct piece {
	const struct jump_process *process;
	mw_addr start;
	const uint8_t *bytes;
	size_t size;
	pid_t tid;
};

static bool read_piece(void *context, mw_addr addr, void *out, size_t size)
{
	const struct piece *piece = context;
	uint64_t into = addr - piece->start;

	if (into < piece->size && size <= piece->size - into) {
		memcpy(out, piece->bytes + into, size);
		return true;
	}
	/* What lies above on the stack has changed since. */
	if (into < piece->size + ABOVE)
		return false;
	return mw_remote_read(piece->tid, addr, out, size) == size;
}

static bool piece_ends(void *context, mw_addr addr)
{
	const struct piece *piece = context;

	return mw_peek_ends(piece->tid, addr);
}

static void help_walk(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		      struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	struct jump_process *process = context;
	struct piece piece = {.process = process,
			      .start = slow->start,
			      .bytes = bytes,
			      .size = size,
			      .tid = mw_live_thread(process->pid)};
	const struct mw_memory_view memory = {.context = &piece, .read = read_piece, .ends = piece_ends};
	struct mw_regs regs = {.pc = slow->pc};

	if (capacity > process->engine->options.depth)
		capacity = process->engine->options.depth;
	memcpy(regs.gpr, slow->gpr, sizeof(regs.gpr));
	process->unwinder->ops->walk(process->unwinder, &regs, &memory, process->engine->frames, capacity, count, cut);
	if (process->unwinder->dead_end)
		learn_end(process, process->unwinder->dead_end);
	for (uint32_t i = 0; i < *count; i++) {
		const struct mw_unwound_frame *frame = &process->engine->frames[i];

		frames[i] = (struct mw_raw_frame){.addr = frame->pc, .module = frame->module};
		if (frame->interpreted.is)
			mw_error_keep_first(
				&process->drain->failure,
				mw_java_interpreted(&process->survey.java, &frame->interpreted, &frames[i]));
		/* The recorder's walks will end there. */
		if (frame->undescribed && mw_row_kind(jump_learn(process, frame->pc)) == MW_ROW_FOREIGN) {
			*count = i + 1;
			*cut = MW_STACK_BROKEN;
		}
	}
}

/*
 * The recorder knows stacks by addresses, which are the same where one class, or one method's code, has come to stand in
 * another's place: it is to tell each stack anew then.
 */
void jump_java_serve(struct jump_process *process, uint64_t now)
{
	const struct jump_shared *shared = &process->recorder.shared;
	struct mw_ring_stack_entry *entries = (void *)(shared->base + shared->geometry.stacks);
	uint64_t begin;
	bool changed;

	if (!mw_java_is_there(&process->survey.java) || now < process->last.java_next_ns)
		return;
	begin = mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID);
	changed = mw_java_has_changed(&process->survey.java);
	process->last.java_next_ns = now + JAVA_NS + JAVA_SHARE * (mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) - begin);
	if (!changed)
		return;
	for (uint32_t i = 0; i < shared->geometry.stack_count; i++)
		__atomic_store_n(&entries[i].tag, 0, __ATOMIC_RELAXED);
	new_generation(process);
}

static struct mw_error *help_interpreted(void *context, const struct mw_interpreted *interpreted,
					 struct mw_raw_frame *frame)
{
	struct jump_process *process = context;

	return mw_java_interpreted(&process->survey.java, interpreted, frame);
}

static struct mw_error *help_name(void *context, const struct mw_raw_stack *native, struct mw_raw_frame *out,
				  uint32_t capacity, uint32_t *count, bool *truncated)
{
	struct jump_process *process = context;

	if (capacity > process->engine->options.depth)
		capacity = process->engine->options.depth;
	return mw_java_name(&process->survey.java, native, out, capacity, count, truncated);
}

static void help_functions(void *context, const struct mw_raw_stack *native, const struct mw_javascript *functions,
			   struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated)
{
	const struct jump_process *process = context;

	if (capacity > process->engine->options.depth)
		capacity = process->engine->options.depth;
	mw_v8_name(process->survey.v8, native, functions, out, capacity, count, truncated);
}

static void help_check(void *context, struct mw_raw_frame *frames, uint32_t *count, enum mw_stack_cut *cut)
{
	struct jump_process *process = context;
	uint32_t good = jump_learned_check(process, frames, *count);

	if (good < *count) {
		*count = good;
		*cut = MW_STACK_BROKEN;
	} else if (*cut == MW_STACK_BROKEN && good > 0) {
		jump_learn_later(process, frames[good - 1].addr);
	}
}

static uint32_t help_module(void *context, mw_addr pc)
{
	const struct jump_process *process = context;
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);

	return module ? module->number : MW_MODULE_NONE;
}

/* What is found so once, the recorder knows from then on. */
static bool help_begins(void *context, mw_addr pc, mw_addr inner)
{
	struct jump_process *process = context;

	if (!process->unwinder->ops->begins || !process->unwinder->ops->begins(process->unwinder, pc, inner))
		return false;
	learn_end(process, pc);
	return true;
}

static bool lives(const struct jump_process *process, pid_t tid)
{
	return tid > 0 && access(mw_path("/proc/%d/task/%d", process->pid, tid).text, F_OK) == 0;
}

/* Which thread of the process is `tid` in its innermost namespace? 0: none. */
static pid_t find_thread(const struct jump_process *process, uint32_t tid)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	struct mw_status status;

	mw_error_destroy(mw_tasks_read(process->pid, &tids, &count));
	for (size_t i = 0; i < count; i++)
		if (mw_error_none(mw_status_read(tids[i], &status)) && status.ns_pid == (pid_t)tid)
			return tids[i];
	return 0;
}

/* The same, within what time there is for it: a target may tell any number of numbers that are no thread's. */
static pid_t seek_thread(struct jump_process *process, uint32_t tid)
{
	uint64_t begin = mw_clock_ns();
	pid_t found;

	if (!process->ids.seek_since_ns)
		process->ids.seek_since_ns = begin;
	if (process->ids.seek_ns > SEEK_NS + (begin - process->ids.seek_since_ns) / SEEK_SHARE)
		return 0;
	found = find_thread(process, tid);
	process->ids.seek_ns += mw_clock_ns() - begin;
	return found;
}

/* The same, kept as long as it lives: to look through all threads takes its time. `anew`: the number may be another's.
 */
static pid_t translate(struct jump_process *process, uint32_t tid, bool anew)
{
	pid_t known = (pid_t)(uintptr_t)mw_map_get(&process->ids.tids, tid);

	if (!process->ids.other_namespace)
		return (pid_t)tid;
	if (known && (!anew || lives(process, known)))
		return known;
	known = seek_thread(process, tid);
	/* Where it can't be kept, it is looked for again. */
	if (known)
		mw_error_destroy(mw_map_set(&process->ids.tids, tid,
					    (void *)(uintptr_t)known)); // NOLINT(performance-no-int-to-ptr)
	return known;
}

pid_t jump_thread_of(struct jump_process *process, uint32_t tid)
{
	return translate(process, tid, false);
}

static bool help_thread(void *context, uint32_t tid, pid_t *out, char name[17])
{
	struct jump_process *process = context;
	pid_t found = translate(process, tid, true);

	*out = found ? found : (pid_t)tid;
	if (found && !(process->ended && process->window.ended == MW_END_EXEC)) {
		mw_comm_read(process->pid, found, name);
		/* Read before that is asked: there is no name of a thread that is gone, and one that came by an exec is
		 * another program's. */
		if (lives(process, found) && (process->ended || !jump_has_execed(process)))
			return true;
	}
	/* A thread is born with its maker's name. */
	snprintf(name, 17, "%s", process->name);
	return false;
}

static bool help_thread_lives(void *context, uint32_t tid)
{
	struct jump_process *process = context;

	/* When the whole process has ended, what its threads were at is of no matter; others may live in its memory. */
	return lives(process, translate(process, tid, false)) || jump_has_exited(process);
}

struct jump_drain_help jump_help(struct jump_process *process)
{
	bool functions = mw_v8_is_there(process->survey.v8);

	return (struct jump_drain_help){.context = process,
					.thread = help_thread,
					.module = help_module,
					.begins = help_begins,
					.walk = help_walk,
					.check = help_check,
					.interpreted = help_interpreted,
					.name = help_name,
					.functions = functions ? help_functions : NULL,
					.script = jump_help_script,
					.thread_lives = help_thread_lives,
					.fill = jump_memory_fill_rings};
}
