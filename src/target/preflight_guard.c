// SPDX-License-Identifier: MIT
/* preflight_guard.c: is a memwatch, or the guard of one that was killed, at work on a process (preflight.h)? */
#include "target/preflight.h"

#include "proc/status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME      "memwatch"
#define GUARD     "memwatch-guard"
#define MOMENT_NS 20000000
#define MOMENTS   500 /* on a busy machine a process of a thousand threads takes seconds */

/* Does a process whose name begins so trace any of the threads? It may have let go of the first already. */
static bool traced_by(pid_t pid, const char *beginning)
{
	pid_t *tids = NULL, last = gettid();
	size_t count = 0;
	bool found = false;

	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count && !found; i++) {
		struct mw_status status;
		struct mw_error *err = mw_status_read(tids[i], &status);
		char name[17];

		if (!err && status.tracer && status.tracer != gettid() && status.tracer != last) {
			last = status.tracer;
			mw_comm_read(last, last, name);
			found = strncmp(name, beginning, strlen(beginning)) == 0;
		}
		mw_error_destroy(err);
	}
	free(tids);
	return found;
}

bool mw_preflight_await_guard(pid_t pid)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	unsigned i;

	for (i = 0; i < MOMENTS && traced_by(pid, GUARD); i++)
		nanosleep(&moment, NULL);
	return i > 0;
}

bool mw_preflight_under_memwatch(pid_t pid)
{
	return traced_by(pid, NAME);
}
