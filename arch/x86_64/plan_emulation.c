// SPDX-License-Identifier: MIT
/*
 * plan_emulation.c: which instructions emulate() knows, and their operands.
 *
 * Only what needs registers, or one word of the thread's own stack: any other memory operand would
 * have to be read and written atomically and to fault as the program's own, so it runs out of line. Loads and
 * comparisons of data relative to pc, which many functions begin with, are known for where there is no room for that.
 */
#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#include <string.h>

/* Instructions of the form op reg, reg or op reg, imm. */
static const struct {
	unsigned id;
	enum mw_x86_op op;
} two_operands[] = {
	{X86_INS_MOV, MW_X86_OP_MOV}, {X86_INS_MOVABS, MW_X86_OP_MOV},  {X86_INS_MOVZX, MW_X86_OP_MOVZX},
	{X86_INS_ADD, MW_X86_OP_ADD}, {X86_INS_MOVSX, MW_X86_OP_MOVSX}, {X86_INS_MOVSXD, MW_X86_OP_MOVSX},
	{X86_INS_SUB, MW_X86_OP_SUB}, {X86_INS_CMP, MW_X86_OP_CMP},     {X86_INS_AND, MW_X86_OP_AND},
	{X86_INS_OR, MW_X86_OP_OR},   {X86_INS_XOR, MW_X86_OP_XOR},     {X86_INS_TEST, MW_X86_OP_TEST},
};

/* cbw and cwd with their wider forms: rax is extended in place, or its sign goes to rdx. */
static const struct {
	unsigned id;
	enum mw_x86_op op;
	uint8_t dst, width, source_width;
} sign_extensions[] = {
	{X86_INS_CBW, MW_X86_OP_MOVSX, MW_X86_RAX, 2, 1},  {X86_INS_CWDE, MW_X86_OP_MOVSX, MW_X86_RAX, 4, 2},
	{X86_INS_CDQE, MW_X86_OP_MOVSX, MW_X86_RAX, 8, 4}, {X86_INS_CWD, MW_X86_OP_SIGN, MW_X86_RDX, 2, 2},
	{X86_INS_CDQ, MW_X86_OP_SIGN, MW_X86_RDX, 4, 4},   {X86_INS_CQO, MW_X86_OP_SIGN, MW_X86_RDX, 8, 8},
};

static void accept(struct mw_insn_plan *plan, enum mw_x86_op op, enum mw_insn_memory memory)
{
	plan->op = op;
	plan->memory = memory;
	plan->can_emulate = true;
}

static bool is_register(const cs_x86_op *op, uint8_t *code, uint8_t *width)
{
	return op->type == X86_OP_REG && mw_x86_register(op->reg, code, width);
}

/*
 * Where a branch relative to pc goes. False for what isn't one, and where processors differ: with a
 * 66 prefix AMD reads a displacement of 16 bits, Intel one of 32, unless REX.W settles it.
 */
static bool relative_target(const struct mw_x86_insn *insn, const struct mw_insn_plan *plan, size_t opcode_length,
			    mw_addr *target)
{
	size_t size = insn->length - insn->prefix_length - opcode_length;
	const uint8_t *end = plan->bytes + insn->length;
	int32_t disp32;

	if (insn->opsize && !insn->wide)
		return false;
	if (size == 1) {
		disp32 = (end[-1] ^ 0x80) - 0x80; /* sign-extended */
	} else if (size == 4) {
		memcpy(&disp32, end - 4, sizeof(disp32));
	} else {
		return false;
	}
	*target = plan->pc + insn->length + (uint64_t)(int64_t)disp32;
	return true;
}

/* jmp, jcc and call with a displacement; of the others (loop, jrcxz, xbegin) only where they go. */
static bool plan_relative_branch(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const uint8_t *opcode = plan->bytes + insn->prefix_length;
	uint8_t first = opcode[0];
	bool long_jcc = first == 0x0f && (opcode[1] & 0xf0) == 0x80;
	size_t opcode_length = first == 0x0f || first == 0xc7 ? 2 : 1;

	if (!mw_x86_in_group(insn, X86_GRP_BRANCH_RELATIVE))
		return false;
	if (!relative_target(insn, plan, opcode_length, &plan->target))
		return true;
	plan->src = MW_X86_NO_REG;
	plan->cond = opcode[opcode_length - 1] & 0xf;
	if (first == 0xe8)
		accept(plan, MW_X86_OP_CALL, MW_MEMORY_PUSH);
	else if (first == 0xe9 || first == 0xeb)
		accept(plan, MW_X86_OP_JMP, MW_MEMORY_NONE);
	else if (long_jcc || (first & 0xf0) == 0x70)
		accept(plan, MW_X86_OP_JCC, MW_MEMORY_NONE);
	return true;
}

/* jmp and call through a register, ret. */
static bool plan_indirect_branch(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const cs_x86_op *op = &insn->x86.operands[0];
	uint8_t width;

	if (insn->id == X86_INS_RET) {
		if (!insn->opsize)
			accept(plan, MW_X86_OP_RET, MW_MEMORY_POP);
		plan->imm = insn->x86.op_count == 1 ? op->imm & 0xffff : 0;
		return true;
	}
	if (insn->id != X86_INS_JMP && insn->id != X86_INS_CALL)
		return false;
	if (insn->opsize || insn->x86.op_count != 1 || !is_register(op, &plan->src, &width) || width != 8)
		return true;
	if (insn->id == X86_INS_JMP)
		accept(plan, MW_X86_OP_JMP, MW_MEMORY_NONE);
	else
		accept(plan, MW_X86_OP_CALL, MW_MEMORY_PUSH);
	return true;
}

static bool plan_nop(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const uint8_t *opcode = plan->bytes + insn->prefix_length;

	if (insn->id == X86_INS_ENDBR64 || insn->id == X86_INS_ENDBR32) {
		accept(plan, MW_X86_OP_NOP, MW_MEMORY_NONE);
		return true;
	}
	/* Other hint opcodes are given a meaning by newer processors (MPX, shadow stacks). */
	if (insn->id == X86_INS_NOP && !insn->repeat &&
	    (opcode[0] == 0x90 || (opcode[0] == 0x0f && opcode[1] == 0x1f))) {
		accept(plan, MW_X86_OP_NOP, MW_MEMORY_NONE);
		return true;
	}
	return false;
}

static bool plan_stack(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const cs_x86_op *op = &insn->x86.operands[0];

	if ((insn->id != X86_INS_PUSH && insn->id != X86_INS_POP) || insn->x86.op_count != 1)
		return false;
	if (insn->opsize)
		return true;
	if (insn->id == X86_INS_PUSH && op->type == X86_OP_IMM) {
		plan->src = MW_X86_NO_REG;
		plan->imm = op->imm;
		accept(plan, MW_X86_OP_PUSH, MW_MEMORY_PUSH);
	} else if (insn->id == X86_INS_PUSH && is_register(op, &plan->src, &plan->width) && plan->width == 8) {
		accept(plan, MW_X86_OP_PUSH, MW_MEMORY_PUSH);
	} else if (insn->id == X86_INS_POP && is_register(op, &plan->dst, &plan->width) && plan->width == 8) {
		accept(plan, MW_X86_OP_POP, MW_MEMORY_POP);
	}
	return true;
}

static void plan_lea(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const cs_x86_op *ops = insn->x86.operands;
	const x86_op_mem *mem = &ops[1].mem;
	uint8_t width;

	if (insn->addrsize || insn->x86.op_count != 2 || ops[1].type != X86_OP_MEM ||
	    !is_register(&ops[0], &plan->dst, &plan->width))
		return;
	plan->src = MW_X86_NO_REG;
	plan->cond = MW_X86_NO_REG;
	if (plan->disp_offset) {
		plan->imm = (int64_t)plan->target;
		accept(plan, MW_X86_OP_MOV, MW_MEMORY_NONE);
		return;
	}
	plan->imm = mem->disp;
	if (mem->base != X86_REG_INVALID && (!mw_x86_register(mem->base, &plan->src, &width) || width != 8))
		return;
	/* riz is how capstone writes "no index" where an index byte stands all the same. */
	if (mem->index != X86_REG_INVALID && mem->index != X86_REG_RIZ) {
		uint8_t index;

		if (!mw_x86_register(mem->index, &index, &width) || width != 8 || mem->scale < 1 || mem->scale > 8)
			return;
		plan->cond = MW_X86_LEA_INDEX(index, __builtin_ctz((unsigned)mem->scale));
	}
	accept(plan, MW_X86_OP_LEA, MW_MEMORY_NONE);
}

/* mov reg, [rsp + disp], 4 or 8 bytes: the one load whose address is the thread's own stack for certain. */
static void plan_load(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const x86_op_mem *mem = &insn->x86.operands[1].mem;

	if (insn->addrsize || plan->width < 4 || mem->base != X86_REG_RSP || mem->segment != X86_REG_INVALID ||
	    (mem->index != X86_REG_INVALID && mem->index != X86_REG_RIZ))
		return;
	plan->imm = mem->disp;
	accept(plan, MW_X86_OP_LOAD, MW_MEMORY_LOAD);
}

/* mov reg, data; cmp and test of data with an immediate or a register: the address is relative to pc. */
static bool plan_data(const struct mw_x86_insn *insn, struct mw_insn_plan *plan, enum mw_x86_op op)
{
	const cs_x86_op *ops = insn->x86.operands;
	uint8_t opcode = plan->bytes[insn->prefix_length], width;
	unsigned at = ops[0].type == X86_OP_MEM ? 0 : 1;

	if (!plan->disp_offset || insn->x86.op_count != 2 || ops[at].type != X86_OP_MEM)
		return false;
	plan->width = opcode & 1 ? (insn->wide ? 8 : insn->opsize ? 2 : 4) : 1;
	plan->dst = plan->src = MW_X86_MEMORY;
	if (insn->addrsize || ops[at].mem.segment != X86_REG_INVALID)
		return true;
	if (insn->id == X86_INS_MOV && at == 1) {
		if (is_register(&ops[0], &plan->dst, &width) && width == plan->width)
			accept(plan, MW_X86_OP_LOAD, MW_MEMORY_DATA);
	} else if (op == MW_X86_OP_CMP || op == MW_X86_OP_TEST) {
		uint8_t *other = at == 0 ? &plan->src : &plan->dst;

		if (ops[1].type == X86_OP_IMM) {
			plan->src = MW_X86_NO_REG;
			plan->imm = ops[1].imm;
			accept(plan, op, MW_MEMORY_DATA);
		} else if (is_register(&ops[1 - at], other, &width) && width == plan->width) {
			accept(plan, op, MW_MEMORY_DATA);
		}
	}
	return true;
}

static void plan_two_operands(const struct mw_x86_insn *insn, struct mw_insn_plan *plan, enum mw_x86_op op)
{
	const cs_x86_op *ops = insn->x86.operands;
	bool extends = op == MW_X86_OP_MOVZX || op == MW_X86_OP_MOVSX;
	uint8_t source_width;

	if (plan_data(insn, plan, op))
		return;
	if (insn->x86.op_count != 2 || !is_register(&ops[0], &plan->dst, &plan->width))
		return;
	if (ops[1].type == X86_OP_IMM && !extends) {
		plan->src = MW_X86_NO_REG;
		plan->imm = ops[1].imm;
		accept(plan, op, MW_MEMORY_NONE);
	} else if (ops[1].type == X86_OP_MEM && insn->id == X86_INS_MOV) {
		plan_load(insn, plan);
	} else if (is_register(&ops[1], &plan->src, &source_width) && (extends || source_width == plan->width)) {
		if (extends)
			plan->cond = source_width;
		accept(plan, op, MW_MEMORY_NONE);
	}
}

/* cmovcc and setcc, whose condition is in the opcode; inc and dec. */
static bool plan_by_opcode(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	const uint8_t *opcode = plan->bytes + insn->prefix_length;
	const cs_x86_op *ops = insn->x86.operands;
	uint8_t width;

	if (insn->id == X86_INS_INC || insn->id == X86_INS_DEC) {
		if (insn->x86.op_count == 1 && is_register(&ops[0], &plan->dst, &plan->width))
			accept(plan, insn->id == X86_INS_INC ? MW_X86_OP_INC : MW_X86_OP_DEC, MW_MEMORY_NONE);
		return true;
	}
	if (opcode[0] != 0x0f)
		return false;
	plan->cond = opcode[1] & 0xf;
	if ((opcode[1] & 0xf0) == 0x40 && insn->x86.op_count == 2) {
		if (is_register(&ops[0], &plan->dst, &plan->width) && is_register(&ops[1], &plan->src, &width))
			accept(plan, MW_X86_OP_CMOV, MW_MEMORY_NONE);
		return true;
	}
	if ((opcode[1] & 0xf0) == 0x90 && insn->x86.op_count == 1) {
		if (is_register(&ops[0], &plan->dst, &plan->width))
			accept(plan, MW_X86_OP_SET, MW_MEMORY_NONE);
		return true;
	}
	return false;
}

static bool plan_sign_extension(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	for (size_t i = 0; i < sizeof(sign_extensions) / sizeof(sign_extensions[0]); i++) {
		if (sign_extensions[i].id != insn->id)
			continue;
		plan->dst = sign_extensions[i].dst;
		plan->src = MW_X86_RAX;
		plan->width = sign_extensions[i].width;
		plan->cond = sign_extensions[i].source_width;
		accept(plan, sign_extensions[i].op, MW_MEMORY_NONE);
		return true;
	}
	return false;
}

void mw_x86_plan_emulation(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
{
	/* A lock prefix on what takes none raises an exception; leave that to the processor. */
	if (insn->lock)
		return;
	if (plan_relative_branch(insn, plan) || plan_indirect_branch(insn, plan) || plan_nop(insn, plan))
		return;
	/* Elsewhere F2 and F3 have no meaning that lasts (hints, lock elision). */
	if (insn->repeat)
		return;
	if (plan_stack(insn, plan) || plan_sign_extension(insn, plan) || plan_by_opcode(insn, plan))
		return;
	if (insn->id == X86_INS_LEA) {
		plan_lea(insn, plan);
		return;
	}
	for (size_t i = 0; i < sizeof(two_operands) / sizeof(two_operands[0]); i++) {
		if (two_operands[i].id == insn->id)
			plan_two_operands(insn, plan, two_operands[i].op);
	}
}
