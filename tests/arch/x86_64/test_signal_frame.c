// SPDX-License-Identifier: MIT
/* test_signal_frame.c: where a signal has interrupted is told from words that look like it. */
#include "unit.h"

#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include <memwatch/arch.h>

#define PC         UINT64_C(0x7f255da1b320)
#define AUTODISARM (UINT32_C(1) << 31) /* which not all C libraries know */
#define WORDS      (sizeof(ucontext_t) / sizeof(uint64_t))

static const struct mw_arch *arch;
static ucontext_t other, back;

/* Which word of a context is the pc. */
static size_t pc_of(const ucontext_t *context)
{
	return (size_t)((const uint64_t *)&context->uc_mcontext.gregs[REG_RIP] -
			(const uint64_t *)(const void *)context);
}

static bool is_kept(const ucontext_t *context, size_t count)
{
	const uint64_t *words = (const uint64_t *)(const void *)context;
	size_t i = pc_of(context);

	return arch->is_kept_pc((mw_addr)(uintptr_t)&words[i], words, i + count, i);
}

static bool is_in_place(const ucontext_t *context, size_t count)
{
	const uint64_t *words = (const uint64_t *)(const void *)context;
	size_t i = pc_of(context);

	return arch->is_kept_in_place((mw_addr)(uintptr_t)&words[i], words, i + count, i);
}

static struct {
	ucontext_t copy;
	bool kept, in_place, stays;
	mw_addr stack;
	uint64_t size;
} seen;

static void on_signal(int number, siginfo_t *info, void *context)
{
	const uint64_t *words = context;
	size_t i = pc_of(context);

	(void)number, (void)info;
	/* The kernel's frame is no longer than it has to be. */
	seen.kept = arch->is_kept_pc((mw_addr)(uintptr_t)&words[i], words, i + 8, i);
	seen.in_place = arch->is_kept_in_place((mw_addr)(uintptr_t)&words[i], words, i + 8, i);
	seen.stays = arch->kept_altstack(&words[i - MW_KEPT_BELOW], &seen.stack, &seen.size);
	memcpy(&seen.copy, context, 40 + 23 * 8 + 8);
}

static void test_frame_of_the_kernel(void **state)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_true(seen.kept);
	/* A program may have put it elsewhere. */
	assert_true(is_kept(&seen.copy, 8));
	assert_true(seen.in_place);
	assert_false(is_in_place(&seen.copy, 8));
	/* Nothing is known of what is not there. */
	assert_true(is_in_place(&seen.copy, 7));
	seen.copy.uc_mcontext.gregs[REG_RSP] = 0;
	assert_false(is_kept(&seen.copy, 8));
}

static void test_alternate_stack(void **state)
{
	static char stack[32768] __attribute__((aligned(16)));
	stack_t given = {.ss_sp = stack, .ss_size = sizeof(stack)}, before;

	(void)state;
	assert_int_equal(sigaltstack(&given, &before), 0);
	test_frame_of_the_kernel(state);
	assert_true(seen.stays);
	assert_int_equal(seen.stack, (uintptr_t)stack);
	assert_int_equal(seen.size, sizeof(stack));
	given.ss_flags = (int)AUTODISARM;
	assert_int_equal(sigaltstack(&given, NULL), 0);
	test_frame_of_the_kernel(state);
	assert_false(seen.stays);
	assert_int_equal(sigaltstack(&before, NULL), 0);
	test_frame_of_the_kernel(state);
	assert_int_equal(seen.size, before.ss_flags & SS_DISABLE ? 0 : before.ss_size);
}

/* Of a frame that is partly overwritten, and of one without an alternate stack. */
static void test_no_altstack(void **state)
{
	static const uint64_t kept[][3] = {
		{0, 2, 0},
		{0, 0, UINT64_MAX},
		{0x7ffd00001000, 0x7ffd00001000, 0x7ffd00002000},
		{0x7ffd00001000, 0, 0x7ffd00002000},
		{8, 0, 0x7fff},
		{UINT64_MAX, 0, 0x7fff},
	};
	uint64_t below[MW_KEPT_BELOW] = {0x7ffd00001000, UINT64_C(0x5500000001), 0x8000}, size;
	mw_addr start;

	(void)state;
	assert_true(arch->kept_altstack(below, &start, &size));
	assert_int_equal(start, 0x7ffd00001000);
	assert_int_equal(size, 0x8000);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		memcpy(below, kept[i], sizeof(kept[i]));
		assert_false(arch->kept_altstack(below, &start, &size));
	}
}

static void make_context(ucontext_t *context, int fill)
{
	memset(context, fill, sizeof(*context));
	assert_int_equal(getcontext(context), 0);
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)PC;
}

/* Contexts that the C library has made, and a program has put a pc into. */
static void test_hand_made(void **state)
{
	ucontext_t zeroed, filled, copy;

	(void)state;
	make_context(&zeroed, 0);
	assert_true(is_kept(&zeroed, 8));
	make_context(&filled, 0x5a);
	assert_true(is_kept(&filled, 8));
	copy = zeroed;
	assert_true(is_kept(&copy, 8));
}

static void elsewhere(void)
{
	(void)swapcontext(&other, &back);
}

static void test_switched(void **state)
{
	static char stack[16384] __attribute__((aligned(16)));

	(void)state;
	memset(&other, 0x77, sizeof(other));
	assert_int_equal(getcontext(&other), 0);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof(stack);
	makecontext(&other, elsewhere, 0);
	assert_true(is_kept(&other, 8));
	assert_int_equal(swapcontext(&back, &other), 0);
	assert_true(is_kept(&other, 8));
	assert_true(is_kept(&back, 8));
	assert_true(is_in_place(&other, 8));
	assert_true(is_in_place(&back, 8));
}

/* As they were found on stacks of node's and others. */
static void test_words_that_lie_about(void **state)
{
	static const uint64_t node[] = {0x2a9b2c50,     PC,        0,        0, 0x7f251c513b00, 0xe00, 0x2aa23bc0,
					0x7ffd12ecfd50, 0x566fb90, 0x566fa00};
	uint64_t words[10];

	(void)state;
	assert_false(arch->is_kept_pc(0x7ffd12ecfce8, node, 10, 1));
	memset(words, 0, sizeof(words));
	words[1] = PC;
	assert_false(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1));
	words[0] = 0x7ffd12ecfd00;
	assert_false(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1));
	/* Each of what a frame of the kernel's has. */
	words[2] = 0x246;
	words[3] = UINT64_C(0x002b000000000033);
	words[8] = 0x7ffd12ecff00;
	assert_true(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1));
	words[2] = 0x10a93;
	assert_true(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1));
	for (unsigned bit = 0; bit < 64; bit++) {
		static const uint64_t free_bits = 0x3d7dd5;

		words[2] = UINT64_C(0x246) ^ UINT64_C(1) << bit;
		assert_int_equal(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1), free_bits >> bit & 1);
	}
	words[2] = 0x246;
	words[3] = UINT64_C(0x002b000000000023);
	assert_false(arch->is_kept_pc(0x7ffd12ecfce8, words, 10, 1));
}

/* Where words are not there, nothing is excluded. */
static void test_edges(void **state)
{
	uint64_t words[9] = {1, PC};

	(void)state;
	assert_false(arch->is_kept_pc(0x1000, words, 9, 1));
	assert_false(arch->is_kept_pc(0x1000, words, 2, 1));
	words[0] = 0x7ffd12ecfd00;
	for (size_t count = 2; count <= 8; count++)
		assert_true(arch->is_kept_pc(0x1000, words, count, 1));
	assert_false(arch->is_kept_pc(0x1000, words, 9, 1));
	assert_true(arch->is_kept_pc(0x1000, words + 1, 7, 0));
	assert_false(arch->is_kept_pc(0x1000, words + 1, 8, 0));
}

UNIT_GROUP(signal_frame)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_of_the_kernel),
		cmocka_unit_test(test_alternate_stack),
		cmocka_unit_test(test_no_altstack),
		cmocka_unit_test(test_hand_made),
		cmocka_unit_test(test_switched),
		cmocka_unit_test(test_words_that_lie_about),
		cmocka_unit_test(test_edges),
	};

	arch = mw_arch_find(EM_X86_64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
