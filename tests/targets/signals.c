/* SPDX-License-Identifier: MIT */
/*
 * signals MODE: allocations among signals.
 *
 * storm  timers at 1 kHz each, queued signals with values from another thread, handlers on an
 *        alternate stack that map memory; the main thread's malloc/free sums stay exact and no
 *        queued signal is lost, doubled or changed.
 * left   an alternate stack with pieces of frames of signals that are long over
 * alloc  handlers that malloc and free inside interrupted mallocs (needs libbump.so preloaded).
 * jump   handlers that siglongjmp out of malloc (needs libbump.so preloaded).
 */
#include "target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define QUEUED 1500

static _Atomic uint64_t ticks, queued_seen, handler_blocks, wrong;
static _Atomic int last_value = -1;
static _Atomic bool begun;
static pthread_t main_thread;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;
static timer_t timers[2];

static void on_tick(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context, (void)info;
	if (atomic_fetch_add(&ticks, 1) % 8 == 0) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED || munmap(page, 4096) != 0)
			atomic_fetch_add(&wrong, 1);
	}
}

static void on_queued(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context;
	if (info->si_code != SI_QUEUE || info->si_pid != getpid() ||
	    info->si_value.sival_int != atomic_load(&last_value) + 1)
		atomic_fetch_add(&wrong, 1);
	atomic_store(&last_value, info->si_value.sival_int);
	atomic_fetch_add(&queued_seen, 1);
}

static KEEP void signals_in_handler(void)
{
	void *block = malloc(88);

	OPAQUE(block);
	free(block);
	block = malloc(99);
	OPAQUE(block);
	atomic_fetch_add(&handler_blocks, 1);
}

static void on_alloc(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context, (void)info;
	atomic_fetch_add(&ticks, 1);
	signals_in_handler();
}

static void on_jump(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context, (void)info;
	atomic_fetch_add(&ticks, 1);
	if (may_jump)
		siglongjmp(back, 1);
}

static void handle(int signal_number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
	if (sigaction(signal_number, &action, NULL) != 0)
		target_fail("sigaction");
}

static void make_timer(size_t which, int signal_number)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = signal_number;
	if (timer_create(CLOCK_MONOTONIC, &event, &timers[which]) != 0)
		target_fail("timer_create");
}

static void arm(size_t which, long nanoseconds, bool again)
{
	struct itimerspec when = {.it_interval = {0, again ? nanoseconds : 0}, .it_value = {0, nanoseconds}};

	if (timer_settime(timers[which], 0, &when, NULL) != 0)
		target_fail("timer_settime");
}

static void disarm(size_t which)
{
	struct itimerspec never;

	memset(&never, 0, sizeof(never));
	timer_settime(timers[which], 0, &never, NULL);
}

static void *use_alternate_stack(void)
{
	static char memory[65536] __attribute__((aligned(16)));
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory), .ss_flags = 0};

	if (sigaltstack(&stack, NULL) != 0)
		target_fail("sigaltstack");
	return memory;
}

static KEEP void signals_pair(size_t i)
{
	void *block = malloc(1 + i % 500);

	OPAQUE(block);
	free(block);
}

static KEEP void signals_leak(void)
{
	void *block = malloc(77);

	OPAQUE(block);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *queue_main(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!atomic_load(&begun))
		usleep(1000);
	for (int i = 0; i < QUEUED; i++) {
		union sigval value = {.sival_int = i};
		while (pthread_sigqueue(main_thread, SIGRTMIN + 1, value) != 0)
			usleep(100);
		if (i % 3 == 0)
			usleep(300);
		if (i % 50 == 0)
			pthread_kill(main_thread, SIGUSR1);
	}
	return unused;
}

static void storm(void)
{
	struct itimerval prof = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
	struct itimerval off;
	pthread_t sender;
	size_t pairs = 0, leaks = 0;

	memset(&off, 0, sizeof(off));
	use_alternate_stack();
	handle(SIGPROF, on_tick, SA_ONSTACK);
	handle(SIGUSR1, on_tick, 0);
	handle(SIGRTMIN, on_tick, SA_ONSTACK);
	handle(SIGRTMIN + 1, on_queued, 0);
	main_thread = pthread_self();
	if (pthread_create(&sender, NULL, queue_main, NULL) != 0)
		target_fail("pthread_create");
	target_ready();
	atomic_store(&begun, true);
	make_timer(0, SIGRTMIN);
	arm(0, 1000000, true);
	setitimer(ITIMER_PROF, &prof, NULL);
	for (double end = now() + 30; now() < end && (atomic_load(&queued_seen) < QUEUED || pairs < 3000); pairs++) {
		signals_pair(pairs);
		if (pairs % 10 == 0) {
			signals_leak();
			leaks++;
		}
	}
	setitimer(ITIMER_PROF, &off, NULL);
	disarm(0);
	if (atomic_load(&queued_seen) != QUEUED)
		target_fail("queued signals were lost");
	target_say("signals_pair.transient.count", pairs);
	target_say("signals_pair.size.count", pairs);
	target_say("signals_leak.impacting.count", leaks);
	target_say("signals_leak.impacting.bytes", leaks * 77);
}

static void on_allocating(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)info, (void)context;
	atomic_fetch_add(&ticks, 1);
	signals_pair(99);
}

/* What may be left of the frame of a signal that has interrupted code from `pc` on: registers, but not what lay
 * around. */
static void leave_pieces(uint64_t *at, uint64_t pc)
{
	for (size_t i = 0; i < 16; i++, at += 32) {
		at[0] = (uint64_t)(uintptr_t)(at + 64); /* stack pointer */
		at[1] = pc + i;
		at[2] = 0x246;                          /* flags */
		at[3] = 0x2b000000000033;               /* segments */
		at[8] = (uint64_t)(uintptr_t)(at + 16); /* coprocessor */
	}
}

/* Signals that interrupted handlers which allocate, in code that belongs to no file, have left that on the alternate stack.
 */
static void left(void)
{
	static char text[65536];
	uint64_t *at = use_alternate_stack(), *end = at + (size_t)5 * 1024;
	ssize_t size;
	int fd;

	handle(SIGUSR1, on_allocating, SA_ONSTACK);
	target_ready();
	raise(SIGUSR1);
	target_say("signals_pair.transient.count", ticks);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size = read(fd, text, sizeof(text) - 1);
	if (size <= 0)
		target_fail("/proc/self/maps");
	close(fd);
	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		unsigned long start, inode;

		if (sscanf(line, "%lx-%*x r-xp %*x %*s %lu", &start, &inode) != 2 || inode)
			continue;
		if (at == end)
			break;
		leave_pieces(at, start + 4096);
		at += 1024;
	}
}

static void with_bump(bool jumping)
{
	const _Atomic uint64_t *entered = dlsym(RTLD_DEFAULT, "bump_entered");
	const _Atomic uint64_t *allocations = dlsym(RTLD_DEFAULT, "bump_allocations");
	uint64_t entered_before, allocations_before;
	volatile size_t pairs = 0;
	double end;

	if (!entered || !allocations)
		target_fail("libbump.so is not preloaded");
	handle(SIGUSR2, jumping ? on_jump : on_alloc, 0);
	target_ready();
	entered_before = *entered;
	allocations_before = *allocations;
	make_timer(0, SIGUSR2);
	end = now() + 2;
	if (jumping)
		sigsetjmp(back, 1);
	may_jump = jumping;
	/* One that comes while siglongjmp unblocks it would lie on top of the last, and so on until the stack is full,
	 * where that takes longer than until the next. */
	arm(0, 300000, !jumping);
	/* libbump never gives anything back, so small blocks and not too many. */
	for (; now() < end && pairs < 1500000; pairs++)
		signals_pair(pairs % 16);
	may_jump = 0;
	disarm(0);
	target_say("entered", *entered - entered_before);
	target_say("completed", *allocations - allocations_before);
	if (!jumping) {
		target_say("signals_pair.transient.count", pairs + 0);
		target_say("signals_in_handler.size.count", 2 * handler_blocks);
		target_say("signals_in_handler.impacting.count", handler_blocks);
		target_say("signals_in_handler.impacting.bytes", 99 * handler_blocks);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "storm";

	if (strcmp(mode, "storm") == 0)
		storm();
	else if (strcmp(mode, "left") == 0)
		left();
	else
		with_bump(strcmp(mode, "jump") == 0);
	if (wrong)
		target_fail("a signal came with the wrong information");
	if (ticks == 0)
		target_fail("no signal came");
	target_say("ticks", ticks);
	target_done();
	return 0;
}
