// SPDX-License-Identifier: MIT
/* seccomp_calls.c: the system calls that memwatch has a tracee make, as filters see them (seccomp_policy.h). */
#include "tracee/seccomp_policy.h"

#include "tracee/filter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define FIRST  1u /* which arguments are known */
#define SECOND 2u
#define THIRD  4u
#define FOURTH 8u
#define FIFTH  16u
#define SIXTH  32u

#define DATA (PROT_READ | PROT_WRITE)
#define CODE (PROT_READ | PROT_EXEC)

static const struct {
	const char *name;
	struct mw_filter_call call;
} kinds[MW_CALL_COUNT] = {
	[MW_CALL_MMAP] = {"mmap",
			  {SYS_mmap,
			   {0, 0, DATA, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
			   FIRST | THIRD | FOURTH | FIFTH | SIXTH}},
	[MW_CALL_MMAP_AT] = {"mmap",
			     {SYS_mmap,
			      {0, 0, DATA, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0},
			      THIRD | FOURTH | FIFTH | SIXTH}},
	[MW_CALL_MUNMAP] = {"munmap", {.number = SYS_munmap}},
	[MW_CALL_MEMFD_CREATE] = {"memfd_create", {.number = SYS_memfd_create}},
	[MW_CALL_MMAP_SHARED] = {"mmap",
				 {SYS_mmap, {0, 0, DATA, MAP_SHARED | MAP_NORESERVE}, FIRST | THIRD | FOURTH | SIXTH}},
	[MW_CALL_CLOSE] = {"close", {.number = SYS_close}},
	[MW_CALL_MMAP_LOCKED] =
		{"mmap", {SYS_mmap, {0, 0, PROT_NONE, MAP_SHARED | MAP_NORESERVE}, FIRST | THIRD | FOURTH | SIXTH}},
	[MW_CALL_MUNLOCK] = {"munlock", {.number = SYS_munlock}},
	[MW_CALL_MPROTECT_DATA] = {"mprotect", {SYS_mprotect, {0, 0, DATA}, THIRD}},
	[MW_CALL_MADVISE] = {"madvise", {SYS_madvise, {0, 0, MADV_WIPEONFORK}, THIRD}},
	[MW_CALL_MPROTECT_CODE] = {"mprotect", {SYS_mprotect, {0, 0, CODE}, THIRD}},
	[MW_CALL_PRCTL] = {"prctl", {SYS_prctl, {PR_GET_TSC}, FIRST}},
	[MW_CALL_SIGACTION] = {"rt_sigaction", {SYS_rt_sigaction, {0, 0, 0, 8}, FOURTH}},
	[MW_CALL_SIGQUEUE] = {"rt_tgsigqueueinfo", {SYS_rt_tgsigqueueinfo, {0, 0, SIGTRAP}, THIRD}},
	[MW_CALL_SIGRETURN] = {"rt_sigreturn", {.number = SYS_rt_sigreturn}},
	[MW_CALL_RESTART] = {"restart_syscall", {.number = SYS_restart_syscall}},
	[MW_CALL_OPEN] = {"open", {SYS_open, {0, O_RDWR | O_CLOEXEC}, SECOND}},
	[MW_CALL_PREAD] = {"pread64", {.number = SYS_pread64}},
	[MW_CALL_PWRITE] = {"pwrite64", {.number = SYS_pwrite64}},
	[MW_CALL_MINCORE] = {"mincore", {.number = SYS_mincore}},
	[MW_CALL_MPROTECT_ALL] = {"mprotect", {SYS_mprotect, {0, 0, DATA | PROT_EXEC}, THIRD}},
	[MW_CALL_GETPID] = {"getpid", {.number = SYS_getpid}},
	[MW_CALL_GETTID] = {"gettid", {.number = SYS_gettid}},
};

const struct mw_filter_call *mw_seccomp_policy_call(enum mw_seccomp_policy_call call)
{
	return &kinds[call].call;
}

const char *mw_seccomp_policy_call_name(enum mw_seccomp_policy_call call)
{
	return kinds[call].name;
}
