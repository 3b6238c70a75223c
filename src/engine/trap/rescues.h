/* SPDX-License-Identifier: MIT */
/* rescues.h: what keeps a process alive if memwatch is killed: the handler of SIGTRAP, and masks that let it in (trap.h). */
#ifndef MW_ENGINE_TRAP_RESCUES_H
#define MW_ENGINE_TRAP_RESCUES_H

#include "engine/trap/trap.h"

/* mask.c: no thread's mask holds SIGTRAP while memwatch is attached, though the program may think so. */
/* Look at the mask of a thread in a stop that has nothing to do with a breakpoint, and take SIGTRAP out, if that has
 * begun. */
struct mw_error *trap_mask_look(struct trap_thread *thread) MW_MUST_CHECK;
/* Begin to: nobody would know of it before rescue.c has put in what word of it is left in. All threads are held. */
struct mw_error *trap_masks_open(struct trap_process *process) MW_MUST_CHECK;
/* A thread has executed the breakpoint at `addr`. Had it SIGTRAP blocked, the kernel has dropped the process's action
 * for it: put it back. */
struct mw_error *trap_mask_on_hit(struct trap_thread *thread, mw_addr addr) MW_MUST_CHECK;
/* Does a stopped thread block SIGTRAP? Or is it in a section of the C library's own, in which all signals are blocked,
 * as nobody else can? When it leaves that it sets the mask which it had before. Nothing may have been taken out of
 * masks yet. */
enum trap_masked { TRAP_UNMASKED, TRAP_MASKED, TRAP_IN_SECTION };
enum trap_masked trap_mask_now(const struct trap_thread *thread);
/* The thread enters a function that sets its mask: done for it, `*done` says so; it goes on behind the call. */
struct mw_error *trap_mask_set(struct trap_hit *hit, bool *done) MW_MUST_CHECK;
/* Somebody's SIGTRAP has come (out of the kernel's queue) that the program believes to be blocked: back to wait. The pc
 * must be where the thread is to go on. */
struct mw_error *trap_mask_put_off(struct trap_thread *thread, siginfo_t *info) MW_MUST_CHECK;
/* The mask that it would have without us, before it is let go. */
struct mw_error *trap_mask_restore(struct trap_thread *thread) MW_MUST_CHECK;
/* Leave word in its signal that the breakpoint is served, before the thread gets the registers to go on with. */
struct mw_error *trap_mark_served(const struct trap_thread *thread, const struct mw_regs *next) MW_MUST_CHECK;

/* disposition.c: the target's own action for SIGTRAP. */
/* A breakpoint was hit by a thread that may have blocked or ignored SIGTRAP: if the kernel has dropped the action for
 * it, put it back. */
struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *dropped) MW_MUST_CHECK;
/* A thread stands before a system call that sets a signal's action: sends it where that is carried out (sets the
 * registers). */
void trap_disposition_act(struct trap_hit *hit);
/* Does the target ignore SIGTRAP, though the kernel may have forgotten it? */
bool trap_disposition_ignores(struct trap_process *process);
/* What it wants done may have changed since: process->signals.trap_action anew, if that can be read. */
void trap_disposition_look(struct trap_process *process);
/* A thread that was the process's, or a child's in its memory, has run another program and stands at the exec: what
 * would be ignored in that without us, is. It may stand at the border to user mode then. */
struct mw_error *trap_disposition_after_exec(struct trap_thread *thread) MW_MUST_CHECK;
/* Is it sure that the target has no action for SIGTRAP? */
bool trap_disposition_is_default(const struct trap_process *process);

/* strip.c: actions of other signals that have SIGTRAP in their masks. */
/*
 * rt_sigaction in the target: what a signal has, or, with `set`, what it is to have. `inject->tid` is in a stop from
 * which it can perform system calls. Errors: GONE, SYSTEM, DATA.
 */
struct mw_error *trap_sigaction(const struct mw_inject *inject, unsigned signal, bool set,
				struct mw_rescue_action *action) MW_MUST_CHECK;
/* Take it out of all of them, leaving marks of them; nothing else may set any meanwhile. Errors: as those of
 * trap_sigaction(). */
struct mw_error *trap_actions_strip(struct trap_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* Put it back into those that are still as their marks say. */
struct mw_error *trap_actions_restore(const struct mw_inject *inject,
				      const struct mw_rescue_marks *marks) MW_MUST_CHECK;

/* rescue.c: what keeps the target alive if memwatch is killed. All threads are held for install and remove. */
/*
 * Put it in, by way of `tid` (0: any thread that is fit; none is waited for, as nobody may run any more), before the
 * first breakpoint. Errors: UNSUPPORTED where it can't be had, unless options.unsafe; GONE, MEMORY.
 */
struct mw_error *trap_rescue_install(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Let threads come out of it, and one come to where it can perform a system call, as far as that can be waited for:
 * while breakpoints still stand. Then all are held again, until it has been removed. */
struct mw_error *trap_rescue_settle(struct trap_process *process) MW_MUST_CHECK;
struct mw_error *trap_rescue_remove(struct trap_process *process) MW_MUST_CHECK;
/* The same for a forked child's copy. */
struct mw_error *trap_rescue_clean_child(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Errors: MEMORY. */
struct mw_error *trap_rescue_prepare(struct trap_rescue *rescue) MW_MUST_CHECK;
void trap_rescue_deinit(struct trap_rescue *rescue);
/* A breakpoint that is about to stand, or what has become of it since; not `*possible` where there is no room. */
struct mw_error *trap_rescue_note(struct trap_process *process, pid_t tid, const struct trap_breakpoint *breakpoint,
				  bool *possible) MW_MUST_CHECK;
struct mw_error *trap_rescue_forget(struct trap_process *process, pid_t tid, mw_addr addr) MW_MUST_CHECK;
/* Other bytes that are about to be changed, at most 8; `last`: put back when the actions of signals are. */
struct mw_error *trap_rescue_bytes(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes,
				   size_t size, bool last, bool *possible) MW_MUST_CHECK;
/* Which threads the program believes to block SIGTRAP has changed: for the next memwatch, if this one is killed. */
struct mw_error *trap_rescue_blocked(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* A return address that is about to be exchanged. */
struct mw_error *trap_rescue_exchange(struct trap_process *process, pid_t tid, mw_addr sp, mw_addr ret,
				      bool *possible) MW_MUST_CHECK;
/* Have the kernel lead SIGTRAP to it (again), as the program wants it done. `tid` can perform a system call. */
struct mw_error *trap_rescue_lead(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* The same for a newborn that shares the memory, but was made without its maker's actions (CLONE_CLEAR_SIGHAND). */
struct mw_error *trap_rescue_lead_cleared(struct trap_thread *child) MW_MUST_CHECK;
/* Has a child that shares the memory asked that SIGTRAP be not ignored in it? That is forgotten then. */
struct mw_error *trap_rescue_resets(struct trap_process *process, struct trap_thread *child,
				    bool *resets) MW_MUST_CHECK;
/* The C library makes such children. */
struct mw_error *trap_rescue_clears(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Have the kernel lead SIGTRAP to it, and take it out of the masks of other actions, by way of `tid`. */
struct mw_error *trap_rescue_begin(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Its code that a thread goes to in the place of a system call that sets an action; 0: it is not there. */
mw_addr trap_rescue_act(const struct trap_process *process);
/* Room for the code that the `number`th of them jumps to, and that code. */
mw_addr trap_rescue_trampoline(const struct trap_process *process, size_t number);
struct mw_error *trap_rescue_put_trampoline(struct trap_process *process, pid_t tid, mw_addr addr,
					    const uint8_t trampoline[MW_ACTION_TRAMPOLINE]) MW_MUST_CHECK;
/* Bytes in the rescue's own memory. */
struct mw_error *trap_rescue_put(struct trap_process *process, pid_t tid, mw_addr at, const void *bytes,
				 size_t size) MW_MUST_CHECK;
/* Bytes at an offset of struct mw_rescue. */
struct mw_error *trap_rescue_write(struct trap_process *process, pid_t tid, size_t offset, const void *bytes,
				   size_t size) MW_MUST_CHECK;
/* What the program wants done with SIGTRAP may have changed by a SIGTRAP (SA_RESETHAND): process->signals.trap_action anew. */
struct mw_error *trap_rescue_look(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Have a thread queue a SIGTRAP to itself, as it was sent: only so the kernel believes who sent it. */
struct mw_error *trap_rescue_queue(struct trap_thread *thread, const siginfo_t *info, bool *queued) MW_MUST_CHECK;
/* Bytes of it in the target. */
void trap_rescue_own(const struct trap_process *process, uint64_t *resident, uint64_t *mapped);
/* Code of the program that handlers return to, 0 where none is found. */
mw_addr trap_restorer(struct trap_process *process);

/* seccomp_policy.c: what a thread in a stop may do for us under seccomp. */
/* Would it live through these calls (MW_CALL_BIT), should memwatch be killed amidst one? */
bool trap_seccomp_policy_may(struct trap_process *process, pid_t tid, uint32_t calls);
/* … those that the rescue is put in and taken out with? */
bool trap_seccomp_policy_may_install(struct trap_process *process, pid_t tid);
/* All stand. May `tid` put the rescue in, and may all threads use it? UNSUPPORTED, unless that is accepted (--unsafe).
 */
struct mw_error *trap_seccomp_policy_check(struct trap_process *process, pid_t tid) MW_MUST_CHECK;

/* inside.c: is a stopped thread in the code at `base`, or will it come back there, as far as its stack shows it?
 * `counted`: somebody may be; where returns are checked, those of the program's handlers may lead there as well. */
/* Words of a thread's stack from its stack pointer on, which is given as well: how many of at most `size` bytes. */
size_t trap_read_stack(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, uint64_t *words, size_t size,
		       mw_addr *sp);
bool trap_is_inside(pid_t tid, const struct mw_arch *arch, mw_addr base, bool counted, bool shadow_stack);
/* The same of a thread whose stack pointer and pc are known. */
bool trap_leads_inside(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, mw_addr base, bool counted,
		       bool shadow_stack);

#endif
