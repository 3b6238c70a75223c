// SPDX-License-Identifier: MIT
/* histories.c: see histories.h. */
#include "history_steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct history_step *steps;
static uint32_t step_count, step_capacity, block_count;
double window_length;
static uint64_t noise;

double any(void)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return ((double)(noise >> 40) + 1) / (double)(1u << 24);
}

double between(double low, double high)
{
	return low + (high - low) * any();
}

double pause_of(double rate)
{
	return -log(any()) / rate;
}

static void add_step(double at, uint32_t block, uint32_t bytes, uint8_t stack, uint8_t thread, bool birth)
{
	if (at < 0 || at >= window_length)
		return;
	if (step_count == step_capacity) {
		step_capacity = step_capacity ? 2 * step_capacity : 4096;
		steps = realloc(steps, step_capacity * sizeof(*steps));
		assert_non_null(steps);
	}
	steps[step_count] = (struct history_step){at, step_count, block, bytes, stack, thread, birth};
	step_count++;
}

void block_of(uint8_t stack, double born, double died, double bytes, uint8_t freer)
{
	uint32_t block = block_count++;

	add_step(born, block, (uint32_t)bytes, stack, 0, true);
	if (born < 0)
		add_step(died, block,
			 bytes == HISTORY_UNKNOWN ? HISTORY_UNKNOWN : (((uint32_t)bytes + 8 + 15) & ~15u) - 8, stack,
			 freer, false);
	else
		add_step(died, block, (uint32_t)bytes, stack, freer, false);
}

void block(double born, double died, double bytes)
{
	block_of(HISTORY_SUBJECT, born, died, bytes, 0);
}

static int compare_steps(const void *left, const void *right)
{
	const struct history_step *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

size_t history_make(const struct history *history, double seconds, uint64_t seed, const struct history_step **out)
{
	window_length = seconds;
	noise = seed;
	any();
	step_count = block_count = 0;
	history->make();
	qsort(steps, step_count, sizeof(*steps), compare_steps);
	*out = steps;
	return step_count;
}

void history_end(void)
{
	free(steps);
	steps = NULL;
	step_capacity = 0;
}
