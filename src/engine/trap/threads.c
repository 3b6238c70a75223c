// SPDX-License-Identifier: MIT
/* threads.c: the threads of a process: hear of their stops, have them stop and go on, find one that can work for us
 * (trap.h). */
#include "engine/trap/trap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SNAPSHOT 2048u

struct mw_error *trap_thread_add(struct trap_process *process, pid_t tid, enum trap_relation relation,
				 struct trap_thread **out)
{
	struct trap_engine *engine = process->engine;
	struct trap_thread *thread = calloc(1, sizeof(*thread));
	struct mw_error *err;

	if (!thread)
		return mw_error_nomem();
	thread->tid = tid;
	thread->process = process;
	thread->relation = relation;
	thread->snapshot_size = FIRST_SNAPSHOT;
	thread->last_free.hook = thread->last_free.last = thread->passed.hook = TRAP_NO_HOOK;
	err = mw_map_set(&engine->threads, (uint64_t)tid, thread);
	if (!err)
		err = mw_map_set(&process->threads, (uint64_t)tid, thread);
	if (err) {
		mw_map_remove(&engine->threads, (uint64_t)tid);
		free(thread);
		return err;
	}
	*out = thread;
	return NULL;
}

/* It runs again, or is ours no more. */
static void unreaped_no_more(struct trap_thread *thread)
{
	if (thread->unreaped)
		thread->process->engine->unreaped--;
	thread->unreaped = false;
}

void trap_thread_remove(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	unreaped_no_more(thread);
	mw_map_remove(&process->threads, (uint64_t)thread->tid);
	mw_map_remove(&process->engine->threads, (uint64_t)thread->tid);
	free(thread);
}

struct mw_error *trap_thread_number(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	char name[17];

	mw_comm_read(thread->relation == TRAP_SHARING_CHILD ? thread->tid : process->pid, thread->tid, name);
	MW_TRY(process->sink.thread(process->sink.context, thread->tid, name, !thread->numbered, &thread->number));
	thread->numbered = true;
	return NULL;
}

pid_t trap_stopped_tid(const struct trap_process *process)
{
	const struct trap_thread *thread;
	pid_t sharing = 0;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (thread->stopped && thread->relation == TRAP_THREAD)
			return thread->tid;
		if (thread->stopped && thread->relation == TRAP_SHARING_CHILD)
			sharing = thread->tid;
	}
	return sharing;
}

pid_t trap_live_tid(const struct trap_process *process)
{
	const struct trap_thread *thread;
	pid_t any = process->pid;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		/* One that has ended has no memory any more. */
		if (thread->relation != TRAP_THREAD || thread->ending)
			continue;
		if (thread->tid == process->pid)
			return process->pid;
		any = thread->tid;
	}
	return any;
}

struct mw_error *trap_interrupt(struct trap_thread *thread)
{
	MW_TRY(mw_error_unless_gone(mw_tracee_interrupt(thread->tid)));
	thread->interrupted = thread->interrupt_due = true;
	return NULL;
}

struct mw_error *trap_resume(struct trap_thread *thread)
{
	int signal = thread->signal;

	thread->stopped = false;
	thread->signal = 0;
	unreaped_no_more(thread);
	if (thread->group_stopped) {
		thread->group_stopped = false;
		return mw_error_unless_gone(mw_tracee_listen(thread->tid));
	}
	return mw_error_unless_gone(mw_tracee_resume(thread->tid, signal));
}

#define NAP_NS    50000 /* … and NAPS of them last as long as a tick */
#define NAPS      400
#define TRAP_SCAN 32 /* threads looked at beside one that was found */

/* To be seen to before a stop is waited for: nobody would hear of it again. */
static bool has_room(struct trap_engine *engine)
{
	return MW_VECTOR_ROOM(engine->heard.items, engine->heard.count, engine->heard.capacity);
}

static void hear(struct trap_engine *engine, pid_t tid, int status)
{
	engine->heard.items[engine->heard.count++] =
		(struct trap_heard){.tid = tid, .status = status, .time_ns = mw_clock_ns()};
}

void trap_reap_served(struct trap_engine *engine, pid_t tid)
{
	struct trap_thread *thread = mw_map_get(&engine->threads, (uint64_t)tid);
	siginfo_t info;

	if (!thread || !thread->stopped || thread->signal != 0)
		return;
	/* Only a stop: if it was killed meanwhile, its end is to be heard of as any. */
	if (thread->unreaped)
		(void)waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | __WALL);
	unreaped_no_more(thread);
}

/*
 * A stop for a signal is looked at, not waited for: what is waited for the kernel takes for the tracer's business, and
 * if memwatch is killed then, the signal is lost and a breakpoint's trap never comes to who should handle it. The stop
 * ends when the thread is resumed. All else is waited for: nothing is lost with it. Returns the thread's id, 0: nothing
 * there, negative: an error.
 */
static pid_t look(struct trap_engine *engine, idtype_t type, pid_t which, int flags)
{
	struct trap_thread *thread;
	siginfo_t info;
	int status;
	pid_t tid;

	info.si_pid = 0;
	if (waitid(type, (id_t)which, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | flags))
		return -1;
	tid = info.si_pid;
	if (tid == 0)
		return 0;
	thread = mw_map_get(&engine->threads, (uint64_t)tid);
	if (thread && (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) && info.si_status >> 8 == 0) {
		if (!thread->unreaped)
			engine->unreaped++;
		thread->unreaped = true;
		hear(engine, tid, info.si_status << 8 | 0x7f);
		return tid;
	}
	if (waitpid(tid, &status, __WALL | WNOHANG) == tid)
		hear(engine, tid, status);
	return tid;
}

/* Have others stopped, too? Those that are known to stand are passed over. */
static size_t look_at_others(struct trap_engine *engine, size_t most)
{
	size_t found = 0;
	void *value;

	for (size_t i = 0; i < most && has_room(engine); i++) {
		const struct trap_thread *thread;

		if (!mw_map_next(&engine->threads, &engine->next_scan, &value)) {
			engine->next_scan = 0;
			if (!mw_map_next(&engine->threads, &engine->next_scan, &value))
				break;
		}
		thread = value;
		if (!thread->stopped && !thread->unreaped)
			found += look(engine, P_PID, thread->tid, WNOHANG) > 0;
	}
	return found;
}

void trap_hear_all(struct trap_engine *engine)
{
	(void)look_at_others(engine, engine->threads.count);
}

/*
 * Threads stand that were not waited for: a wait for any would find them again and again. Orphans are heard of later.
 */
static pid_t poll_running(struct trap_engine *engine)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	for (unsigned i = 0; i < NAPS; i++) {
		if (look_at_others(engine, engine->threads.count))
			return 1;
		if (engine->aim_ns && mw_clock_ns() >= engine->aim_ns)
			break;
		nanosleep(&nap, NULL);
	}
	errno = EINTR;
	return -1;
}

/*
 * The kernel looks for stops in the order in which threads were attached: a busy one would always be found before those
 * after it. So others are looked at in turn whenever one is found.
 */
static pid_t listen(struct trap_engine *engine)
{
	pid_t got = engine->unreaped ? poll_running(engine) : look(engine, P_ALL, 0, 0);

	if (got > 0 && engine->threads.count > 1)
		look_at_others(engine, engine->threads.count < TRAP_SCAN ? engine->threads.count : TRAP_SCAN);
	return got;
}

/* The oldest of what was heard; `*tid` is 0 where there is nothing. */
static void take(struct trap_engine *engine, pid_t *tid, int *status)
{
	const struct trap_heard *oldest = &engine->heard.items[engine->heard.first];

	*tid = 0;
	if (engine->heard.first < engine->heard.count) {
		*tid = oldest->tid;
		*status = oldest->status;
		engine->stop_ns = oldest->time_ns;
		engine->heard.first++;
	}
	if (engine->heard.first == engine->heard.count)
		engine->heard.first = engine->heard.count = 0;
}

struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status)
{
	*tid = 0;
	errno = 0;
	if (engine->heard.count == 0 && (!has_room(engine) || listen(engine) <= 0 || engine->heard.count == 0)) {
		engine->stop_ns = mw_clock_ns();
		if (errno == EINTR || errno == ECHILD || errno == 0)
			return NULL;
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot wait for the target");
	}
	take(engine, tid, status);
	return NULL;
}

void trap_wait_no_time(struct trap_engine *engine, pid_t *tid, int *status)
{
	if (engine->heard.count == 0)
		look_at_others(engine, engine->threads.count);
	/* What was seen of one that is killed meanwhile is gone when it is waited for. */
	take(engine, tid, status);
}

#define INJECTOR_PATIENCE_NS UINT64_C(5000000000)
#define LAST_BREATH_US       100000

/* An interrupt that was sent to one which had just stopped by itself stops it again at once: left there, it would get
 * the next one in that stop, and never get on. */
struct mw_error *trap_run_briefly(struct trap_process *process, useconds_t breath_us)
{
	struct trap_engine *engine = process->engine;
	uint64_t until = mw_clock_ns() + breath_us * UINT64_C(1000);

	do {
		struct trap_thread *thread;
		bool wanted;
		int status;
		pid_t tid;

		trap_wait_no_time(engine, &tid, &status);
		if (!tid) {
			usleep(TRAP_FIRST_BREATH_US / 5);
			continue;
		}
		thread = mw_map_get(&engine->threads, (uint64_t)tid);
		wanted = !thread || thread->interrupt_due || status >> 16 != PTRACE_EVENT_STOP;
		MW_TRY(trap_dispatch(engine, tid, status));
		thread = mw_map_get(&engine->threads, (uint64_t)tid);
		if (!wanted && thread && thread->process == process && thread->stopped && !thread->group_stopped)
			MW_TRY(trap_resume(thread));
	} while (!process->ended && mw_clock_ns() < until);
	return NULL;
}

/* They get on with their work for a moment, each time for longer: where CPUs are scarce it would be over before any has
 * had one, and what all wait for (a vforked child) may take a while. */
struct mw_error *trap_deliver_held(struct trap_process *process, useconds_t *breath_us)
{
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped || thread->group_stopped)
			continue;
		/* One that forks all the time would be found forking again: it is to stop on its way out. */
		if (thread->in_event)
			MW_TRY(trap_interrupt(thread));
		MW_TRY(trap_resume(thread));
	}
	MW_TRY(trap_run_briefly(process, *breath_us));
	*breath_us = *breath_us * 2 < LAST_BREATH_US ? *breath_us * 2 : LAST_BREATH_US;
	return trap_hold(process);
}

/* `maps`: one that has memory of its own for the sigframe from a call; NULL: any. */
static struct trap_thread *find_usable(struct trap_process *process, bool permitted, const struct mw_maps *maps)
{
	struct trap_thread *thread, *second = NULL, *third = NULL;
	bool lives = false;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		lives |= thread->relation == TRAP_THREAD && !thread->ending;
		if (!trap_is_usable(thread) ||
		    (permitted && !trap_seccomp_policy_may(process, thread->tid, TRAP_CALLS_INSTALL)) ||
		    (maps && !mw_inject_has_room(thread->tid, maps)))
			continue;
		if (thread->relation != TRAP_THREAD)
			third = thread;
		else if (thread->group_stopped)
			second = thread;
		else
			return thread;
	}
	/* A process that is stopped can perform one as well, and is stopped after it. A child may be all that is left
	 * in the memory; while it is not, it can't: what leads its signals does not lead the process's. */
	return second || lives ? second : third;
}

struct trap_thread *trap_usable_thread(struct trap_process *process)
{
	struct trap_thread *permitted = find_usable(process, true, NULL);

	return permitted ? permitted : find_usable(process, false, NULL);
}

struct trap_thread *trap_best_thread(struct trap_process *process)
{
	const pid_t tid = trap_stopped_tid(process);
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct trap_thread *best = NULL;

	if (tid && mw_error_none(mw_maps_read(tid, &maps)))
		best = find_usable(process, true, &maps);
	return best ? best : trap_usable_thread(process);
}

struct mw_error *trap_await_injector(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns();
	useconds_t breath_us = TRAP_FIRST_BREATH_US;

	/* The only thread may fork all the time, or wait for a child that shares its memory. */
	while (!trap_usable_thread(process) && mw_clock_ns() - begin < INJECTOR_PATIENCE_NS && !process->ended)
		MW_TRY(trap_deliver_held(process, &breath_us));
	return NULL;
}
