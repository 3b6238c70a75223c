// SPDX-License-Identifier: MIT
/*
 * resident.c: how much of each region is in memory (regions.h).
 *
 * /proc/PID/pagemap has eight bytes a page and any range of it can be read: cheap for what is used densely, dear for
 * terabytes that are only reserved. Where there are more pages than we would read, and where pagemap can't be read,
 * the kernel's own sums in smaps are taken; these know whole mappings only, and a part of one is measured apart.
 */
#include "proc/regions.h"

#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRESENT     (UINT64_C(1) << 63)
#define AT_ONCE     8192u                      /* entries of pagemap */
#define ALL_PAGES   (UINT64_C(64) << 30 >> 12) /* of a whole process: 64 GiB, 128 MiB of pagemap */
#define PIECE_PAGES (UINT64_C(16) << 30 >> 12) /* of parts of mappings, beside smaps */

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
	char path[40], *line = NULL;
	mw_addr start = 0, end = 0;
	size_t room = 0, next = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)tid);
	file = fopen(path, "re");
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
	char path[40];

	for (size_t i = 0; i < regions->count; i++)
		regions->items[i].resident = MW_SIZE_UNKNOWN;
	measure.entries = malloc(AT_ONCE * sizeof(*measure.entries));
	if (!measure.entries)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)tid);
	measure.fd = open(path, O_RDONLY | O_CLOEXEC);
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
