// SPDX-License-Identifier: MIT
/* task.c: threads and children of a process. */
#include "proc/status.h"

#include "base/vector.h"
#include "proc/file.h"
#include "proc/stat.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pid_list {
	pid_t *items;
	size_t count, capacity;
};

static bool list_add(struct pid_list *list, pid_t pid)
{
	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return false;
	list->items[list->count++] = pid;
	return true;
}

/* A positive pid at the start of `text`; 0 where there is none. */
static pid_t parse_pid(const char *text, char **end)
{
	long value;

	*end = (char *)text;
	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtol(text, end, 10);
	if (errno || value <= 0 || value > INT_MAX)
		return 0;
	return (pid_t)value;
}

static struct mw_error *collect_tasks(DIR *directory, const char *path, struct pid_list *list)
{
	for (;;) {
		struct dirent *entry;
		char *end;
		pid_t tid;

		errno = 0;
		entry = readdir(directory);
		if (!entry)
			return errno ? mw_proc_error(errno, "list", path) : NULL;
		tid = parse_pid(entry->d_name, &end);
		if (tid && *end == '\0' && !list_add(list, tid))
			return mw_error_nomem();
	}
}

struct mw_error *mw_tasks_read(pid_t pid, pid_t **tids, size_t *count)
{
	struct pid_list list = {0};
	struct mw_error *err;
	char path[40];
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return mw_proc_error(errno, "open", path);
	err = collect_tasks(directory, path, &list);
	(void)closedir(directory);
	if (!err && !list.count)
		err = mw_proc_error(ESRCH, "list", path);
	if (err) {
		free(list.items);
		return err;
	}
	*tids = list.items;
	*count = list.count;
	return NULL;
}

pid_t mw_live_thread(pid_t pid)
{
	pid_t *tids = NULL, tid = pid;
	struct mw_error *err;
	size_t count = 0;

	if (!mw_state_is_end(mw_state_read(pid)))
		return pid;
	/* The first thread has ended; the process lives on in others. */
	err = mw_tasks_read(pid, &tids, &count);
	for (size_t i = 0; !err && i < count; i++)
		if (tids[i] != pid)
			tid = tids[i];
	mw_error_destroy(err);
	free(tids);
	return tid;
}

struct mw_error *mw_children_read(pid_t pid, pid_t tid, pid_t **pids, size_t *count)
{
	struct pid_list list = {0};
	struct mw_error *err;
	char *text = NULL, *at, *end;
	size_t size = 0;
	char path[64];

	err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (err) {
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
		/* The file is a build option of the kernel. */
		if (mw_error_errno(err) != ENOENT || access(path, F_OK) != 0)
			return err;
		mw_error_destroy(err);
		text = strdup("");
		if (!text)
			return mw_error_nomem();
	}
	for (at = text;; at = end) {
		pid_t child;

		at += strspn(at, " \n");
		child = parse_pid(at, &end);
		if (!child)
			break;
		if (!list_add(&list, child)) {
			free(list.items);
			free(text);
			return mw_error_nomem();
		}
	}
	free(text);
	*pids = list.items;
	*count = list.count;
	return NULL;
}

void mw_comm_read(pid_t pid, pid_t tid, char name[17])
{
	struct mw_error *err;
	char *text = NULL;
	size_t size = 0;

	err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (err) {
		mw_error_destroy(err);
		memcpy(name, "?", 2);
		return;
	}
	/* The last newline is the file's; others are the name's own. */
	if (size && text[size - 1] == '\n')
		size--;
	if (size > 16)
		size = 16;
	memcpy(name, text, size);
	name[size] = '\0';
	free(text);
}

int mw_task_cpu(pid_t pid, pid_t tid)
{
	struct mw_error *err;
	uint64_t cpu = 0;
	char *text = NULL;
	size_t size = 0;
	bool good;

	err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (err) {
		mw_error_destroy(err);
		return -1;
	}
	good = mw_stat_field(text, size, MW_STAT_CPU, &cpu) && cpu <= INT_MAX;
	free(text);
	return good ? (int)cpu : -1;
}
