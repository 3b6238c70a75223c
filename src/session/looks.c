// SPDX-License-Identifier: MIT
/*
 * looks.c: what is read of a process's memory while it is watched (recorder.h): its samples, and looks at its address
 * space: its regions, what of them is resident, and glibc's arenas. The process runs meanwhile, and is not stopped for
 * it.
 */
#include "session/recorder.h"

#include "alloc/families.h"
#include "alloc/glibc_arenas.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/vector.h"
#include "proc/file.h"
#include "proc/maps.h"
#include "proc/peek.h"
#include "proc/root.h"
#include "proc/status.h"
#include "script/spaces.h"
#include "symbol/distribution.h"
#include "view/heaps.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
	const char *name = basename(path);

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
			marks[count++] = (struct mw_region_mark){
				.start = points->items[i], .end = end, .kind = MW_REGION_KIND_COUNT};
	}
	return mw_regions_mark(regions, marks, count);
}

/* Make regions end where vm blocks do, and what was mapped earlier. */
static struct mw_error *cut(struct mw_regions *regions, const struct mw_space_ranges *blocks,
			    const struct mw_space_moment *earlier)
{
	MW_CLEANUP(points_deinit) struct points points = {0};

	add_ranges(&points, blocks);
	for (size_t i = 0; i < earlier->count; i++)
		add_points(&points, earlier->mappings[i].start, earlier->mappings[i].end);
	return cut_at(regions, &points);
}

/* --- marks of a kind ---------------------------------------------------------------------------------------------- */

/* What is memwatch's own is not the process's. Where nothing is said of it, it stays as what it is. */
static struct mw_error *leave_out_own(struct mw_regions *regions, const struct mw_recorder_own *own)
{
	MW_FREE struct mw_region_mark *marks = NULL;
	size_t kept = 0;

	if (!own || !own->range_count)
		return NULL;
	marks = calloc(own->range_count, sizeof(*marks));
	if (!marks)
		return mw_error_nomem();
	for (size_t i = 0; i < own->range_count; i++)
		marks[i] = (struct mw_region_mark){
			.start = own->ranges[i].start, .end = own->ranges[i].end, .kind = MW_REGION_OWN};
	MW_TRY(mw_regions_mark(regions, marks, own->range_count));
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
		marks[i] = (struct mw_region_mark){
			.start = start, .end = start + MW_GLIBC_HEAP_SIZE, .kind = MW_REGION_ARENA, .path = paths[i]};
	}
	return mw_regions_mark(regions, marks, arenas->heap_count);
}

/* What runtimes have reserved memory for. Where that can't be read, it stays what it is. */
static struct mw_error *mark_spaces(pid_t tid, struct mw_regions *regions)
{
	MW_CLEANUP(mw_script_spaces_deinit) struct mw_script_spaces spaces = {0};
	MW_FREE struct mw_region_mark *marks = NULL;

	MW_TRY(mw_error_if_memory(mw_script_spaces_of(tid, &spaces)));
	if (!spaces.count)
		return NULL;
	marks = calloc(spaces.count, sizeof(*marks));
	if (!marks)
		return mw_error_nomem();
	for (size_t i = 0; i < spaces.count; i++) {
		const struct mw_script_space *space = &spaces.items[i];

		marks[i] = (struct mw_region_mark){.start = space->low, .end = space->high, .kind = MW_REGION_STACK};
		if (space->is_stack)
			continue;
		marks[i].kind = MW_REGION_ANONYMOUS;
		marks[i].path = space->name;
		marks[i].committed = space->committed;
		marks[i].used = space->used;
	}
	return mw_regions_mark(regions, marks, spaces.count);
}

/* --- snapshots ---------------------------------------------------------------------------------------------------- */

/*
 * Each window is as long as was asked for. The process is looked at after that, while its hooks still stand, and what
 * is mapped meanwhile is noted: it is not of the window, though the look may have seen it.
 */
#define WALK_NS  UINT64_C(300000000) /* for glibc's arenas, at the window's start and end … */
#define HASTE_NS UINT64_C(100000000) /* … and of a process that waits for it … */
#define QUICK_NS UINT64_C(2000000)   /* … and with a sample */

/* A look at a process's address space. */
struct look {
	struct mw_recorder *recorder;
	pid_t tid;                         /* a thread that lives */
	const struct mw_recorder_own *own; /* memwatch's own, which is left out; NULL: there is none */
	uint64_t walk_ns;                  /* how long glibc's arenas may be walked; then their figures are unknown */
	struct mw_space_ranges blocks;     /* vm blocks: what is resident of each is asked */
	struct mw_space_snapshot seen;
};

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
			.committed = regions->items[i].committed,
			.used = regions->items[i].used,
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

static struct mw_error *look_at(const struct look *look, struct mw_space_snapshot *snapshot)
{
	pid_t tid = look->tid;
	MW_CLEANUP(mw_glibc_arenas_deinit) struct mw_glibc_arenas arenas = {0};

	MW_TRY(mw_regions_read(tid, &snapshot->regions));
	MW_TRY(leave_out_own(&snapshot->regions, look->own));
	MW_TRY(mark_spaces(tid, &snapshot->regions));
	MW_TRY(find_arenas(tid, &snapshot->regions, mw_clock_ns() + look->walk_ns, &arenas));
	MW_TRY(mark_arenas(&snapshot->regions, &arenas));
	snapshot->moment.arena_used = arenas.total.used;
	snapshot->moment.arena_free = arenas.total.free;
	snapshot->moment.arena_size = arenas.total.size;
	MW_TRY(cut(&snapshot->regions, &look->blocks, &look->recorder->start.moment));
	mw_regions_measure(&snapshot->regions, tid);
	MW_TRY(check_alive(tid));
	return emit_mappings(snapshot);
}

/* Is it taken? Where not, *out is as it was: it matters to the report, not to the watching. */
static bool take(const struct look *look, struct mw_space_snapshot *out)
{
	struct mw_space_snapshot snapshot = {.taken = true};

	if (!mw_error_none(look_at(look, &snapshot))) {
		mw_space_deinit(&snapshot);
		return false;
	}
	mw_space_deinit(out);
	*out = snapshot;
	return true;
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

/*
 * Take out of a snapshot what is not mapped any more, and what is in the ranges `gone` (in order). For the window's end:
 * a look while the hooks still stand has nothing in it that came unseen after them, and what was given back since is not
 * to be taken for unattributed. memwatch's own goes as well. After an error the snapshot is as it was.
 */
static struct mw_error *keep_if_there(struct mw_space_snapshot *snapshot, pid_t tid, const struct mw_space_ranges *gone)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(tid, &maps));
	MW_TRY(keep_mapped(&snapshot->regions, &maps, gone));
	/* What was cut has to be measured again, and so is the rest: of one moment. */
	mw_regions_measure(&snapshot->regions, tid);
	return emit_mappings(snapshot);
}

/* --- looks at a window's start and end ----------------------------------------------------------------------------- */

#define MAX_BLOCKS 65536u

/* From here on what is mapped is noted. What was mapped until now may go, and its address be given out again. */
static void begin(struct mw_recorder *recorder, struct look *look)
{
	*look = (struct look){.recorder = recorder, .walk_ns = WALK_NS};
	mw_error_destroy(mw_space_ranges_add_blocks(&look->blocks, recorder->watched->track));
	/* Of blocks that touch each other it is to be known what is resident of each, where they are not too many. */
	if (look->blocks.count > MAX_BLOCKS)
		mw_space_ranges_join(&look->blocks);
	for (size_t i = 0; i < look->blocks.count; i++)
		mw_error_destroy(
			mw_space_ranges_add(&recorder->late, look->blocks.items[i].start, look->blocks.items[i].end));
	recorder->noting = true;
}

static void end(struct look *look)
{
	struct mw_recorder *recorder = look->recorder;

	/* One that has ended meanwhile was looked at when it did. */
	if (look->seen.taken && !recorder->ended) {
		mw_space_deinit(&recorder->end);
		recorder->end = look->seen;
		recorder->looked = true;
	} else {
		mw_space_deinit(&look->seen);
	}
	mw_space_ranges_deinit(&look->blocks);
}

/* The process ends, or seems to, and waits for this. */
static void look_last(struct mw_recorder *recorder, pid_t tid, const struct mw_recorder_own *own)
{
	struct look look;

	begin(recorder, &look);
	look.tid = tid;
	look.own = own;
	look.walk_ns = HASTE_NS;
	(void)take(&look, &recorder->end);
	mw_space_ranges_deinit(&look.blocks);
}

static struct mw_error *add_gone(void *context, mw_addr start, mw_addr end)
{
	return mw_space_ranges_add(context, start, end);
}

/* What was mapped after the window's end, or since the look began, and is neither of the window's start nor of its end.
 */
static struct mw_error *find_gone(struct mw_recorder *recorder, struct mw_space_ranges *gone)
{
	const struct mw_space_input input = {
		.start = recorder->start.taken ? &recorder->start.moment : NULL,
		.before = recorder->watched->metadata.before.items,
		.before_count = recorder->watched->metadata.before.count,
	};
	MW_CLEANUP(mw_space_ranges_deinit) struct mw_space_ranges known = {0};

	MW_TRY(mw_space_accounted(&input, recorder->watched->track, &known));
	mw_space_ranges_join(&recorder->late);
	for (size_t i = 0; i < recorder->late.count; i++)
		MW_TRY(mw_space_ranges_without(&known, recorder->late.items[i].start, recorder->late.items[i].end,
					       add_gone, gone));
	return NULL;
}

/* What was seen before and is not of the window is forgotten. */
void mw_recorder_close(struct mw_recorder *recorder)
{
	MW_CLEANUP(mw_space_ranges_deinit) struct mw_space_ranges gone = {0};

	if (recorder->end.taken && mw_error_none(find_gone(recorder, &gone)))
		mw_error_destroy(keep_if_there(&recorder->end, mw_live_thread(recorder->pid), &gone));
	recorder->closed = true;
}

/* --- samples ---------------------------------------------------------------------------------------------- */

#define NO_ARENAS .arena_used = MW_SIZE_UNKNOWN, .arena_free = MW_SIZE_UNKNOWN, .arena_size = MW_SIZE_UNKNOWN

static void look_at_children(struct mw_recorder *recorder)
{
	MW_FREE pid_t *pids = NULL;
	struct mw_recorder_child *children;
	size_t count = 0;

	if (!mw_error_none(mw_children_alive(recorder->pid, &pids, &count)))
		return;
	children = calloc(count + 1, sizeof(*children));
	if (!children)
		return;
	for (size_t i = 0; i < count; i++) {
		children[i].pid = pids[i];
		mw_comm_read(pids[i], pids[i], children[i].comm);
	}
	free(recorder->children);
	recorder->children = children;
	recorder->child_count = count;
	recorder->knows_children = true;
}

/* What the report says is missing in it, and what memory there is. It matters to the report, not to the watching. */
static void look_around(struct mw_recorder *recorder, pid_t tid)
{
	MW_CLOSE int root = mw_root_directory(tid);
	MW_FREE char *environment = NULL;
	char name[MW_DISTRIBUTION_NAME_MAX];
	size_t size = 0;

	mw_memory_limit_read(recorder->pid, &recorder->limit);
	look_at_children(recorder);
	if (mw_error_none(mw_proc_file_read(&environment, &size, "/proc/%d/environ", (int)tid)))
		recorder->visible = mw_runtimes_visible(environment, size);
	if (root < 0)
		return;
	recorder->distribution = mw_distribution_find(root, name)->id;
	recorder->own_root = !mw_root_is_own(root);
}

/* The one before it is good now, but where this one is of the same moment. */
static struct mw_error *take_sample(struct mw_recorder *recorder, const struct mw_stored_sample *sample)
{
	if (recorder->sample_count && recorder->newest.time_ns < sample->time_ns)
		MW_TRY(mw_emitter_sample(recorder->emitter, &recorder->newest));
	recorder->sample_count += !recorder->sample_count || recorder->newest.time_ns < sample->time_ns;
	recorder->newest = *sample;
	return NULL;
}

static void sample_totals(const struct mw_recorder *recorder, struct mw_stored_sample *sample)
{
	struct mw_track_totals totals;

	/* Where the tracker has begun anew since, what is older is of the window all the same. */
	mw_track_totals(recorder->watched->track, MW_KIND_HEAP, &totals);
	sample->heap_impacting = totals.impacting.bytes + totals.aofo.bytes;
	mw_track_totals(recorder->watched->track, MW_KIND_VM, &totals);
	sample->vm_impacting = totals.impacting.bytes + totals.aofo.bytes;
}

/* What is memwatch's own is not the process's. */
static uint64_t without(uint64_t bytes, uint64_t own)
{
	return bytes > own ? bytes - own : 0;
}

/* Where it takes long it is not done again. */
static void sample_arenas(struct mw_recorder *recorder, pid_t tid, struct mw_stored_sample *sample)
{
	uint64_t deadline = mw_clock_ns() + QUICK_NS;
	MW_CLEANUP(mw_glibc_arenas_deinit) struct mw_glibc_arenas arenas = {0};
	MW_CLEANUP(mw_regions_deinit) struct mw_regions regions = {0};

	if (mw_error_none(mw_regions_read(tid, &regions)) &&
	    mw_error_none(find_arenas(tid, &regions, deadline, &arenas))) {
		sample->arena_used = arenas.total.used;
		sample->arena_free = arenas.total.free;
		sample->arena_size = arenas.total.size;
	}
	recorder->dear_arenas = mw_clock_ns() > deadline;
}

void mw_recorder_sample(struct mw_recorder *recorder, pid_t tid, uint64_t time_ns, bool last,
			const struct mw_recorder_own *own)
{
	uint64_t at_ns = time_ns < recorder->end_ns ? time_ns : recorder->end_ns;
	struct mw_stored_sample sample = {.time_ns = at_ns, NO_ARENAS};
	/* smaps_rollup walks all page tables: too dear for once a second. */
	bool with_pss = last || recorder->sample_count == 0;

	/* The window is over, and others' go on. */
	if (recorder->closed || (time_ns > recorder->end_ns && !last))
		return;
	if (!mw_error_none(mw_memory_read(tid, with_pss, &sample.rss, &sample.pss, &sample.vsize)))
		return;
	/* Its memory has gone since it was looked at for the last time. */
	if (recorder->ended && sample.vsize == 0)
		return;
	if (own) {
		sample.rss = without(sample.rss, own->resident);
		sample.vsize = without(sample.vsize, own->mapped);
		/* The process has half of each page that it shares with memwatch. */
		if (sample.pss != MW_SIZE_UNKNOWN)
			sample.pss = without(sample.pss, own->resident / 2);
	}
	if (!recorder->identified)
		mw_recorder_identify(recorder);
	sample_totals(recorder, &sample);
	/* Those of the window's start and end are had by looks of their own. */
	if (time_ns && !last && !recorder->dear_arenas)
		sample_arenas(recorder, tid, &sample);
	/* After one that seemed the last, the process lived on; or several threads end it, and it is gone before it can
	 * be looked at once more: then what was seen first is good. */
	if (recorder->ended && !last && !recorder->looked)
		mw_space_deinit(&recorder->end);
	if (last && !recorder->looked)
		look_last(recorder, tid, own);
	if (last)
		look_around(recorder, tid);
	/* It matters to the report, not to the watching. */
	mw_error_destroy(take_sample(recorder, &sample));
	recorder->ended = last;
}

/* glibc's arenas as they were at that look. */
static void set_arenas(struct mw_stored_sample *sample, const struct mw_space_snapshot *snapshot)
{
	sample->arena_used = snapshot->taken ? snapshot->moment.arena_used : MW_SIZE_UNKNOWN;
	sample->arena_free = snapshot->taken ? snapshot->moment.arena_free : MW_SIZE_UNKNOWN;
	sample->arena_size = snapshot->taken ? snapshot->moment.arena_size : MW_SIZE_UNKNOWN;
}

void mw_recorder_look_first(struct mw_recorder *recorder)
{
	const struct look look = {.recorder = recorder, .tid = mw_live_thread(recorder->pid), .walk_ns = WALK_NS};

	mw_recorder_sample(recorder, look.tid, 0, false, NULL);
	mw_space_deinit(&recorder->start);
	if (take(&look, &recorder->start) && recorder->sample_count)
		set_arenas(&recorder->newest, &recorder->start);
}

/* One that seemed the process's last, before, is none of the window's end. */
static bool has_sample_at(const struct mw_recorder *recorder, uint64_t time_ns)
{
	return recorder->ended && recorder->sample_count && recorder->newest.time_ns >= time_ns;
}

struct mw_error *mw_recorder_finish(struct mw_recorder *recorder, const struct mw_window_info *window)
{
	/* A process that was killed has had no last moment to be read in, and has no memory now. One
	 * that still runs is read now: a little late, as the hooks have been lifted meanwhile. */
	if (!window->gone && !has_sample_at(recorder, window->length_ns))
		mw_recorder_sample(recorder, mw_live_thread(recorder->pid), window->length_ns, true, NULL);
	if (!recorder->ended) {
		struct mw_stored_sample gone = {NO_ARENAS};

		/* Of memory that an exec has replaced, what was read last is all there is. */
		if (window->ended == MW_END_EXEC && recorder->sample_count)
			gone = recorder->newest;
		gone.time_ns = window->length_ns;
		MW_TRY(take_sample(recorder, &gone));
		recorder->ended = true;
	}
	recorder->newest.time_ns = window->length_ns;
	sample_totals(recorder, &recorder->newest);
	/* The hooks have been lifted, all events are emitted. */
	if (!window->gone && !recorder->closed)
		mw_recorder_close(recorder);
	set_arenas(&recorder->newest, &recorder->end);
	return mw_emitter_sample(recorder->emitter, &recorder->newest);
}

/* --- looks at the windows' ends, while the engine serves the processes -------------------------------------------- */

#define TURN_NS UINT64_C(2000000) /* that the engine runs for, until it is asked whether all is looked at */

struct looks {
	struct look *items;
	size_t count;
	atomic_bool done;
};

/* The engine's thread may have gone to the idle class, and to a CPU where others run. */
static void leave_idle(void)
{
	const struct sched_param none = {.sched_priority = 0};
	cpu_set_t all;

	CPU_ZERO(&all);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	(void)sched_setaffinity(0, sizeof(all), &all);
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
}

static void *take_all(void *context)
{
	struct looks *looks = context;

	for (size_t i = 0; i < looks->count; i++) {
		struct look *look = &looks->items[i];

		look->tid = mw_live_thread(look->recorder->pid);
		(void)take(look, &look->seen);
	}
	atomic_store(&looks->done, true);
	return NULL;
}

static void *take_beside(void *context)
{
	leave_idle();
	return take_all(context);
}

struct mw_error *mw_looks_take(struct mw_recorder *recorders, size_t count, struct mw_engine *engine)
{
	struct looks looks = {.items = calloc(count + 1, sizeof(*looks.items))};
	struct mw_error *err = NULL;
	pthread_t thread;
	bool beside;

	if (!looks.items)
		return NULL; /* it matters to the report, not to the watching */
	for (size_t i = 0; i < count; i++) {
		const struct mw_window_info *window = engine->ops->window(engine, recorders[i].key);

		if (window && !window->over)
			begin(&recorders[i], &looks.items[looks.count++]);
	}
	beside = mw_thread_create(&thread, NULL, take_beside, &looks) == 0;
	if (!beside)
		(void)take_all(&looks);
	do
		err = engine->ops->run(engine, mw_clock_ns() + TURN_NS, NULL);
	while (!err && !atomic_load(&looks.done));
	if (beside)
		pthread_join(thread, NULL);
	for (size_t i = 0; i < looks.count; i++)
		end(&looks.items[i]);
	free(looks.items);
	return err;
}
