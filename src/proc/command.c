// SPDX-License-Identifier: MIT
/* command.c: which program a process runs, and with which arguments. */
#include "proc/status.h"

#include "proc/file.h"
#include "proc/root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DELETED " (deleted)"

/* Why a process that is there has no /proc/PID/exe. */
static struct mw_error *explain_no_exe(pid_t pid, struct mw_error *err)
{
	struct mw_status status;
	struct mw_error *second = mw_status_read(pid, &status);

	if (second) {
		mw_error_destroy(second);
		return err;
	}
	mw_error_destroy(err);
	if (status.kernel_thread)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d is a kernel thread and has no program",
				       (int)pid);
	return mw_error_create(MW_ERROR_GONE, 0, "process %d has no program: it is ending", (int)pid);
}

/* Cut " (deleted)" off, unless the file is really called so. */
static void cut_deleted(pid_t pid, const char *link, char *path, const char *prefix)
{
	size_t length = strlen(path);
	const size_t suffix = sizeof(DELETED) - 1;
	struct stat st;

	if (length <= suffix || strcmp(path + length - suffix, DELETED) != 0)
		return;
	if (stat(link, &st) == 0 && mw_root_has(pid, mw_root_strip(path, prefix), st.st_ino))
		return;
	path[length - suffix] = '\0';
}

struct mw_error *mw_exe_read(pid_t pid, char **out)
{
	struct mw_error *err;
	char *path = NULL, *prefix, *copy;
	char link[40];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	err = mw_proc_link_read(&path, link);
	if (err)
		return mw_error_errno(err) == ENOENT ? explain_no_exe(pid, err) : err;
	prefix = mw_root_prefix(pid);
	if (!prefix) {
		free(path);
		return mw_error_nomem();
	}
	cut_deleted(pid, link, path, prefix);
	copy = strdup(mw_root_strip(path, prefix));
	free(prefix);
	free(path);
	if (!copy)
		return mw_error_nomem();
	*out = copy;
	return NULL;
}

static void free_arguments(char **argv, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(argv[i]);
	free(argv);
}

static struct mw_error *split(const char *text, size_t size, char ***argv, size_t *count)
{
	size_t strings = 0, used = 0;
	char **list;

	/* What a program writes there as its title is followed by what is left of the room: no arguments. */
	while (size > 1 && !text[size - 1] && !text[size - 2])
		size--;
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		strings++;
	list = calloc(strings + 1, sizeof(*list));
	if (!list)
		return mw_error_nomem();
	for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
		list[used] = strdup(text + at);
		if (!list[used]) {
			free_arguments(list, used);
			return mw_error_nomem();
		}
		used++;
	}
	*argv = list;
	*count = used;
	return NULL;
}

struct mw_error *mw_command_read(pid_t pid, char ***argv, size_t *count)
{
	struct mw_error *err;
	char *text = NULL;
	size_t size = 0;

	MW_TRY(mw_proc_file_read(&text, &size, "/proc/%d/cmdline", (int)pid));
	err = split(text, size, argv, count);
	free(text);
	return err;
}
