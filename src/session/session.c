// SPDX-License-Identifier: MIT
/* session.c: see session.h. */
#include "session/session.h"

#include "base/clock.h"
#include "base/reserve.h"
#include "proc/status.h"
#include "session/looks.h"
#include "session/watchdog.h"
#include "tracee/preflight.h"

#include <stdlib.h>

#define RESERVE       (8 << 20) /* bytes, for the detach */
#define MOST_ATTEMPTS 3         /* to attach */

struct mw_recorder_view mw_session_view(struct mw_session *session)
{
	return (struct mw_recorder_view){
		.engine = session->engine,
		.reason = session->options->engine_reason,
		.track_heap = session->options->track_heap,
		.track_vm = session->options->track_vm,
		.depth = session->options->depth,
		.max_memory = session->options->max_memory,
		.progress = &session->progress,
		.unnamed = &session->unnamed,
	};
}

static void show_progress(struct mw_session *session, uint64_t time_ns)
{
	struct mw_progress_window window = {.time_ns = time_ns, .duration_ns = session->options->duration_ns};
	const struct mw_recorder_view view = mw_session_view(session);
	struct mw_engine_stats stats;

	for (size_t i = 0; i < session->count; i++) {
		const struct mw_recorder *recorder = &session->recorders[i];
		struct mw_amount impacting = mw_recorder_impacting(recorder);

		window.impacting.count += impacting.count;
		window.impacting.bytes += impacting.bytes;
		window.events += mw_recorder_events(recorder);
		if (mw_recorder_stats(recorder, &view, &stats))
			window.stood_ns += stats.stood_ns;
		window.processes++;
		if (recorder->sample_count && !recorder->ended)
			window.rss += recorder->newest.rss;
	}
	mw_progress_window(&session->progress, &window);
}

/* What has come since is emitted. Where there is no memory for it now it will be later. */
static void emit_news(struct mw_session *session, size_t i)
{
	const struct mw_recorder_view view = mw_session_view(session);

	mw_error_destroy(mw_emitter_news(&session->emitters[i], &session->recorders[i], &view));
	if (session->writer)
		mw_store_flush(session->writer);
}

/* Marks that were asked for until now, and those that are due, in order of time; `time_ns` is now. */
static void emit_marks(struct mw_session *session, size_t i, uint64_t time_ns)
{
	struct mw_emitter *emitter = &session->emitters[i];
	uint64_t start_ns = mw_clock_ns() - time_ns;

	/* The window is over, and others' go on. */
	if (time_ns > session->recorders[i].end_ns)
		return;

	/* It is some time since `time_ns` was now: the earliest start that was seen is nearest. */
	if (!emitter->start_ns || start_ns < emitter->start_ns)
		emitter->start_ns = start_ns;
	start_ns = emitter->start_ns;
	while (session->mark_count < MW_PROCESS_SETUP_MARKS &&
	       mw_process_setup_take_mark(&session->marks[session->mark_count]))
		session->mark_count++;
	for (;;) {
		uint64_t asked = UINT64_MAX, due = emitter->every_ns ? emitter->next_ns : UINT64_MAX;

		if (emitter->asked < session->mark_count)
			asked = session->marks[emitter->asked] > start_ns ? session->marks[emitter->asked] - start_ns
									  : 0;
		if (asked > time_ns && due > time_ns)
			return;
		mw_emitter_mark(emitter, asked < due ? asked : due);
		if (asked < due)
			emitter->asked++;
		else
			emitter->next_ns += emitter->every_ns;
	}
}

static void on_sample(void *context, pid_t pid, pid_t tid, uint64_t time_ns, bool last)
{
	struct mw_session *session = context;
	struct mw_engine_range places[MW_RECORDER_RANGES];
	struct mw_space_range ranges[MW_RECORDER_RANGES];
	struct mw_recorder_own own = {.ranges = ranges};

	if (session->engine->ops->own_memory)
		session->engine->ops->own_memory(session->engine, pid, &own.resident, &own.mapped);
	if (session->engine->ops->own_ranges && last)
		own.range_count = session->engine->ops->own_ranges(session->engine, pid, places, MW_RECORDER_RANGES);
	for (size_t i = 0; i < own.range_count; i++)
		ranges[i] = (struct mw_space_range){places[i].start, places[i].end};
	for (size_t i = 0; i < session->count; i++) {
		if (session->recorders[i].pid != pid)
			continue;
		mw_recorder_sample(&session->recorders[i], tid, time_ns, last, &own);
		emit_marks(session, i, time_ns);
		emit_news(session, i);
		if (session->sampled)
			session->sampled(session->context, i, time_ns);
	}
	if (session->progress.shown && !last)
		show_progress(session, time_ns);
}

static struct mw_error *on_stopped(void *context, pid_t pid)
{
	struct mw_session *session = context;

	for (size_t i = 0; i < session->count; i++)
		if (session->recorders[i].pid == pid)
			return mw_recorder_before(&session->recorders[i]);
	return NULL;
}

/* One breakpoint can't report to two: processes that share their memory are one to memwatch. */
static struct mw_error *check_shared(const struct mw_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		for (size_t j = i + 1; j < pids->count; j++) {
			struct mw_error *err;

			if (mw_shares_memory(pids->items[i], pids->items[j]) != 1)
				continue;
			err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "processes %d and %d share their memory",
					      (int)pids->items[i], (int)pids->items[j]);
			return mw_error_hint(err, "Give only one of them");
		}
	return NULL;
}

/* So many processes: their models, and who else receives what becomes known of them. */
static struct mw_error *prepare_watched(struct mw_session *session, size_t count)
{
	struct mw_store_visitor model = mw_watched_set_visitor(&session->watched);
	struct mw_store_visitor writer = {.context = NULL};
	struct mw_watched *last;

	session->recorders = calloc(count + 1, sizeof(*session->recorders));
	session->emitters = calloc(count + 1, sizeof(*session->emitters));
	if (!session->recorders || !session->emitters)
		return mw_error_nomem();
	MW_TRY(mw_watched_set_get(&session->watched, (uint32_t)count - 1, &last));
	/* Its symbols are had when the report is made. */
	model.symbol = NULL;
	if (session->writer)
		writer = mw_store_receiver(session->writer);
	if (session->options->no_symbols)
		writer.symbol = NULL;
	for (size_t i = 0; i < count; i++) {
		session->emitters[i] = (struct mw_emitter){.process = (uint32_t)i,
							   .every_ns = session->options->mark_every_ns,
							   .next_ns = session->options->mark_every_ns};
		mw_emitter_add(&session->emitters[i], &model);
		if (session->writer)
			mw_emitter_add(&session->emitters[i], &writer);
	}
	return NULL;
}

static struct mw_error *prepare_attached(struct mw_session *session)
{
	const struct mw_pids *pids = &session->options->pids;

	for (size_t i = 0; i < pids->count; i++)
		MW_TRY(mw_preflight(pids->items[i]));
	MW_TRY(check_shared(pids));
	for (size_t i = 0; i < pids->count; i++)
		MW_TRY(mw_preflight_sharing(pids->items[i]));
	MW_TRY(prepare_watched(session, pids->count));
	for (size_t i = 0; i < pids->count; i++, session->count++)
		MW_TRY(mw_recorder_init(&session->recorders[i], pids->items[i], session->watched.items[i],
					&session->emitters[i]));
	return NULL;
}

static struct mw_error *prepare_launched(struct mw_session *session)
{
	const struct mw_session_options *options = session->options;

	MW_TRY(mw_preflight_proc());
	MW_TRY(prepare_watched(session, 1));
	MW_TRY(mw_launch_start(options->command, &session->launch));
	MW_TRY(mw_recorder_init_launched(&session->recorders[0], session->launch.pid, session->watched.items[0],
					 &session->emitters[0], session->launch.path, options->command,
					 options->command_count));
	session->count = 1;
	return NULL;
}

static struct mw_error *create_engine(struct mw_session *session)
{
	const struct mw_session_options *options = session->options;
	const struct mw_engine_ops *ops = mw_engine_find(options->engine);
	const struct mw_engine_options engine_options = {
		.track_heap = options->track_heap,
		.track_vm = options->track_vm,
		.depth = options->depth,
		.duration_ns = options->duration_ns,
		.max_stopped = options->max_stopped,
		.unsafe = options->unsafe,
		.sample = on_sample,
		.sample_context = session,
		.stopped = on_stopped,
		.stopped_context = session,
		.program = session->launch.pid ? session->launch.path : NULL,
	};

	if (!ops)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "this memwatch was built without engine '%s'",
				       options->engine);
	return ops->create(&engine_options, &session->engine);
}

/* What is asked for is collected from the first event on, and events go into the recording as well. */
static struct mw_error *prepare_recording(struct mw_session *session)
{
	if (session->wish)
		MW_TRY(mw_reports_init(&session->reports, session->wish, session->count));
	for (size_t i = 0; i < session->count; i++) {
		struct mw_watched *watched = session->watched.items[i];

		if (session->wish)
			MW_TRY(mw_reports_collect(&session->reports, watched, false, 0, 0));
		mw_collector_watch(&watched->collector, watched->track);
		if (session->writer)
			MW_TRY(mw_store_sink(session->writer, (uint32_t)i, &watched->sink,
					     &session->recorders[i].sink));
	}
	return NULL;
}

/* All windows have begun: from now on there is a recording, whatever becomes of us. */
static struct mw_error *publish_recording(struct mw_session *session)
{
	return session->writer && !session->nameless ? mw_store_publish(session->writer) : NULL;
}

static struct mw_error *end_recording(struct mw_session *session)
{
	const struct mw_recorder_view view = mw_session_view(session);

	for (size_t i = 0; i < session->count; i++) {
		const struct mw_window_info *window =
			session->engine->ops->window(session->engine, session->recorders[i].pid);

		if (window)
			emit_marks(session, i, window->length_ns);
		MW_TRY(mw_emitter_end(&session->emitters[i], &session->recorders[i], &view));
	}
	return NULL;
}

/*
 * A guard that cleans up after a memwatch that was killed may trace any thread: it is waited for. Is it worth another
 * try, after attempt number `i`?
 */
static bool may_try_again(const struct mw_recorder *recorder, const struct mw_error *err, unsigned i)
{
	if (mw_error_kind(err) != MW_ERROR_DENIED || i >= MOST_ATTEMPTS || *mw_process_setup_interrupted())
		return false;
	/* It may have let go since it was in the way. */
	return mw_preflight_await_guard(recorder->pid) || i <= 1;
}

static struct mw_error *attach(struct mw_session *session, struct mw_recorder *recorder)
{
	for (unsigned i = 1;; i++) {
		const struct mw_event_sink sink = mw_recorder_sink(recorder);
		struct mw_error *err =
			session->engine->ops->attach(session->engine, recorder->pid, recorder->launched, &sink);

		if (!err || !may_try_again(recorder, err, i))
			return err;
		mw_error_destroy(err);
	}
}

static struct mw_error *start(struct mw_session *session, struct mw_recorder *recorder)
{
	for (unsigned i = 1;; i++) {
		struct mw_error *err = session->engine->ops->start(session->engine, recorder->pid);

		if (!err || !may_try_again(recorder, err, i))
			return err;
		mw_error_destroy(err);
		MW_TRY(attach(session, recorder));
	}
}

/* All that takes long, for all of them, while all run. */
static struct mw_error *attach_all(struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];

		if (!recorder->launched)
			mw_recorder_sample(recorder, mw_live_thread(recorder->pid), 0, false, NULL);
		if (!recorder->launched)
			mw_recorder_look_first(recorder);
		MW_TRY(attach(session, recorder));
	}
	return session->launch.pid ? mw_launch_go(&session->launch) : NULL;
}

/* One is stopped at a time, while those that were started before run, and are served in between. */
static struct mw_error *start_all(struct mw_session *session)
{
	const struct mw_recorder_view view = mw_session_view(session);

	for (size_t i = 0; i < session->count; i++) {
		MW_TRY(start(session, &session->recorders[i]));
		MW_TRY(mw_emitter_target(&session->emitters[i], &session->recorders[i], &view));
		MW_TRY(session->engine->ops->run(session->engine, mw_clock_ns(), NULL));
	}
	return publish_recording(session);
}

/* From the first attach to the end of the window. */
static struct mw_error *watch(struct mw_session *session)
{
	struct mw_error *err = attach_all(session);
	uint64_t deadline = 0;

	if (!err)
		err = start_all(session);
	/*
	 * Whatever failed, that one of them ended or became another meanwhile is the reason. A launched command that is
	 * refused runs on without memwatch, and may have ended by now.
	 */
	for (size_t i = 0; i < session->count && err && !session->options->command; i++)
		err = mw_program_explain(session->recorders[i].pid, &session->recorders[i].program, err);
	if (err)
		return err;
	if (session->begun)
		session->begun(session->context);
	if (session->options->duration_ns)
		deadline = mw_clock_ns() + session->options->duration_ns;
	return session->engine->ops->run(session->engine, deadline, mw_process_setup_interrupted());
}

/* What could not be taken out at once may be now. Without it there is no error; else nothing is to come before that
 * it is taken out. */
static struct mw_error *let_go(struct mw_session *session)
{
	struct mw_error *err = session->engine->ops->detach(session->engine);
	bool clean = false, denied = false;

	if (err)
		err = mw_watchdog_look(err, &clean, &denied);
	if (!clean || denied)
		return err;
	mw_error_destroy(err);
	return NULL;
}

struct mw_error *mw_session_stand_by(struct mw_session *session, const struct mw_partials *partials)
{
	pid_t *pids = calloc(session->count + 1, sizeof(*pids));
	const struct mw_watchdog_plan plan = {
		.pids = pids,
		.count = session->count,
		.partials = *partials,
		.output = session->options->output,
		.max_memory = session->options->max_memory,
		.reached = mw_process_setup_limit_reached,
		.leave = session->leave,
	};
	struct mw_error *err;

	if (!pids)
		return mw_error_nomem();
	for (size_t i = 0; i < session->count; i++)
		pids[i] = session->recorders[i].pid;
	mw_reserve_keep(RESERVE);
	err = mw_watchdog_begin(&plan);
	free(pids);
	return err;
}

/* A command that runs another under valgrind is seen up to there, and nothing of what was asked for. */
static struct mw_error *check_became(const struct mw_session *session)
{
	const struct mw_window_info *window = session->engine->ops->window(session->engine, session->launch.pid);

	return window && window->ended == MW_END_EXEC ? mw_preflight_became(session->launch.pid, "the command") : NULL;
}

/* While what is mapped is still seen: nothing of it comes unseen. */
static struct mw_error *end_windows(struct mw_session *session)
{
	session->engine->ops->end(session->engine);
	for (size_t i = 0; i < session->count; i++) {
		const struct mw_window_info *window =
			session->engine->ops->window(session->engine, session->recorders[i].pid);

		if (window && window->length_ns)
			session->recorders[i].end_ns = window->length_ns;
	}
	return mw_looks_take(session->recorders, session->count, session->engine);
}

/* A command that could not be run is the better reason. */
struct mw_error *mw_session_watch(struct mw_session *session)
{
	struct mw_error *err = watch(session);

	if (!err)
		err = end_windows(session);
	session->detached = let_go(session);
	mw_progress_clear(&session->progress);
	if (session->launch.pid) {
		struct mw_error *not_run = mw_launch_check(&session->launch, session->options->command);

		err = mw_error_first(not_run, err);
		if (!err)
			err = check_became(session);
	}
	if (err || session->detached)
		return err;
	if (!session->stays_by)
		mw_watchdog_end();
	mw_progress_phase(&session->progress, "putting the events in order");
	for (size_t i = 0; i < session->count; i++)
		MW_TRY(mw_recorder_finish(&session->recorders[i],
					  session->engine->ops->window(session->engine, session->recorders[i].pid)));
	return end_recording(session);
}

/* Where memwatch has failed, or could not let go, nothing of it is attached any more, but something may be left. */
static struct mw_error *see_to_the_end(struct mw_error *err)
{
	bool clean = true, denied;

	if (err)
		err = mw_watchdog_look(err, &clean, &denied);
	if (!clean)
		mw_watchdog_exec(err);
	mw_watchdog_end();
	return err;
}

void mw_session_init(struct mw_session *session, const struct mw_session_options *options, bool progress)
{
	*session = (struct mw_session){.options = options, .launch = {.go_fd = -1, .error_fd = -1}};
	mw_progress_init(&session->progress, progress);
}

struct mw_error *mw_session_prepare(struct mw_session *session)
{
	MW_TRY(session->options->command ? prepare_launched(session) : prepare_attached(session));
	for (size_t i = 0; i < session->count && session->options->duration_ns; i++)
		session->recorders[i].end_ns = session->options->duration_ns;
	MW_TRY(prepare_recording(session));
	return create_engine(session);
}

struct mw_error *mw_session_end(struct mw_session *session, struct mw_error *err)
{
	/* That a process could not be let go is worse than whatever came before. */
	err = mw_error_first(session->detached, err);
	mw_progress_deinit(&session->progress);
	if (session->engine)
		session->engine->ops->destroy(session->engine);
	mw_launch_deinit(&session->launch);
	mw_store_destroy(session->writer);
	for (size_t i = 0; i < session->count; i++) {
		mw_emitter_deinit(&session->emitters[i]);
		mw_recorder_deinit(&session->recorders[i]);
	}
	mw_reports_deinit(&session->reports);
	mw_watched_set_deinit(&session->watched);
	free(session->emitters);
	free(session->recorders);
	return see_to_the_end(err);
}
