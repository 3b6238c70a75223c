/* SPDX-License-Identifier: MIT */
/* free_trace.h: who calls free in a child process, seen by a breakpoint on it. */
#ifndef MW_TEST_FREE_TRACE_H
#define MW_TEST_FREE_TRACE_H

#include <memwatch/types.h>

#define FREE_CALLS_MAX 256

struct free_call {
	mw_addr block, caller; /* the return address */
	bool ending;           /* the thread had left its function */
};

/* Run `body` in a thread of a child process that then ends. `ending` is shared memory where `body` says that all its
 * own frees are done. The calls of free go to `calls`; their number is returned, negative where tracing failed. */
int free_trace(void *(*body)(void *), void *argument, const volatile bool *ending, struct free_call *calls);

#endif
