/* SPDX-License-Identifier: MIT */
/*
 * ids_changing MODE: who it is, and who may look at it, changes while it works, in all its threads.
 *   drop    inside the window: takes other effective ids and its own again, over and over, then gives up root for good
 *   hide    inside the window: may not be dumped any more
 *   flow    effective ids change all the time, until the harness ends the work
 *   blink   may be dumped, and may not, all the time, until the harness ends the work
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORKERS 3
#define PAIRS   2000
#define CHANGES 60
#define NOBODY  65534

static _Atomic bool over;
static pthread_barrier_t begin, finish;
static bool endless;

static KEEP void shifty_pair(size_t i)
{
	unsigned char *block = malloc(1 + i % 900);

	memset(block, (int)(i & 0xff), 1 + i % 900);
	OPAQUE(block);
	if (block[i % 900] != (i & 0xff))
		target_fail("a block lost what was written there");
	free(block);
}

static KEEP void shifty_leak(void)
{
	void *block = malloc(89);

	OPAQUE(block);
}

static void *work(void *unused)
{
	pthread_barrier_wait(&begin);
	for (size_t i = 0; endless ? !atomic_load(&over) : i < PAIRS; i++) {
		shifty_pair(i);
		if (endless && i % 20 == 0)
			usleep(1000);
	}
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	return unused;
}

static void expect(bool good, const char *what)
{
	if (!good)
		target_fail(what);
}

static void take_turns(void)
{
	expect(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0 && geteuid() == NOBODY, "seteuid to nobody");
	shifty_pair(7);
	expect(seteuid(0) == 0 && setegid(0) == 0 && geteuid() == 0, "seteuid to root");
}

static void drop(void)
{
	for (size_t i = 0; i < CHANGES; i++) {
		take_turns();
		shifty_leak();
	}
	expect(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0, "setresuid");
	expect(setuid(0) != 0, "it is root again");
	shifty_leak();
}

static void hide(void)
{
	shifty_leak();
	expect(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl");
	shifty_leak();
}

static bool told_to_end(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, 0) > 0;
}

static void go_on(bool blink)
{
	for (useconds_t pause_us = 1; !told_to_end(); pause_us = pause_us * 7919 % 30011) {
		if (blink) {
			expect(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl");
			for (size_t i = 0; i < 10; i++)
				shifty_pair(i);
			usleep(300);
			expect(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0, "it may be dumped");
			expect(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "prctl");
			usleep(pause_us); /* long enough for an attach, or not */
		} else {
			take_turns();
		}
		shifty_pair(9);
		usleep(300);
	}
	target_wait();
	atomic_store(&over, true);
}

static void answer(uint64_t pairs, uint64_t leaks)
{
	target_say("shifty_pair.transient.count", WORKERS * PAIRS + pairs);
	target_say("shifty_leak.impacting.count", leaks);
	target_say("heap.impacting.count", leaks);
	target_say("heap.size.count", WORKERS * PAIRS + pairs + leaks);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "hide";
	bool drops = strcmp(mode, "drop") == 0;
	pthread_t threads[WORKERS];

	endless = strcmp(mode, "flow") == 0 || strcmp(mode, "blink") == 0;
	pthread_barrier_init(&begin, NULL, WORKERS + 1);
	pthread_barrier_init(&finish, NULL, WORKERS + 1);
	for (size_t i = 0; i < WORKERS; i++)
		expect(pthread_create(&threads[i], NULL, work, NULL) == 0, "pthread_create");
	target_ready();
	pthread_barrier_wait(&begin);
	if (endless)
		go_on(strcmp(mode, "blink") == 0);
	else if (drops)
		drop();
	else
		hide();
	pthread_barrier_wait(&finish);
	if (!endless)
		answer(drops ? CHANGES : 0, drops ? CHANGES + 1 : 2);
	target_done();
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
