// SPDX-License-Identifier: MIT
/* pages.c: which pages of a process are there (pages.h). */
#include "heap/pages.h"

#include "base/path.h"
#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    4096u
#define ENTRIES 4096u /* of pagemap, at a time */
#define REGIONS 1024u /* of a scan, at a time */

/* Of pagemap's entries. */
#define IN_MEMORY (UINT64_C(1) << 63)
#define IN_SWAP   (UINT64_C(1) << 62)
#define OF_FILE   (UINT64_C(1) << 61)
#define GUARD     (UINT64_C(1) << 58)
#define FRAME     ((UINT64_C(1) << 55) - 1)

/* Of Linux 6.7 on: struct pm_scan_arg, struct page_region, PAGE_IS_…. */
struct scan {
	uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
	uint64_t inverted, all_of, any_of, wanted;
};

struct region {
	uint64_t start, end, categories;
};

#define SCAN       _IOWR('f', 16, struct scan)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
#define IS_ZERO    (1u << 5)
#define IS_HUGE    (1u << 6)
#define IS_GUARD   (1u << 8)

/* As much of a running process as is looked through in well under a millisecond; more, where there was nothing. */
#define LEAST_STEP (UINT64_C(64) << 20)
#define MOST_STEP  (UINT64_C(1) << 40)

static struct mw_error *add_run(struct mw_page_runs *runs, mw_addr start, uint64_t pages, enum mw_page_state state)
{
	struct mw_image_run *last = runs->count ? &runs->items[runs->count - 1] : NULL;

	while (pages > 0) {
		uint64_t most = UINT32_MAX, some;

		if (last && last->state == state && last->start + (mw_addr)last->pages * PAGE == start &&
		    last->pages < most) {
			some = pages < most - last->pages ? pages : most - last->pages;
			last->pages += (uint32_t)some;
		} else {
			some = pages < most ? pages : most;
			if (!MW_VECTOR_ROOM(runs->items, runs->count, runs->capacity))
				return mw_error_nomem();
			last = &runs->items[runs->count++];
			*last = (struct mw_image_run){.start = start, .pages = (uint32_t)some, .state = state};
		}
		pages -= some;
		start += some * PAGE;
	}
	return NULL;
}

struct mw_error *mw_pages_assume(mw_addr start, mw_addr end, struct mw_page_runs *runs)
{
	return add_run(runs, start, (end - start) / PAGE, MW_PAGE_RESIDENT);
}

/* The frame of the page of zeros that the kernel gives who reads what was never written; 0: it may not be known. */
static uint64_t find_zero_frame(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t entry = 0;

	if (fd >= 0 && page != MAP_FAILED) {
		(void)page[0];
		if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page / PAGE * sizeof(entry))) !=
		    (ssize_t)sizeof(entry))
			entry = 0;
	}
	if (page != MAP_FAILED)
		munmap((void *)(uintptr_t)page, PAGE);
	if (fd >= 0)
		close(fd);
	return entry & IN_MEMORY ? entry & FRAME : 0;
}

/* One scan; how many regions there were, negative errno. What it says of where it ended is not to be relied on: if the kernel
 * has filled a buffer of its own (512 regions) before it came to the end, that is where it was then. */
static int scan(const struct mw_pages *pages, mw_addr start, mw_addr end, struct region *regions)
{
	struct scan argument = {
		.size = sizeof(argument),
		.start = start,
		.end = end,
		.regions = (uintptr_t)regions,
		.region_count = REGIONS,
		.any_of = IS_PRESENT | IS_SWAPPED,
		.wanted = IS_PRESENT | IS_SWAPPED | IS_ZERO | IS_HUGE | (pages->guards ? IS_GUARD : 0),
	};
	int count = ioctl(pages->fd, SCAN, &argument);

	return count < 0 ? -errno : count;
}

void mw_pages_open(struct mw_pages *pages, pid_t pid, bool scans)
{
	struct region regions[1];

	*pages = (struct mw_pages){.fd = -1};
	/* Where pages are larger than ours, addresses would be taken for others. */
	if (sysconf(_SC_PAGESIZE) == PAGE)
		pages->fd = open(mw_path("/proc/%d/pagemap", (int)pid).text, O_RDONLY | O_CLOEXEC);
	if (pages->fd < 0)
		return;
	pages->guards = true;
	pages->scans = scans && scan(pages, 0, 0, regions) >= 0;
	if (scans && !pages->scans) {
		pages->guards = false;
		pages->scans = scan(pages, 0, 0, regions) >= 0;
	}
	if (!pages->scans)
		pages->zero_pfn = find_zero_frame();
}

void mw_pages_close(struct mw_pages *pages)
{
	if (pages->fd >= 0)
		close(pages->fd);
	pages->fd = -1;
}

static struct mw_error *add_region(const struct region *region, struct mw_page_runs *runs, struct mw_pages_sum *sum)
{
	uint64_t bytes = region->end - region->start;
	bool present = region->categories & IS_PRESENT;

	if (region->categories & IS_GUARD)
		return NULL;
	if (region->categories & IS_ZERO) {
		sum->zero += bytes;
		return NULL;
	}
	*(present ? &sum->resident : &sum->swapped) += bytes;
	if (present && region->categories & IS_HUGE)
		sum->huge += bytes;
	return add_run(runs, region->start, bytes / PAGE, present ? MW_PAGE_RESIDENT : MW_PAGE_SWAPPED);
}

static bool read_by_scan(const struct mw_pages *pages, mw_addr start, mw_addr end, struct mw_page_runs *runs,
			 struct mw_pages_sum *sum, struct mw_error **err)
{
	struct region *regions = malloc(REGIONS * sizeof(*regions));
	uint64_t step = pages->brief ? LEAST_STEP : UINT64_MAX;
	bool known = regions != NULL;

	if (!regions)
		*err = mw_error_nomem();
	while (known && start < end) {
		mw_addr stop = end - start < step ? end : start + step;
		int count = scan(pages, start, stop, regions);

		known = count >= 0;
		for (int i = 0; known && !*err && i < count; i++)
			*err = add_region(&regions[i], runs, sum);
		known &= !*err;
		if (pages->brief)
			step = count ? LEAST_STEP : step < MOST_STEP ? step * 2 : step;
		/* If there was no room for more, the next one begins behind the last. */
		start = count == REGIONS ? regions[count - 1].end : stop;
	}
	free(regions);
	return known;
}

static struct mw_error *add_entry(const struct mw_pages *pages, uint64_t entry, mw_addr page, struct mw_page_runs *runs,
				  struct mw_pages_sum *sum)
{
	bool present = entry & IN_MEMORY;

	if (!(entry & (IN_MEMORY | IN_SWAP)) || entry & GUARD)
		return NULL;
	if (present && pages->zero_pfn && (entry & FRAME) == pages->zero_pfn) {
		sum->zero += PAGE;
		return NULL;
	}
	*(present ? &sum->resident : &sum->swapped) += PAGE;
	return add_run(runs, page, 1, present ? MW_PAGE_RESIDENT : MW_PAGE_SWAPPED);
}

static bool read_by_entry(const struct mw_pages *pages, mw_addr start, mw_addr end, uint64_t most,
			  struct mw_page_runs *runs, struct mw_pages_sum *sum, struct mw_error **err)
{
	uint64_t *entries = malloc(ENTRIES * sizeof(*entries));
	bool known = entries != NULL;

	if (!entries)
		*err = mw_error_nomem();
	while (known && start < end && sum->resident + sum->swapped < most) {
		uint64_t left = (end - start) / PAGE;
		size_t wanted = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got =
			pread(pages->fd, entries, wanted * sizeof(*entries), (off_t)(start / PAGE * sizeof(*entries)));

		known = got >= (ssize_t)sizeof(*entries);
		for (size_t i = 0; known && i < (size_t)got / sizeof(*entries); i++, start += PAGE) {
			*err = add_entry(pages, entries[i], start, runs, sum);
			known = !*err;
		}
	}
	free(entries);
	return known;
}

bool mw_pages_read(struct mw_pages *pages, mw_addr start, mw_addr end, uint64_t most, struct mw_page_runs *runs,
		   struct mw_pages_sum *sum, struct mw_error **err)
{
	const struct mw_page_runs before = *runs;
	const uint32_t last = runs->count ? runs->items[runs->count - 1].pages : 0;
	struct mw_pages_sum found = {0};
	bool known;

	*err = NULL;
	if (pages->fd < 0)
		return false;
	known = pages->scans ? read_by_scan(pages, start, end, runs, &found, err)
			     : read_by_entry(pages, start, end, most, runs, &found, err);
	if (known) {
		sum->resident += found.resident;
		sum->swapped += found.swapped;
		sum->huge += found.huge;
		sum->zero += found.zero;
		return true;
	}
	runs->count = before.count;
	if (runs->count)
		runs->items[runs->count - 1].pages = last;
	return false;
}
