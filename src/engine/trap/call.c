// SPDX-License-Identifier: MIT
/*
 * call.c: the calls of hooked functions that have not returned yet (trap.h).
 *
 * A thread's calls in flight are kept innermost last. A call can end without returning: a signal
 * handler that interrupted it jumps away (siglongjmp), the thread dies. So whether a call is still in
 * flight is never assumed: it is, if its frame is on the stack that the thread has now.
 */
#include "engine/trap/breakpoints.h"

#include <string.h>

void trap_hit_walk(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	struct mw_regs caller = hit->regs.general;

	if (hit->walked)
		return;
	hit->walked = true;
	caller.pc = hit->ret;
	caller.gpr[process->arch->dwarf_sp] = hit->sp;
	process->unwinder->ops->walk(process->unwinder, &caller, &hit->memory, hit->engine->frames,
				     hit->engine->options.depth, &hit->frame_count, &hit->cut);
	hit->serial = process->unwinder->serial;
}

struct mw_error *trap_calls_drop(struct trap_thread *thread, size_t keep)
{
	while (thread->call_count > keep) {
		struct trap_call *call = &thread->calls[--thread->call_count];

		MW_TRY(trap_cancel(thread, call));
	}
	return NULL;
}

/* Does the stack still hold the return address that the call was made with? A cheap no. */
static bool return_word_stands(const struct trap_hit *hit, mw_addr sp, mw_addr ret)
{
	uint64_t word;

	return hit->memory.read(hit->memory.context, sp - sizeof(word), &word, sizeof(word)) && word == ret;
}

/*
 * Is a call that returns to `ret` with the stack at `sp` among the hit's frames? 0 no, 1 yes, 2 yes but a signal
 * handler lies between: the hit is not made by it. Where the walk ended early the stack's own word has to do.
 */
static int among_frames(struct trap_hit *hit, mw_addr sp, mw_addr ret)
{
	const struct mw_unwound_frame *frames = hit->engine->frames;
	bool signal = false;

	trap_hit_walk(hit);
	for (uint32_t i = 1; i < hit->frame_count; i++) {
		signal |= frames[i - 1].signal;
		/* A signal may also strike between the return and the breakpoint that is to tell of it. */
		if (frames[i - 1].cfa == sp && frames[i].pc - frames[i - 1].signal == ret)
			return signal ? 2 : 1;
	}
	if (hit->cut != MW_STACK_COMPLETE && sp > hit->sp)
		return signal ? 2 : 1;
	return 0;
}

struct mw_error *trap_calls_settle(struct trap_hit *hit, enum trap_inside *inside)
{
	struct trap_thread *thread = hit->thread;

	*inside = TRAP_OUTSIDE;
	while (thread->call_count > 0) {
		const struct trap_call *call = &thread->calls[thread->call_count - 1];
		const struct mw_hook *hook = &hit->process->survey.hooks.items[call->hook];
		enum trap_inside kind = hook->info.kind == MW_KIND_HEAP ? TRAP_INSIDE_HEAP : TRAP_INSIDE_VM;
		int found = 0;

		if (call->sp == hit->sp && call->ret == hit->ret) {
			/* One entry point jumped to another; or the same call comes again after a signal. */
			if (hook != hit->hook) {
				*inside = kind;
				return NULL;
			}
		} else if (return_word_stands(hit, call->sp, call->ret)) {
			found = among_frames(hit, call->sp, call->ret);
		}
		if (found == 1)
			*inside = kind;
		if (found)
			return NULL;
		MW_TRY(trap_calls_drop(thread, thread->call_count - 1));
	}
	return NULL;
}

/* Is the code of frame `at` that of the freeing function, or of the library whose own it is? */
static bool is_code_of(const struct trap_process *process, const struct mw_unwound_frame *frames, uint32_t at,
		       const struct mw_hook *hook)
{
	if (frames[at].pc - 1 - hook->info.address < hook->size)
		return true;
	/* A function may go on in others of its library; in a program they may be anybody's. */
	if (frames[at].module != hook->module || process->survey.module_class[hook->module] == MW_MODULE_OTHER)
		return false;
	/* One of them that calls the program back is another (qsort, whose last act is a jump to free). */
	for (uint32_t i = 0; i < at; i++)
		if (frames[i].module >= process->survey.modules_seen ||
		    process->survey.module_class[frames[i].module] == MW_MODULE_OTHER)
			return false;
	return true;
}

bool trap_inside_free(struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	const struct trap_thread *thread = hit->thread;
	const struct mw_unwound_frame *frames = hit->engine->frames;
	mw_addr sp = thread->last_free.sp, ret = thread->last_free.ret;

	if (thread->last_free.hook == TRAP_NO_HOOK)
		return false;
	/* One freeing function jumped to another: the next thing that the thread does. */
	if (sp == hit->sp && ret == hit->ret)
		return &process->survey.hooks.items[thread->last_free.hook] != hit->hook &&
		       thread->last_free.stop + 1 == thread->stops;
	if (sp <= hit->sp || !return_word_stands(hit, sp, ret))
		return false;
	trap_hit_walk(hit);
	for (uint32_t i = 1; i < hit->frame_count && !frames[i - 1].signal; i++)
		if (frames[i - 1].cfa == sp && frames[i].pc == ret)
			return is_code_of(process, frames, i - 1, &process->survey.hooks.items[thread->last_free.last]);
	return false;
}

bool trap_inside_allocator(struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	const struct mw_unwound_frame *frames = hit->engine->frames;

	trap_hit_walk(hit);
	if (hit->frame_count > 0 && frames[0].module < process->survey.modules_seen &&
	    process->survey.module_class[frames[0].module] == MW_MODULE_ALLOCATOR)
		return true;
	for (uint32_t i = 0; i < hit->frame_count && !frames[i].signal; i++) {
		for (size_t j = 0; j < process->survey.hooks.count; j++) {
			const struct mw_hook *hook = &process->survey.hooks.items[j];

			if (hook->info.kind == MW_KIND_HEAP && frames[i].pc - 1 - hook->info.address < hook->size)
				return true;
		}
	}
	return false;
}

struct mw_error *trap_call_push(struct trap_hit *hit, const struct trap_call *call)
{
	struct trap_thread *thread = hit->thread;

	if (thread->call_count == TRAP_MAX_CALLS) {
		/* So many at once can only be dead ones: give up the oldest. */
		MW_TRY(trap_cancel(thread, &thread->calls[0]));
		memmove(&thread->calls[0], &thread->calls[1], (TRAP_MAX_CALLS - 1) * sizeof(thread->calls[0]));
		thread->call_count--;
	}
	thread->calls[thread->call_count++] = *call;
	return NULL;
}

struct mw_error *trap_call_returning(struct trap_thread *thread, mw_addr ret, mw_addr sp, bool exchanged,
				     struct trap_call *out, bool *found)
{
	*found = false;
	for (size_t i = thread->call_count; i-- > 0;) {
		const struct trap_call *call = &thread->calls[i];

		if (call->sp != sp || call->exchanged != exchanged || (!exchanged && call->ret != ret))
			continue;
		*out = *call;
		*found = true;
		MW_TRY(trap_calls_drop(thread, i + 1));
		thread->call_count = i;
		return NULL;
	}
	return NULL;
}
