/* SPDX-License-Identifier: MIT */
/*
 * trap.h: what the parts of the trap engine share.
 *
 * The way of an event: wait.c hears that a thread stopped; dispatch.c finds out why, and for a breakpoint of ours
 * reads registers and stack and decides what the call is (call.c keeps the calls in flight); report.c
 * tells the sink; breakpoint.c carries out the displaced instruction and the thread runs on. plant.c
 * and site.c put breakpoints in, detach.c takes everything out, family.c follows threads and children.
 * rescue.c, mask.c and disposition.c see to it that the target lives on if memwatch is killed.
 *
 * One thread of memwatch, the tracer, does all of it.
 */
#ifndef MW_ENGINE_TRAP_TRAP_H
#define MW_ENGINE_TRAP_TRAP_H

#include "base/clock.h"
#include "base/map.h"
#include "engine/survey.h"
#include "proc/program.h"
#include "tracee/inject.h"
#include "tracee/journal.h"
#include "tracee/orphans.h"
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"
#include "unwind/snapshot.h"
#include "unwind/unwind.h"

#include <memwatch/engine.h>
#include <memwatch/rescue.h>

#include <sched.h>

#define TRAP_NO_HOOK         UINT32_MAX
#define TRAP_HEARD           256 /* stops heard of at once */
#define TRAP_MASKS           8
#define TRAP_STANDSTILLS     5
#define TRAP_MAX_CALLS       64  /* calls in flight a thread; handlers nest hardly as deep */
#define TRAP_FIRST_BREATH_US 500 /* for threads to get on with their work */

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
	bool exchanged; /* the return address on the stack is the trampoline's */
	bool begun;     /* a BEGIN event was reported */
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
	uint64_t masks
		[TRAP_MASKS]; /* masks with which it was interrupted while SIGTRAP was blocked, newest at next_mask - 1
				     */
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

struct trap_code {
	mw_addr start, end;
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
	bool trap_action_changes;  /* the program may have set it inside the window */
	bool masks_open;           /* SIGTRAP is being taken out of masks */
	struct trap_code *masking; /* code amidst which a thread is about to block it */
	size_t masking_count, masking_capacity;
	mw_addr restorer; /* in the process's code; 0: not looked for yet */
};

/* For how long it was paused by us (standstill.c). */
struct trap_standstill {
	uint64_t until_ns; /* up to when its pauses have been counted */
	uint64_t noted_ns;
	struct trap_stood {
		uint64_t at_ns, stood_ns;
	} noted[TRAP_STANDSTILLS]; /* one a second, a ring */
	size_t count;              /* that were noted */
};

/* The sink's numbers of stacks that were walked lately, by walk serial. */
struct trap_interned {
	bool all; /* they are valid */
	struct {
		uint64_t serial;
		uint32_t hook, stack;
		enum mw_kind kind;
	} stacks[4096];
};

struct trap_process {
	struct trap_engine *engine;
	pid_t pid;
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
	struct mw_journal journal;
	struct trap_rescue rescue;
	struct trap_acts acts;
	size_t freeing_hooks;
	struct mw_map threads; /* this process's threads and sharing children, by tid */
	struct mw_engine_stats stats;
	struct mw_window_info window;
	uint64_t start_ns;
	uint64_t last_sample_ns;
	bool end_sampled; /* when all were about to end, by one that was not the first */
	struct trap_planted planted;
	struct trap_signals signals;
	struct trap_standstill standstill;
	struct trap_interned interned;
};

struct trap_orphan {
	int status;
	uint64_t since_ns, looked_ns;
	pid_t tid;
};

struct trap_engine {
	struct mw_engine base;
	/* trap_dispatch(): who waits for a thread serves the stops of others meanwhile. */
	struct mw_error *(*dispatch)(struct trap_engine *engine, pid_t tid, int status);
	struct mw_engine_options options;
	struct trap_process **processes;
	size_t process_count;
	struct mw_map threads; /* all, by tid */
	struct mw_map orphans; /* stops of tids nobody has announced yet */
	struct mw_orphans_others others;
	struct mw_snapshot snapshot;
	struct mw_unwound_frame *frames; /* room for depth of them */
	struct mw_raw_frame *raw_frames;
	uint64_t stop_ns; /* when the stop being served was heard of */
	struct {
		struct {
			pid_t tid;
			int status;
			uint64_t time_ns;
		} items[TRAP_HEARD];
		size_t first, count;
	} heard;          /* stops that wait to be served, a ring */
	size_t unreaped;  /* threads that are so */
	size_t next_scan; /* where in the map of threads the next look at others begins */
	struct {
		cpu_set_t original;
		bool begun, saved, idle, may_idle;
		int cpu;
		uint64_t stops, next_check, rest_until_ns, run_delay, target_cpu_ns, wall_ns;
		pid_t tid;
	} pace;
	bool ticking;
	enum mw_window_end end; /* why run() came back */
	bool windows_ended;     /* … and stays the reason: what comes is reported all the same */
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

#endif
