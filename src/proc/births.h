/* SPDX-License-Identifier: MIT */
/* births.h: forks and execs of all processes as the kernel tells of them (the proc connector, see cn_proc in the kernel). */
#ifndef MW_PROC_BIRTHS_H
#define MW_PROC_BIRTHS_H

#include <memwatch/types.h>

#include <sys/types.h>

struct mw_birth {
	enum mw_birth_kind {
		MW_BIRTH_NONE, /* nothing more has come */
		MW_BIRTH_FORK, /* a process, not a thread */
		MW_BIRTH_EXEC,
		MW_BIRTH_LOST /* some did not come: look in /proc */
	} kind;
	pid_t pid, parent; /* parent: of a fork only */
};

/* A descriptor for mw_birth_next(), to be closed, which polls as readable where something has come. -1 where the kernel does
 * not tell: before Linux 6.6, without CAP_NET_ADMIN, or in a namespace of processes, users or networks that is not the
 * first. Takes up to 20 ms. */
int mw_births_open(void);
/* Does not wait. */
struct mw_birth mw_birth_next(int fd);

#endif
