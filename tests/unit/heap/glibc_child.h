/* SPDX-License-Identifier: MIT */
/* glibc_child.h: what a child says of its own heap, in a file that it shares with the test (descriptor 3). */
#ifndef MW_TESTS_HEAP_GLIBC_CHILD_H
#define MW_TESTS_HEAP_GLIBC_CHILD_H

#include <stdint.h>

#define CHILD_FD      3
#define CHILD_THREADS 8
#define CHILD_SLOTS   4096

struct child_slot {
	uint64_t addr, usable; /* 0: no block */
};

struct child_truth {
	/* mallinfo2() */
	uint64_t arena, hblks, hblkhd, fsmblks, uordblks, fordblks, keepcost;
	uint64_t threads;
	uint64_t busy[CHILD_THREADS + 1]; /* the slot that each thread works on, + 1 */
	char version[16];
	struct child_slot slots[CHILD_THREADS + 1][CHILD_SLOTS]; /* the main thread's first */
};

#endif
