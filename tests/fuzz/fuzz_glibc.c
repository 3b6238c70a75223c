// SPDX-License-Identifier: MIT
/*
 * fuzz_glibc: libFuzzer's bytes as memory of a process that says it is glibc's heaps: a page of data, a [heap] and two
 * heaps of threads. Every fourth read something in it changes. Walks end, and figures add up.
 */
#include "fuzz.h"

#include "alloc/glibc_arenas.h"

#include "base/clock.h"

#define PAGE UINT64_C(4096)
#define DATA UINT64_C(0x10000)
#define HEAP UINT64_C(0x200000)

static struct {
	uint8_t memory[16 * 4096];
	struct fuzz_input changes;
	unsigned reads;
} rig;

static const struct mw_glibc_span anonymous[] = {
	{MW_GLIBC_HEAP_SIZE, MW_GLIBC_HEAP_SIZE + 4 * 4096},
	{2 * MW_GLIBC_HEAP_SIZE, 2 * MW_GLIBC_HEAP_SIZE + 4 * 4096},
};
static const struct mw_glibc_span data[] = {{DATA, DATA + 4096}};

/* Where memory of the process is kept here: 1, 4 and 4 + 4 pages. */
static size_t place_of(mw_addr addr, size_t *room)
{
	const struct {
		mw_addr start;
		size_t pages, at;
	} parts[] = {{DATA, 1, 0}, {HEAP, 4, 1}, {MW_GLIBC_HEAP_SIZE, 4, 5}, {2 * MW_GLIBC_HEAP_SIZE, 4, 9}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (addr < parts[i].start || addr - parts[i].start >= parts[i].pages * PAGE)
			continue;
		*room = parts[i].pages * PAGE - (addr - parts[i].start);
		return parts[i].at * PAGE + (addr - parts[i].start);
	}
	*room = 0;
	return 0;
}

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	size_t room, at = place_of(addr, &room);

	(void)context;
	if (++rig.reads % 4 == 0 && rig.changes.left) {
		uint64_t where = fuzz_take(&rig.changes, 2) * 8, value = fuzz_odd(&rig.changes);

		memcpy(rig.memory + where % sizeof(rig.memory), &value, sizeof(value));
	}
	if (size > room)
		size = room;
	memcpy(out, rig.memory + at, size);
	return size;
}

static void check(const struct mw_glibc_figures *figures)
{
	if (figures->size != MW_SIZE_UNKNOWN)
		insist(figures->used <= figures->size && figures->free <= figures->size);
}

/* What is spoilt must first look good: the list heads of an arena that is empty. */
static void make_bins(mw_addr bins)
{
	size_t room, at = place_of(bins, &room);

	for (size_t i = 0; i < 254 && (i + 1) * 8 <= room; i++) {
		uint64_t self = bins + i / 2 * 16 - 16;

		memcpy(rig.memory + at + i * 8, &self, sizeof(self));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct mw_glibc_process process = {.read = read_some,
						 .anonymous = anonymous,
						 .anonymous_count = 2,
						 .data = data,
						 .data_count = 1,
						 .heap = {HEAP, HEAP + 4 * 4096}};
	struct mw_glibc_arenas arenas = {.arena_count = 0};
	struct fuzz_input input = {bytes, size};
	size_t words = fuzz_take(&input, 1);

	memset(&rig, 0, sizeof(rig));
	make_bins(DATA + 0x70);
	make_bins(MW_GLIBC_HEAP_SIZE + 48 + 0x70);
	for (size_t i = 0; i < words && input.left; i++) {
		uint64_t where = fuzz_take(&input, 2) * 8, value = fuzz_odd(&input);

		memcpy(rig.memory + where % sizeof(rig.memory), &value, sizeof(value));
	}
	rig.changes = input;
	insist(!mw_glibc_arenas_find(&process, &arenas));
	insist(!mw_glibc_arenas_walk(&process, mw_clock_ns() + UINT64_C(1000000000), &arenas));
	check(&arenas.main.figures);
	check(&arenas.total);
	for (size_t i = 0; i < arenas.arena_count; i++)
		check(&arenas.arenas[i].figures);
	mw_glibc_arenas_deinit(&arenas);
	return 0;
}
