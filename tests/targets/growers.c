/* SPDX-License-Identifier: MIT */
/*
 * growers STEPS [MODE…]: grows in several ways at once, each in a function of its own, grow_MODE: all of
 *
 *   leak     a block each step
 *   cache    the same in the first quarter of the steps, then no more
 *   waves    grows for 50 steps, shrinks to nothing for 50, and so on
 *   bursts   many blocks every 110 steps
 *   once     many blocks after a fifth of the steps
 *   requests a few blocks each step, each freed 5 steps later
 *   replaced a block each step, and from the hundredth on the oldest freed for each
 *   mixed    as requests, but that one of a hundred is never freed
 *   buffer   one block that is reallocated each step, for more
 *   maps     a mapping every 10 steps
 *
 * A step takes 10 ms or, where the machine is loaded, as long as it takes: what was missed is not made up for. After
 * STEPS it says how long the longest took (longest_step_ns) and "done", and goes on until it is told to end.
 */
#include "target.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS 10000000

static unsigned long steps;

/* As often, in a loop that the compiler can't take apart: there is one call in it, and one stack. */
static unsigned times(unsigned count)
{
	OPAQUE(count);
	return count;
}

static KEEP void grow_leak(unsigned long step)
{
	void *block = malloc(100);

	OPAQUE(block);
	OPAQUE(step);
}

static KEEP void grow_cache(unsigned long step)
{
	if (step >= steps / 4)
		return;
	void *block = malloc(1000);
	OPAQUE(block);
}

static KEEP void grow_waves(unsigned long step)
{
	static void *held[50][10];
	unsigned long at = step % 100;

	for (unsigned i = 0, count = times(10); i < count; i++) {
		if (at < 50) {
			held[at][i] = malloc(500);
			OPAQUE(held[at][i]);
		} else {
			free(held[99 - at][i]);
		}
	}
}

static KEEP void grow_bursts(unsigned long step)
{
	if (step % 110 != 30)
		return;
	for (unsigned i = 0, count = times(200); i < count; i++) {
		void *block = malloc(64);
		OPAQUE(block);
	}
}

static KEEP void grow_once(unsigned long step)
{
	if (step != steps / 5)
		return;
	for (unsigned i = 0, count = times(50); i < count; i++) {
		void *block = calloc(1, 20000);
		OPAQUE(block);
	}
}

static KEEP void grow_requests(unsigned long step)
{
	static void *held[5][4];

	for (unsigned i = 0, count = times(4); i < count; i++) {
		free(held[step % 5][i]);
		held[step % 5][i] = malloc(300 + step % 100);
		OPAQUE(held[step % 5][i]);
	}
}

static KEEP void grow_replaced(unsigned long step)
{
	static void *held[100];

	free(held[step % 100]);
	held[step % 100] = malloc(700);
	OPAQUE(held[step % 100]);
}

static KEEP void grow_mixed(unsigned long step)
{
	static void *held[5][10];

	for (unsigned i = 0, count = times(10); i < count; i++) {
		if (step % 10 != 9 || i != times(0))
			free(held[step % 5][i]);
		held[step % 5][i] = malloc(200);
		OPAQUE(held[step % 5][i]);
	}
}

static KEEP void grow_buffer(unsigned long step)
{
	static void *buffer;

	buffer = realloc(buffer, 4000 * (step + 1));
	OPAQUE(buffer);
}

static KEEP void grow_maps(unsigned long step)
{
	if (step % 10 == 0 && mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		target_fail("mmap");
}

static const struct {
	const char *name;
	void (*grow)(unsigned long step);
} modes[] = {
	{"leak", grow_leak},     {"cache", grow_cache},       {"waves", grow_waves},       {"bursts", grow_bursts},
	{"once", grow_once},     {"requests", grow_requests}, {"replaced", grow_replaced}, {"mixed", grow_mixed},
	{"buffer", grow_buffer}, {"maps", grow_maps},
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Is a byte, or its end, on the standard input? */
static bool told_to_end(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&in, 1, 0) > 0;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 3;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = STEP_NS};
	bool wanted[MODES];
	uint64_t last, longest = 0;

	steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
	for (unsigned i = 0; i < MODES; i++)
		wanted[i] = is_wanted(modes[i].name, argc, argv);
	target_ready();
	last = now();
	for (unsigned long step = 0; step < steps || !told_to_end(); step++) {
		for (unsigned i = 0; i < MODES; i++)
			if (wanted[i])
				modes[i].grow(step);
		nanosleep(&pause, NULL);
		if (step < steps) {
			uint64_t time = now();

			longest = time - last > longest ? time - last : longest;
			last = time;
		}
		if (step + 1 == steps) {
			target_say("longest_step_ns", longest);
			target_say_text("done");
		}
	}
	return 0;
}
