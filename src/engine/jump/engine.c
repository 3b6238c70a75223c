// SPDX-License-Identifier: MIT
/* engine.c: the jump engine as others see it, and what is done while a window goes (memwatch/engine.h, jump.h). */
#include "engine/jump/jump.h"

#include "engine/engines.h"
#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Is it one that the engine (`context`) traces at the moment? */
static bool is_known(void *context, pid_t tid)
{
	const struct jump_engine *engine = context;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->pid == tid || mw_quiesce_holds(&engine->processes[i]->quiesce, tid))
			return true;
	return false;
}

static struct jump_process *find_process(const struct mw_engine *base, pid_t pid)
{
	const struct jump_engine *engine = (const struct jump_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->key == pid)
			return engine->processes[i];
	return NULL;
}

static void serve_meanwhile(struct jump_engine *engine);

static struct mw_error *jump_create(const struct mw_engine_options *options, struct mw_engine **out)
{
	struct jump_engine *engine;

	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return mw_error_nomem();
	engine->base.ops = &mw_engine_jump;
	engine->options = *options;
	engine->end = MW_END_INTERRUPT;
	engine->serve = serve_meanwhile;
	engine->frames = calloc(options->depth, sizeof(*engine->frames));
	if (!engine->frames) {
		free(engine);
		return mw_error_nomem();
	}
	engine->ends = epoll_create1(EPOLL_CLOEXEC);
	if (engine->ends < 0) {
		free(engine->frames);
		free(engine);
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot wait for the ends of processes");
	}
	engine->others = (struct mw_orphans){.known = is_known, .context = engine};
	mw_orphans_spare(&engine->others);
	*out = &engine->base;
	return NULL;
}

#define LOOKS     5 /* at a process whose modules come and go */
#define MOMENT_NS 2000000

/* Do its modules come and go? Then what was read of one may have been another's. */
static bool in_motion(struct jump_process *process)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	size_t added = 0, removed = 0;

	for (unsigned i = 0; i < LOOKS && !added && !removed; i++) {
		nanosleep(&moment, NULL);
		mw_error_destroy(mw_survey_refresh(&process->survey, mw_live_thread(process->pid), &added, &removed));
	}
	return added || removed;
}

/* It runs as before, and is none of the engine's any more. */
static void remove_process(struct jump_engine *engine, struct jump_process *process)
{
	mw_error_destroy(jump_process_detach(process, MW_END_LOST));
	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i] == process) {
			engine->process_count--;
			memmove(&engine->processes[i], &engine->processes[i + 1],
				(engine->process_count - i) * sizeof(struct jump_process *));
			break;
		}
	epoll_ctl(engine->ends, EPOLL_CTL_DEL, process->pidfd, NULL);
	jump_process_destroy(process);
}

static struct mw_error *attach_once(struct jump_engine *engine, pid_t pid, bool launched,
				    const struct mw_event_sink *sink, bool *again)
{
	struct jump_process **processes;
	struct epoll_event end = {.events = EPOLLIN | EPOLLONESHOT};
	struct jump_process *process = NULL;
	struct mw_error *err;

	*again = false;
	processes = realloc(engine->processes, (engine->process_count + 1) * sizeof(struct jump_process *));
	if (!processes)
		return mw_error_nomem();
	engine->processes = processes;
	MW_TRY(jump_process_create(engine, pid, sink, &process));
	process->launched = launched;
	engine->processes[engine->process_count++] = process;
	end.data.ptr = process;
	if (process->pidfd >= 0 && epoll_ctl(engine->ends, EPOLL_CTL_ADD, process->pidfd, &end) < 0)
		err = mw_error_create(MW_ERROR_SYSTEM, errno, "cannot wait for the end of process %d", pid);
	else
		err = jump_prepare(process);
	if (!err)
		return NULL;
	*again = !launched && mw_error_kind(err) == MW_ERROR_UNSUPPORTED && in_motion(process);
	remove_process(engine, process);
	return err;
}

#define SOURCES "/sys/devices/system/clocksource/clocksource0/available_clocksource"

static bool clock_usable(const char **why)
{
	MW_FREE char *cpuinfo = NULL;
	MW_FREE char *sources = NULL;
	size_t size;

	*why = "cannot read /proc/cpuinfo";
	if (!mw_error_none(mw_proc_file_read(&cpuinfo, &size, "/proc/cpuinfo")))
		return false;
	*why = "cannot read which clock sources the kernel trusts (" SOURCES ")";
	return mw_error_none(mw_proc_file_read(&sources, &size, SOURCES)) &&
	       jump_clock_judge(cpuinfo, sources, jump_clock_needs_no_call(), why);
}

/* Can the engine be used on this machine, with these options? UNSUPPORTED with the reason. */
static struct mw_error *machine_check(struct jump_engine *engine)
{
	const char *why;

	if (!engine->clock_trusted && !clock_usable(&why))
		return MW_REFUSE("--engine trap needs none of that", "the jump engine can't be used here: %s", why);
	engine->clock_trusted = true;
	if (engine->options.depth > JUMP_MAX_DEPTH)
		return MW_REFUSE("--engine trap needs none of that",
				 "the jump engine keeps stacks of at most %d frames", JUMP_MAX_DEPTH);
	return NULL;
}

static struct mw_error *jump_attach(struct mw_engine *base, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	struct mw_error *err;
	bool again;

	MW_TRY(machine_check(engine));
	if (!launched)
		MW_TRY(mw_seccomp_policy_preflight("jump", pid, false));
	for (size_t i = 0; i < engine->process_count && !launched; i++)
		MW_TRY(jump_child_release(engine->processes[i], pid));
	err = attach_once(engine, pid, launched, sink, &again);
	for (unsigned i = 0; err && again && i < LOOKS; i++) {
		mw_error_destroy(err);
		err = attach_once(engine, pid, launched, sink, &again);
	}
	return launched ? err : mw_stale_explain(pid, err);
}

static void jump_end(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			jump_window_close(engine->processes[i]);
	engine->windows_ended = true;
}

static void jump_settle(struct mw_engine *base)
{
	const struct jump_engine *engine = (const struct jump_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++) {
		const struct jump_process *process = engine->processes[i];

		if (!process->ended && process->windowed && process->recorder.shared.base)
			__atomic_store_n(&jump_control(&process->recorder.shared)->settling, 1, __ATOMIC_RELAXED);
	}
}

static void jump_set_interval(struct mw_engine *base, pid_t pid, uint64_t bytes)
{
	struct jump_process *process = find_process(base, pid);

	if (process && process->drain && !process->ended && process->windowed && process->recorder.shared.base)
		mw_error_keep_first(&process->drain->failure, jump_sampling_set(process, bytes));
}

static struct mw_error *detach_all(struct jump_engine *engine, enum mw_window_end end)
{
	struct mw_error *first = NULL;

	/* All windows end at one time: to take everything out of a process, and read what is left, takes a while. Where
	 * that can't be done now it is tried again. */
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->quiesce.standing)
			mw_error_destroy(jump_window_end(engine->processes[i]));
	for (size_t i = 0; i < engine->process_count; i++)
		first = mw_error_first(first, jump_process_detach(engine->processes[i], end));
	jump_urgency_end(&engine->urgency);
	return first;
}

static struct mw_error *jump_start(struct mw_engine *base, pid_t pid)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	struct jump_process *process = find_process(base, pid);
	struct mw_error *err;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	if (process->launched || process->ended)
		return NULL;
	/* From the first moment on its threads may wait for memwatch. */
	jump_urgency_begin(&engine->urgency);
	err = mw_program_explain(pid, &process->program, jump_begin_window(process));
	if (!err)
		return NULL;
	jump_urgency_end(&engine->urgency);
	remove_process(engine, process);
	return mw_stale_explain(pid, err);
}

/* What is done while the window goes. */

/*
 * A process that ends by itself can be looked at before.
 *
 * Its thread waits in the recorder, at the entry of _exit, until this has been done, for a second at most.
 * What is looked at is the last only if the process ends then, which a task of its own kind that shares its memory may
 * seem to do and not do.
 */

#define CATCH_UP_NS UINT64_C(50000000) /* for what was recorded before */
#define SAMPLE_NS   UINT64_C(1000000000)

/*
 * Is the thread in a system call? Then it is not the one that waits in the recorder: a vfork or posix_spawn child does,
 * which runs in the thread's memory with the thread's control block, and for which the thread waits in the kernel.
 */
static bool in_system_call(const struct jump_process *process, pid_t tid)
{
	MW_FREE char *text = NULL;
	size_t size = 0;
	char *end;

	/* "running", "-1 SP PC" of a thread that was interrupted elsewhere, or a call's number and arguments */
	return mw_error_none(mw_proc_file_read(&text, &size, "/proc/%d/task/%d/syscall", process->pid, tid)) &&
	       strtol(text, &end, 10) >= 0 && end != text;
}

static void take_sample(struct jump_process *process, bool last)
{
	const struct mw_engine_options *options = &process->engine->options;
	uint64_t now = jump_now(process);

	if (!options->sample || (!last && now - process->last.sample_ns < SAMPLE_NS))
		return;
	process->last.sample_ns = now;
	options->sample(options->sample_context, process->pid, mw_live_thread(process->pid), now, last);
}

static struct mw_error *catch_up(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns();
	size_t events = 1;

	while (events && mw_clock_ns() - begin < CATCH_UP_NS)
		MW_TRY(jump_drain_round(process->drain, &events));
	return NULL;
}

static struct mw_error *serve_exits(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint64_t exits = __atomic_load_n(&control->exits, __ATOMIC_ACQUIRE);
	uint32_t number = mw_ring_exit_count(exits), served = control->exits_served;
	struct mw_error *err = NULL;

	if (number == served)
		return NULL;
	/* Of several that came at once only the last has left its name. */
	if (number - served > 1 || !in_system_call(process, jump_thread_of(process, mw_ring_exit_tid(exits)))) {
		process->exiting = true;
		err = catch_up(process);
		if (!err)
			take_sample(process, true);
	}
	__atomic_store_n(&control->exits_served, number, __ATOMIC_RELEASE);
	return err;
}

#define MS            UINT64_C(1000000)
#define ALIVE_NS      (10 * MS)
#define ALIVE_EACH_NS (MS / 2) /* more for each process: to look at many costs */
#define TIDY_NS       (50 * MS)
#define CALM_NS       (1000 * MS) /* a process that has asked for nothing for so long … */
#define CALM_TIMES    4           /* … is looked at more rarely */
#define CALM_REST_NS  (10 * MS)
#define CALM_GRACE_NS (20 * MS)
#define NAMES_NS      (1000 * MS)
#define LOOK_NS       (250 * MS) /* at the modules, where the loader can't be asked to tell */
#define MADE_NS       (20 * MS)  /* at the mappings, for code that the process has made since */
#define SHORT_NS      (MS / 20)
#define ACTIVE_NS     (MS + MS / 2) /* an answer may be waited for */
#define LONG_NS       (3 * MS)      /* a thread that begins to allocate hardly waits for more than its share then */
#define IDLE_ROUNDS   4
#define MOST_ENDS     64         /* heard of at once */
#define WAKE_NS       (2 * MS)   /* from one time that we were woken to the next */
#define QUIET_NS      (500 * MS) /* a process that has recorded nothing for so long is served once a second */

static bool due(uint64_t *last, uint64_t now, uint64_t every)
{
	if (now - *last < every)
		return false;
	*last = now;
	return true;
}

/* The loader waits in the target until this has been done. */
static struct mw_error *serve_loader(struct jump_process *process, uint64_t now)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t changes = __atomic_load_n(&control->loader_changes, __ATOMIC_ACQUIRE);
	struct mw_error *err;

	if (changes == control->loader_served &&
	    (process->patches.loader_hooked || !due(&process->last.look_ns, now, LOOK_NS)))
		return NULL;
	err = jump_modules_changed(process);
	__atomic_store_n(&control->loader_served, changes, __ATOMIC_RELEASE);
	return err;
}

/* How many stacks may be walked by memwatch: never more than a share. */
static void allow_slow(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint64_t share;

	if (__atomic_load_n(&control->slow_taken, __ATOMIC_RELAXED) < control->slow_allowed)
		return;
	share = jump_drain_stats(process->drain)->walks / JUMP_SLOW_SHARE;
	if (share > JUMP_SLOW_FREE)
		__atomic_store_n(&control->slow_allowed, share, __ATOMIC_RELAXED);
}

/* Nothing has come from it for a while, and nothing else is due. */
static bool is_quiet(struct jump_process *process, uint64_t now)
{
	uint64_t counted = jump_drain_counted(process->drain);

	if (counted != process->last.counted) {
		process->last.counted = counted;
		process->last.event_ns = now;
	}
	/* It is still taken to fill its rings fast. */
	if (jump_drain_rest(process->drain) != UINT64_MAX)
		return false;
	return now - process->last.event_ns > QUIET_NS && now - process->last.sample_ns < SAMPLE_NS &&
	       now - process->last.served_ns < SAMPLE_NS && process->patches.loader_hooked;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Blocks are sampled, which makes few records, and for a while no thread has come, asked for anything, or recorded more:
 * then we may rest for longer. Who is the first to ask for something waits for longer than it would otherwise, once in
 * that while at most. What finds no room is not to be lost for that.
 */
static bool is_calm(struct jump_process *process, uint64_t now)
{
	uint64_t asked = jump_drain_asked(process->drain);

	if (asked != process->last.asked || !jump_drain_trickles(process->drain)) {
		process->last.asked = asked;
		process->last.busy_ns = now;
	}
	return (jump_samples(process) || process->transition.state == JUMP_TRANSITION_DONE) &&
	       process->engine->options.overload != MW_OVERLOAD_DROP && now - process->last.busy_ns > CALM_NS;
}

/* How long may we rest at most, for all that is known of a process? Where its threads may wait for room for a part of the
 * time, for less than that. */
static uint64_t longest_rest(const struct jump_process *process)
{
	uint64_t limit = process->transition.limit_ns / 10 * 9;

	if (!process->calm)
		return LONG_NS;
	return limit ? least(limit < LONG_NS ? LONG_NS : limit, CALM_REST_NS) : CALM_REST_NS;
}

static struct mw_error *serve(struct jump_process *process, size_t *events, bool *hurry)
{
	uint64_t now = jump_now(process), rarely;

	if (process->signalled && jump_has_exited(process))
		return jump_look_alive(process);
	jump_java_serve(process, now);
	process->calm = is_calm(process, now);
	rarely = process->calm ? CALM_TIMES : 1;
	if (is_quiet(process, now))
		return NULL;
	process->last.served_ns = now;
	jump_answer(process);
	MW_TRY(serve_loader(process, now));
	MW_TRY(jump_drain_round(process->drain, events));
	/* That we rested for long is no sign that we can't keep up; who has waited for that says so a little later. */
	if (process->calm)
		process->last.calm_ns = now;
	if (process->last.calm_ns && now - process->last.calm_ns < CALM_GRACE_NS)
		jump_drain_forgive(process->drain);
	MW_TRY(jump_overload_serve(process));
	jump_learn_some(process);
	if (process->rows.stale && due(&process->last.made_ns, now, MADE_NS))
		MW_TRY(mw_error_unless_gone(jump_rows_look(process)));
	allow_slow(process);
	/* Where there was nothing to tell, a thread that is about to record holds the others back: let it run. */
	*hurry |= *events && jump_drain_hurries(process->drain);
	if (due(&process->last.tidy_ns, now, rarely * TIDY_NS)) {
		jump_drain_tidy(process->drain);
		jump_clock_adjust(&process->clock);
		jump_children_heard(process);
	}
	if (due(&process->last.name_ns, now, NAMES_NS))
		MW_TRY(jump_drain_rename(process->drain));
	MW_TRY(serve_exits(process));
	take_sample(process, false);
	if (due(&process->last.alive_ns, now, rarely * ALIVE_NS + process->engine->alive * ALIVE_EACH_NS))
		MW_TRY(jump_look_alive(process));
	if (!process->ended && jump_control(&process->recorder.shared)->given_up) {
		/* Its threads waited longer than memwatch is ever away, and went on alone. */
		process->gave_up = true;
		return jump_process_detach(process, MW_END_LOST);
	}
	return NULL;
}

/* For one time. Not so often that news of no concern keep us from resting. */
static void arm_wake(struct jump_engine *engine)
{
	struct epoll_event wake = {.events = EPOLLIN | EPOLLONESHOT};

	if (epoll_ctl(engine->ends, EPOLL_CTL_MOD, engine->options.wake_fd, &wake) < 0)
		(void)epoll_ctl(engine->ends, EPOLL_CTL_ADD, engine->options.wake_fd, &wake);
}

/* Rest for as long as the rings can do without us, or until something ends. A thread that has not run for a while may
 * come to run at any time, and then fills its ring as fast as it did before. */
static void rest(struct jump_engine *engine, size_t events, uint64_t deadline_ns, bool *woken)
{
	struct pollfd ends = {.fd = engine->ends, .events = POLLIN};
	struct epoll_event ended[MOST_ENDS];
	struct timespec span;
	uint64_t now = mw_clock_ns(), ns = UINT64_MAX, longest = CALM_REST_NS;
	bool calm = true;

	engine->idle_rounds = events ? 0 : engine->idle_rounds + 1;
	for (size_t i = 0; i < engine->process_count; i++) {
		if (engine->processes[i]->ended)
			continue;
		if (engine->processes[i]->drain)
			ns = least(ns, jump_drain_rest(engine->processes[i]->drain));
		longest = least(longest, longest_rest(engine->processes[i]));
		calm &= engine->processes[i]->calm;
	}
	/* To be woken more often than need be costs the programs that share the CPUs. */
	ns = least(ns, engine->idle_rounds < IDLE_ROUNDS && !calm ? ACTIVE_NS : longest);
	if (ns < SHORT_NS)
		ns = SHORT_NS;
	if (deadline_ns && deadline_ns < now + ns)
		ns = deadline_ns > now ? deadline_ns - now : 0;
	engine->alive = 0;
	for (size_t i = 0; i < engine->process_count; i++)
		engine->alive += !engine->processes[i]->ended;
	if (engine->options.wakes && now - engine->woken_ns > WAKE_NS)
		arm_wake(engine);
	span = (struct timespec){.tv_sec = 0, .tv_nsec = (long)ns};
	if (ppoll(&ends, 1, &span, NULL) <= 0)
		return;
	for (int i = 0, count = epoll_wait(engine->ends, ended, MOST_ENDS, 0); i < count; i++) {
		struct jump_process *process = ended[i].data.ptr;

		if (process)
			process->signalled = true;
		*woken |= !process;
	}
	if (*woken)
		engine->woken_ns = now;
}

static bool anything_left(const struct jump_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			return true;
	return false;
}

static struct mw_error *serve_all(struct jump_engine *engine, size_t *events, bool *hurry)
{
	for (size_t i = 0; i < engine->process_count; i++) {
		struct jump_process *process = engine->processes[i];
		size_t some = 0;

		if (process->ended)
			continue;
		if (process->launched)
			MW_TRY(jump_launch_go_on(process));
		else if (process->windowed)
			MW_TRY(serve(process, &some, hurry));
		*events += some;
	}
	return NULL;
}

static void serve_meanwhile(struct jump_engine *engine)
{
	size_t events = 0;
	bool hurry = false;

	for (size_t i = 0; i < engine->process_count; i++) {
		struct jump_process *process = engine->processes[i];

		/* What is wrong with that one is nothing that the other is refused for. */
		if (process->windowed && !process->ended && !process->quiesce.standing)
			mw_error_keep_first(&engine->failure, serve(process, &events, &hurry));
	}
}

static void come_back(struct jump_engine *engine, enum mw_window_end end)
{
	if (!engine->windows_ended)
		engine->end = end;
}

static struct mw_error *run_until(struct jump_engine *engine, uint64_t deadline_ns,
				  const volatile sig_atomic_t *interrupt)
{
	while (anything_left(engine)) {
		size_t events = 0;
		bool hurry = false, woken = false;

		MW_TRY(serve_all(engine, &events, &hurry));
		jump_urgency_note(&engine->urgency, true);
		if (interrupt && *interrupt) {
			come_back(engine, *interrupt == MW_STOP_LIMIT ? MW_END_LIMIT : MW_END_INTERRUPT);
			return NULL;
		}
		if (deadline_ns && mw_clock_ns() >= deadline_ns) {
			come_back(engine, MW_END_DURATION);
			return NULL;
		}
		if (hurry)
			continue;
		rest(engine, events, deadline_ns, &woken);
		jump_urgency_note(&engine->urgency, false);
		if (woken) {
			come_back(engine, MW_END_DURATION);
			return NULL;
		}
	}
	come_back(engine, MW_END_EXIT);
	return NULL;
}

static struct mw_error *jump_run(struct mw_engine *base, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	struct mw_error *err, *left = NULL;

	jump_urgency_begin(&engine->urgency);
	err = engine->failure;
	engine->failure = NULL;
	if (!err)
		err = run_until(engine, deadline_ns, interrupt);
	jump_urgency_lower(&engine->urgency);
	if (err) {
		engine->end = MW_END_LOST;
		engine->windows_ended = false;
		left = detach_all(engine, MW_END_LOST);
	}
	return mw_error_worse(err, left);
}

static struct mw_error *jump_detach(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	return detach_all(engine, engine->end);
}

static void jump_destroy(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	if (!engine)
		return;
	mw_error_destroy(detach_all(engine, MW_END_LOST));
	mw_orphans_spare_no_more(&engine->others);
	for (size_t i = 0; i < engine->process_count; i++)
		jump_process_destroy(engine->processes[i]);
	jump_heart_stop(engine);
	mw_error_destroy(engine->failure);
	free(engine->processes);
	mw_cleanup_close(&engine->ends);
	free(engine->frames);
	free(engine);
}

static size_t jump_hook_infos(const struct mw_engine *base, pid_t pid, const struct mw_hook_info **out)
{
	struct jump_process *process = find_process(base, pid);

	*out = NULL;
	return process ? mw_survey_infos(&process->survey, out) : 0;
}

static void jump_retire(struct mw_engine *base, pid_t pid, pid_t key)
{
	struct jump_process *process = find_process(base, pid);

	if (process)
		process->key = key;
}

static const struct mw_engine_stats *jump_stats(const struct mw_engine *base, pid_t pid)
{
	struct jump_process *process = find_process(base, pid);

	if (!process)
		return NULL;
	jump_stats_take(process);
	return &process->stats;
}

static const struct mw_window_info *jump_window(const struct mw_engine *base, pid_t pid)
{
	const struct jump_process *process = find_process(base, pid);

	return process ? &process->window : NULL;
}

static struct mw_modules *jump_module_table(const struct mw_engine *base, pid_t pid)
{
	struct jump_process *process = find_process(base, pid);

	return process ? process->survey.modules : NULL;
}

static size_t jump_own_ranges(const struct mw_engine *base, pid_t pid, struct mw_engine_range *out, size_t capacity)
{
	const struct jump_process *process = find_process(base, pid);

	return process && !process->ended ? jump_memory_ranges(&process->recorder, out, capacity) : 0;
}

static void jump_own_memory(const struct mw_engine *base, pid_t pid, uint64_t *resident, uint64_t *mapped)
{
	struct jump_process *process = find_process(base, pid);

	*resident = *mapped = 0;
	if (!process || process->ended)
		return;
	jump_memory_measure(&process->recorder, mw_live_thread(pid), resident, mapped);
	process->stats.own_resident = *resident;
}

static bool jump_forked(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	bool left = true;

	for (size_t i = 0; i < engine->process_count; i++) {
		struct mw_shared_memory *memory = &engine->processes[i]->recorder.memory;

		left = left && (!memory->here || mw_shared_memory_leave(memory, sizeof(struct mw_ring_control)));
	}
	return left;
}

static const char *jump_difference(const struct mw_engine *base, pid_t pid, size_t index)
{
	const struct jump_process *process = find_process(base, pid);
	const struct jump_drain *drain = process ? process->drain : NULL;

	return drain && index < drain->difference_count ? drain->differences[index] : NULL;
}

const struct mw_engine_ops mw_engine_jump = {
	.name = "jump",
	.create = jump_create,
	.attach = jump_attach,
	.start = jump_start,
	.run = jump_run,
	.end = jump_end,
	.settle = jump_settle,
	.set_interval = jump_set_interval,
	.retire = jump_retire,
	.detach = jump_detach,
	.destroy = jump_destroy,
	.forked = jump_forked,
	.hooks = jump_hook_infos,
	.stats = jump_stats,
	.window = jump_window,
	.modules = jump_module_table,
	.own_memory = jump_own_memory,
	.own_ranges = jump_own_ranges,
	.difference = jump_difference,
};

/* Can the jump engine be used on a process, without touching it (engines.h). */

static struct mw_error *examine(struct jump_process *process, struct mw_jump_examination *out)
{
	pid_t tid = mw_live_thread(process->pid);
	size_t added, removed;

	MW_TRY(mw_stale_look(process->pid, &out->stale));
	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(jump_plan(process, tid));
	out->refused = calloc(process->survey.hooks.count + 1, sizeof(const char *));
	if (!out->refused)
		return mw_error_nomem();
	out->count = process->survey.hooks.count;
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (patch->hook != JUMP_NO_HOOK)
			out->refused[patch->hook] = patch->detour.why;
	return NULL;
}

struct mw_error *mw_jump_examine(pid_t pid, const struct mw_engine_options *options, struct mw_jump_examination *out)
{
	static const struct mw_event_sink nobody = {.context = NULL};
	struct jump_engine engine = {.options = *options};
	struct mw_jump_examination found = {.count = 0};
	struct jump_process *process = NULL;
	struct mw_error *err;

	MW_TRY(jump_process_create(&engine, pid, &nobody, &process));
	err = examine(process, &found);
	if (!err) {
		found.verdict = machine_check(&engine);
		if (!found.verdict)
			found.verdict = jump_plan_check(process);
		if (!found.verdict)
			found.verdict = mw_seccomp_policy_preflight("jump", pid, false);
	}
	jump_process_destroy(process);
	if (err) {
		mw_jump_examination_deinit(&found);
		return err;
	}
	*out = found;
	return NULL;
}

void mw_jump_examination_deinit(struct mw_jump_examination *examination)
{
	mw_error_destroy(examination->verdict);
	mw_stale_deinit(&examination->stale);
	free(examination->refused);
	*examination = (struct mw_jump_examination){.count = 0};
}
