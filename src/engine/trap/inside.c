// SPDX-License-Identifier: MIT
/*
 * inside.c: is a hit made by the program, or by a call of a hooked function that has not returned, or by the allocator
 * itself (trap.h)? The stack tells; it is copied and walked where nothing cheaper does.
 */
#include "engine/trap/trap.h"

void trap_hit_walk(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	struct mw_regs caller = hit->regs.general;

	if (hit->walked)
		return;
	hit->walked = true;
	if (!hit->memory.read)
		trap_see_stack(hit);
	caller.pc = hit->ret;
	caller.gpr[process->arch->dwarf_sp] = hit->sp;
	process->unwinder->ops->walk(process->unwinder, &caller, &hit->memory, hit->engine->frames,
				     hit->engine->options.depth, &hit->frame_count, &hit->cut);
	hit->serial = process->unwinder->serial;
}

bool trap_return_word_stands(const struct trap_hit *hit, mw_addr sp, mw_addr ret)
{
	uint64_t word;

	/* Without a copy of the stack there are no exchanged return addresses in it. */
	if (!hit->memory.read)
		return mw_remote_read(hit->thread->tid, sp - sizeof(word), &word, sizeof(word)) == sizeof(word) &&
		       word == ret;
	return hit->memory.read(hit->memory.context, sp - sizeof(word), &word, sizeof(word)) && word == ret;
}

int trap_among_frames(struct trap_hit *hit, mw_addr sp, mw_addr ret)
{
	const struct mw_unwound_frame *frames = hit->engine->frames;
	bool signal = false;

	trap_hit_walk(hit);
	for (uint32_t i = 1; i < hit->frame_count; i++) {
		signal |= frames[i - 1].signal;
		/* A signal may also strike between the return and the breakpoint that is to report it. */
		if (frames[i - 1].cfa == sp && frames[i].pc - frames[i - 1].signal == ret)
			return 1 + signal;
	}
	return hit->cut != MW_STACK_COMPLETE && sp > hit->sp ? 1 + signal : 0;
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
	if (sp <= hit->sp || !trap_return_word_stands(hit, sp, ret))
		return false;
	trap_hit_walk(hit);
	for (uint32_t i = 1; i < hit->frame_count && !frames[i - 1].signal; i++)
		if (frames[i - 1].cfa == sp && frames[i].pc == ret)
			return is_code_of(process, frames, i - 1, &process->survey.hooks.items[thread->last_free.last]);
	return false;
}

bool trap_inside_passed(struct trap_hit *hit)
{
	struct trap_thread *thread = hit->thread;
	const struct mw_hook *hook;
	mw_addr sp = thread->passed.sp, ret = thread->passed.ret;
	bool inside;

	if (thread->passed.hook == TRAP_NO_HOOK)
		return false;
	hook = &hit->process->survey.hooks.items[thread->passed.hook];
	/* As with freeing functions. */
	if (sp == hit->sp && ret == hit->ret)
		inside = hook != hit->hook && thread->passed.stop + 1 == thread->stops;
	else if (sp <= hit->sp || !trap_return_word_stands(hit, sp, ret))
		inside = false;
	else
		inside = hit->ret - 1 - hook->info.address < hook->size || trap_among_frames(hit, sp, ret) == 1;
	thread->passed.hook = inside ? trap_hook_number(hit) : TRAP_NO_HOOK;
	thread->passed.stop = thread->stops;
	return inside;
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
		MW_EACH(hook, process->survey.hooks.items, process->survey.hooks.count)
			if (hook->info.kind == MW_KIND_HEAP && frames[i].pc - 1 - hook->info.address < hook->size)
				return true;
	}
	return false;
}

#define EXCEPTION_FRAMES 3 /* the runtime's function calls the allocator itself, or by way of a helper */

bool trap_allocates_exception(struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	const struct mw_unwound_frame *frames = hit->engine->frames;

	if (process->survey.exception_count == 0)
		return false;
	trap_hit_walk(hit);
	for (uint32_t i = 0; i < hit->frame_count && i < EXCEPTION_FRAMES; i++)
		MW_EACH(range, process->survey.exceptions, process->survey.exception_count)
			if (frames[i].pc - 1 >= range->start && frames[i].pc - 1 < range->end)
				return true;
	return false;
}
