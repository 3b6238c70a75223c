// SPDX-License-Identifier: MIT
/* regions.c: mappings become regions of a kind, and how much of each is resident (regions.h). */
#include "proc/regions.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "proc/maps.h"
#include "proc/peek.h"
#include "proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_NAME "/memfd:memwatch"

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What the kernel puts in brackets. */
static enum mw_region_kind kind_of_name(const struct mw_mapping *mapping)
{
	const char *name = mapping->path;

	if (strcmp(name, "[heap]") == 0)
		return MW_REGION_HEAP;
	if (begins(name, "[stack"))
		return MW_REGION_STACK;
	if (begins(name, "[anon_shmem:"))
		return MW_REGION_SHARED;
	/* Named by prctl(PR_SET_VMA). */
	if (begins(name, "[anon:"))
		return mapping->shared ? MW_REGION_SHARED : MW_REGION_ANONYMOUS;
	return MW_REGION_SPECIAL;
}

enum mw_region_kind mw_region_kind_of(const struct mw_mapping *mapping)
{
	if (strcmp(mapping->path, OWN_NAME) == 0)
		return MW_REGION_OWN;
	if (!mapping->inode && mapping->path[0] == '[')
		return kind_of_name(mapping);
	if (mapping->shared)
		return MW_REGION_SHARED;
	if (!mapping->inode && !mapping->path[0])
		return MW_REGION_ANONYMOUS;
	return mapping->exec ? MW_REGION_FILE_TEXT : MW_REGION_FILE_DATA;
}

void mw_regions_deinit(struct mw_regions *regions)
{
	if (!regions)
		return;
	for (size_t i = 0; i < regions->count; i++)
		free(regions->items[i].path);
	free(regions->items);
	*regions = (struct mw_regions){0};
}

/* Regions in the making. */
struct builder {
	struct mw_regions regions;
	size_t capacity;
};

static uint64_t take(uint64_t *figure)
{
	uint64_t taken = *figure;

	*figure = 0;
	return taken;
}

static bool applies_to(const struct mw_region_mark *mark, const struct mw_region *whole)
{
	switch (mark->kind) {
	case MW_REGION_KIND_COUNT:
		return false;
	case MW_REGION_OWN:
		return true;
	case MW_REGION_ANONYMOUS:
		return whole->kind == MW_REGION_ANONYMOUS || whole->kind == MW_REGION_SHARED;
	default:
		return whole->kind == MW_REGION_ANONYMOUS;
	}
}

/* Add [start, end) of a region, as a mark has it (NULL: none). Figures go with the first piece. */
static struct mw_error *add_piece(struct builder *builder, struct mw_region *whole, mw_addr start, mw_addr end,
				  struct mw_region_mark *mark)
{
	struct mw_regions *regions = &builder->regions;
	struct mw_region piece = *whole;
	bool applies = mark && applies_to(mark, whole);

	if (start >= end)
		return NULL;
	if (!MW_VECTOR_ROOM(regions->items, regions->count, builder->capacity))
		return mw_error_nomem();
	piece.start = start;
	piece.end = end;
	piece.resident = MW_SIZE_UNKNOWN;
	if (applies)
		piece.kind = mark->kind;
	piece.committed = take(applies ? &mark->committed : &whole->committed);
	piece.used = take(applies ? &mark->used : &whole->used);
	piece.path = strdup(applies && mark->path ? mark->path : whole->path);
	if (!piece.path)
		return mw_error_nomem();
	regions->items[regions->count++] = piece;
	return NULL;
}

/* Split one region at the marks from *next on; *next is the first that may reach beyond the region. */
static struct mw_error *split(struct builder *builder, struct mw_region whole, struct mw_region_mark *marks,
			      size_t count, size_t *next)
{
	mw_addr at = whole.start;
	size_t i = *next;

	while (i < count && marks[i].end <= at)
		i++;
	*next = i;
	for (; i < count && marks[i].start < whole.end; i++) {
		mw_addr start = marks[i].start > at ? marks[i].start : at;
		mw_addr end = marks[i].end < whole.end ? marks[i].end : whole.end;

		if (start >= end)
			continue;
		MW_TRY(add_piece(builder, &whole, at, start, NULL));
		MW_TRY(add_piece(builder, &whole, start, end, &marks[i]));
		at = end;
	}
	return add_piece(builder, &whole, at, whole.end, NULL);
}

static int compare_marks(const void *left, const void *right)
{
	const struct mw_region_mark *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

/* Marks in order must not overlap: split() looks at each but once a region. */
static size_t tidy_marks(struct mw_region_mark *marks, size_t count)
{
	size_t kept = 0;
	mw_addr at = 0;

	if (count)
		qsort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 0; i < count; i++) {
		struct mw_region_mark mark = marks[i];

		if (mark.start < at)
			mark.start = at;
		if (mark.start >= mark.end)
			continue;
		at = mark.end;
		marks[kept++] = mark;
	}
	return kept;
}

struct mw_error *mw_regions_mark(struct mw_regions *regions, struct mw_region_mark *marks, size_t count)
{
	struct builder builder = {0};
	size_t next = 0;

	count = tidy_marks(marks, count);
	for (size_t i = 0; i < regions->count; i++) {
		struct mw_error *err = split(&builder, regions->items[i], marks, count, &next);

		if (err) {
			mw_regions_deinit(&builder.regions);
			return err;
		}
	}
	mw_regions_deinit(regions);
	*regions = builder.regions;
	return NULL;
}

#define DESCRIPTOR_WITHIN 8192u /* of the end of a stack: the descriptor, and what is kept above it */
#define DESCRIPTOR_WORDS  288u  /* of the descriptor in which the stack's place may stand */
#define PAGE              4096u
#define MOST_USED         (1u << 20) /* of a stack that is looked through for its descriptor */
#define SIZES             8u         /* of stacks that are remembered */
#define LEAST_STACK       16384u
#define LARGEST_STACK     (UINT64_C(1) << 40)
#define CANDIDATES        8192u /* regions that are looked into for the stacks of threads that run */
#define MAX_THREADS       65536u

/*
 * Which anonymous regions are stacks of threads?
 *
 *      guard, no access | … stack, growing down | thread's descriptor | other memory
 *                                   ^ sp          ^ points at itself
 *
 * A stack pointer alone would make a stack of every heap that runtimes with small stacks of their own (Go) keep them
 * in: either the guard or the descriptor must be there as well. glibc puts the descriptor at the stack's end, also
 * where the program brought the memory; its first and third word are its own address. Where the stack begins, and how
 * large it is, stands in it as well: what is mapped right behind the stack may be one region with it. So may stacks
 * with their guards, where these are pages without access and no mappings of their own (glibc 2.42, Linux 6.13).
 */
static int compare_addresses(const void *left, const void *right)
{
	mw_addr a = *(const mw_addr *)left, b = *(const mw_addr *)right;

	return (a > b) - (a < b);
}

/* The known ones in order; *unknown is how many are not. NULL without memory. */
static mw_addr *stack_pointers(pid_t tid, size_t *count, size_t *unknown)
{
	MW_FREE pid_t *tids = NULL;
	mw_addr *found, pc;
	size_t threads = 0;

	if (!mw_error_none(mw_tasks_read(tid, &tids, &threads)))
		return NULL;
	found = calloc(threads ? threads : 1, sizeof(*found));
	*count = 0;
	for (size_t i = 0; found && i < threads && i < MAX_THREADS; i++)
		if (mw_waiting_read(tids[i], &found[*count], &pc) && found[*count])
			(*count)++;
	if (found && *count)
		qsort(found, *count, sizeof(*found), compare_addresses);
	*unknown = threads - *count;
	return found;
}

/* Of the known stack pointers, in order, the first from `addr` on. */
static size_t pointer_after(const mw_addr *pointers, size_t count, mw_addr addr)
{
	return addr ? mw_vector_up_to(pointers, count, sizeof(*pointers), 0, addr - 1) : 0;
}

static bool has_guard(const struct mw_regions *regions, size_t index)
{
	const struct mw_region *below = index ? &regions->items[index - 1] : NULL;

	return below && below->end == regions->items[index].start && !below->read && !below->write &&
	       below->kind == MW_REGION_ANONYMOUS;
}

struct finder {
	struct mw_touched memory;
	const struct mw_regions *regions;
	mw_addr *pointers;
	size_t pointer_count;
	size_t unknown;        /* threads whose stack pointer can't be had */
	size_t looked;         /* regions looked into for theirs */
	uint64_t sizes[SIZES]; /* of stacks that were found, from their guards' end on */
	size_t size_count;
	struct mw_region_mark *marks;
	size_t count, capacity;
};

/* The memory of a stack: its guard, and from `start` on what the thread may use. */
struct place {
	mw_addr guard, start, end;
};

/* Where a descriptor says that its thread's stack is. False: it does not say. */
static bool read_place(const struct finder *finder, mw_addr at, mw_addr limit, struct place *out)
{
	uint64_t words[DESCRIPTOR_WORDS];
	size_t size = limit - at < sizeof(words) ? (size_t)(limit - at) : sizeof(words);
	size_t count = mw_touched_read(&finder->memory, at, words, size) / sizeof(words[0]);

	for (size_t i = 0; i + 1 < count; i++) {
		mw_addr last = words[i] + words[i + 1];

		/* Beside them stand pointers to the descriptor itself. */
		if (words[i] < PAGE || words[i + 1] < LEAST_STACK || words[i + 1] > LARGEST_STACK)
			continue;
		if (words[i] >= at || last <= at || last - at > DESCRIPTOR_WITHIN)
			continue;
		*out = (struct place){.guard = words[i], .start = words[i], .end = last};
		if (i + 2 < count && words[i + 2] % PAGE == 0 && words[i + 2] < at - words[i])
			out->start += words[i + 2];
		return true;
	}
	return false;
}

/* The first descriptor in [from, to); 0: there is none. */
static mw_addr find_descriptor(const struct finder *finder, mw_addr from, mw_addr to)
{
	uint64_t words[DESCRIPTOR_WITHIN / sizeof(uint64_t) + 2];

	for (from &= ~(mw_addr)15; from < to; from += DESCRIPTOR_WITHIN) {
		size_t size = to - from < sizeof(words) ? (size_t)(to - from) : sizeof(words);
		size_t count = mw_touched_read(&finder->memory, from, words, size) / sizeof(words[0]);

		for (size_t i = 0; i + 2 < count; i += 2)
			if (words[i] == from + i * sizeof(words[0]) && words[i + 2] == words[i])
				return words[i];
		if (count * sizeof(words[0]) < size)
			break;
	}
	return 0;
}

static void remember_size(struct finder *finder, uint64_t size)
{
	for (size_t i = 0; i < finder->size_count; i++)
		if (finder->sizes[i] == size)
			return;
	if (finder->size_count < SIZES)
		finder->sizes[finder->size_count++] = size;
}

/* Without memory for it the stack counts as other memory. */
static void add_stack(struct finder *finder, mw_addr start, mw_addr end)
{
	if (!MW_VECTOR_ROOM(finder->marks, finder->count, finder->capacity))
		return;
	finder->marks[finder->count++] = (struct mw_region_mark){.start = start, .end = end, .kind = MW_REGION_STACK};
}

/* From `start` to `end` of the region there is a stack. Returns where its last page ends. */
static mw_addr add_found(struct finder *finder, const struct mw_region *region, mw_addr start, mw_addr end)
{
	start = start < region->start ? region->start : start & ~(mw_addr)(PAGE - 1);
	end = end > region->end ? region->end : (end + PAGE - 1) & ~(mw_addr)(PAGE - 1);
	add_stack(finder, start, end);
	remember_size(finder, end - start);
	return end;
}

/* The stacks of those threads whose stack pointers are in the region. */
static bool add_pointed(struct finder *finder, size_t index)
{
	const struct mw_region *region = &finder->regions->items[index];
	mw_addr from = region->start;
	size_t i = pointer_after(finder->pointers, finder->pointer_count, from);
	bool any = false;

	for (; i < finder->pointer_count && finder->pointers[i] < region->end; i++) {
		mw_addr sp = finder->pointers[i];
		mw_addr limit = region->end - sp > MOST_USED ? sp + MOST_USED : region->end, at;

		any = true;
		if (sp < from)
			continue;
		at = find_descriptor(finder, sp, limit);
		if (!at && region->end - region->start >= LEAST_STACK)
			at = find_descriptor(finder, region->end - DESCRIPTOR_WITHIN, region->end);
		if (at) {
			struct place place = {.start = from, .end = at + 1};

			(void)read_place(finder, at, region->end, &place);
			from = add_found(finder, region, place.start < from ? from : place.start, place.end);
		} else if (has_guard(finder->regions, index)) {
			add_stack(finder, from, region->end);
			break;
		}
	}
	return any;
}

/* A stack that ends at `end`, and those right below it and its guard. */
static void add_adjacent(struct finder *finder, const struct mw_region *region, mw_addr end)
{
	while (end > region->start && end - region->start >= LEAST_STACK && finder->looked++ < CANDIDATES) {
		mw_addr at = find_descriptor(finder, end - DESCRIPTOR_WITHIN, end);
		struct place place;

		if (!at || !read_place(finder, at, end, &place))
			return;
		(void)add_found(finder, region, place.start, place.end);
		end = place.guard;
	}
}

/*
 * A thread that runs has no stack pointer to be had: does one's descriptor stand where stacks have theirs, and says
 * that it is of one? That of the first thread, whose stack is the kernel's, may stand at the end of any memory.
 */
static void add_unpointed(struct finder *finder, size_t index, bool pointed)
{
	const struct mw_region *region = &finder->regions->items[index];
	uint64_t size = region->end - region->start;
	struct place place;
	mw_addr at = 0;

	if (size < LEAST_STACK || !finder->unknown || finder->looked++ >= CANDIDATES)
		return;
	for (size_t i = 0; i < finder->size_count && !at && !pointed; i++) {
		mw_addr end = region->start + finder->sizes[i];

		if (finder->sizes[i] < size && has_guard(finder->regions, index))
			at = find_descriptor(finder, end - DESCRIPTOR_WITHIN, end);
	}
	if (at && read_place(finder, at, region->end, &place))
		(void)add_found(finder, region, place.start, place.end);
	else
		add_adjacent(finder, region, region->end);
}

static bool may_hold_stacks(const struct mw_region *region)
{
	return region->kind == MW_REGION_ANONYMOUS && region->read && region->write;
}

static void find_stacks(struct mw_regions *regions, pid_t tid)
{
	struct finder finder = {.regions = regions};
	MW_FREE bool *pointed = calloc(regions->count ? regions->count : 1, sizeof(*pointed));

	finder.pointers = stack_pointers(tid, &finder.pointer_count, &finder.unknown);
	mw_touched_init(&finder.memory, tid);
	for (size_t i = 0; finder.pointers && pointed && i < regions->count; i++)
		if (may_hold_stacks(&regions->items[i]))
			pointed[i] = add_pointed(&finder, i);
	for (size_t i = 0; finder.pointers && pointed && i < regions->count; i++)
		if (may_hold_stacks(&regions->items[i]))
			add_unpointed(&finder, i, pointed[i]);
	if (finder.count)
		mw_error_destroy(mw_regions_mark(regions, finder.marks, finder.count));
	mw_touched_deinit(&finder.memory);
	free(finder.marks);
	free(finder.pointers);
}

struct mw_error *mw_regions_of(struct mw_maps *maps, pid_t tid, struct mw_regions *out)
{
	struct mw_region *items = calloc(maps->count ? maps->count : 1, sizeof(*items));

	if (!items)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count; i++) {
		struct mw_mapping *mapping = &maps->items[i];

		items[i] = (struct mw_region){
			.start = mapping->start,
			.end = mapping->end,
			.kind = mw_region_kind_of(mapping),
			.read = mapping->read,
			.write = mapping->write,
			.exec = mapping->exec,
			.resident = MW_SIZE_UNKNOWN,
			.path = mapping->path,
		};
		mapping->path = NULL;
	}
	out->items = items;
	out->count = maps->count;
	if (tid)
		find_stacks(out, tid);
	return NULL;
}

struct mw_error *mw_regions_read(pid_t tid, struct mw_regions *out)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(mw_maps_read(tid, &maps));
	return mw_regions_of(&maps, tid, out);
}

#define PRESENT     (UINT64_C(1) << 63)
#define AT_ONCE     8192u                      /* entries of pagemap */
#define ALL_PAGES   (UINT64_C(64) << 30 >> 12) /* of a whole process: 64 GiB, 128 MiB of pagemap */
#define PIECE_PAGES (UINT64_C(16) << 30 >> 12) /* of parts of mappings, beside smaps */

/*
 * How much of each region is in memory?
 *
 * /proc/PID/pagemap has eight bytes a page and any range of it can be read: cheap for what is used densely, dear for
 * terabytes that are only reserved. Where there are more pages than we would read, and where pagemap can't be read,
 * the kernel's own sums in smaps are taken; these know whole mappings only, and a part of one is measured apart.
 */
struct measure {
	int fd; /* of pagemap, or -1 */
	uint64_t page;
	uint64_t *entries;
	uint64_t left; /* pages that may still be read */
};

/* Bytes of [start, end) that are present; unknown where pagemap can't be read or enough of it was. */
static uint64_t count_present(struct measure *measure, mw_addr start, mw_addr end)
{
	uint64_t first = start / measure->page, pages = (end - start) / measure->page, present = 0;

	if (measure->fd < 0 || pages > measure->left)
		return MW_SIZE_UNKNOWN;
	measure->left -= pages;
	while (pages) {
		size_t wanted = (pages < AT_ONCE ? pages : AT_ONCE) * sizeof(uint64_t);
		ssize_t got = pread(measure->fd, measure->entries, wanted, (off_t)(first * sizeof(uint64_t)));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < (ssize_t)sizeof(uint64_t))
			return MW_SIZE_UNKNOWN;
		for (size_t i = 0; i < (size_t)got / sizeof(uint64_t); i++)
			present += (measure->entries[i] & PRESENT) != 0;
		first += (size_t)got / sizeof(uint64_t);
		pages -= (size_t)got / sizeof(uint64_t);
	}
	return present * measure->page;
}

static bool is_outside(const struct mw_region *region)
{
	/* vsyscall lies in the kernel's half, which pagemap does not have. */
	return region->end > UINT64_C(1) << 63;
}

static void from_pagemap(struct measure *measure, struct mw_regions *regions)
{
	for (size_t i = 0; i < regions->count; i++) {
		struct mw_region *region = &regions->items[i];

		if (region->resident == MW_SIZE_UNKNOWN)
			region->resident = is_outside(region) ? 0 : count_present(measure, region->start, region->end);
	}
}

/* A mapping's sum of smaps goes to the region that is the same; *next moves on in both lists' order. */
static void take_sum(struct mw_regions *regions, size_t *next, mw_addr start, mw_addr end, uint64_t resident)
{
	while (*next < regions->count && regions->items[*next].end <= start)
		(*next)++;
	if (*next < regions->count && regions->items[*next].start == start && regions->items[*next].end == end)
		regions->items[*next].resident = resident;
	/* What is not resident as a whole is not in its parts. */
	for (size_t i = *next; !resident && i < regions->count && regions->items[i].end <= end; i++)
		if (regions->items[i].start >= start)
			regions->items[i].resident = 0;
}

static void from_smaps(struct mw_regions *regions, pid_t tid)
{
	FILE *file = fopen(mw_path("/proc/%d/smaps", (int)tid).text, "re");
	char *line = NULL;
	mw_addr start = 0, end = 0;
	size_t room = 0, next = 0;

	if (!file)
		return;
	while (getline(&line, &room, file) > 0) {
		mw_addr from;
		char *dash;

		if (strncmp(line, "Rss:", 4) == 0) {
			uint64_t kib = strtoull(line + 4, NULL, 10);

			if (kib <= UINT64_MAX / 1024)
				take_sum(regions, &next, start, end, kib * 1024);
			continue;
		}
		/* "START-END …": no other line has a number before a dash. */
		from = strtoull(line, &dash, 16);
		if (dash == line || *dash != '-')
			continue;
		start = from;
		end = strtoull(dash + 1, NULL, 16);
	}
	free(line);
	(void)fclose(file);
}

static uint64_t pages_of(const struct mw_regions *regions, uint64_t page)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < regions->count; i++)
		if (!is_outside(&regions->items[i]))
			pages += (regions->items[i].end - regions->items[i].start) / page;
	return pages;
}

void mw_regions_measure(struct mw_regions *regions, pid_t tid)
{
	struct measure measure = {.page = (uint64_t)sysconf(_SC_PAGESIZE)};

	for (size_t i = 0; i < regions->count; i++)
		regions->items[i].resident = MW_SIZE_UNKNOWN;
	measure.entries = malloc(AT_ONCE * sizeof(*measure.entries));
	if (!measure.entries)
		return;
	measure.fd = open(mw_path("/proc/%d/pagemap", (int)tid).text, O_RDONLY | O_CLOEXEC);
	measure.left = ALL_PAGES;
	if (measure.fd < 0 || pages_of(regions, measure.page) > ALL_PAGES) {
		from_smaps(regions, tid);
		measure.left = PIECE_PAGES;
	}
	from_pagemap(&measure, regions);
	if (measure.fd >= 0)
		close(measure.fd);
	free(measure.entries);
}
