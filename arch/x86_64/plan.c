// SPDX-License-Identifier: MIT
/* plan.c: can this instruction be emulated, or run as a copy elsewhere? (memwatch/arch.h, plan) */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/ops.h"

#include <string.h>

/*
 * What a copy elsewhere would do wrong. Known by the bytes, not by capstone's names, which differ between its versions.
 * Other branches relative to pc, and what is privileged, are found by their group.
 */
static const struct {
	uint8_t escape; /* 0x0f before the opcode, or 0 */
	uint8_t opcode;
	uint8_t modrm_mask, modrm;
	const char *why;
} not_relocatable[] = {
	{0, 0xe8, 0, 0, "a call run elsewhere would push a return address that is not the program's"},
	{0, 0xff, 0x38, 0x10, "a call run elsewhere would push a return address that is not the program's"},
	{0, 0xff, 0x38, 0x18, "a call run elsewhere would push a return address that is not the program's"}, /* far */
	{0, 0xff, 0x38, 0x28, "a far jump may leave 64-bit mode"},
	{0, 0xca, 0, 0, "a far return may leave 64-bit mode"},
	{0, 0xcb, 0, 0, "a far return may leave 64-bit mode"},
	{0, 0xcf, 0, 0, "an interrupt return may leave 64-bit mode"},
	{0x0f, 0x05, 0, 0, "syscall leaves its own address in rcx, and the kernel restarts it at that address"},
	{0x0f, 0x34, 0, 0, "sysenter returns to an address of the kernel's choice"},
	{0, 0xcc, 0, 0, "a breakpoint instruction stands there already"},
	{0, 0xcd, 0, 0, "a software interrupt may be restarted at its own address"},
	{0, 0xf1, 0, 0, "a debug trap reports its own address"},
	{0x0f, 0x0b, 0, 0, "the instruction is undefined on purpose, and its signal reports its address"}, /* ud2 */
	{0, 0xf4, 0, 0, "the instruction is privileged: it only faults"},                                  /* hlt */
	{0x0f, 0x08, 0, 0, "the instruction is privileged: it only faults"},                               /* invd */
	{0x0f, 0x09, 0, 0, "the instruction is privileged: it only faults"},                               /* wbinvd */
	{0x0f, 0x78, 0, 0, "the instruction is privileged: it only faults"},                               /* vmread */
	{0x0f, 0x79, 0, 0, "the instruction is privileged: it only faults"},                               /* vmwrite */
	{0, 0xe0, 0, 0, "loopne has a short displacement and no long form"},
	{0, 0xe1, 0, 0, "loope has a short displacement and no long form"},
	{0, 0xe2, 0, 0, "loop has a short displacement and no long form"},
	{0, 0xe3, 0, 0, "jrcxz has a short displacement and no long form"},
	{0, 0xc7, 0xff, 0xf8, "a transaction must not begin in one place and be aborted to another"},
	{0x0f, 0x01, 0xff, 0xd7, "an enclave leaves the address of its entry in rcx"}, /* enclu */
};

static const struct {
	unsigned group;
	const char *why;
} groups_not_relocatable[] = {
	{X86_GRP_BRANCH_RELATIVE, "a branch relative to its own address is emulated instead"},
	{X86_GRP_INT, "a software interrupt reports its own address"},
	{X86_GRP_IRET, "an interrupt return may leave 64-bit mode"},
	{X86_GRP_PRIVILEGE, "the instruction is privileged: it only faults"},
	{X86_GRP_VM, "the instruction belongs to a virtual machine monitor"},
};

static const char *find_obstacle(const struct mw_x86_insn *insn, const uint8_t *bytes)
{
	size_t at = insn->prefix_length;
	uint8_t escape = bytes[at] == 0x0f ? 0x0f : 0, opcode, modrm;

	at += escape ? 1 : 0;
	opcode = at < insn->length ? bytes[at] : 0;
	modrm = at + 1 < insn->length ? bytes[at + 1] : 0;
	for (size_t i = 0; i < sizeof(not_relocatable) / sizeof(not_relocatable[0]); i++) {
		if (not_relocatable[i].escape == escape && not_relocatable[i].opcode == opcode &&
		    not_relocatable[i].modrm == (modrm & not_relocatable[i].modrm_mask))
			return not_relocatable[i].why;
	}
	for (size_t i = 0; i < sizeof(groups_not_relocatable) / sizeof(groups_not_relocatable[0]); i++) {
		if (mw_x86_in_group(insn, groups_not_relocatable[i].group))
			return groups_not_relocatable[i].why;
	}
	return NULL;
}

static int64_t read_disp32(const uint8_t *at)
{
	int32_t disp;

	memcpy(&disp, at, sizeof(disp));
	return disp;
}

/*
 * The operand that is relative to pc is known by its ModRM byte (mod 00, r/m 101), which holds for
 * every encoding down to EVEX; its displacement follows at once. capstone's operand list must say
 * the same, or we don't trust either. Returns why the instruction can't be relocated, or NULL.
 */
static const char *find_pc_operand(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const cs_x86 *x86 = &insn->x86;
	uint8_t modrm_offset = x86->encoding.modrm_offset;
	const cs_x86_op *operand = NULL;
	size_t disp_offset = modrm_offset + 1U;

	for (uint8_t i = 0; i < x86->op_count && i < sizeof(x86->operands) / sizeof(x86->operands[0]); i++) {
		const cs_x86_op *op = &x86->operands[i];

		if (op->type == X86_OP_MEM && op->mem.base == X86_REG_EIP)
			return "an address relative to pc is cut to 32 bits";
		if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP)
			operand = op;
	}
	if (!operand && (!modrm_offset || (plan->bytes[modrm_offset] & 0xc7) != 0x05))
		return NULL;
	if (!operand || !modrm_offset || (plan->bytes[modrm_offset] & 0xc7) != 0x05 || disp_offset + 4 > insn->length ||
	    operand->mem.disp != read_disp32(plan->bytes + disp_offset))
		return "an operand relative to pc cannot be made out";
	plan->disp_offset = (uint8_t)disp_offset;
	plan->target = plan->pc + insn->length + (uint64_t)operand->mem.disp;
	return NULL;
}

void mw_x86_plan(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_insn_plan *plan)
{
	struct mw_x86_insn insn;
	const char *pc_operand;

	memset(plan, 0, sizeof(*plan));
	plan->how = MW_INSN_REFUSE;
	plan->pc = pc;
	if (!mw_x86_decode(bytes, size, pc, &insn)) {
		plan->why = "the bytes are no complete instruction that memwatch can read";
		return;
	}
	plan->length = insn.length;
	memcpy(plan->bytes, bytes, insn.length);
	pc_operand = find_pc_operand(&insn, plan);
	plan->why = find_obstacle(&insn, plan->bytes);
	if (!plan->why)
		plan->why = pc_operand;
	plan->can_relocate = !plan->why;
	if (!pc_operand)
		mw_x86_plan_emulation(&insn, plan);
	if (plan->can_emulate && (plan->memory == MW_MEMORY_NONE || !plan->can_relocate))
		plan->how = MW_INSN_EMULATE;
	else if (plan->can_relocate)
		plan->how = MW_INSN_OUT_OF_LINE;
}
