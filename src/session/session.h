/* SPDX-License-Identifier: MIT */
/*
 * session.h: processes that are watched for a window: attached to, recorded, and let go whatever happens.
 *
 * What is done with what was seen (a report, a live table) is the business of whoever holds the session. All is to be
 * called from memwatch's first thread: it traces.
 */
#ifndef MW_SESSION_SESSION_H
#define MW_SESSION_SESSION_H

#include "session/follow.h"
#include "session/launch.h"
#include "session/options.h"
#include "session/outputs.h"
#include "session/process_setup.h"
#include "session/recorder.h"
#include "store/writer.h"

struct mw_session {
	const struct mw_session_options *options;
	struct mw_engine *engine;
	struct mw_recorder *recorders; /* in the order of the command line, then as they were found; they do not move */
	size_t count, capacity;
	struct mw_follow follow;        /* their children, where those are watched as well */
	struct mw_store_writer *writer; /* NULL: no recording is kept */
	struct mw_emitter *emitters;    /* one a recorder */
	struct mw_watched_set watched;  /* the models of the processes */
	struct mw_reports reports;      /* what is to be reported of them in the end, if `wish` is set */
	const struct mw_reports_wish *wish;
	uint64_t marks[MW_PROCESS_SETUP_MARKS]; /* that were asked for, CLOCK_MONOTONIC; further ones are not taken */
	size_t mark_count;
	struct mw_launch launch;
	uint64_t cpu_begin_ns,
		own_cpu_ns;     /* memwatch's CPU time: when it began to attach; in all, once it has let go */
	uint64_t budget_own_ns; /* memwatch's CPU time when it was last looked at what it costs */
	struct mw_progress progress;
	bool unnamed;              /* names are missing in the report */
	struct mw_error *detached; /* what went wrong when letting go, to be reported when all else is done */
	/* Called when it happens, if not NULL; in the engine's thread, which serves the processes: not for long. */
	void (*begun)(void *context);                                     /* the windows have begun */
	void (*sampled)(void *context, size_t process, uint64_t time_ns); /* a process, about once a second */
	void (*turn)(void *context);   /* while the windows run, some times a second: the engine has a break */
	void (*ending)(void *context); /* they end: no turn comes after it */
	void *context;
	bool nameless;       /* the recording does not get its name: nobody has asked for it yet */
	void (*leave)(void); /* as mw_watchdog_plan has it */
	bool none_left_out;  /* one that can't be attached to is an error, also where it was found by its name */
	bool stays_by;       /* whoever watches calls mw_watchdog_end() when there is nothing more to leave */
};

/* Zeroed but for what is borrowed: the options. Its progress is shown where that is wanted. */
void mw_session_init(struct mw_session *session, const struct mw_session_options *options, bool progress);
/* Keep a recording that nobody has asked for: in a file without a name, gone with memwatch, in TMPDIR or what stands for it,
 * which is `*directory`. Before mw_session_prepare(). Errors: SYSTEM. */
struct mw_error *mw_session_keep_unnamed(struct mw_session *session, const char **directory) MW_MUST_CHECK;
/* The processes, an engine, and what the recording (session->writer, which is the session's from now on) is fed by.
 * Nothing is attached. Errors: all. */
struct mw_error *mw_session_prepare(struct mw_session *session) MW_MUST_CHECK;
/* See to it that, whatever the end, nothing stays behind, and these files are removed. Before mw_session_watch(). */
struct mw_error *mw_session_stand_by(struct mw_session *session, const struct mw_partials *partials) MW_MUST_CHECK;
/* From the first attach to the end of the window, and its last figures. Whatever went wrong, the processes are let go,
 * or session->detached says why not: then nothing more is to be done with the session but to end it. */
struct mw_error *mw_session_watch(struct mw_session *session) MW_MUST_CHECK;
/* Watch one more, from now on; between two run() of the engine; mw_session_begun() is to follow. Errors:
 * all; then it runs on as before. */
struct mw_error *mw_session_add(struct mw_session *session, pid_t pid) MW_MUST_CHECK;
/* The window of the one that was added last has begun: say so, and serve all. Errors: MEMORY, those of run(). */
struct mw_error *mw_session_begun(struct mw_session *session) MW_MUST_CHECK;
/* The window of that recorder; an empty one that is over where it ended before that began. Never NULL. */
const struct mw_window_info *mw_session_window(const struct mw_session *session, size_t i);
/* In a copy of memwatch that nothing else is done with (snapshot.h): the reports of all processes, as if their windows
 * ended now. Errors: MEMORY, those of the symbols. */
struct mw_error *mw_session_report_now(struct mw_session *session) MW_MUST_CHECK;
/* Free all, and look once more whether anything was left behind. Takes the error that the session came to (NULL: none)
 * and returns the one to be reported. */
struct mw_error *mw_session_end(struct mw_session *session, struct mw_error *err) MW_MUST_CHECK;

#endif
