/* SPDX-License-Identifier: MIT */
/* stat.h: fields of /proc/TID/stat by number, as proc(5) numbers them. */
#ifndef MW_PROC_STAT_H
#define MW_PROC_STAT_H

#include <memwatch/types.h>

#include <sys/types.h>

enum mw_stat_number {
	MW_STAT_FLAGS = 9,
	MW_STAT_START = 22,
	MW_STAT_CPU = 39,
	MW_STAT_EXIT_CODE = 52,
};

/* A numeric field (from 4 on). `text` ends in NUL. The name in field 2 may hold anything, ") " too. */
bool mw_stat_field(const char *text, size_t size, enum mw_stat_number number, uint64_t *out);

/* Is it a thread of the kernel's in a process (io_uring, vhost)? It runs none of the program's code, and can't be
 * traced. */
bool mw_stat_kernel_worker(pid_t tid);

#endif
