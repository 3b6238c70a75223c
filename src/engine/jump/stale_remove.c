// SPDX-License-Identifier: MIT
/*
 * stale_remove.c: take out what a memwatch that was killed has left (stale.h), in the order of detach.c.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"
#include "engine/stale.h"

#include "base/clock.h"
#include "engine/jump/remains.h"
#include "engine/jump/stale_find.h"
#include "tracee/remote.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOST_LEFT        16 /* stale memwatches in one process */
#define MOST_DESCRIPTORS 64

static struct mw_error *write_control(const struct jump_remains *remains, pid_t tid, size_t offset)
{
	/* Whoever has found it meanwhile is to see that another has been at it. */
	const uint32_t value =
		offset == offsetof(struct mw_ring_control, leaving) ? (remains->control.leaving + 1) | 1 : 0;

	/* Memory that has no size yet has nothing to say either. */
	if (!remains->control.layout)
		return NULL;
	return mw_remote_write(tid, remains->shared.start + offset, &value, sizeof(value));
}

/* The slots as they are now: which threads are in the recorder. */
static void copy_slots(struct jump_process *process, void *context)
{
	const struct jump_remains *remains = context;
	pid_t tid = jump_live_tid(process);
	uint64_t offset = 0, size;
	uint32_t count = 0;

	free(process->recorder.shared.base);
	process->recorder.shared = (struct jump_shared){.base = NULL};
	if (!jump_remains_slots(&remains->control, process->recorder.memory.size, &offset, &count))
		return;
	size = count * (uint64_t)sizeof(struct mw_ring_slot);
	process->recorder.shared.base = calloc(1, size + 1);
	if (!process->recorder.shared.base ||
	    mw_remote_read(tid, process->recorder.memory.there + offset, process->recorder.shared.base, size) != size)
		return;
	process->recorder.shared.geometry.slot_count = count;
	(void)mw_remote_read(tid, process->recorder.memory.there + offsetof(struct mw_ring_control, open),
			     &process->recorder.open_elsewhere, sizeof(process->recorder.open_elsewhere));
}

/* Descriptors of a target that lead to shared memory of ours: that of a stale memwatch, or any that is mapped
 * nowhere. */
struct descriptors {
	pid_t pid;
	const struct mw_maps *maps; /* NULL: only `device` and `inode` */
	uint64_t device, inode;
	int items[MOST_DESCRIPTORS];
	size_t count;
};

static bool is_mapped(const struct mw_maps *maps, const struct stat *file)
{
	for (size_t i = 0; i < maps->count; i++)
		if (maps->items[i].inode == file->st_ino &&
		    makedev(maps->items[i].major, maps->items[i].minor) == file->st_dev)
			return true;
	return false;
}

static void find_descriptors(struct descriptors *found)
{
	const struct dirent *entry;
	char path[64];
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)found->pid);
	directory = opendir(path);
	while (directory && found->count < MOST_DESCRIPTORS && (entry = readdir(directory))) {
		char link[32];
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
		struct stat file;

		link[length > 0 ? length : 0] = '\0';
		if (strncmp(link, "/memfd:memwatch ", 16) != 0 ||
		    fstatat(dirfd(directory), entry->d_name, &file, 0) != 0)
			continue;
		if (found->maps ? !is_mapped(found->maps, &file)
				: file.st_dev == found->device && file.st_ino == found->inode)
			found->items[found->count++] = (int)strtol(entry->d_name, NULL, 10);
	}
	if (directory)
		closedir(directory);
}

static struct mw_error *close_descriptors(const struct descriptors *found, const struct mw_inject *inject)
{
	for (size_t i = 0; i < found->count; i++) {
		const uint64_t arguments[6] = {(uint64_t)found->items[i]};
		int64_t result;

		MW_TRY(mw_inject_call(inject, SYS_close, arguments, &result));
	}
	return NULL;
}

/* A memwatch that was killed between the making of the shared memory and its mapping has left only a descriptor. */
static struct mw_error *close_strays(pid_t pid)
{
	struct mw_maps maps = {0};
	struct descriptors found = {.pid = pid, .maps = &maps};
	struct mw_quiesce quiesce = {0};
	struct mw_inject inject;
	struct mw_error *err, *released;
	pid_t tid = 0;

	MW_TRY(mw_maps_read(pid, &maps));
	find_descriptors(&found);
	if (found.count == 0) {
		mw_maps_deinit(&maps);
		return NULL;
	}
	err = mw_quiesce_begin(&quiesce, pid);
	if (!err)
		err = mw_quiesce_await_injector(&quiesce);
	if (!err)
		err = mw_seccomp_policy_pick_best(&quiesce, &maps, MW_CALL_BIT(CLOSE), &tid);
	if (!err)
		err = mw_inject_init(&inject, tid, &maps);
	/* As they are now that nobody opens or closes any. */
	found.count = 0;
	if (!err) {
		find_descriptors(&found);
		err = close_descriptors(&found, &inject);
	}
	released = mw_quiesce_end(&quiesce);
	mw_quiesce_deinit(&quiesce);
	mw_maps_deinit(&maps);
	if (!err)
		return released;
	mw_error_destroy(released);
	return err;
}

static struct mw_error *unmap(struct jump_remains *remains, const struct mw_maps *maps)
{
	struct jump_process *process = remains->process;
	struct descriptors descriptors = {.pid = jump_live_tid(process),
					  .device = makedev(remains->shared.major, remains->shared.minor),
					  .inode = remains->shared.inode};
	struct mw_inject inject;
	pid_t tid;

	/* A vfork may have come while calls went on. */
	MW_TRY(mw_quiesce_await_injector(&process->quiesce));
	MW_TRY(mw_seccomp_policy_pick_best(&process->quiesce, maps, MW_CALLS_MAP | MW_CALL_BIT(CLOSE), &tid));
	MW_TRY(mw_inject_init(&inject, tid, maps));
	MW_TRY(write_control(remains, tid, offsetof(struct mw_ring_control, leaving)));
	/* What it writes into there is a copy. */
	free(process->recorder.shared.base);
	process->recorder.shared.base = NULL;
	find_descriptors(&descriptors);
	MW_TRY(close_descriptors(&descriptors, &inject));
	return jump_memory_unmap(process, &inject);
}

/* The functions' bytes are put back, those of unwinders last, and calls in flight let come back. */
static struct mw_error *restore(struct jump_remains *remains, struct mw_maps *maps, const char **taken, size_t *left)
{
	struct jump_process *process = remains->process;
	struct mw_error *err, *last;

	MW_TRY(jump_unpatch(process, false, taken));
	err = jump_await_calls(process, maps, copy_slots, remains, left);
	if (!jump_unwinder_patched(process) || !jump_still_there(process))
		return err;
	last = jump_unpatch(process, true, taken);
	if (!err && !last)
		return *left ? NULL : jump_await_calls(process, maps, copy_slots, remains, left);
	if (!err)
		return last;
	mw_error_destroy(last);
	return err;
}

static struct mw_error *take_out(struct jump_remains *remains, char *left, size_t size)
{
	struct jump_process *process = remains->process;
	pid_t tid = jump_live_tid(process);
	struct mw_maps maps = {0};
	const char *taken = NULL;
	struct mw_error *err;
	size_t calls = 0;

	/* In this order: a guard that is off while recording is on is a forked child's. */
	MW_TRY(write_control(remains, tid, offsetof(struct mw_ring_control, recording)));
	MW_TRY(jump_guard_set(process, tid, MW_STUB_GUARD_ENDING));
	err = restore(remains, &maps, &taken, &calls);
	if (!err && jump_still_there(process)) {
		remains->taken |= taken != NULL;
		if (calls || remains->taken)
			(void)snprintf(left, size,
				       remains->taken ? "another tool has changed a jump that a killed memwatch has "
							"left: what it leads to stays, unused"
						      : "%zu calls were still going on in what a killed memwatch has "
							"left: its code stays in the process, unused",
				       calls);
		else
			err = unmap(remains, &maps);
	}
	mw_maps_deinit(&maps);
	return err;
}

/*
 * Another may have been at it between the look at it and the moment from which all stand: the guard, or the next
 * memwatch. Then what is mapped where it was may be that one's, or the program's own.
 */
static struct mw_error *check_unchanged(const struct jump_remains *remains, bool *unchanged)
{
	pid_t tid = jump_live_tid(remains->process);
	const struct mw_mapping *before = &remains->shared, *now;
	struct mw_ring_control control;
	struct mw_maps maps = {0};
	struct mw_error *err;

	*unchanged = false;
	err = mw_maps_read(tid, &maps);
	now = err ? NULL : mw_maps_find(&maps, before->start);
	if (now && jump_remains_is_shared(now) && now->start == before->start && now->end == before->end &&
	    now->inode == before->inode && now->major == before->major && now->minor == before->minor) {
		memset(&control, 0, sizeof(control));
		if (mw_remote_read(tid, before->start, &control, sizeof(control)) != sizeof(control))
			memset(&control, 0, sizeof(control));
		*unchanged = control.layout == remains->control.layout && control.leaving == remains->control.leaving &&
			     control.owned_count == remains->control.owned_count &&
			     memcmp(control.owned, remains->control.owned, sizeof(control.owned)) == 0;
	}
	mw_maps_deinit(&maps);
	return err;
}

/* `*again` where it is to be looked for anew. */
static struct mw_error *remove_one(struct jump_remains *remains, char *left, size_t size, bool *again)
{
	struct jump_process *process = remains->process;
	struct mw_error *err, *released;
	bool unchanged = true;

	/* Where that can't be done at once, what is known of it will soon be too old. */
	err = jump_stop(process, 0);
	if (!err && jump_still_there(process))
		err = check_unchanged(remains, &unchanged);
	if (!err && unchanged && jump_still_there(process))
		err = take_out(remains, left, size);
	*again = !unchanged;
	released = mw_quiesce_end(&process->quiesce);
	if (!err)
		return released;
	mw_error_destroy(released);
	return err;
}

struct mw_error *jump_stale_remove(pid_t pid, char *left, size_t size)
{
	size_t stays = 0;

	*left = '\0';
	for (unsigned i = 0; i < MOST_LEFT; i++) {
		struct jump_remains remains;
		char why[160] = "";
		bool found = false, again = false;
		struct mw_error *err = jump_remains_find(&remains, pid, stays, &found);

		if (!err && found)
			err = mw_error_prefix(remove_one(&remains, why, sizeof(why), &again),
					      "cannot remove what a killed memwatch left");
		jump_remains_deinit(&remains);
		if (err)
			return err;
		if (again)
			continue;
		if (!found)
			return stays ? NULL
				     : mw_error_prefix(close_strays(pid),
						       "cannot close what a killed memwatch left open");
		if (*why) {
			(void)snprintf(left, size, "%s", why);
			stays++;
		}
	}
	return NULL;
}
