// SPDX-License-Identifier: MIT
/* stale.c: find what a memwatch of engine jump that was killed has left (stale.h). */
#include "engine/stale.h"
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"

#include "engine/jump/remains.h"
#include "engine/jump/stale_find.h"
#include "proc/file.h"
#include "tracee/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_NS  UINT64_C(1000000000) /* of a heart that has stopped */
#define LISTEN_NS   100000000            /* a heart that beats does so several times in that */
#define LISTEN_TIME (SILENCE_NS / LISTEN_NS + 1)
#define MOST_CODE   (UINT64_C(1) << 24) /* bytes of a function */

#define MOST_LOOKED_AT 16

static struct mw_error *other_version(pid_t pid)
{
	struct mw_error *err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					       "process %d contains remains of another version of memwatch", (int)pid);

	return mw_error_hint(err, "That version removes it when it is attached again; or restart the process");
}

/*
 * Can the lock on the shared memory be had? It is held for as long as memwatch lives, whatever namespace that is in.
 * False where that can't be known: map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
 */
static bool try_lock(const struct jump_remains *remains, pid_t tid, bool *alive)
{
	char path[96];
	int fd, error;

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)tid,
		       (unsigned long long)remains->shared.start, (unsigned long long)remains->shared.end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	error = flock(fd, LOCK_SH | LOCK_NB) ? errno : 0;
	close(fd);
	*alive = error == EWOULDBLOCK;
	return error == 0 || *alive;
}

/* Without the right to lock: /proc/locks does not show what is locked in another pid namespace; its heartbeat does. */
static bool is_alive(const struct jump_remains *remains, pid_t tid)
{
	mw_addr heart = remains->shared.start + offsetof(struct mw_ring_control, heartbeat);
	const struct timespec pause = {.tv_nsec = LISTEN_NS};
	struct jump_clock clock;
	uint64_t first = 0, now = 0, limit;
	bool alive = false;
	char *locks = NULL;
	size_t size;
	struct mw_error *err;

	if (try_lock(remains, tid, &alive))
		return alive;
	err = mw_proc_file_read(&locks, &size, "/proc/locks");
	if (!err)
		alive = jump_remains_locked(locks, remains->shared.major, remains->shared.minor, remains->shared.inode);
	mw_error_destroy(err);
	free(locks);
	if (alive)
		return true;
	jump_clock_init(&clock);
	limit = jump_clock_ticks(&clock, SILENCE_NS);
	if (mw_remote_read(tid, heart, &first, sizeof(first)) != sizeof(first))
		return false;
	for (uint64_t i = 0; i < LISTEN_TIME; i++) {
		nanosleep(&pause, NULL);
		if (mw_remote_read(tid, heart, &now, sizeof(now)) != sizeof(now))
			return false;
		if (now != first)
			return true;
		if (jump_clock_tick() - now > limit)
			return false;
	}
	return false;
}

static struct mw_error *check_dead(const struct jump_remains *remains, pid_t tid)
{
	struct mw_error *err;

	if (!is_alive(remains, tid))
		return NULL;
	err = mw_error_create(MW_ERROR_DENIED, 0,
			      "another memwatch is still watching process %d, or the process that it was forked from",
			      (int)remains->process->pid);
	return mw_error_hint(err, "End that one first");
}

static struct mw_error *read_control(struct jump_remains *remains, pid_t tid)
{
	struct mw_ring_control *control = &remains->control;

	memset(control, 0, sizeof(*control));
	/* One that was killed before it could size the memory has left nothing to read. */
	if (mw_remote_read(tid, remains->shared.start, control, sizeof(*control)) != sizeof(*control))
		memset(control, 0, sizeof(*control));
	if (control->layout && control->layout != MW_RING_LAYOUT)
		return other_version(remains->process->pid);
	return NULL;
}

static struct mw_error *take_image(struct jump_remains *remains, pid_t tid, const struct mw_ring_owned *owned)
{
	struct jump_process *process = remains->process;
	uint8_t *bytes = calloc(1, owned->size);
	bool other = false, is_image;
	uint64_t mark = 0;
	size_t got;

	if (!bytes)
		return mw_error_nomem();
	got = mw_remote_read(tid, owned->start, bytes, owned->size);
	is_image = jump_remains_is_image(bytes, got, &other) &&
		   jump_remains_context(bytes)->shared == remains->shared.start;
	memcpy(&mark, bytes, got >= sizeof(mark) ? sizeof(mark) : 0);
	if (is_image || (mark == 0 && !remains->control.leaving)) {
		process->recorder.image = owned->start;
		process->recorder.image_size = owned->size;
	}
	if (is_image) {
		remains->image = bytes;
		process->recorder.code = bytes;
		process->recorder.context = *jump_remains_context(bytes);
		return NULL;
	}
	free(bytes);
	return other ? other_version(process->pid) : NULL;
}

/* Once some of it may have been unmapped, nothing is ours that does not look so. */
static bool is_guard(const struct jump_remains *remains, pid_t tid, mw_addr start)
{
	char *smaps = NULL;
	size_t size;
	bool is;
	struct mw_error *err;

	if (!remains->control.leaving)
		return true;
	err = mw_proc_file_read(&smaps, &size, "/proc/%d/smaps", (int)tid);
	is = !err && jump_remains_wiped_by_fork(smaps, start);
	mw_error_destroy(err);
	free(smaps);
	return is;
}

static struct mw_error *take_owned(struct jump_remains *remains, pid_t tid, const struct mw_ring_owned *owned)
{
	struct jump_process *process = remains->process;

	if (!jump_remains_owned(&remains->maps, owned))
		return NULL;
	if (owned->kind == MW_RING_OWN_GUARD && !process->recorder.guard && is_guard(remains, tid, owned->start))
		process->recorder.guard = owned->start;
	else if (owned->kind == MW_RING_OWN_IMAGE && !process->recorder.image)
		return take_image(remains, tid, owned);
	else if (owned->kind == MW_RING_OWN_TRAMPOLINES)
		process->recorder.trampolines[process->recorder.trampolines_count++] =
			(struct jump_trampolines){.start = owned->start, .size = owned->size};
	return NULL;
}

static struct mw_error *file_missing(const struct jump_process *process, const struct mw_module *module)
{
	struct mw_error *err =
		mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				"process %d has jumps of a killed memwatch in %s, and the file with the original code "
				"can't be read%s%s",
				process->pid, module->path, module->why ? ": " : "", module->why ? module->why : "");

	return mw_error_hint(err,
			     "Run memwatch as root, which can read deleted and replaced files; or restart the process");
}

/* Without the file: is there a jump to the trampoline? */
static struct mw_error *check_jump(const struct jump_remains *remains, pid_t tid, const struct mw_module *module,
				   struct jump_patch *patch)
{
	const struct mw_arch *arch = remains->process->survey.arch;
	uint8_t now[MW_DETOUR_MAX], jump[MW_DETOUR_MAX];
	size_t got = mw_remote_read(tid, patch->addr, now, sizeof(now)), skip;
	struct mw_error *err;

	arch->detour(now, got, patch->addr, patch->addr, 0, &patch->detour);
	skip = (size_t)(patch->detour.at - patch->addr);
	err = arch->detour_jump(&patch->detour, patch->trampoline_at, jump);
	if (err || skip > got || got - skip < patch->detour.jump || memcmp(now + skip, jump, patch->detour.jump) != 0) {
		mw_error_destroy(err);
		return NULL;
	}
	return file_missing(remains->process, module);
}

/* What stands where the jump was put, and what stood there before. */
static struct mw_error *take_jump(struct jump_remains *remains, pid_t tid, const struct mw_module *module,
				  struct jump_patch *patch)
{
	struct jump_process *process = remains->process;
	uint8_t now[MW_DETOUR_MAX], jump[MW_DETOUR_MAX], before[MW_DETOUR_MAX];
	size_t size = patch->detour.jump, planted = 0, ours = 0;
	struct mw_error *err = process->survey.arch->detour_jump(&patch->detour, patch->trampoline_at, jump);

	if (err || mw_remote_read(tid, patch->detour.at, now, size) != size) {
		mw_error_destroy(err); /* it can't be there, then */
		return NULL;
	}
	if (!mw_elf_read(module->elf, patch->detour.at - module->bias, before, size))
		return memcmp(now, jump, size) == 0 ? file_missing(process, module) : NULL;
	for (size_t i = 0; i < size; i++) {
		planted += now[i] == jump[i];
		ours += now[i] == jump[i] || now[i] == before[i];
	}
	if (memcmp(now, before, size) == 0)
		return NULL;
	if (ours < size) {
		/* A breakpoint in a jump of ours: what its owner puts back there is the jump. */
		remains->taken |= planted > size / 2;
		return NULL;
	}
	patch->standing = true;
	return mw_journal_adopt(&process->patches.journal, patch->detour.at, before, jump, size, &patch->journal);
}

/* A trampoline that is what would be made today: it is known which of its instructions is the copy of which. */
static void take_trampoline(const struct jump_remains *remains, pid_t tid, struct jump_patch *patch, uint64_t original)
{
	const struct mw_stub_header *header = (const struct mw_stub_header *)(const void *)remains->image;
	const struct mw_trampoline_frame frame = {
		.entry = remains->process->recorder.image +
			 (patch->role == MW_STUB_UNWINDER ? header->find_fde : header->enter),
		.hook = patch->number,
		.frame_size = MW_STUB_CALL_SIZE};
	uint8_t now[MW_TRAMPOLINE_SIZE];
	struct mw_error *err = NULL;

	if (!patch->detour.why)
		err = remains->process->survey.arch->trampoline(&patch->detour, &frame, patch->trampoline_at,
								&patch->trampoline);
	if (!err && !patch->detour.why &&
	    mw_remote_read(tid, patch->trampoline_at, now, patch->trampoline.size) == patch->trampoline.size &&
	    memcmp(now, patch->trampoline.bytes, patch->trampoline.size) == 0)
		return;
	mw_error_destroy(err);
	patch->detour.count = 0;
	patch->trampoline = (struct mw_trampoline){.original = (uint8_t)(original - patch->trampoline_at)};
}

static mw_addr trampoline_of(struct jump_process *process, uint64_t original)
{
	for (size_t i = 0; i < process->recorder.trampolines_count; i++) {
		struct jump_trampolines *trampolines = &process->recorder.trampolines[i];
		uint64_t into = original - trampolines->start;

		if (into < trampolines->size)
			return trampolines->start + into / MW_TRAMPOLINE_SIZE * MW_TRAMPOLINE_SIZE;
	}
	return 0;
}

static struct mw_error *take_hook(struct jump_remains *remains, pid_t tid, uint32_t number)
{
	struct jump_process *process = remains->process;
	const struct mw_stub_hook *hook = &process->recorder.context.hooks[number];
	const struct mw_module *module = mw_modules_find(process->survey.modules, hook->start);
	struct jump_patch *patch = &process->patches.items[process->patches.count];

	*patch = (struct jump_patch){.number = number,
				     .hook = JUMP_NO_HOOK,
				     .role = hook->role,
				     .function = "a function",
				     .addr = hook->start,
				     .size = hook->end - hook->start < MOST_CODE ? hook->end - hook->start : 0,
				     .trampoline_at = trampoline_of(process, hook->original)};
	if (!hook->start || !patch->trampoline_at || !module)
		return NULL;
	patch->module = module->number;
	if (!module->elf)
		return check_jump(remains, tid, module, patch);
	jump_plan_detour(process, patch);
	if (!patch->detour.jump)
		return NULL; /* its code is not in the file any more: another one is mapped there now */
	MW_TRY(take_jump(remains, tid, module, patch));
	take_trampoline(remains, tid, patch, hook->original);
	process->patches.count++;
	return NULL;
}

/* Trampolines that no hook is known to have: unmapped already, perhaps, and something else's place now. */
static void drop_doubtful(struct jump_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->recorder.trampolines_count; i++) {
		bool sure = false;

		for (size_t j = 0; j < process->patches.count && !sure; j++)
			sure = process->patches.items[j].trampoline.size &&
			       process->patches.items[j].trampoline_at - process->recorder.trampolines[i].start <
				       process->recorder.trampolines[i].size;
		if (sure)
			process->recorder.trampolines[kept++] = process->recorder.trampolines[i];
	}
	process->recorder.trampolines_count = kept;
}

static struct mw_error *take_all(struct jump_remains *remains, pid_t tid)
{
	struct jump_process *process = remains->process;
	uint32_t count = remains->control.owned_count;
	size_t added, removed;

	process->recorder.mapped = true;
	/* Who knows? */
	process->stacks.own = true;
	process->recorder.memory =
		(struct mw_shared_memory){.there = remains->shared.start,
					  .size = remains->shared.end - remains->shared.start,
					  .fd = -1,
					  .device = makedev(remains->shared.major, remains->shared.minor),
					  .inode = remains->shared.inode};
	process->recorder.trampolines = calloc(MW_RING_OWNED, sizeof(*process->recorder.trampolines));
	process->patches.items = calloc(MW_STUB_MAX_HOOKS, sizeof(*process->patches.items));
	if (!process->recorder.trampolines || !process->patches.items)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count && i < MW_RING_OWNED; i++)
		MW_TRY(take_owned(remains, tid, &remains->control.owned[i]));
	if (remains->image) {
		MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
		for (uint32_t i = 0; i < MW_STUB_MAX_HOOKS; i++)
			MW_TRY(take_hook(remains, tid, i));
	}
	if (remains->control.leaving)
		drop_doubtful(process);
	return NULL;
}

static struct mw_error *find(struct jump_remains *remains, pid_t tid, size_t index, bool *found)
{
	MW_TRY(mw_maps_read(tid, &remains->maps));
	*found = false;
	for (size_t i = 0; i < remains->maps.count && !*found; i++) {
		if (!jump_remains_is_shared(&remains->maps.items[i]) || index--)
			continue;
		remains->shared = remains->maps.items[i];
		*found = true;
	}
	if (!*found)
		return NULL;
	MW_TRY(read_control(remains, tid));
	MW_TRY(check_dead(remains, tid));
	return take_all(remains, tid);
}

struct mw_error *jump_remains_find(struct jump_remains *remains, pid_t pid, size_t index, bool *found)
{
	static const struct mw_event_sink nobody = {.context = NULL};

	memset(remains, 0, sizeof(*remains));
	remains->engine.options.depth = 1;
	MW_TRY(jump_process_create(&remains->engine, pid, &nobody, &remains->process));
	return find(remains, jump_live_tid(remains->process), index, found);
}

void jump_remains_deinit(struct jump_remains *remains)
{
	if (remains->process) {
		free(remains->process->recorder.shared.base); /* a copy of the slots */
		remains->process->recorder.shared.base = NULL;
	}
	jump_process_destroy(remains->process);
	mw_maps_deinit(&remains->maps);
	free(remains->image);
	memset(remains, 0, sizeof(*remains));
}

struct mw_error *jump_stale_look(pid_t pid, struct mw_stale *stale)
{
	struct mw_error *err = NULL;
	bool found = true;

	/* A process may have made up any number: each that may be alive is listened to for a while. */
	for (size_t i = 0; found && !err && i < MOST_LOOKED_AT; i++) {
		struct jump_remains remains;

		found = false;
		err = jump_remains_find(&remains, pid, i, &found);
		stale->found |= found;
		for (size_t j = 0; !err && found && j < remains.process->patches.journal.count; j++) {
			const struct mw_patch *patch = &remains.process->patches.journal.items[j];
			size_t number;

			err = mw_journal_adopt(stale->journal, patch->addr, patch->original, patch->planted,
					       patch->size, &number);
		}
		jump_remains_deinit(&remains);
	}
	return err;
}
