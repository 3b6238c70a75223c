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

struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status)
{
	pid_t got = waitpid(-1, status, __WALL);

	engine->stop_ns = mw_clock_ns();
	*tid = got;
	if (got > 0)
		return NULL;
	*tid = 0;
	if (errno == EINTR || errno == ECHILD)
		return NULL;
	return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot wait for the target");
}
