// SPDX-License-Identifier: MIT
/*
 * standing.c: what stopped threads will come back to, and what no thread is in: code of ours, or instructions
 * that are to be replaced.
 *
 * A signal handler that switches to another stack (swapcontext) leaves behind what the signal has interrupted, and may
 * come back to it at any time. The place to go back to, or the mark of a call, lies in memory then: all that may be a
 * stack is looked through. That takes time, so there has to be a reason: the recorder's count of what has come in and
 * not left, which calls that a handler has jumped out of for good (longjmp) are in as well; or, for the few
 * instructions before it is counted and after, that the program has been seen on a stack that is not a thread's own, or
 * that it has handlers and a frame of a signal's is somewhere. That is looked for while the process runs.
 */
#include "engine/jump/jump.h"

#include "proc/maps.h"

#include <stddef.h>

#define CALL_BYTES      8u   /* no call is longer */
#define PIECE           512u /* … less than this is not worth it */
#define MOST_KEPT       4096u
#define OWN_SIGNALS     (UINT64_C(3) << 31) /* 32 and 33 */
#define TURN_NS         UINT64_C(100000000) /* of CPU time: in that all threads of the program's own making have had one */
#define DOUBT_NS        UINT64_C(300000000)
#define ALTSTACK        65536u               /* bytes: few are longer */
#define MOST_LOOKS      64u                  /* through so much of one, a search */
#define PATIENCE_NS     UINT64_C(3000000000) /* for calls in flight, and for handlers */
#define HANDLER_BREATHS 100                  /* … and, where it takes long to look, no more than these */
#define HANDLER_NS      UINT64_C(1000000)    /* one of them, at least */
#define FIRST_BREATH    UINT64_C(200000)     /* ns between two looks */
#define LAST_BREATH     UINT64_C(20000000)
#define WORK_TO_LOOK    5 /* time that it runs for, to the time that it stands to be looked at */

/*
 * What signals have interrupted, as their frames tell.
 *
 * A frame's words stay where they are when its handler has returned. Below a thread's stack pointer that is plain; but
 * a stack of the program's own making may be nobody's at the moment. So whenever a thread stands on one, what lies
 * below is taken note of: that has been gone back to.
 */

/* A thread by which the process's memory can be read; 0: all wait for something that can't be interrupted. */
static pid_t any_stopped(const struct jump_process *process)
{
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		if (thread->stopped && !thread->newborn)
			return thread->tid;
	return 0;
}

/* The lowest and the highest address of code of ours. */
static void our_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high)
{
	*low = process->recorder.image;
	*high = process->recorder.image + process->recorder.image_size;
	MW_EACH(trampolines, process->recorder.trampolines, process->recorder.trampolines_count) {
		*low = trampolines->start < *low ? trampolines->start : *low;
		*high = trampolines->start + trampolines->size > *high ? trampolines->start + trampolines->size : *high;
	}
}

/* Does a call of ours begin with word `i` of the memory at `at`, called from the word below? One that has returned
 * takes its mark away. */
static bool call_stands(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i)
{
	const size_t cookie = offsetof(struct mw_stub_call, cookie) / sizeof(uint64_t);

	return i > 0 && stack[i + cookie] == ((at + i * sizeof(uint64_t)) ^ process->recorder.context.cookie) &&
	       stack[i - 1] == process->recorder.image + jump_header(process)->returned;
}

/* Read a stack, which lies in `mapping` (NULL: not known), as mw_peek_some() does, without touching more of it. */
static size_t read_stack(pid_t tid, const struct mw_mapping *mapping, mw_addr at, void *out, size_t size)
{
	if (mapping && !mapping->inode && !mapping->shared)
		return mw_touched_peek(tid, at, out, size);
	/* A page that this process has not touched may have been written by another, or come from the file. */
	return mw_remote_read(tid, at, out, size);
}

/* The same place may be interrupted again and again, but hardly with the same in all registers. 0: they can't be
 * read. */
static uint64_t other_registers(const struct jump_process *process, mw_addr at)
{
	uint64_t words[MW_KEPT_BELOW], sum = 0;
	pid_t tid = any_stopped(process);

	if (!tid || mw_remote_read(tid, at - sizeof(words), words, sizeof(words)) != sizeof(words))
		return 0;
	for (size_t i = 0; i < MW_KEPT_BELOW; i++)
		sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return sum;
}

/* Has the place at address `at`, word `i`, been gone back to? The stack pointer is kept right before the program
 * counter. */
static bool has_gone_back(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i)
{
	if (i == 0)
		return false;
	MW_EACH(known, process->seen.gone_back, process->seen.gone_back_count)
		if (known->at == at && known->sp == stack[i - 1] && known->pc == stack[i] && known->others &&
		    known->others == other_registers(process, at))
			return true;
	return false;
}

/* Is word `i` of a stack the place where a call of ours has put where its function goes on? */
static bool in_call(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	if (i == 0)
		return false;
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (stack[i] == patch->trampoline_at + patch->trampoline.original &&
		    (uint32_t)stack[i - 1] == patch->number)
			return true;
	return false;
}

/* Is a pc among the instructions of a trampoline or of the image, not behind a call of theirs? Behind those of the entry a
 * call is not counted yet, or any more. */
static bool is_ours(const struct jump_process *process, const uint64_t *stack, size_t i)
{
	const struct mw_stub_header *header = jump_header(process);
	uint64_t into = stack[i] - process->recorder.image;

	if (into == header->entered || into == header->left)
		return true;
	if (into < process->recorder.image_size)
		return into >= sizeof(*header) + CALL_BYTES && into < header->code_end && into != header->returned &&
		       !process->survey.arch->is_call_before(process->recorder.code + into - CALL_BYTES, CALL_BYTES);
	return jump_memory_ours(process, stack[i]) && !in_call(process, stack, i);
}

/* A signal strikes behind calls as well: there the kernel's frame tells it from a return address. */
static bool is_interrupted_in_ours(const struct jump_process *process, const uint64_t *stack, size_t count, size_t i)
{
	return i > 0 && jump_memory_ours(process, stack[i]) && process->survey.arch->is_interrupted_pc(stack, count, i);
}

bool jump_interrupted_in_ours(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
			      size_t i)
{
	/* Words that lie about on a stack, such as registers that were put aside, are no signal's frame. */
	at += i * sizeof(*stack);
	return (is_ours(process, stack, i) || is_interrupted_in_ours(process, stack, count, i)) &&
	       process->survey.arch->is_kept_pc(at, stack, count, i) && !has_gone_back(process, at, stack, i);
}

/* Does an instruction that a jump will overwrite, but for the first, begin at that address? */
static bool is_overwritten(const struct jump_process *process, mw_addr addr)
{
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (jump_is_due(patch) && addr > patch->detour.at && addr < patch->detour.at + patch->detour.jump)
			return true;
	return false;
}

/* The lowest and the highest address of all functions that are to be detoured. */
static void overwritten_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high)
{
	*low = UINT64_MAX;
	*high = 0;
	MW_EACH(patch, process->patches.items, process->patches.count) {
		if (!jump_is_due(patch))
			continue;
		if (patch->detour.at < *low)
			*low = patch->detour.at;
		if (patch->detour.at + patch->detour.jump > *high)
			*high = patch->detour.at + patch->detour.jump;
	}
}

/* … among those that a jump is about to overwrite? */
static bool interrupted_overwritten(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
				    size_t i)
{
	at += i * sizeof(*stack);
	return is_overwritten(process, stack[i]) && process->survey.arch->is_kept_pc(at, stack, count, i) &&
	       !has_gone_back(process, at, stack, i);
}

/* The CPU time that a process has had, in ns; 0 where it can't be known. */
static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? mw_clock_ns_of(clock) : 0;
}

void jump_seen_nothing(struct jump_process *process)
{
	process->seen.gone_back_count = process->seen.place_count = 0;
	jump_seen_anew(&process->seen);
	process->seen.since_ns = mw_clock_ns();
	process->seen.since_cpu_ns = cpu_ns(process->pid);
}

static void note(struct jump_process *process, mw_addr at, mw_addr sp, mw_addr pc)
{
	if (!process->seen.gone_back)
		process->seen.gone_back = malloc(MOST_KEPT * sizeof(*process->seen.gone_back));
	if (process->seen.gone_back && process->seen.gone_back_count < MOST_KEPT)
		process->seen.gone_back[process->seen.gone_back_count++] =
			(struct jump_interrupted){.at = at, .sp = sp, .pc = pc, .others = other_registers(process, at)};
}

/*
 * A frame lies below the stack pointer that it keeps. One of the stack that the thread is on now is not further from
 * the thread's own than it is long: where another stack were that near, the next signal would overwrite that.
 */
static void look_below(struct jump_process *process, const struct mw_maps *maps, pid_t tid, mw_addr sp)
{
	static const size_t most = JUMP_STACK_BELOW / sizeof(uint64_t);
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);
	MW_FREE uint64_t *stack = malloc(JUMP_STACK_BELOW);
	size_t size = JUMP_STACK_BELOW, first;
	mw_addr low, high, from, to;

	/* The kernel complains of reads right below a stack that grows. */
	if (mapping && sp - mapping->start < size)
		size = (size_t)(sp - mapping->start) / sizeof(*stack) * sizeof(*stack);

	/* What lies nearest is what counts: below it there may be nothing. */
	while (stack && size > PIECE &&
	       read_stack(tid, mapping, sp - size, (uint8_t *)stack + JUMP_STACK_BELOW - size, size) != size)
		size /= 2;
	first = most - size / sizeof(*stack);
	our_bounds(process, &low, &high);
	overwritten_bounds(process, &from, &to);
	for (size_t i = first + 1; stack && size > PIECE && i < most; i++) {
		mw_addr at = sp - (most - i) * sizeof(*stack), interrupted = stack[i - 1];
		bool ours = (stack[i] - low < high - low &&
			     jump_interrupted_in_ours(process, sp - JUMP_STACK_BELOW, stack, most, i)) ||
			    (stack[i] - from < to - from &&
			     interrupted_overwritten(process, sp - JUMP_STACK_BELOW, stack, most, i));

		if (ours && interrupted > at && interrupted - at < JUMP_STACK_BELOW &&
		    (sp <= interrupted || sp - interrupted <= interrupted - at))
			note(process, at, interrupted, stack[i]);
	}
}

void jump_note_stacks(struct jump_process *process, const struct mw_maps *maps)
{
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count) {
		struct mw_tracee_regs regs;

		if (!jump_regs_of(thread, &regs))
			continue;
		process->stacks.own |=
			!process->is_copy && !jump_on_own_stack(process, maps, thread->tid, &regs.general);
		if (jump_may_be_suspended(process) && !jump_memory_ours(process, regs.general.pc))
			look_below(process, maps, thread->tid, regs.general.gpr[process->survey.arch->dwarf_sp]);
	}
}

/* Nobody comes back to calls of a thread that has ended. */
static uint32_t open_calls(const struct jump_process *process)
{
	uint32_t open = process->recorder.open_elsewhere;

	for (uint32_t i = 0; i < process->recorder.shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, i);

		if (__atomic_load_n(&slot->tid, __ATOMIC_RELAXED) != MW_RING_NO_TID)
			open += __atomic_load_n(&slot->open, __ATOMIC_RELAXED);
	}
	return open;
}

/* Does the frame of a signal above `at` name an alternate stack that both lie on? Its own may be partly overwritten. */
static bool is_below_first(struct jump_search *search, mw_addr at)
{
	const struct mw_arch *arch = search->process->survey.arch;
	MW_FREE uint64_t *words = search->altstack_looks++ < MOST_LOOKS ? malloc(ALTSTACK) : NULL;
	size_t count = words ? mw_touched_peek(search->tid, at, words, ALTSTACK) / sizeof(*words) : 0;
	mw_addr start = 0;
	uint64_t size = 0;

	for (size_t i = MW_KEPT_BELOW; i < count; i++)
		if (arch->is_interrupted_pc(words, count, i) &&
		    arch->kept_altstack(&words[i - MW_KEPT_BELOW], &start, &size) && at - start < size &&
		    at + i * sizeof(*words) - start < size)
			return true;
	return false;
}

/*
 * A signal's frame on the alternate stack that it names is the last handler's, which has returned where no thread is on
 * that stack: the next signal will begin at the same place. So have all that have interrupted that handler.
 */
static bool is_stale(struct jump_search *search, mw_addr at)
{
	const struct mw_arch *arch = search->process->survey.arch;
	uint64_t words[MW_KEPT_BELOW], size;
	mw_addr start;

	if (search->counted || mw_remote_read(search->tid, at - sizeof(words), words, sizeof(words)) != sizeof(words))
		return false;
	return (arch->kept_altstack(words, &start, &size) && at - start < size) || is_below_first(search, at);
}

/* What a signal has interrupted is kept with its stack pointer right before the program counter. */
static enum jump_found judge(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const struct jump_process *process = search->process;
	mw_addr at = start + i * sizeof(*search->words);

	if (is_stale(search, at) || (i > 0 && jump_search_below(search, search->words[i - 1])))
		return JUMP_FOUND_NOTHING;
	/* Programs that make stacks may keep copies of contexts to go back to; others do so to tell of them. */
	return process->stacks.own || process->survey.arch->is_kept_in_place(at, search->words, count, i)
		       ? JUMP_FOUND
		       : JUMP_FOUND_DOUBTFUL;
}

static enum jump_found comes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	const uint64_t *words = search->words;

	/* A call that was jumped out of leaves its mark. */
	if (i + JUMP_CALL_WORDS <= count && call_stands(search->process, start, words, i))
		return jump_search_below(search, start + i * sizeof(*words)) ? JUMP_FOUND_NOTHING : JUMP_FOUND;
	return jump_interrupted_in_ours(search->process, start, words, count, i) ? judge(search, start, count, i)
										 : JUMP_FOUND_NOTHING;
}

/* Has a signal interrupted anything? */
static enum jump_found is_frame(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return i > 0 && search->process->survey.arch->is_interrupted_pc(search->words, count, i) &&
			       !is_stale(search, start + i * sizeof(*search->words))
		       ? JUMP_FOUND
		       : JUMP_FOUND_NOTHING;
}

static enum jump_found goes_back(struct jump_search *search, mw_addr start, size_t count, size_t i)
{
	return interrupted_overwritten(search->process, start, search->words, count, i) ? judge(search, start, count, i)
											: JUMP_FOUND_NOTHING;
}

/* How many calls of ours there may be at least that will be come back to; none is in flight. `copy`: in a forked child. */
static size_t suspended(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	uint32_t count = copy ? 0 : open_calls(process);
	struct jump_search search = {
		.process = process, .tells = comes_back, .counted = count > 0, .tid = any_stopped(process)};
	uint64_t since = process->quiesce.since_ns;
	size_t unknown;
	bool all;

	if (count == 0 && !jump_may_be_suspended(process))
		return 0;
	/* Nobody has run since. */
	if (since && process->seen.clear_ns == since)
		return 0;
	/* It is looked again when one has stopped. */
	if (!search.tid)
		return count ? count : 1;
	our_bounds(process, &search.low, &search.high);
	all = jump_search(&search, maps);
	if (all && search.found + search.doubtful == 0)
		process->seen.clear_ns = since;
	/* What is counted and can't be looked for may be there, and so may be what a program leaves on such stacks. */
	unknown = count ? count : process->stacks.own;
	if (!all && search.found + search.doubtful == 0)
		return unknown;
	/* Where nothing is counted, what looks as if it had long been left has been, if it stays. */
	if (count == 0 && search.found == 0 && mw_clock_ns() - process->seen.since_ns > DOUBT_NS &&
	    (search.below == 0 || cpu_ns(process->pid) - process->seen.since_cpu_ns > TURN_NS))
		return 0;
	return search.found + search.doubtful;
}

/* Two signals are the C library's own. */
static bool handles_signals(const struct jump_process *process)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(mw_live_thread(process->pid), &status)) && status.sig_caught & ~OWN_SIGNALS;
}

/* Will one go back to an instruction that is about to be overwritten? */
static bool suspended_goes_back(struct jump_process *process, const struct mw_maps *maps)
{
	struct jump_search search = {.process = process,
				     .tells = goes_back,
				     .brief = !jump_may_be_suspended(process),
				     .tid = any_stopped(process)};

	overwritten_bounds(process, &search.low, &search.high);
	/* Signals may have come since frames of theirs were looked for. */
	if (search.low >= search.high || (search.brief && !handles_signals(process)))
		return false;
	if (!search.tid)
		return true;
	/* While no jump stands others may have come to where was looked before. */
	jump_seen_anew(&process->seen);
	(void)jump_search(&search, maps);
	return search.found + search.doubtful > 0;
}

void jump_look_for_frames(struct jump_process *process)
{
	struct jump_search search = {.process = process,
				     .tells = is_frame,
				     .high = UINT64_MAX,
				     .tid = mw_live_thread(process->pid),
				     .first = true};
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	if (jump_may_be_suspended(process) || !handles_signals(process))
		return;
	jump_seen_nothing(process);
	if (mw_error_none(mw_maps_read(search.tid, &maps)))
		(void)jump_search(&search, &maps);
	process->stacks.has_frames = search.found > 0;
}

/* What a thread's standing is judged by. */
struct standing {
	const struct jump_process *process;
	const struct mw_maps *maps;
	pid_t tid;
	mw_addr sp;
};

enum whereabouts {
	NOWHERE,   /* it has ended */
	SOMEWHERE, /* it stands, or waits for what nothing interrupts */
	ANYWHERE   /* it was to stand, but has had no CPU for that yet */
};

/* `*thread_pointer` is 0 where it can't be known. */
static enum whereabouts find_thread(const struct jump_process *process, const struct mw_quiet_thread *thread,
				    mw_addr *sp, mw_addr *pc, mw_addr *thread_pointer)
{
	struct mw_tracee_regs regs;
	char state;

	if (jump_regs_of(thread, &regs)) {
		*sp = regs.general.gpr[process->survey.arch->dwarf_sp];
		*pc = regs.general.pc;
		*thread_pointer = regs.general.thread_pointer;
		return SOMEWHERE;
	}
	*thread_pointer = 0;
	state = mw_state_read(thread->tid);
	if (mw_state_is_end(state))
		return NOWHERE;
	return state == 'D' && mw_waiting_read(thread->tid, sp, pc) ? SOMEWHERE : ANYWHERE;
}

/* Such a thread, or 0. */
static pid_t any_without_cpu(const struct jump_process *process)
{
	mw_addr sp, pc, thread_pointer;

	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		if (find_thread(process, thread, &sp, &pc, &thread_pointer) == ANYWHERE)
			return thread->tid;
	return 0;
}

/* A frame that lies below the stack pointer on the same stack was jumped over (longjmp, an exception). */
static bool dead(const struct standing *standing, mw_addr frame)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);

	return frame < standing->sp && mapping && frame >= mapping->start;
}

/* Does any of the calls from `top` outwards still return to us? */
static bool call_standing(const struct standing *standing, mw_addr top)
{
	mw_addr returned = standing->process->recorder.image + jump_header(standing->process)->returned;

	/* The chain is written by the target: it is not followed for long. */
	for (unsigned i = 0; top && i < 64; i++) {
		struct mw_stub_call call;
		uint64_t word;

		if (mw_remote_read(standing->tid, top, &call, sizeof(call)) != sizeof(call) ||
		    call.cookie != (top ^ standing->process->recorder.context.cookie))
			return false;
		/* Its original was called with the stack right below it, and returns to us as long as this stands. */
		if (!dead(standing, top) &&
		    mw_remote_read(standing->tid, top - sizeof(word), &word, sizeof(word)) == sizeof(word) &&
		    word == returned)
			return true;
		top = call.prev;
	}
	return false;
}

/* Is the thread in a call of the recorder's? A handler that jumps out of one leaves the mark of it behind. */
static bool visit_standing(const struct standing *standing, const struct mw_ring_slot *slot)
{
	return __atomic_load_n(&slot->inside, __ATOMIC_ACQUIRE) &&
	       !dead(standing, __atomic_load_n(&slot->pending_sp, __ATOMIC_ACQUIRE));
}

/* The words of a thread's stack from its stack pointer up; malloc'ed, NULL without memory. */
static uint64_t *read_own_stack(const struct standing *standing, size_t *count)
{
	const struct mw_mapping *mapping = mw_maps_find(standing->maps, standing->sp);
	size_t size = 0;
	uint64_t *stack;

	if (mapping)
		size = mapping->end - standing->sp < JUMP_STACK_SCAN ? (size_t)(mapping->end - standing->sp)
								     : JUMP_STACK_SCAN;
	stack = malloc(size + 1);
	*count = stack ? read_stack(standing->tid, mapping, standing->sp, stack, size) / sizeof(*stack) : 0;
	return stack;
}

/* Is there anything on the stack that leads to our code? */
static bool leads_to_ours(const struct standing *standing)
{
	size_t got;
	MW_FREE uint64_t *stack = read_own_stack(standing, &got);

	for (size_t i = 0; i < got; i++)
		if (jump_interrupted_in_ours(standing->process, standing->sp, stack, got, i) ||
		    (i + JUMP_CALL_WORDS <= got && call_stands(standing->process, standing->sp, stack, i)))
			return true;
	return false;
}

/* A thread's slot, found as the recorder finds it; NULL: it has none. */
static const struct mw_ring_slot *slot_of(const struct jump_process *process, mw_addr thread)
{
	uint32_t count = process->recorder.shared.geometry.slot_count,
		 first = mw_ring_slot_first(thread, count ? count : 1);

	for (uint32_t i = 0; i < count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, (first + i) & (count - 1));
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (owner == thread)
			return slot;
		if (owner == MW_RING_FREE)
			return NULL;
	}
	return NULL;
}

static bool in_flight(struct jump_process *process, const struct mw_maps *maps, const struct mw_quiet_thread *thread,
		      bool copy)
{
	struct standing standing = {.process = process, .maps = maps, .tid = thread->tid};
	const struct mw_ring_slot *slot;
	mw_addr pc, thread_pointer;
	enum whereabouts where = find_thread(process, thread, &standing.sp, &pc, &thread_pointer);

	if (where != SOMEWHERE)
		return where == ANYWHERE;
	if (jump_memory_ours(process, pc))
		return true;
	slot = copy || !thread_pointer ? NULL : slot_of(process, thread_pointer);
	if (slot && (visit_standing(&standing, slot) ||
		     call_standing(&standing, __atomic_load_n(&slot->top, __ATOMIC_ACQUIRE))))
		return true;
	return leads_to_ours(&standing);
}

size_t jump_in_flight(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	size_t count = 0;

	jump_note_stacks(process, maps);
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		count += in_flight(process, maps, thread, copy);
	/* What no thread is in may still be somewhere. */
	return count ? count : suspended(process, maps, copy);
}

struct mw_error *jump_await_calls(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  size_t *left)
{
	uint64_t begin = mw_clock_ns();

	jump_seen_nothing(process);
	for (uint64_t breath = FIRST_BREATH; jump_still_there(process);) {
		uint64_t now = mw_clock_ns();

		MW_TRY(jump_move_out(process));
		mw_maps_deinit(maps);
		MW_TRY(mw_maps_read(mw_live_thread(process->pid), maps));
		look(process, context);
		*left = jump_in_flight(process, maps, false);
		if (*left == 0 || mw_clock_ns() - begin > PATIENCE_NS)
			return NULL;
		/* Where it takes long to look, that is not done all the time. */
		now = (mw_clock_ns() - now) * WORK_TO_LOOK;
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, now > breath ? now : breath));
		breath = breath * 2 < LAST_BREATH ? breath * 2 : LAST_BREATH;
	}
	return NULL;
}

/* Will the thread go on among the instructions of [low, high) that are to be overwritten? It may stand there if it can
 * be moved. */
static bool stack_goes_back(const struct standing *standing, mw_addr low, mw_addr high)
{
	size_t count;
	MW_FREE uint64_t *stack = read_own_stack(standing, &count);

	for (size_t i = 0; i < count; i++)
		if (stack[i] > low && stack[i] < high && is_overwritten(standing->process, stack[i]) &&
		    !has_gone_back(standing->process, standing->sp + i * sizeof(*stack), stack, i))
			return true;
	return false;
}

/* Is a signal handler at work that will go back to an instruction that is about to be overwritten? So it may be
 * where a thread that was to stand has had no CPU for that. */
static bool handler_goes_back(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	mw_addr low, high;

	if (!mw_error_none(mw_maps_read(mw_live_thread(process->pid), &maps)))
		return false;
	jump_note_stacks(process, &maps);
	overwritten_bounds(process, &low, &high);
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count) {
		struct standing standing = {.process = process, .maps = &maps, .tid = thread->tid};
		mw_addr pc, thread_pointer;
		enum whereabouts where = find_thread(process, thread, &standing.sp, &pc, &thread_pointer);

		if (where == ANYWHERE || (where == SOMEWHERE && ((!thread->stopped && is_overwritten(process, pc)) ||
								 stack_goes_back(&standing, low, high))))
			return true;
	}
	return suspended_goes_back(process, &maps);
}

static struct mw_error *explain_handlers(const struct jump_process *process)
{
	pid_t tid = any_without_cpu(process);

	if (tid)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "thread %d of process %d gets no CPU time, so it can't be stopped", (int)tid,
				       process->pid);
	return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			       "a signal handler of process %d is running, and will return to the first instructions "
			       "of an allocator function",
			       process->pid);
}

struct mw_error *jump_await_handlers(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns(), looked = begin;

	/* Nobody has run since. */
	if (process->quiesce.since_ns && process->seen.handlers_ns == process->quiesce.since_ns)
		return NULL;
	jump_seen_nothing(process);
	for (unsigned i = 0; handler_goes_back(process); i++) {
		uint64_t now = mw_clock_ns(), breath = (now - looked) * WORK_TO_LOOK;

		if (process->quiesce.gone || process->quiesce.execed)
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
		if (i == HANDLER_BREATHS || now - begin > PATIENCE_NS)
			return mw_error_hint(explain_handlers(process), "Try again, or use --engine trap");
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, breath > HANDLER_NS ? breath : HANDLER_NS));
		looked = mw_clock_ns();
	}
	process->seen.handlers_ns = process->quiesce.since_ns;
	return NULL;
}
