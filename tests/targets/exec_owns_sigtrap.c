/* SPDX-License-Identifier: MIT */
/*
 * exec_owns_sigtrap MICROSECONDS|told [crowded]: a program that becomes another, itself run as `becomes owner`, a short
 * time after it was started, or when it is told to. The owner has an action for SIGTRAP, and a handler for SIGUSR2 that
 * allocates while SIGTRAP and SIGINT are blocked. It answers as target.h says, having sent itself both signals over and
 * over.
 *
 * Crowded: both programs have their libraries at the same addresses, and the owner has memory of its own wherever
 * the first had free room below those: it must stay.
 */
#include "target.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#define ROUNDS 200
#define CROWD  ((size_t)1 << 31) /* bytes of address space */
#define TOP    ((size_t)1 << 30) /* … of which this much is looked at for what was written */

static volatile sig_atomic_t trapped, handled;

static KEEP void becomes_leak(void)
{
	void *block = malloc(52);

	OPAQUE(block);
	handled++;
}

static void on_trap(int number)
{
	(void)number;
	trapped++;
}

static void on_user(int number)
{
	(void)number;
	raise(SIGTRAP); /* is blocked: arrives when this ends */
	becomes_leak();
}

static bool is_empty(const char *page, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (page[i])
			return false;
	return true;
}

/* Any that was written to, or taken away, since it was mapped? A page that was only read is there as well. */
static void check_crowd(char *memory)
{
	unsigned char present[64];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page * sizeof(present);

	for (size_t at = CROWD - TOP; at < CROWD; at += step) {
		if (mincore(memory + at, step, present) != 0)
			target_fail("memory of its own is gone");
		for (size_t i = 0; i < sizeof(present); i++)
			if ((present[i] & 1) && !is_empty(memory + at + i * page, page))
				target_fail("memory of its own was written to");
	}
	if (msync(memory, CROWD, MS_ASYNC) != 0)
		target_fail("memory of its own is gone");
}

static void own(bool crowded)
{
	struct sigaction action;
	char *crowd = NULL;

	if (crowded) {
		crowd = mmap(NULL, CROWD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (crowd == MAP_FAILED)
			target_fail("mmap");
	}
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_trap;
	sigaction(SIGTRAP, &action, NULL);
	action.sa_handler = on_user;
	sigaddset(&action.sa_mask, SIGTRAP);
	sigaddset(&action.sa_mask, SIGINT);
	sigaction(SIGUSR2, &action, NULL);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		raise(SIGUSR2);
		free(malloc(33));
		raise(SIGTRAP);
	}
	if (trapped != 2 * ROUNDS || handled != ROUNDS)
		target_fail("signals were lost or doubled");
	if (crowded)
		check_crowd(crowd);
	target_say("becomes_leak.impacting.count", ROUNDS);
	target_say("trapped", (uint64_t)trapped);
	target_done();
}

/* Best effort: where it is not permitted addresses differ, and little is shown. */
static void have_fixed_addresses(char **argv)
{
	int now = personality(0xffffffff);

	if (now == -1 || now & ADDR_NO_RANDOMIZE || personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1)
		return;
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	bool crowded = argc > 2 && strcmp(argv[2], "crowded") == 0;

	if (argc > 1 && strcmp(argv[1], "owner") == 0) {
		own(crowded);
		return 0;
	}
	if (crowded)
		have_fixed_addresses(argv);
	if (argc > 1 && strcmp(argv[1], "told") == 0)
		target_ready();
	else
		usleep(argc > 1 ? (useconds_t)strtoul(argv[1], NULL, 10) : 1000);
	execl("/proc/self/exe", argv[0], "owner", crowded ? argv[2] : NULL, (char *)NULL);
	target_fail("exec");
}
