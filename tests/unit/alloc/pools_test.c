// SPDX-License-Identifier: MIT
/* pools_test.c: whose blocks of pools are, in memory made up here: as each version of PostgreSQL lays it out, and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc/pools.h"
#include "unit.h"

#define CONSTANT UINT64_C(0x100000) /* a page of a file */
#define HEAP     UINT64_C(0x200000)
#define PAGE     4096u
#define METHODS  CONSTANT
#define TEXTS    (CONSTANT + 256)

/* Where blocks are. */
#define TOP   HEAP
#define INNER (HEAP + 0x400)
#define BLOCK (HEAP + 0x800)
#define SIZE  UINT64_C(0x100)

static struct {
	uint64_t constant[PAGE / 8], heap[PAGE / 8];
	char *texts;
	struct mw_pools *pools;
} rig;

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	mw_addr start = addr >= HEAP ? HEAP : CONSTANT;

	(void)context;
	if (addr < start || addr - start >= PAGE)
		return 0;
	if (size > PAGE - (addr - start))
		size = PAGE - (addr - start);
	memcpy(out, (char *)(start == HEAP ? rig.heap : rig.constant) + (addr - start), size);
	return size;
}

static bool is_constant(void *context, mw_addr addr)
{
	(void)context;
	return addr >= CONSTANT && addr < CONSTANT + PAGE;
}

static const struct mw_pool_memory memory = {read_some, is_constant, NULL};

static uint64_t *at(mw_addr addr)
{
	return &rig.heap[(addr - HEAP) / 8];
}

static mw_addr constant_text(const char *text)
{
	mw_addr addr = TEXTS + (uint64_t)(rig.texts - (char *)&rig.constant[256 / 8]);

	strcpy(rig.texts, text);
	rig.texts += strlen(text) + 1;
	return addr;
}

static void begin(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.texts = (char *)&rig.constant[256 / 8];
	rig.constant[0] = CONSTANT + 128;
	assert_null(mw_pools_create(&memory, &rig.pools));
}

static void end(void)
{
	mw_pools_destroy(rig.pools);
}

/* A context, as 13 and later have it, or 12, which does not count bytes. */
static void put_context(mw_addr addr, bool counts, mw_addr parent, mw_addr name, mw_addr ident)
{
	uint64_t *words = at(addr);

	*words++ = 451 | UINT64_C(0xabcd000000000000);
	if (counts)
		*words++ = 8192;
	words[0] = METHODS;
	words[1] = parent;
	words[5] = name;
	words[6] = ident;
}

static void put_contexts(bool counts)
{
	put_context(TOP, counts, 0, constant_text("TopMemoryContext"), 0);
	put_context(INNER, counts, TOP, constant_text("ExecutorState"), 0);
}

static const struct mw_pool_user *ask(const char *pool, mw_addr block, uint64_t size, uint64_t slack)
{
	const struct mw_pool *row = mw_pool_rows;

	while (strcmp(row->name, pool) != 0)
		row++;
	return mw_pool_user_of(row, rig.pools, block, size, slack);
}

static const struct mw_pool_user *postgres(mw_addr block)
{
	return ask("PostgreSQL's memory contexts", block, SIZE, 0);
}

static void is_inner(const struct mw_pool_user *user)
{
	assert_non_null(user);
	assert_string_equal(user->name, "ExecutorState");
	assert_string_equal(user->part_of->name, "TopMemoryContext");
	assert_null(user->part_of->part_of);
}

/* --- PostgreSQL ------------------------------------------------------------------------------------------------------ */

static void names_versions(void **state)
{
	/* Words of a block's head, and of what its context has at byte 80: 0 ends them, 1 is the context, 2 the block, 3 its end. */
	static const struct {
		uint64_t head[10];
		bool counts;
		size_t slab_word; /* of the context: has the size */
	} blocks[] = {
		{{1, 9, 9, 9, 3}, false, 0},             /* AllocSet of 12 */
		{{1, 9, 9, 9, 3}, true, 0},              /* … of 13 to 17 */
		{{9, 9, 9, 9, 9, 3, 9, 2, 1}, false, 0}, /* Generation of 12 */
		{{9, 9, 9, 9, 9, 3, 9, 2, 1}, true, 0},  /* … of 13 to 15 */
		{{9, 9, 1, 9, 9, 9, 3}, true, 0},        /* … of 16 and 17 */
		{{9, 9, 9, 2, 1}, false, 11},            /* Slab of 12 */
		{{9, 9, 9, 2, 1}, true, 12},             /* … of 13 to 15 */
		{{1, 9, 9, 9, 9}, true, 11},             /* … of 16 and 17 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		const uint64_t values[] = {0, INNER, BLOCK, BLOCK + SIZE};

		begin();
		put_contexts(blocks[i].counts);
		for (size_t j = 0; j < 10; j++)
			at(BLOCK)[j] = blocks[i].head[j] < 4 ? values[blocks[i].head[j]] : blocks[i].head[j];
		if (blocks[i].slab_word)
			at(INNER)[blocks[i].slab_word] = SIZE;
		is_inner(postgres(BLOCK));
		is_inner(postgres(INNER));
		/* Of another size it is another block. */
		assert_null(ask("PostgreSQL's memory contexts", BLOCK, SIZE - 8, 0));
		assert_null(ask("PostgreSQL's memory contexts", BLOCK, SIZE + 8, 0));
		is_inner(ask("PostgreSQL's memory contexts", BLOCK, SIZE + 8, 8));
		end();
	}
}

static void put_block(mw_addr context)
{
	at(BLOCK)[0] = context;
	at(BLOCK)[4] = BLOCK + SIZE;
}

static void knows_identifiers(void **state)
{
	const struct mw_pool_user *user;

	(void)state;
	begin();
	put_contexts(true);
	put_context(INNER, true, TOP, constant_text("dynahash"), constant_text("Portal hash"));
	put_block(INNER);
	user = postgres(BLOCK);
	assert_string_equal(user->name, "Portal hash");
	assert_string_equal(user->example, "");
	end();
	begin();
	put_contexts(true);
	put_context(INNER, true, TOP, constant_text("CachedPlanSource"), HEAP + 0xc00);
	strcpy((char *)at(HEAP + 0xc00), "SELECT 1\n\tFROM x");
	memset((char *)at(HEAP + 0xc00) + 16, 'y', 500);
	put_block(INNER);
	user = postgres(BLOCK);
	assert_string_equal(user->name, "CachedPlanSource");
	assert_int_equal(strlen(user->example), MW_POOL_NAME_MAX - 1);
	assert_memory_equal(user->example, "SELECT 1  FROM x", 15);
	assert_string_equal(user->example + MW_POOL_NAME_MAX - 4, "...");
	end();
}

static void knows_deleted(void **state)
{
	(void)state;
	begin();
	put_contexts(true);
	at(INNER)[3] = 0;
	put_block(INNER);
	assert_string_equal(postgres(BLOCK)->name, "(deleted, kept for the next)");
	end();
}

/* Each of these words, one at a time, is what no context has. */
static void names_none(void **state)
{
	static const struct {
		mw_addr addr;
		size_t word;
		uint64_t value;
	} wrong[] = {
		{BLOCK, 0, 0},         {BLOCK, 0, INNER + 4}, {BLOCK, 0, BLOCK},      {BLOCK, 0, 0x10},
		{BLOCK, 4, BLOCK - 8}, {INNER, 0, 3},         {INNER, 0, UINT64_MAX}, {INNER, 2, HEAP},
		{INNER, 2, TEXTS - 8}, {INNER, 3, INNER},     {INNER, 3, BLOCK},      {INNER, 3, 8},
		{INNER, 7, 0},         {INNER, 7, HEAP},      {INNER, 7, CONSTANT},   {TOP, 7, METHODS + 64},
		{TOP, 0, 0},           {TOP, 3, INNER},       {INNER, 7, UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin();
		put_contexts(true);
		put_block(INNER);
		at(wrong[i].addr)[wrong[i].word] = wrong[i].value;
		assert_null(postgres(BLOCK));
		assert_null(postgres(BLOCK));
		end();
	}
	begin();
	assert_null(postgres(HEAP + PAGE - 16));
	assert_null(postgres(HEAP + PAGE));
	assert_null(postgres(1));
	end();
}

/* --- talloc ---------------------------------------------------------------------------------------------------------- */

#define MAGIC 0x12345670u

static void put_chunk(mw_addr addr, mw_addr next, mw_addr before, mw_addr parent, mw_addr child, mw_addr name,
		      uint64_t size)
{
	const uint64_t words[] = {MAGIC, next, before, parent, child, 0, 0, name, size};

	memcpy(at(addr), words, sizeof(words));
}

static const struct mw_pool_user *talloc(mw_addr block, uint64_t size)
{
	return ask("talloc's chunks", block, size, 0);
}

static void put_chunks(void)
{
	mw_addr name = constant_text("struct server"), session = constant_text("struct session");

	put_chunk(TOP, 0, 0, 0, INNER, name, 32);
	put_chunk(INNER, BLOCK, 0, TOP, 0, constant_text("char"), 100);
	put_chunk(BLOCK, 0, INNER, 0, 0, session, SIZE - 96);
}

static void names_chunks(void **state)
{
	const struct mw_pool_user *user;

	(void)state;
	begin();
	put_chunks();
	user = talloc(BLOCK, SIZE);
	assert_non_null(user);
	assert_string_equal(user->name, "struct session");
	assert_string_equal(user->part_of->name, "struct server");
	assert_null(user->part_of->part_of);
	assert_string_equal(talloc(INNER, 196)->name, "char");
	assert_ptr_equal(talloc(INNER, 196)->part_of, user->part_of);
	assert_ptr_equal(talloc(TOP, 128), user->part_of);
	end();
	/* A string, and a pool. */
	begin();
	put_chunks();
	at(INNER)[7] = INNER + 96;
	assert_string_equal(talloc(INNER, 196)->name, "(string)");
	end();
	begin();
	put_chunks();
	memmove(at(BLOCK + 32), at(BLOCK), 72);
	memset(at(BLOCK), 0xff, 32);
	at(BLOCK + 32)[0] |= 4;
	at(BLOCK)[2] = SIZE;
	at(INNER)[1] = BLOCK + 32;
	assert_string_equal(talloc(BLOCK, SIZE + 128)->name, "struct session");
	end();
}

static void names_no_chunks(void **state)
{
	static const struct {
		mw_addr addr;
		size_t word;
		uint64_t value;
	} wrong[] = {
		{BLOCK, 0, MAGIC + 1}, {BLOCK, 0, 0},    {BLOCK, 0, MAGIC + 16}, {BLOCK, 1, TOP},   {BLOCK, 2, TOP},
		{BLOCK, 2, BLOCK},     {BLOCK, 2, 8},    {INNER, 1, 0},          {INNER, 0, 0},     {BLOCK, 7, 1},
		{BLOCK, 7, TEXTS - 8}, {BLOCK, 8, SIZE}, {BLOCK, 8, UINT64_MAX}, {BLOCK, 3, INNER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin();
		put_chunks();
		at(wrong[i].addr)[wrong[i].word] = wrong[i].value;
		assert_null(talloc(BLOCK, SIZE));
		end();
	}
	/* A ring of siblings, and one of parents: each leads to the next. */
	begin();
	put_chunks();
	at(INNER)[2] = BLOCK;
	at(BLOCK)[1] = INNER;
	assert_null(talloc(BLOCK, SIZE)->part_of);
	end();
	begin();
	put_chunks();
	at(TOP)[3] = INNER;
	at(INNER)[4] = TOP;
	at(INNER)[3] = TOP;
	assert_null(talloc(TOP, 128));
	end();
}

UNIT_GROUP(pools)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_versions), cmocka_unit_test(knows_identifiers),
		cmocka_unit_test(knows_deleted),  cmocka_unit_test(names_none),
		cmocka_unit_test(names_chunks),   cmocka_unit_test(names_no_chunks),
	};

	return cmocka_run_group_tests_name("pools", tests, NULL, NULL);
}
