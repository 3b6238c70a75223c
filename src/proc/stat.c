// SPDX-License-Identifier: MIT
/* stat.c: fields of /proc/TID/stat. */
#include "proc/stat.h"

#include "proc/file.h"

#include <stdlib.h>
#include <string.h>

#define FLAG_IO_WORKER   0x00000010u
#define FLAG_USER_WORKER 0x00004000u

bool mw_stat_field(const char *text, size_t size, enum mw_stat_number number, uint64_t *out)
{
	/* After the name come only a letter and numbers, so the last parenthesis is the one that ends it. */
	const char *at = memrchr(text, ')', size);
	unsigned long long value;
	char *end;

	if (!at)
		return false;
	at++;
	for (int field = 3; field <= (int)number; field++) {
		if (*at != ' ')
			return false;
		at++;
		if (field < (int)number)
			at += strcspn(at, " ");
	}
	value = strtoull(at, &end, 10);
	if (end == at)
		return false;
	*out = value;
	return true;
}

bool mw_stat_kernel_worker(pid_t tid)
{
	struct mw_error *err;
	uint64_t flags = 0;
	char *text = NULL;
	size_t size = 0;

	err = mw_proc_file_read(&text, &size, "/proc/%d/stat", (int)tid);
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	if (!mw_stat_field(text, size, MW_STAT_FLAGS, &flags))
		flags = 0;
	free(text);
	return (flags & (FLAG_IO_WORKER | FLAG_USER_WORKER)) != 0;
}
