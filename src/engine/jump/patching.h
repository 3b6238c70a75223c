/* SPDX-License-Identifier: MIT */
/* patching.h: jumps in the code of the target, and who is in what they replace (jump.h). */
#ifndef MW_ENGINE_JUMP_PATCHING_H
#define MW_ENGINE_JUMP_PATCHING_H

#include "engine/jump/jump.h"

/* plan.c: which functions get a jump, and can they have one. Before anything is stopped. */
/* Plan what came since the last time. `why` of detours says what is refused. */
struct mw_error *jump_plan(struct jump_process *process, pid_t tid) MW_MUST_CHECK;
/* Can the patch's function be detoured, as its module's file has it? Fills the detour, the reason in it. */
void jump_plan_detour(const struct jump_process *process, struct jump_patch *patch);
/* Can the process be watched by jumps as planned? UNSUPPORTED with the reason. */
struct mw_error *jump_plan_check(const struct jump_process *process) MW_MUST_CHECK;

/* patch.c: all threads stand. */
/* Let handlers return that will go back into what is to be overwritten. UNSUPPORTED where they don't soon. */
struct mw_error *jump_await_handlers(struct jump_process *process) MW_MUST_CHECK;
/* Plant all that is planned and has a trampoline. `*maps`, which is the caller's to free, is filled with what is mapped then.
 */
struct mw_error *jump_patch_all(struct jump_process *process, struct mw_maps *maps) MW_MUST_CHECK;
/* Is what stands where the patch is to be the code of the module that it was planned for? */
bool jump_patch_in_place(const struct jump_process *process, const struct jump_patch *patch,
			 const struct mw_maps *maps);
/*
 * Put the functions' bytes back, and PCs out of what was copied. `*taken`: a function whose jump somebody else has
 * written over, which is left as it is; else as it was. Those of `unwinders` are put back last, after calls in flight
 * have come back: one may still throw.
 */
struct mw_error *jump_unpatch(struct jump_process *process, bool unwinders, const char **taken) MW_MUST_CHECK;
/* Put back the bytes of unwinders' functions, or of all others, in a forked child. */
struct mw_error *jump_unpatch_copy(const struct jump_process *process, pid_t child, bool unwinders) MW_MUST_CHECK;
/* Does a jump stand in an unwinder's function? */
bool jump_unwinder_patched(const struct jump_process *process);
/* Threads that stand in copies of instructions, to the instructions. */
struct mw_error *jump_move_out(struct jump_process *process) MW_MUST_CHECK;

/* standing.c */
/* Is a signal handler at work that will go back to an instruction that is about to be overwritten? All stand. So it
 * may be where a thread that was to stand has had no CPU for that. */
bool jump_handler_goes_back(struct jump_process *process);
/* Such a thread, or 0. */
pid_t jump_any_without_cpu(const struct jump_process *process);
/* How many threads are in our code, or in calls that return there? `copy`: they are those of a forked child. */
size_t jump_in_flight(struct jump_process *process, const struct mw_maps *maps, bool copy);
/* Let calls in flight come back, for three seconds at most; all threads stand, and do so again. Threads are put out of
 * copies of instructions first, `maps` read anew, and `look` sees to it that the slots are as they are now. `*left`:
 * how many have not come back. Errors: those of the stop and of /proc. */
struct mw_error *jump_await_calls(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  size_t *left) MW_MUST_CHECK;

/* suspended.c: what no thread is in: a signal handler has switched to another stack, and may switch back at any time.
 * All threads stand. */
/* How many calls of ours there may be at least that will be come back to; none is in flight. `copy` as above. */
size_t jump_suspended(struct jump_process *process, const struct mw_maps *maps, bool copy);
/* The process runs: has it handlers, and is there a frame of a signal's in its memory (has_frames)? */
void jump_look_for_frames(struct jump_process *process);
/* Will one go back to an instruction that is about to be overwritten? */
bool jump_suspended_goes_back(struct jump_process *process, const struct mw_maps *maps);
/* Read a stack, which lies in `mapping` (NULL: not known), as mw_peek_some() does, without touching more of it. */
size_t jump_read_stack(pid_t tid, const struct mw_mapping *mapping, mw_addr at, void *out, size_t size);
/* Does a call of ours begin with word `i` of the memory at `at`, called from the word below? One that has returned
 * takes its mark away. */
bool jump_call_stands(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i);

/*
 * What signals have interrupted, whose handlers are at work or have switched to another stack. The place to go
 * back to lies in memory then: word `i` of `count` words at address `at`.
 */
/* Is it among the instructions of a trampoline or of the image? Return addresses, which follow a call, may be left over from
 * calls long ago; a thread that is in the recorder's calls has told so (slot->inside). */
bool jump_interrupted_in_ours(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
			      size_t i);
/* Does an instruction that a jump will overwrite, but for the first, begin at that address? */
bool jump_is_overwritten(const struct jump_process *process, mw_addr addr);
/* The lowest and the highest address of all functions that are to be detoured. */
void jump_overwritten_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high);
/* Has the place at address `at`, word `i`, been gone back to? */
bool jump_gone_back(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t i);
/* What has been gone back to may be interrupted anew: forget what was seen. */
void jump_seen_nothing(struct jump_process *process);
/* All threads stand: take note of who is on a stack of the program's own making (own_stacks), and what has been gone
 * back to there. */
void jump_note_stacks(struct jump_process *process, const struct mw_maps *maps);

/* search.c: does a thread with these registers run on the stack that it was made with? */
bool jump_on_own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		       const struct mw_regs *regs);

#endif
