/* SPDX-License-Identifier: MIT */
/*
 * trap.h: what the parts of the trap engine share.
 *
 * The way of an event: threads.c hears that a thread stopped; dispatch.c finds out why, and for a breakpoint of ours
 * reads registers and stack; inside.c finds out who made the call; call.c decides what it is, and tells the sink;
 * dispatch.c carries out the displaced instruction and the thread runs on. plant.c puts breakpoints in, detach.c takes everything out, rescue.c and mask.c
 * see to it that the target lives on if memwatch is killed.
 *
 * One thread of memwatch, the tracer, does all of it.
 */
#ifndef MW_ENGINE_TRAP_TRAP_H
#define MW_ENGINE_TRAP_TRAP_H

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vector.h"
#include "engine/survey.h"
#include "proc/program.h"
#include "proc/status.h"
#include "tracee/inject.h"
#include "tracee/journal.h"
#include "tracee/quiesce.h"
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"
#include "unwind/snapshot.h"
#include "unwind/unwind.h"

#include <memwatch/engine.h>
#include <memwatch/rescue.h>

#include <sys/uio.h>

#define TRAP_NO_HOOK         UINT32_MAX
#define TRAP_MASKS           8
#define TRAP_KNOWN_STACKS    4096
#define TRAP_STANDSTILLS     5
#define TRAP_MAX_CALLS       64  /* calls in flight a thread; handlers nest hardly as deep */
#define TRAP_FIRST_BREATH_US 500 /* for threads to get on with their work */

/* Signals: what nobody can block, or handle; and what the C library keeps for itself, and blocks only in sections of its
 * own, together with all others. */
#define TRAP_UNBLOCKABLE ((UINT64_C(1) << (SIGKILL - 1)) | (UINT64_C(1) << (SIGSTOP - 1)))
#define TRAP_LIBRARY_OWN (UINT64_C(3) << 31)

/* An address where we have, or had, a breakpoint. Objects stay until the window's end: a thread may still have its trap
 * queued. */
struct trap_breakpoint {
	mw_addr addr;
	uint32_t hook;   /* number of the hook whose entry this is, or TRAP_NO_HOOK */
	bool site;       /* where calls of hooked functions return to */
	bool trampoline; /* where exchanged return addresses lead */
	bool loader;     /* where the dynamic loader tells that modules came or went */
	bool mask;       /* entry of a function that sets signal masks */
	bool action;     /* a system call that sets a signal's action */
	bool may_throw;  /* a site of calls that an exception may end */
	bool standing;   /* in the target now */
	bool exchange;   /* a site that must not be one (any more): exchange return addresses instead */
	size_t patch;    /* journal number */
	struct mw_insn_plan plan;
	mw_addr slot; /* out-of-line copy of the instruction, 0: none */
	size_t copy_length, slot_size;
	uint8_t there[MW_OOL_MAX]; /* what stood at the slot before */
	uint64_t returns, strays;  /* of a site: returns caught, passes that were none */
};

/* Room for out-of-line copies: the unused end of a module's last page of code. */
struct trap_cave {
	uint32_t module;
	mw_addr next, end;
};

/* A call of a hooked function that has not returned yet. */
struct trap_call {
	uint32_t hook;
	uint32_t stack;
	mw_addr ret; /* its true return address */
	mw_addr sp;  /* the stack pointer after its return */
	uint64_t size, pointer, extra;
	enum mw_kind kind;
	uint16_t interval;        /* that its block was sampled with: the sink's number */
	bool unsampled;           /* its block is not recorded; it is awaited for the one that it frees */
	bool exchanged;           /* the return address on the stack is the trampoline's */
	enum mw_event_type begin; /* the BEGIN event that was reported; 0: none */
};

enum trap_relation {
	TRAP_THREAD,        /* a thread of the process */
	TRAP_SHARING_CHILD, /* another process that lives in its memory (vfork, posix_spawn) */
	TRAP_FORKED_CHILD,  /* a copy: to be cleaned and let go */
	TRAP_NEWBORN,       /* not seen yet; which of these, its first stop tells */
};

struct trap_process;
struct mw_status;

struct trap_thread {
	pid_t tid;
	pid_t ns_tid; /* the same as the thread itself knows it; 0: not read */
	struct trap_process *process;
	enum trap_relation relation;
	uint32_t number; /* the sink's */
	bool numbered;
	bool stopped;       /* in a ptrace stop, held by us */
	bool unreaped;      /* … which was not waited for: if memwatch dies, its signal is delivered */
	bool group_stopped; /* … which is a group stop: to be listened to, not resumed */
	bool awaited;       /* it is to stay so once it stops, though its process is not held */
	bool interrupted;   /* by us, since it last stopped: any stop takes what interrupt came before it along */
	bool interrupt_due; /* … or before that, and it may have come too late for that stop */
	bool ending;        /* it runs no code any more: a first thread stays so until all others have ended */
	bool vfork_child;   /* a newborn announced by a vfork event */
	bool own_action;    /* a sharing child from before that wants something else with SIGTRAP than its maker */
	bool cleared;       /* a sharing child that was made without actions: its SIGTRAP is led by itself */
	bool in_event;      /* … inside a system call or exit: the stop of a clone, fork, exec or end */
	int signal;         /* to be delivered when resumed */
	mw_addr resumed_at; /* pc that our last emulation led to */
	uint64_t mask;      /* the kernel's signal mask of it at the last stop, without SIGTRAP */
	bool mask_known;
	bool trap_blocked; /* the program wants SIGTRAP blocked in it */
	/* Masks with which it was interrupted while SIGTRAP was blocked, newest at next_mask - 1. */
	uint64_t masks[TRAP_MASKS];
	size_t next_mask;
	bool trap_pending;    /* SIGTRAP is truly blocked, as one of somebody's is pending */
	size_t snapshot_size; /* bytes of stack that the next snapshot takes */
	uint64_t stops;
	/* The last call of a freeing function: it returns unseen, but what it calls is the allocator's own. */
	struct {
		mw_addr sp, pointer;
		mw_addr ret;
		uint64_t stop; /* which of the thread's stops it was */
		uint32_t hook;
		uint32_t last; /* the same, or the last of those that it has jumped to */
		bool again;    /* the breakpoint of that will be hit once more for the same call */
	} last_free;
	/* The last allocating call that was not sampled: likewise. */
	struct {
		mw_addr sp, ret;
		uint64_t stop;
		uint32_t hook; /* or the last of those that were called by it */
	} passed;
	double countdown;                       /* bytes until a block is recorded … */
	uint64_t drawn;                         /* … as was drawn for that interval */
	struct trap_call calls[TRAP_MAX_CALLS]; /* innermost last */
	size_t call_count;
};

struct trap_engine;

#define TRAP_RESCUE_SIZE  ((MW_RESCUE_CODE + sizeof(struct mw_rescue) + 4095) / 4096 * 4096)
#define TRAP_RESCUE_PAGES (TRAP_RESCUE_SIZE / 4096)
/* Where a member of struct mw_rescue is in the target. */
#define TRAP_RESCUE_AT(process, member) ((process)->rescue.base + MW_RESCUE_CODE + offsetof(struct mw_rescue, member))

/* Memory near code of the target, MW_RESCUE_AREA bytes. */
struct trap_area {
	mw_addr start, next; /* the next copy goes there */
};

/* What is in the target for the case that memwatch is killed, and what memwatch has to know of it. */
struct trap_rescue {
	mw_addr base;             /* 0: nothing */
	bool led;                 /* SIGTRAP leads there */
	mw_addr act;              /* its code that a thread goes to in the place of a system call that sets an action */
	struct mw_inject inject;  /* system calls by its own code */
	struct mw_inject outside; /* … by the program's; insn is 0 until it was looked for */
	bool no_sigframe;         /* there is nothing by which a thread gets back from such a call */
	uint32_t *index;          /* struct mw_rescue's */
	mw_addr *addrs;           /* of its breakpoints */
	mw_addr *return_sps;      /* struct mw_rescue's returns */
	uint32_t count, return_count, change_count;
	uint64_t touched[(TRAP_RESCUE_PAGES + 63) / 64]; /* pages that memwatch has written to */
	struct trap_area areas[MW_RESCUE_AREAS];
	size_t area_count;
};

#define TRAP_ACTS 16

/* System calls of the C library that jump to code of ours. */
struct trap_acts {
	mw_addr insns[TRAP_ACTS];
	size_t count;
	struct mw_journal journal;
};

/* What was put into the code of the process. */
struct trap_planted {
	struct mw_map breakpoints; /* by address */
	struct mw_map slots;       /* breakpoints by out-of-line copy's address */
	struct trap_cave *caves;
	size_t cave_count;
	mw_addr trampoline;
	bool lifted; /* no breakpoint stands any more */
};

/* What the process does with SIGTRAP, and who may block it. */
struct trap_signals {
	struct mw_rescue_action trap_action; /* its own */
	bool trap_action_known;
	bool trap_action_changes;      /* the program may have set it inside the window */
	bool masks_open;               /* SIGTRAP is being taken out of masks */
	struct mw_code_range *masking; /* code amidst which a thread is about to block it */
	size_t masking_count, masking_capacity;
	mw_addr restorer; /* in the process's code; 0: not looked for yet */
};

/* For how long it was paused by us (dispatch.c). */
struct trap_standstill {
	uint64_t until_ns; /* up to when its pauses have been counted */
	uint64_t noted_ns;
	struct trap_stood {
		uint64_t at_ns, stood_ns;
	} noted[TRAP_STANDSTILLS]; /* one a second, a ring */
	size_t count;              /* that were noted */
};

/* The sink's number of a stack that was walked lately. */
struct trap_known_stack {
	uint64_t serial, script; /* of the walk; a hash of the frames of an interpreter */
	uint32_t hook, stack;
	enum mw_kind kind;
};

struct trap_process {
	struct trap_engine *engine;
	pid_t pid;
	pid_t key; /* by which it is asked for: the pid, or another number once it is over */
	struct mw_event_sink sink;
	struct mw_program program; /* that was prepared */
	bool launched;             /* its exec is still to come, or its loader still at work */
	bool windowed;             /* the window has begun */
	bool ended;                /* the window is over and nothing of ours is left in it */
	bool holding;              /* threads that stop are held */
	bool shadow_stack;
	bool may_heal; /* its filters let the rescue make all its calls, in every thread */
	struct mw_seccomp_policy policy;
	char left[160]; /* what could not be removed of another memwatch's, "" where all was */
	const struct mw_arch *arch;
	struct mw_survey survey;
	struct mw_unwinder *unwinder;
	struct mw_fallback *fallback; /* the unwinder's */
	struct mw_journal journal;
	struct trap_rescue rescue;
	struct trap_acts acts;
	size_t freeing_hooks;
	uint64_t interval; /* of sampling, bytes; 0: every block is recorded */
	uint64_t numbered; /* … that interval_number is the sink's number of */
	uint16_t interval_number;
	unsigned short random[3]; /* erand48() */
	struct mw_map threads;    /* this process's threads and sharing children, by tid */
	struct mw_engine_stats stats;
	struct mw_window_info window;
	uint64_t start_ns;
	uint64_t closed_ns; /* when all stops from before the window's end had been heard of; 0: not yet */
	uint64_t last_sample_ns;
	bool ends; /* all its threads are about to end: its last sample has been taken */
	struct trap_planted planted;
	struct trap_signals signals;
	struct trap_standstill standstill;
	struct trap_known_stack known_stacks[TRAP_KNOWN_STACKS]; /* by walk serial */
};

struct trap_orphan {
	int status;
	uint64_t since_ns, looked_ns;
	pid_t tid;
};

struct trap_engine {
	struct mw_engine base;
	struct mw_engine_options options;
	struct trap_process **processes;
	size_t process_count;
	struct mw_map threads; /* all, by tid */
	struct mw_map orphans; /* stops of tids nobody has announced yet */
	struct mw_orphans finder;
	struct mw_snapshot snapshot;
	struct mw_unwound_frame *frames;          /* room for depth of them */
	struct mw_raw_frame *raw_frames, *merged; /* … each */
	struct mw_javascript *functions;          /* … as well */
	struct mw_script_ref *refs;
	uint64_t stop_ns; /* when the stop being served was heard of */
	uint64_t aim_ns;  /* a window's end that a wait is to be interrupted at; 0: none is near */
	struct {
		struct trap_heard {
			pid_t tid;
			int status;
			uint64_t time_ns;
		} * items;
		size_t first, count, capacity;
	} heard;          /* stops that wait to be served: those from `first` on */
	size_t unreaped;  /* threads that are so */
	size_t next_scan; /* where in the map of threads the next look at others begins */
	bool ticking;
	enum mw_window_end end; /* why run() came back */
	bool windows_ended;     /* … and stays the reason: what comes is reported all the same */
	bool settling;          /* … if it frees something */
};

/* A stop at one of our breakpoints, being served. */
struct trap_hit {
	struct trap_engine *engine;
	struct trap_process *process;
	struct trap_thread *thread;
	struct trap_breakpoint *breakpoint;
	const struct mw_hook *hook;
	struct mw_tracee_regs regs;
	mw_addr ret; /* of the call: its return address … */
	mw_addr sp;  /* … and the stack pointer after it */
	struct mw_memory_view memory;
	bool walked;
	uint32_t frame_count;
	enum mw_stack_cut cut;
	uint64_t serial;
};

/* engine.c: stops of tids that no event has announced. */
/* The news of its birth may still come. `status` as waitpid gives it; an end is forgotten. Errors: MEMORY. */
struct mw_error *trap_orphan_keep(struct trap_engine *engine, pid_t tid, int status) MW_MUST_CHECK;
/* It has been announced. False: it has not stopped yet. */
bool trap_orphan_take(struct trap_engine *engine, pid_t tid, int *status);

/* threads.c */
/* Wait for any thread to change state; *tid is 0 where only time has passed. */
struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status) MW_MUST_CHECK;
/* The same of those that are known, where it has happened already. */
void trap_wait_no_time(struct trap_engine *engine, pid_t *tid, int *status);
/* Hear of all that have stopped: they are served before any that stops later. */
void trap_hear_all(struct trap_engine *engine);
/* A held thread whose signal has been served, or that has none, need not be found again by every wait. */
void trap_reap_served(struct trap_engine *engine, pid_t tid);
struct mw_error *trap_thread_add(struct trap_process *process, pid_t tid, enum trap_relation relation,
				 struct trap_thread **out) MW_MUST_CHECK;
void trap_thread_remove(struct trap_thread *thread);
struct mw_error *trap_thread_number(struct trap_thread *thread) MW_MUST_CHECK;
/* A tid of the process whose memory can be written now: a stopped thread of it, or 0. */
pid_t trap_stopped_tid(const struct trap_process *process);
/* A tid of the process that lives, for /proc; the process id where none is known. */
pid_t trap_live_tid(const struct trap_process *process);
/* GONE where the process has ended. */
static inline struct mw_error *trap_still_there(const struct trap_process *process)
{
	return process->ended ? mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid) : NULL;
}
/* Have a thread stop; one that has no more than left a stop for it is to stop again. */
struct mw_error *trap_interrupt(struct trap_thread *thread) MW_MUST_CHECK;
/* Let a held thread run. A thread that has died meanwhile is no error. */
struct mw_error *trap_resume(struct trap_thread *thread) MW_MUST_CHECK;
/* Is a stop of it awaited where its process is held? A newborn one makes one by itself before its first instruction. */
static inline bool trap_is_to_stop(const struct trap_thread *thread)
{
	return !thread->stopped && !thread->ending && thread->relation != TRAP_NEWBORN;
}
/* Can it perform a system call for us now? A held signal would be lost, and a system call's own stops taken for ours. */
static inline bool trap_is_usable(const struct trap_thread *thread)
{
	return thread->stopped && !thread->in_event && thread->signal == 0 &&
	       (thread->relation == TRAP_THREAD || thread->relation == TRAP_SHARING_CHILD);
}
/* Let those that are not held get on for so long, and serve their stops. */
struct mw_error *trap_run_briefly(struct trap_process *process, useconds_t breath_us) MW_MUST_CHECK;
/* Let the threads of a held process get on until one stands where it can perform a system call, if that is to be had.
 */
struct mw_error *trap_await_injector(struct trap_process *process) MW_MUST_CHECK;
/* A thread that stands where it can perform a system call, or NULL; one that may under seccomp before others. */
struct trap_thread *trap_usable_thread(struct trap_process *process);
/* One that lives through a call outside of our memory, if there is any; else any that is usable, or NULL. */
struct trap_thread *trap_best_thread(struct trap_process *process);
/* Let the threads that were stopped with a signal take it, and stop again; each time for longer. */
struct mw_error *trap_deliver_held(struct trap_process *process, useconds_t *breath_us) MW_MUST_CHECK;

/* hold.c */
/* Seize all, and have them stand where breakpoints can be put in; the rescue is put in. One that is launched stands, and
 * is seized only. Errors: GONE; UNSUPPORTED where that would be a danger to the process. */
struct mw_error *trap_stop_process(struct trap_process *process) MW_MUST_CHECK;
struct mw_error *trap_hold(struct trap_process *process) MW_MUST_CHECK;
struct mw_error *trap_release(struct trap_process *process) MW_MUST_CHECK;

/* dispatch.c: act on a stop. */
struct mw_error *trap_dispatch(struct trap_engine *engine, pid_t tid, int status) MW_MUST_CHECK;
/* Copy the stack of a hit that went without. */
void trap_see_stack(struct trap_hit *hit);

/* inside.c */
enum trap_inside {
	TRAP_OUTSIDE,     /* not inside any call in flight, or only in one that a signal handler interrupted */
	TRAP_INSIDE_HEAP, /* called by a heap entry point */
	TRAP_INSIDE_VM,
};

/* Walk the stack of a hit, once. */
void trap_hit_walk(struct trap_hit *hit);
/* Does the stack still hold the return address that a call was made with? A cheap no. */
bool trap_return_word_stands(const struct trap_hit *hit, mw_addr sp, mw_addr ret);
/* Is a call that returns to `ret` with the stack at `sp` among the hit's frames? 0 no, 1 yes, 2 yes but a signal handler
 * lies between: the hit is not made by it. Where the walk ended early the stack's own word has to do. */
int trap_among_frames(struct trap_hit *hit, mw_addr sp, mw_addr ret);
/* Is the hit made by the last freeing call, which has no return stop? */
bool trap_inside_free(struct trap_hit *hit);
/* … by the last allocating call that was not sampled? */
bool trap_inside_passed(struct trap_hit *hit);
/* Is it made from the code of a heap entry point, or by a library that does nothing but allocate? */
bool trap_inside_allocator(struct trap_hit *hit);
bool trap_allocates_exception(struct trap_hit *hit);

static inline uint32_t trap_hook_number(const struct trap_hit *hit)
{
	return (uint32_t)(hit->hook - hit->process->survey.hooks.items);
}

/* call.c */
struct mw_error *trap_entry(struct trap_hit *hit) MW_MUST_CHECK;
/* While windows settle: it frees nothing that the sink knows. */
bool trap_entry_is_quiet(const struct trap_hit *hit);
struct mw_error *trap_return(struct trap_hit *hit, const struct trap_call *call) MW_MUST_CHECK;
/* The innermost call that returns to `ret` with the stack at `sp`, or that was exchanged and does; those
 * above it are dropped. NULL: none. */
struct mw_error *trap_call_returning(struct trap_thread *thread, mw_addr ret, mw_addr sp, bool exchanged,
				     struct trap_call *out, bool *found) MW_MUST_CHECK;
/* Drop all calls of a thread but the outermost `keep`. */
struct mw_error *trap_calls_drop(struct trap_thread *thread, size_t keep) MW_MUST_CHECK;
/* A site was passed by no return of ours. */
struct mw_error *trap_site_stray(struct trap_hit *hit) MW_MUST_CHECK;

/* breakpoint.c */
struct mw_error *trap_breakpoint_get(struct trap_process *process, mw_addr addr,
				     struct trap_breakpoint **out) MW_MUST_CHECK;
/* Plant, with the out-of-line copy where one is needed; `tid` is a stopped thread. The plan must be made. Not
 * `*possible` where its instruction can't be carried out while it stands, or there is no room. Of one that stands already
 * it is noted what has become of it. */
struct mw_error *trap_breakpoint_plant(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint,
				       bool *possible) MW_MUST_CHECK;
struct mw_error *trap_breakpoint_lift(struct trap_process *process, pid_t tid,
				      struct trap_breakpoint *breakpoint) MW_MUST_CHECK;
/* A thread stands at a stop that is not a breakpoint of ours: if its pc is in an out-of-line copy, move it to the
 * program's own code, so that nobody (a signal handler, a detached thread) sees our address. */
struct mw_error *trap_leave_slot(struct trap_thread *thread) MW_MUST_CHECK;
/* MW_OOL_MAX bytes near to the module's code that nobody uses; 0 where there are none. */
struct mw_error *trap_cave_take(struct trap_process *process, uint32_t module, mw_addr *out) MW_MUST_CHECK;
/* Have some near each module, as far as that can be; all threads are held, and `tid` can perform a system call. None
 * where there is no rescue. Errors: GONE, MEMORY. */
struct mw_error *trap_areas_map(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
struct mw_error *trap_rescue_forget(struct trap_process *process, pid_t tid, mw_addr addr) MW_MUST_CHECK;
/* Has a child that shares the memory asked that SIGTRAP be not ignored in it? That is forgotten then. */
struct mw_error *trap_rescue_resets(struct trap_process *process, struct trap_thread *child,
				    bool *resets) MW_MUST_CHECK;
/* Bytes in the rescue's own memory; a member of struct mw_rescue. */
struct mw_error *trap_rescue_put(struct trap_process *process, pid_t tid, mw_addr at, const void *bytes,
				 size_t size) MW_MUST_CHECK;
/* Nowhere: its members' types are asked for. */
extern struct mw_rescue trap_rescue_members;
#define TRAP_RESCUE_PUT(process, tid, member, value)                                                                   \
	({                                                                                                             \
		const __typeof__(trap_rescue_members.member) put_ = (value);                                           \
                                                                                                                       \
		trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, member), &put_, sizeof(put_));                   \
	})

/* plant.c */
/* Read modules and find hooks: slow, and done before anything is stopped. */
struct mw_error *trap_survey(struct trap_process *process) MW_MUST_CHECK;
/* Plant all hooks; `tid` is stopped. */
struct mw_error *trap_plant(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* The module table may have changed: forget what went, hook what came. */
struct mw_error *trap_modules_changed(struct trap_process *process, pid_t tid) MW_MUST_CHECK;

/* mask.c: no thread's mask holds SIGTRAP while memwatch is attached, though the program may think so. */
/* Look at the mask of a thread in a stop that has nothing to do with a breakpoint, and take SIGTRAP out, if that has
 * begun. */
struct mw_error *trap_mask_look(struct trap_thread *thread) MW_MUST_CHECK;
/* Begin to: nobody would know of it before rescue.c has put in what word of it is left in. All threads are held, `tid` is
 * one of them. */
struct mw_error *trap_masks_open(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* A thread has executed the breakpoint at `addr`. Had it SIGTRAP blocked, the kernel has dropped the process's action
 * for it: put it back. */
struct mw_error *trap_mask_on_hit(struct trap_thread *thread, mw_addr addr) MW_MUST_CHECK;
/* The thread enters a function that sets its mask: done for it, `*done` says so; it goes on behind the call. */
struct mw_error *trap_mask_set(struct trap_hit *hit, bool *done) MW_MUST_CHECK;
/* Somebody's SIGTRAP has come (out of the kernel's queue): back to wait, blocked where the program believes it to be. The
 * pc must be where the thread is to go on. */
struct mw_error *trap_signal_put_back(struct trap_thread *thread, siginfo_t *info) MW_MUST_CHECK;
/* The mask that it would have without us, before it is let go. */
struct mw_error *trap_mask_restore(struct trap_thread *thread) MW_MUST_CHECK;
/* Leave word in its signal that the breakpoint is served, before the thread gets the registers to go on with. */
struct mw_error *trap_mark_served(const struct trap_thread *thread, const struct mw_regs *next) MW_MUST_CHECK;
/* Is a thread whose stack pointer and pc are known in the code at `base`, or will it come back there, as far as its
 * stack shows it? `counted`: somebody may be; where returns are checked, those of the program's handlers may lead there
 * as well. */
bool trap_leads_inside(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, mw_addr base, bool counted,
		       bool shadow_stack);

/* rescue.c: what keeps the target alive if memwatch is killed. All threads are held for install and remove. */
/*
 * Put it in, by way of `tid` (0: any thread that is fit; none is waited for, as nobody may run any more), before the
 * first breakpoint. Errors: UNSUPPORTED where it can't be had, unless options.unsafe; GONE, MEMORY.
 */
struct mw_error *trap_rescue_install(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Have the kernel lead SIGTRAP to it, and take it out of the masks of other actions, by way of `tid`. */
struct mw_error *trap_rescue_begin(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Let threads come out of it, and one come to where it can perform a system call, as far as that can be waited for:
 * while breakpoints still stand. Then all are held again, until it has been removed. */
struct mw_error *trap_rescue_settle(struct trap_process *process) MW_MUST_CHECK;
struct mw_error *trap_rescue_remove(struct trap_process *process) MW_MUST_CHECK;
/* The same for a forked child's copy. */
struct mw_error *trap_rescue_clean_child(struct trap_process *process, pid_t tid) MW_MUST_CHECK;
/* Have the kernel lead SIGTRAP to it in a newborn that shares the memory, but was made without its maker's actions
 * (CLONE_CLEAR_SIGHAND). */
struct mw_error *trap_rescue_lead_cleared(struct trap_thread *child) MW_MUST_CHECK;
/* Code of the program that handlers return to, 0 where none is found. */
mw_addr trap_restorer(struct trap_process *process);
/* The calls that the rescue is put in and taken out with. */
#define TRAP_CALLS_INSTALL (MW_CALLS_MAP | MW_CALL_BIT(MPROTECT_CODE) | MW_CALL_BIT(SIGACTION) | MW_CALLS_BACK)
/* May the thread make these calls (MW_CALL_BIT) under its seccomp filters, and live through them, should memwatch be
 * killed amidst one? */
bool trap_seccomp_policy_may(struct trap_process *process, pid_t tid, uint32_t calls);
/* A breakpoint was hit by a thread that may have blocked or ignored SIGTRAP: if the kernel has dropped the action for
 * it, put it back. */
struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *dropped) MW_MUST_CHECK;
/* What the program wants done with SIGTRAP may have changed, by the program or by a SIGTRAP (SA_RESETHAND):
 * process->signals.trap_action anew, if that can be read. */
void trap_disposition_look(struct trap_process *process);
/* Does the target ignore SIGTRAP, as far as was seen, though the kernel may have forgotten it? */
static inline bool trap_ignored_by(const struct trap_process *process)
{
	return process->signals.trap_action_known &&
	       process->signals.trap_action.handler == (uint64_t)(uintptr_t)SIG_IGN;
}
/* A thread that was the process's, or a child's in its memory, has run another program and stands at the exec: what
 * would be ignored in that without us, is. It may stand at the border to user mode then. */
struct mw_error *trap_disposition_after_exec(struct trap_thread *thread) MW_MUST_CHECK;
/* Give the actions back by `inject`: SIGTRAP in the masks of those that lost it; `own` for SIGTRAP, where what it has is
 * `ours`, or, with `dropped`, was dropped with a trap. One that the program has set past us stays. */
struct mw_error *trap_actions_give_back(const struct mw_inject *inject, const struct mw_rescue_marks *marks,
					struct mw_rescue_action *own, mw_addr ours, bool dropped) MW_MUST_CHECK;

/* detach.c */
/* Leave all that is left of the process as it was; it has ended then, for the engine. */
struct mw_error *trap_process_detach(struct trap_process *process, enum mw_window_end end) MW_MUST_CHECK;
/* The window ends now, or when it was as long as it was to be. */
void trap_window_close(struct trap_process *process);
/* The window's time is over: a free by which a thread stands now is of the window, however late it is served. */
void trap_window_hear(struct trap_process *process);
/* Could a thread of a held process not be stopped, and may it be in code of ours? */
bool trap_any_starved(const struct trap_process *process);

/* pace.c: keep the tracer on the CPU of the thread it serves. Begun already: nothing. */
void trap_pace_begin(void);
void trap_pace_stop(const struct trap_thread *thread);
void trap_pace_end(void);

/* For each thread: `for (size_t i = 0; (thread = trap_thread_next(process, &i));)`. None may come or go meanwhile. */
static inline struct trap_thread *trap_thread_next(const struct trap_process *process, size_t *position)
{
	void *thread;

	return mw_map_next(&process->threads, position, &thread) ? thread : NULL;
}

/* How long the window was, or else is to be; 0: that is not known yet. */
static inline uint64_t trap_window_length(const struct trap_process *process)
{
	return process->window.length_ns ? process->window.length_ns : process->engine->options.duration_ns;
}

static inline bool trap_any(const struct trap_process *process, bool (*is_so)(const struct trap_thread *thread))
{
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		if (is_so(thread))
			return true;
	return false;
}

/* Time since the process's window began. */
static inline uint64_t trap_now(const struct trap_process *process)
{
	return mw_clock_ns() - process->start_ns;
}

/* Unlike a debugger's write, this one heeds the memory's protection, as an instruction would. */
static inline bool trap_write_word(pid_t tid, mw_addr addr, uint64_t word)
{
	struct iovec local = {&word, sizeof(word)};
	struct iovec remote = {(void *)(uintptr_t)addr, sizeof(word)};

	return process_vm_writev(tid, &local, 1, &remote, 1, 0) == sizeof(word);
}

/* System calls that the target performs for us go by code of ours, in `tid`. */
static inline struct mw_inject trap_inject_by(const struct trap_process *process, pid_t tid)
{
	struct mw_inject inject = process->rescue.inject;

	inject.tid = tid;
	return inject;
}

#endif
