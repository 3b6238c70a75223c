/* SPDX-License-Identifier: MIT */
/* vdso: a timer whose handler maps memory, and mostly strikes where the time is asked for. */
#include "target.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define TICKS 1500
#define PAGE  4096

static volatile sig_atomic_t ticks;

static KEEP void vm_vdso_map(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || munmap(page, PAGE) != 0)
		target_fail("mmap");
}

static void on_tick(int signal_number)
{
	(void)signal_number;
	if (ticks >= TICKS)
		return;
	vm_vdso_map();
	ticks++;
}

static KEEP void ask_the_time(void)
{
	struct timespec now;

	while (ticks < TICKS) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_gettime(CLOCK_REALTIME, &now);
	}
}

int main(void)
{
	const struct itimerspec often = {{0, 500000}, {0, 500000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action;
	struct sigevent event;
	timer_t timer;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_tick;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGUSR1;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		target_fail("timer_create");
	target_ready();
	timer_settime(timer, 0, &often, NULL);
	ask_the_time();
	timer_settime(timer, 0, &never, NULL);
	target_say("vm_vdso_map.size.count", TICKS);
	target_say("vm_vdso_map.transient.count", TICKS);
	target_say("vm_vdso_map.transient.bytes", (uint64_t)TICKS * PAGE);
	target_done();
	return 0;
}
