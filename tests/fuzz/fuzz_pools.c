// SPDX-License-Identifier: MIT
/*
 * fuzz_pools: libFuzzer's bytes as memory with blocks of pools: a page of constants, and one of contexts and chunks that are good
 * before some of their words are spoilt. Every fourth read something changes. Users' texts are printable, and chains of them end.
 */
#include "fuzz.h"

#include "alloc/pools.h"

#define PAGE     UINT64_C(4096)
#define CONSTANT UINT64_C(0x10000)
#define HEAP     UINT64_C(0x11000)
#define SIZE     UINT64_C(0x100)

static struct {
	uint64_t words[2 * 4096 / 8];
	struct fuzz_input changes;
	unsigned reads;
} rig;

static void change(struct fuzz_input *input)
{
	uint64_t where = fuzz_take(input, 2), value = fuzz_odd(input);

	/* An address is more likely to lead somewhere. */
	rig.words[where % (sizeof(rig.words) / 8)] = where & 0x8000 ? CONSTANT + value % (2 * PAGE) : value;
}

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context;
	if (++rig.reads % 4 == 0 && rig.changes.left)
		change(&rig.changes);
	if (addr < CONSTANT || addr >= CONSTANT + 2 * PAGE)
		return 0;
	if (size > CONSTANT + 2 * PAGE - addr)
		size = (size_t)(CONSTANT + 2 * PAGE - addr);
	memcpy(out, (const char *)rig.words + (addr - CONSTANT), size);
	return size;
}

static bool is_constant(void *context, mw_addr addr)
{
	(void)context;
	return addr >= CONSTANT && addr < HEAP;
}

/* Blocks of SIZE bytes, each a context or a chunk below the one before, and a block that leads to it. */
static void make_good(void)
{
	static const char name[] = "TopMemoryContext";

	memset(&rig, 0, sizeof(rig));
	memcpy(&rig.words[16], name, sizeof(name));
	rig.words[0] = CONSTANT;
	for (uint64_t i = 0; i < PAGE / SIZE; i++) {
		uint64_t *block = &rig.words[(PAGE + i * SIZE) / 8], at = HEAP + i * SIZE;
		const uint64_t context[] = {450, 0, CONSTANT, i > 1 ? at - 2 * SIZE : 0, 0, 0, 0, CONSTANT + 128, 0};
		const uint64_t chunk[] = {0x1230, 0, 0, at - SIZE, 0, 0, 0, CONSTANT + 128, SIZE - 96};

		memcpy(block, i < 8 ? context : chunk, sizeof(context));
		if (i % 2 && i < 8) {
			block[0] = at - SIZE;
			block[4] = at + SIZE;
		}
		if (i > 8)
			(block - SIZE / 8)[4] = at;
	}
	rig.words[(PAGE + 8 * SIZE) / 8 + 3] = 0;
}

static void check(const struct mw_pool_user *user)
{
	for (unsigned depth = 0; user; user = user->part_of) {
		insist(++depth < 5000 && *user->name && strlen(user->name) < MW_POOL_NAME_MAX &&
		       strlen(user->example) < MW_POOL_NAME_MAX);
		for (const char *c = user->name; *c; c++)
			insist(*c >= ' ' && *c <= '~');
		for (const char *c = user->example; *c; c++)
			insist(*c >= ' ' && *c <= '~');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct mw_pool_memory memory = {read_some, is_constant, NULL};
	struct fuzz_input input = {bytes, size};
	struct mw_pools *pools = NULL;
	size_t words = fuzz_take(&input, 1);

	make_good();
	for (size_t i = 0; i < words && input.left; i++)
		change(&input);
	rig.changes = input;
	insist(!mw_pools_create(&memory, &pools));
	for (const struct mw_pool *pool = mw_pool_rows; pool->name; pool++)
		for (uint64_t i = 0; i < PAGE / SIZE; i++)
			check(mw_pool_user_of(pool, pools, HEAP + i * SIZE, SIZE, i % 4 * 8));
	mw_pools_destroy(pools);
	return 0;
}
