// SPDX-License-Identifier: MIT
/* memory.c: how much memory a process has, whose it is, and who may look at it. */
#include "proc/status.h"

#include "proc/file.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The value of "Pss:  123 kB" in bytes. */
static uint64_t read_pss(pid_t tid)
{
	struct mw_error *err;
	uint64_t pss = MW_SIZE_UNKNOWN;
	const char *line;
	char *text = NULL;
	size_t size = 0;

	err = mw_proc_file_read(&text, &size, "/proc/%d/smaps_rollup", (int)tid);
	if (err) {
		mw_error_destroy(err);
		return MW_SIZE_UNKNOWN;
	}
	line = strstr(text, "\nPss:");
	if (line) {
		unsigned long long kib = strtoull(line + 5, NULL, 10);

		if (kib < UINT64_MAX / 1024)
			pss = (uint64_t)kib * 1024;
	}
	free(text);
	return pss;
}

struct mw_error *mw_memory_read(pid_t tid, bool with_pss, uint64_t *rss, uint64_t *pss, uint64_t *vsize)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long all = 0, resident = 0;
	char *text = NULL, *after_all, *after_resident;
	size_t size = 0;
	bool good;

	MW_TRY(mw_proc_file_read(&text, &size, "/proc/%d/statm", (int)tid));
	all = strtoull(text, &after_all, 10);
	resident = strtoull(after_all, &after_resident, 10);
	good = after_all != text && after_resident != after_all && all <= UINT64_MAX / page &&
	       resident <= UINT64_MAX / page;
	free(text);
	if (!good)
		return mw_error_create(MW_ERROR_DATA, 0, "/proc/%d/statm is invalid", (int)tid);
	*rss = resident * page;
	*vsize = all * page;
	*pss = with_pss ? read_pss(tid) : MW_SIZE_UNKNOWN;
	return NULL;
}

bool mw_auxv_read(pid_t tid, uint64_t type, uint64_t *value)
{
	struct mw_error *err;
	bool found = false;
	char *bytes = NULL;
	size_t size = 0;

	err = mw_proc_file_read(&bytes, &size, "/proc/%d/auxv", (int)tid);
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	for (size_t at = 0; size - at >= 16 && !found; at += 16) {
		uint64_t pair[2];

		memcpy(pair, bytes + at, sizeof(pair));
		if (pair[0] == type) {
			*value = pair[1];
			found = true;
		} else if (pair[0] == 0) {
			break;
		}
	}
	free(bytes);
	return found;
}

int mw_ptrace_scope(void)
{
	struct mw_error *err;
	char *text = NULL;
	size_t size = 0;
	int scope;

	err = mw_proc_file_read(&text, &size, "/proc/sys/kernel/yama/ptrace_scope");
	if (err) {
		mw_error_destroy(err);
		return 0;
	}
	scope = (int)strtol(text, NULL, 10);
	free(text);
	return scope;
}

int mw_shares_memory(pid_t a, pid_t b)
{
	long result = syscall(SYS_kcmp, a, b, KCMP_VM, 0UL, 0UL);

	if (result < 0)
		return -1;
	return result == 0;
}
