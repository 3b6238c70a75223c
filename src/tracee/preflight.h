/* SPDX-License-Identifier: MIT */
/*
 * preflight.h: whether a process can be watched, asked before anything is done to it, and why not.
 *
 * Reads /proc and asks the kernel by a read of nothing: attaches to nothing, writes nothing. Every
 * refusal is an error whose text says what stands in the way and whose hint says what to do.
 */
#ifndef MW_TRACEE_PREFLIGHT_H
#define MW_TRACEE_PREFLIGHT_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Is there a /proc that shows this pid namespace? NULL, or UNSUPPORTED. */
struct mw_error *mw_preflight_proc(void) MW_MUST_CHECK;

/*
 * Can `pid` be watched? NULL, or an error of kind GONE (no such process),
 * UNSUPPORTED (memwatch itself, a thread id, kernel thread, zombie, 32-bit, foreign or emulated program, or there is no
 * /proc to look at it) or DENIED (not
 * permitted, or traced already). A yes holds only for this moment. Waits for a guard that traces the first thread.
 */
struct mw_error *mw_preflight(pid_t pid) MW_MUST_CHECK;

/* May the heap of `pid`, which can be watched, be looked at? CAP_SYS_PTRACE is not enough to open /proc/PID/mem. Errors: DENIED. */
struct mw_error *mw_preflight_heap(pid_t pid) MW_MUST_CHECK;

/*
 * Does `pid` live in the memory of a process that is not watched with it, as none of its children is (its maker by
 * vfork, above all)? What is put into the one's code would be in the other's. Errors: UNSUPPORTED.
 */
struct mw_error *mw_preflight_sharing(pid_t pid) MW_MUST_CHECK;

/*
 * Where the guard of a memwatch that was killed traces any thread of the process, to take out what that has left: wait
 * for its end; ten seconds at most. Was there one?
 */
bool mw_preflight_await_guard(pid_t pid);
/* Does a memwatch or guard, other than the caller's thread, trace any thread of the process? NULL, or DENIED, as
 * mw_preflight() says it. */
struct mw_error *mw_preflight_rival(pid_t pid) MW_MUST_CHECK;

/*
 * Can the program in this file be watched once it is launched? NULL where that isn't known (a
 * script, a file that can't be read). Errors: UNSUPPORTED, also for a translator (valgrind, qemu-user).
 */
struct mw_error *mw_preflight_program(const char *path) MW_MUST_CHECK;

/*
 * Is process `pid`, called `what` in the error, which has just become another program, run by a translator (valgrind,
 * qemu-user), or about to be? What is written over its functions is never run then. Errors: UNSUPPORTED.
 */
struct mw_error *mw_preflight_became(pid_t pid, const char *what) MW_MUST_CHECK;

/* May memwatch suspend a target's seccomp filters: has it CAP_SYS_ADMIN, and is it under none itself? */
bool mw_preflight_may_suspend_seccomp(void);

struct mw_maps;

enum mw_emulator {
	MW_EMULATOR_NONE,
	MW_EMULATOR_VALGRIND,
	MW_EMULATOR_QEMU,
};

/* What it is judged by: the path of the process's program, and what is mapped. */
enum mw_emulator mw_emulator_of(const char *exe, const struct mw_maps *maps);

/*
 * Say why the kernel denied access to a process, or to this thread of it, with `errnum` (EPERM or EACCES): never NULL.
 * Kind is DENIED, or what mw_preflight() would say where that explains it (traced, by another than the caller's thread;
 * gone, a kernel thread).
 */
struct mw_error *mw_preflight_explain_denied(pid_t tid, int errnum) MW_MUST_CHECK;

/* What a denial is judged by; filled from /proc, or made up by a test. */
struct mw_denied_facts {
	pid_t pid;
	char name[17];
	int errnum;
	/* Of memwatch itself. */
	uid_t our_uid;
	bool our_ptrace_capability; /* CAP_SYS_PTRACE is effective */
	bool our_seccomp;           /* a seccomp filter sits on memwatch */
	uint64_t our_permitted;     /* capabilities */
	bool container;             /* memwatch runs in one */
	const char *confinement;    /* an enforcing security profile of memwatch, or NULL */
	/* Of the target. */
	uid_t uids[3]; /* real, effective, saved */
	bool groups_differ;
	uint64_t their_permitted;
	bool protected; /* not dumpable */
	bool other_user_namespace;
	/* Of the system. */
	int ptrace_scope;
	bool descendant; /* the target is a child of memwatch, at whatever distance */
};

/* The error for these facts; never NULL. */
struct mw_error *mw_denied_error(const struct mw_denied_facts *facts) MW_MUST_CHECK;

#endif
