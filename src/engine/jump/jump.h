/* SPDX-License-Identifier: MIT */
/*
 * jump.h: what the parts of the jump engine share.
 *
 * Nobody is traced while the window goes. ptrace is used for moments only: to put the recorder in (engine.c: survey,
 * plan.c; memory.c maps what it needs; patch.c writes the jumps), to look at modules that came (install.c), and to take
 * it all out again (detach.c). The way of an event: trampoline → recorder (src/stub) → ring → drain.c, in order of time
 * → records.c → sink. window.c goes round: drain, answers to what the recorder asks (ask.c), modules, children,
 * samples.
 *
 * One thread of memwatch does all of it, but for the heartbeat, which has its own.
 *
 * What they do is in recorder.h (the recorder's memory, and what it asks), walking.h (how it walks stacks), patching.h
 * (the jumps, and who is in what they replace) and lifecycle.h (a process from its launch to its end).
 */
#ifndef MW_ENGINE_JUMP_JUMP_H
#define MW_ENGINE_JUMP_JUMP_H

#include "base/map.h"
#include "engine/jump/clock.h"
#include "engine/jump/drain.h"
#include "engine/jump/shared.h"
#include "engine/survey.h"
#include "proc/peek.h"
#include "proc/program.h"
#include "stub/stub.h"
#include "symbol/elf_image.h"
#include "tracee/inject.h"
#include "tracee/journal.h"
#include "tracee/orphans.h"
#include "tracee/quiesce.h"
#include "tracee/seccomp_policy.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#include <memwatch/engine.h>
#include <pthread.h>
#include <stdlib.h>

#define JUMP_NO_HOOK     UINT32_MAX
#define JUMP_MAX_DEPTH   1024
#define JUMP_PAGE        4096u
#define JUMP_PLACES      64
#define JUMP_STACK_BELOW 16384u     /* bytes below a stack pointer: several frames of signals */
#define JUMP_STACK_SCAN  (1u << 20) /* bytes from a stack pointer up that are looked through */

/* A function that is, or is to be, detoured. */
struct jump_patch {
	uint32_t number; /* of the stub's hook; that of the hook in the survey, or one from the top for a helper */
	uint32_t hook;   /* in the survey, or JUMP_NO_HOOK */
	uint8_t role;    /* enum mw_role or MW_STUB_… */
	uint32_t module;
	const char *function;
	mw_addr addr;
	uint64_t size; /* of the function, 0 unknown */
	struct mw_detour detour;
	mw_addr trampoline_at; /* 0: none yet */
	struct mw_trampoline trampoline;
	size_t journal;
	bool standing;
	bool gone; /* its module is unmapped */
};

/* Memory of ours in the target that holds trampolines. */
struct jump_trampolines {
	mw_addr start;
	uint64_t size, used;
};

/* A place that a signal has interrupted (suspended.c): where its frame keeps the pc, and what. */
struct jump_interrupted {
	mw_addr at, sp, pc;
	uint64_t others; /* of the registers that it keeps: what they are */
};

/* What has been seen since calls, or handlers, are waited for. */
struct jump_seen {
	struct jump_interrupted *gone_back;
	size_t gone_back_count;
	mw_addr places[JUMP_PLACES]; /* where what may come back was found (suspended.c) */
	size_t place_count;
	mw_addr reached;   /* all that lies below has been looked through */
	bool at_large;     /* … and all mappings that are not large */
	uint64_t clear_ns; /* all stand since then (mw_quiesce.since_ns), and nothing was found anywhere */
	uint64_t since_ns;
	uint64_t since_cpu_ns; /* … and the CPU time that the process had had by then */
	uint64_t handlers_ns;  /* all stand since then (mw_quiesce.since_ns), and no handler goes back to what is
				  overwritten */
};

/* What is learned of a pc (learned.c). */
struct jump_learned {
	mw_addr pc;
	uint64_t row; /* as in memwatch/ring.h */
	uint32_t module;
};

/* Code that nothing describes (learned.c). */
struct jump_learned_code {
	struct jump_learned *items;
	size_t count, capacity;
	struct mw_map at;  /* by pc: index in `items`, plus 1 */
	mw_addr *to_learn; /* met by the recorder, and not looked at yet */
	size_t to_learn_count, to_learn_capacity;
	mw_addr *stack_pointers; /* of the threads, as they were stopped before the window */
	size_t stack_pointer_count;
};

static inline void jump_learned_deinit(struct jump_learned_code *learned)
{
	free(learned->items);
	free(learned->to_learn);
	free(learned->stack_pointers);
	mw_map_deinit(&learned->at);
}

struct jump_engine;

/* The functions that are, or are to be, detoured (plan.c, patch.c). */
struct jump_patches {
	struct jump_patch *items;
	size_t count, capacity;
	struct mw_journal journal;
	uint32_t next_helper;  /* stub hook number that the next helper gets, plus 1 */
	uint32_t helpers_seen; /* modules looked at for helpers */
	bool loader_hooked;
	size_t disturbed;         /* jumps that somebody else had written over by the end */
	const char *odd_unwinder; /* a module whose unwinder can't be told of our frames, or NULL */
};

/* The recorder and its memory in the target (memory.c, context.c). */
struct jump_recorder {
	struct mw_shared_memory memory;
	struct jump_shared shared;
	uint64_t filled_rings; /* rings that have memory */
	uint32_t first_rings;  /* … from the beginning */
	struct mw_stub_context context;
	const uint8_t *code;     /* the image, as it is in the process: mw_stub_image, or that of a memwatch before */
	uint32_t open_elsewhere; /* mw_ring_control.open, where the control block is not at hand */
	bool mapped;             /* any memory of ours may be in the process */
	mw_addr image, guard;    /* 0: never there */
	uint64_t image_size;
	struct jump_trampolines *trampolines;
	size_t trampolines_count;
	uint32_t owned_count; /* pieces of memory that are known in the control block */
	uint64_t resident;    /* bytes of ours that count into the target's RSS, as of the last sample */
	int own_memory;       /* its memory as a file, which leads to this program's, also when it is another; or -1 */
};

/* How the recorder walks stacks (rows.c). */
struct jump_rows {
	struct mw_row_dictionary dictionary;
	struct jump_module_rows *items; /* by module number */
	size_t count;
	uint64_t used;      /* bytes of the shared space for rows */
	uint64_t published; /* rows of the dictionary */
	size_t modules_published;
};

/* What has been seen of stacks of the process (suspended.c). */
struct jump_stacks_known {
	bool own;              /* it has been seen on a stack of its own making: none that a thread was made with */
	bool has_frames;       /* a signal's frame has been found in its memory */
	uint64_t search_until; /* for forked children of one with stacks of its own; 0: not now */
};

/* Thread ids of the process (help.c). */
struct jump_ids {
	bool other_namespace;            /* they are not those that memwatch sees */
	uint32_t first;                  /* its first thread, as that is known in its innermost namespace */
	struct mw_map tids;              /* ours, by number in the innermost namespace; only where that is another */
	uint64_t seek_ns, seek_since_ns; /* time spent on finding them; since when */
};

/* Forked children (children.c). */
struct jump_children {
	uint64_t attach_start; /* clock ticks of /proc starttime at attach: younger processes may be our children */
	uint32_t seen;
	uint64_t cleaned;
};

/* When it was last done (window.c). */
struct jump_last {
	uint64_t sample_ns, tidy_ns, alive_ns, look_ns, name_ns;
};

struct jump_process {
	struct jump_engine *engine;
	pid_t pid;
	int pidfd;
	char name[17];
	struct mw_event_sink sink;
	struct mw_program program; /* that was prepared */
	bool launched;             /* stands before its exec, or its loader is at work */
	bool windowed;             /* the window has begun */
	bool window_closed;        /* … and nothing is recorded any more */
	bool ended;                /* … and is over; nothing of ours is left in the process, or it is no more */
	bool installed;
	bool launched_by_us; /* memwatch is its parent */
	bool exiting;        /* a thread of it has called _exit */
	bool gave_up;        /* the recorder stopped as memwatch was not heard of */
	bool is_copy;        /* a forked child's, in another process's words */
	struct {
		mw_addr loader; /* the loader's word for debuggers: a breakpoint stands there */
		size_t patch;
		unsigned told;  /* how often it was come to */
		unsigned tells; /* … when all is mapped */
		bool execed;
	} launch;
	char why_left[160]; /* what could not be taken out, "" where all was */
	struct mw_survey survey;
	struct mw_unwinder *unwinder;
	struct mw_unwinder *inner; /* the one below its memo */
	struct mw_quiesce quiesce;
	struct mw_seccomp_policy policy;
	struct jump_patches patches;
	struct jump_recorder recorder;
	struct jump_rows rows;
	struct jump_learned_code learned;
	struct jump_seen seen;
	struct jump_stacks_known stacks;
	struct jump_ids ids;
	struct jump_children children;
	struct jump_clock clock;
	struct jump_drain *drain;
	uint32_t asks_seen;
	struct jump_last last;
	struct mw_engine_stats stats;
	struct mw_window_info window;
};

struct jump_engine {
	struct mw_engine base;
	struct mw_engine_options options;
	struct jump_process **processes;
	size_t process_count;
	enum mw_window_end end; /* why run() came back */
	bool windows_ended;     /* … and stays the reason */
	struct mw_orphans_others others;
	struct {
		pthread_t thread;
		bool beating, stop;
		pthread_mutex_t lock; /* of controls and count */
		pthread_cond_t wake;
		struct mw_ring_control **controls;
		size_t count;
	} heart;
	unsigned idle_rounds;
	uint64_t last_round_ns;          /* when it began */
	struct mw_unwound_frame *frames; /* room for depth of them */
};

/* What the image that the process has says of itself. */
static inline const struct mw_stub_header *jump_header(const struct jump_process *process)
{
	return (const struct mw_stub_header *)(const void *)process->recorder.code;
}

/* Is there a reason to look for what no thread is in? Forked children are many, and are not looked through for less. */
static inline bool jump_may_be_suspended(const struct jump_process *process)
{
	return process->stacks.own || (process->stacks.has_frames && !process->is_copy);
}

/* While it is stopped: it has not ended, nor become another program. */
static inline bool jump_still_there(const struct jump_process *process)
{
	return !process->quiesce.gone && !process->quiesce.execed;
}

#endif
