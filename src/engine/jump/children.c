// SPDX-License-Identifier: MIT
/*
 * children.c: processes that were forked from the target while it was watched (jump.h).
 *
 * A child has a copy of our code and of the jumps to it. Its guard page is empty (MADV_WIPEONFORK), so the recorder in
 * it does nothing, for ever; but the copy is ours to take away. The recorder in a child that allocates says that it is
 * there; the others are found, when the window ends, among the processes that began since the attach: by the shared
 * memory that they have mapped.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"

#include "base/clock.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_BREATHS 20
#define SEARCH_NS    UINT64_C(2000000000) /* that the memory of children is looked through for, when the window ends */
#define BREATH_NS    1000000u

/* Does the process have the shared memory mapped, and not share the target's whole address space? */
static bool holds_copy(const struct jump_process *process, pid_t pid)
{
	return jump_memory_stands(process, pid) && mw_shares_memory(process->pid, pid) != 1;
}

/* The jumps are taken out of the child: those of unwinders' functions, or all others. Its patches are its own. */
static struct mw_error *lift(struct jump_process *copy, pid_t tid, bool unwinders)
{
	for (size_t i = 0; i < copy->patches.count; i++)
		if ((copy->patches.items[i].role == MW_STUB_UNWINDER) == unwinders)
			copy->patches.items[i].standing = false;
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
static struct mw_error *take_out(struct jump_process *copy, struct mw_quiesce *quiesce,
				 struct mw_seccomp_policy *policy, struct mw_maps *maps, bool *left)
{
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
		MW_TRY(jump_injector_find(policy, quiesce, maps, MW_CALLS_MAP, &tid));
	*left = tid == 0;
	if (*left)
		return NULL;
	MW_TRY(mw_inject_init(&inject, tid, maps));
	return jump_memory_unmap(copy, &inject);
}

/* All threads of the child stand. */
static struct mw_error *clean(const struct jump_process *process, struct mw_quiesce *quiesce, bool *left)
{
	struct jump_process copy = *process;
	struct mw_seccomp_policy policy = {.count = 0};
	struct mw_maps maps = {0};
	struct mw_error *err;

	*left = true;
	copy.seen = (struct jump_seen){.gone_back = NULL};
	copy.is_copy = true;
	copy.patches.items = calloc(process->patches.count + 1, sizeof(*copy.patches.items));
	if (!copy.patches.items)
		return mw_error_nomem();
	for (size_t i = 0; i < process->patches.count; i++) {
		copy.patches.items[i] = process->patches.items[i];
		copy.patches.items[i].standing = true;
	}
	err = take_out(&copy, quiesce, &policy, &maps, left);
	mw_seccomp_policy_deinit(&policy);
	mw_maps_deinit(&maps);
	free(copy.patches.items);
	free(copy.seen.gone_back);
	return err;
}

static struct mw_error *jump_child_clean(struct jump_process *process, pid_t child)
{
	struct mw_quiesce quiesce = {.forked = jump_child_forked, .context = process};
	struct mw_error *err = mw_quiesce_begin(&quiesce, child);
	struct mw_error *released;
	bool left;

	if (!err)
		err = mw_quiesce_await_injector(&quiesce);
	if (!err && !quiesce.gone && !quiesce.execed && holds_copy(process, child)) {
		err = clean(process, &quiesce, &left);
		process->children.cleaned += !err && !left;
	}
	released = mw_quiesce_end(&quiesce);
	mw_quiesce_deinit(&quiesce);
	if (err) {
		mw_error_destroy(released);
		return err;
	}
	return released;
}

/* Forked while we hold its maker: it stands before its first instruction, and has no calls but its maker's. */
struct mw_error *jump_child_forked(void *context, pid_t child)
{
	const struct jump_process *process = context;

	/* What is in its memory is taken out when the window ends; the jumps can go at once, but for what a call that
	 * throws needs. */
	return jump_unpatch_copy(process, child, false);
}

/* The child that calls itself `tid`: a young process that holds a copy. */
static pid_t find_child(const struct jump_process *process, uint32_t tid)
{
	struct mw_status status;
	struct mw_error *err;

	if (!process->ids.other_namespace)
		return (pid_t)tid;
	err = mw_status_read((pid_t)tid, &status);
	mw_error_destroy(err);
	return 0; /* the sweep at the end finds it */
}

void jump_children_heard(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t count = __atomic_load_n(&control->child_count, __ATOMIC_ACQUIRE);

	if (count > MW_RING_CHILDREN)
		count = MW_RING_CHILDREN;
	for (; process->children.seen < count; process->children.seen++) {
		uint32_t tid = __atomic_load_n(&control->children[process->children.seen], __ATOMIC_ACQUIRE);
		pid_t child = find_child(process, tid);

		if (tid == 0)
			return; /* not written yet */
		/* To look through their memory takes too long for now. */
		if (child > 0 && child != process->pid && !process->stacks.own && holds_copy(process, child))
			/* It does no harm where it can't be cleaned. */
			mw_error_destroy(jump_child_clean(process, child));
	}
	if (process->children.seen == MW_RING_CHILDREN) {
		/* Room for more to be heard of. */
		memset(control->children, 0, sizeof(control->children));
		process->children.seen = 0;
		__atomic_store_n(&control->child_count, 0, __ATOMIC_RELEASE);
	}
}

/* When a process began, in clock ticks since boot; 0 where it can't be known. */
static uint64_t jump_start_time(pid_t pid)
{
	char path[64], text[1024];
	uint64_t start = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	return mw_stat_field(text, (size_t)got, MW_STAT_START, &start) ? start : 0;
}

void jump_children_sweep(struct jump_process *process)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	if (!proc)
		return;
	process->stacks.search_until = mw_clock_ns() + SEARCH_NS;
	while ((entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;

		if (pid <= 0 || pid == process->pid || pid == getpid() ||
		    jump_start_time(pid) < process->children.attach_start || !holds_copy(process, pid))
			continue;
		mw_error_destroy(jump_child_clean(process, pid));
	}
	closedir(proc);
}
