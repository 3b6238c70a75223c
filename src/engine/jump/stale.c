// SPDX-License-Identifier: MIT
/* stale.c: find what a memwatch of engine jump that was killed has left, and take it out in the order of process.c
 * (stale.h). */
#include "engine/jump/jump.h"

#include "engine/jump/remains.h"
#include "engine/stale.h"
#include "proc/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Made by one memwatch. `process` is filled in as far as is known, so that what works on a living one works on it. */
struct remains {
	struct mw_ring_control control;
	struct jump_engine engine; /* nobody's */
	struct mw_maps maps;
	struct mw_mapping shared; /* its path is the list's */
	struct jump_process *process;
	uint8_t *image; /* what the process has there; NULL where it was not written yet */
	bool taken;     /* somebody has changed one of the jumps: what it leads to has to stay */
};

#define SILENCE_NS  UINT64_C(1000000000) /* of a heart that has stopped */
#define LISTEN_NS   100000000            /* a heart that beats does so about once in that */
#define LISTEN_TIME (SILENCE_NS / LISTEN_NS + 1)
#define MOST_CODE   (UINT64_C(1) << 24) /* bytes of a function */

#define MOST_LOOKED_AT 16

/*
 * Can the lock on the shared memory be had? It is held for as long as memwatch lives, whatever namespace that is in.
 * False where that can't be known: map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
 */
static bool try_lock(const struct remains *remains, pid_t tid, bool *alive)
{
	const struct mw_path path =
		mw_path("/proc/%d/map_files/%llx-%llx", (int)tid, (unsigned long long)remains->shared.start,
			(unsigned long long)remains->shared.end);
	MW_CLOSE int fd = open(path.text, O_RDONLY | O_CLOEXEC);
	int error;

	if (fd < 0)
		return false;
	error = flock(fd, LOCK_SH | LOCK_NB) ? errno : 0;
	*alive = error == EWOULDBLOCK;
	return error == 0 || *alive;
}

/* Without the right to lock: /proc/locks does not show what is locked in another pid namespace; its heartbeat does. */
static bool is_alive(const struct remains *remains, pid_t tid)
{
	mw_addr heart = remains->shared.start + offsetof(struct mw_ring_control, heartbeat);
	const struct timespec pause = {.tv_nsec = LISTEN_NS};
	struct jump_clock clock;
	uint64_t first = 0, now = 0, limit;
	bool alive = false;
	MW_FREE char *locks = NULL;
	size_t size;

	if (try_lock(remains, tid, &alive))
		return alive;
	if (mw_error_none(mw_proc_file_read(&locks, &size, "/proc/locks")) &&
	    jump_remains_locked(locks, remains->shared.major, remains->shared.minor, remains->shared.inode))
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

static struct mw_error *check_dead(const struct remains *remains, pid_t tid)
{
	if (!is_alive(remains, tid))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DENIED, 0,
					     "another memwatch is still watching process %d, or the process that it "
					     "was forked from",
					     (int)remains->process->pid),
			     "End that one first");
}

/* One that was killed before it could size the memory has left nothing to read: all 0. */
static void read_control(const struct remains *remains, pid_t tid, struct mw_ring_control *control)
{
	memset(control, 0, sizeof(*control));
	if (mw_remote_read(tid, remains->shared.start, control, sizeof(*control)) != sizeof(*control))
		memset(control, 0, sizeof(*control));
}

static struct mw_error *take_image(struct remains *remains, pid_t tid, const struct mw_ring_owned *owned)
{
	struct jump_process *process = remains->process;
	MW_FREE uint8_t *bytes = calloc(1, owned->size);
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
		process->recorder.context = *jump_remains_context(bytes);
		process->recorder.code = remains->image = MW_TAKE(bytes);
		return NULL;
	}
	return other ? mw_stale_other_version(process->pid) : NULL;
}

/* Once some of it may have been unmapped, nothing is ours that does not look so. */
static bool is_guard(const struct remains *remains, pid_t tid, mw_addr start)
{
	MW_FREE char *smaps = NULL;
	size_t size;

	return !remains->control.leaving ||
	       (mw_error_none(mw_proc_file_read(&smaps, &size, "/proc/%d/smaps", (int)tid)) &&
		jump_remains_wiped_by_fork(smaps, start));
}

static struct mw_error *take_owned(struct remains *remains, pid_t tid, const struct mw_ring_owned *owned)
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
	return MW_REFUSE("Run memwatch as root, which can read deleted and replaced files; or restart the process",
			 "process %d has jumps of a killed memwatch in %s, and the file with the original code can't "
			 "be read%s%s",
			 process->pid, module->path, module->why ? ": " : "", module->why ? module->why : "");
}

/* Without the file: is there a jump to the trampoline? */
static struct mw_error *check_jump(const struct remains *remains, pid_t tid, const struct mw_module *module,
				   struct jump_patch *patch)
{
	const struct mw_arch *arch = remains->process->survey.arch;
	uint8_t now[MW_DETOUR_MAX], jump[MW_DETOUR_MAX];
	size_t got = mw_remote_read(tid, patch->addr, now, sizeof(now)), skip;

	arch->detour(now, got, patch->addr, patch->addr, 0, &patch->detour);
	skip = (size_t)(patch->detour.at - patch->addr);
	if (!mw_error_none(arch->detour_jump(&patch->detour, patch->trampoline_at, jump)) || skip > got ||
	    got - skip < patch->detour.jump || memcmp(now + skip, jump, patch->detour.jump) != 0)
		return NULL;
	return file_missing(remains->process, module);
}

/* What stands where the jump was put, and what stood there before. */
static struct mw_error *take_jump(struct remains *remains, pid_t tid, const struct mw_module *module,
				  struct jump_patch *patch)
{
	struct jump_process *process = remains->process;
	uint8_t now[MW_DETOUR_MAX], jump[MW_DETOUR_MAX], before[MW_DETOUR_MAX];
	size_t size = patch->detour.jump, planted = 0, ours = 0;

	/* Where there can be none, there is none. */
	if (!mw_error_none(process->survey.arch->detour_jump(&patch->detour, patch->trampoline_at, jump)) ||
	    mw_remote_read(tid, patch->detour.at, now, size) != size)
		return NULL;
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
static void take_trampoline(const struct remains *remains, pid_t tid, struct jump_patch *patch, uint64_t original)
{
	const struct mw_stub_header *header = jump_header(remains->process);
	const uint32_t entries[] = {header->enter,       header->find_fde,      header->enter_size0,
				    header->enter_size1, header->enter_product, header->enter_free};
	const struct mw_arch *arch = remains->process->survey.arch;
	uint8_t now[MW_TRAMPOLINE_SIZE];

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]) && !patch->detour.why; i++) {
		struct mw_trampoline_frame frame;

		patch->entry = entries[i];
		frame = jump_frame_of(remains->process, patch);
		if (mw_error_none(arch->trampoline(&patch->detour, &frame, patch->trampoline_at, &patch->trampoline)) &&
		    mw_remote_read(tid, patch->trampoline_at, now, patch->trampoline.size) == patch->trampoline.size &&
		    memcmp(now, patch->trampoline.bytes, patch->trampoline.size) == 0)
			return;
	}
	patch->detour.count = 0;
	patch->trampoline = (struct mw_trampoline){.original = (uint8_t)(original - patch->trampoline_at)};
}

static mw_addr trampoline_of(const struct jump_process *process, uint64_t original)
{
	const struct jump_trampolines *trampolines = jump_trampolines_at(&process->recorder, original);

	return trampolines ? original - (original - trampolines->start) % MW_TRAMPOLINE_SIZE : 0;
}

static struct mw_error *take_hook(struct remains *remains, pid_t tid, uint32_t number)
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
		const struct jump_trampolines area = process->recorder.trampolines[i];
		bool sure = false;

		MW_EACH(patch, process->patches.items, process->patches.count)
			sure |= patch->trampoline.size && patch->trampoline_at - area.start < area.size;
		if (sure)
			process->recorder.trampolines[kept++] = area;
	}
	process->recorder.trampolines_count = kept;
}

static struct mw_error *take_all(struct remains *remains, pid_t tid)
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

/*
 * Find the stale memwatch number `index`; `*found` is false where there are not so many. Whatever comes back, deinit
 * it. Errors as of mw_stale_look.
 */
static struct mw_error *find(struct remains *remains, pid_t pid, size_t index, bool *found)
{
	static const struct mw_event_sink nobody = {.context = NULL};
	pid_t tid;

	memset(remains, 0, sizeof(*remains));
	remains->engine.options.depth = 1;
	MW_TRY(jump_process_create(&remains->engine, pid, &nobody, &remains->process));
	tid = mw_live_thread(pid);
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
	read_control(remains, tid, &remains->control);
	if (remains->control.layout && remains->control.layout != MW_RING_LAYOUT)
		return mw_stale_other_version(pid);
	MW_TRY(check_dead(remains, tid));
	return take_all(remains, tid);
}

static void remains_deinit(struct remains *remains)
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

static struct mw_error *adopt_all(const struct mw_journal *from, struct mw_journal *to)
{
	MW_EACH(patch, from->items, from->count)
		MW_TRY(mw_journal_adopt(to, patch->addr, patch->original, patch->planted, patch->size, NULL));
	return NULL;
}

struct mw_error *jump_stale_look(pid_t pid, struct mw_stale *stale)
{
	struct mw_error *err = NULL;
	bool found = true;

	/* A process may have made up any number: each that may be alive is listened to for a while. */
	for (size_t i = 0; found && !err && i < MOST_LOOKED_AT; i++) {
		struct remains remains;

		found = false;
		err = find(&remains, pid, i, &found);
		stale->found |= found;
		if (!err && found)
			err = adopt_all(&remains.process->patches.journal, stale->journal);
		remains_deinit(&remains);
	}
	return err;
}

#define MOST_LEFT        16 /* stale memwatches in one process */
#define MOST_DESCRIPTORS 64

static struct mw_error *write_control(const struct remains *remains, pid_t tid, size_t offset, uint32_t value)
{
	/* Memory that has no size yet has nothing to say either. */
	if (!remains->control.layout)
		return NULL;
	return mw_remote_write(tid, remains->shared.start + offset, &value, sizeof(value));
}

/* The slots as they are now: which threads are in the recorder. */
static void copy_slots(struct jump_process *process, void *context)
{
	const struct remains *remains = context;
	pid_t tid = mw_live_thread(process->pid);
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
	MW_EACH(mapping, maps->items, maps->count)
		if (mapping->inode == file->st_ino && makedev(mapping->major, mapping->minor) == file->st_dev)
			return true;
	return false;
}

static void find_descriptors(struct descriptors *found)
{
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)found->pid).text);
	const struct dirent *entry;

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
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct descriptors found = {.pid = pid, .maps = &maps};
	MW_CLEANUP(mw_quiesce_deinit) struct mw_quiesce quiesce = {0};
	struct mw_inject inject;
	struct mw_error *err;
	pid_t tid = 0;

	MW_TRY(mw_maps_read(pid, &maps));
	find_descriptors(&found);
	if (found.count == 0)
		return NULL;
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
	return mw_error_first(err, mw_quiesce_end(&quiesce));
}

static struct mw_error *unmap_all(struct remains *remains, const struct mw_maps *maps)
{
	struct jump_process *process = remains->process;
	struct descriptors descriptors = {.pid = mw_live_thread(process->pid),
					  .device = makedev(remains->shared.major, remains->shared.minor),
					  .inode = remains->shared.inode};
	struct mw_inject inject;
	pid_t tid;

	/* A vfork may have come while calls went on. */
	MW_TRY(mw_quiesce_await_injector(&process->quiesce));
	MW_TRY(mw_seccomp_policy_pick_best(&process->quiesce, maps, MW_CALLS_MAP | MW_CALL_BIT(CLOSE), &tid));
	MW_TRY(mw_inject_init(&inject, tid, maps));
	/* Whoever has found it meanwhile is to see that another has been at it. */
	MW_TRY(write_control(remains, tid, offsetof(struct mw_ring_control, leaving),
			     (remains->control.leaving + 1) | 1));
	/* What it writes into there is a copy. */
	free(process->recorder.shared.base);
	process->recorder.shared.base = NULL;
	find_descriptors(&descriptors);
	MW_TRY(close_descriptors(&descriptors, &inject));
	return jump_memory_unmap(process, &inject);
}

static struct mw_error *take_out(struct remains *remains, char *left, size_t size)
{
	struct jump_process *process = remains->process;
	pid_t tid = mw_live_thread(process->pid);
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	const char *taken = NULL;
	struct mw_error *err;
	size_t calls = 0;

	/* In this order: a guard that is off while recording is on is a forked child's. */
	MW_TRY(write_control(remains, tid, offsetof(struct mw_ring_control, recording), 0));
	MW_TRY(jump_guard_set(process, tid, MW_STUB_GUARD_ENDING));
	MW_TRY(mw_survey_adopt_pointers(tid, &process->patches.journal));
	err = jump_unpatch_all(process, &maps, copy_slots, remains, &taken, &calls);
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
			err = unmap_all(remains, &maps);
	}
	return err;
}

/*
 * Another may have been at it between the look at it and the moment from which all stand: the guard, or the next
 * memwatch. Then what is mapped where it was may be that one's, or the program's own.
 */
static struct mw_error *check_unchanged(const struct remains *remains, bool *unchanged)
{
	pid_t tid = mw_live_thread(remains->process->pid);
	const struct mw_mapping *before = &remains->shared, *now;
	struct mw_ring_control control;
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	*unchanged = false;
	MW_TRY(mw_maps_read(tid, &maps));
	now = mw_maps_find(&maps, before->start);
	if (now && jump_remains_is_shared(now) && now->start == before->start && now->end == before->end &&
	    now->inode == before->inode && now->major == before->major && now->minor == before->minor) {
		read_control(remains, tid, &control);
		*unchanged = control.layout == remains->control.layout && control.leaving == remains->control.leaving &&
			     control.owned_count == remains->control.owned_count &&
			     memcmp(control.owned, remains->control.owned, sizeof(control.owned)) == 0;
	}
	return NULL;
}

/* `*again` where it is to be looked for anew. */
static struct mw_error *remove_one(struct remains *remains, char *left, size_t size, bool *again)
{
	struct jump_process *process = remains->process;
	/* Where that can't be done at once, what is known of it will soon be too old. */
	struct mw_error *err = jump_stop(process, 0);
	bool unchanged = true;

	if (!err && jump_still_there(process))
		err = check_unchanged(remains, &unchanged);
	if (!err && unchanged && jump_still_there(process))
		err = take_out(remains, left, size);
	*again = !unchanged;
	return mw_error_first(err, mw_quiesce_end(&process->quiesce));
}

struct mw_error *jump_stale_remove(pid_t pid, char *left, size_t size)
{
	size_t stays = 0;

	*left = '\0';
	for (unsigned i = 0; i < MOST_LEFT; i++) {
		struct remains remains;
		char why[160] = "";
		bool found = false, again = false;
		struct mw_error *err = find(&remains, pid, stays, &found);

		if (!err && found)
			err = mw_error_prefix(remove_one(&remains, why, sizeof(why), &again),
					      "cannot remove what a killed memwatch left");
		remains_deinit(&remains);
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
