// SPDX-License-Identifier: MIT
/*
 * memory.c: memory of ours in the target, what is written there for the recorder to know, and the sign of life (jump.h,
 * stub.h).
 *
 *      shared memory   memfd, read-write, shared with memwatch      anywhere
 *      guard           one page, read-write, wiped by a fork        anywhere
 *      image           the recorder's code, its context and the     anywhere
 *                      table of readable memory, read-execute
 *      trampolines     one area a neighbourhood, read-execute       within a jump's reach of what it serves
 */
#include "engine/jump/jump.h"

#include "base/hash.h"
#include "base/thread.h"
#include "proc/memory_limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BEAT_NS           100000000 /* a tenth of what makes the recorder believe that memwatch is gone */
#define UNMAP_ATTEMPTS    3
#define TRAMPOLINES_LEAST (2 * JUMP_PAGE)
#define MANY              4    /* processes: each further one takes little memory */
#define LIKELY_THREADS    1024 /* there is room for four times as many to come; where they leak, they do */
#define PIECE             (UINT64_C(512) * JUMP_PAGE) /* what one read of pagemap tells of */
#define CGROUP_SPARE      (UINT64_C(32) << 20)        /* what a cgroup must have left beside what we take */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2
#endif

/*
 * memwatch's sign of life has a thread of its own, as the one that drains may be at something long. Where it stops,
 * because memwatch was killed or stopped, threads of the target no longer wait for room in their rings.
 */

static void beat(struct jump_engine *engine)
{
	for (size_t i = 0; i < engine->heart.count; i++)
		__atomic_store_n(&engine->heart.controls[i]->heartbeat, jump_clock_tick(), __ATOMIC_RELEASE);
}

static void *beat_on(void *context)
{
	struct jump_engine *engine = context;

	/* It does next to nothing, and must not be late where the machine is busy. Best effort. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), -20);
	pthread_mutex_lock(&engine->heart.lock);
	while (!engine->heart.stop) {
		struct timespec until;

		beat(engine);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += BEAT_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&engine->heart.wake, &engine->heart.lock, &until);
	}
	pthread_mutex_unlock(&engine->heart.lock);
	return NULL;
}

/* Signals are for memwatch's first thread. */
static struct mw_error *start_beating(struct jump_engine *engine)
{
	pthread_condattr_t attributes;
	int errnum;

	pthread_mutex_init(&engine->heart.lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->heart.wake, &attributes);
	pthread_condattr_destroy(&attributes);
	errnum = mw_thread_create(&engine->heart.thread, NULL, beat_on, engine);
	if (errnum)
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot start a thread");
	engine->heart.beating = true;
	return NULL;
}

static struct mw_error *heart_add(struct jump_engine *engine, struct mw_ring_control *control)
{
	struct mw_ring_control **place;

	if (!engine->heart.beating)
		MW_TRY(start_beating(engine));
	pthread_mutex_lock(&engine->heart.lock);
	place = MW_VECTOR_AT(engine->heart.controls, engine->heart.count, engine->heart.count);
	if (place) {
		*place = control;
		beat(engine);
	}
	pthread_mutex_unlock(&engine->heart.lock);
	return place ? NULL : mw_error_nomem();
}

static void heart_remove(struct jump_engine *engine, const struct mw_ring_control *control)
{
	if (!engine->heart.beating)
		return;
	pthread_mutex_lock(&engine->heart.lock);
	for (size_t i = 0; i < engine->heart.count; i++)
		if (engine->heart.controls[i] == control)
			engine->heart.controls[i--] = engine->heart.controls[--engine->heart.count];
	pthread_mutex_unlock(&engine->heart.lock);
}

void jump_heart_stop(struct jump_engine *engine)
{
	if (!engine->heart.beating)
		return;
	pthread_mutex_lock(&engine->heart.lock);
	engine->heart.stop = true;
	pthread_cond_signal(&engine->heart.wake);
	pthread_mutex_unlock(&engine->heart.lock);
	pthread_join(engine->heart.thread, NULL);
	pthread_cond_destroy(&engine->heart.wake);
	pthread_mutex_destroy(&engine->heart.lock);
	free(engine->heart.controls);
	engine->heart.beating = false;
}

static void add_code(struct mw_stub_range *ranges, uint64_t *count, mw_addr start, mw_addr end)
{
	if (*count < MW_STUB_RANGES)
		ranges[(*count)++] = (struct mw_stub_range){start, end};
}

static void fill_code(struct jump_process *process)
{
	const struct mw_survey *survey = &process->survey;
	struct mw_stub_context *context = &process->recorder.context;

	context->allocator_count = context->internal_count = context->exception_count = 0;
	for (uint32_t i = 0; i < survey->modules_seen; i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		if (!module->gone && survey->module_class[i] == MW_MODULE_ALLOCATOR)
			add_code(context->allocators, &context->allocator_count, module->start, module->end);
	}
	MW_EACH(range, survey->internal.items, survey->internal.count) {
		mw_addr bias = mw_modules_get(survey->modules, survey->internal.module)->bias;

		add_code(context->internal, &context->internal_count, range->start + bias, range->end + bias);
	}
	MW_EACH(range, survey->exceptions, survey->exception_count)
		add_code(context->exceptions, &context->exception_count, range->start, range->end);
}

/* Where headers of blocks from before the window may be read. */
static struct mw_error *write_readable(struct jump_process *process, const struct mw_maps *maps)
{
	MW_FREE struct mw_stub_range *ranges = calloc(maps->count ? maps->count : 1, sizeof(*ranges));
	uint64_t room = (process->recorder.image_size - mw_stub_image_size) / sizeof(*ranges), count = 0;

	if (!ranges)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count && count < room; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (mapping->read && mapping->write && !mapping->shared)
			ranges[count++] = (struct mw_stub_range){mapping->start, mapping->end};
	}
	process->recorder.context.readable = process->recorder.image + mw_stub_image_size;
	process->recorder.context.readable_count = count;
	return count ? mw_remote_write(mw_live_thread(process->pid), process->recorder.context.readable, ranges,
				       count * sizeof(*ranges))
		     : NULL;
}

static struct mw_error *context_fill(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_stub_context *context = &process->recorder.context;

	context->guard = process->recorder.guard;
	context->shared = process->recorder.memory.there;
	/* Before Linux 5.6 this could wait for minutes after boot, with the process stopped. */
	if (getrandom(&context->cookie, sizeof(context->cookie), GRND_NONBLOCK) != sizeof(context->cookie))
		context->cookie = mw_hash_mix(jump_clock_tick());
	context->rdfsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
	context->slots = context->shared + process->recorder.shared.geometry.slots;
	context->filter = context->shared + process->recorder.shared.geometry.filter;
	context->slot_mask = process->recorder.shared.geometry.slot_count - 1;
	context->hook_count = MW_STUB_MAX_HOOKS;
	fill_code(process);
	return write_readable(process, maps);
}

static void context_hook(struct jump_process *process, const struct jump_patch *patch)
{
	struct mw_stub_hook *hook = &process->recorder.context.hooks[patch->number];

	*hook = (struct mw_stub_hook){.original = patch->trampoline_at + patch->trampoline.original,
				      .start = patch->addr,
				      .end = patch->addr + patch->size,
				      .role = patch->role,
				      .pointer = MW_STUB_NO_ARG,
				      .count = MW_STUB_NO_ARG,
				      .argument = MW_STUB_NO_ARG,
				      .module = patch->module};
	if (patch->hook != JUMP_NO_HOOK) {
		const struct mw_hook *found = &process->survey.hooks.items[patch->hook];
		const struct mw_engine_options *options = &process->engine->options;
		bool heap = found->info.kind == MW_KIND_HEAP;

		hook->pointer = found->entry->pointer;
		hook->count = found->entry->count;
		hook->argument = found->entry->size;
		hook->flags = (uint8_t)((heap ? MW_STUB_IS_HEAP : 0) | (found->glibc ? MW_STUB_GLIBC : 0) |
					((heap ? options->track_heap : options->track_vm) ? 0 : MW_STUB_UNTRACKED));
	}
}

struct mw_error *jump_guard_set(struct jump_process *process, pid_t tid, uint64_t value)
{
	if (!process->recorder.guard)
		return NULL;
	if (process->recorder.own_memory >= 0 && pwrite(process->recorder.own_memory, &value, sizeof(value),
							(off_t)process->recorder.guard) == sizeof(value))
		return NULL;
	/* Another program has something else there, or nothing. */
	return jump_has_execed(process) ? NULL : mw_remote_write(tid, process->recorder.guard, &value, sizeof(value));
}

static uint64_t round_up(uint64_t size)
{
	return (size + JUMP_PAGE - 1) & ~(uint64_t)(JUMP_PAGE - 1);
}

/* Memory that is shared is charged to who touches it first, which memwatch does; but it may live in the same cgroup,
 * and what does not fit there would have something killed. */
static struct mw_error *check_room(const struct jump_process *process, uint64_t needed)
{
	const pid_t pids[] = {process->pid, getpid()};

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		uint64_t room = mw_cgroup_room(pids[i]);

		if (room < needed + CGROUP_SPARE)
			return MW_REFUSE("--engine trap needs little there; or raise the cgroup's memory.max",
					 "the cgroup of %s has %" PRIu64
					 " MiB left, and the recorder in process %d needs %" PRIu64 " MiB",
					 i ? "memwatch" : "the process", room >> 20, process->pid, needed >> 20);
	}
	return NULL;
}

static bool fill(struct jump_process *process, uint64_t offset, uint64_t size)
{
	return mw_error_none(mw_shared_memory_fill(&process->recorder.memory, offset, size));
}

bool jump_memory_fill_rings(void *context, uint32_t first, uint32_t count)
{
	struct jump_process *process = context;
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	uint64_t ring = (uint64_t)geometry->ring_units * MW_RING_UNIT;
	uint64_t scratch = mw_ring_scratch_words(geometry->depth, geometry->script_frames) * sizeof(uint64_t);
	uint64_t memos = MW_RING_MEMOS * sizeof(struct mw_ring_memo);

	if (first > geometry->ring_count)
		return false;
	if (count > geometry->ring_count - first)
		count = geometry->ring_count - first;
	return fill(process, geometry->scratch + first * scratch, count * scratch) &&
	       fill(process, geometry->memos + first * memos, count * memos) &&
	       fill(process, geometry->rings + first * ring, count * ring);
}

struct mw_error *jump_memory_fill_filter(struct jump_process *process)
{
	return mw_shared_memory_fill(&process->recorder.memory, process->recorder.shared.geometry.filter,
				     MW_RING_FILTER_SIZE);
}

bool jump_memory_fill_learned(struct jump_process *process)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;

	return fill(process, geometry->learned, geometry->rows - geometry->learned);
}

/* How many pages of a range are present, as /proc/TID/pagemap says. */
static uint64_t present(int fd, mw_addr start, uint64_t size)
{
	uint64_t entries[512], count = 0;

	for (uint64_t page = start / JUMP_PAGE; page < (start + size) / JUMP_PAGE;) {
		uint64_t left = (start + size) / JUMP_PAGE - page;
		size_t wanted = left < 512 ? (size_t)left : 512;
		ssize_t got = pread(fd, entries, wanted * sizeof(entries[0]), (off_t)(page * sizeof(entries[0])));

		if (got <= 0)
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++)
			count += entries[i] >> 63;
		page += (uint64_t)got / sizeof(entries[0]);
	}
	return count * JUMP_PAGE;
}

/* … of the memory that is shared: much of it is never used, and its file says which. */
static uint64_t present_shared(int fd, const struct mw_shared_memory *memory)
{
	uint64_t count = 0, at = 0;

	if (memory->fd < 0)
		return present(fd, memory->there, memory->size);
	while (at < memory->size) {
		off_t data = lseek(memory->fd, (off_t)at, SEEK_DATA);
		uint64_t left = memory->size - (uint64_t)data;

		if (data < 0 || (uint64_t)data >= memory->size)
			break;
		count += present(fd, memory->there + (uint64_t)data, left < PIECE ? left : PIECE);
		at = (uint64_t)data + PIECE;
	}
	return count;
}

static void add_range(struct mw_engine_range *out, size_t capacity, size_t *count, mw_addr start, uint64_t size)
{
	if (!start || *count == capacity)
		return;
	out[(*count)++] = (struct mw_engine_range){start, start + size};
}

size_t jump_memory_ranges(const struct jump_recorder *recorder, struct mw_engine_range *out, size_t capacity)
{
	size_t count = 0;

	if (!recorder->mapped)
		return 0;
	add_range(out, capacity, &count, recorder->memory.there, recorder->memory.size);
	add_range(out, capacity, &count, recorder->guard, JUMP_PAGE);
	add_range(out, capacity, &count, recorder->image, recorder->image_size);
	for (size_t i = 0; i < recorder->trampolines_count; i++)
		add_range(out, capacity, &count, recorder->trampolines[i].start, recorder->trampolines[i].size);
	return count;
}

void jump_memory_measure(const struct jump_recorder *recorder, pid_t tid, uint64_t *resident, uint64_t *mapped)
{
	struct mw_engine_range ranges[MW_RING_OWNED + 1];
	size_t count = jump_memory_ranges(recorder, ranges, MW_RING_OWNED + 1);
	MW_CLOSE int fd = open(mw_path("/proc/%d/pagemap", (int)tid).text, O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < count; i++) {
		uint64_t size = ranges[i].end - ranges[i].start;

		*mapped += size;
		*resident += ranges[i].start == recorder->memory.there ? present_shared(fd, &recorder->memory)
								       : present(fd, ranges[i].start, size);
	}
}

/* Write down what has been mapped, for whoever comes after us should we be killed. */
static struct mw_error *note_owned(struct jump_process *process, enum mw_ring_own kind, mw_addr start, uint64_t size)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t n = process->recorder.owned_count;

	if (n >= MW_RING_OWNED)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the jump engine would need memory at more than %d places of process %d",
				       MW_RING_OWNED, process->pid);
	control->owned[n].start = start;
	control->owned[n].size = size;
	__atomic_store_n(&control->owned[n].kind, (uint32_t)kind, __ATOMIC_RELEASE);
	process->recorder.owned_count = n + 1;
	__atomic_store_n(&control->owned_count, n + 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Away from all that the process has and within `reach` bytes of [low, high); 0 where that can't be. What is mapped is
 * read anew each time, as our own mappings take places too. */
static struct mw_error *find_gap(const struct mw_inject *inject, mw_addr low, mw_addr high, uint64_t reach,
				 uint64_t size, mw_addr *out)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(inject->tid, &maps));
	if (!mw_inject_find_gap(&maps, low, high, reach, size, out))
		*out = 0;
	return NULL;
}

static struct mw_error *find_room(const struct mw_inject *inject, uint64_t size, mw_addr *out)
{
	return find_gap(inject, inject->code.insn, inject->code.insn + 1, UINT64_MAX / 2, size, out);
}

static struct mw_error *map_anywhere(const struct mw_inject *inject, uint64_t size, mw_addr *out)
{
	mw_addr at;

	MW_TRY(find_room(inject, size, &at));
	return mw_inject_map(inject, at, size, PROT_READ | PROT_WRITE, out);
}

static struct mw_error *map_guard(struct jump_process *process, const struct mw_inject *inject)
{
	MW_TRY(map_anywhere(inject, JUMP_PAGE, &process->recorder.guard));
	MW_TRY(note_owned(process, MW_RING_OWN_GUARD, process->recorder.guard, JUMP_PAGE));
	return mw_inject_advise(inject, process->recorder.guard, JUMP_PAGE, MADV_WIPEONFORK);
}

/* Best effort. */
static void open_own_memory(struct jump_process *process, pid_t tid)
{
	if (process->recorder.own_memory < 0)
		process->recorder.own_memory = open(mw_path("/proc/%d/mem", (int)tid).text, O_RDWR | O_CLOEXEC);
}

/* Frames of Java's interpreter, and of JavaScript, take more. */
static uint32_t words_kept(const struct jump_process *process)
{
	uint32_t depth = process->engine->options.depth;
	uint32_t words = mw_v8_is_there(process->survey.v8)        ? MW_JAVASCRIPT_KEPT
			 : mw_java_is_there(&process->survey.java) ? MW_INTERPRETED_WORDS
								   : 1;

	return depth < JUMP_MAX_DEPTH / words ? depth * words : JUMP_MAX_DEPTH;
}

/* For `threads` at least. */
static void plan(const struct jump_process *process, size_t threads, uint64_t rows_bytes, struct jump_geometry *out)
{
	if (threads < process->quiesce.count)
		threads = process->quiesce.count;
	jump_geometry_plan(out, threads, words_kept(process), rows_bytes, jump_may_sample(process),
			   (mw_script_is_there(process->survey.script) ? JUMP_SCRIPT_PYTHON : 0) |
				   (mw_v8_is_there(process->survey.v8) ? JUMP_SCRIPT_JAVASCRIPT : 0),
			   process->engine->process_count > MANY);
}

static struct mw_error *map_all(struct jump_process *process, const struct mw_inject *inject,
				const struct mw_maps *maps, uint64_t rows_bytes)
{
	struct jump_geometry geometry;
	uint64_t ring, size;
	mw_addr hint;

	plan(process, process->engine->process_count > MANY ? 0 : LIKELY_THREADS, rows_bytes, &geometry);
	if (!mw_error_none(mw_inject_check_limit(inject->tid, geometry.size)) ||
	    !mw_error_none(mw_inject_check_limit(getpid(), geometry.size)))
		plan(process, 0, rows_bytes, &geometry);
	ring = (uint64_t)geometry.ring_units * MW_RING_UNIT;
	process->recorder.first_rings = (uint32_t)process->quiesce.count + geometry.spare_rings;
	if (process->recorder.first_rings > geometry.ring_count)
		process->recorder.first_rings = geometry.ring_count;
	MW_TRY(check_room(process, geometry.rings + process->recorder.first_rings * ring));
	MW_TRY(mw_inject_check_limit(inject->tid, geometry.size));
	MW_TRY(mw_fault("attach.shared"));
	process->recorder.mapped = true;
	open_own_memory(process, inject->tid);
	MW_TRY(find_room(inject, geometry.size, &hint));
	MW_TRY(mw_shared_memory_create(inject, hint, geometry.size, &process->recorder.memory));
	process->recorder.shared = (struct jump_shared){.base = process->recorder.memory.here, .geometry = geometry};
	__atomic_store_n(&jump_control(&process->recorder.shared)->layout, MW_RING_LAYOUT, __ATOMIC_RELEASE);
	MW_TRY(heart_add(process->engine, jump_control(&process->recorder.shared)));
	MW_TRY(mw_fault("attach.guard"));
	MW_TRY(map_guard(process, inject));
	MW_TRY(mw_fault("attach.image"));
	size = round_up(mw_stub_image_size + maps->count * sizeof(struct mw_stub_range));
	MW_TRY(map_anywhere(inject, size, &process->recorder.image));
	process->recorder.image_size = size;
	return note_owned(process, MW_RING_OWN_IMAGE, process->recorder.image, size);
}

/* All that the target may touch before memwatch next looks, so that it never has to have pages of its own. */
struct mw_error *jump_memory_prepare(struct jump_process *process)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	struct mw_shared_memory *memory = &process->recorder.memory;

	/* Rings get what is theirs alone with them, rows and their dictionary as they are written (rows.c), and what is not
	 * in use yet when it comes to be. */
	MW_TRY(mw_shared_memory_fill(memory, 0, geometry->scratch));
	MW_TRY(mw_shared_memory_fill(memory, geometry->stacks, geometry->tables_end - geometry->stacks));
	if (!jump_memory_fill_rings(process, 0, process->recorder.first_rings))
		return mw_error_create(MW_ERROR_SYSTEM, 0,
				       "there is no memory for the rings that process %d records in", process->pid);
	jump_shared_format(&process->recorder.shared, process->recorder.first_rings);
	jump_script_publish(process);
	return NULL;
}

static bool within(mw_addr a, mw_addr b, uint64_t reach)
{
	return (a > b ? a - b : b - a) < reach;
}

/* Write a patch's trampoline into an area that can hold and reach it. */
static bool place(struct jump_process *process, struct jump_patch *patch)
{
	const struct mw_arch *arch = process->survey.arch;
	struct mw_trampoline_frame frame;

	if (!patch->entry)
		patch->entry = jump_entry_of(process, patch);
	frame = jump_frame_of(process, patch);
	MW_EACH_MUTABLE(trampolines, process->recorder.trampolines, process->recorder.trampolines_count) {
		mw_addr dest = trampolines->start + trampolines->used;

		if (trampolines->used + MW_TRAMPOLINE_SIZE > trampolines->size ||
		    !within(dest, patch->detour.at, arch->trampoline_reach) ||
		    !mw_error_none(arch->trampoline(&patch->detour, &frame, dest, &patch->trampoline)))
			continue;
		patch->trampoline_at = dest;
		trampolines->used += MW_TRAMPOLINE_SIZE;
		return true;
	}
	return false;
}

static struct mw_error *find_room_near(const struct jump_process *process, const struct mw_inject *inject,
				       const struct jump_patch *patch, uint64_t size, mw_addr *out)
{
	uint64_t reach = process->survey.arch->trampoline_reach;

	MW_TRY(find_gap(inject, patch->addr, patch->addr + MW_DETOUR_MAX, reach - reach / 4, size, out));
	if (*out)
		return NULL;
	return MW_REFUSE("--engine trap needs none", "there is no free memory in a jump's reach of %s of process %d",
			 patch->function, process->pid);
}

/* Room for trampolines near `patch`, and for those of its neighbours that have none yet. */
static struct mw_error *map_trampolines(struct jump_process *process, const struct mw_inject *inject,
					const struct jump_patch *patch)
{
	uint64_t reach = process->survey.arch->trampoline_reach;
	size_t neighbours = 1;
	struct jump_trampolines *trampolines;
	uint64_t size;
	mw_addr at = 0;

	MW_EACH(other, process->patches.items, process->patches.count)
		neighbours += !other->trampoline_at && within(other->addr, patch->addr, reach / 4);
	size = round_up(neighbours * MW_TRAMPOLINE_SIZE);
	if (size < TRAMPOLINES_LEAST)
		size = TRAMPOLINES_LEAST;
	trampolines = realloc(process->recorder.trampolines,
			      (process->recorder.trampolines_count + 1) * sizeof(*trampolines));
	if (!trampolines)
		return mw_error_nomem();
	process->recorder.trampolines = trampolines;
	MW_TRY(find_room_near(process, inject, patch, size, &at));
	MW_TRY(mw_inject_map(inject, at, size, PROT_READ | PROT_WRITE, &at));
	trampolines[process->recorder.trampolines_count++] = (struct jump_trampolines){.start = at, .size = size};
	return note_owned(process, MW_RING_OWN_TRAMPOLINES, at, size);
}

/* Trampolines for all planned patches that have none. */
static struct mw_error *make_trampolines(struct jump_process *process, const struct mw_inject *inject)
{
	size_t first_new = process->recorder.trampolines_count;

	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count) {
		bool sealed;

		if (patch->trampoline_at || patch->gone || patch->detour.why)
			continue;
		if (!place(process, patch)) {
			MW_TRY(mw_fault("attach.trampolines"));
			MW_TRY(map_trampolines(process, inject, patch));
			if (!place(process, patch))
				return mw_error_hint(
					mw_error_create(MW_ERROR_UNSUPPORTED, 0,
							"what the first instructions of %s in process %d refer to is "
							"out of reach for a copy of them",
							patch->function, process->pid),
					"--engine trap can watch process %d", process->pid);
		}
		sealed = jump_trampolines_at(&process->recorder, patch->trampoline_at) <
			 process->recorder.trampolines + first_new;
		MW_TRY((sealed ? mw_remote_poke : mw_remote_write)(inject->tid, patch->trampoline_at,
								   patch->trampoline.bytes, patch->trampoline.size));
		context_hook(process, patch);
	}
	for (size_t i = first_new; i < process->recorder.trampolines_count; i++)
		MW_TRY(mw_inject_protect(inject, process->recorder.trampolines[i].start,
					 process->recorder.trampolines[i].size, PROT_READ | PROT_EXEC));
	return NULL;
}

/* The image and its context; the process's threads may run, nothing jumps there yet. */
static struct mw_error *write_image(struct jump_process *process, const struct mw_inject *inject)
{
	const struct mw_stub_header *header = mw_stub_header();
	MW_FREE uint8_t *image = malloc(mw_stub_image_size);

	if (!image)
		return mw_error_nomem();
	memcpy(image, mw_stub_image, mw_stub_image_size);
	memcpy(image + header->context, &process->recorder.context, sizeof(process->recorder.context));
	MW_TRY(mw_remote_write(inject->tid, process->recorder.image, image, mw_stub_image_size));
	return mw_inject_protect(inject, process->recorder.image, process->recorder.image_size, PROT_READ | PROT_EXEC);
}

struct mw_error *jump_memory_put_in(struct jump_process *process, const struct mw_inject *inject,
				    const struct mw_maps *maps, uint64_t rows_bytes)
{
	MW_TRY(map_all(process, inject, maps, rows_bytes));
	MW_TRY(context_fill(process, maps));
	MW_TRY(make_trampolines(process, inject));
	return write_image(process, inject);
}

struct mw_error *jump_memory_extend(struct jump_process *process, const struct mw_inject *inject)
{
	MW_TRY(make_trampolines(process, inject));
	fill_code(process);
	return mw_remote_poke(inject->tid, process->recorder.image + mw_stub_header()->context,
			      &process->recorder.context, sizeof(process->recorder.context));
}

/* Want of memory gives the reserve back (base/reserve.h): then there is some. */
static struct mw_error *unmap(const struct mw_inject *inject, mw_addr addr, uint64_t size)
{
	for (unsigned i = 0;; i++) {
		struct mw_error *err = mw_inject_unmap(inject, addr, size);

		if (!err || i >= UNMAP_ATTEMPTS || mw_error_kind(err) != MW_ERROR_MEMORY)
			return err;
		mw_error_destroy(err);
	}
}

struct mw_error *jump_memory_unmap(struct jump_process *process, const struct mw_inject *inject)
{
	struct mw_error *err = NULL;

	if (process->recorder.shared.base)
		__atomic_store_n(&jump_control(&process->recorder.shared)->leaving, 1, __ATOMIC_RELEASE);
	MW_EACH(trampolines, process->recorder.trampolines, process->recorder.trampolines_count)
		err = mw_error_first(err, unmap(inject, trampolines->start, trampolines->size));
	/* What tells the next memwatch of the rest goes after it: each piece only where all before are gone. */
	if (!err && process->recorder.image)
		err = unmap(inject, process->recorder.image, process->recorder.image_size);
	if (!err && process->recorder.guard)
		err = unmap(inject, process->recorder.guard, JUMP_PAGE);
	if (!err && process->recorder.memory.there)
		err = unmap(inject, process->recorder.memory.there, process->recorder.memory.size);
	/* Where it all was stays known: forked children have it at the same places. */
	process->recorder.mapped = err != NULL;
	return err;
}

bool jump_memory_ours(const struct jump_process *process, mw_addr addr)
{
	return jump_trampolines_at(&process->recorder, addr) ||
	       (process->recorder.image && addr - process->recorder.image < process->recorder.image_size);
}

void jump_memory_close(struct jump_process *process)
{
	if (!process->recorder.shared.base)
		return;
	jump_stats_take(process);
	heart_remove(process->engine, jump_control(&process->recorder.shared));
	process->recorder.shared.base = NULL;
	mw_shared_memory_close(&process->recorder.memory);
}
