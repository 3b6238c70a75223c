// SPDX-License-Identifier: MIT
/* status.c: what /proc says of a process or thread (status.h). */
#include "proc/status.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "proc/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FLAG_KERNEL_THREAD 0x00200000 /* PF_KTHREAD */

#define SMALL 8192 /* more than a status has, as a rule */

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

bool mw_stat_read(pid_t tid, enum mw_stat_number number, uint64_t *out)
{
	char text[SMALL];
	size_t size;

	return mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/stat", (int)tid)) &&
	       mw_stat_field(text, size, number, out);
}

bool mw_stat_worker_flags(uint64_t flags, const char *release)
{
	const uint64_t io_worker = 0x10, user_worker = 0x4000; /* PF_IO_WORKER, PF_USER_WORKER */
	unsigned major = 0, minor = 0, version;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	version = major * 1000 + minor;
	return (version >= 5012 && (flags & io_worker)) || (version >= 6004 && (flags & user_worker));
}

bool mw_stat_kernel_worker(pid_t tid)
{
	struct utsname kernel;
	uint64_t flags;

	return uname(&kernel) == 0 && mw_stat_read(tid, MW_STAT_FLAGS, &flags) &&
	       mw_stat_worker_flags(flags, kernel.release);
}

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

/* Three of a user or a group: real, effective, saved. */
static void take_ids(const char *value, uint32_t *real, uint32_t *effective, uint32_t *saved)
{
	char *end;

	*real = (uint32_t)strtoul(value, &end, 10);
	*effective = (uint32_t)strtoul(end, &end, 10);
	*saved = (uint32_t)strtoul(end, NULL, 10);
}

/* Values that are but a number. */
static bool take_number(const char *key, const char *value, struct mw_status *out)
{
	const struct {
		const char *key;
		int *number;
	} numbers[] = {
		{"Tgid", &out->tgid},
		{"PPid", &out->ppid},
		{"TracerPid", &out->tracer},
		{"Seccomp", &out->seccomp},
		{"Seccomp_filters", &out->seccomp_filters},
	};
	const struct {
		const char *key;
		uint64_t *set;
	} sets[] = {
		{"SigPnd", &out->sig_pending}, {"ShdPnd", &out->shared_pending}, {"SigBlk", &out->sig_blocked},
		{"SigIgn", &out->sig_ignored}, {"SigCgt", &out->sig_caught},     {"CapEff", &out->capabilities},
		{"CapPrm", &out->permitted},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(key, numbers[i].key) == 0) {
			*numbers[i].number = (int)strtol(value, NULL, 10);
			return true;
		}
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strcmp(key, sets[i].key) == 0) {
			*sets[i].set = strtoull(value, NULL, 16);
			return true;
		}
	return false;
}

static void take_field(const char *key, const char *value, struct mw_status *out)
{
	if (take_number(key, value, out))
		return;
	if (strcmp(key, "Name") == 0)
		take_name(value, out->name);
	else if (strcmp(key, "State") == 0)
		out->state = *value;
	else if (strcmp(key, "Uid") == 0)
		take_ids(value, &out->uid, &out->euid, &out->suid);
	else if (strcmp(key, "Gid") == 0)
		take_ids(value, &out->gids[0], &out->gids[1], &out->gids[2]);
	else if (strcmp(key, "NSpid") == 0)
		out->ns_pid = last_pid(value);
	else if (strcmp(key, "Threads") == 0)
		out->threads = strtoul(value, NULL, 10);
	else if (strcmp(key, "NoNewPrivs") == 0)
		out->no_new_privileges = *value == '1';
	else if (strcmp(key, "x86_Thread_features") == 0)
		out->shadow_stack = has_word(value, "shstk");
}

static bool parse_status(char *text, struct mw_status *out)
{
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
		take_field(line, value, out);
	}
	return out->state && out->tgid > 0;
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
	if (!mw_stat_field(small, size, MW_STAT_FLAGS, &flags))
		return mw_error_create(MW_ERROR_DATA, 0, "/proc/%d/stat is invalid", (int)tid);
	status.kernel_thread = (flags & FLAG_KERNEL_THREAD) != 0;
	*out = status;
	return NULL;
}

/* "NUMBER ARGUMENT… SP PC" of a thread that waits in a system call, "-1 SP PC" in a fault; "running" has neither. */
bool mw_waiting_read(pid_t tid, mw_addr *sp, mw_addr *pc)
{
	char text[256], *last, *before;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), NULL, "/proc/%d/syscall", (int)tid)))
		return false;
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

struct pid_list {
	pid_t *items;
	size_t count, capacity;
};

static void list_free(struct pid_list *list)
{
	free(list->items);
}

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

static int compare_pids(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return (a > b) - (a < b);
}

static struct mw_error *collect_ids(DIR *directory, const char *path, struct pid_list *list)
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

/* A directory's entries that are ids. */
static struct mw_error *list_ids(const char *path, pid_t **ids, size_t *count)
{
	MW_CLEANUP(list_free) struct pid_list list = {0};
	DIR *directory = opendir(path);
	struct mw_error *err;

	if (!directory)
		return mw_proc_error(errno, "open", path);
	err = collect_ids(directory, path, &list);
	(void)closedir(directory);
	if (!err && !list.count)
		err = mw_proc_error(ESRCH, "list", path);
	if (err)
		return err;
	*ids = MW_TAKE(list.items);
	*count = list.count;
	return NULL;
}

struct mw_error *mw_tasks_read(pid_t pid, pid_t **tids, size_t *count)
{
	return list_ids(mw_path("/proc/%d/task", (int)pid).text, tids, count);
}

struct mw_error *mw_processes_read(pid_t **pids, size_t *count)
{
	*pids = NULL;
	*count = 0;
	MW_TRY(list_ids("/proc", pids, count));
	if (*count)
		qsort(*pids, *count, sizeof(**pids), compare_pids);
	return NULL;
}

pid_t mw_live_thread(pid_t pid)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;

	if (!mw_state_is_end(mw_state_read(pid)))
		return pid;
	/* The first thread has ended; the process lives on in others. */
	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	while (count-- > 0)
		if (tids[count] != pid)
			return tids[count];
	return pid;
}

struct mw_error *mw_children_read(pid_t pid, pid_t tid, pid_t **pids, size_t *count)
{
	MW_CLEANUP(list_free) struct pid_list list = {0};
	MW_FREE char *text = NULL;
	struct mw_error *err;
	pid_t child;
	char *end;

	err = mw_proc_file_read(&text, NULL, "/proc/%d/task/%d/children", (int)pid, (int)tid);
	/* The file is a build option of the kernel. */
	if (err && (mw_error_errno(err) != ENOENT ||
		    access(mw_path("/proc/%d/task/%d/stat", (int)pid, (int)tid).text, F_OK) != 0))
		return err;
	mw_error_destroy(err);
	for (const char *at = text; at; at = end) {
		child = parse_pid(at + strspn(at, " \n"), &end);
		if (!child)
			break;
		if (!list_add(&list, child))
			return mw_error_nomem();
	}
	*pids = MW_TAKE(list.items);
	*count = list.count;
	return NULL;
}

/* By the parent that each process of the machine names. Errors: MEMORY, SYSTEM. */
static struct mw_error *children_by_parent(pid_t pid, struct pid_list *list)
{
	MW_FREE pid_t *all = NULL;
	size_t count;

	MW_TRY(mw_processes_read(&all, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_status status;

		if (mw_error_none(mw_status_read(all[i], &status)) && status.ppid == pid && !list_add(list, all[i]))
			return mw_error_nomem();
	}
	return NULL;
}

static struct mw_error *children_by_thread(pid_t pid, struct pid_list *list)
{
	MW_FREE pid_t *tids = NULL;
	size_t tid_count = 0;

	/* It may have ended. */
	if (!mw_error_none(mw_tasks_read(pid, &tids, &tid_count)))
		return NULL;
	for (size_t i = 0; i < tid_count; i++) {
		MW_FREE pid_t *pids = NULL;
		size_t count = 0;

		if (!mw_error_none(mw_children_read(pid, tids[i], &pids, &count)))
			continue;
		for (size_t j = 0; j < count; j++)
			if (!list_add(list, pids[j]))
				return mw_error_nomem();
	}
	return NULL;
}

/* Those that have ended, or those that have not. */
static struct mw_error *children_that(pid_t pid, bool ended, pid_t **pids, size_t *count)
{
	MW_CLEANUP(list_free) struct pid_list list = {0};
	const struct mw_path path = mw_path("/proc/self/task/%d/children", (int)getpid());
	size_t kept = 0;

	MW_TRY(access(path.text, F_OK) == 0 ? children_by_thread(pid, &list) : children_by_parent(pid, &list));
	for (size_t i = 0; i < list.count; i++)
		if (mw_state_is_end(mw_state_read(list.items[i])) == ended)
			list.items[kept++] = list.items[i];
	if (kept)
		qsort(list.items, kept, sizeof(*list.items), compare_pids);
	*pids = MW_TAKE(list.items);
	*count = kept;
	return NULL;
}

struct mw_error *mw_children_alive(pid_t pid, pid_t **pids, size_t *count)
{
	return children_that(pid, false, pids, count);
}

struct mw_error *mw_children_ended(pid_t pid, pid_t **pids, size_t *count)
{
	return children_that(pid, true, pids, count);
}

void mw_comm_read(pid_t pid, pid_t tid, char name[17])
{
	char text[64];
	size_t size;

	if (!mw_error_none(
		    mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/task/%d/comm", (int)pid, (int)tid))) {
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
}

int mw_task_cpu(pid_t pid, pid_t tid)
{
	char text[SMALL];
	uint64_t cpu;
	size_t size;

	if (!mw_error_none(
		    mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/task/%d/stat", (int)pid, (int)tid)))
		return -1;
	return mw_stat_field(text, size, MW_STAT_CPU, &cpu) && cpu <= INT_MAX ? (int)cpu : -1;
}

/* The value of "Pss:  123 kB" in bytes. */
static uint64_t read_pss(pid_t tid)
{
	MW_FREE char *text = NULL;
	unsigned long long kib;
	const char *line;

	mw_error_destroy(mw_proc_file_read(&text, NULL, "/proc/%d/smaps_rollup", (int)tid));
	line = text ? strstr(text, "\nPss:") : NULL;
	if (!line)
		return MW_SIZE_UNKNOWN;
	kib = strtoull(line + 5, NULL, 10);
	return kib < UINT64_MAX / 1024 ? (uint64_t)kib * 1024 : MW_SIZE_UNKNOWN;
}

struct mw_error *mw_memory_read(pid_t tid, bool with_pss, uint64_t *rss, uint64_t *pss, uint64_t *vsize)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long all, resident;
	char text[256], *after_all, *after_resident;

	MW_TRY(mw_proc_file_read_small(text, sizeof(text), NULL, "/proc/%d/statm", (int)tid));
	all = strtoull(text, &after_all, 10);
	resident = strtoull(after_all, &after_resident, 10);
	if (after_all == text || after_resident == after_all || all > UINT64_MAX / page || resident > UINT64_MAX / page)
		return mw_error_create(MW_ERROR_DATA, 0, "/proc/%d/statm is invalid", (int)tid);
	*rss = resident * page;
	*vsize = all * page;
	*pss = with_pss ? read_pss(tid) : MW_SIZE_UNKNOWN;
	return NULL;
}

bool mw_auxv_read(pid_t tid, uint64_t type, uint64_t *value)
{
	MW_FREE char *bytes = NULL;
	size_t size = 0;

	mw_error_destroy(mw_proc_file_read(&bytes, &size, "/proc/%d/auxv", (int)tid));
	for (size_t at = 0; bytes && size - at >= 16; at += 16) {
		uint64_t pair[2];

		memcpy(pair, bytes + at, sizeof(pair));
		if (pair[0] == type) {
			*value = pair[1];
			return true;
		}
		if (pair[0] == 0)
			break;
	}
	return false;
}

int mw_ptrace_scope(void)
{
	char text[32];

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), NULL, "/proc/sys/kernel/yama/ptrace_scope")))
		return 0;
	return (int)strtol(text, NULL, 10);
}

/* Without CAP_KILL those of other users may not be signalled. */
bool mw_pid_exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

bool mw_is_thread_of(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

int mw_shares_memory(pid_t a, pid_t b)
{
	long result = syscall(SYS_kcmp, a, b, KCMP_VM, 0UL, 0UL);

	if (result < 0)
		return -1;
	return result == 0;
}
