/* SPDX-License-Identifier: MIT */
/* status.h: what /proc says of a process or thread. */
#ifndef MW_PROC_STATUS_H
#define MW_PROC_STATUS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_status {
	pid_t tgid, ppid, tracer;                                                   /* tracer: 0 for none */
	char state;                                                                 /* R S D T t Z X I … */
	char name[17];                                                              /* comm of the thread */
	uid_t uid, euid, suid;                                                      /* real, effective, saved */
	gid_t gids[3];                                                              /* likewise */
	uint64_t sig_pending, shared_pending, sig_blocked, sig_ignored, sig_caught; /* bit n-1: signal n */
	int seccomp;                      /* 0 none, 1 strict, 2 filter; -1 unknown */
	int seccomp_filters;              /* how many; -1 unknown (before Linux 5.9) */
	uint64_t capabilities, permitted; /* effective, permitted */
	bool kernel_thread;
	bool shadow_stack; /* x86_Thread_features: shstk */
	bool no_new_privileges;
	size_t threads;
	pid_t ns_pid; /* its pid in its innermost namespace */
};

/* Errors: GONE, DENIED, DATA. */
struct mw_error *mw_status_read(pid_t tid, struct mw_status *out) MW_MUST_CHECK;

/* The state of a thread alone, as in mw_status: X where it is gone, and where it can't be read. */
static inline char mw_state_read(pid_t tid)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(tid, &status)) ? status.state : 'X';
}

/* Is this the state of a thread that has ended: gone, or a zombie? */
static inline bool mw_state_is_end(char state)
{
	return state == 'Z' || state == 'X';
}

/* Fields of /proc/TID/stat, as proc(5) numbers them. */
enum mw_stat_number {
	MW_STAT_FLAGS = 9,
	MW_STAT_START = 22,
	MW_STAT_EXIT_SIGNAL = 38,
	MW_STAT_CPU = 39,
	MW_STAT_EXIT_CODE = 52,
};

/* A numeric field (from 4 on). `text` ends in NUL. The name in field 2 may hold anything, ") " too. */
bool mw_stat_field(const char *text, size_t size, enum mw_stat_number number, uint64_t *out);
/* The same of a thread's file; false also where that can't be read. */
bool mw_stat_read(pid_t tid, enum mw_stat_number number, uint64_t *out);
/* Is it a thread of the kernel's in a process (io_uring, vhost)? It runs none of the program's code, and can't be
 * traced. */
bool mw_stat_kernel_worker(pid_t tid);
/* Do flags of /proc/TID/stat say so, on a kernel of this release (uname -r)? Older ones use these bits for other things, so that
 * any thread may have them. */
bool mw_stat_worker_flags(uint64_t flags, const char *release);

/* Its own id as it knows it, in its innermost pid namespace; `tid` where that can't be read. */
static inline pid_t mw_ns_tid(pid_t tid)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(tid, &status)) ? status.ns_pid : tid;
}

/* Where a thread that waits in the kernel, in a system call or a fault, will go on: its stack pointer and pc (the
 * calling thread must be allowed to trace it). False where it runs, or that can't be read. */
bool mw_waiting_read(pid_t tid, mw_addr *sp, mw_addr *pc) MW_MUST_CHECK;

/* The thread ids of a process. `*tids` is malloc'ed. Errors: GONE, DENIED, SYSTEM. */
struct mw_error *mw_tasks_read(pid_t pid, pid_t **tids, size_t *count) MW_MUST_CHECK;

/* All processes, by number. `*pids` is malloc'ed. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_processes_read(pid_t **pids, size_t *count) MW_MUST_CHECK;

/* A thread of a process that lives: the first one, or where that has ended another; `pid` where none is known. What
 * /proc tells of memory it tells of a living thread's only. */
pid_t mw_live_thread(pid_t pid);
/* Does none of its threads live? */
static inline bool mw_process_is_over(pid_t pid)
{
	return mw_live_thread(pid) == pid && mw_state_is_end(mw_state_read(pid));
}

/* The children of one thread (/proc/PID/task/TID/children). Empty where the kernel has no such file. */
struct mw_error *mw_children_read(pid_t pid, pid_t tid, pid_t **pids, size_t *count) MW_MUST_CHECK;

/* The children of all threads of a process that have not ended, by number. `*pids` is malloc'ed. Errors: MEMORY, SYSTEM.
 */
struct mw_error *mw_children_alive(pid_t pid, pid_t **pids, size_t *count) MW_MUST_CHECK;
/* … and those that have: zombies. */
struct mw_error *mw_children_ended(pid_t pid, pid_t **pids, size_t *count) MW_MUST_CHECK;

/* A thread's name, NUL-terminated, "?" where it can't be read. */
void mw_comm_read(pid_t pid, pid_t tid, char name[17]);

/* The CPU the thread last ran on, or -1. */
int mw_task_cpu(pid_t pid, pid_t tid);

/* Bytes. From statm; `pss` from smaps_rollup only if with_pss, else MW_SIZE_UNKNOWN, as where it can't be read. */
struct mw_error *mw_memory_read(pid_t tid, bool with_pss, uint64_t *rss, uint64_t *pss, uint64_t *vsize) MW_MUST_CHECK;

/* A value of the auxiliary vector; false where it is not there. */
bool mw_auxv_read(pid_t tid, uint64_t type, uint64_t *value);

/* /proc/sys/kernel/yama/ptrace_scope, 0 where there is none. */
int mw_ptrace_scope(void);

/* Is there a process or thread of that number? Also where memwatch may not send it signals. */
bool mw_pid_exists(pid_t pid);
/* Is `tid` a thread of process `pid`? */
bool mw_is_thread_of(pid_t pid, pid_t tid);

/* Do two processes share one address space (kcmp)? 1 yes, 0 no, -1 unknown. */
int mw_shares_memory(pid_t a, pid_t b);

#endif
