// SPDX-License-Identifier: MIT
/* x86_64.c: the x86-64 vtable and its calling convention (memwatch/arch.h). */
#include "arch/x86_64/x86_64.h"

#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#include <elf.h>
#include <string.h>

#define CALL_SHORTEST 2 /* call rax */
#define CALL_LONGEST  7 /* call [rax + rax + disp32] */

/*
 * Registers as a signal's frame keeps them, or a context that was made of one, told from words that merely lie about.
 * The kernel's struct sigcontext, by words from the program counter on:
 *
 *     -1 stack pointer | 0 program counter | 1 flags | 2 cs, gs, fs, ss: 16 bits each | 3 error code | 4 trap number |
 *     5 mask | 6 cr2 | 7 pointer to what the coprocessor holds
 *
 * getcontext() of a C library fills in the pointer, which leads into the context itself, and nothing of what lies
 * between.
 */
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

static bool is_interrupted_pc(const uint64_t *words, size_t count, size_t i)
{
	return count - i > SEGMENTS && is_kernels(&words[i]) && is_address(words[i]) && is_address(words[i - 1]);
}

static bool is_kept_pc(mw_addr at, const uint64_t *words, size_t count, size_t i)
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
static bool is_kept_in_place(mw_addr at, const uint64_t *words, size_t count, size_t i)
{
	return count - i <= COPROCESSOR || words[i + COPROCESSOR] - at < IN_FRAME;
}

/* Of a ucontext_t, uc_stack comes right before the 16 general registers that the program counter follows. */
static bool kept_altstack(const uint64_t below[MW_KEPT_BELOW], mw_addr *start, uint64_t *size)
{
	const uint64_t *stack = &below[MW_KEPT_BELOW - 19];

	*start = stack[0];
	*size = stack[2];
	/* In a frame that is partly overwritten there may be anything; without a stack (SS_DISABLE) there is nothing.
	 */
	return !((uint32_t)stack[1] & ~ON_STACK) && is_address(*start) && *size > 0 && *size <= ALTSTACK_MOST;
}

/* What 32 bits of displacement reach from anywhere in a trampoline, and from anywhere in the instructions it is made
 * for. */
#define TRAMPOLINE_REACH ((UINT64_C(1) << 31) - 4096)

static uint64_t argument(const struct mw_regs *regs, unsigned index)
{
	static const uint8_t order[] = {MW_X86_RDI, MW_X86_RSI, MW_X86_RDX, MW_X86_RCX, MW_X86_R8, MW_X86_R8 + 1};

	return index < sizeof(order) ? regs->gpr[order[index]] : 0;
}

static uint64_t result(const struct mw_regs *regs)
{
	return regs->gpr[MW_X86_RAX];
}

static void leave(struct mw_regs *regs, mw_addr ret, uint64_t value)
{
	regs->gpr[MW_X86_RAX] = value;
	regs->gpr[MW_X86_RSP] += 8;
	regs->pc = ret;
}

/* The length of the instruction `ff /2` that starts at `code`, without prefixes; 0 where it is another. */
static size_t indirect_call_length(const uint8_t *code, size_t size)
{
	uint8_t mod, rm;
	size_t length = 2;

	if (size < 2 || code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return 0;
	mod = code[1] >> 6;
	rm = code[1] & 7;
	if (mod == 3)
		return length;
	if (rm == 4) {
		if (size < 3)
			return 0;
		length++;
		if (mod == 0 && (code[2] & 7) == 5)
			length += 4;
	} else if (mod == 0 && rm == 5) {
		length += 4;
	}
	if (mod == 1)
		length += 1;
	else if (mod == 2)
		length += 4;
	return length;
}

/* Prefixes (REX, bnd, notrack) may stand before what is found here: they change nothing of its length. */
static bool is_call_before(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size;

	if (size >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t length = CALL_SHORTEST; length <= CALL_LONGEST && length <= size; length++) {
		if (indirect_call_length(end - length, length) == length)
			return true;
	}
	return false;
}

/* mov $15,%rax (in 7 bytes or in 5); syscall: rt_sigreturn, in every C library. */
static bool is_signal_return(const uint8_t *bytes, size_t size)
{
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return (size >= sizeof(wide) && memcmp(bytes, wide, sizeof(wide)) == 0) ||
	       (size >= sizeof(narrow) && memcmp(bytes, narrow, sizeof(narrow)) == 0);
}

static void spare(struct mw_regs *regs, uint64_t first, uint64_t second)
{
	regs->gpr[MW_X86_RCX] = first;
	regs->gpr[MW_X86_R8 + 3] = second; /* r11 */
}

const struct mw_arch mw_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.breakpoint = {0xcc},
	.breakpoint_length = 1,
	.breakpoint_advance = 1,
	.dwarf_sp = MW_X86_RSP,
	.dwarf_fp = MW_X86_RBP,
	.argument = argument,
	.result = result,
	.leave = leave,
	.plan = mw_x86_plan,
	.emulate = mw_x86_emulate,
	.memory_address = mw_x86_memory_address,
	.relocate = mw_x86_relocate,
	.ways_out = mw_x86_ways_out,
	.frame_at = mw_x86_frame_at,
	.call_target = mw_x86_call_target,
	.is_signal_return = is_signal_return,
	.is_kept_pc = is_kept_pc,
	.is_kept_in_place = is_kept_in_place,
	.is_interrupted_pc = is_interrupted_pc,
	.kept_altstack = kept_altstack,
	.is_call_before = is_call_before,
	.inspect = mw_x86_inspect,
	.mask_set = mw_x86_mask_set,
	.mask_constant = mw_x86_mask_constant,
	.action_call = mw_x86_action_call,
	.action_jump = mw_x86_action_jump,
	.spare = spare,
	.search = mw_x86_search,
	.detour = mw_x86_detour,
	.trampoline = mw_x86_trampoline,
	.detour_jump = mw_x86_detour_jump,
	.trampoline_reach = TRAMPOLINE_REACH,
};
