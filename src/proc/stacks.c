// SPDX-License-Identifier: MIT
/*
 * stacks.c: which anonymous regions are stacks of threads (regions.h).
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
#include "proc/regions.h"

#include "base/vector.h"
#include "proc/file.h"
#include "proc/status.h"
#include "proc/touched.h"

#include <stdlib.h>
#include <string.h>

#define DESCRIPTOR_WITHIN 8192u /* of the end of a stack: the descriptor, and what is kept above it */
#define DESCRIPTOR_WORDS  288u  /* of the descriptor in which the stack's place may stand */
#define PAGE              4096u
#define MOST_USED         (1u << 20) /* of a stack that is looked through for its descriptor */
#define SIZES             8u         /* of stacks that are remembered */
#define LEAST_STACK       16384u
#define LARGEST_STACK     (UINT64_C(1) << 40)
#define CANDIDATES        8192u /* regions that are looked into for the stacks of threads that run */
#define MAX_THREADS       65536u

static int compare_addresses(const void *left, const void *right)
{
	mw_addr a = *(const mw_addr *)left, b = *(const mw_addr *)right;

	return (a > b) - (a < b);
}

/* "NUMBER ARGUMENTS… SP PC", or "running". */
static mw_addr stack_pointer_of(pid_t pid, pid_t tid)
{
	struct mw_error *err;
	char *text = NULL, *last, *before;
	mw_addr sp = 0;
	size_t size = 0;

	err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	if (err) {
		mw_error_destroy(err);
		return 0;
	}
	last = strrchr(text, ' ');
	if (last) {
		*last = '\0';
		before = strrchr(text, ' ');
		if (before)
			sp = strtoull(before, NULL, 16);
	}
	free(text);
	return sp;
}

/* The known ones in order; *unknown is how many are not. NULL without memory. */
static mw_addr *stack_pointers(pid_t tid, size_t *count, size_t *unknown)
{
	struct mw_error *err;
	pid_t *tids = NULL;
	mw_addr *found;
	size_t threads = 0;

	err = mw_tasks_read(tid, &tids, &threads);
	if (err) {
		mw_error_destroy(err);
		return NULL;
	}
	found = calloc(threads ? threads : 1, sizeof(*found));
	*count = 0;
	*unknown = threads;
	for (size_t i = 0; found && i < threads && i < MAX_THREADS; i++) {
		mw_addr sp = stack_pointer_of(tid, tids[i]);

		if (sp)
			found[(*count)++] = sp;
	}
	free(tids);
	if (found && *count)
		qsort(found, *count, sizeof(*found), compare_addresses);
	*unknown -= *count;
	return found;
}

/* Of the known stack pointers, in order, the first from `addr` on. */
static size_t pointer_after(const mw_addr *pointers, size_t count, mw_addr addr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pointers[middle] < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

void mw_regions_find_stacks(struct mw_regions *regions, pid_t tid)
{
	struct finder finder = {.regions = regions};
	bool *pointed = calloc(regions->count ? regions->count : 1, sizeof(*pointed));

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
	free(pointed);
}
