// SPDX-License-Identifier: MIT
/* program.c: which program a process runs (program.h). */
#include "proc/program.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"
#include "proc/peek.h"
#include "proc/root.h"
#include "proc/status.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DELETED " (deleted)"

/* Why a process that is there has no /proc/PID/exe. */
static struct mw_error *explain_no_exe(pid_t pid, struct mw_error *err)
{
	struct mw_status status;

	if (!mw_error_none(mw_status_read(pid, &status)))
		return err;
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
	struct stat file, found;

	if (length <= suffix || strcmp(path + length - suffix, DELETED) != 0)
		return;
	if (stat(link, &file) == 0 && mw_root_stat(pid, mw_root_strip(path, prefix), &found) &&
	    found.st_ino == file.st_ino)
		return;
	path[length - suffix] = '\0';
}

struct mw_error *mw_exe_read(pid_t pid, char **out)
{
	MW_FREE char *path = NULL, *prefix = NULL;
	const struct mw_path link = mw_path("/proc/%d/exe", (int)pid);
	struct mw_error *err = mw_proc_link_read(&path, link.text);
	char *copy;

	if (err)
		return mw_error_errno(err) == ENOENT ? explain_no_exe(pid, err) : err;
	prefix = mw_root_prefix(pid);
	if (!prefix)
		return mw_error_nomem();
	cut_deleted(pid, link.text, path, prefix);
	copy = strdup(mw_root_strip(path, prefix));
	if (!copy)
		return mw_error_nomem();
	*out = copy;
	return NULL;
}

void mw_command_free(char ***argv)
{
	for (char **each = *argv; each && *each; each++)
		free(*each);
	free(*argv);
	*argv = NULL;
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
			mw_command_free(&list);
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
	MW_FREE char *text = NULL;
	size_t size = 0;

	MW_TRY(mw_proc_file_read(&text, &size, "/proc/%d/cmdline", (int)pid));
	return split(text, size, argv, count);
}

/* --- by which name it was executed -------------------------------------------------------------------------- */

/* As the process sees it: what is not absolute is meant from its working directory, if that is still the one. */
static char *absolute(pid_t tid, const char *path)
{
	MW_FREE char *directory = NULL, *prefix = NULL;
	char *joined = NULL;

	if (path[0] == '/')
		return strdup(path);
	if (!mw_error_none(mw_proc_link_read(&directory, mw_path("/proc/%d/cwd", (int)tid).text)))
		return NULL;
	prefix = mw_root_prefix(tid);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (!prefix || asprintf(&joined, "%s/%s", mw_root_strip(directory, prefix), path) < 0)
		return NULL;
	return joined;
}

/* The path is hostile: it is taken if it leads to the program's file. */
static char *check_executed(pid_t tid, const char *path, const char *exe, const struct stat *file)
{
	MW_FREE char *whole = NULL;
	const char *name = mw_path_name(path), *mapped = mw_path_name(exe);
	struct stat found;

	if (!*name || strncmp(mapped, name, strlen(name)) == 0)
		return NULL;
	whole = absolute(tid, path);
	if (!whole || !mw_root_stat(tid, whole, &found) || found.st_ino != file->st_ino || found.st_dev != file->st_dev)
		return NULL;
	return MW_TAKE(whole);
}

char *mw_exe_executed(pid_t tid, const char *exe)
{
	char path[PATH_MAX], *found = NULL, **argv = NULL;
	struct stat file;
	uint64_t addr;
	size_t got, count = 0;

	if (stat(mw_path("/proc/%d/exe", (int)tid).text, &file) != 0)
		return NULL;
	if (mw_auxv_read(tid, AT_EXECFN, &addr)) {
		got = mw_peek_some(tid, addr, path, sizeof(path) - 1);
		path[got] = '\0';
		found = check_executed(tid, path, exe, &file);
	}
	/* Of a script it is the script's; the interpreter's path is the first argument then. */
	if (found || !mw_error_none(mw_command_read(tid, &argv, &count)))
		return found;
	if (count && strchr(argv[0], '/'))
		found = check_executed(tid, argv[0], exe, &file);
	mw_command_free(&argv);
	return found;
}

/* FNV-1a. A random address of the stack is among the bytes, as a rule. */
static uint64_t digest_of(const char *bytes, size_t size)
{
	uint64_t digest = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return digest;
}

/* False where it can't be read. A thread that has ended has no memory, and nothing to read. */
static bool read_vector(pid_t tid, struct mw_program *out)
{
	MW_FREE char *bytes = NULL;
	size_t size = 0;
	struct mw_error *err = mw_proc_file_read(&bytes, &size, "/proc/%d/auxv", (int)tid);
	bool denied = err && mw_error_kind(err) != MW_ERROR_GONE;

	out->size = size;
	out->digest = digest_of(bytes, size);
	mw_error_destroy(err);
	return !denied;
}

static bool read_program(pid_t pid, struct mw_program *out)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	bool readable;

	*out = (struct mw_program){.started = 0};
	(void)mw_stat_read(pid, MW_STAT_START, &out->started);
	readable = read_vector(pid, out);
	/* The first thread may have ended before the others. */
	if (readable && out->size == 0)
		mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count && readable && out->size == 0; i++)
		readable = read_vector(tids[i], out);
	return readable;
}

void mw_program_read(pid_t pid, struct mw_program *out)
{
	out->known = read_program(pid, out) && out->started && out->size;
}

static struct mw_error *replaced(pid_t pid)
{
	struct mw_error *err;
	char name[17];

	mw_comm_read(pid, pid, name);
	err = mw_error_create(MW_ERROR_GONE, 0, "process %d exec'd another program (%s) while memwatch attached to it",
			      (int)pid, name);
	return mw_error_hint(err, "To watch that one, attach again: memwatch -p %d", (int)pid);
}

static struct mw_error *ended(pid_t pid)
{
	struct mw_error *err =
		mw_error_create(MW_ERROR_GONE, 0, "process %d ended while memwatch attached to it", (int)pid);

	return mw_error_hint(err, "To watch a short-lived program from its start, launch it: memwatch -- COMMAND");
}

struct mw_error *mw_program_check(pid_t pid, const struct mw_program *before)
{
	struct mw_program now;
	bool readable = read_program(pid, &now);

	if (!now.started || (readable && now.size == 0))
		return ended(pid);
	if (!readable || !before->known)
		return NULL;
	if (now.started != before->started)
		return ended(pid);
	return now.digest == before->digest && now.size == before->size ? NULL : replaced(pid);
}

struct mw_error *mw_program_explain(pid_t pid, const struct mw_program *before, struct mw_error *err)
{
	struct mw_error *better = err && mw_error_kind(err) != MW_ERROR_MEMORY ? mw_program_check(pid, before) : NULL;

	if (!better)
		return err;
	mw_error_destroy(err);
	return better;
}
