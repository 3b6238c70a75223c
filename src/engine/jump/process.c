// SPDX-License-Identifier: MIT
/*
 * process.c: one process that is watched: made, stopped, left as it was with all that was forked from it, and how it
 * ended (jump.h).
 */
#include "engine/jump/jump.h"

#include "proc/maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REST_NS      5000000
#define MOST_BREATHS 20
#define SEARCH_NS    UINT64_C(2000000000) /* that the memory of children is looked through for, when the window ends */
#define MOST_SWEEPS  4
#define BREATH_NS    1000000u
#define PATIENCE_NS  UINT64_C(3000000000) /* to have it stopped */

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

static void account_stop(struct jump_process *process)
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

struct mw_error *jump_let_go(struct jump_process *process)
{
	struct mw_error *err = mw_quiesce_end(&process->quiesce);

	account_stop(process);
	return err;
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
	uint64_t value;

	if (!mw_stat_read(pid, MW_STAT_EXIT_CODE, &value))
		return false;
	*status = (int)value;
	return true;
}

void jump_exit_status(struct jump_process *process, int known)
{
	int status = known;

	if (process->window.has_exit_status)
		return;
	process->window.has_exit_status =
		known >= 0 || (process->launched_by_us && waitpid(process->pid, &status, WNOHANG) == process->pid) ||
		ask_pidfd(process->pidfd, &status) || ask_stat(process->pid, &status) ||
		ask_pidfd(process->pidfd, &status);
	process->window.exit_status = process->window.has_exit_status ? status : 0;
}

bool jump_has_exited(const struct jump_process *process)
{
	struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};
	struct mw_status status;

	/* A first thread may have ended before the others. */
	if (fd.fd < 0)
		return !mw_error_none(mw_status_read(process->pid, &status)) ||
		       (mw_state_is_end(status.state) && status.threads <= 1);
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
	return !jump_has_exited(process) && mw_pid_exists(process->pid);
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
	process->stats.spent_ns = jump_clock_ns(&process->clock, process->clock.start_tick + drained->spent);
	process->stats.compared = drained->compared;
	process->stats.differing = drained->differing;
	process->stats.children_cleaned = process->children.cleaned;
	process->stats.left_behind = *process->why_left ? process->why_left : NULL;
}

void jump_process_destroy(struct jump_process *process)
{
	if (!process)
		return;
	jump_memory_close(process);
	jump_drain_destroy(process->drain);
	free(process->transition.entries);
	mw_cleanup_close(&process->pidfd);
	mw_cleanup_close(&process->recorder.own_memory);
	mw_unwinder_destroy(process->unwinder);
	mw_survey_deinit(&process->survey);
	mw_journal_deinit(&process->patches.journal);
	mw_row_dictionary_deinit(&process->rows.dictionary);
	free(process->rows.index);
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

/* Forked while we hold its maker: it stands before its first instruction, and has no calls but its maker's. */
static struct mw_error *child_forked(void *context, pid_t child)
{
	/* What is in its memory is taken out when the window ends; the jumps can go at once, but for what a call that
	 * throws needs. */
	return jump_unpatch_copy(context, child, false);
}

static struct mw_error *look_at_process(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	struct mw_status status;

	process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (process->pidfd < 0 && errno == ENOSYS) /* before Linux 5.3: looked at in each round */
		process->signalled = true;
	else if (process->pidfd < 0)
		return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno,
				       "cannot open process %d", process->pid);
	MW_TRY(mw_status_read(process->pid, &status));
	process->ids.other_namespace = status.ns_pid != process->pid;
	process->ids.first = (uint32_t)status.ns_pid;
	memcpy(process->name, status.name, sizeof(process->name));
	MW_TRY(mw_survey_init(&process->survey, mw_arch_find(mw_target_machine()), process->pid, options));
	MW_TRY(mw_unwinder_libunwind(process->survey.modules, process->survey.arch, &process->inner));
	mw_unwinder_libunwind_fallback(process->inner)->made = &process->survey.java.made;
	return mw_unwinder_memo(process->inner, process->survey.arch, &process->unwinder);
}

struct mw_error *jump_process_create(struct jump_engine *engine, pid_t pid, const struct mw_event_sink *sink,
				     struct jump_process **out)
{
	struct jump_process *process = calloc(1, sizeof(*process));
	struct mw_error *err;

	if (!process)
		return mw_error_nomem();
	process->engine = engine;
	process->pid = process->key = pid;
	process->sink = *sink;
	process->patches.next_helper = MW_STUB_MAX_HOOKS;
	process->recorder.code = mw_stub_image;
	process->recorder.own_memory = -1;
	process->quiesce = (struct mw_quiesce){.forked = child_forked, .context = process};
	err = look_at_process(process);
	if (err)
		jump_process_destroy(process);
	else
		*out = process;
	return err;
}

/* Does a process, be it the one that is watched or a copy of it, have the shared memory mapped, where it was put? */
static bool memory_stands(const struct jump_process *process, pid_t tid)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	const struct mw_shared_memory *memory = &process->recorder.memory;
	const struct mw_mapping *mapping;

	mw_error_destroy(mw_maps_read(tid, &maps));
	mapping = mw_maps_find(&maps, memory->there);
	return mapping && mapping->start == memory->there && mapping->inode == memory->inode &&
	       makedev(mapping->major, mapping->minor) == memory->device;
}

/*
 * It may have become another program before it was traced. Addresses are nobody's any more then, or that one's: it is
 * treated as if the exec had been seen.
 */
static struct mw_error *check_still_it(struct jump_process *process)
{
	if (!process->recorder.memory.here || !jump_has_execed(process) ||
	    memory_stands(process, mw_live_thread(process->pid)))
		return NULL;
	process->quiesce.execed = true;
	return mw_error_create(MW_ERROR_GONE, 0, "process %d has exec'd another program", process->pid);
}

struct mw_error *jump_stop(struct jump_process *process, uint64_t patience_ns)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	uint64_t begin = mw_clock_ns();

	/* Its threads need a CPU to stop. */
	if (process->engine)
		jump_urgency_lower(&process->engine->urgency);
	for (;;) {
		struct mw_error *err = mw_quiesce_begin(&process->quiesce, process->pid);

		if (!err)
			err = mw_quiesce_await_injector(&process->quiesce);
		if (!err)
			err = check_still_it(process);
		if (!err)
			return NULL;
		mw_error_destroy(mw_quiesce_end(&process->quiesce));
		if (mw_error_kind(err) == MW_ERROR_GONE || mw_clock_ns() - begin >= patience_ns)
			return err;
		account_stop(process);
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}

struct mw_error *jump_injector_find(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				    const struct mw_maps *maps, uint32_t calls, pid_t *tid, struct mw_permit *permit)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);

	MW_TRY(mw_seccomp_policy_pick(policy, quiesce, maps, &need, tid, permit));
	/* Where that isn't known mw_inject_init() says so better. */
	if (!*tid && !permit->known)
		*tid = mw_quiesce_pick(quiesce);
	return NULL;
}

/*
 * Processes that were forked from the target while it was watched.
 *
 * A child has a copy of our code and of the jumps to it. Its guard page is empty (MADV_WIPEONFORK), so the recorder in
 * it does nothing, for ever; but the copy is ours to take away. The recorder in a child that allocates says that it is
 * there; the others are found, when the window ends, among the processes that began since the attach: by the shared
 * memory that they have mapped.
 */

/* Does the process have the shared memory mapped, and not share the target's whole address space? */
static bool holds_copy(const struct jump_process *process, pid_t pid)
{
	return memory_stands(process, pid) && mw_shares_memory(mw_live_thread(process->pid), pid) != 1;
}

/* The jumps are taken out of the child: those of unwinders' functions, or all others. Its patches are its own. */
static struct mw_error *lift(struct jump_process *copy, pid_t tid, bool unwinders)
{
	MW_EACH_MUTABLE(patch, copy->patches.items, copy->patches.count)
		if ((patch->role == MW_STUB_UNWINDER) == unwinders)
			patch->standing = false;
	return jump_unpatch_copy(copy, tid, unwinders);
}

/* Let it run until nobody is in our code, nor returns there; `*left` where somebody still does. */
static struct mw_error *await_calls(struct jump_process *copy, struct mw_quiesce *quiesce, struct mw_maps *maps,
				    bool *left)
{
	*left = true;
	jump_seen_nothing(copy);
	for (unsigned i = 0; i < MOST_BREATHS; i++) {
		copy->quiesce = *quiesce;
		mw_maps_deinit(maps);
		MW_TRY(mw_maps_read(mw_quiesce_pick(quiesce), maps));
		MW_TRY(jump_move_out(copy));
		if (jump_in_flight(copy, maps, true) == 0) {
			*left = false;
			return NULL;
		}
		MW_TRY(mw_quiesce_run_briefly(quiesce, BREATH_NS));
		MW_TRY(mw_quiesce_await_injector(quiesce));
	}
	return NULL;
}

/*
 * Its calls in flight are its maker's at the fork: those return by way of our code, and one may still throw, so the
 * code stays with what tells unwinders of it until there are none.
 */
static struct mw_error *take_out_of_child(struct jump_process *copy, struct mw_quiesce *quiesce,
					  struct mw_seccomp_policy *policy, struct mw_maps *maps, bool *left)
{
	struct mw_permit permit;
	struct mw_inject inject;
	pid_t tid;

	MW_TRY(lift(copy, mw_quiesce_pick(quiesce), false));
	if (copy->stacks.own && mw_clock_ns() > copy->stacks.search_until)
		return NULL;
	MW_TRY(await_calls(copy, quiesce, maps, left));
	if (*left)
		return NULL;
	MW_TRY(lift(copy, mw_quiesce_pick(quiesce), true));
	MW_TRY(await_calls(copy, quiesce, maps, left));
	if (*left)
		return NULL;
	/* It does no harm where it can't be taken out. */
	if (copy->engine->options.unsafe)
		MW_TRY(mw_seccomp_policy_pick_best(quiesce, maps, MW_CALLS_MAP, &tid));
	else
		MW_TRY(jump_injector_find(policy, quiesce, maps, MW_CALLS_MAP, &tid, &permit));
	*left = tid == 0;
	if (*left)
		return NULL;
	MW_TRY(mw_inject_init(&inject, tid, maps));
	return jump_memory_unmap(copy, &inject);
}

/* All threads of the child stand. */
static struct mw_error *clean_child(const struct jump_process *process, struct mw_quiesce *quiesce, bool *left)
{
	MW_FREE struct jump_patch *patches = calloc(process->patches.count + 1, sizeof(*patches));
	struct jump_process copy = *process;
	MW_CLEANUP(mw_seccomp_policy_deinit) struct mw_seccomp_policy policy = {.count = 0};
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_error *err;

	*left = true;
	copy.seen = (struct jump_seen){.gone_back = NULL};
	copy.is_copy = true;
	copy.patches.items = patches;
	if (!patches)
		return mw_error_nomem();
	for (size_t i = 0; i < process->patches.count; i++) {
		patches[i] = process->patches.items[i];
		patches[i].standing = true;
	}
	err = take_out_of_child(&copy, quiesce, &policy, &maps, left);
	free(copy.seen.gone_back);
	return err;
}

static struct mw_error *child_clean(struct jump_process *process, pid_t child)
{
	MW_CLEANUP(mw_quiesce_deinit) struct mw_quiesce quiesce = {.forked = child_forked, .context = process};
	struct mw_error *err;
	bool left;

	jump_urgency_lower(&process->engine->urgency);
	err = mw_quiesce_begin(&quiesce, child);
	if (!err)
		err = mw_quiesce_await_injector(&quiesce);
	if (!err && !quiesce.gone && !quiesce.execed && holds_copy(process, child)) {
		err = clean_child(process, &quiesce, &left);
		process->children.cleaned += !err && !left;
	}
	return mw_error_first(err, mw_quiesce_end(&quiesce));
}

struct mw_error *jump_child_release(struct jump_process *process, pid_t pid)
{
	if (process->ended || pid == process->pid || !holds_copy(process, pid))
		return NULL;
	/* Perhaps it shared the process's memory, and still runs in it after the exec or the end of that one. */
	MW_TRY(jump_look_alive(process));
	if (process->ended)
		return NULL;
	MW_TRY(child_clean(process, pid));
	if (!holds_copy(process, pid))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DENIED, 0,
					     "what process %d has of memwatch's since its fork from process %d cannot "
					     "be removed: calls from before the fork have not returned, or none of its "
					     "threads may unmap memory",
					     (int)pid, (int)process->pid),
			     "Attach to it later");
}

void jump_children_heard(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t count = __atomic_load_n(&control->child_count, __ATOMIC_ACQUIRE);

	if (count > MW_RING_CHILDREN)
		count = MW_RING_CHILDREN;
	for (; process->children.seen < count; process->children.seen++) {
		uint32_t tid = __atomic_load_n(&control->children[process->children.seen], __ATOMIC_ACQUIRE);
		/* That of another namespace the sweep at the end finds. */
		pid_t child = process->ids.other_namespace ? 0 : (pid_t)tid;

		if (tid == 0)
			return; /* not written yet */
		/* To look through their memory takes too long for now. */
		if (child > 0 && child != process->pid && !process->stacks.own && holds_copy(process, child))
			/* It does no harm where it can't be cleaned. */
			mw_error_destroy(child_clean(process, child));
		if (child > 0 && child != process->pid && options->forked)
			options->forked(options->forked_context, child, process->pid);
	}
	if (process->children.seen == MW_RING_CHILDREN) {
		/* Room for more to be heard of. */
		memset(control->children, 0, sizeof(control->children));
		process->children.seen = 0;
		__atomic_store_n(&control->child_count, 0, __ATOMIC_RELEASE);
	}
}

/* A copy that a look at the heap reads: it runs no code, and ends with us. */
static bool is_own_copy(pid_t pid)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(pid, &status)) && status.tracer == getpid();
}

/* Clean all that are there: looked for among the processes that began after the attach. True: there were some. */
static bool sweep_once(struct jump_process *process)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	bool found = false;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
		uint64_t start;

		if (pid > 0 && pid != process->pid && pid != getpid() && mw_stat_read(pid, MW_STAT_START, &start) &&
		    start >= process->children.attach_start && holds_copy(process, pid) && !is_own_copy(pid)) {
			found = true;
			mw_error_destroy(mw_fault("detach.child"));
			mw_error_destroy(child_clean(process, pid));
		}
	}
	if (proc)
		closedir(proc);
	return found;
}

/* One that is not clean yet may fork another, whose number may be less than those that were looked at. */
static void children_sweep(struct jump_process *process)
{
	process->stacks.search_until = mw_clock_ns() + SEARCH_NS;
	for (unsigned i = 0; i < MOST_SWEEPS && sweep_once(process); i++)
		if (mw_clock_ns() > process->stacks.search_until)
			break;
}

/*
 * Everything is taken out, and the process left as it was:
 *
 *      guard off                      whatever comes is passed on, nobody waits any more
 *      all threads stand              bytes back, threads out of copies of instructions
 *      let them run for a moment      until none is in our code or returns there
 *      unmap, let go
 *      read what is left in the rings
 */

static void look_at_slots(struct jump_process *process, void *context)
{
	(void)context;
	if (process->drain)
		jump_drain_tidy(process->drain);
	if (process->recorder.shared.base)
		process->recorder.open_elsewhere =
			__atomic_load_n(&jump_control(&process->recorder.shared)->open, __ATOMIC_RELAXED);
}

/* What has to stay mapped stays unused, and is known. */
static bool must_stay(struct jump_process *process, const char *taken, size_t left)
{
	if (taken)
		snprintf(process->why_left, sizeof(process->why_left),
			 "another tool has changed the code of %.64s: what our jump there leads to stays, unused",
			 taken);
	else if (left)
		snprintf(process->why_left, sizeof(process->why_left),
			 "%zu calls were still going on: the code that they return to stays in the process, unused",
			 left);
	return taken || left;
}

static struct mw_error *take_out(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_inject inject;
	const char *taken = NULL;
	size_t left = 0;
	pid_t tid = 0;

	/* What has come by where none of ours stood any more, nobody knows. */
	process->patches.disturbed =
		mw_journal_disturbed(&process->patches.journal, mw_quiesce_pick(&process->quiesce));
	MW_TRY(jump_unpatch_all(process, &maps, look_at_slots, NULL, &taken, &left));
	if (!jump_still_there(process) || must_stay(process, taken, left))
		return NULL;
	/* A vfork may have come while calls went on. */
	MW_TRY(mw_quiesce_await_injector(&process->quiesce));
	MW_TRY(mw_seccomp_policy_pick_best(&process->quiesce, &maps, MW_CALLS_MAP, &tid));
	MW_TRY(mw_inject_init(&inject, tid, &maps));
	return jump_memory_unmap(process, &inject);
}

static bool is_as_long_as_wanted(const struct jump_process *process)
{
	uint64_t wanted = process->engine->options.duration_ns;

	return process->windowed && wanted && jump_now(process) >= wanted;
}

/* What has been reported is of the window: where memwatch gets no CPU in between, it is not over before that. */
void jump_window_close(struct jump_process *process)
{
	uint64_t now = jump_now(process);

	if (!process->windowed || process->window.length_ns)
		return;
	if (is_as_long_as_wanted(process))
		now = process->engine->options.duration_ns;
	else if (process->drain && process->drain->emitted_ns > now)
		now = process->drain->emitted_ns;
	process->window.length_ns = now;
}

/* Nothing is recorded any more but by calls that are on their way: what they tell is no later. */
static void end_time(struct jump_process *process)
{
	if (!process->windowed || process->window.length_ns)
		return;
	jump_window_close(process);
	if (process->drain)
		jump_drain_end(process->drain, process->window.length_ns);
}

/* Everything is read, and the window's books are closed. */
static struct mw_error *close_window(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err = NULL;

	process->ended = process->window.over = true;
	process->window.gone = end == MW_END_EXIT || end == MW_END_EXEC;
	/* What became of it after its window is not why that ended. */
	process->window.ended = process->window.length_ns && process->engine->windows_ended ? process->engine->end
				: is_as_long_as_wanted(process)                             ? MW_END_DURATION
											    : end;
	end_time(process);
	if (process->drain && process->windowed) {
		/* After an exec it is another program that has a name. */
		if (end != MW_END_EXEC)
			err = jump_drain_rename(process->drain);
		if (!err)
			err = jump_drain_finish(process->drain);
		jump_stats_take(process);
	}
	return err;
}

struct mw_error *jump_process_end(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err;

	if (process->ended)
		return NULL;
	err = close_window(process, end);
	/* Children may have outlived it. */
	if (process->installed && process->recorder.memory.there)
		children_sweep(process);
	jump_memory_close(process);
	return err;
}

/* What has ended so soon after an exec has not been seen as what it had become. */
static bool became_another(const struct jump_process *process)
{
	for (uint32_t i = 0; i < process->recorder.shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, i);

		/* Nothing has been heard of the thread since: it was no vfork child of its that called it. */
		if (slot->owner > MW_RING_TOMB && slot->exec && slot->exec == slot->entries)
			return true;
	}
	return false;
}

struct mw_error *jump_look_alive(struct jump_process *process)
{
	if (jump_has_exited(process)) {
		jump_exit_status(process, -1);
		return jump_process_end(process,
					!process->exiting && became_another(process) ? MW_END_EXEC : MW_END_EXIT);
	}
	if (jump_has_execed(process) && !jump_has_exited(process))
		return jump_process_end(process, MW_END_EXEC);
	return NULL;
}

static struct mw_error *remove_all(struct jump_process *process)
{
	struct mw_error *err;

	/* Who has asked about a custom stack, and was not answered yet? */
	if (process->windowed && process->recorder.shared.base)
		jump_answer(process);
	jump_look_for_frames(process);
	/* What fails once, as a thread can't be stopped yet, must not leave our code in there. */
	err = jump_stop(process, PATIENCE_NS);
	if (!err)
		err = take_out(process);
	err = mw_error_prefix(mw_error_unless_gone(err), "memwatch's code in process %d could not be removed",
			      process->pid);
	if (process->quiesce.gone)
		jump_exit_status(process, process->quiesce.exit_status);
	mw_error_keep_first(&err, jump_let_go(process));
	return err;
}

struct mw_error *jump_window_end(struct jump_process *process)
{
	if (process->ended || process->window_closed)
		return NULL;
	if (!process->recorder.mapped && !process->patches.journal.count)
		return NULL;
	/* In this order: a guard that is off while recording is on is a forked child's. */
	if (process->recorder.shared.base)
		__atomic_store_n(&jump_control(&process->recorder.shared)->recording, 0, __ATOMIC_RELEASE);
	MW_TRY(jump_guard_set(process, mw_live_thread(process->pid), MW_STUB_GUARD_ENDING));
	end_time(process);
	process->window_closed = true;
	return NULL;
}

struct mw_error *jump_process_detach(struct jump_process *process, enum mw_window_end end)
{
	struct mw_error *err = NULL, *guarded, *first;

	if (process->ended)
		return NULL;
	if (process->quiesce.standing)
		mw_error_keep_first(&err, mw_quiesce_end(&process->quiesce));
	guarded = jump_window_end(process);
	/* What stands in the way of both is reported better by the second. */
	if (process->recorder.mapped || process->patches.journal.count)
		mw_error_keep_first(&err, remove_all(process));
	/* Another program's names are not told as its. */
	if (process->quiesce.execed)
		end = MW_END_EXEC;
	first = jump_process_end(process, end);
	mw_error_keep_first(&first, err);
	mw_error_keep_first(&first, guarded);
	return first;
}
