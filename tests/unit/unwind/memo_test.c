// SPDX-License-Identifier: MIT
/* memo_test.c: a walk is known again only when all that it looked at is as it was. */
#include "unit.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 2048u
#define BASE  0x7000u

/* Memory: words at BASE; those from `end` on can't be read. */
static uint64_t words[WORDS];
static size_t end = WORDS;

static bool read_words(void *context, mw_addr addr, void *out, size_t size)
{
	size_t index = (size_t)(addr - BASE) / sizeof(uint64_t);

	(void)context;
	if (addr < BASE || index >= end)
		return false;
	memcpy(out, (const char *)&words[index] + (addr - BASE) % 8, size);
	return true;
}

static const struct mw_memory_view memory = {.read = read_words};
static const struct mw_arch *arch;

/*
 * An unwinder whose frames tell all that it looked at: each is made of one word, and the first of the registers that
 * `looks` has. What it looks at is set by the test.
 */
static struct {
	struct mw_unwinder base;
	unsigned walks, flushes, destroyed;
	uint32_t looks;
	size_t from, count, size;
} inner;

static void inner_walk(struct mw_unwinder *unwinder, const struct mw_regs *regs, const struct mw_memory_view *view,
		       struct mw_unwound_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	uint64_t sum = regs->pc ^ regs->gpr[arch->dwarf_sp];

	inner.walks++;
	unwinder->registers_used = inner.looks;
	unwinder->serial = 0;
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		if (inner.looks >> i & 1)
			sum = sum * 31 + regs->gpr[i];
	*cut = MW_STACK_COMPLETE;
	for (size_t i = 0; i < inner.count; i++) {
		uint64_t word = 0;

		if (!view->read(view->context, BASE + (inner.from + i) * 8, &word, inner.size))
			*cut = MW_STACK_BROKEN;
		sum = sum * 31 + word;
	}
	*count = capacity < 3 ? capacity : 3;
	for (uint32_t i = 0; i < *count; i++)
		frames[i] = (struct mw_unwound_frame){.pc = sum + i, .cfa = i, .module = i};
}

static void inner_flush(struct mw_unwinder *unwinder)
{
	(void)unwinder;
	inner.flushes++;
}

static void inner_destroy(struct mw_unwinder *unwinder)
{
	(void)unwinder;
	inner.destroyed++;
}

static struct mw_unwinder *make(void)
{
	static const struct mw_unwinder_ops ops = {
		.name = "inner", .walk = inner_walk, .flush = inner_flush, .destroy = inner_destroy};
	struct mw_unwinder *memo = NULL;

	memset(&inner, 0, sizeof(inner));
	inner.base.ops = &ops;
	inner.looks = 1u << 6 | 1u << 3;
	inner.from = 10;
	inner.count = 20;
	inner.size = 8;
	end = WORDS;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = i * 0x0101010101u;
	assert_null(mw_unwinder_memo(&inner.base, arch, &memo));
	return memo;
}

static struct mw_regs make_regs(void)
{
	struct mw_regs regs = {.pc = 0x401234};

	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		regs.gpr[i] = 0x100 + i;
	return regs;
}

/* A walk through the memo gives what a walk without it would; was the inner one asked? */
static bool walk_room(struct mw_unwinder *memo, const struct mw_regs *regs, uint32_t room, uint64_t *serial)
{
	struct mw_unwound_frame got[8], expected[8];
	uint32_t got_count = 99, expected_count;
	enum mw_stack_cut got_cut = MW_STACK_TRUNCATED, expected_cut;
	unsigned before = inner.walks;
	bool asked;

	memo->ops->walk(memo, regs, &memory, got, room, &got_count, &got_cut);
	asked = inner.walks != before;
	inner_walk(&inner.base, regs, &memory, expected, room, &expected_count, &expected_cut);
	assert_int_equal(got_count, expected_count);
	assert_int_equal(got_cut, expected_cut);
	for (uint32_t i = 0; i < got_count; i++) {
		assert_int_equal(got[i].pc, expected[i].pc);
		assert_int_equal(got[i].cfa, expected[i].cfa);
		assert_int_equal(got[i].module, expected[i].module);
	}
	assert_int_equal(memo->registers_used, inner.looks);
	*serial = memo->serial;
	return asked;
}

static bool walk(struct mw_unwinder *memo, const struct mw_regs *regs)
{
	uint64_t serial;

	return walk_room(memo, regs, 8, &serial);
}

static void knows_a_walk_again(void **state)
{
	struct mw_unwinder *memo = make();
	struct mw_regs regs = make_regs();
	uint64_t first, second, other;

	(void)state;
	assert_true(walk_room(memo, &regs, 8, &first));
	assert_false(walk_room(memo, &regs, 8, &second));
	assert_true(first != 0);
	assert_int_equal(first, second);
	/* What it did not look at may change. */
	words[9]++;
	words[30]++;
	regs.gpr[0]++;
	regs.gpr[12]++;
	regs.flags++;
	assert_false(walk_room(memo, &regs, 8, &second));
	assert_int_equal(first, second);
	/* Another depth is another walk. */
	assert_true(walk_room(memo, &regs, 2, &other));
	assert_true(other != first);
	assert_false(walk_room(memo, &regs, 8, &second));
	assert_int_equal(first, second);
	mw_unwinder_destroy(memo);
	assert_int_equal(inner.destroyed, 1);
}

static void every_word_counts(void **state)
{
	struct mw_unwinder *memo = make();
	struct mw_regs regs = make_regs();
	uint64_t serial, known;

	(void)state;
	assert_true(walk_room(memo, &regs, 8, &known));
	for (size_t i = 10; i < 30; i++) {
		for (unsigned bit = 0; bit < 64; bit += 21) {
			words[i] ^= (uint64_t)1 << bit;
			assert_true(walk_room(memo, &regs, 8, &serial));
			assert_true(serial != known);
			words[i] ^= (uint64_t)1 << bit;
		}
		/* Four of a kind are kept: by now the first is out, and comes in again. */
		walk_room(memo, &regs, 8, &known);
	}
	mw_unwinder_destroy(memo);
}

static void every_register_counts(void **state)
{
	(void)state;
	for (unsigned used = 0; used < MW_REG_COUNT; used++) {
		struct mw_unwinder *memo = make();
		struct mw_regs regs = make_regs();

		inner.looks = 1u << used;
		assert_true(walk(memo, &regs));
		for (unsigned i = 0; i < MW_REG_COUNT; i++) {
			struct mw_regs changed = regs;

			changed.gpr[i] ^= (uint64_t)1 << 63;
			/* The stack pointer always counts. */
			assert_int_equal(walk(memo, &changed), i == used || i == arch->dwarf_sp);
			assert_false(walk(memo, &changed));
		}
		regs.pc++;
		assert_true(walk(memo, &regs));
		mw_unwinder_destroy(memo);
	}
}

/* Far more walks than there is room for: old ones go, none is ever mistaken for another. */
static void evicts(void **state)
{
	struct mw_unwinder *memo = make();
	struct mw_regs regs = make_regs();
	uint64_t seed = 7;
	unsigned asked = 0;

	(void)state;
	for (unsigned i = 0; i < 30000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		regs.pc = 0x401000 + (seed >> 33) % 9000;
		regs.gpr[3] = seed >> 60;
		words[12] = seed >> 62;
		asked += walk(memo, &regs);
	}
	assert_true(asked > 4096);
	assert_true(asked < 30000);
	/* Five of one set by turns, in which four are kept. */
	for (unsigned i = 0; i < 50; i++) {
		words[12] = i % 5;
		walk(memo, &regs);
	}
	assert_false(walk(memo, &regs));
	mw_unwinder_destroy(memo);
}

/* Serials name results: never two by one number, even after all was forgotten. */
static void forgets_on_flush(void **state)
{
	struct mw_unwinder *memo = make();
	struct mw_regs regs = make_regs();
	uint64_t before, after;

	(void)state;
	assert_true(walk_room(memo, &regs, 8, &before));
	memo->ops->flush(memo);
	assert_int_equal(inner.flushes, 1);
	assert_true(walk_room(memo, &regs, 8, &after));
	assert_true(after > before);
	mw_unwinder_destroy(memo);
}

/* A failed read, or one that is no word, or too many: what can't be compared is not kept. */
static void keeps_no_walk_that_it_cannot_compare(void **state)
{
	struct mw_unwinder *memo = make();
	struct mw_regs regs = make_regs();
	uint64_t serial;

	(void)state;
	end = 25;
	for (int i = 0; i < 3; i++) {
		assert_true(walk_room(memo, &regs, 8, &serial));
		assert_int_equal(serial, 0);
	}
	end = WORDS;
	assert_true(walk_room(memo, &regs, 8, &serial));
	assert_true(serial != 0);
	/* Kept, but not to be read any more now. */
	end = 25;
	assert_true(walk(memo, &regs));
	end = WORDS;
	inner.size = 4;
	regs.pc++;
	assert_true(walk(memo, &regs));
	assert_true(walk(memo, &regs));
	inner.size = 8;
	inner.count = 700;
	regs.pc++;
	assert_true(walk(memo, &regs));
	assert_false(walk(memo, &regs));
	inner.count = 1500;
	regs.pc++;
	assert_true(walk(memo, &regs));
	assert_true(walk(memo, &regs));
	mw_unwinder_destroy(memo);
}

UNIT_GROUP(memo)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_a_walk_again),    cmocka_unit_test(every_word_counts),
		cmocka_unit_test(every_register_counts), cmocka_unit_test(evicts),
		cmocka_unit_test(forgets_on_flush),      cmocka_unit_test(keeps_no_walk_that_it_cannot_compare),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
