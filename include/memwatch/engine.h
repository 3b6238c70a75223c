/* SPDX-License-Identifier: MIT */
/*
 * engine.h: what an engine is: the part that catches the calls of one or more processes and tells
 * them to sinks as events. It does nothing else: no counting, no symbols, no printing.
 *
 * To add an engine: a directory in src/engine/, its row in mw_engine_find()'s table, and the live
 * suite run with its name.
 */
#ifndef MEMWATCH_ENGINE_H
#define MEMWATCH_ENGINE_H

#include <memwatch/event.h>

#include <signal.h>

/* Why a window ended. The names for reports: mw_window_end_name(). */
enum mw_window_end {
	MW_END_DURATION,
	MW_END_INTERRUPT,
	MW_END_EXIT,
	MW_END_EXEC,
	MW_END_TRIGGER,
	MW_END_LIMIT,
	MW_END_LOST,
	MW_END_RUNNING, /* it has not: what a report on a window that still runs says */
};

/* What an entry point does with memory. */
enum mw_role {
	MW_ROLE_MALLOC,         /* size → block */
	MW_ROLE_CALLOC,         /* count, size → block */
	MW_ROLE_REALLOC,        /* block, size → block */
	MW_ROLE_REALLOCARRAY,   /* block, count, size → block */
	MW_ROLE_FREE,           /* block */
	MW_ROLE_POSIX_MEMALIGN, /* &block, align, size → 0 or an errno value */
	MW_ROLE_RESIZE,         /* block, size → its real size, in place (xallocx), or block/NULL (expand) */
	MW_ROLE_MMAP,           /* addr, length, prot, flags, fd, offset → address or -1 */
	MW_ROLE_MUNMAP,         /* addr, length → 0 or -1 */
	MW_ROLE_MREMAP,         /* addr, old length, new length, flags[, new addr] → address or -1 */
	MW_ROLE_BRK,            /* new break → 0 or -1 */
	MW_ROLE_SBRK,           /* increment → old break or -1 */
	MW_ROLE_COUNT
};

/* What an engine's run() gets from its `interrupt`. */
enum {
	MW_STOP_NOT,
	MW_STOP_INTERRUPT, /* windows end as MW_END_INTERRUPT … */
	MW_STOP_LIMIT,     /* … or MW_END_LIMIT */
};

/* What happens if memwatch can't keep up with what is recorded. */
enum mw_overload {
	MW_OVERLOAD_WAIT, /* threads wait for it, for options.max_wait of their time at most; from then on as SAMPLE */
	MW_OVERLOAD_SAMPLE, /* blocks are sampled from then on, or more sparsely than before */
	MW_OVERLOAD_DROP,   /* events are lost, and counted; nobody waits */
	MW_OVERLOAD_COUNT
};

/* For reports; "?" for a number that is none of them. Static text. */
const char *mw_overload_name(enum mw_overload overload);
const char *mw_role_name(enum mw_role role);
const char *mw_window_end_name(enum mw_window_end end);

/* One hooked entry point, for reports. Strings belong to the engine and live as long as it. */
struct mw_hook_info {
	const char *function;
	const char *module; /* path as the target sees it */
	mw_addr address;
	enum mw_role role;
	enum mw_kind kind;
	const char *refused; /* NULL, or why this entry point is not hooked */
};

/* What the watching cost, and what it could not see. */
struct mw_engine_stats {
	uint64_t stops;           /* times a thread was stopped for an event of ours */
	uint64_t longest_stop_ns; /* the longest of them, attach and detach included */
	uint64_t stopped_ns;      /* sum over threads and stops */
	uint64_t stood_ns; /* time in which at least one of its threads stood so: in the window, attach_ns and detach_ns
			    */
	uint64_t attach_ns;           /* how long all threads were stopped at attach */
	uint64_t detach_ns;           /* … and at detach */
	uint64_t lost_events;         /* events that were seen to be missed */
	uint64_t broken_stacks;       /* stacks captured whose end could not be found */
	uint64_t returns_site;        /* returns caught at the true return site … */
	uint64_t returns_exchanged;   /* … and by an exchanged return address */
	uint64_t lost_stacks;         /* events recorded without their stack */
	uint64_t walks, slow_walks;   /* stacks captured in the target; … of these, handed to memwatch to be walked */
	uint64_t waited_ns;           /* sum over threads: they waited for memwatch to catch up */
	uint64_t compared, differing; /* stacks walked both ways, … not with one result (options.compare) */
	uint64_t own_resident;        /* bytes of memwatch's own in the process's resident set, at the last sample */
	uint64_t children_cleaned;    /* forked children that our code was taken out of */
	uint64_t limit_memory;        /* where a limit of memwatch's own memory ended the window: its bytes; else 0 */
	uint64_t limit_stopped;       /* … one of the share that it may be stopped: in millionths */
	uint64_t settle_ns;           /* how long frees were recorded after the window */
	uint64_t own_cpu_ns; /* CPU time of memwatch itself, from the first attach until it has let go; 0: not known */
	uint64_t spent_ns;   /* sum over threads: CPU time in the recorder, where options.budget asks for it */
	uint64_t sampled_from_ns; /* from when on blocks were sampled as memwatch could not keep up; 0: they were not */
	const char *left_behind;  /* what could not be taken out of the process, or NULL */
};

/* How one process's window went. */
struct mw_window_info {
	int64_t started_realtime_ns; /* CLOCK_REALTIME at the window's start */
	uint64_t length_ns;
	enum mw_window_end ended;
	bool over; /* nothing of ours is left in the process, or there is no process */
	bool gone; /* the process has ended or become another program: in its window, or after that */
	bool has_exit_status;
	int exit_status; /* wait status as waitpid gives it */
};

/* Memory of memwatch's own in a process. */
struct mw_engine_range {
	mw_addr start, end;
};

struct mw_engine;
struct mw_modules; /* src/symbol: a process's module table */

struct mw_engine_options {
	bool track_heap, track_vm;
	bool python_objects;  /* heap: also blocks that CPython's allocator of objects serves */
	uint32_t depth;       /* deepest stack kept, frames */
	uint64_t duration_ns; /* how long each window is at most; 0: until end() */
	uint32_t compare;     /* of every so many stacks walked in the target, libunwind walks one again; 0: none */
	bool unsafe; /* go on where a target may not live on if memwatch is killed: its seccomp filter may end it, or
		      * (trap) it can't be given what keeps it alive */
	bool stop_unfit; /* a launched command that turns out not to be fit for this engine is left stopped (SIGSTOP) */
	const char *program;      /* the file of a command that is to be launched, or NULL */
	uint32_t max_stopped;     /* millionths: detach from a process stopped for a larger share of five seconds;
				 0: none */
	uint64_t sample_interval; /* heap blocks are sampled, one in so many bytes on average; 0: all are recorded */
	uint32_t budget;          /* millionths: set_interval() is called so that recording costs no larger share of the
				     process's CPU time, and stats.spent_ns is wanted for it; 0: no */
	enum mw_overload overload;
	uint32_t max_wait; /* millionths of each thread's time, over any 100 ms (MW_OVERLOAD_WAIT); 0: no limit */
	/* Called about once a second and at each process's end while its memory can still be read, by way of `tid`: one
	 * of its threads that lives (the first may have ended). One that seemed to end may live on: then another call
	 * follows. */
	void (*sample)(void *context, pid_t pid, pid_t tid, uint64_t time_ns, bool last);
	void *sample_context;
	/* Called by start() while all threads of the process are stopped and none of its hooks is planted. May be NULL.
	 */
	struct mw_error *(*stopped)(void *context, pid_t pid);
	void *stopped_context;
	/* Called by run() for a forked child of a process, or a child of that one, that is or was a process of its own:
	 * not all are seen so early. May be NULL. */
	void (*forked)(void *context, pid_t child, pid_t parent);
	void *forked_context;
	/* run() comes back soon where that descriptor is readable, if `wakes`. Borrowed, until destroy(). */
	bool wakes;
	int wake_fd;
};

struct mw_engine_ops {
	const char *name;
	/* An engine with no process yet. */
	struct mw_error *(*create)(const struct mw_engine_options *options, struct mw_engine **out);
	/*
	 * Prepare a process: find what is to be hooked, and do all that takes long. No hook is planted yet, and the
	 * process runs when this returns. On failure it runs as before. `launched`: it has just been made by memwatch
	 * and stands before its exec. Must be called from the thread that calls run().
	 */
	struct mw_error *(*attach)(struct mw_engine *engine, pid_t pid, bool launched,
				   const struct mw_event_sink *sink);
	/*
	 * Stop a prepared process, plant its hooks and let it run: its window begins. (That of a launched one begins
	 * when it is ready.) Only this process is stopped. On failure it is detached, runs as before, and may be
	 * attached anew.
	 */
	struct mw_error *(*start)(struct mw_engine *engine, pid_t pid);
	/* Serve events until `deadline_ns` (CLOCK_MONOTONIC; 0: none), until *interrupt is not 0 (MW_STOP_...), or
	 * until every process has ended. Where the deadline has passed already: what has come until now. */
	struct mw_error *(*run)(struct mw_engine *engine, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt);
	/* All windows end: now, or when they had lasted for options.duration_ns, as window() says from then on. The
	 * hooks still stand, and what comes later is reported as well: run() goes on serving until detach(). */
	void (*end)(struct mw_engine *engine);
	/* After end(): from now on only what frees is reported (free, realloc, munmap, mremap and what maps over
	 * something); an allocating function costs the process as little as can be. Such events need have no stack. */
	void (*settle)(struct mw_engine *engine);
	/* From now on heap blocks of that process are sampled, one in so many bytes on average. Not 0, and only where
	 * options.sample_interval is not 0. */
	void (*set_interval)(struct mw_engine *engine, pid_t pid, uint64_t bytes);
	/* Of a process whose window is over: what is asked of it from now on is asked by `key`, a negative number that no
	 * other has, and `pid` may be attached to anew, as what it has become. */
	void (*retire)(struct mw_engine *engine, pid_t pid, pid_t key);
	/* Lift the hooks and detach from what is still attached. Safe at any time after create. */
	struct mw_error *(*detach)(struct mw_engine *engine);
	void (*destroy)(struct mw_engine *engine);
	/* In a forked copy of memwatch: hold nothing that shows others that memwatch lives. Only answers are asked for after
	 * it. False: without memory. NULL: there is nothing of that kind. */
	bool (*forked)(struct mw_engine *engine);

	/* Answers about one process, by its pid or the key that it has since retire(); good until destroy. */
	size_t (*hooks)(const struct mw_engine *engine, pid_t pid, const struct mw_hook_info **out);
	const struct mw_engine_stats *(*stats)(const struct mw_engine *engine, pid_t pid);
	const struct mw_window_info *(*window)(const struct mw_engine *engine, pid_t pid);
	struct mw_modules *(*modules)(const struct mw_engine *engine, pid_t pid);
	/* Which engine watches the process, and why that one; NULL: it does itself. Static text, or the engine's own. */
	const char *(*used)(const struct mw_engine *engine, pid_t pid, const char **reason);
	/* Bytes of memwatch's own in the process now: resident, and mapped at all. */
	void (*own_memory)(const struct mw_engine *engine, pid_t pid, uint64_t *resident, uint64_t *mapped);
	/* Where it is now: how many places, `capacity` of them at most filled in. */
	size_t (*own_ranges)(const struct mw_engine *engine, pid_t pid, struct mw_engine_range *out, size_t capacity);
	/* Texts of stacks that were not the same both ways (options.compare); NULL behind the last. May be NULL. */
	const char *(*difference)(const struct mw_engine *engine, pid_t pid, size_t index);
};

struct mw_engine {
	const struct mw_engine_ops *ops;
};

/* The engine of that name, or NULL. */
const struct mw_engine_ops *mw_engine_find(const char *name);

#endif
