/* SPDX-License-Identifier: MIT */
/* tracee_child.h: a child of the test that it traces. */
#ifndef MW_TESTS_UNIT_TRACEE_TRACEE_CHILD_H
#define MW_TESTS_UNIT_TRACEE_TRACEE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Unwrap a result that must be success. */
#define FINE(expression) fine(expression, #expression)

struct mw_error;
void fine(struct mw_error *err, const char *what);

/* Fork a child that runs `body` and exits with its result; it is seized and runs. It dies with the test. */
pid_t child_start(int (*body)(void *context), void *context);
/* Such a body: sleeps until it is killed. */
int child_sleep(void *context);
/* Interrupt it and wait for that stop. */
void child_stop(pid_t pid);
/* Wait for the next stop; the wait status. */
int child_next_stop(pid_t pid);
/* Is the status a stop of this event (PTRACE_EVENT_…), or by this signal with event 0? */
bool is_event(int status, int event);
bool is_signal(int status, int number);
/* Wait until it sleeps in the system call of this number. */
void child_await_call(pid_t pid, long number);
/* Wait for its end, letting it run on from every stop; its exit status, or 128 + the signal that ended it. */
int child_end(pid_t pid);
/* Kill it and reap it. */
void child_kill(pid_t pid);

#endif
