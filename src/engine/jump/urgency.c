// SPDX-License-Identifier: MIT
/*
 * urgency.c: the thread that reads the rings gets a CPU when it wants one, also where all of them are busy: threads of the
 * target that find their ring full wait for it (jump.h). docs/SCHEDULING.md has what was measured.
 *
 * As a real-time thread (SCHED_FIFO, the lowest priority) it waits for nobody but others of that kind, at any nice value,
 * in any control group. So that it never takes a CPU from others for long, it is one for four fifths of the time at most
 * and 50 ms at a time; else, while it stops a process, and between runs of the engine, it has a high priority among the
 * ordinary ones. Who may not be either asks for short slices, which bring it a CPU sooner.
 */
#include "engine/jump/jump.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE       (-15)
#define MOST_NS    UINT64_C(50000000) /* that it is a real-time thread without a rest */
#define ENOUGH_NS  UINT64_C(10000000) /* … until it may be one again */
#define BACK       4                  /* all other time gives so much back: four fifths of the time at most */
#define SLICE_NS   UINT64_C(100000)
#define SLACK_NS   1UL /* by which it may be woken too late */
#define OLDER_SIZE 48  /* struct sched_attr as all kernels know it */

/* struct sched_attr; not in all C libraries. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

_Static_assert(sizeof(struct attributes) == OLDER_SIZE, "as the kernel has it");

/* Threads and processes that it makes are ordinary ones. */
static bool set_realtime(void)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

/* What it makes is ordinary, if it says so. Best effort. */
static void set_ordinary(int nice, int reset)
{
	const struct sched_param none = {.sched_priority = 0};

	/* Without a privilege that stays so. */
	if (sched_setscheduler(0, SCHED_OTHER | reset, &none) != 0)
		(void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
	(void)setpriority(PRIO_PROCESS, 0, nice);
}

static void set_slice(int nice, uint64_t ns)
{
	const struct attributes attributes = {.size = OLDER_SIZE, .policy = SCHED_OTHER, .nice = nice, .runtime = ns};

	(void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void jump_urgency_begin(struct jump_urgency *urgency)
{
	if (urgency->on) {
		jump_urgency_note(urgency, false);
		return;
	}
	*urgency = (struct jump_urgency){.on = true,
					 .nice = getpriority(PRIO_PROCESS, 0),
					 .policy = sched_getscheduler(0),
					 .slack = prctl(PR_GET_TIMERSLACK),
					 .left_ns = MOST_NS,
					 .seen_ns = mw_clock_ns()};
	(void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
	/* Whoever has chosen another way for memwatch knows why. */
	if (urgency->policy != SCHED_OTHER)
		return;
	urgency->may = urgency->realtime = set_realtime();
	if (!urgency->may && setpriority(PRIO_PROCESS, 0, NICE) != 0)
		set_slice(urgency->nice, SLICE_NS);
}

void jump_urgency_note(struct jump_urgency *urgency, bool worked)
{
	uint64_t now = mw_clock_ns(), span = now - urgency->seen_ns;

	urgency->seen_ns = now;
	if (!urgency->may)
		return;
	if (worked && urgency->realtime)
		urgency->left_ns = span < urgency->left_ns ? urgency->left_ns - span : 0;
	else
		urgency->left_ns = span < MOST_NS / BACK && urgency->left_ns + BACK * span < MOST_NS
					   ? urgency->left_ns + BACK * span
					   : MOST_NS;
	if (urgency->realtime && !urgency->left_ns)
		jump_urgency_lower(urgency);
	else if (!urgency->realtime && urgency->left_ns >= ENOUGH_NS)
		urgency->realtime = set_realtime();
}

void jump_urgency_lower(struct jump_urgency *urgency)
{
	if (!urgency->realtime)
		return;
	urgency->realtime = false;
	set_ordinary(NICE, SCHED_RESET_ON_FORK);
}

void jump_urgency_end(struct jump_urgency *urgency)
{
	if (!urgency->on)
		return;
	urgency->on = urgency->may = urgency->realtime = false;
	(void)prctl(PR_SET_TIMERSLACK, (unsigned long)urgency->slack);
	if (urgency->policy == SCHED_OTHER)
		set_ordinary(urgency->nice, 0);
}
