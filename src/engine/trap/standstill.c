// SPDX-License-Identifier: MIT
/* standstill.c: for how long the target has stood still by our doing, and whether that is too long (trap.h). */
#include "base/clock.h"
#include "engine/trap/threads.h"

#define STEP_NS  UINT64_C(1000000000)
#define MILLIONS UINT64_C(1000000)

/* When the window ends, CLOCK_MONOTONIC; UINT64_MAX: not known yet. */
static uint64_t window_end(const struct trap_process *process)
{
	uint64_t length = process->window.length_ns ? process->window.length_ns : process->engine->options.duration_ns;

	return length ? process->start_ns + length : UINT64_MAX;
}

/* The process, or a thread of it, was stopped for us, inside its window: for stats.stood_ns alone, and a stop at an
 * event. */
static void trap_stood(struct trap_process *process, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t last_ns = window_end(process);

	if (end_ns > last_ns)
		end_ns = last_ns;
	/* Threads that stand at once are served one after the other: no time counts twice. */
	if (begin_ns < process->standstill.until_ns)
		begin_ns = process->standstill.until_ns;
	if (end_ns <= begin_ns)
		return;
	process->stats.stood_ns += end_ns - begin_ns;
	process->standstill.until_ns = end_ns;
}

void trap_account_stop(struct trap_process *process, uint64_t begin_ns, uint64_t end_ns)
{
	struct mw_engine_stats *stats = &process->stats;

	stats->stops++;
	stats->stopped_ns += end_ns - begin_ns;
	if (end_ns - begin_ns > stats->longest_stop_ns)
		stats->longest_stop_ns = end_ns - begin_ns;
	trap_stood(process, begin_ns, end_ns);
}

bool trap_stands_too_long(struct trap_process *process)
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
