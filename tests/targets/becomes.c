/* SPDX-License-Identifier: MIT */
/*
 * becomes: a program that becomes another, itself run as `becomes owner`, a random short time after it was started
 * (MICROSECONDS, its argument). The owner has an action for SIGTRAP, and a handler for SIGUSR2 that allocates while
 * SIGTRAP and SIGINT are blocked. It answers as target.h says, having sent itself both signals over and over.
 */
#include "target.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 200

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

static void own(void)
{
	struct sigaction action;

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
	target_say("becomes_leak.impacting.count", ROUNDS);
	target_say("trapped", (uint64_t)trapped);
	target_done();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "owner") == 0) {
		own();
		return 0;
	}
	usleep(argc > 1 ? (useconds_t)strtoul(argv[1], NULL, 10) : 1000);
	execl("/proc/self/exe", argv[0], "owner", (char *)NULL);
	target_fail("exec");
}
