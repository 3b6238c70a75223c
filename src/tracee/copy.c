// SPDX-License-Identifier: MIT
/* copy.c: a forked copy of a process (copy.h). */
#include "tracee/copy.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/path.h"
#include "proc/file.h"
#include "proc/memory_limit.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/seccomp_policy.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB         (UINT64_C(1) << 20)
#define PATIENCE_NS UINT64_C(5000000000)
#define REST_US     50
#define STEPS       8u                   /* entries and exits of the calls by which it names itself */
#define LEAST_ROOM  (UINT64_C(16) << 20) /* for its page tables, and what else comes up */

/* --- may it be? ----------------------------------------------------------------------------------------------------- */

/* Bytes of memory that is the process's alone: what it writes to there while there is a copy it has twice. */
static uint64_t own_memory(pid_t pid)
{
	MW_FREE char *text = NULL;
	const char *line;

	if (!mw_error_none(mw_proc_file_read(&text, NULL, "/proc/%d/status", (int)pid)))
		return 0;
	line = strstr(text, "\nRssAnon:");
	return line ? strtoull(line + strlen("\nRssAnon:"), NULL, 10) * 1024 : 0;
}

static struct mw_error *check_memory(pid_t pid)
{
	uint64_t own = own_memory(pid), room;
	struct mw_memory_limit limit;

	mw_memory_limit_read(pid, &limit);
	room = mw_memory_limit_room(&limit);
	if (room >= own + own / 256 + LEAST_ROOM)
		return NULL;
	return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			       "its %s has %" PRIu64 " MiB left, and process %d, which has %" PRIu64
			       " MiB of its own, may come to need as much again while there is a copy of it",
			       limit.of == MW_LIMIT_CGROUP ? "memory cgroup" : "machine", room / MIB, (int)pid,
			       own / MIB);
}

/* Before Linux 6.5 what a device reads into memory (O_DIRECT) while its process forks may go to the copy's. */
static bool shares_direct_reads(void)
{
	struct utsname system;
	unsigned major, minor;

	return uname(&system) == 0 && sscanf(system.release, "%u.%u", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 5));
}

/* Has it a file open with O_DIRECT? */
static bool reads_directly(pid_t pid)
{
	DIR *directory = opendir(mw_path("/proc/%d/fdinfo", (int)pid).text);
	const struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		char text[256];
		const char *flags;

		if (*entry->d_name == '.' ||
		    !mw_error_none(mw_proc_file_read_small(text, sizeof(text), NULL, "/proc/%d/fdinfo/%.10s", (int)pid,
							   entry->d_name)))
			continue;
		flags = strstr(text, "flags:");
		found = flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_DIRECT);
	}
	if (directory)
		closedir(directory);
	return found;
}

struct mw_error *mw_copy_may(pid_t pid)
{
	mw_seccomp_prepare(pid);
	if (shares_direct_reads() && reads_directly(pid))
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "process %d reads files with O_DIRECT, which a fork could harm before Linux 6.5",
				       (int)pid);
	if (mw_peek_may_provide(pid))
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "process %d may provide pages of its memory itself (userfaultfd): it would have "
				       "to take part in the fork",
				       (int)pid);
	return check_memory(pid);
}

/* Its children may be made in another pid namespace than its own: the first there would be its init. */
static struct mw_error *check_namespace(pid_t tid)
{
	MW_FREE char *own = NULL, *of_children = NULL;

	if (!mw_error_none(mw_proc_link_read(&own, mw_path("/proc/%d/ns/pid", (int)tid).text)))
		return NULL;
	if (mw_error_none(mw_proc_link_read(&of_children, mw_path("/proc/%d/ns/pid_for_children", (int)tid).text)) &&
	    strcmp(own, of_children) == 0)
		return NULL;
	return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			       "the children of thread %d get a pid namespace of their own, which a copy may not be in",
			       (int)tid);
}

/* --- making one ----------------------------------------------------------------------------------------------------- */

struct mw_error *mw_copy_choose(struct mw_inject *inject, const struct mw_quiesce *quiesce, const struct mw_maps *maps,
				uint32_t calls)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	MW_CLEANUP(mw_seccomp_policy_deinit) struct mw_seccomp_policy policy = {.count = 0};
	struct mw_permit permit;
	pid_t tid;

	MW_TRY(mw_seccomp_policy_pick(&policy, quiesce, maps, &need, &tid, &permit));
	if (!tid)
		return mw_error_create(
			MW_ERROR_UNSUPPORTED, 0,
			permit.known ? "the seccomp filter of process %d may kill it for an injected fork if "
				       "memwatch is killed at that moment"
				     : "process %d is under a seccomp filter, which memwatch can read and suspend "
				       "only with CAP_SYS_ADMIN, and when under no filter itself",
			(int)quiesce->pid);
	MW_TRY(mw_inject_by(inject, tid, maps));
	return mw_inject_leads_back(inject) ? NULL : mw_inject_no_sigframe(inject, quiesce->pid);
}

static struct mw_error *fork_failed(pid_t tid, int errnum)
{
	const char *why = "";

	if (errnum == EAGAIN)
		why = ": as many processes as RLIMIT_NPROC (ulimit -u), its pids cgroup or the system allow are there";
	else if (errnum == ENOMEM)
		why = ": the system has no memory to promise for a copy (vm.overcommit_memory), or none left";
	else if (errnum == EPERM || errnum == EACCES || errnum == ENOSYS)
		why = ": a security policy of the system forbids it";
	return mw_error_create(MW_ERROR_UNSUPPORTED, errnum, "thread %d can't fork%s", (int)tid, why);
}

static bool is_copy(void *context, pid_t pid)
{
	return pid == ((const struct mw_copy *)context)->pid;
}

struct mw_error *mw_copy_make(const struct mw_inject *inject, void (*meanwhile)(void *context), void *context,
			      struct mw_copy *out)
{
	struct mw_error *err;
	int64_t result = 0;

	*out = (struct mw_copy){.known = {.known = is_copy, .context = out}};
	MW_TRY(check_namespace(inject->tid));
	MW_TRY(mw_fault("copy.make"));
	err = mw_inject_fork(inject, meanwhile, context, &out->pid, &result);
	if (out->pid)
		mw_orphans_spare(&out->known);
	if (!err && result < 0)
		err = fork_failed(inject->tid, (int)-result);
	else if (!err && !out->pid)
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d has forked untraced", (int)inject->tid);
	if (err)
		mw_copy_end(out);
	return err;
}

static struct mw_error *await_first_stop(pid_t pid)
{
	uint64_t begin = mw_clock_ns();
	int status;
	pid_t got;

	for (;;) {
		got = mw_tracee_wait_stop(pid, &status, WNOHANG);
		if (got == pid)
			return NULL;
		if (got < 0 && errno != EINTR)
			return mw_error_create(MW_ERROR_GONE, 0, "the copy %d has ended", (int)pid);
		if (mw_clock_ns() - begin > PATIENCE_NS)
			return mw_error_create(MW_ERROR_SYSTEM, 0, "the copy %d does not come to its first stop",
					       (int)pid);
		usleep(REST_US);
	}
}

static bool has_name(pid_t pid)
{
	char name[17];

	mw_comm_read(pid, pid, name);
	return strcmp(name, MW_COPY_NAME) == 0;
}

/* Where memory runs out it is to end, not the process. Best effort. */
static void offer_to_oom(pid_t pid)
{
	MW_CLOSE int fd = open(mw_path("/proc/%d/oom_score_adj", (int)pid).text, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) != 4)
		return;
}

struct mw_error *mw_copy_settle(struct mw_copy *copy)
{
	MW_TRY(mw_fault("copy.settle"));
	MW_TRY(await_first_stop(copy->pid));
	for (unsigned i = 0; i < STEPS && !has_name(copy->pid); i++)
		MW_TRY(mw_remote_syscall_next(copy->pid));
	if (!has_name(copy->pid))
		return mw_error_create(MW_ERROR_SYSTEM, 0, "the copy %d does not come to stand", (int)copy->pid);
	/* It ends anyway if it is let go; but at once. */
	MW_TRY(mw_tracee_request(PTRACE_SETOPTIONS, copy->pid, 0, (void *)PTRACE_O_EXITKILL, "bind"));
	offer_to_oom(copy->pid);
	copy->standing = true;
	return mw_fault("copy.stand");
}

void mw_copy_end(struct mw_copy *copy)
{
	int status;
	pid_t got;

	if (!copy->pid)
		return;
	/* Without CAP_KILL one of another user's processes can't be killed, but it ends if it is let go. */
	if (kill(copy->pid, SIGKILL))
		mw_error_destroy(mw_tracee_resume(copy->pid, 0));
	for (;;) {
		got = waitpid(copy->pid, &status, __WALL);
		if (got == copy->pid && WIFSTOPPED(status))
			/* It tells that it is about to end, unless it has come to stand. */
			mw_error_destroy(mw_tracee_resume(copy->pid, 0));
		else if (got == copy->pid || errno != EINTR)
			break;
	}
	mw_orphans_spare_no_more(&copy->known);
	copy->pid = 0;
	copy->standing = false;
}

/* --- what is left --------------------------------------------------------------------------------------------------- */

/* Nobody else's child has this name and exit signal 0. One that is traced yet is for its tracer to hear of first. */
static bool is_remains(pid_t parent, pid_t pid)
{
	struct mw_status status;
	uint64_t exit_signal;

	return mw_error_none(mw_status_read(pid, &status)) && status.state == 'Z' && status.ppid == parent &&
	       status.tracer == 0 && strcmp(status.name, MW_COPY_NAME) == 0 &&
	       mw_stat_read(pid, MW_STAT_EXIT_SIGNAL, &exit_signal) && exit_signal == 0;
}

struct mw_error *mw_copies_find(pid_t pid, pid_t **pids, size_t *count)
{
	size_t kept = 0;

	MW_TRY(mw_children_ended(pid, pids, count));
	for (size_t i = 0; i < *count; i++)
		if (is_remains(pid, (*pids)[i]))
			(*pids)[kept++] = (*pids)[i];
	*count = kept;
	return NULL;
}

static struct mw_error *reap_one(const struct mw_inject *inject, pid_t copy)
{
	const uint64_t arguments[6] = {(uint64_t)mw_ns_tid(copy), 0, WNOHANG | __WALL, 0};
	int64_t result = 0;

	MW_TRY(mw_inject_call(inject, SYS_wait4, arguments, &result));
	if (result > 0)
		return NULL;
	return mw_error_create(MW_ERROR_SYSTEM, result < 0 ? (int)-result : 0,
			       "thread %d can't wait for the copy %d that memwatch has made of it", (int)inject->tid,
			       (int)copy);
}

/* What is needed to have the process wait for its copies. */
struct reaping {
	pid_t pid;
	pid_t *copies; /* that were found */
	size_t count;
	struct mw_maps maps;
	struct mw_inject inject;
	unsigned reaped;
	uint64_t stood_ns;
};

static void reaping_deinit(struct reaping *reaping)
{
	free(reaping->copies);
	mw_maps_deinit(&reaping->maps);
}

/* By a thread that stands. What the process has waited for itself by now is none any more. */
static struct mw_error *reap_standing(struct reaping *reaping, struct mw_quiesce *quiesce)
{
	MW_TRY(mw_quiesce_await_injector(quiesce));
	MW_TRY(mw_copy_choose(&reaping->inject, quiesce, &reaping->maps, MW_CALL_BIT(WAIT4)));
	for (size_t i = 0; i < reaping->count; i++) {
		if (!is_remains(reaping->pid, reaping->copies[i]))
			continue;
		MW_TRY(reap_one(&reaping->inject, reaping->copies[i]));
		reaping->reaped++;
	}
	return NULL;
}

/* `tid` 0: with all threads standing, which leaves most to choose from. */
static struct mw_error *reap_by(struct reaping *reaping, pid_t tid)
{
	struct mw_quiesce quiesce = {0};
	struct mw_error *err =
		tid ? mw_quiesce_begin_one(&quiesce, reaping->pid, tid) : mw_quiesce_begin(&quiesce, reaping->pid);

	if (!err)
		err = reap_standing(reaping, &quiesce);
	err = mw_error_first(err, mw_quiesce_end(&quiesce));
	reaping->stood_ns += quiesce.stood_ns;
	mw_quiesce_deinit(&quiesce);
	return err;
}

/* A thread that sleeps where it can be interrupted. */
static pid_t find_sleeper(pid_t pid)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;

	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count; i++)
		if (mw_state_read(tids[i]) == 'S')
			return tids[i];
	return 0;
}

/* All that can be done before anybody stands. */
static struct mw_error *prepare(struct reaping *reaping)
{
	pid_t tid = mw_live_thread(reaping->pid);

	MW_TRY(mw_fault("copy.reap"));
	mw_seccomp_prepare(reaping->pid);
	MW_TRY(mw_maps_read(tid, &reaping->maps));
	return mw_inject_find_code(&reaping->inject, tid, &reaping->maps);
}

struct mw_error *mw_copies_reap(pid_t pid, unsigned *count, uint64_t *stood_ns)
{
	MW_CLEANUP(reaping_deinit) struct reaping reaping = {.pid = pid};
	struct mw_error *err;
	pid_t sleeper;

	*count = 0;
	*stood_ns = 0;
	MW_TRY(mw_copies_find(pid, &reaping.copies, &reaping.count));
	if (reaping.count == 0)
		return NULL;
	err = prepare(&reaping);
	sleeper = find_sleeper(pid);
	if (!err && (!sleeper || !mw_error_none(reap_by(&reaping, sleeper))))
		err = reap_by(&reaping, 0);
	*count = reaping.reaped;
	*stood_ns = reaping.stood_ns;
	return mw_error_unless_gone(err);
}
