// SPDX-License-Identifier: MIT
/* injector.c: a thread of a held process that can perform a system call for us, and how to come by one (trap.h). */
#include "base/clock.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"

#include <sys/ptrace.h>
#include <unistd.h>

#define PATIENCE_NS    UINT64_C(5000000000)
#define LAST_BREATH_US 100000

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
		MW_TRY(engine->dispatch(engine, tid, status));
		thread = mw_map_get(&engine->threads, (uint64_t)tid);
		if (!wanted && thread && thread->process == process && thread->stopped && !thread->group_stopped)
			MW_TRY(trap_resume(thread));
	} while (!process->ended && mw_clock_ns() < until);
	return NULL;
}

/*
 * Let the threads that were stopped with a signal take it, and stop again. For a moment they get on with their work,
 * each time for longer: where CPUs are scarce it would be over before any has had one, and what all wait for (a
 * vforked child) may take a while.
 */
struct mw_error *trap_deliver_held(struct trap_process *process, useconds_t *breath_us)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

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
	struct trap_thread *second = NULL, *third = NULL;
	bool lives = false;
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		lives |= thread->relation == TRAP_THREAD && !thread->ending;
		if (!trap_is_usable(thread) || (permitted && !trap_seccomp_policy_may_install(process, thread->tid)) ||
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

/* One that lives through a call outside of our memory, if there is any; else any. */
struct trap_thread *trap_best_thread(struct trap_process *process)
{
	const pid_t tid = trap_stopped_tid(process);
	struct trap_thread *best = NULL;
	struct mw_maps maps = {0};
	struct mw_error *err = tid ? mw_maps_read(tid, &maps) : NULL;

	if (!err && tid)
		best = find_usable(process, true, &maps);
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	return best ? best : trap_usable_thread(process);
}

struct mw_error *trap_await_injector(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns();
	useconds_t breath_us = TRAP_FIRST_BREATH_US;

	/* The only thread may fork all the time, or wait for a child that shares its memory. */
	while (!trap_usable_thread(process) && mw_clock_ns() - begin < PATIENCE_NS && !process->ended)
		MW_TRY(trap_deliver_held(process, &breath_us));
	return NULL;
}
