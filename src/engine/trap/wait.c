// SPDX-License-Identifier: MIT
/* wait.c: hear of the next stop (trap.h). Knows nothing of what stops mean. */
#include "base/clock.h"
#include "engine/trap/trap.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

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

	if (!engine->ticking)
		return;
	setitimer(ITIMER_REAL, &never, NULL);
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

/*
 * The kernel looks for stops in the order in which threads were attached: a busy one would always be found before those
 * after it. So all that have stopped are heard of first, and then served in that order.
 */
static pid_t listen(struct trap_engine *engine)
{
	int status;
	pid_t got = waitpid(-1, &status, __WALL);

	if (got <= 0)
		return got;
	hear(engine, got, status);
	while (engine->threads.count > 1 && engine->heard.count < TRAP_HEARD) {
		pid_t more = waitpid(-1, &status, __WALL | WNOHANG);

		if (more <= 0)
			break;
		hear(engine, more, status);
	}
	return got;
}

struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status)
{
	size_t first = engine->heard.first;

	*tid = 0;
	if (engine->heard.count == 0 && listen(engine) <= 0) {
		engine->stop_ns = mw_clock_ns();
		if (errno == EINTR || errno == ECHILD)
			return NULL;
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot wait for the target");
	}
	*tid = engine->heard.items[first].tid;
	*status = engine->heard.items[first].status;
	engine->stop_ns = engine->heard.items[first].time_ns;
	engine->heard.first = (first + 1) % TRAP_HEARD;
	engine->heard.count--;
	return NULL;
}
