// SPDX-License-Identifier: MIT
/* preflight_sharing.c: does a process live in the memory of one that would not be watched with it (preflight.h)? */
#include "tracee/preflight.h"

#include "proc/status.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_MAKERS 64

/* Without these lists none is found by its maker. */
static bool are_lists_of_children(void)
{
	return access("/proc/thread-self/children", F_OK) == 0;
}

/* Was it made by `pid`, or by one that was? Then it is found and held with it. */
static bool comes_of(pid_t child, pid_t pid)
{
	for (unsigned i = 0; i < MOST_MAKERS && child > 1; i++) {
		struct mw_status status;
		struct mw_error *err = mw_status_read(child, &status);

		mw_error_destroy(err);
		if (err)
			return false;
		if (status.ppid == pid)
			return true;
		child = status.ppid;
	}
	return false;
}

/* None is shared by all that have none. */
static bool has_memory(pid_t pid)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(pid, &status);
	bool has = !err && !status.kernel_thread && !mw_state_is_end(status.state);

	mw_error_destroy(err);
	return has;
}

/* Its maker, where it is that: it is named in the advice. */
static pid_t find_other(pid_t pid, pid_t live, DIR *directory)
{
	struct mw_status status = {.ppid = 0};
	const struct dirent *entry;

	mw_error_destroy(mw_status_read(pid, &status));
	if (status.ppid > 0 && mw_shares_memory(live, status.ppid) == 1)
		return status.ppid;
	while ((entry = readdir(directory))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other <= 0 || other == pid || mw_shares_memory(live, other) != 1 ||
		    (are_lists_of_children() && comes_of(other, pid)))
			continue;
		/* Whose child it is can't be known of one that has just ended. */
		if (has_memory(other) && mw_shares_memory(live, other) == 1)
			return other;
	}
	return 0;
}

struct mw_error *mw_preflight_sharing(pid_t pid)
{
	DIR *directory = opendir("/proc");
	pid_t other = directory ? find_other(pid, mw_live_thread(pid), directory) : 0;
	struct mw_error *err;

	if (directory)
		closedir(directory);
	if (!other)
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "process %d shares its memory with process %d, which is not watched and would hit the "
			      "breakpoints and jumps there",
			      (int)pid, (int)other);
	if (comes_of(pid, other))
		return mw_error_hint(err, "Watch process %d, or try again when %d runs a program of its own",
				     (int)other, (int)pid);
	return mw_error_hint(err, "Try again when one of them has ended or runs another program");
}
