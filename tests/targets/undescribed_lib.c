/* SPDX-License-Identifier: MIT */
/*
 * undescribed_lib: frames of all kinds that compilers make, in code that says nothing of them. Built with frame
 * pointers and without, stripped and not.
 */
#include "undescribed.h"

#include "target.h"

#include <alloca.h>
#include <stdlib.h>

/* In undescribed_x86_64.S. */
void odd_enter(undescribed_step step, unsigned level);
void odd_stack(undescribed_step step, unsigned level);
void odd_late(undescribed_step step, unsigned level);
void odd_shared(undescribed_step step, unsigned level);

/* Saved registers, as many as there are. */
KEEP static void many(undescribed_step step, unsigned level)
{
	unsigned a = level, b = level + 1, c = level + 2, d = level + 3, e = level + 4, f = level + 5;

	OPAQUE(a);
	OPAQUE(b);
	OPAQUE(c);
	OPAQUE(d);
	OPAQUE(e);
	OPAQUE(f);
	step(level);
	if (a + b + c + d + e + f != 6 * level + 15)
		abort();
}

KEEP static void large(undescribed_step step, unsigned level)
{
	volatile char room[5000];

	room[0] = (char)level;
	step(level);
	room[4999] = room[0];
}

KEEP static void variable(undescribed_step step, unsigned level)
{
	volatile char *room = alloca(100 + level % 7 * 16);

	room[0] = 1;
	step(level);
	room[1] = room[0];
}

/* Several returns, and paths with and without a frame. */
KEEP static int returns(undescribed_step step, unsigned level)
{
	unsigned kept = level;

	OPAQUE(kept);
	if (level % 3 == 0) {
		step(level);
		return kept != level;
	}
	if (level % 3 == 1)
		step(level);
	else
		step(level);
	if (kept == level)
		return 2;
	return 3;
}

/* By a table of jumps. */
KEEP static unsigned table(undescribed_step step, unsigned level)
{
	unsigned kept = level;

	OPAQUE(kept);
	switch (level % 8) {
	case 0:
		step(level);
		return 11 + kept;
	case 1:
		kept += 5;
		step(level);
		return kept * 3;
	case 2:
		step(level);
		return kept ^ 77;
	case 3:
		step(level);
		kept -= 9;
		break;
	case 4:
		kept *= 7;
		step(level);
		return kept;
	case 5:
		step(level);
		return kept >> 2;
	case 6:
		step(level);
		return kept + 1000;
	default:
		step(level);
	}
	return kept;
}

KEEP static void arguments(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
			   undescribed_step step, unsigned level)
{
	unsigned sum = a + b + c + d + e + f;

	OPAQUE(sum);
	step(level);
	OPAQUE(sum);
}

KEEP static void pushes(undescribed_step step, unsigned level)
{
	arguments(1, 2, 3, 4, 5, 6, step, level);
	OPAQUE(level);
}

KEEP static void nested(undescribed_step step, unsigned level)
{
	large(step, level);
	OPAQUE(level);
}

static __thread undescribed_step sorted_step;
static __thread unsigned sorted_level;

/* Called through a pointer only. */
static int compare(const void *a, const void *b)
{
	undescribed_step step = sorted_step;

	sorted_step = NULL;
	if (step)
		step(sorted_level);
	return *(const int *)a - *(const int *)b;
}

KEEP static void sorts(undescribed_step step, unsigned level)
{
	int numbers[2] = {2, 1};

	sorted_step = step;
	sorted_level = level;
	qsort(numbers, 2, sizeof(numbers[0]), compare);
	OPAQUE(numbers[0]);
}

#ifdef __x86_64__
#define KINDS 12
#else
#define KINDS 8
#endif

KEEP unsigned undescribed_kinds(void)
{
	return KINDS;
}

KEEP void undescribed_go(undescribed_step step, unsigned kind, unsigned level)
{
	switch (kind) {
	case 0:
		many(step, level);
		break;
	case 1:
		large(step, level);
		break;
	case 2:
		variable(step, level);
		break;
	case 3:
		(void)returns(step, level);
		break;
	case 4:
		(void)table(step, level);
		break;
	case 5:
		pushes(step, level);
		break;
	case 6:
		sorts(step, level);
		break;
	case 7:
		nested(step, level);
		break;
#ifdef __x86_64__
	case 8:
		odd_enter(step, level);
		break;
	case 9:
		odd_stack(step, level);
		break;
	case 10:
		odd_late(step, level);
		break;
	case 11:
		odd_shared(step, level);
		break;
#endif
	default:
		abort();
	}
	OPAQUE(kind);
}

static volatile int set_up;

static __attribute__((noinline)) void endless(void (*work)(void))
{
	for (;;)
		work();
}

static __attribute__((noinline)) int begin(void (*work)(void))
{
	set_up++;
	endless(work);
	return set_up;
}

/* Call `work` for ever, from a loop that is no thread's first function. */
int undescribed_endless(void (*work)(void));

int undescribed_endless(void (*work)(void))
{
	return begin(work) + 1;
}
