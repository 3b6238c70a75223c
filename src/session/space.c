// SPDX-License-Identifier: MIT
/* space.c: looking at an address space (space.h). */
#include "session/space.h"

#include "alloc/glibc_arenas.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"
#include "proc/maps.h"
#include "proc/peek.h"
#include "proc/program.h"
#include "proc/regions.h"
#include "proc/status.h"
#include "view/heaps.h"

#include <stdlib.h>
#include <string.h>

/* --- glibc's arenas in a process whose regions are known ---------------------------------------------------------- */

struct spans {
	struct mw_glibc_span *items;
	size_t count, capacity;
};

/* What there is to read. */
struct memory {
	struct mw_touched touched;
	struct spans data, anonymous;
};

static void memory_deinit(struct memory *memory)
{
	mw_touched_deinit(&memory->touched);
	free(memory->data.items);
	free(memory->anonymous.items);
}

/* What of that kind is writable; with `of`, of files whose path it says yes to. */
static struct mw_error *add_writable(struct spans *spans, const struct mw_regions *regions, enum mw_region_kind kind,
				     bool (*of)(const char *path, const char *exe), const char *exe)
{
	for (size_t i = 0; i < regions->count; i++) {
		const struct mw_region *region = &regions->items[i];

		if (region->kind != kind || !region->write || (of && !of(region->path, exe)))
			continue;
		if (!MW_VECTOR_ROOM(spans->items, spans->count, spans->capacity))
			return mw_error_nomem();
		spans->items[spans->count++] = (struct mw_glibc_span){region->start, region->end};
	}
	return NULL;
}

static bool is_libc(const char *path, const char *exe)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	(void)exe;
	return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0;
}

static bool is_exe(const char *path, const char *exe)
{
	return strcmp(path, exe) == 0;
}

/* The writable data of libc, or of a program that it is linked into. */
static struct mw_error *find_data(pid_t tid, const struct mw_regions *regions, struct spans *data)
{
	MW_FREE char *exe = NULL;

	MW_TRY(add_writable(data, regions, MW_REGION_FILE_DATA, is_libc, NULL));
	if (data->count)
		return NULL;
	mw_error_destroy(mw_exe_read(tid, &exe));
	return exe ? add_writable(data, regions, MW_REGION_FILE_DATA, is_exe, exe) : NULL;
}

/* The kernel may tell it in several mappings. */
static struct mw_glibc_span heap_of(const struct mw_regions *regions)
{
	struct mw_glibc_span heap = {0};

	for (size_t i = 0; i < regions->count; i++) {
		if (regions->items[i].kind != MW_REGION_HEAP)
			continue;
		if (!heap.end)
			heap.start = regions->items[i].start;
		heap.end = regions->items[i].end;
	}
	return heap;
}

/* A file's data has its file's bytes where it was not touched. */
static size_t read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct memory *memory = context;

	for (size_t i = 0; i < memory->data.count; i++)
		if (addr >= memory->data.items[i].start && addr < memory->data.items[i].end)
			return mw_peek_some(memory->touched.tid, addr, out, size);
	return mw_touched_read(&memory->touched, addr, out, size);
}

/* Find and walk them, by way of a thread that lives. Errors: MEMORY. To be deinit'ed in any case. */
static struct mw_error *find_arenas(pid_t tid, const struct mw_regions *regions, uint64_t deadline_ns,
				    struct mw_glibc_arenas *out)
{
	MW_CLEANUP(memory_deinit) struct memory memory = {0};
	struct mw_glibc_process process = {.read = read_memory, .context = &memory, .heap = heap_of(regions)};

	mw_touched_init(&memory.touched, tid);
	MW_TRY(find_data(tid, regions, &memory.data));
	MW_TRY(add_writable(&memory.anonymous, regions, MW_REGION_ANONYMOUS, NULL, NULL));
	process.data = memory.data.items;
	process.data_count = memory.data.count;
	process.anonymous = memory.anonymous.items;
	process.anonymous_count = memory.anonymous.count;
	MW_TRY(mw_glibc_arenas_find(&process, out));
	return mw_glibc_arenas_walk(&process, deadline_ns, out);
}

/* --- where regions are cut ---------------------------------------------------------------------------------------- */

#define MAX_POINTS ((size_t)1 << 20) /* beyond, parts of regions are unknown */

struct points {
	mw_addr *items;
	size_t count, capacity;
	bool failed; /* there was no memory */
};

static void points_deinit(struct points *points)
{
	free(points->items);
}

static void add_points(struct points *points, mw_addr start, mw_addr end)
{
	if (points->failed || points->count >= MAX_POINTS)
		return;
	points->failed = !MW_VECTOR_ROOM(points->items, points->count + 1, points->capacity);
	if (points->failed)
		return;
	points->items[points->count++] = start;
	points->items[points->count++] = end;
}

static void add_ranges(struct points *points, const struct mw_space_ranges *ranges)
{
	for (size_t i = 0; ranges && i < ranges->count; i++)
		add_points(points, ranges->items[i].start, ranges->items[i].end);
}

static int compare_points(const void *left, const void *right)
{
	mw_addr a = *(const mw_addr *)left, b = *(const mw_addr *)right;

	return (a > b) - (a < b);
}

static struct mw_error *cut_at(struct mw_regions *regions, struct points *points)
{
	MW_FREE struct mw_region_mark *marks = NULL;
	size_t count = 0;

	if (points->failed)
		return mw_error_nomem();
	if (points->count < 1)
		return NULL;
	marks = calloc(points->count, sizeof(*marks));
	if (!marks)
		return mw_error_nomem();
	qsort(points->items, points->count, sizeof(*points->items), compare_points);
	for (size_t i = 0; i < points->count; i++) {
		mw_addr end = i + 1 < points->count ? points->items[i + 1] : UINT64_MAX;

		if (end > points->items[i])
			marks[count++] = (struct mw_region_mark){points->items[i], end, MW_REGION_KIND_COUNT, NULL};
	}
	return mw_regions_mark(regions, marks, count);
}

/* Make regions end where vm blocks do, and what was mapped earlier. */
static struct mw_error *cut(struct mw_regions *regions, const struct mw_space_known *known)
{
	MW_CLEANUP(points_deinit) struct points points = {0};

	add_ranges(&points, known->blocks);
	for (size_t i = 0; known->earlier && i < known->earlier->moment.count; i++)
		add_points(&points, known->earlier->moment.mappings[i].start, known->earlier->moment.mappings[i].end);
	return cut_at(regions, &points);
}

/* --- marks of a kind ---------------------------------------------------------------------------------------------- */

/* What is memwatch's own is not the process's. Where nothing is said of it, it stays as what it is. */
static struct mw_error *leave_out_own(struct mw_regions *regions, const struct mw_space_known *known)
{
	MW_FREE struct mw_region_mark *marks = NULL;
	size_t kept = 0;

	if (!known->own_count)
		return NULL;
	marks = calloc(known->own_count, sizeof(*marks));
	if (!marks)
		return mw_error_nomem();
	for (size_t i = 0; i < known->own_count; i++)
		marks[i] = (struct mw_region_mark){known->own[i].start, known->own[i].end, MW_REGION_OWN, NULL};
	MW_TRY(mw_regions_mark(regions, marks, known->own_count));
	for (size_t i = 0; i < regions->count; i++) {
		if (regions->items[i].kind != MW_REGION_OWN)
			regions->items[kept++] = regions->items[i];
		else
			free(regions->items[i].path);
	}
	regions->count = kept;
	return NULL;
}

static struct mw_error *mark_arenas(struct mw_regions *regions, const struct mw_glibc_arenas *arenas)
{
	MW_FREE struct mw_region_mark *marks = calloc(arenas->heap_count + 1, sizeof(*marks));
	MW_FREE char(*paths)[40] = calloc(arenas->heap_count + 1, sizeof(*paths));

	if (!marks || !paths)
		return mw_error_nomem();
	for (size_t i = 0; i < arenas->heap_count; i++) {
		mw_addr start = arenas->heaps[i].start;

		mw_heaps_arena_path(arenas->heaps[i].arena, paths[i]);
		marks[i] = (struct mw_region_mark){start, start + MW_GLIBC_HEAP_SIZE, MW_REGION_ARENA, paths[i]};
	}
	return mw_regions_mark(regions, marks, arenas->heap_count);
}

/* --- snapshots ---------------------------------------------------------------------------------------------------- */

static struct mw_error *emit_mappings(struct mw_space_snapshot *snapshot)
{
	const struct mw_regions *regions = &snapshot->regions;
	struct mw_stored_mapping *mappings = calloc(regions->count + 1, sizeof(*mappings));

	if (!mappings)
		return mw_error_nomem();
	for (size_t i = 0; i < regions->count; i++)
		mappings[i] = (struct mw_stored_mapping){
			.start = regions->items[i].start,
			.end = regions->items[i].end,
			.kind = regions->items[i].kind,
			.resident = regions->items[i].resident,
			.path = regions->items[i].path,
			.exec = regions->items[i].exec,
			.accessible = regions->items[i].read || regions->items[i].write || regions->items[i].exec,
		};
	free((void *)snapshot->moment.mappings);
	snapshot->moment.mappings = mappings;
	snapshot->moment.count = regions->count;
	return NULL;
}

/* What was read of a process that ended meanwhile is less than it had. */
static struct mw_error *check_alive(pid_t tid)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(tid, &maps));
	return maps.count ? NULL : mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", (int)tid);
}

static struct mw_error *look(pid_t tid, const struct mw_space_known *known, struct mw_space_snapshot *snapshot)
{
	MW_CLEANUP(mw_glibc_arenas_deinit) struct mw_glibc_arenas arenas = {0};

	MW_TRY(mw_regions_read(tid, &snapshot->regions));
	MW_TRY(leave_out_own(&snapshot->regions, known));
	MW_TRY(find_arenas(tid, &snapshot->regions, mw_clock_ns() + known->walk_ns, &arenas));
	MW_TRY(mark_arenas(&snapshot->regions, &arenas));
	snapshot->moment.arena_used = arenas.total.used;
	snapshot->moment.arena_free = arenas.total.free;
	snapshot->moment.arena_size = arenas.total.size;
	MW_TRY(cut(&snapshot->regions, known));
	mw_regions_measure(&snapshot->regions, tid);
	MW_TRY(check_alive(tid));
	return emit_mappings(snapshot);
}

struct mw_error *mw_space_take(pid_t tid, const struct mw_space_known *known, struct mw_space_snapshot *out)
{
	struct mw_space_snapshot snapshot = {0};
	struct mw_error *err = look(tid, known, &snapshot);

	if (err) {
		mw_space_deinit(&snapshot);
		return err;
	}
	mw_space_deinit(out);
	*out = snapshot;
	out->taken = true;
	return NULL;
}

void mw_space_deinit(struct mw_space_snapshot *snapshot)
{
	if (!snapshot)
		return;
	mw_regions_deinit(&snapshot->regions);
	free((void *)snapshot->moment.mappings);
	*snapshot = (struct mw_space_snapshot){0};
}

static bool is_in(const struct mw_space_ranges *ranges, mw_addr addr)
{
	size_t i = ranges ? mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items),
					    offsetof(struct mw_space_range, end), addr)
			  : 0;

	return ranges && i < ranges->count && ranges->items[i].start <= addr;
}

/* Cut regions where mappings end now, and drop those that are in none, or in `gone`. */
static struct mw_error *keep_mapped(struct mw_regions *regions, const struct mw_maps *maps,
				    const struct mw_space_ranges *gone)
{
	MW_CLEANUP(points_deinit) struct points points = {0};
	size_t kept = 0;

	for (size_t i = 0; i < maps->count; i++)
		add_points(&points, maps->items[i].start, maps->items[i].end);
	add_ranges(&points, gone);
	MW_TRY(cut_at(regions, &points));
	for (size_t i = 0; i < regions->count; i++) {
		struct mw_region *region = &regions->items[i];

		if (mw_maps_find(maps, region->start) && !is_in(gone, region->start))
			regions->items[kept++] = *region;
		else
			free(region->path);
	}
	regions->count = kept;
	return NULL;
}

struct mw_error *mw_space_confirm(struct mw_space_snapshot *snapshot, pid_t tid, const struct mw_space_ranges *gone)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(tid, &maps));
	MW_TRY(keep_mapped(&snapshot->regions, &maps, gone));
	/* What was cut has to be measured again, and so is the rest: of one moment. */
	mw_regions_measure(&snapshot->regions, tid);
	return emit_mappings(snapshot);
}

void mw_space_sample(bool *dear, pid_t tid, struct mw_stored_sample *sample)
{
	uint64_t deadline = mw_clock_ns() + MW_SPACE_SAMPLE_NS;
	MW_CLEANUP(mw_glibc_arenas_deinit) struct mw_glibc_arenas arenas = {0};
	MW_CLEANUP(mw_regions_deinit) struct mw_regions regions = {0};

	sample->arena_used = sample->arena_free = sample->arena_size = MW_SIZE_UNKNOWN;
	if (*dear)
		return;
	if (mw_error_none(mw_regions_read(tid, &regions)) &&
	    mw_error_none(find_arenas(tid, &regions, deadline, &arenas))) {
		sample->arena_used = arenas.total.used;
		sample->arena_free = arenas.total.free;
		sample->arena_size = arenas.total.size;
	}
	*dear = mw_clock_ns() > deadline;
}
