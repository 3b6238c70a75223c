/* SPDX-License-Identifier: MIT */
/* altstacks.h: the alternate signal stacks of a process's threads, which the kernel alone knows (sigaltstack()). */
#ifndef MW_TRACEE_ALTSTACKS_H
#define MW_TRACEE_ALTSTACKS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_altstack {
	pid_t tid;
	mw_addr start;
	uint64_t size; /* bytes */
};

/* Zero-initialise. */
struct mw_altstacks {
	struct mw_altstack *items;
	size_t count, capacity;
	bool complete;     /* each thread was asked, or has ended */
	uint64_t stood_ns; /* how long the process stood for it */
};

/*
 * Stop the process, and have each thread make the system call: those that would not live through it, should memwatch be
 * killed meanwhile, or are in the middle of a vfork are not asked. The calling thread traces meanwhile. Errors: DENIED,
 * UNSUPPORTED, SYSTEM, MEMORY; of a process that has ended there are none.
 */
struct mw_error *mw_altstacks_read(pid_t pid, struct mw_altstacks *out) MW_MUST_CHECK;
void mw_altstacks_deinit(struct mw_altstacks *altstacks);

#endif
