/* SPDX-License-Identifier: MIT */
/*
 * recorder.h: all that is kept of one process while it is watched: who it is, its tracker, and what
 * its memory was from second to second; and how that becomes a report.
 */
#ifndef MW_SESSION_RECORDER_H
#define MW_SESSION_RECORDER_H

#include "proc/memory_limit.h"
#include "proc/perf_map.h"
#include "proc/program.h"
#include "session/options.h"
#include "session/space.h"
#include "session/terminal.h"
#include "view/watched.h"

#include <memwatch/engine.h>
#include <memwatch/view.h>

struct mw_emitter;
struct mw_reports;

/* Which engine watches, and for what. */
struct mw_recorder_view {
	struct mw_engine *engine;
	const struct mw_session_options *options;
	struct mw_progress *progress;
	bool *unnamed;                       /* set where reading symbols has failed */
	const struct mw_recorder *recorders; /* of all processes that are watched */
	size_t recorder_count;
};

struct mw_recorder {
	pid_t pid;
	struct mw_program program; /* what it was at first; not known of a command */
	struct mw_perf_place jit;  /* where it says what code in no file is called */
	char *comm, *exe;
	char *executed; /* the path that it was executed by, where `exe` has several (program.h); or NULL */
	char **command;
	size_t command_count;
	struct mw_watched *watched; /* the model of it; borrowed */
	struct mw_event_sink sink;  /* of the window's events: the tracker's, or a recording's that hands on to it */
	const struct mw_recorder_view *view; /* borrowed; set before anything is attached */
	struct mw_emitter *emitter;          /* what is found out goes there; borrowed */
	struct mw_stored_sample newest;      /* may still change: not emitted yet */
	size_t sample_count;                 /* with the newest */
	struct mw_space_snapshot start, end; /* the address space at the window's start and end, where looked at */
	uint64_t end_ns;                     /* when the window ends; UINT64_MAX: not known yet */
	uint64_t settle_ns;                  /* how long that was */
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
	bool launched;
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
void mw_recorder_deinit(struct mw_recorder *recorder);

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
 * A look at the address space at the window's end, while the hooks still stand: nothing of what it sees has come
 * unseen. begin and end are for the thread that the engine runs in, take for any, as the process runs and is served
 * meanwhile. What can't be had is left unknown.
 */
struct mw_recorder_look {
	struct mw_recorder *recorder;
	struct mw_space_ranges blocks;
	struct mw_space_snapshot seen;
	bool taken;
};
void mw_recorder_look_begin(struct mw_recorder *recorder, struct mw_recorder_look *look);
void mw_recorder_look_take(struct mw_recorder_look *look);
void mw_recorder_look_end(struct mw_recorder_look *look);
/*
 * Look at those of the processes whose windows have ended and which are still watched. Nobody waits for it: it is done
 * by a thread of its own, and `engine` runs meanwhile. Errors: those of the engine's run().
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
/* Make the report on the process, which is number `process` there; after detach, before the engine's destroy. */
struct mw_error *mw_recorder_report(struct mw_recorder *recorder, struct mw_reports *reports,
				    size_t process) MW_MUST_CHECK;

#endif
