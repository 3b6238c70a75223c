// SPDX-License-Identifier: MIT
/* process.c: one process that is watched: made and let go of, when it is now, and how it ended (jump.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/recorder.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t jump_now(const struct jump_process *process)
{
	return mw_clock_ns() - process->clock.start_ns;
}

pid_t jump_live_tid(const struct jump_process *process)
{
	return mw_live_thread(process->pid);
}

/* How much of a stop that has just ended was after the window's end? */
static uint64_t after_window(const struct jump_process *process, uint64_t ns)
{
	uint64_t now = jump_now(process), end = process->window.length_ns;

	if (!end)
		end = process->engine->options.duration_ns;
	if (!end || now <= end)
		return 0;
	return now - end < ns ? now - end : ns;
}

void jump_account_stop(struct jump_process *process)
{
	struct mw_engine_stats *stats = &process->stats;
	uint64_t ns = process->quiesce.stood_ns;

	stats->stops++;
	stats->stopped_ns += ns;
	stats->stood_ns += ns;
	if (ns > stats->longest_stop_ns)
		stats->longest_stop_ns = ns;
	if (process->windowed)
		stats->detach_ns += after_window(process, ns);
}

/* PIDFD_GET_INFO of Linux 6.15: the exit status, also when somebody else has waited for the process. */
struct pidfd_info_exit {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
	uint32_t more[16];
};

#define GET_INFO_EXIT 0x8u

static bool ask_pidfd(int pidfd, int *status)
{
	struct pidfd_info_exit info = {.mask = GET_INFO_EXIT};

	if (ioctl(pidfd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, sizeof(info)), &info) || !(info.mask & GET_INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

/* A process that has ended and not been waited for shows its status. */
static bool ask_stat(pid_t pid, int *status)
{
	char path[64], text[1024];
	uint64_t value;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	if (!mw_stat_field(text, (size_t)got, MW_STAT_EXIT_CODE, &value))
		return false;
	*status = (int)value;
	return true;
}

void jump_exit_status(struct jump_process *process, int known)
{
	int status = known;
	bool is_known = known >= 0;

	if (process->window.has_exit_status)
		return;
	if (!is_known && process->launched_by_us)
		is_known = waitpid(process->pid, &status, WNOHANG) == process->pid;
	if (!is_known)
		is_known = ask_pidfd(process->pidfd, &status) || ask_stat(process->pid, &status) ||
			   ask_pidfd(process->pidfd, &status);
	process->window.has_exit_status = is_known;
	process->window.exit_status = is_known ? status : 0;
}

bool jump_has_exited(const struct jump_process *process)
{
	struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

/* Our code, which it can't write to as it can to what is shared, is no more then. */
bool jump_has_execed(const struct jump_process *process)
{
	uint64_t magic = 0;

	if (mw_remote_read(process->pid, process->recorder.image, &magic, sizeof(magic)) == sizeof(magic))
		return magic != MW_STUB_MAGIC;
	/* A process that ends gives its memory back first, which may take long, and a thread that ends does as if it
	 * did: a program that runs has its memory, and its first thread. */
	if (errno == ESRCH)
		return false;
	return !jump_has_exited(process) && kill(process->pid, 0) == 0;
}

void jump_stats_take(struct jump_process *process)
{
	const struct jump_drain_stats *drained;

	if (!process->drain || !process->recorder.shared.base)
		return;
	drained = jump_drain_stats(process->drain);
	/* How much a recorder that has given up did not see, nobody knows. */
	process->stats.lost_events =
		drained->lost_events + drained->bad_records + process->gave_up + process->patches.disturbed;
	if (process->stats.lost_events > JUMP_MOST_COUNTED)
		process->stats.lost_events = JUMP_MOST_COUNTED;
	process->stats.lost_stacks = drained->lost_stacks;
	process->stats.broken_stacks = drained->broken_stacks;
	process->stats.walks = drained->walks;
	process->stats.slow_walks = drained->slow_walks;
	process->stats.waited_ns = jump_clock_ns(&process->clock, process->clock.start_tick + drained->waited);
	process->stats.compared = drained->compared;
	process->stats.differing = drained->differing;
	process->stats.children_cleaned = process->children.cleaned;
	process->stats.left_behind = *process->why_left ? process->why_left : NULL;
}

void jump_memory_close(struct jump_process *process)
{
	if (!process->recorder.shared.base)
		return;
	jump_stats_take(process);
	jump_heart_remove(process->engine, jump_control(&process->recorder.shared));
	process->recorder.shared.base = NULL;
	mw_shared_memory_close(&process->recorder.memory);
}

void jump_process_destroy(struct jump_process *process)
{
	if (!process)
		return;
	jump_memory_close(process);
	jump_drain_destroy(process->drain);
	if (process->pidfd >= 0)
		close(process->pidfd);
	if (process->recorder.own_memory >= 0)
		close(process->recorder.own_memory);
	mw_unwinder_destroy(process->unwinder);
	mw_survey_deinit(&process->survey);
	mw_journal_deinit(&process->patches.journal);
	for (size_t i = 0; i < process->rows.count; i++)
		mw_rows_deinit(&process->rows.items[i].compiled);
	mw_row_dictionary_deinit(&process->rows.dictionary);
	jump_learned_deinit(&process->learned);
	mw_map_deinit(&process->ids.tids);
	mw_seccomp_policy_deinit(&process->policy);
	mw_quiesce_deinit(&process->quiesce);
	free(process->rows.items);
	free(process->patches.items);
	free(process->recorder.trampolines);
	free(process->seen.gone_back);
	free(process);
}

/* Exceptions and calls of ours are walked through by what the image says of itself. */
static struct mw_error *create_unwinder(struct jump_process *process)
{
	struct mw_unwinder *inner = NULL;

	MW_TRY(mw_unwinder_libunwind(process->survey.modules, process->survey.arch, &inner));
	process->inner = inner;
	return mw_unwinder_memo(inner, process->survey.arch, &process->unwinder);
}

struct mw_error *jump_process_create(struct jump_engine *engine, pid_t pid, const struct mw_event_sink *sink,
				     struct jump_process **out)
{
	struct jump_process *process = calloc(1, sizeof(*process));
	struct mw_status status;
	struct mw_error *err;

	if (!process)
		return mw_error_nomem();
	process->engine = engine;
	process->pid = pid;
	process->sink = *sink;
	process->patches.next_helper = MW_STUB_MAX_HOOKS;
	process->recorder.code = mw_stub_image;
	process->recorder.own_memory = -1;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	err = process->pidfd < 0 ? mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno,
						   "cannot open process %d", pid)
				 : NULL;
	if (!err)
		err = mw_status_read(pid, &status);
	if (!err)
		err = mw_survey_init(&process->survey, mw_arch_find(mw_target_machine()), pid,
				     engine->options.track_heap, engine->options.track_vm);
	if (!err)
		err = create_unwinder(process);
	if (err) {
		jump_process_destroy(process);
		return err;
	}
	process->ids.other_namespace = status.ns_pid != pid;
	process->ids.first = (uint32_t)status.ns_pid;
	memcpy(process->name, status.name, sizeof(process->name));
	*out = process;
	return NULL;
}

struct mw_error *jump_machine_check(const struct jump_engine *engine)
{
	const char *why;
	struct mw_error *err = NULL;

	if (!jump_clock_usable(&why))
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "the jump engine can't be used here: %s", why);
	else if (engine->options.depth > JUMP_MAX_DEPTH)
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "the jump engine keeps stacks of at most %d frames",
				      JUMP_MAX_DEPTH);
	return err ? mw_error_hint(err, "--engine trap needs none of that") : NULL;
}
