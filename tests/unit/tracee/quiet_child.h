/* SPDX-License-Identifier: MIT */
/* quiet_child.h: children of the test that are not traced, but by what is tested. */
#ifndef MW_TESTS_UNIT_TRACEE_QUIET_CHILD_H
#define MW_TESTS_UNIT_TRACEE_QUIET_CHILD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* In memory that the test shares with its child. */
struct board {
	atomic_long ticks;   /* counted up by a child that runs */
	atomic_long signals; /* handled */
	atomic_long sum;     /* of what came with them */
	atomic_int ready;
	atomic_long result;
	atomic_int pipe[2];
};

struct board *board_create(void);
void board_destroy(struct board *board);

/* Fork a child that runs body(board) and exits with its result; it dies with the test. Waits until it says ready. */
pid_t quiet_start(int (*body)(struct board *board), struct board *board);
/* Kill and reap it. */
void quiet_kill(pid_t pid);
/* Its exit status, or 128 + the signal that ended it. */
int quiet_end(pid_t pid);

/* Is no thread of it traced, nor in a tracer's stop? */
bool is_free(pid_t pid);
/* The state letter of a thread. */
char state_of(pid_t tid);
/* Wait until it is so (seconds at most); false where it does not become so. */
bool await_state(pid_t tid, char state);
bool await_more(atomic_long *counter, long than);

#endif
