// SPDX-License-Identifier: MIT
/* plan.c: can this instruction be emulated, or run as a copy elsewhere? (memwatch/arch.h, plan and relocate) */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/x86_64.h"

#include <inttypes.h>
#include <string.h>

/*
 * What is emulated needs registers only, or one word of the thread's own stack: any other memory operand would
 * have to be read and written atomically and to fault as the program's own, so it runs out of line. Loads and
 * comparisons of data relative to pc, which many functions begin with, are known for where there is no room for that.
 */

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
	int64_t disp;

	if ((insn->opsize && !insn->wide) || (size != 1 && size != 4))
		return false;
	disp = size == 1 ? (int8_t)end[-1] : mw_x86_displacement(end - 4);
	*target = plan->pc + insn->length + (uint64_t)disp;
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

	/* Other hint opcodes are given a meaning by newer processors (MPX, shadow stacks). */
	bool is_nop = insn->id == X86_INS_ENDBR64 || insn->id == X86_INS_ENDBR32 ||
		      (insn->id == X86_INS_NOP && !insn->repeat &&
		       (opcode[0] == 0x90 || (opcode[0] == 0x0f && opcode[1] == 0x1f)));

	if (is_nop)
		accept(plan, MW_X86_OP_NOP, MW_MEMORY_NONE);
	return is_nop;
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

/*
 * Fill op, operands, memory and can_emulate of `plan` where emulate() knows the instruction; else
 * leave can_emulate false. plan->target of relative branches and pc-relative operands is set already.
 */
static void plan_emulation(const struct mw_x86_insn *insn, struct mw_insn_plan *plan)
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
	    operand->mem.disp != mw_x86_displacement(plan->bytes + disp_offset))
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
		plan_emulation(&insn, plan);
	if (plan->can_emulate && (plan->memory == MW_MEMORY_NONE || !plan->can_relocate))
		plan->how = MW_INSN_EMULATE;
	else if (plan->can_relocate)
		plan->how = MW_INSN_OUT_OF_LINE;
}

/* --- the copy that runs elsewhere ------------------------------------------------------------------------ */

/*
 *	before                          after, at dest
 *	pc:  mov rax, [rip + d]         mov rax, [rip + d + (pc - dest)]
 *	pc+7: …                         jmp pc+7
 *
 * Where pc+7 is out of a jmp's reach, the jump back is `jmp [rip + 0]` and the address behind it.
 */
#define NEAR_JUMP_LENGTH 5
#define FAR_JUMP_LENGTH  14

static const uint8_t far_jump[6] = {0xff, 0x25, 0, 0, 0, 0};

_Static_assert(MW_INSN_MAX - 1 + FAR_JUMP_LENGTH <= MW_OOL_MAX, "a copy and its jump back fit");

/* The displacement of `to` from `from`, where 32 bits hold it. */
static bool displacement(mw_addr from, mw_addr to, int32_t *disp)
{
	int64_t distance = (int64_t)(to - from);

	if (distance < INT32_MIN || distance > INT32_MAX)
		return false;
	*disp = (int32_t)distance;
	return true;
}

size_t mw_x86_jump(mw_addr from, mw_addr to, uint8_t *out)
{
	int32_t disp;

	if (displacement(from + NEAR_JUMP_LENGTH, to, &disp)) {
		out[0] = 0xe9;
		memcpy(out + 1, &disp, sizeof(disp));
		return NEAR_JUMP_LENGTH;
	}
	memcpy(out, far_jump, sizeof(far_jump));
	memcpy(out + sizeof(far_jump), &to, sizeof(to));
	return FAR_JUMP_LENGTH;
}

struct mw_error *mw_x86_relocate(const struct mw_insn_plan *plan, mw_addr dest, uint8_t out[MW_OOL_MAX],
				 size_t *copy_length, size_t *length)
{
	int32_t disp = 0;

	if (!plan->can_relocate)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the instruction at 0x%" PRIx64 " cannot be run elsewhere: %s", plan->pc,
				       plan->why);
	if (plan->disp_offset && !displacement(dest + plan->length, plan->target, &disp))
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the instruction at 0x%" PRIx64 " refers to 0x%" PRIx64
				       ", which its copy at 0x%" PRIx64 " cannot reach",
				       plan->pc, plan->target, dest);
	memcpy(out, plan->bytes, plan->length);
	if (plan->disp_offset)
		memcpy(out + plan->disp_offset, &disp, sizeof(disp));
	*copy_length = plan->length;
	*length = plan->length + mw_x86_jump(dest + plan->length, plan->pc + plan->length, out + plan->length);
	return NULL;
}
