/* SPDX-License-Identifier: MIT */
/* breakpoints.h: breakpoints: put in, hit, reported, taken out (trap.h). */
#ifndef MW_ENGINE_TRAP_BREAKPOINTS_H
#define MW_ENGINE_TRAP_BREAKPOINTS_H

#include "engine/trap/trap.h"

/* Walk the stack of a hit, once. */
void trap_hit_walk(struct trap_hit *hit);

/* call.c: the calls in flight. */
enum trap_inside {
	TRAP_OUTSIDE,     /* not inside any call in flight, or only in one that a signal handler interrupted */
	TRAP_INSIDE_HEAP, /* called by a heap entry point */
	TRAP_INSIDE_VM,
};
struct mw_error *trap_calls_settle(struct trap_hit *hit, enum trap_inside *inside) MW_MUST_CHECK;
/* Is the hit made by the last freeing call, which has no return stop? */
bool trap_inside_free(struct trap_hit *hit);
/* Is it made from the code of a heap entry point, or by a library that does nothing but allocate? */
bool trap_inside_allocator(struct trap_hit *hit);
struct mw_error *trap_call_push(struct trap_hit *hit, const struct trap_call *call) MW_MUST_CHECK;
/* The innermost call that returns to `ret` with the stack at `sp`, or that was exchanged and does; those
 * above it are dropped. NULL: none. */
struct mw_error *trap_call_returning(struct trap_thread *thread, mw_addr ret, mw_addr sp, bool exchanged,
				     struct trap_call *out, bool *found) MW_MUST_CHECK;
/* Drop all calls of a thread that ends. */
struct mw_error *trap_calls_drop(struct trap_thread *thread, size_t keep) MW_MUST_CHECK;

/* report.c: tell the sink. */
struct mw_error *trap_entry(struct trap_hit *hit) MW_MUST_CHECK;
struct mw_error *trap_return(struct trap_hit *hit, const struct trap_call *call) MW_MUST_CHECK;
struct mw_error *trap_cancel(struct trap_thread *thread, const struct trap_call *call) MW_MUST_CHECK;

/* breakpoint.c */
/* A thread stands at a stop that is not a breakpoint of ours: if its pc is in an out-of-line copy, move it to the
 * program's own code, so that nobody (a signal handler, a detached thread) sees our address. */
struct mw_error *trap_leave_slot(struct trap_thread *thread) MW_MUST_CHECK;
/* MW_OOL_MAX bytes near to the module's code that nobody uses; 0 where there are none. */
struct mw_error *trap_cave_take(struct trap_process *process, uint32_t module, mw_addr *out) MW_MUST_CHECK;
struct mw_error *trap_breakpoint_get(struct trap_process *process, mw_addr addr,
				     struct trap_breakpoint **out) MW_MUST_CHECK;
/* Plant; `tid` is a stopped thread. The plan must be made. */
struct mw_error *trap_breakpoint_plant(struct trap_process *process, pid_t tid,
				       struct trap_breakpoint *breakpoint) MW_MUST_CHECK;
struct mw_error *trap_breakpoint_lift(struct trap_process *process, pid_t tid,
				      struct trap_breakpoint *breakpoint) MW_MUST_CHECK;
/* Can its instruction be carried out while the breakpoint stands? Makes the out-of-line copy where one is needed. */
struct mw_error *trap_breakpoint_prepare(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint,
					 bool *possible) MW_MUST_CHECK;
/* Leave the function that a hit is the entry of, at once, with `result`: sets the registers (not written yet). False
 * where that can't be: its return address can't be read, or is checked against a shadow stack. */
bool trap_leave_function(struct trap_hit *hit, uint64_t result);
/* Carry out the displaced instruction: sets the registers (not written yet) to go on. */
struct mw_error *trap_breakpoint_pass(struct trap_hit *hit) MW_MUST_CHECK;

/* site.c: see to it that the return of a call is heard of. */
struct mw_error *trap_return_arrange(struct trap_hit *hit, bool may_throw, bool *exchanged,
				     bool *possible) MW_MUST_CHECK;
/* A site was passed by no return of ours. */
struct mw_error *trap_site_stray(struct trap_hit *hit) MW_MUST_CHECK;

/* section.c: have a C library's sections under which all signals are blocked leave out SIGTRAP. */
struct mw_error *trap_sections_open(struct trap_process *process, pid_t tid,
				    const struct mw_module *module) MW_MUST_CHECK;

/* breakpoint.c: memory for out-of-line copies, where modules have too little room for them. */
/* Have some near each module, as far as that can be; all threads are held, and `tid` can perform a system call. None
 * where there is no rescue. Errors: GONE, MEMORY. */
struct mw_error *trap_areas_map(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
struct mw_error *trap_areas_unmap(const struct trap_process *process, const struct mw_inject *inject) MW_MUST_CHECK;

/* plant.c */
/* Read modules and find hooks: slow, and done before anything is stopped. */
struct mw_error *trap_survey(struct trap_process *process) MW_MUST_CHECK;
/* Plant all hooks; `tid` is stopped. */
struct mw_error *trap_plant(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Does a module have the C library's functions for us? */
bool trap_is_library(const struct trap_process *process, const struct mw_module *module);
/* … and is this one that sets signal masks? */
bool trap_is_mask_function(const struct mw_elf_symbol *symbol);
/* The module table may have changed: forget what went, hook what came. */
struct mw_error *trap_modules_changed(struct trap_process *process, pid_t tid) MW_MUST_CHECK;

#endif
