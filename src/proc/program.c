// SPDX-License-Identifier: MIT
/* program.c: is a process still the program that it was? (program.h) */
#include "proc/program.h"

#include "proc/file.h"
#include "proc/stat.h"
#include "proc/status.h"

#include <stdlib.h>

static uint64_t start_time(pid_t pid)
{
	uint64_t start = 0;
	char *text = NULL;
	size_t size = 0;
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/stat", (int)pid);

	if (err || !mw_stat_field(text, size, MW_STAT_START, &start))
		start = 0;
	mw_error_destroy(err);
	free(text);
	return start;
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
	char *bytes = NULL;
	size_t size = 0;
	struct mw_error *err = mw_proc_file_read(&bytes, &size, "/proc/%d/auxv", (int)tid);
	bool denied = err && mw_error_kind(err) != MW_ERROR_GONE;

	out->size = err ? 0 : size;
	out->digest = digest_of(bytes, err ? 0 : size);
	mw_error_destroy(err);
	free(bytes);
	return !denied;
}

static bool read_program(pid_t pid, struct mw_program *out)
{
	pid_t *tids = NULL;
	size_t count = 0;
	bool readable;

	*out = (struct mw_program){.started = start_time(pid)};
	readable = read_vector(pid, out);
	/* The first thread may have ended before the others. */
	if (readable && out->size == 0)
		mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count && readable && out->size == 0; i++)
		readable = read_vector(tids[i], out);
	free(tids);
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
