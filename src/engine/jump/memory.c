// SPDX-License-Identifier: MIT
/*
 * memory.c: memory of ours in the target (jump.h).
 *
 *      shared memory   memfd, read-write, shared with memwatch      anywhere
 *      guard           one page, read-write, wiped by a fork        anywhere
 *      image           the recorder's code, its context and the     anywhere
 *                      table of readable memory, read-execute
 *      trampolines            one area a neighbourhood, read-execute       within a jump's reach of what it serves
 */
#include "engine/jump/recorder.h"

#include "base/fault.h"
#include "base/vector.h"
#include "tracee/inject_error.h"
#include "tracee/remote.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define UNMAP_ATTEMPTS    3
#define TRAMPOLINES_LEAST (2 * JUMP_PAGE)
#define SPARE_RINGS       48                   /* beside one for each thread that there is */
#define CGROUP_SPARE      (UINT64_C(32) << 20) /* what a cgroup must have left beside what we take */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

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
		struct mw_error *err;

		if (room >= needed + CGROUP_SPARE)
			continue;
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				      "the cgroup of %s has %" PRIu64
				      " MiB left, and the recorder in process %d needs %" PRIu64 " MiB",
				      i ? "memwatch" : "the process", room >> 20, process->pid, needed >> 20);
		return mw_error_hint(err, "--engine trap needs little there; or raise the cgroup's memory.max");
	}
	return NULL;
}

/* All that the target may touch before memwatch next looks, so that it never has to have pages of its own. */
static struct mw_error *fill(struct jump_process *process)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;

	MW_TRY(mw_shared_memory_fill(&process->recorder.memory, 0, geometry->rings));
	if (!jump_memory_fill_rings(process, 0, process->recorder.first_rings))
		return mw_error_create(MW_ERROR_SYSTEM, 0,
				       "there is no memory for the rings that process %d records in", process->pid);
	return NULL;
}

bool jump_memory_fill_rings(struct jump_process *process, uint32_t first, uint32_t count)
{
	const struct jump_geometry *geometry = &process->recorder.shared.geometry;
	uint64_t ring = (uint64_t)geometry->ring_units * MW_RING_UNIT;
	struct mw_error *err;

	if (first > geometry->ring_count)
		return false;
	if (count > geometry->ring_count - first)
		count = geometry->ring_count - first;
	err = mw_shared_memory_fill(&process->recorder.memory, geometry->rings + first * ring, count * ring);
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	process->recorder.filled_rings = first + count;
	return true;
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
	struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(inject->tid, &maps));
	if (!mw_inject_find_gap(&maps, low, high, reach, size, out))
		*out = 0;
	mw_maps_deinit(&maps);
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
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	if (process->recorder.own_memory < 0)
		process->recorder.own_memory = open(path, O_RDWR | O_CLOEXEC);
}

struct mw_error *jump_memory_map(struct jump_process *process, const struct mw_inject *inject,
				 const struct mw_maps *maps, uint64_t rows_bytes)
{
	struct jump_geometry geometry;
	uint64_t ring, size;
	mw_addr hint;

	jump_geometry_plan(&geometry, process->quiesce.count, process->engine->options.depth, rows_bytes);
	ring = (uint64_t)geometry.ring_units * MW_RING_UNIT;
	process->recorder.first_rings = (uint32_t)process->quiesce.count + SPARE_RINGS;
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
	MW_TRY(jump_heart_add(process->engine, jump_control(&process->recorder.shared)));
	MW_TRY(mw_fault("attach.guard"));
	MW_TRY(map_guard(process, inject));
	MW_TRY(mw_fault("attach.image"));
	size = round_up(mw_stub_image_size + maps->count * sizeof(struct mw_stub_range));
	MW_TRY(map_anywhere(inject, size, &process->recorder.image));
	process->recorder.image_size = size;
	return note_owned(process, MW_RING_OWN_IMAGE, process->recorder.image, size);
}

/* Memory is there, the process runs on: what memwatch writes into it takes its time. */
struct mw_error *jump_memory_prepare(struct jump_process *process)
{
	MW_TRY(fill(process));
	jump_shared_format(&process->recorder.shared, process->recorder.first_rings);
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
	const struct mw_stub_header *header = mw_stub_header();
	const struct mw_trampoline_frame frame = {
		.entry = process->recorder.image + (patch->role == MW_STUB_UNWINDER ? header->find_fde : header->enter),
		.hook = patch->number,
		.frame_size = MW_STUB_CALL_SIZE};

	for (size_t i = 0; i < process->recorder.trampolines_count; i++) {
		struct jump_trampolines *trampolines = &process->recorder.trampolines[i];
		mw_addr dest = trampolines->start + trampolines->used;
		struct mw_error *err;

		if (trampolines->used + MW_TRAMPOLINE_SIZE > trampolines->size ||
		    !within(dest, patch->detour.at, arch->trampoline_reach))
			continue;
		err = arch->trampoline(&patch->detour, &frame, dest, &patch->trampoline);
		if (err) {
			mw_error_destroy(err);
			continue;
		}
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
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					     "there is no free memory in a jump's reach of %s of process %d",
					     patch->function, process->pid),
			     "--engine trap needs none");
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

	for (size_t i = 0; i < process->patches.count; i++)
		neighbours += !process->patches.items[i].trampoline_at &&
			      within(process->patches.items[i].addr, patch->addr, reach / 4);
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

static struct mw_error *write_trampoline(pid_t tid, const struct jump_patch *patch, bool sealed)
{
	if (sealed)
		return mw_remote_poke(tid, patch->trampoline_at, patch->trampoline.bytes, patch->trampoline.size);
	return mw_remote_write(tid, patch->trampoline_at, patch->trampoline.bytes, patch->trampoline.size);
}

struct mw_error *jump_memory_trampolines(struct jump_process *process, const struct mw_inject *inject)
{
	size_t first_new = process->recorder.trampolines_count;

	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];
		bool sealed;

		if (patch->trampoline_at || patch->gone || patch->detour.why)
			continue;
		if (!place(process, patch)) {
			MW_TRY(mw_fault("attach.pads"));
			MW_TRY(map_trampolines(process, inject, patch));
			if (!place(process, patch))
				return mw_error_hint(
					mw_error_create(MW_ERROR_UNSUPPORTED, 0,
							"what the first instructions of %s in process %d refer to is "
							"out of reach for a copy of them",
							patch->function, process->pid),
					"--engine trap can watch process %d", process->pid);
		}
		sealed = true;
		for (size_t j = first_new; j < process->recorder.trampolines_count; j++)
			sealed &= patch->trampoline_at - process->recorder.trampolines[j].start >=
				  process->recorder.trampolines[j].size;
		MW_TRY(write_trampoline(inject->tid, patch, sealed));
		jump_context_hook(process, patch);
	}
	for (size_t i = first_new; i < process->recorder.trampolines_count; i++)
		MW_TRY(mw_inject_protect(inject, process->recorder.trampolines[i].start,
					 process->recorder.trampolines[i].size, PROT_READ | PROT_EXEC));
	return NULL;
}

struct mw_error *jump_memory_write_image(struct jump_process *process, const struct mw_inject *inject)
{
	const struct mw_stub_header *header = mw_stub_header();
	uint8_t *image = malloc(mw_stub_image_size);
	struct mw_error *err;

	if (!image)
		return mw_error_nomem();
	memcpy(image, mw_stub_image, mw_stub_image_size);
	memcpy(image + header->context, &process->recorder.context, sizeof(process->recorder.context));
	err = mw_remote_write(inject->tid, process->recorder.image, image, mw_stub_image_size);
	free(image);
	if (err)
		return err;
	return mw_inject_protect(inject, process->recorder.image, process->recorder.image_size, PROT_READ | PROT_EXEC);
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
	for (size_t i = 0; i < process->recorder.trampolines_count; i++)
		err = mw_error_first(err, unmap(inject, process->recorder.trampolines[i].start,
						process->recorder.trampolines[i].size));
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

bool jump_memory_stands(const struct jump_process *process, pid_t tid)
{
	struct mw_maps maps = {0};
	struct mw_error *err = mw_maps_read(tid, &maps);
	bool found = false;

	for (size_t i = 0; !err && i < maps.count && !found; i++) {
		const struct mw_mapping *mapping = &maps.items[i];

		found = mapping->start == process->recorder.memory.there &&
			mapping->inode == process->recorder.memory.inode &&
			makedev(mapping->major, mapping->minor) == process->recorder.memory.device;
	}
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	return found;
}

bool jump_memory_ours(const struct jump_process *process, mw_addr addr)
{
	for (size_t i = 0; i < process->recorder.trampolines_count; i++)
		if (addr - process->recorder.trampolines[i].start < process->recorder.trampolines[i].size)
			return true;
	return process->recorder.image && addr - process->recorder.image < process->recorder.image_size;
}

void jump_memory_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high)
{
	*low = process->recorder.image;
	*high = process->recorder.image + process->recorder.image_size;
	for (size_t i = 0; i < process->recorder.trampolines_count; i++) {
		const struct jump_trampolines *trampolines = &process->recorder.trampolines[i];

		*low = trampolines->start < *low ? trampolines->start : *low;
		*high = trampolines->start + trampolines->size > *high ? trampolines->start + trampolines->size : *high;
	}
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

void jump_memory_measure(struct jump_process *process, pid_t tid, uint64_t *resident, uint64_t *mapped)
{
	char path[64];
	int fd;

	*resident = *mapped = 0;
	if (!process->recorder.mapped)
		return;
	*mapped = process->recorder.memory.size + JUMP_PAGE + process->recorder.image_size;
	for (size_t i = 0; i < process->recorder.trampolines_count; i++)
		*mapped += process->recorder.trampolines[i].size;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	*resident = present(fd, process->recorder.memory.there, process->recorder.memory.size) +
		    present(fd, process->recorder.guard, JUMP_PAGE) +
		    present(fd, process->recorder.image, process->recorder.image_size);
	for (size_t i = 0; i < process->recorder.trampolines_count; i++)
		*resident += present(fd, process->recorder.trampolines[i].start, process->recorder.trampolines[i].size);
	close(fd);
}

static void add_range(struct mw_engine_range *out, size_t capacity, size_t *count, mw_addr start, uint64_t size)
{
	if (!start || *count == capacity)
		return;
	out[(*count)++] = (struct mw_engine_range){start, start + size};
}

size_t jump_memory_ranges(const struct jump_process *process, struct mw_engine_range *out, size_t capacity)
{
	size_t count = 0;

	add_range(out, capacity, &count, process->recorder.memory.there, process->recorder.memory.size);
	add_range(out, capacity, &count, process->recorder.guard, JUMP_PAGE);
	add_range(out, capacity, &count, process->recorder.image, process->recorder.image_size);
	for (size_t i = 0; i < process->recorder.trampolines_count; i++)
		add_range(out, capacity, &count, process->recorder.trampolines[i].start,
			  process->recorder.trampolines[i].size);
	return count;
}
