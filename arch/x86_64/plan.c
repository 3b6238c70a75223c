// SPDX-License-Identifier: MIT
/* plan.c: can this instruction be emulated, or run as a copy elsewhere? (memwatch/arch.h, plan) */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/ops.h"

#include <string.h>

/*
 * What a copy elsewhere would do wrong. Other branches relative to pc are found by their group.
 */
static const struct {
	unsigned id;
	const char *why;
} not_relocatable[] = {
	{X86_INS_CALL, "a call run elsewhere would push a return address that is not the program's"},
	{X86_INS_LCALL, "a call run elsewhere would push a return address that is not the program's"},
	{X86_INS_LJMP, "a far jump may leave 64-bit mode"},
	{X86_INS_RETF, "a far return may leave 64-bit mode"},
	{X86_INS_RETFQ, "a far return may leave 64-bit mode"},
	{X86_INS_SYSCALL, "syscall leaves its own address in rcx, and the kernel restarts it at that address"},
	{X86_INS_SYSENTER, "sysenter returns to an address of the kernel's choice"},
	{X86_INS_INT3, "a breakpoint instruction stands there already"},
	{X86_INS_INT, "a software interrupt may be restarted at its own address"},
	{X86_INS_INT1, "a debug trap reports its own address"},
	{X86_INS_INTO, "a software interrupt reports its own address"},
	{X86_INS_UD0, "the instruction is undefined on purpose, and its signal reports its address"},
	{X86_INS_UD2, "the instruction is undefined on purpose, and its signal reports its address"},
	{X86_INS_UD2B, "the instruction is undefined on purpose, and its signal reports its address"},
	{X86_INS_HLT, "the instruction is privileged: it only faults"},
	{X86_INS_LOOP, "loop has a short displacement and no long form"},
	{X86_INS_LOOPE, "loope has a short displacement and no long form"},
	{X86_INS_LOOPNE, "loopne has a short displacement and no long form"},
	{X86_INS_JCXZ, "jcxz has a short displacement and no long form"},
	{X86_INS_JECXZ, "jecxz has a short displacement and no long form"},
	{X86_INS_JRCXZ, "jrcxz has a short displacement and no long form"},
	{X86_INS_XBEGIN, "a transaction must not begin in one place and be aborted to another"},
	{X86_INS_ENCLU, "an enclave leaves the address of its entry in rcx"},
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

static const char *find_obstacle(const struct mw_x86_insn *insn)
{
	for (size_t i = 0; i < sizeof(not_relocatable) / sizeof(not_relocatable[0]); i++) {
		if (not_relocatable[i].id == insn->id)
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
		plan->why = "the bytes are no complete instruction that capstone knows";
		return;
	}
	plan->length = insn.length;
	memcpy(plan->bytes, bytes, insn.length);
	pc_operand = find_pc_operand(&insn, plan);
	plan->why = find_obstacle(&insn);
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
