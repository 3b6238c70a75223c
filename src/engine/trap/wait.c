// SPDX-License-Identifier: MIT
/* wait.c: hear of the next stop (trap.h). Knows nothing of what stops mean. */
#include "base/clock.h"
#include "engine/trap/threads.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define TICK_USEC 20000
#define NAP_NS    50000 /* … and NAPS of them last as long as a tick */
#define NAPS      400
#define TRAP_SCAN 32 /* threads looked at beside one that was found */

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
struct mw_error *trap_tick_start(struct trap_engine *engine)
{
	const struct itimerval period = {{0, TICK_USEC}, {0, TICK_USEC}};
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_alarm;
	if (sigaction(SIGALRM, &action, &old_alarm) || setitimer(ITIMER_REAL, &period, NULL))
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot start a timer");
	engine->ticking = true;
	return NULL;
}

void trap_tick_stop(struct trap_engine *engine)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction ignore;

	if (!engine->ticking)
		return;
	setitimer(ITIMER_REAL, &never, NULL);
	/* A tick that has fallen and is yet to be delivered is thrown away: by the old action it might end memwatch. */
	memset(&ignore, 0, sizeof(ignore));
	ignore.sa_handler = SIG_IGN;
	sigaction(SIGALRM, &ignore, NULL);
	sigaction(SIGALRM, &old_alarm, NULL);
	engine->ticking = false;
}

static void hear(struct trap_engine *engine, pid_t tid, int status)
{
	size_t at = (engine->heard.first + engine->heard.count++) % TRAP_HEARD;

	engine->heard.items[at].tid = tid;
	engine->heard.items[at].status = status;
	engine->heard.items[at].time_ns = mw_clock_ns();
}

void trap_unreaped_no_more(struct trap_thread *thread)
{
	if (thread->unreaped)
		thread->process->engine->unreaped--;
	thread->unreaped = false;
}

void trap_reap(struct trap_thread *thread)
{
	siginfo_t info;

	/* Only a stop: if it was killed meanwhile, its end is to be heard of as any. */
	if (thread->unreaped)
		(void)waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | __WALL);
	trap_unreaped_no_more(thread);
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

	for (size_t i = 0; i < most && engine->heard.count < TRAP_HEARD; i++) {
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

/*
 * Threads stand that were not waited for: a wait for any would find them again and again. Orphans are heard of later.
 */
static pid_t poll_running(struct trap_engine *engine)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	for (unsigned i = 0; i < NAPS; i++) {
		if (look_at_others(engine, engine->threads.count))
			return 1;
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

/* The oldest of what was heard. */
static void take(struct trap_engine *engine, pid_t *tid, int *status)
{
	size_t first = engine->heard.first;

	*tid = engine->heard.items[first].tid;
	*status = engine->heard.items[first].status;
	engine->stop_ns = engine->heard.items[first].time_ns;
	engine->heard.first = (first + 1) % TRAP_HEARD;
	engine->heard.count--;
}

struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status)
{
	*tid = 0;
	errno = 0;
	if (engine->heard.count == 0 && (listen(engine) <= 0 || engine->heard.count == 0)) {
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
	*tid = 0;
	if (engine->heard.count == 0)
		look_at_others(engine, engine->threads.count);
	/* What was seen of one that is killed meanwhile is gone when it is waited for. */
	if (engine->heard.count > 0)
		take(engine, tid, status);
}
