// SPDX-License-Identifier: MIT
/*
 * pace.c: keep the tracer on the CPU of the thread it serves (trap.h).
 *
 * A stop is two switches between target and tracer. On one CPU they cost a few microseconds; across CPUs each wakes an
 * idle one, ten times as much. The kernel wakes a resumed thread on an idle CPU, and never holds the one for idle on
 * which the tracer is just running. Except if the tracer is of the idle class: then the thread
 * wakes where it was, at once, and the tracer goes on there when it stops next. The price: where others compete for
 * that CPU the tracer would starve and the target would wait for it. So that is watched for, and given up for a while.
 */
#include "base/clock.h"
#include "engine/trap/trap.h"
#include "proc/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK_STOPS_MIN  16u
#define CHECK_STOPS_MAX  512u
#define REST_NS          1000000000u
#define CONTENDED_SHARE  4 /* a quarter of the time */
#define RLIMIT_NICE_ZERO 20

/* Run time and time spent waiting for a CPU of a thread, in ns. */
static bool schedstat(pid_t pid, pid_t tid, uint64_t *ran, uint64_t *waited)
{
	char path[64], text[128];
	int fd;
	ssize_t got;
	unsigned long long a, b;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	if (sscanf(text, "%llu %llu", &a, &b) != 2)
		return false;
	*ran = a;
	*waited = b;
	return true;
}

static bool set_idle(bool idle)
{
	const struct sched_param none = {.sched_priority = 0};

	return sched_setscheduler(0, idle ? SCHED_IDLE : SCHED_OTHER, &none) == 0;
}

void trap_pace_begin(struct trap_engine *engine)
{
	struct rlimit nice;

	engine->pace.cpu = -1;
	engine->pace.saved = sched_getaffinity(0, sizeof(engine->pace.original), &engine->pace.original) == 0;
	/* Whoever may not come back from the idle class must not go there. */
	engine->pace.may_idle =
		sched_getscheduler(0) == SCHED_OTHER &&
		(geteuid() == 0 || (getrlimit(RLIMIT_NICE, &nice) == 0 && nice.rlim_cur >= RLIMIT_NICE_ZERO));
	engine->pace.next_check = CHECK_STOPS_MIN;
}

static void leave_idle(struct trap_engine *engine)
{
	if (engine->pace.idle && set_idle(false))
		engine->pace.idle = false;
}

static void unpin(struct trap_engine *engine)
{
	if (engine->pace.cpu >= 0)
		sched_setaffinity(0, sizeof(engine->pace.original), &engine->pace.original);
	engine->pace.cpu = -1;
}

/*
 * Since the last check: did the tracer wait for its CPU longer than the thread it serves ran there? Then somebody
 * else ran, and the target stood still meanwhile.
 */
static bool contended(struct trap_engine *engine, const struct trap_thread *thread, uint64_t now)
{
	uint64_t ran = 0, waited = 0, own_ran, own_waited;
	bool known = engine->pace.tid == thread->tid && engine->pace.wall_ns != 0;
	bool result = false;

	if (!schedstat(getpid(), (pid_t)syscall(SYS_gettid), &own_ran, &own_waited) ||
	    !schedstat(thread->process->pid, thread->tid, &ran, &waited))
		return false;
	if (known) {
		uint64_t waiting = own_waited - engine->pace.run_delay;
		uint64_t served = ran - engine->pace.target_cpu_ns;

		result = waiting > served && (waiting - served) * CONTENDED_SHARE > now - engine->pace.wall_ns;
	}
	engine->pace.tid = thread->tid;
	engine->pace.run_delay = own_waited;
	engine->pace.target_cpu_ns = ran;
	engine->pace.wall_ns = now;
	return result;
}

static void pin(struct trap_engine *engine, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		engine->pace.cpu = cpu;
}

static void check(struct trap_engine *engine, const struct trap_thread *thread)
{
	uint64_t now = engine->stop_ns;
	int cpu;

	if (now < engine->pace.rest_until_ns)
		return;
	if (engine->pace.idle && contended(engine, thread, now)) {
		leave_idle(engine);
		unpin(engine);
		engine->pace.rest_until_ns = now + REST_NS;
		engine->pace.wall_ns = 0;
		return;
	}
	cpu = mw_task_cpu(thread->process->pid, thread->tid);
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &engine->pace.original))
		return;
	if (cpu == engine->pace.cpu) {
		if (engine->pace.next_check < CHECK_STOPS_MAX)
			engine->pace.next_check *= 2;
		return;
	}
	engine->pace.next_check = CHECK_STOPS_MIN;
	pin(engine, cpu);
	if (!engine->pace.idle && set_idle(true))
		engine->pace.idle = true;
}

void trap_pace_stop(struct trap_engine *engine, struct trap_thread *thread)
{
	if (!engine->pace.may_idle || !engine->pace.saved || ++engine->pace.stops < engine->pace.next_check)
		return;
	engine->pace.stops = 0;
	check(engine, thread);
}

void trap_pace_end(struct trap_engine *engine)
{
	leave_idle(engine);
	unpin(engine);
}
