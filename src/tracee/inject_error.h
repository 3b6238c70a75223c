/* SPDX-License-Identifier: MIT */
/* inject_error.h: what it means that a system call failed in a target. */
#ifndef MW_TRACEE_INJECT_ERROR_H
#define MW_TRACEE_INJECT_ERROR_H

#include <memwatch/error.h>

#include <stdint.h>
#include <sys/types.h>

#define MW_INJECT_TRAP_HINT   "Use --engine trap, which takes 4 MiB of address space in the process"
#define MW_INJECT_UNSAFE_HINT "Use --engine trap --unsafe, which puts nothing but breakpoints into the process"

/*
 * The error for a call that thread `tid` performed and that failed with `errnum`: SYSTEM, with the limit that it ran
 * into where that can be reported. `what` names the operation: "map memory into"; `size` in bytes is what it was about.
 */
struct mw_error *mw_inject_error(pid_t tid, int errnum, uint64_t size, const char *what) MW_MUST_CHECK;

/*
 * May `size` bytes be mapped into the process of `tid` without taking address space that it may come to need: does what
 * it has had at any time fit into RLIMIT_AS beside them? Errors: UNSUPPORTED where it does not.
 */
struct mw_error *mw_inject_check_limit(pid_t tid, uint64_t size) MW_MUST_CHECK;

#endif
