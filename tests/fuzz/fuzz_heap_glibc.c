// SPDX-License-Identifier: MIT
/*
 * fuzz_heap_glibc: heaps of glibc's that are made up of libFuzzer's bytes: a main arena in [heap], a thread's in two heaps,
 * threads' caches, mappings with blocks of their own. Then words of them are overwritten. The walk ends, and what it finds
 * fits together.
 */
#include "fuzz.h"

#include "heap/walker.h"

#define PAGE   UINT64_C(4096)
#define DATA   UINT64_C(0x10000)
#define HEAP   UINT64_C(0x200000)
#define MAPPED UINT64_C(0x300000)
#define ARENA  (UINT64_C(64) << 20)
#define STATE  (ARENA + 48)

static const struct mw_image_mapping mappings[] = {
	{.start = DATA, .end = DATA + PAGE, .read = true, .write = true, .inode = 1, .path = "/libc.so.6"},
	{.start = HEAP, .end = HEAP + 4 * PAGE, .read = true, .write = true, .path = "[heap]"},
	{.start = MAPPED, .end = MAPPED + 4 * PAGE, .read = true, .write = true, .path = ""},
	{.start = ARENA, .end = ARENA + 4 * PAGE, .read = true, .write = true, .path = ""},
	{.start = 2 * ARENA, .end = 2 * ARENA + 3 * PAGE, .read = true, .write = true, .path = ""},
};

#define MAPPINGS (sizeof(mappings) / sizeof(mappings[0]))

static uint64_t memory[16 * 512];

/* The word at an address; where there is none, one that nobody reads. */
static uint64_t *word(mw_addr addr)
{
	static uint64_t none;
	size_t before = 0;

	for (size_t i = 0; i < MAPPINGS; i++) {
		if (addr >= mappings[i].start && addr < mappings[i].end)
			return &memory[before + (addr - mappings[i].start) / 8];
		before += (mappings[i].end - mappings[i].start) / 8;
	}
	return &none;
}

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context;
	for (size_t i = 0; i < MAPPINGS; i++) {
		if (addr < mappings[i].start || addr >= mappings[i].end)
			continue;
		if (size > mappings[i].end - addr)
			size = mappings[i].end - addr;
		memcpy(out, (const char *)word(addr) + addr % 8, size);
		return size;
	}
	return 0;
}

static void make_state(mw_addr state, mw_addr top, mw_addr next, uint64_t bytes)
{
	*word(state + 96) = top;
	for (mw_addr at = state + 112; at < state + 2144; at += 8)
		*word(at) = (at - state - 112) / 16 * 16 + state + 96;
	*word(state + 2160) = next;
	*word(state + 2176) = 1;
	*word(state + 2184) = *word(state + 2192) = bytes;
}

/* A free chunk on the unsorted list, which has none but it. */
static void make_free(mw_addr state, mw_addr at, uint64_t size)
{
	*word(at + size) = size;
	*word(at + 16) = *word(at + 24) = state + 96;
	if (*word(state + 112) == state + 96)
		*word(state + 112) = *word(state + 120) = at;
}

/* A cache with one block, of a chunk of 32 bytes, of the release that has caches of that size. */
static void make_cache(mw_addr chunk, uint64_t size, mw_addr block)
{
	if (size == 0x250)
		*word(chunk + 16) = 1;
	if (size == 0x290)
		*word(chunk + 16) = 1;
	for (mw_addr at = 0; size == 0x300 && at < 152; at += 8)
		*word(chunk + 16 + at) = at ? 0x0007000700070007 : 0x0007000700070006;
	*word(chunk + 16 + (size == 0x250 ? 64 : size == 0x290 ? 128 : 152)) = block;
	*word(block) = 0;
	*word(block + 8) = chunk + 16;
}

/* Chunks from `at` on, as the input has them; returns where the last begins, which goes to the end. */
static mw_addr make_chunks(struct fuzz_input *input, mw_addr state, mw_addr at, mw_addr end, uint64_t flag)
{
	uint64_t in_use = 1;
	mw_addr small = 0;

	while (end - at > 0x400) {
		uint8_t kind = (uint8_t)fuzz_take(input, 1);
		uint64_t size = kind % 8 == 7   ? 0x250 + (kind / 8 % 3 == 1   ? 0x40
							   : kind / 8 % 3 == 2 ? 0xb0
									       : 0)
				: kind % 8 == 0 ? 32
						: 32 + kind / 8 * 16;
		bool is_free = kind % 8 == 1 && in_use;

		*word(at + 8) = size | in_use | flag;
		if (is_free)
			make_free(state, at, size);
		else if (kind % 8 == 7 && small)
			make_cache(at, size, small);
		else if (size == 32)
			small = at + 16;
		/* In a fast bin. */
		if (kind == 8 && small)
			*word(state + 16) = at;
		in_use = !is_free;
		at += size;
	}
	*word(at + 8) = (end - at) | in_use;
	return at;
}

static void make_mapped(struct fuzz_input *input)
{
	uint64_t lead = fuzz_take(input, 1) % 4 * 0x1f0;

	*word(MAPPED + 8) = 2 * PAGE | 2;
	if (lead) {
		*word(MAPPED + lead) = lead;
		*word(MAPPED + lead + 8) = (2 * PAGE - lead) | 2;
	}
	*word(MAPPED + 2 * PAGE + 8) = PAGE | 2;
	/* malloc_par */
	*word(DATA + 2600 - 24) = UINT64_C(2) << 32;
	*word(DATA + 2600 - 16) = 65536 | UINT64_C(2) << 32;
	*word(DATA + 2600) = *word(DATA + 2608) = 3 * PAGE;
	*word(DATA + 2616) = HEAP;
	*word(DATA + 2624) = 64;
	*word(DATA + 2632) = 1033;
	*word(DATA + 2640) = 7;
}

static void make(struct fuzz_input *input)
{
	make_state(DATA, 0, STATE, 4 * PAGE);
	*word(DATA + 96) = make_chunks(input, DATA, HEAP, HEAP + 4 * PAGE, 0);
	*word(ARENA) = *word(2 * ARENA) = STATE;
	*word(ARENA + 16) = *word(ARENA + 24) = 4 * PAGE;
	*word(2 * ARENA + 8) = ARENA;
	*word(2 * ARENA + 16) = *word(2 * ARENA + 24) = 3 * PAGE;
	make_state(STATE, 0, DATA, 7 * PAGE);
	*word(make_chunks(input, STATE, STATE + 2208, ARENA + 4 * PAGE - 32, 4) + 8) |= 4;
	*word(ARENA + 4 * PAGE - 24) = 16 | 1;
	*word(ARENA + 4 * PAGE - 8) = 1;
	*word(STATE + 96) = make_chunks(input, STATE, 2 * ARENA + 48, 2 * ARENA + 3 * PAGE, 4);
	make_mapped(input);
}

/* Spans lie in memory and apart, and are cut into segments without a gap. */
static void check(const struct mw_blocks *blocks)
{
	size_t count;
	const struct mw_span *spans = mw_blocks_spans(blocks, &count);
	mw_addr last = 0;
	uint32_t segments = 0;

	for (size_t i = 0; i < count; i++) {
		struct mw_segment segment = {0};
		mw_addr at = spans[i].start;

		insist(spans[i].start >= last && spans[i].end > spans[i].start && spans[i].end <= 2 * ARENA + 3 * PAGE);
		while (mw_span_next(&spans[i], &at, &segment)) {
			struct mw_block block;

			insist(segment.start + segment.size <= spans[i].end);
			if (segment.live && segment.size)
				insist(mw_blocks_find(blocks, segment.start, &block) && block.start == segment.start);
			segments++;
		}
		insist(at == spans[i].end);
		last = spans[i].end;
	}
	insist(segments == mw_blocks_segments(blocks));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct mw_image_thread thread = {.pc = DATA, .sp = HEAP, .register_count = 1, .registers = {HEAP}};
	const struct mw_image image = {
		.read_some = read_some,
		.mappings = mappings,
		.mapping_count = MAPPINGS,
		.threads = &thread,
		.thread_count = 1,
		.consistent = true,
	};
	struct fuzz_input input = {bytes, size};
	size_t damages = fuzz_take(&input, 1) % 32;
	struct mw_blocks *blocks;

	memset(memory, 0, sizeof(memory));
	make(&input);
	for (size_t i = 0; i < damages && input.left; i++) {
		uint64_t where = fuzz_take(&input, 2);

		memory[where % (sizeof(memory) / 8)] = fuzz_odd(&input);
	}
	insist(!mw_blocks_create(&blocks));
	insist(!mw_walker_glibc.walk(&image, NULL, blocks));
	insist(!mw_blocks_finish(blocks));
	check(blocks);
	mw_blocks_destroy(blocks);
	return 0;
}
