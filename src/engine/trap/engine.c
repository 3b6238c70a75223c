// SPDX-License-Identifier: MIT
/* engine.c: the trap engine as others see it (engine.h, trap.h). */
#include "base/fault.h"
#include "engine/engines.h"
#include "engine/trap/trap.h"
#include "proc/peek.h"
#include "unwind/fallback.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_USEC 20000

static struct sigaction old_alarm;

static void on_alarm(int signal)
{
	/* Its only purpose is to make waitpid return. */
	(void)signal;
}

/*
 * A wait can't be given a timeout. A periodic timer interrupts it; that a tick may fall between a check
 * and the wait does not matter, as the next one comes.
 */
static struct mw_error *tick_start(struct trap_engine *engine)
{
	const struct itimerval period = {{0, TICK_USEC}, {0, TICK_USEC}};
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
	int fd = engine->options.wake_fd;

	if (sigaction(SIGALRM, &action, &old_alarm) || setitimer(ITIMER_REAL, &period, NULL))
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot start a timer");
	/* Else the tick does. */
	if (engine->options.wakes && fcntl(fd, F_SETSIG, SIGALRM) == 0 && fcntl(fd, F_SETOWN_EX, &owner) == 0)
		(void)fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
	engine->ticking = true;
	return NULL;
}

static void tick_stop(struct trap_engine *engine)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	if (!engine->ticking)
		return;
	setitimer(ITIMER_REAL, &never, NULL);
	if (engine->options.wakes)
		(void)fcntl(engine->options.wake_fd, F_SETFL, O_NONBLOCK);
	/* A tick that has fallen and is yet to be delivered is thrown away: by the old action it might end memwatch. */
	sigaction(SIGALRM, &ignore, NULL);
	sigaction(SIGALRM, &old_alarm, NULL);
	engine->ticking = false;
}

/*
 * Tracees that stop before anybody has told of them. Mostly the news of the birth is on its way. Where it never comes,
 * as who made the child was killed in the middle of that, the child must neither stay stopped nor keep our breakpoints.
 */
#define PATIENCE_NS UINT64_C(500000000)   /* for the news of a birth */
#define LONG_NS     UINT64_C(10000000000) /* … where the maker is there, and may not have had a CPU */

struct mw_error *trap_orphan_keep(struct trap_engine *engine, pid_t tid, int status)
{
	struct trap_orphan *orphan = mw_map_get(&engine->orphans, (uint64_t)tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		free(mw_map_remove(&engine->orphans, (uint64_t)tid));
		return NULL;
	}
	if (!orphan) {
		MW_FREE struct trap_orphan *fresh = calloc(1, sizeof(*fresh));

		if (!fresh)
			return mw_error_nomem();
		fresh->tid = tid;
		fresh->since_ns = engine->stop_ns;
		MW_TRY(mw_map_set(&engine->orphans, (uint64_t)tid, fresh));
		orphan = MW_TAKE(fresh);
	}
	orphan->status = status;
	return NULL;
}

bool trap_orphan_take(struct trap_engine *engine, pid_t tid, int *status)
{
	struct trap_orphan *orphan = mw_map_remove(&engine->orphans, (uint64_t)tid);

	if (!orphan)
		return false;
	*status = orphan->status;
	free(orphan);
	return true;
}

/* A copy of the process has its breakpoints: how many of them. */
static size_t common(const struct trap_process *process, pid_t tid)
{
	size_t count = 0;

	MW_EACH(patch, process->journal.items, process->journal.count) {
		uint8_t now[MW_OOL_MAX];

		count += !patch->forgotten && mw_remote_read(tid, patch->addr, now, patch->size) == patch->size &&
			 memcmp(now, patch->planted, patch->size) == 0;
	}
	return count;
}

/* Whose is it? One that has ended may have left children. NULL: nobody's that we know. */
static struct trap_process *owner(const struct trap_engine *engine, pid_t tid, bool *maker_lives)
{
	struct trap_process *copied = NULL;
	struct mw_status status;
	size_t most = 0;

	*maker_lives = false;
	if (!mw_error_none(mw_status_read(tid, &status)))
		return NULL;
	for (size_t i = 0; i < engine->process_count; i++) {
		struct trap_process *process = engine->processes[i];
		size_t count;

		if (!process->ended && status.tgid == process->pid)
			return process;
		*maker_lives |= !process->ended && status.ppid == process->pid;
		count = common(process, tid);
		if (count > most) {
			most = count;
			copied = process;
		}
	}
	return copied;
}

/* It is treated as one that was just announced; nobody's is let go as it is. */
static struct mw_error *adopt(struct trap_engine *engine, pid_t tid, struct trap_process *process)
{
	struct trap_thread *thread;
	int status;

	if (!trap_orphan_take(engine, tid, &status))
		return NULL;
	if (!process)
		return mw_error_unless_gone(mw_tracee_detach(tid, 0));
	MW_TRY(trap_thread_add(process, tid, TRAP_NEWBORN, &thread));
	return trap_dispatch(engine, tid, status);
}

/* Nothing else is to be heard: those whose maker was killed before it could tell are found a place, one at a time. */
static struct mw_error *orphans_resolve(struct trap_engine *engine)
{
	uint64_t now = mw_clock_ns();
	void *value;

	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value);) {
		struct trap_orphan *orphan = value;
		struct trap_process *process;
		bool maker_lives;

		if (now - orphan->since_ns <= PATIENCE_NS || now - orphan->looked_ns <= PATIENCE_NS)
			continue;
		orphan->looked_ns = now;
		process = owner(engine, orphan->tid, &maker_lives);
		/* That changes the map. */
		if (!maker_lives || now - orphan->since_ns > LONG_NS)
			return adopt(engine, orphan->tid, process);
	}
	return NULL;
}

/* Is it a thread that is traced by the engine (`context`), or an orphan that it knows of? */
static bool is_known(void *context, pid_t tid)
{
	const struct trap_engine *engine = context;

	return mw_map_get(&engine->threads, (uint64_t)tid) || mw_map_get(&engine->orphans, (uint64_t)tid);
}

/* The status of the first stop is nothing that anybody asks for then. */
static void found(void *context, pid_t pid)
{
	struct trap_engine *engine = context;
	int status;

	if (waitpid(pid, &status, __WALL | WNOHANG) == pid)
		mw_error_destroy(trap_orphan_keep(engine, pid, status));
}

/* Stops that have been waited for, and not been served yet. */
static struct mw_error *keep_heard(struct trap_engine *engine)
{
	struct mw_error *first = NULL;

	for (size_t i = engine->heard.first; i < engine->heard.count; i++) {
		const struct trap_heard *heard = &engine->heard.items[i];

		if (!is_known(engine, heard->tid))
			mw_error_keep_first(&first, trap_orphan_keep(engine, heard->tid, heard->status));
	}
	engine->heard.first = engine->heard.count = 0;
	return first;
}

/* Nothing is watched any more, and a process is gone: the same for all that are there. */
static struct mw_error *orphans_free(struct trap_engine *engine)
{
	struct mw_error *first = keep_heard(engine);
	void *value;

	mw_orphans_find(&engine->finder);
	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value); i = 0) {
		pid_t tid = ((const struct trap_orphan *)value)->tid;
		bool maker_lives;

		mw_error_keep_first(&first, adopt(engine, tid, owner(engine, tid, &maker_lives)));
	}
	return first;
}

#define STEP_NS  UINT64_C(1000000000)
#define MILLIONS UINT64_C(1000000)

/* Was it stopped for more of the last five seconds than it may be (options.max_stopped)? Asked often, looks once a
 * second. */
static bool stands_too_long(struct trap_process *process)
{
	uint32_t most = process->engine->options.max_stopped;
	uint64_t now = trap_now(process), stood = process->stats.stood_ns, span, share;
	struct trap_stood *then;

	if (!most || (process->standstill.count && now - process->standstill.noted_ns < STEP_NS))
		return false;
	process->standstill.noted_ns = now;
	then = &process->standstill.noted[process->standstill.count % TRAP_STANDSTILLS];
	/* What was noted so many steps ago, if there was as much. The attach is before the window. */
	span = now - then->at_ns;
	share = process->standstill.count >= TRAP_STANDSTILLS ? (stood - then->stood_ns) * MILLIONS / span : 0;
	*then = (struct trap_stood){.at_ns = now, .stood_ns = stood};
	process->standstill.count++;
	if (share <= most)
		return false;
	process->stats.limit_stopped = share;
	return true;
}

#define SAMPLE_NS 1000000000u

static struct trap_process *find(const struct mw_engine *base, pid_t pid)
{
	const struct trap_engine *engine = (const struct trap_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->key == pid)
			return engine->processes[i];
	return NULL;
}

static struct mw_error *trap_create(const struct mw_engine_options *options, struct mw_engine **out)
{
	struct trap_engine *engine;
	struct mw_error *err;

	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return mw_error_nomem();
	engine->base.ops = &mw_engine_trap;
	engine->options = *options;
	engine->end = MW_END_INTERRUPT;
	engine->frames = calloc(options->depth, sizeof(*engine->frames));
	engine->raw_frames = calloc(options->depth, sizeof(*engine->raw_frames));
	engine->merged = calloc(options->depth, sizeof(*engine->merged));
	engine->refs = calloc(options->depth, sizeof(*engine->refs));
	engine->functions = calloc(options->depth, sizeof(*engine->functions));
	err = engine->frames && engine->raw_frames && engine->merged && engine->refs && engine->functions
		      ? tick_start(engine)
		      : mw_error_nomem();
	if (err) {
		free(engine->frames);
		free(engine->raw_frames);
		free(engine->merged);
		free(engine->refs);
		free(engine->functions);
		free(engine);
		return err;
	}
	engine->finder = (struct mw_orphans){.known = is_known, .stopped = found, .context = engine};
	mw_orphans_spare(&engine->finder);
	*out = &engine->base;
	return NULL;
}

static void process_destroy(struct trap_process *process)
{
	void *value;

	if (!process)
		return;
	for (size_t i = 0; mw_map_next(&process->planted.breakpoints, &i, &value);)
		free(value);
	mw_map_deinit(&process->planted.breakpoints);
	mw_map_deinit(&process->planted.slots);
	mw_map_deinit(&process->threads);
	mw_unwinder_destroy(process->unwinder);
	mw_journal_deinit(&process->journal);
	mw_journal_deinit(&process->acts.journal);
	mw_survey_deinit(&process->survey);
	free(process->rescue.index);
	free(process->rescue.addrs);
	free(process->rescue.return_sps);
	mw_seccomp_policy_deinit(&process->policy);
	free(process->planted.caves);
	free(process->signals.masking);
	free(process);
}

static void seed(struct trap_process *process)
{
	uint64_t time = mw_clock_ns() + (uint64_t)process->pid;

	for (size_t i = 0; i < sizeof(process->random) / sizeof(process->random[0]); i++)
		process->random[i] = (unsigned short)(time >> 16 * i);
}

static struct mw_error *process_create(struct trap_engine *engine, pid_t pid, bool launched,
				       const struct mw_event_sink *sink, struct trap_process **out)
{
	struct trap_process *process = calloc(1, sizeof(*process));
	struct mw_unwinder *inner = NULL;
	struct mw_error *err;

	if (!process)
		return mw_error_nomem();
	process->engine = engine;
	process->pid = process->key = pid;
	process->launched = launched;
	process->sink = *sink;
	process->interval = engine->options.sample_interval;
	seed(process);
	process->arch = mw_arch_find(mw_target_machine());
	err = mw_survey_init(&process->survey, process->arch, pid, &engine->options);
	if (!err)
		err = mw_unwinder_libunwind(process->survey.modules, process->arch, &inner);
	if (!err)
		err = mw_unwinder_memo(inner, process->arch, &process->unwinder);
	if (err) {
		process_destroy(process);
		return err;
	}
	process->fallback = mw_unwinder_libunwind_fallback(inner);
	process->fallback->made = &process->survey.java.made;
	process->fallback->javascript = mw_v8_layout(process->survey.v8);
	*out = process;
	return NULL;
}

/* It runs as before, and is none of the engine's any more. */
static struct mw_error *remove_process(struct trap_engine *engine, struct trap_process *process)
{
	struct mw_error *err = trap_process_detach(process, MW_END_LOST);

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i] == process) {
			engine->process_count--;
			memmove(&engine->processes[i], &engine->processes[i + 1],
				(engine->process_count - i) * sizeof(struct trap_process *));
			break;
		}
	process_destroy(process);
	return err;
}

/* Nobody is stopped for it; but a launched one is seized, as its exec is to be seen. */
static struct mw_error *prepare(struct trap_process *process)
{
	if (process->launched)
		return trap_stop_process(process);
	/* The jumps of another memwatch would look like another tool's. */
	MW_TRY(mw_stale_remove(process->pid, process->left, sizeof(process->left)));
	process->stats.left_behind = *process->left ? process->left : NULL;
	MW_TRY(trap_survey(process));
	/* Not while it is stopped. */
	mw_fallback_look_ahead(process->fallback);
	return NULL;
}

static struct mw_error *trap_attach(struct mw_engine *base, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct trap_process **processes;
	struct trap_process *process = NULL;
	struct mw_program before;
	struct mw_status status;
	struct mw_error *err;

	mw_program_read(pid, &before);
	MW_TRY(mw_program_explain(pid, &before, mw_status_read(pid, &status)));
	if (!launched && engine->options.unsafe)
		mw_seccomp_prepare(pid);
	else if (!launched)
		MW_TRY(mw_seccomp_policy_preflight("trap", pid, true));
	processes = realloc(engine->processes, (engine->process_count + 1) * sizeof(struct trap_process *));
	if (!processes)
		return mw_error_nomem();
	engine->processes = processes;
	MW_TRY(process_create(engine, pid, launched, sink, &process));
	process->program = before;
	process->shadow_stack = status.shadow_stack;
	engine->processes[engine->process_count++] = process;
	err = prepare(process);
	if (err) {
		err = mw_error_worse(err, remove_process(engine, process));
		err = launched ? err : mw_stale_explain(pid, err);
	}
	return mw_program_explain(pid, &before, err);
}

static struct mw_error *plant_all(struct trap_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	uint64_t begin;
	pid_t tid;

	if (options->stopped)
		MW_TRY(options->stopped(options->stopped_context, process->pid));
	begin = mw_clock_ns();
	tid = trap_stopped_tid(process);
	if (!tid)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "no thread of process %d could be stopped", process->pid);
	MW_TRY(trap_plant(process, tid));
	MW_TRY(mw_fault("attach.resume"));
	process->start_ns = mw_clock_ns();
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	process->windowed = true;
	process->stats.attach_ns += mw_clock_ns() - begin;
	process->stats.stood_ns = process->stats.attach_ns;
	process->standstill.until_ns = mw_clock_ns();
	if (process->stats.attach_ns > process->stats.longest_stop_ns)
		process->stats.longest_stop_ns = process->stats.attach_ns;
	return trap_release(process);
}

static struct mw_error *begin_window(struct trap_process *process)
{
	struct mw_error *err = trap_stop_process(process);

	/* That there is nothing to watch is the better reason. */
	if (err && process->rescue.no_sigframe)
		err = mw_error_first(mw_survey_check(&process->survey), err);
	return err ? err : plant_all(process);
}

static struct mw_error *trap_start(struct mw_engine *base, pid_t pid)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct trap_process *process = find(base, pid);
	struct mw_program before = process->program;
	struct mw_error *err;

	if (process->launched || process->ended)
		return NULL;
	/* What was surveyed of another program is looked at anew when the breakpoints are planted. */
	err = begin_window(process);
	if (err)
		err = mw_stale_explain(pid, mw_error_worse(err, remove_process(engine, process)));
	return mw_program_explain(pid, &before, err);
}

/* To let a process go takes a while, in which the others are served. */
static void end_windows(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			trap_window_close(engine->processes[i]);
}

static void trap_end(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;

	end_windows(engine);
	engine->windows_ended = true;
}

static void trap_settle(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;

	engine->settling = true;
}

static void come_back(struct trap_engine *engine, enum mw_window_end end)
{
	if (!engine->windows_ended)
		engine->end = end;
}

static struct mw_error *detach_all(struct trap_engine *engine, enum mw_window_end end)
{
	struct mw_error *first = NULL;
	bool gone = false;

	trap_pace_end();
	end_windows(engine);
	for (size_t i = 0; i < engine->process_count; i++) {
		mw_error_keep_first(&first, trap_process_detach(engine->processes[i], end));
		gone |= engine->processes[i]->window.gone;
	}
	/* It may have had children that it could not tell of any more. */
	if (gone || engine->orphans.count > 0)
		mw_error_keep_first(&first, orphans_free(engine));
	return first;
}

static bool anything_left(const struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			return true;
	return false;
}

static void take_samples(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count && engine->options.sample; i++) {
		struct trap_process *process = engine->processes[i];
		uint64_t now;

		if (process->ended || !process->windowed || process->ends)
			continue;
		now = trap_now(process);
		if (now - process->last_sample_ns < SAMPLE_NS)
			continue;
		process->last_sample_ns = now;
		trap_disposition_look(process);
		mw_peek_look(process->pid);
		engine->options.sample(engine->options.sample_context, process->pid, trap_live_tid(process), now,
				       false);
	}
}

static struct mw_error *let_go_of_still_ones(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++) {
		struct trap_process *process = engine->processes[i];

		if (process->windowed && !process->ended && stands_too_long(process))
			MW_TRY(trap_process_detach(process, MW_END_LIMIT));
	}
	return NULL;
}

/* Wake up when the next window ends, and hear of all that has stopped by then before anything later. */
static void note_ends(struct trap_engine *engine)
{
	uint64_t now, next = UINT64_MAX;
	bool near;

	if (!engine->options.duration_ns || engine->windows_ended)
		return;
	now = mw_clock_ns();
	for (size_t i = 0; i < engine->process_count; i++) {
		struct trap_process *process = engine->processes[i];
		uint64_t end = process->start_ns + engine->options.duration_ns;

		if (process->ended || !process->windowed || process->closed_ns)
			continue;
		if (now >= end)
			trap_window_hear(process);
		else if (end < next)
			next = end;
	}
	near = next != UINT64_MAX && next - now < 2 * TICK_USEC * UINT64_C(1000);
	if (near && next != engine->aim_ns) {
		const struct itimerval aim = {{0, TICK_USEC}, {0, (suseconds_t)((next - now) / 1000 + 1)}};

		setitimer(ITIMER_REAL, &aim, NULL);
	}
	engine->aim_ns = near ? next : 0;
}

static bool is_woken(const struct trap_engine *engine)
{
	struct pollfd wake = {.fd = engine->options.wake_fd, .events = POLLIN};

	return engine->options.wakes && poll(&wake, 1, 0) == 1;
}

static struct mw_error *serve(struct trap_engine *engine, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	while (anything_left(engine)) {
		int status;
		pid_t tid;

		MW_TRY(trap_wait(engine, &tid, &status));
		note_ends(engine);
		if (tid)
			MW_TRY(trap_dispatch(engine, tid, status));
		/* Others may have news all the time. */
		if (!tid || engine->orphans.count > 0)
			MW_TRY(orphans_resolve(engine));
		take_samples(engine);
		MW_TRY(let_go_of_still_ones(engine));
		if (interrupt && *interrupt) {
			come_back(engine, *interrupt == MW_STOP_LIMIT ? MW_END_LIMIT : MW_END_INTERRUPT);
			return NULL;
		}
		if ((deadline_ns && mw_clock_ns() >= deadline_ns) || (!tid && is_woken(engine))) {
			come_back(engine, MW_END_DURATION);
			return NULL;
		}
	}
	come_back(engine, MW_END_EXIT);
	return NULL;
}

/* What has come until now: each thread has had its turn by then, some of them several times. */
static struct mw_error *serve_pending(struct trap_engine *engine)
{
	for (size_t i = 0; i <= engine->threads.count; i++) {
		int status;
		pid_t tid;

		trap_wait_no_time(engine, &tid, &status);
		if (!tid)
			break;
		MW_TRY(trap_dispatch(engine, tid, status));
	}
	return NULL;
}

static struct mw_error *trap_run(struct mw_engine *base, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct mw_error *err, *left = NULL;

	if (deadline_ns && mw_clock_ns() >= deadline_ns) {
		err = serve_pending(engine);
	} else {
		trap_pace_begin();
		err = serve(engine, deadline_ns, interrupt);
	}
	if (err) {
		engine->end = MW_END_LOST;
		engine->windows_ended = false;
		left = detach_all(engine, MW_END_LOST);
	}
	return mw_error_worse(err, left);
}

static struct mw_error *trap_detach(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;

	return detach_all(engine, engine->end);
}

static void trap_destroy(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	void *value;

	if (!engine)
		return;
	mw_error_destroy(detach_all(engine, MW_END_LOST));
	mw_orphans_spare_no_more(&engine->finder);
	tick_stop(engine);
	for (size_t i = 0; i < engine->process_count; i++)
		process_destroy(engine->processes[i]);
	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value);)
		free(value);
	mw_map_deinit(&engine->orphans);
	mw_map_deinit(&engine->threads);
	free(engine->processes);
	free(engine->heard.items);
	free(engine->frames);
	free(engine->raw_frames);
	free(engine->merged);
	free(engine->refs);
	free(engine->functions);
	free(engine);
}

static size_t trap_hook_infos(const struct mw_engine *base, pid_t pid, const struct mw_hook_info **out)
{
	struct trap_process *process = find(base, pid);

	*out = NULL;
	return process ? mw_survey_infos(&process->survey, out) : 0;
}

static void trap_set_interval(struct mw_engine *base, pid_t pid, uint64_t bytes)
{
	struct trap_process *process = find(base, pid);

	if (process)
		process->interval = bytes;
}

static void trap_retire(struct mw_engine *base, pid_t pid, pid_t key)
{
	struct trap_process *process = find(base, pid);

	if (process)
		process->key = key;
}

static const struct mw_engine_stats *trap_stats(const struct mw_engine *base, pid_t pid)
{
	const struct trap_process *process = find(base, pid);

	return process ? &process->stats : NULL;
}

static const struct mw_window_info *trap_window(const struct mw_engine *base, pid_t pid)
{
	const struct trap_process *process = find(base, pid);

	return process ? &process->window : NULL;
}

static struct mw_modules *trap_module_table(const struct mw_engine *base, pid_t pid)
{
	struct trap_process *process = find(base, pid);

	return process ? process->survey.modules : NULL;
}

static void trap_own_memory(const struct mw_engine *base, pid_t pid, uint64_t *resident, uint64_t *mapped)
{
	const struct trap_process *process = find(base, pid);

	*resident = *mapped = 0;
	if (!process || !process->rescue.base)
		return;
	*mapped = TRAP_RESCUE_SIZE + process->rescue.area_count * MW_RESCUE_AREA;
	for (size_t i = 0; i < TRAP_RESCUE_PAGES; i++)
		*resident += (process->rescue.touched[i / 64] >> i % 64 & 1) * MW_RESCUE_PAGE;
	for (size_t i = 0; i < process->rescue.area_count; i++)
		*resident += (process->rescue.areas[i].next - process->rescue.areas[i].start + MW_RESCUE_PAGE - 1) /
			     MW_RESCUE_PAGE * MW_RESCUE_PAGE;
}

static size_t trap_own_ranges(const struct mw_engine *base, pid_t pid, struct mw_engine_range *out, size_t capacity)
{
	const struct trap_process *process = find(base, pid);
	size_t count = 0;

	if (!process || !process->rescue.base)
		return 0;
	if (count++ < capacity)
		*out = (struct mw_engine_range){.start = process->rescue.base,
						.end = process->rescue.base + TRAP_RESCUE_SIZE};
	for (size_t i = 0; i < process->rescue.area_count; i++) {
		mw_addr start = process->rescue.areas[i].start;

		if (count++ < capacity)
			out[count - 1] = (struct mw_engine_range){.start = start, .end = start + MW_RESCUE_AREA};
	}
	return count;
}

const struct mw_engine_ops mw_engine_trap = {
	.name = "trap",
	.create = trap_create,
	.attach = trap_attach,
	.start = trap_start,
	.run = trap_run,
	.end = trap_end,
	.settle = trap_settle,
	.set_interval = trap_set_interval,
	.retire = trap_retire,
	.detach = trap_detach,
	.destroy = trap_destroy,
	.hooks = trap_hook_infos,
	.stats = trap_stats,
	.window = trap_window,
	.modules = trap_module_table,
	.own_memory = trap_own_memory,
	.own_ranges = trap_own_ranges,
};
