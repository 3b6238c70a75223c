// SPDX-License-Identifier: MIT
/*
 * signal_frame.c: registers as a signal's frame keeps them, or a context that was made of one, told from words that
 * merely lie about (mw_arch.is_kept_pc). The kernel's struct sigcontext, by words from the program counter on:
 *
 *     -1 stack pointer | 0 program counter | 1 flags | 2 cs, gs, fs, ss: 16 bits each | 3 error code | 4 trap number |
 *     5 mask | 6 cr2 | 7 pointer to what the coprocessor holds
 *
 * getcontext() of a C library fills in the pointer, which leads into the context itself, and nothing of what lies
 * between.
 */
#include "arch/x86_64/ops.h"

enum { SP = -1, FLAGS = 1, SEGMENTS = 2, CR2 = 6, COPROCESSOR = 7 };

#define FLAGS_SET      UINT64_C(0x202)       /* bit 1 always is, and interrupts are on */
#define FLAGS_CLEAR    (~UINT64_C(0x3d7fd7)) /* reserved ones, and virtual 8086 mode */
#define CODE_SEGMENT   UINT64_C(0x33)        /* of programs of 64 bits; nothing is kept in gs and fs */
#define SEGMENTS_KNOWN UINT64_C(0x0000ffffffffffff)
#define ADDRESSES      (UINT64_C(1) << 56) /* those of programs are less */
#define ON_STACK       UINT32_C(1)         /* SS_ONSTACK of sigaltstack(2): the only flag of one that stays */
#define ALTSTACK_MOST  (UINT64_C(1) << 30) /* bytes: a larger one is something else */
#define IN_FRAME       4096u /* from the program counter in a signal's frame to the coprocessor's state, at most */
#define INTO_GLIBC     256u /* bytes from the program counter in a glibc's ucontext_t to its room for the coprocessor */

static bool is_address(uint64_t word)
{
	return word >= 4096 && word < ADDRESSES;
}

/* None of what only the kernel fills in was. */
static bool is_blank(const uint64_t *word)
{
	for (int i = FLAGS; i <= CR2; i++)
		if (word[i])
			return false;
	return true;
}

static bool is_kernels(const uint64_t *word)
{
	return (word[FLAGS] & FLAGS_SET) == FLAGS_SET && !(word[FLAGS] & FLAGS_CLEAR) &&
	       (word[SEGMENTS] & SEGMENTS_KNOWN) == CODE_SEGMENT;
}

bool mw_x86_is_interrupted_pc(const uint64_t *words, size_t count, size_t i)
{
	return count - i > SEGMENTS && is_kernels(&words[i]) && is_address(words[i]) && is_address(words[i - 1]);
}

bool mw_x86_is_kept_pc(mw_addr at, const uint64_t *words, size_t count, size_t i)
{
	const uint64_t *word = &words[i];

	/* What can't be seen may be anything. */
	if (i > 0 && !is_address(word[SP]))
		return false;
	if (count - i <= COPROCESSOR)
		return true;
	if (is_kernels(word))
		return true;
	if (word[COPROCESSOR] == at + INTO_GLIBC)
		return true;
	return is_blank(word) && is_address(word[COPROCESSOR]) && word[COPROCESSOR] % 8 == 0;
}

/* The coprocessor's state follows: in a ucontext_t of glibc's, or behind the signal's information, aligned. */
bool mw_x86_is_kept_in_place(mw_addr at, const uint64_t *words, size_t count, size_t i)
{
	return count - i <= COPROCESSOR || words[i + COPROCESSOR] - at < IN_FRAME;
}

/* Of a ucontext_t, uc_stack comes right before the 16 general registers that the program counter follows. */
bool mw_x86_kept_altstack(const uint64_t below[MW_KEPT_BELOW], mw_addr *start, uint64_t *size)
{
	const uint64_t *stack = &below[MW_KEPT_BELOW - 19];

	*start = stack[0];
	*size = stack[2];
	/* In a frame that is partly overwritten there may be anything; without a stack (SS_DISABLE) there is nothing.
	 */
	return !((uint32_t)stack[1] & ~ON_STACK) && is_address(*start) && *size > 0 && *size <= ALTSTACK_MOST;
}
