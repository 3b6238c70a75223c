// SPDX-License-Identifier: MIT
/* session.c: see session.h. */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/reserve.h"
#include "proc/status.h"
#include "session/process_setup.h"
#include "session/select.h"
#include "session/watchdog.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESERVE       (8 << 20)           /* bytes, for the detach */
#define MOST_ATTEMPTS 3                   /* to attach */
#define TURN_NS       UINT64_C(250000000) /* while it settles, until what is shown of it is brought up to date */
#define BREAK_NS      UINT64_C(50000000)  /* between two breaks of the engine where something else is to be done */

static void show_progress(struct mw_session *session, uint64_t time_ns)
{
	struct mw_progress_window window = {.time_ns = time_ns, .duration_ns = session->options->duration_ns};
	struct mw_engine_stats stats;

	for (size_t i = 0; i < session->count; i++) {
		const struct mw_recorder *recorder = &session->recorders[i];
		struct mw_track_totals totals;

		for (enum mw_kind kind = MW_KIND_HEAP; kind <= MW_KIND_VM; kind++) {
			mw_track_totals(recorder->watched->track, kind, &totals);
			window.impacting.count += totals.impacting.count;
			window.impacting.bytes += totals.impacting.bytes;
		}
		window.events += mw_recorder_events(recorder);
		if (mw_recorder_stats(recorder, &stats))
			window.stood_ns += stats.stood_ns;
		window.processes++;
		if (recorder->sample_count && !recorder->ended)
			window.rss += recorder->newest.rss;
	}
	mw_progress_window(&session->progress, &window);
}

const struct mw_window_info *mw_session_window(const struct mw_session *session, size_t i)
{
	static const struct mw_window_info none = {.ended = MW_END_EXIT, .over = true, .gone = true};
	const struct mw_window_info *window = session->engine->ops->window(session->engine, session->recorders[i].key);

	return window ? window : &none;
}

static bool is_over(const struct mw_session *session, size_t i)
{
	return mw_session_window(session, i)->over;
}

/* What has come since is emitted. Where there is no memory for it now it will be later. */
static void emit_news(struct mw_session *session, size_t i)
{
	mw_error_destroy(mw_emitter_news(&session->emitters[i], &session->recorders[i]));
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
	struct mw_recorder_own own = {.ranges = places};

	session->engine->ops->own_memory(session->engine, pid, &own.resident, &own.mapped);
	if (last)
		own.range_count = session->engine->ops->own_ranges(session->engine, pid, places, MW_RECORDER_RANGES);
	for (size_t i = 0; i < session->count; i++) {
		if (session->recorders[i].key != pid)
			continue;
		mw_recorder_sample(&session->recorders[i], tid, time_ns, last, &own);
		emit_marks(session, i, time_ns);
		emit_news(session, i);
		if (session->sampled)
			session->sampled(session->context, i, time_ns);
	}
	if (session->progress.shown && !last && time_ns <= session->recorders[0].end_ns)
		show_progress(session, time_ns);
}

static struct mw_error *on_stopped(void *context, pid_t pid)
{
	struct mw_session *session = context;

	for (size_t i = 0; i < session->capacity; i++)
		if (session->recorders[i].key == pid)
			return mw_recorder_before(&session->recorders[i]);
	return NULL;
}

static void on_forked(void *context, pid_t child, pid_t parent)
{
	struct mw_session *session = context;

	if (session->follow.births < 0)
		mw_follow_note(&session->follow, child, parent);
}

static bool follows(const struct mw_session_options *options)
{
	return options->children || (options->command && !options->no_children);
}

/* The model of number `i`, and who else receives what becomes known of it. */
static struct mw_error *prepare_one(struct mw_session *session, size_t i)
{
	struct mw_store_visitor model = mw_watched_set_visitor(&session->watched);
	struct mw_store_visitor writer = {.context = NULL};
	struct mw_emitter *emitter = &session->emitters[i];
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(&session->watched, (uint32_t)i, &watched));
	/* Its symbols are had when the report is made. */
	model.symbol = NULL;
	if (session->writer)
		writer = mw_store_receiver(session->writer);
	if (session->options->no_symbols)
		writer.symbol = NULL;
	*emitter = (struct mw_emitter){.process = (uint32_t)i,
				       .every_ns = session->options->mark_every_ns,
				       .next_ns = session->options->mark_every_ns,
				       .asked = session->mark_count};
	mw_emitter_add(emitter, &model);
	if (session->writer)
		mw_emitter_add(emitter, &writer);
	return NULL;
}

/* So many processes, and their children. */
static struct mw_error *prepare_watched(struct mw_session *session, size_t count)
{
	session->capacity = count + (follows(session->options) ? MW_FOLLOW_MAX : 0);
	session->recorders = calloc(session->capacity + 1, sizeof(*session->recorders));
	session->emitters = calloc(session->capacity + 1, sizeof(*session->emitters));
	if (!session->recorders || !session->emitters)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		MW_TRY(prepare_one(session, i));
	return NULL;
}
static struct mw_error *prepare_attached(struct mw_session *session)
{
	MW_FREE pid_t *pids = calloc(session->options->pids.count + 1, sizeof(*pids));
	size_t count;

	if (!pids)
		return mw_error_nomem();
	MW_TRY(mw_select_watchable(session->options, pids, &count, &session->follow));
	MW_TRY(prepare_watched(session, count));
	for (; session->count < count; session->count++)
		mw_recorder_init(&session->recorders[session->count], pids[session->count],
				 session->watched.items[session->count], &session->emitters[session->count]);
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
	struct mw_engine_options engine_options = {
		.track_heap = options->track_heap,
		.track_vm = options->track_vm,
		.python_objects = options->python_objects,
		.depth = options->depth,
		.duration_ns = options->duration_ns,
		.max_stopped = options->max_stopped,
		.sample_interval = options->sample_interval,
		.budget = options->budget,
		.overload = options->overload,
		.max_wait = options->max_wait,
		.unsafe = options->unsafe,
		.sample = on_sample,
		.sample_context = session,
		.stopped = on_stopped,
		.stopped_context = session,
		.forked = follows(options) ? on_forked : NULL,
		.forked_context = session,
		.program = session->launch.pid ? session->launch.path : NULL,
	};

	if (!ops)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "this memwatch was built without engine '%s'",
				       options->engine);
	if (follows(options))
		mw_follow_listen(&session->follow);
	engine_options.wakes = session->follow.births >= 0;
	engine_options.wake_fd = session->follow.births;
	return ops->create(&engine_options, &session->engine);
}

/* What is asked for is collected from the first event on, and events go into the recording as well. */
static struct mw_error *record_one(struct mw_session *session, size_t i)
{
	const struct mw_session_options *options = session->options;
	struct mw_recorder *recorder = &session->recorders[i];
	struct mw_watched *watched = session->watched.items[i];

	if (options->duration_ns)
		recorder->end_ns = options->duration_ns;
	recorder->settles = options->leaks || (options->duration_ns && options->settle_ns);
	recorder->session = session;
	if (session->reports.items)
		MW_TRY(mw_reports_collect(&session->reports, watched, false, 0, 0));
	mw_collector_watch(&watched->collector, watched->track);
	return session->writer ? mw_store_sink(session->writer, (uint32_t)i, &watched->sink, &recorder->sink) : NULL;
}

static struct mw_error *prepare_recording(struct mw_session *session)
{
	if (session->wish)
		MW_TRY(mw_reports_init(&session->reports, session->wish, session->capacity));
	session->reports.count = session->wish ? session->count : 0;
	for (size_t i = 0; i < session->count; i++)
		MW_TRY(record_one(session, i));
	return NULL;
}

static struct mw_error *end_recording(struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		emit_marks(session, i, mw_session_window(session, i)->length_ns);
		MW_TRY(mw_emitter_end(&session->emitters[i], &session->recorders[i], mw_session_window(session, i)));
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

/* Also where no block will be recorded it is to be known that not all would be. */
static struct mw_error *announce_sampling(const struct mw_session *session, struct mw_recorder *recorder)
{
	const struct mw_event_sink sink = mw_recorder_sink(recorder);
	uint16_t number;

	return sink.interval(sink.context, session->options->sample_interval, &number);
}

static struct mw_error *start(struct mw_session *session, struct mw_recorder *recorder)
{
	MW_TRY(announce_sampling(session, recorder));
	for (unsigned i = 1;; i++) {
		struct mw_error *err = session->engine->ops->start(session->engine, recorder->pid);

		if (!err || !may_try_again(recorder, err, i))
			return err;
		mw_error_destroy(err);
		MW_TRY(attach(session, recorder));
	}
}

/* The last of the processes takes that place, whose own is not watched. */
static void give_place(struct mw_session *session, size_t i)
{
	struct mw_recorder *recorder = &session->recorders[i], *last = &session->recorders[--session->count];
	const struct mw_recorder before = *recorder;
	pid_t pid = last->pid;

	mw_recorder_deinit(recorder);
	if (recorder != last) {
		mw_recorder_deinit(last);
		mw_recorder_init(recorder, pid, before.watched, before.emitter);
		recorder->sink = before.sink;
		recorder->session = before.session;
		recorder->end_ns = before.end_ns;
		recorder->settles = before.settles;
	}
	session->reports.count = session->reports.count ? session->count : 0;
}

/* All that takes long, for all of them, while all run. */
static struct mw_error *attach_all(struct mw_session *session)
{
	for (size_t i = 0; i < session->count;) {
		struct mw_recorder *recorder = &session->recorders[i];
		struct mw_error *err;

		if (session->options->heap_before)
			mw_recorder_look_at_heap_before(recorder);
		if (!recorder->launched)
			mw_recorder_look_first(recorder);
		err = attach(session, recorder);
		if (!err) {
			i++;
			continue;
		}
		if (session->count == 1 || session->options->command || session->none_left_out)
			return err;
		err = mw_program_explain(recorder->pid, &recorder->program, err);
		MW_TRY(mw_select_leave_out(session->options, &session->follow, recorder->pid, recorder->comm, err));
		give_place(session, i);
	}
	return session->launch.pid ? mw_launch_go(&session->launch) : NULL;
}

/* One is stopped at a time, while those that were started before run, and are served in between. */
static struct mw_error *start_all(struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];
		struct mw_error *err = start(session, recorder);

		if (err && session->count > 1 && !session->none_left_out)
			err = mw_select_leave_out(session->options, &session->follow, recorder->pid, recorder->comm,
						  err);
		MW_TRY(err);
		MW_TRY(mw_emitter_target(&session->emitters[i], recorder));
		MW_TRY(session->engine->ops->run(session->engine, mw_clock_ns(), NULL));
	}
	/* From now on there is a recording, whatever becomes of us. */
	return session->writer && !session->nameless ? mw_store_publish(session->writer) : NULL;
}

/* That process is watched from now on. */
static struct mw_error *begin_one(struct mw_session *session, size_t i)
{
	struct mw_recorder *recorder = &session->recorders[i];
	struct mw_error *err;

	MW_TRY(mw_watchdog_add(recorder->pid));
	mw_recorder_look_first(recorder);
	err = attach(session, recorder);
	if (!err)
		err = start(session, recorder);
	if (err)
		mw_watchdog_forget_last();
	return err;
}

/* What had that process's number before has another key. */
static void retire(struct mw_session *session, pid_t pid)
{
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];
		pid_t key = -2 - (pid_t)i;

		if (recorder->key != pid || !is_over(session, i))
			continue;
		session->engine->ops->retire(session->engine, pid, key);
		recorder->key = key;
	}
}

struct mw_error *mw_session_add(struct mw_session *session, pid_t pid)
{
	size_t i = session->count;
	struct mw_recorder *recorder = &session->recorders[i];
	struct mw_error *err;

	MW_TRY(mw_preflight(pid));
	MW_TRY(mw_preflight_sharing(pid));
	MW_TRY(prepare_one(session, i));
	retire(session, pid);
	mw_recorder_init(recorder, pid, session->watched.items[i], &session->emitters[i]);
	err = record_one(session, i);
	if (!err)
		err = begin_one(session, i);
	if (err) {
		mw_emitter_deinit(&session->emitters[i]);
		mw_recorder_deinit(recorder);
		return mw_error_worse(err, mw_watched_reset(session->watched.items[i]));
	}
	session->count++;
	session->reports.count = session->reports.items ? session->count : 0;
	return NULL;
}

struct mw_error *mw_session_begun(struct mw_session *session)
{
	size_t last = session->count - 1;

	MW_TRY(mw_emitter_target(&session->emitters[last], &session->recorders[last]));
	return session->engine->ops->run(session->engine, mw_clock_ns(), NULL);
}

static bool all_over(const struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++)
		if (!is_over(session, i))
			return false;
	return true;
}

/* Has the command ended, and what it has become? Its children may live on. */
static bool command_ended(const struct mw_session *session)
{
	if (!session->launch.pid || session->options->duration_ns)
		return false;
	for (size_t i = 0; i < session->count; i++)
		if (session->recorders[i].pid == session->launch.pid && !is_over(session, i))
			return false;
	return mw_state_is_end(mw_state_read(session->launch.pid));
}

static void rest_until(uint64_t time_ns)
{
	uint64_t now = mw_clock_ns();
	struct timespec span = {.tv_nsec = time_ns > now ? (long)(time_ns - now) : 0};

	nanosleep(&span, NULL);
}

/* Until the windows' end. What is looked at meanwhile: what it costs, where there is a budget, and the children. */
static struct mw_error *run_windows(struct mw_session *session, uint64_t deadline)
{
	const volatile sig_atomic_t *interrupted = mw_process_setup_interrupted();
	static const volatile sig_atomic_t command_is_over = MW_STOP_INTERRUPT;
	bool children = follows(session->options);
	uint64_t turn = children        ? MW_FOLLOW_SLICE_NS
			: session->turn ? BREAK_NS
					: MW_BUDGET_LOOK_NS,
		 now, budget_ns = 0;

	if (!children && !session->options->budget && !session->turn)
		return session->engine->ops->run(session->engine, deadline, interrupted);
	while (!*interrupted && ((now = mw_clock_ns()) < deadline || !deadline)) {
		uint64_t until = !deadline || now + turn < deadline ? now + turn : deadline;

		if (session->options->budget && now >= budget_ns) {
			mw_recorders_keep_budget(session->recorders, session->count);
			budget_ns = now + MW_BUDGET_LOOK_NS;
		}
		MW_TRY(session->engine->ops->run(session->engine, until, interrupted));
		if (command_ended(session))
			return session->engine->ops->run(session->engine, 0, &command_is_over);
		if (children)
			MW_TRY(mw_follow_look(session, all_over(session)));
		if (session->turn)
			session->turn(session->context);
		if (!all_over(session))
			continue;
		if (!mw_follow_pending(&session->follow))
			break;
		rest_until(until);
	}
	/* The engine may not have seen it, which has the reason for the windows' end. */
	return *interrupted ? session->engine->ops->run(session->engine, 0, interrupted) : NULL;
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
	return run_windows(session, deadline);
}

/* What could not be taken out at once may be now. Without it there is no error; else nothing is to come before that
 * it is taken out. */
static struct mw_error *let_go(struct mw_session *session)
{
	struct mw_error *err = session->engine->ops->detach(session->engine);
	bool denied;

	if (!err || !mw_watchdog_look(&denied) || denied)
		return err;
	mw_error_destroy(err);
	return NULL;
}

struct mw_error *mw_session_stand_by(struct mw_session *session, const struct mw_partials *partials)
{
	MW_FREE pid_t *pids = calloc(session->count + 1, sizeof(*pids));
	const struct mw_watchdog_plan plan = {
		.pids = pids,
		.count = session->count,
		.more = session->capacity - session->count,
		.output = session->options->output,
		.max_memory = session->options->max_memory,
		.reached = mw_process_setup_limit_reached,
		.leave = session->leave,
	};
	struct mw_partials all = *partials;

	if (!pids)
		return mw_error_nomem();
	for (size_t i = 0; i < session->count; i++)
		pids[i] = session->recorders[i].pid;
	mw_reserve_keep(RESERVE);
	/* Where the file system has no files without a name, the recording has one before it is published. */
	if (session->writer)
		all.paths[MW_PARTIALS_MAX - 1] = mw_store_partial(session->writer);
	mw_process_setup_partials(&all);
	return mw_watchdog_begin(&plan);
}

/* A command that runs another under valgrind is seen up to there, and nothing of what was asked for. */
static struct mw_error *check_became(const struct mw_session *session)
{
	if (session->count > 1 || mw_session_window(session, 0)->ended != MW_END_EXEC)
		return NULL;
	return mw_preflight_became(session->launch.pid, "the command");
}

/* At heaps, where the engine's tracing is not in the way of that: before hooks are lifted what is freed until then is
 * recorded, so that no block is taken for another at its address. */
static void look_at_heaps(struct mw_session *session, bool attached)
{
	const struct mw_engine_ops *ops = session->engine->ops;

	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];
		const char *reason, *used = ops->used ? ops->used(session->engine, recorder->key, &reason) : NULL;
		bool traces = strcmp(used ? used : ops->name, "jump") != 0;

		if (recorder->to_look && attached != traces)
			mw_recorder_look_at_heap(recorder);
	}
}

static bool any_settles(const struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++)
		if (session->recorders[i].settles && !is_over(session, i))
			return true;
	return false;
}

/*
 * The windows are over: only frees are still recorded, and what is of the windows' ends is read before.
 * A signal ends that, and so does the end of the last process.
 */
static struct mw_error *settle(struct mw_session *session)
{
	const volatile sig_atomic_t *interrupted = mw_process_setup_interrupted();
	uint64_t deadline = mw_clock_ns() + session->options->settle_ns, now;
	struct mw_error *err = NULL;

	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];

		if (!recorder->settles || is_over(session, i))
			continue;
		on_sample(session, recorder->pid, mw_live_thread(recorder->pid), recorder->end_ns, true);
		mw_recorder_close(recorder);
	}
	session->engine->ops->settle(session->engine);
	look_at_heaps(session, true);
	while (!err && any_settles(session) && !*interrupted && (now = mw_clock_ns()) < deadline) {
		mw_progress_settling(&session->progress, deadline - now);
		err = session->engine->ops->run(session->engine, deadline - now < TURN_NS ? deadline : now + TURN_NS,
						interrupted);
	}
	return err;
}

/* While what is mapped is still seen: nothing of it comes unseen. */
static struct mw_error *end_windows(struct mw_session *session)
{
	bool interrupted = *mw_process_setup_interrupted(), leaks = session->options->leaks;
	uint64_t begin_ns = mw_clock_ns();
	struct mw_error *err;
	size_t ended = 0;

	if (session->ending)
		session->ending(session->context);
	session->engine->ops->end(session->engine);
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];
		const struct mw_window_info *window = mw_session_window(session, i);

		if (window->length_ns)
			recorder->end_ns = window->length_ns;
		recorder->to_look = leaks && !is_over(session, i);
		ended += leaks && !recorder->to_look;
		/* Where its window was over before, some frees may have come. */
		recorder->settles &= recorder->settling || ((!interrupted || leaks) && !is_over(session, i));
	}
	if (ended)
		fprintf(stderr, "memwatch: %zu heap%s not looked at, as the process's window had ended\n", ended,
			ended == 1 ? " was" : "s were");
	/* What waits to be served, of the window's as well. */
	err = session->engine->ops->run(session->engine, mw_clock_ns(), NULL);
	if (!err)
		err = mw_looks_take(session->recorders, session->count, session->engine);
	if (!err && (!interrupted || leaks))
		err = settle(session);
	for (size_t i = 0; i < session->count; i++)
		if (session->recorders[i].settles)
			session->recorders[i].settle_ns = mw_clock_ns() - begin_ns;
	return err;
}

/* A command that could not be run is the better reason. */
struct mw_error *mw_session_watch(struct mw_session *session)
{
	struct mw_error *err;

	session->cpu_begin_ns = mw_clock_ns_of(CLOCK_PROCESS_CPUTIME_ID);
	err = watch(session);
	if (!err)
		err = end_windows(session);
	session->detached = let_go(session);
	if (!err && !session->detached)
		look_at_heaps(session, false);
	session->own_cpu_ns = mw_clock_ns_of(CLOCK_PROCESS_CPUTIME_ID) - session->cpu_begin_ns;
	mw_progress_clear(&session->progress);
	if (session->launch.pid) {
		struct mw_error *not_run = mw_launch_check(&session->launch, session->options->command);

		err = mw_error_first(not_run, err);
		if (!err)
			err = check_became(session);
	}
	if (err || session->detached)
		return err;
	mw_follow_tell(&session->follow);
	if (!session->stays_by)
		mw_watchdog_end(NULL);
	mw_progress_phase(&session->progress, "putting the events in order");
	for (size_t i = 0; i < session->count; i++)
		MW_TRY(mw_recorder_finish(&session->recorders[i], mw_session_window(session, i)));
	return end_recording(session);
}

/* When its window ends, were it now. */
static uint64_t length_until_now(const struct mw_session *session, size_t i, const struct mw_window_info *window)
{
	uint64_t start_ns = session->emitters[i].start_ns;
	/* A clock that nobody sets, once it is known. */
	uint64_t now =
		start_ns ? mw_clock_ns() - start_ns : (uint64_t)(mw_clock_realtime_ns() - window->started_realtime_ns);

	return now < session->recorders[i].end_ns ? now : session->recorders[i].end_ns;
}

struct mw_error *mw_session_report_now(struct mw_session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];
		struct mw_window_info window = *mw_session_window(session, i);

		if (!window.over) {
			window.length_ns = length_until_now(session, i, &window);
			window.ended = MW_END_RUNNING;
			on_sample(session, recorder->key, mw_live_thread(recorder->pid), window.length_ns, true);
		}
		MW_TRY(mw_recorder_finish(recorder, &window));
		MW_TRY(mw_emitter_end(&session->emitters[i], recorder, &window));
		MW_TRY(mw_recorder_report(recorder, &session->reports, i));
	}
	return NULL;
}

void mw_session_init(struct mw_session *session, const struct mw_session_options *options, bool progress)
{
	*session = (struct mw_session){.options = options, .launch = MW_LAUNCH_NONE, .follow = MW_FOLLOW_NONE};
	mw_progress_init(&session->progress, progress);
}

struct mw_error *mw_session_keep_unnamed(struct mw_session *session, const char **directory)
{
	const char *given = getenv("TMPDIR");
	char path[PATH_MAX];

	*directory = given && *given ? given : access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
	(void)snprintf(path, sizeof(path), "%s/memwatch-%d-%ld.mw", *directory, (int)getpid(), (long)time(NULL));
	session->nameless = true;
	return mw_store_create(path, &session->writer);
}

struct mw_error *mw_session_prepare(struct mw_session *session)
{
	MW_TRY(session->options->command ? prepare_launched(session) : prepare_attached(session));
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
	mw_follow_deinit(&session->follow);
	mw_reports_deinit(&session->reports);
	mw_watched_set_deinit(&session->watched);
	free(session->emitters);
	free(session->recorders);
	/* Nothing of memwatch is attached any more, but something may be left. */
	mw_watchdog_end(err);
	return err;
}
