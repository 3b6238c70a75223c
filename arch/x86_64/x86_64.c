// SPDX-License-Identifier: MIT
/* x86_64.c: the x86-64 vtable and its calling convention (memwatch/arch.h). */
#include "arch/x86_64/x86_64.h"

#include <elf.h>
#include <string.h>

#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#define CALL_SHORTEST 2 /* call rax */
#define CALL_LONGEST  7 /* call [rax + rax + disp32] */

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
	.is_kept_pc = mw_x86_is_kept_pc,
	.is_kept_in_place = mw_x86_is_kept_in_place,
	.is_interrupted_pc = mw_x86_is_interrupted_pc,
	.kept_altstack = mw_x86_kept_altstack,
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
