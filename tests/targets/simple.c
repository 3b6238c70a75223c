/* SPDX-License-Identifier: MIT */
/*
 * simple: a few functions whose allocations are known, in plain C, so that it can be linked in every
 * way there is: dynamic, static, static-pie, musl, with another allocator in front.
 *
 * simple [ROUNDS [PAUSE_US]]: PAUSE_US between rounds, for what looks on while it works.
 */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kept[5000];

static KEEP void *simple_leak(size_t size)
{
	void *block = malloc(size);

	OPAQUE(block);
	memset(block, 1, size);
	return block;
}

static KEEP void simple_churn(size_t size)
{
	void *block = malloc(size);

	OPAQUE(block);
	memset(block, 1, size);
	free(block);
}

static KEEP void *simple_zeroed(size_t count, size_t size)
{
	void *block = calloc(count, size);

	OPAQUE(block);
	return block;
}

static KEEP void *simple_grow(size_t size)
{
	void *block = realloc(NULL, size);

	for (int i = 0; i < 3; i++) {
		size *= 2;
		block = realloc(block, size);
		OPAQUE(block);
	}
	return block;
}

static KEEP void simple_round(size_t round)
{
	kept[round] = simple_leak(48);
	simple_churn(round % 1000 + 1);
	simple_churn(64);
	if (round % 10 == 0)
		free(simple_zeroed(8, 16));
	if (round % 100 == 0)
		kept[round] = simple_grow(100);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	useconds_t pause = argc > 2 ? (useconds_t)strtoul(argv[2], NULL, 10) : 0;

	if (rounds > sizeof(kept) / sizeof(*kept))
		rounds = sizeof(kept) / sizeof(*kept);
	target_ready();
	for (size_t i = 0; i < rounds; i++) {
		simple_round(i);
		if (pause)
			usleep(pause);
	}
	target_say("simple_leak.size.count", rounds);
	target_say("simple_leak.size.bytes", rounds * 48);
	target_say("simple_leak.impacting.count", rounds);
	target_say("simple_leak.impacting.bytes", rounds * 48);
	target_say("simple_churn.size.count", rounds * 2);
	target_say("simple_churn.transient.count", rounds * 2);
	target_say("simple_churn.impacting.count", 0);
	target_say("simple_zeroed.transient.count", (rounds + 9) / 10);
	target_say("simple_zeroed.transient.bytes", (rounds + 9) / 10 * 128);
	target_say("simple_grow.size.count", (rounds + 99) / 100 * 4);
	target_say("simple_grow.size.bytes", (rounds + 99) / 100 * 1500);
	target_say("simple_grow.impacting.count", (rounds + 99) / 100);
	target_say("simple_grow.impacting.bytes", (rounds + 99) / 100 * 800);
	target_done();
	return 0;
}
