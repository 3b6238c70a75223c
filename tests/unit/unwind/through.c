// SPDX-License-Identifier: MIT
/* through.c: a library that calls back through frames of its own. */
#include "through.h"

static __attribute__((noinline)) int inner(int (*callback)(void *context), void *context)
{
	volatile char room[200];
	int result;

	room[0] = 1;
	result = callback(context);
	return result + room[0] - 1;
}

int unwind_through(int (*callback)(void *context), void *context)
{
	volatile int one = 1;
	int result = inner(callback, context);

	return result * one;
}
