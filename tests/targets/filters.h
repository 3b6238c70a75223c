/* SPDX-License-Identifier: MIT */
/*
 * filters.h: seccomp filters, as programs in the field have them.
 */
#ifndef TARGET_FILTERS_H
#define TARGET_FILTERS_H

#include "target.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define FILTER_MOST 256u
#define FILTER_X32  0x40000000u /* calls of another ABI */

struct filter {
	struct sock_filter code[2 * FILTER_MOST];
	size_t count;
};

static inline void filter_add(struct filter *filter, struct sock_filter insn)
{
	if (filter->count == sizeof(filter->code) / sizeof(filter->code[0]))
		target_fail("the filter is too long");
	filter->code[filter->count++] = insn;
}

static inline void filter_load(struct filter *filter, size_t offset)
{
	filter_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static inline void filter_answer(struct filter *filter, uint32_t action)
{
	filter_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* `action` for these system calls; the number is loaded. */
static inline void filter_list(struct filter *filter, const int *calls, size_t count, uint32_t action)
{
	for (size_t i = 0; i < count; i++) {
		filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1));
		filter_answer(filter, action);
	}
}

/* The machine's own ABI only, and then the number. */
static inline void filter_begin(struct filter *filter)
{
	filter->count = 0;
	filter_load(filter, offsetof(struct seccomp_data, arch));
	filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
	filter_answer(filter, SECCOMP_RET_KILL_PROCESS);
	filter_load(filter, offsetof(struct seccomp_data, nr));
	filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FILTER_X32, 0, 1));
	filter_answer(filter, SECCOMP_RET_KILL_PROCESS);
}

static inline void filter_install(const struct filter *filter)
{
	struct sock_fprog program = {.len = (unsigned short)filter->count,
				     .filter = (struct sock_filter *)filter->code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		target_fail("seccomp");
}

/* What services are allowed by those who start them (systemd's @system-service), and no more. `other` for the rest. */
static inline void filter_service(uint32_t other)
{
	static const int calls[] = {
		SYS_read,
		SYS_write,
		SYS_open,
		SYS_openat,
		SYS_close,
		SYS_stat,
		SYS_fstat,
		SYS_newfstatat,
		SYS_lseek,
		SYS_pread64,
		SYS_pwrite64,
		SYS_readv,
		SYS_writev,
		SYS_access,
		SYS_pipe,
		SYS_pipe2,
		SYS_dup,
		SYS_dup2,
		SYS_fcntl,
		SYS_ftruncate,
		SYS_getdents64,
		SYS_getcwd,
		SYS_ioctl,
		SYS_readlink,
		SYS_unlink,
		SYS_flock,
		SYS_mmap,
		SYS_munmap,
		SYS_mprotect,
		SYS_mremap,
		SYS_madvise,
		SYS_mincore,
		SYS_msync,
		SYS_brk,
		SYS_mlock,
		SYS_munlock,
		SYS_mlockall,
		SYS_munlockall,
		SYS_memfd_create,
		SYS_shmget,
		SYS_shmat,
		SYS_rt_sigaction,
		SYS_rt_sigprocmask,
		SYS_rt_sigreturn,
		SYS_rt_sigpending,
		SYS_rt_sigtimedwait,
		SYS_rt_sigsuspend,
		SYS_sigaltstack,
		SYS_rt_sigqueueinfo,
		SYS_rt_tgsigqueueinfo,
		SYS_kill,
		SYS_tkill,
		SYS_tgkill,
		SYS_restart_syscall,
		SYS_pause,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_clock_gettime,
		SYS_gettimeofday,
		SYS_alarm,
		SYS_timer_create,
		SYS_poll,
		SYS_ppoll,
		SYS_select,
		SYS_epoll_create1,
		SYS_epoll_ctl,
		SYS_epoll_wait,
		SYS_eventfd2,
		SYS_futex,
		SYS_sched_yield,
		SYS_sched_getaffinity,
		SYS_set_robust_list,
		SYS_get_robust_list,
		SYS_rseq,
		SYS_set_tid_address,
		SYS_arch_prctl,
		SYS_prctl,
		SYS_clone,
		SYS_clone3,
		SYS_fork,
		SYS_vfork,
		SYS_execve,
		SYS_wait4,
		SYS_exit,
		SYS_exit_group,
		SYS_getpid,
		SYS_gettid,
		SYS_getuid,
		SYS_geteuid,
		SYS_getgid,
		SYS_getegid,
		SYS_getrlimit,
		SYS_prlimit64,
		SYS_getrandom,
		SYS_uname,
		SYS_sysinfo,
		SYS_socket,
		SYS_connect,
		SYS_sendto,
		SYS_recvfrom,
	};
	struct filter filter;

	filter_begin(&filter);
	filter_list(&filter, calls, sizeof(calls) / sizeof(calls[0]), SECCOMP_RET_ALLOW);
	filter_answer(&filter, other);
	filter_install(&filter);
}

/* As containers have it (Docker's default): a few calls fail, some of them for what they are asked for. */
static inline void filter_container(bool may_trace)
{
	static const int more[] = {SYS_ptrace, SYS_getppid};
	static const int failing[] = {SYS_add_key, SYS_bpf,     SYS_kexec_load, SYS_keyctl,
				      SYS_mount,   SYS_reboot,  SYS_setns,      SYS_request_key,
				      SYS_swapon,  SYS_umount2, SYS_unshare,    SYS_userfaultfd};
	struct filter filter;

	filter_begin(&filter);
	if (!may_trace)
		filter_list(&filter, more, sizeof(more) / sizeof(more[0]), SECCOMP_RET_ERRNO | 1);
	filter_list(&filter, failing, sizeof(failing) / sizeof(failing[0]), SECCOMP_RET_ERRNO | 1);
	/* clone3 is not there; clone makes no namespaces. */
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
	filter_answer(&filter, SECCOMP_RET_ERRNO | 38);
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	filter_load(&filter, offsetof(struct seccomp_data, args));
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 0, 1));
	filter_answer(&filter, SECCOMP_RET_ERRNO | 1);
	filter_answer(&filter, SECCOMP_RET_ALLOW);
	filter_answer(&filter, SECCOMP_RET_ALLOW);
	filter_install(&filter);
}

/* No memory that is written to and executed, nor is made executable later (systemd's MemoryDenyWriteExecute). */
static inline void filter_no_new_code(void)
{
	struct filter filter;

	filter_begin(&filter);
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 2, 0));
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0));
	filter_answer(&filter, SECCOMP_RET_ALLOW);
	filter_load(&filter, offsetof(struct seccomp_data, args) + 2 * sizeof(uint64_t));
	filter_add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
	filter_answer(&filter, SECCOMP_RET_ERRNO | 1);
	filter_answer(&filter, SECCOMP_RET_ALLOW);
	filter_install(&filter);
}

#endif
