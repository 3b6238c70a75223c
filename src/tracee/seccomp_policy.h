/* SPDX-License-Identifier: MIT */
/*
 * seccomp_policy.h: which of the system calls that memwatch has a target make its threads may make under their seccomp
 * filters.
 *
 * The filters are suspended while such a call is made (inject.h). But if memwatch is killed during it they are there
 * again, and the call is made under them: where one answers it with a signal, the target dies of it. So memwatch asks
 * first, and has only such threads make calls as would live, or refuses.
 *
 * To read filters takes what it takes to suspend them: CAP_SYS_ADMIN, and memwatch under no filter itself. Filters that
 * memwatch shares with the thread, as in a container whose runtime puts all that it starts under one, are tried
 * instead, and calls that they permit made under them.
 */
#ifndef MW_TRACEE_SECCOMP_POLICY_H
#define MW_TRACEE_SECCOMP_POLICY_H

#include "proc/maps.h"
#include "tracee/quiesce.h"
#include "tracee/tracee.h"

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calls, with the arguments that they are made with; what is made of them is sets of bits. */
enum mw_seccomp_policy_call {
	MW_CALL_MMAP, /* private memory, anywhere */
	MW_CALL_MMAP_AT,
	MW_CALL_MUNMAP,
	MW_CALL_MEMFD_CREATE,
	MW_CALL_MMAP_SHARED,
	MW_CALL_CLOSE,
	MW_CALL_MMAP_LOCKED, /* where all memory that is mapped is locked */
	MW_CALL_MUNLOCK,
	MW_CALL_MPROTECT_DATA,
	MW_CALL_MADVISE,
	MW_CALL_MPROTECT_CODE,
	MW_CALL_PRCTL,
	MW_CALL_SIGACTION,
	MW_CALL_SIGQUEUE,
	MW_CALL_SIGRETURN,
	MW_CALL_RESTART, /* how the kernel goes on with a timed wait that was interrupted */
	MW_CALL_OPEN,
	MW_CALL_PREAD,
	MW_CALL_PWRITE,
	MW_CALL_MINCORE,
	MW_CALL_MPROTECT_ALL,
	MW_CALL_GETPID,
	MW_CALL_GETTID,
	MW_CALL_CLONE,
	MW_CALL_WAIT4,
	MW_CALL_SIGALTSTACK,
	MW_CALL_COUNT
};

#define MW_CALL_BIT(name) (UINT32_C(1) << MW_CALL_##name)
#define MW_CALLS_ALL      ((UINT32_C(1) << MW_CALL_COUNT) - 1)
/* Private memory that comes and goes. */
#define MW_CALLS_MAP (MW_CALL_BIT(MMAP) | MW_CALL_BIT(MMAP_AT) | MW_CALL_BIT(MUNMAP))
/* … that memwatch shares (inject_memory.c); where the target locks its memory the latter, too. */
#define MW_CALLS_SHARE  (MW_CALL_BIT(MEMFD_CREATE) | MW_CALL_BIT(MMAP_SHARED) | MW_CALL_BIT(CLOSE))
#define MW_CALLS_LOCKED (MW_CALL_BIT(MMAP_LOCKED) | MW_CALL_BIT(MUNLOCK) | MW_CALL_BIT(MPROTECT_DATA))
/* A copy of the process, and its end (copy.h). */
#define MW_CALLS_COPY (MW_CALL_BIT(CLONE) | MW_CALL_BIT(WAIT4))
/* What must be made, where an error would be the end as well: the sigframe from a call (syscall.c). */
#define MW_CALLS_BACK MW_CALL_BIT(SIGRETURN)
/* What the rescue puts the program's bytes back with (memwatch/rescue.h). */
#define MW_CALLS_HEAL                                                                                                  \
	(MW_CALL_BIT(OPEN) | MW_CALL_BIT(PREAD) | MW_CALL_BIT(PWRITE) | MW_CALL_BIT(CLOSE) | MW_CALL_BIT(MINCORE) |    \
	 MW_CALL_BIT(MPROTECT_ALL) | MW_CALL_BIT(MPROTECT_CODE) | MW_CALL_BIT(SIGACTION) | MW_CALL_BIT(GETPID) |       \
	 MW_CALL_BIT(GETTID))

/* What a thread may do. */
struct mw_permit {
	bool known;        /* it could be read; else it may nothing */
	uint32_t harmless; /* calls that it lives through, made or not */
	uint32_t made;     /* … that are made for sure */
};

/* Zero-initialise. Programs that were read are kept, as threads have the same ones. */
struct mw_seccomp_policy {
	struct mw_seccomp_policy_program *programs;
	size_t count;
	struct sock_filter *room; /* for one to be read to */
};

void mw_seccomp_policy_deinit(struct mw_seccomp_policy *policy);

/*
 * Look at the filters of a thread in a ptrace stop. `surely`: who seems to be under none is asked for in /proc as well,
 * which takes 20 µs more and tells the strict mode of seccomp (which may restart what it may do at all) from none.
 * Errors: GONE, MEMORY.
 */
struct mw_error *mw_seccomp_policy_look(struct mw_seccomp_policy *policy, pid_t tid, bool surely,
					struct mw_permit *out) MW_MUST_CHECK;

/* What a thread that is to make system calls must live through, and what must be made for it. */
struct mw_seccomp_policy_need {
	uint32_t harmless, made;
};

/* These calls, and the sigframe from them. */
static inline struct mw_seccomp_policy_need mw_seccomp_policy_need_of(uint32_t calls)
{
	return (struct mw_seccomp_policy_need){.harmless = calls | MW_CALLS_BACK, .made = MW_CALLS_BACK};
}

static inline bool mw_permit_suits(const struct mw_permit *permit, const struct mw_seccomp_policy_need *need)
{
	return (need->harmless & ~permit->harmless) == 0 && (need->made & ~permit->made) == 0;
}

/*
 * A thread as of mw_quiesce_pick() that suits, and has memory of its own for the sigframe if any of them has
 * (mw_inject_has_room); *tid is 0 where there is none. Then *permit is that of one that doesn't.
 */
struct mw_error *mw_seccomp_policy_pick(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
					const struct mw_maps *maps, const struct mw_seccomp_policy_need *need,
					pid_t *tid, struct mw_permit *permit) MW_MUST_CHECK;
/*
 * One that would live through these calls, or any: what is in a target has to come out, and a filter that it has put
 * itself under since is suspended for that, which is the lesser evil. 0 where none can be picked.
 */
struct mw_error *mw_seccomp_policy_pick_best(const struct mw_quiesce *quiesce, const struct mw_maps *maps,
					     uint32_t calls, pid_t *tid) MW_MUST_CHECK;
/* What every thread that stands may make for sure, but for those whose filters can't be read. */
struct mw_error *mw_seccomp_policy_everyone(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
					    uint32_t *made) MW_MUST_CHECK;

/* Refuse: `engine` would have a system call made that ends the process if memwatch is killed at it. Never NULL. */
struct mw_error *mw_seccomp_policy_refuse(const char *engine, pid_t pid, const struct mw_permit *permit,
					  const struct mw_seccomp_policy_need *need) MW_MUST_CHECK;

/* Threads of a process that are under seccomp, and that are not. Errors: GONE, DENIED, SYSTEM. */
struct mw_error *mw_seccomp_policy_count(pid_t pid, size_t *seccomp_filtered, size_t *others) MW_MUST_CHECK;
/* … or what they forbid can't be known. Never NULL. */
struct mw_error *mw_seccomp_policy_unreadable(const char *engine, pid_t pid) MW_MUST_CHECK;
/*
 * Before anything is stopped: with no right to read filters, or to suspend them, only threads under none, or under
 * those that memwatch is under, can be had make calls. NULL, or the error for a process that has no such thread, or,
 * with `all`, one that has. UNSUPPORTED.
 */
struct mw_error *mw_seccomp_policy_preflight(const char *engine, pid_t pid, bool all) MW_MUST_CHECK;

/*
 * Is the thread under exactly the filters that memwatch is under? Filters are inherited, and only ever added. So it is
 * where both have as many as the nearest process that both descend from, or, where there is none, as process 1 of their
 * pid namespace: what a container's runtime starts there it puts under the container's filters. False also where
 * memwatch is under none, and where the kernel does not count them (before Linux 5.9).
 */
bool mw_seccomp_shared(pid_t tid);

/*
 * Before a process is stopped: where it shares memwatch's filters, try now what they permit, as each try is a fork and
 * takes its time. What is known of the last process that shares them is forgotten: this one may have its number.
 */
void mw_seccomp_prepare(pid_t pid);

/*
 * The process shared memwatch's filters when it was attached to, by a memwatch that has ended since: its threads do as
 * long as they are under as many, whoever is their parent now. Of the last process that was named so.
 */
void mw_seccomp_trust(pid_t pid);

/* May a thread under shared filters be had make the call of this number? */
bool mw_seccomp_shared_may(pid_t tid, long number);

#endif
