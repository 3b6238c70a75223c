// SPDX-License-Identifier: MIT
/*
 * stacks.c: which anonymous regions are stacks of threads (regions.h).
 *
 *      guard, no access | … stack, growing down | thread's descriptor |
 *                                   ^ sp          ^ points at itself
 *
 * A stack pointer alone would make a stack of every heap that runtimes with small stacks of their own (Go) keep them
 * in: either the guard or the descriptor must be there as well. glibc puts the descriptor at the stack's end, also
 * where the program brought the memory; its first and third word are its own address.
 */
#include "proc/regions.h"

#include "proc/file.h"
#include "proc/status.h"
#include "proc/touched.h"

#include <stdlib.h>
#include <string.h>

#define DESCRIPTOR_WITHIN 8192u /* of the end of a stack: the descriptor, and what is kept above it */
#define LEAST_STACK       16384u
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

static bool has_pointer(const mw_addr *pointers, size_t count, const struct mw_region *region)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pointers[middle] < region->start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && pointers[low] < region->end;
}

static bool has_guard(const struct mw_regions *regions, size_t index)
{
	const struct mw_region *below = index ? &regions->items[index - 1] : NULL;

	return below && below->end == regions->items[index].start && !below->read && !below->write &&
	       below->kind == MW_REGION_ANONYMOUS;
}

static bool has_descriptor(const struct mw_touched *memory, const struct mw_region *region)
{
	uint64_t words[DESCRIPTOR_WITHIN / sizeof(uint64_t)];
	mw_addr from;

	if (region->end - region->start < LEAST_STACK)
		return false;
	from = region->end - sizeof(words);
	if (mw_touched_read(memory, from, words, sizeof(words)) != sizeof(words))
		return false;
	for (size_t i = 0; i + 2 < sizeof(words) / sizeof(words[0]); i += 2) {
		mw_addr at = from + i * sizeof(words[0]);

		if (words[i] == at && words[i + 2] == at)
			return true;
	}
	return false;
}

void mw_regions_find_stacks(struct mw_regions *regions, pid_t tid)
{
	size_t count = 0, unknown = 0, looked = 0;
	mw_addr *pointers = stack_pointers(tid, &count, &unknown);
	struct mw_touched memory;

	mw_touched_init(&memory, tid);
	for (size_t i = 0; pointers && i < regions->count; i++) {
		struct mw_region *region = &regions->items[i];
		bool pointed;

		if (region->kind != MW_REGION_ANONYMOUS || !region->read || !region->write)
			continue;
		pointed = has_pointer(pointers, count, region);
		if (pointed ? has_guard(regions, i) || has_descriptor(&memory, region)
			    : unknown && looked++ < CANDIDATES && has_descriptor(&memory, region))
			region->kind = MW_REGION_STACK;
	}
	mw_touched_deinit(&memory);
	free(pointers);
}
