// SPDX-License-Identifier: MIT
/* preflight_guard.c: is a memwatch, or the guard of one that was killed, at work on a process (preflight.h)? */
#include "tracee/preflight.h"

#include "proc/status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME      "memwatch"
#define GUARD     "memwatch-guard"
#define MOMENT_NS 20000000
#define MOMENTS   500 /* on a busy machine a process of a thousand threads takes seconds */

/* Who has a name that begins so and traces any of the threads, or 0. It may have let go of the first already. */
static pid_t traced_by(pid_t pid, const char *beginning)
{
	pid_t *tids = NULL, last = 0, found = 0;
	size_t count = 0;

	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count && !found; i++) {
		struct mw_status status;
		struct mw_error *err = mw_status_read(tids[i], &status);
		char name[17];

		if (!err && status.tracer && status.tracer != gettid() && status.tracer != last) {
			last = status.tracer;
			mw_comm_read(last, last, name);
			found = strncmp(name, beginning, strlen(beginning)) == 0 ? last : 0;
		}
		mw_error_destroy(err);
	}
	free(tids);
	return found;
}

bool mw_preflight_await_guard(pid_t pid)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	pid_t guard = traced_by(pid, GUARD);

	/* It may let go and come again, until it has done what it can. */
	for (unsigned i = 0; guard && i < MOMENTS && !mw_state_is_end(mw_state_read(guard)); i++)
		nanosleep(&moment, NULL);
	return guard != 0;
}

pid_t mw_preflight_memwatch_at(pid_t pid)
{
	return traced_by(pid, NAME);
}
