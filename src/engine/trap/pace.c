// SPDX-License-Identifier: MIT
/*
 * pace.c: keep the tracer on the CPU of the thread it serves (trap.h).
 *
 * A stop is two switches between target and tracer. On one CPU they cost a few microseconds; across CPUs each wakes an
 * idle one, ten times as much. The kernel wakes a resumed thread on an idle CPU, and never holds the one for idle on
 * which the tracer is just running. Except if the tracer is of the idle class: then the thread
 * wakes where it was, at once, and the tracer goes on there when it stops next.
 *
 * The price: where others compete for that CPU the tracer starves, and the target waits for it. Then the idle class is
 * given up for a while, the longer the less it was worth. A tracer that hardly runs can't see to that itself in time: a
 * second thread, which sleeps but for a look now and then, takes it out of the idle class.
 */
#include "base/thread.h"
#include "engine/trap/trap.h"
#include "proc/file.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_STOPS_MIN 16u
#define LOOK_STOPS_MAX 128u
#define LOOK_NS        1000000u  /* a stop after this long is looked at, however few there were */
#define WINDOW_NS      10000000u /* waiting is judged over at least so long: shorter bursts are sat out */
#define STARVED_SHARE  2         /* half of the time: as slow as being served from another CPU */
#define REST_MIN_NS    20000000u
#define REST_MAX_NS    16000000000u
#define REST_WORTH     8 /* a time in the idle class was worth it if it was so much longer than the rest before */
#define GUARD_MS       5

/* There is one tracer, the thread whose class and CPUs this is about. */
static struct {
	cpu_set_t original;
	bool begun, idle, may_idle;
	int cpu;
	uint64_t stops, next_check, rest_ns, rest_until_ns, idle_since_ns, look_ns, run_delay, target_cpu_ns, wall_ns;
	pid_t tid;
} pace = {.cpu = -1};

/*
 * The class of the tracer. It tells before it goes to the idle one, and when it has left it; in between it is watched,
 * also if it has been lifted out and does not know yet: it may just be on its way there again.
 */
enum class { CLASS_NORMAL, CLASS_IDLE, CLASS_LIFTED };

/* The thread that watches over the tracer. */
static struct {
	pthread_t thread;
	bool there;
	int news; /* eventfd that tells of the following two */
	atomic_int class;
	atomic_bool quit;
	atomic_int served;      /* a thread whose own running is no harm to it */
	atomic_bool comes_back; /* it has been in the idle class and may leave it: so may the tracer */
	pid_t tracer;
} guard;

/* Run time and time spent waiting for a CPU of a thread, in ns. */
static bool schedstat(pid_t tid, uint64_t *ran, uint64_t *waited)
{
	char text[128];
	unsigned long long a, b;
	size_t size;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/schedstat", tid)) ||
	    sscanf(text, "%llu %llu", &a, &b) != 2)
		return false;
	*ran = a;
	*waited = b;
	return true;
}

static bool set_idle(pid_t tid, bool idle)
{
	const struct sched_param none = {.sched_priority = 0};

	return sched_setscheduler(tid, idle ? SCHED_IDLE : SCHED_OTHER, &none) == 0;
}

/* Has the served thread run for half of the time since the last look? Then that is what the tracer waits for. */
static bool served_runs(uint64_t *ran_before)
{
	uint64_t ran = 0, waited = 0, before = *ran_before;

	schedstat(atomic_load(&guard.served), &ran, &waited);
	*ran_before = ran;
	return ran > before && ran - before > GUARD_MS * 1000000u / 2;
}

static void lift(void)
{
	int idle = CLASS_IDLE;

	set_idle(guard.tracer, false);
	sched_setaffinity(guard.tracer, sizeof(pace.original), &pace.original);
	atomic_compare_exchange_strong(&guard.class, &idle, CLASS_LIFTED);
}

/* From one look to the next the tracer wanted to run and never did, and it is not the target that ran: lift it. */
static void *guard_main(void *unused)
{
	uint64_t before = 0, now, waited, ran = 0;

	/* Whether one may come back depends on more than can be asked for: root may not in most containers. */
	if (!set_idle(0, true) || !set_idle(0, false))
		return unused;
	atomic_store(&guard.comes_back, true);
	for (;;) {
		struct pollfd news = {.fd = guard.news, .events = POLLIN};
		eventfd_t count;

		if (poll(&news, 1, atomic_load(&guard.class) == CLASS_NORMAL ? -1 : GUARD_MS) > 0)
			eventfd_read(guard.news, &count);
		if (atomic_load(&guard.quit))
			return unused;
		if (atomic_load(&guard.class) == CLASS_NORMAL || mw_state_read(guard.tracer) != 'R' ||
		    !schedstat(guard.tracer, &now, &waited)) {
			before = 0;
		} else if (now != before) {
			before = now;
			served_runs(&ran);
		} else if (!served_runs(&ran)) {
			lift();
		}
	}
}

/* Signals are for the tracer. */
static bool guard_start(void)
{
	if (guard.there)
		return true;
	guard.news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (guard.news < 0)
		return false;
	guard.tracer = (pid_t)syscall(SYS_gettid);
	atomic_store(&guard.served, 0);
	atomic_store(&guard.class, CLASS_NORMAL);
	atomic_store(&guard.quit, false);
	atomic_store(&guard.comes_back, false);
	guard.there = mw_thread_create(&guard.thread, NULL, guard_main, NULL) == 0;
	if (!guard.there)
		close(guard.news);
	return guard.there;
}

static void guard_stop(void)
{
	if (!guard.there)
		return;
	atomic_store(&guard.quit, true);
	eventfd_write(guard.news, 1);
	pthread_join(guard.thread, NULL);
	close(guard.news);
	guard.there = false;
}

static bool enter_idle(void)
{
	/* Watched over first: from then on the tracer may not get to run. */
	atomic_store(&guard.class, CLASS_IDLE);
	eventfd_write(guard.news, 1);
	pace.idle = set_idle(0, true);
	if (!pace.idle)
		atomic_store(&guard.class, CLASS_NORMAL);
	return pace.idle;
}

static void leave_idle(void)
{
	if (pace.idle && set_idle(0, false))
		pace.idle = false;
	if (!pace.idle)
		atomic_store(&guard.class, CLASS_NORMAL);
}

static void unpin(void)
{
	if (pace.cpu >= 0)
		sched_setaffinity(0, sizeof(pace.original), &pace.original);
	pace.cpu = -1;
}

static bool own_schedstat(uint64_t *ran, uint64_t *waited)
{
	return schedstat((pid_t)syscall(SYS_gettid), ran, waited);
}

/* While resting the tracer's run time is kept where the served thread's is kept otherwise. */
static void rest_until(uint64_t until)
{
	uint64_t ran = 0, waited = 0;

	own_schedstat(&ran, &waited);
	pace.run_delay = waited;
	pace.target_cpu_ns = ran;
	pace.rest_until_ns = until;
}

/*
 * In the idle class, since the last look: did the tracer wait for its CPU longer than the thread it served then ran?
 * Then somebody else ran, and the target did not run meanwhile.
 */
static bool starved(uint64_t now)
{
	uint64_t ran, waited, own_ran, own_waited, waiting, served;

	if (pace.tid == 0 || !own_schedstat(&own_ran, &own_waited) || !schedstat(pace.tid, &ran, &waited))
		return false;
	waiting = own_waited - pace.run_delay;
	served = ran - pace.target_cpu_ns;
	return waiting > served && (waiting - served) * STARVED_SHARE > now - pace.wall_ns;
}

/* From here on, until the next time that it is judged. */
static void judge_from(pid_t tid, uint64_t now)
{
	uint64_t ran = 0, waited = 0, own_ran = 0, own_waited = 0;

	atomic_store(&guard.served, tid);
	pace.tid = own_schedstat(&own_ran, &own_waited) && schedstat(tid, &ran, &waited) ? tid : 0;
	pace.run_delay = own_waited;
	pace.target_cpu_ns = ran;
	pace.wall_ns = now;
}

/* Go back to the class where one gets a share of any CPU, and let others come and go there for a while. */
static void rest(uint64_t now)
{
	leave_idle();
	unpin();
	pace.rest_ns = now - pace.idle_since_ns > pace.rest_ns * REST_WORTH ? REST_MIN_NS : pace.rest_ns * 2;
	if (pace.rest_ns > REST_MAX_NS)
		pace.rest_ns = REST_MAX_NS;
	rest_until(now + pace.rest_ns);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		pace.cpu = cpu;
}

/* While resting, did the tracer have to wait for CPUs, so that in the idle class it would hardly get one? */
static bool crowded(void)
{
	uint64_t ran = 0, waited = 0;

	if (!own_schedstat(&ran, &waited))
		return true;
	return (waited - pace.run_delay) * 2 > ran - pace.target_cpu_ns;
}

static void follow(const struct trap_thread *thread)
{
	int cpu = mw_task_cpu(thread->process->pid, thread->tid);

	if (cpu == pace.cpu) {
		if (pace.next_check < LOOK_STOPS_MAX)
			pace.next_check *= 2;
	} else if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET((size_t)cpu, &pace.original)) {
		pace.next_check = LOOK_STOPS_MIN;
		pin(cpu);
	}
}

static void look_idle(const struct trap_thread *thread, uint64_t now)
{
	if (now - pace.wall_ns >= WINDOW_NS) {
		if (starved(now)) {
			rest(now);
			return;
		}
		judge_from(thread->tid, now);
	}
	follow(thread);
}

static void look_rested(const struct trap_thread *thread, uint64_t now)
{
	if (crowded()) {
		rest_until(now + pace.rest_ns);
		return;
	}
	follow(thread);
	if (pace.cpu >= 0 && enter_idle()) {
		pace.idle_since_ns = now;
		judge_from(thread->tid, now);
	}
}

void trap_pace_begin(void)
{
	if (pace.begun)
		return;
	pace.begun = true;
	pace.cpu = -1;
	pace.may_idle = sched_getaffinity(0, sizeof(pace.original), &pace.original) == 0 &&
			sched_getscheduler(0) == SCHED_OTHER && guard_start();
	pace.next_check = LOOK_STOPS_MIN;
	pace.rest_ns = REST_MIN_NS;
	rest_until(mw_clock_ns() + pace.rest_ns);
}

void trap_pace_stop(const struct trap_thread *thread)
{
	uint64_t now = thread->process->engine->stop_ns;

	if (!pace.may_idle || now < pace.rest_until_ns || !atomic_load(&guard.comes_back))
		return;
	if (pace.idle && atomic_load_explicit(&guard.class, memory_order_relaxed) != CLASS_IDLE) {
		rest(now);
		return;
	}
	if (++pace.stops < pace.next_check && now - pace.look_ns < LOOK_NS)
		return;
	pace.stops = 0;
	pace.look_ns = now;
	if (pace.idle)
		look_idle(thread, now);
	else
		look_rested(thread, now);
}

void trap_pace_end(void)
{
	leave_idle();
	unpin();
	guard_stop();
	pace.begun = pace.may_idle = false;
}
