// SPDX-License-Identifier: MIT
/* jump_interrupted_test.c: a signal's frame is found wherever in the recorder's code the signal came, and what merely looks
 * like the recorder's code is none. */
#include "engine/jump/jump.h"
#include "unit.h"

#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#define IMAGE UINT64_C(0x400000000000)
#define WORDS ((offsetof(ucontext_t, uc_mcontext) + sizeof(((ucontext_t *)0)->uc_mcontext)) / sizeof(uint64_t))

static struct jump_process process;
static uint64_t frame[WORDS]; /* as the kernel has laid it */
static size_t pc_at;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	memcpy(frame, context, sizeof(frame));
}

static int setup(void **state)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, before;

	(void)state;
	process = (struct jump_process){
		.recorder.image = IMAGE, .recorder.image_size = mw_stub_image_size, .recorder.code = mw_stub_image};
	process.survey.arch = mw_arch_find(EM_X86_64);
	pc_at = offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) / sizeof(uint64_t);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	return sigaction(SIGUSR1, &before, NULL);
}

static bool is_found(const uint64_t *words, uint64_t pc)
{
	uint64_t copy[WORDS];

	memcpy(copy, words, sizeof(copy));
	copy[pc_at] = pc;
	return jump_interrupted_in_ours(&process, (mw_addr)(uintptr_t)copy, copy, WORDS, pc_at);
}

/* Behind a call, too: it has returned just then. */
static void test_everywhere(void **state)
{
	const struct mw_stub_header *header = jump_header(&process);
	size_t behind_calls = 0;

	(void)state;
	for (uint64_t into = sizeof(*header) + 8; into < header->code_end; into++) {
		if (!is_found(frame, IMAGE + into))
			fail_msg("at %#llx of the image", (unsigned long long)into);
		behind_calls += process.survey.arch->is_call_before(process.recorder.code + into - 8, 8);
	}
	assert_true(behind_calls > 0);
	assert_false(is_found(frame, IMAGE - 1));
	assert_false(is_found(frame, IMAGE + process.recorder.image_size));
}

/* A return address beside words that are no frame. */
static void test_return_addresses(void **state)
{
	const struct mw_stub_header *header = jump_header(&process);
	uint64_t words[WORDS];

	(void)state;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = (uint64_t)(uintptr_t)&words[i];
	for (uint64_t into = sizeof(*header) + 8; into < header->code_end; into++)
		assert_false(is_found(words, IMAGE + into));
}

UNIT_GROUP(jump_interrupted)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_everywhere), cmocka_unit_test(test_return_addresses)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
