/* SPDX-License-Identifier: MIT */
/*
 * recorder.h: all that is kept of one process while it is watched: who it is, its tracker, and what
 * its memory was from second to second; and how that becomes a report.
 */
#ifndef MW_SESSION_RECORDER_H
#define MW_SESSION_RECORDER_H

#include "alloc/pools.h"
#include "base/index.h"
#include "proc/maps.h"
#include "proc/memory_limit.h"
#include "proc/peek.h"
#include "proc/perf_map.h"
#include "proc/program.h"
#include "proc/regions.h"
#include "session/budget.h"
#include "store/store.h"
#include "track/track.h"
#include "view/frames.h"
#include "view/space.h"
#include "view/watched.h"

#include <memwatch/engine.h>
#include <memwatch/view.h>

struct mw_reports;
struct mw_session;

/* An address space at a moment. Zero-initialise; mw_space_deinit frees. */
struct mw_space_snapshot {
	struct mw_space_moment moment; /* what views take; paths of arenas: mw_heaps_arena_path() */
	bool taken;
	struct mw_regions regions; /* what the mappings are made of, and whose their paths are */
};
void mw_space_deinit(struct mw_space_snapshot *snapshot);

/*
 * What becomes known of a process, beside its events, goes to all receivers: the model that its report is made from
 * (view/watched.h), and the writer of its recording. They take it as they would take it from a recording.
 */
#define MW_EMITTER_RECEIVERS 2

struct mw_emitter {
	uint32_t process; /* its number in a recording */
	struct mw_store_visitor receivers[MW_EMITTER_RECEIVERS];
	size_t receiver_count;
	size_t hooks, modules; /* that have been emitted */
	uint32_t runtimes;     /* that were found in modules, once the window is over */
	bool begun;            /* the address space at the window's start has been emitted */
	uint32_t marks;
	uint64_t every_ns; /* a mark; 0: none but those asked for */
	uint64_t next_ns;  /* when the next of these is due */
	uint64_t start_ns; /* the window's, CLOCK_MONOTONIC; 0: not known yet */
	size_t asked;      /* of the marks that were asked for, how many have been emitted */
	struct mw_view_symbols inner;
	struct mw_symbol_seen {
		mw_addr addr;
		uint32_t module;
	} * seen; /* return addresses that have been emitted */
	size_t seen_capacity;
	struct mw_index seen_index;
};

struct mw_recorder {
	pid_t pid;
	pid_t key;                 /* by which the engine is asked for it: the pid, or another number once it is over */
	struct mw_program program; /* what it was at first; not known of a command */
	struct mw_perf_place jit;  /* where it says what code in no file is called */
	char *comm, *exe;
	char *executed; /* the path that it was executed by, where `exe` has several (program.h); or NULL */
	char **command;
	size_t command_count;
	struct mw_watched *watched; /* the model of it; borrowed */
	struct mw_event_sink sink;  /* of the window's events: the tracker's, or a recording's that hands on to it */
	struct mw_session *session; /* that watches it; borrowed, set before anything is attached */
	struct mw_emitter *emitter; /* what is found out goes there; borrowed */
	struct mw_stored_sample newest;      /* may still change: not emitted yet */
	size_t sample_count;                 /* with the newest */
	struct mw_space_snapshot start, end; /* the address space at the window's start and end, where looked at */
	uint64_t end_ns;                     /* when the window ends; UINT64_MAX: not known yet */
	uint64_t settle_ns;                  /* how long that was */
	struct mw_budget budget;             /* where sampling is to keep to one … */
	struct mw_budget_look cost;          /* … what it costs … */
	uint64_t recorded;                   /* … and of that since the look before */
	struct mw_space_ranges late;         /* what was mapped since `noting`, and after the window's end */
	/* What is around it, as it was last seen. */
	struct mw_memory_limit limit;
	const char *distribution; /* static text; NULL: not known */
	uint32_t visible;         /* runtimes whose objects are blocks (alloc/families.h) */
	struct mw_recorder_child {
		pid_t pid;
		char comm[17];
	} * children; /* that are alive */
	size_t child_count;
	struct mw_look *look;          /* at its heap, at the window's end; NULL: none */
	struct mw_summary_leaks leaks; /* what the model asks it */
	struct mw_recorder_heap {
		struct mw_look *look;           /* at its heap, at the window's start; NULL: none */
		struct mw_heap_report *before;  /* its report, … */
		struct mw_heap_report *after;   /* … and that of the other one */
		struct mw_change *change;       /* what is between them … */
		struct mw_summary_change asked; /* … and what the model asks it */
	} heap;
	bool to_look; /* … is to be taken yet */
	bool launched;
	bool became;      /* another program, which is looked for already */
	bool identified;  /* comm, exe and command are the process's own, not what was expected */
	bool ended;       /* the last sample was taken; it may live on, and have another */
	bool looked;      /* `end` was looked at with hooks in place that are lifted now */
	bool settles;     /* what is freed after the window is recorded … */
	bool settling;    /* … and has been */
	bool closed;      /* nothing is read of the process any more */
	bool noting;      /* what is mapped from now on is noted in `late` */
	bool dear_arenas; /* glibc's arenas can't be had with each sample */
	bool own_root;
	bool knows_children;
};

/* A process that runs: reads who it is. Its model and the emitter are borrowed. */
void mw_recorder_init(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched, struct mw_emitter *emitter);
/* A command before its exec; `path` is the program. Errors: MEMORY; then there is nothing to deinit. */
struct mw_error *mw_recorder_init_launched(struct mw_recorder *recorder, pid_t pid, struct mw_watched *watched,
					   struct mw_emitter *emitter, const char *path, char *const *command,
					   size_t count) MW_MUST_CHECK;
/* Look at its heap before anything is attached, to be compared with what it is at the window's end. If it fails, a
 * message on standard error says why. */
void mw_recorder_look_at_heap_before(struct mw_recorder *recorder);
/* How the model reads blocks of pools, once nothing is attached any more; where the process is gone it does not. */
struct mw_recorder_pools {
	struct mw_pool_memory memory;
	struct mw_touched touched;
	struct mw_maps maps;
};
/* `out` must not move. */
void mw_recorder_open_pools(struct mw_recorder *recorder, struct mw_recorder_pools *out);
void mw_recorder_close_pools(struct mw_recorder *recorder, struct mw_recorder_pools *pools);
/* Look at its heap, now: what is freed until that is recorded, or nothing of it is. If it fails, a
 * message on standard error says why. */
void mw_recorder_look_at_heap(struct mw_recorder *recorder);
/* Once nothing is attached any more: the model can ask what was found. */
void mw_recorder_examine_heap(struct mw_recorder *recorder);
/* End these looks: nothing of them is left in the process. Errors: what could not be taken back. */
struct mw_error *mw_recorder_end_look(struct mw_recorder *recorder) MW_MUST_CHECK;
void mw_recorder_deinit(struct mw_recorder *recorder);
/* Who the process is by its own account. What can't be read (exe of another user's) stays as it was: it matters to the
 * report, not to the watching. */
void mw_recorder_identify(struct mw_recorder *recorder);

/* A first sample, and a look at the address space, before anything is attached; what can't be had is left unknown. */
void mw_recorder_look_first(struct mw_recorder *recorder);
/* While the process is stopped to have its hooks planted: its mappings, and who it is if it was another before. */
struct mw_error *mw_recorder_before(struct mw_recorder *recorder) MW_MUST_CHECK;
#define MW_RECORDER_RANGES 80
/* Memory of memwatch's own in a process, bytes. */
struct mw_recorder_own {
	uint64_t resident, mapped;
	const struct mw_engine_range *ranges; /* where it is; for a last sample only */
	size_t range_count;
};
/* What mw_engine_options.sample is to do. `own` is taken out of what is read; NULL: there is none. */
void mw_recorder_sample(struct mw_recorder *recorder, pid_t tid, uint64_t time_ns, bool last,
			const struct mw_recorder_own *own);
/* What the engine is to emit events to, of which those later than the window's end are not recorded: they may come as
 * long as the hooks stand. Good as long as the recorder. */
struct mw_event_sink mw_recorder_sink(struct mw_recorder *recorder);
/*
 * Look at the address spaces of those processes whose windows have ended and which are still watched: while the hooks
 * stand, nothing of what is seen has come unseen. Nobody waits for it: it is done by a thread of its own, and `engine`
 * runs meanwhile, at least once. What can't be had is left unknown. Errors: those of the engine's run().
 */
struct mw_error *mw_looks_take(struct mw_recorder *recorders, size_t count, struct mw_engine *engine) MW_MUST_CHECK;

/* The window's last sample has been taken, and looks: what becomes of the process from now on is not of the window. */
void mw_recorder_close(struct mw_recorder *recorder);

/* The window is over: the last sample is made that of its end, and emitted. Errors: MEMORY. */
struct mw_error *mw_recorder_finish(struct mw_recorder *recorder, const struct mw_window_info *window) MW_MUST_CHECK;

/* Allocations and frees of heap and vm blocks seen until now. */
uint64_t mw_recorder_events(const struct mw_recorder *recorder);

/* The engine's figures, with those of memwatch's own. False: there are none. */
bool mw_recorder_stats(const struct mw_recorder *recorder, struct mw_engine_stats *out);
/* Have all those of a session sample with the intervals that keep to its budget; once every MW_BUDGET_LOOK_NS. Memwatch's
 * own CPU time is theirs by how much was recorded of each. */
void mw_recorders_keep_budget(struct mw_recorder *recorders, size_t count);
/* Make the report on the process, which is number `process` there; after detach, before the engine's destroy. */
struct mw_error *mw_recorder_report(struct mw_recorder *recorder, struct mw_reports *reports,
				    size_t process) MW_MUST_CHECK;

/* --- emission ----------------------------------------------------------------------------------------------------- */

/* Before anything is emitted. */
void mw_emitter_add(struct mw_emitter *emitter, const struct mw_store_visitor *receiver);
/* Who the process is, and what is known of it: at the window's start, and again at its end. Errors: MEMORY. */
struct mw_error *mw_emitter_target(struct mw_emitter *emitter, const struct mw_recorder *recorder) MW_MUST_CHECK;
/* Hooks and modules that have come since. Once a second. Errors: MEMORY. */
struct mw_error *mw_emitter_news(struct mw_emitter *emitter, const struct mw_recorder *recorder) MW_MUST_CHECK;
/* Errors: MEMORY. */
struct mw_error *mw_emitter_sample(const struct mw_emitter *emitter,
				   const struct mw_stored_sample *sample) MW_MUST_CHECK;
/* What of the process is outstanding at that moment can be compared with other moments. Without memory it is forgotten.
 */
void mw_emitter_mark(struct mw_emitter *emitter, uint64_t time_ns);
/* The window is over, all samples are emitted. Errors: MEMORY. */
struct mw_error *mw_emitter_end(struct mw_emitter *emitter, const struct mw_recorder *recorder,
				const struct mw_window_info *window) MW_MUST_CHECK;
/* Symbols whose answers go to those who receive symbols; `inner` must outlive them, and the emitter. */
struct mw_view_symbols mw_emitter_symbols(struct mw_emitter *emitter, const struct mw_view_symbols *inner);
void mw_emitter_deinit(struct mw_emitter *emitter);

#endif
