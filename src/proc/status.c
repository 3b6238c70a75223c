// SPDX-License-Identifier: MIT
/* status.c: /proc/TID/status, and the flags of /proc/TID/stat. */
#include "proc/status.h"

#include "proc/file.h"
#include "proc/stat.h"

#include <stdlib.h>
#include <string.h>

#define FLAG_KERNEL_THREAD 0x00200000 /* PF_KTHREAD */

#define SMALL 8192 /* more than either has, as a rule */

#define SEEN_STATE 1u
#define SEEN_TGID  2u

/* The kernel writes newline and backslash of a name as "\n" and "\\". */
static void take_name(const char *value, char name[17])
{
	size_t length = 0;

	for (; *value && length < 16; value++) {
		if (value[0] == '\\' && value[1] == 'n') {
			name[length++] = '\n';
			value++;
		} else {
			if (value[0] == '\\' && value[1] == '\\')
				value++;
			name[length++] = *value;
		}
	}
	name[length] = '\0';
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		bool begins = at == text || at[-1] == ' ' || at[-1] == '\t';

		if (begins && (at[length] == '\0' || at[length] == ' '))
			return true;
	}
	return false;
}

static pid_t last_pid(const char *value)
{
	pid_t pid = 0;
	char *end;

	for (;;) {
		long number = strtol(value, &end, 10);

		if (end == value)
			return pid;
		pid = (pid_t)number;
		value = end;
	}
}

static void take_uids(const char *value, struct mw_status *out)
{
	char *end;

	out->uid = (uid_t)strtoul(value, &end, 10);
	out->euid = (uid_t)strtoul(end, NULL, 10);
}

static void take_ids(const char *key, const char *value, struct mw_status *out, unsigned *seen)
{
	if (strcmp(key, "Tgid") == 0) {
		out->tgid = (pid_t)strtol(value, NULL, 10);
		*seen |= SEEN_TGID;
	} else if (strcmp(key, "PPid") == 0) {
		out->ppid = (pid_t)strtol(value, NULL, 10);
	} else if (strcmp(key, "TracerPid") == 0) {
		out->tracer = (pid_t)strtol(value, NULL, 10);
	} else if (strcmp(key, "Uid") == 0) {
		take_uids(value, out);
	} else if (strcmp(key, "NSpid") == 0) {
		out->ns_pid = last_pid(value);
	} else if (strcmp(key, "Threads") == 0) {
		out->threads = strtoul(value, NULL, 10);
	}
}

static void take_signals(const char *key, const char *value, struct mw_status *out)
{
	const struct {
		const char *key;
		uint64_t *set;
	} sets[] = {
		{"SigPnd", &out->sig_pending}, {"ShdPnd", &out->shared_pending}, {"SigBlk", &out->sig_blocked},
		{"SigIgn", &out->sig_ignored}, {"SigCgt", &out->sig_caught},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strcmp(key, sets[i].key) == 0)
			*sets[i].set = strtoull(value, NULL, 16);
}

static void take_field(const char *key, const char *value, struct mw_status *out, unsigned *seen)
{
	if (strcmp(key, "Name") == 0) {
		take_name(value, out->name);
	} else if (strcmp(key, "State") == 0 && *value) {
		out->state = *value;
		*seen |= SEEN_STATE;
	} else if (strcmp(key, "CapEff") == 0) {
		out->capabilities = strtoull(value, NULL, 16);
	} else if (strcmp(key, "Seccomp") == 0) {
		out->seccomp = (int)strtol(value, NULL, 10);
	} else if (strcmp(key, "Seccomp_filters") == 0) {
		out->seccomp_filters = (int)strtol(value, NULL, 10);
	} else if (strcmp(key, "NoNewPrivs") == 0) {
		out->no_new_privileges = *value == '1';
	} else if (strcmp(key, "x86_Thread_features") == 0) {
		out->shadow_stack = has_word(value, "shstk");
	} else {
		take_ids(key, value, out, seen);
		take_signals(key, value, out);
	}
}

static bool parse_status(char *text, struct mw_status *out)
{
	unsigned seen = 0;

	for (char *line = text, *next; line && *line; line = next) {
		char *value;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		value = strchr(line, ':');
		if (!value)
			continue;
		*value++ = '\0';
		while (*value == '\t' || *value == ' ')
			value++;
		take_field(line, value, out, &seen);
	}
	return seen == (SEEN_STATE | SEEN_TGID) && out->tgid > 0;
}

struct mw_error *mw_status_read(pid_t tid, struct mw_status *out)
{
	struct mw_status status = {.seccomp = -1, .seccomp_filters = -1, .ns_pid = tid};
	char small[SMALL], *text = NULL;
	uint64_t flags = 0;
	size_t size = 0;
	bool good;

	/* What is done with a thread rests on it: with memory or without. Only a long list of groups takes some. */
	MW_TRY(mw_proc_file_read_small(small, sizeof(small), &size, "/proc/%d/status", (int)tid));
	if (size + 1 == sizeof(small))
		MW_TRY(mw_proc_file_read(&text, &size, "/proc/%d/status", (int)tid));
	good = parse_status(text ? text : small, &status);
	free(text);
	if (!good)
		return mw_error_create(MW_ERROR_DATA, 0, "/proc/%d/status is invalid", (int)tid);

	MW_TRY(mw_proc_file_read_small(small, sizeof(small), &size, "/proc/%d/stat", (int)tid));
	good = mw_stat_field(small, size, MW_STAT_FLAGS, &flags);
	if (!good)
		return mw_error_create(MW_ERROR_DATA, 0, "/proc/%d/stat is invalid", (int)tid);
	status.kernel_thread = (flags & FLAG_KERNEL_THREAD) != 0;
	*out = status;
	return NULL;
}

char mw_state_read(pid_t tid)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);

	if (!err)
		return status.state;
	mw_error_destroy(err);
	return 'X';
}

pid_t mw_ns_tid(pid_t tid)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);

	if (!err)
		return status.ns_pid;
	mw_error_destroy(err);
	return tid;
}

bool mw_state_is_end(char state)
{
	return state == 'Z' || state == 'X';
}

/* "NUMBER ARGUMENT… SP PC" of a thread that waits in a system call, "-1 SP PC" in a fault; "running" has neither. */
bool mw_waiting_read(pid_t tid, mw_addr *sp, mw_addr *pc)
{
	char text[256], *last, *before;
	size_t size;
	struct mw_error *err = mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/syscall", (int)tid);

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	last = strrchr(text, ' ');
	if (!last)
		return false;
	*last = '\0';
	before = strrchr(text, ' ');
	if (!before)
		return false;
	*pc = strtoull(last + 1, NULL, 16);
	*sp = strtoull(before + 1, NULL, 16);
	return true;
}
