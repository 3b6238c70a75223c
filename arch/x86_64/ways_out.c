// SPDX-License-Identifier: MIT
/*
 * ways_out.c: where a function's return address lies, read off the code that is still to run
 * (mw_arch.ways_out). What a function does to its stack before it returns undoes what it has done:
 *
 *     add $0x28,%rsp        the frame is 0x28 bytes,
 *     pop %rbx              then the caller's rbx,
 *     ret                   then the return address
 */
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/x86_64.h"

#define MAX_PATHS 512
#define MAX_INSNS 4096

/* The stack as one path through the code has it. */
struct path {
	size_t at;     /* offset in the bytes */
	size_t called; /* … behind the last call on the path: the pc's at first */
	uint64_t sp, fp;
	bool fp_known;
	struct mw_way_out way;
};

struct search {
	const uint8_t *bytes;
	size_t size;
	mw_addr base;
	uint8_t *seen; /* one a byte: an instruction starting there was followed */
	uint64_t sp;   /* at the pc */
	struct path paths[MAX_PATHS];
	size_t path_count, insns;
	struct mw_way_out *ways;
	size_t way_count, capacity;
	bool blind;
	bool loops; /* a path comes to a call again and again */
};

/* END: the path ends there; LOST: where it goes on can't be known. */
enum step { STEP_ON, STEP_END, STEP_LOST };

static void note_way(struct search *search, const struct path *path, uint64_t extra)
{
	struct mw_way_out way = path->way;

	way.return_at = path->sp;
	way.sp = path->sp + sizeof(mw_addr) + extra;
	for (size_t i = 0; i < search->way_count; i++)
		if (search->ways[i].return_at == way.return_at)
			return;
	if (search->way_count < search->capacity)
		search->ways[search->way_count++] = way;
}

static void add_path(struct search *search, const struct path *path, mw_addr target)
{
	if (target - search->base >= search->size)
		return;
	if (search->path_count == MAX_PATHS) {
		search->blind = true;
		return;
	}
	search->paths[search->path_count] = *path;
	search->paths[search->path_count++].at = (size_t)(target - search->base);
}

static bool is_reg(const struct mw_x86_insn *insn, unsigned operand, unsigned reg)
{
	return operand < insn->x86.op_count && insn->x86.operands[operand].type == X86_OP_REG &&
	       insn->x86.operands[operand].reg == (x86_reg)reg;
}

/* The value of `lea`'s address where it is stack or frame pointer plus a constant. */
static bool stack_address(const struct path *path, const cs_x86_op *operand, uint64_t *out)
{
	if (operand->type != X86_OP_MEM || operand->mem.index != X86_REG_INVALID)
		return false;
	if (operand->mem.base == X86_REG_RSP)
		*out = path->sp + (uint64_t)operand->mem.disp;
	else if (operand->mem.base == X86_REG_RBP && path->fp_known)
		*out = path->fp + (uint64_t)operand->mem.disp;
	else
		return false;
	return true;
}

static enum step pop(struct path *path, const struct mw_x86_insn *insn)
{
	uint8_t code, width;

	if (insn->x86.op_count == 1 && insn->x86.operands[0].type == X86_OP_REG &&
	    mw_x86_register(insn->x86.operands[0].reg, &code, &width) && width == 8) {
		if (code == MW_X86_RSP)
			return STEP_LOST;
		path->way.restored |= 1u << code;
		path->way.restored_at[code] = path->sp;
		if (code == MW_X86_RBP)
			path->fp_known = false;
	}
	path->sp += 8;
	return STEP_ON;
}

/* An instruction whose first operand is the stack pointer. */
static enum step set_sp(struct path *path, const struct mw_x86_insn *insn)
{
	const cs_x86_op *source = &insn->x86.operands[1];
	uint64_t value;

	switch (insn->id) {
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (source->type != X86_OP_IMM)
			return STEP_LOST;
		path->sp += insn->id == X86_INS_ADD ? (uint64_t)source->imm : -(uint64_t)source->imm;
		return STEP_ON;
	case X86_INS_LEA:
		if (!stack_address(path, source, &value))
			return STEP_LOST;
		path->sp = value;
		return STEP_ON;
	case X86_INS_MOV:
		if (!is_reg(insn, 1, X86_REG_RBP) || !path->fp_known)
			return STEP_LOST;
		path->sp = path->fp;
		return STEP_ON;
	case X86_INS_CMP:
	case X86_INS_TEST:
		return STEP_ON;
	default:
		return STEP_LOST;
	}
}

static enum step jump(struct search *search, struct path *path, const struct mw_x86_insn *insn)
{
	const cs_x86_op *target = &insn->x86.operands[0];

	if (insn->x86.op_count != 1 || target->type != X86_OP_IMM) {
		/* A frame that has been taken down: it calls in its place, too. */
		if (path->way.restored || path->sp > search->sp)
			note_way(search, path, 0);
		return STEP_LOST;
	}
	search->loops |= (mw_addr)target->imm - search->base < path->called;
	if (insn->id != X86_INS_JMP) {
		add_path(search, path, (mw_addr)target->imm);
		return STEP_ON;
	}
	/* A jump far away is the call of a function that will return in this one's place. */
	if ((mw_addr)target->imm - search->base >= search->size)
		note_way(search, path, 0);
	else
		add_path(search, path, (mw_addr)target->imm);
	return STEP_END;
}

static enum step step(struct search *search, struct path *path, const struct mw_x86_insn *insn)
{
	switch (insn->id) {
	case X86_INS_RET:
		note_way(search, path, insn->x86.op_count ? (uint64_t)insn->x86.operands[0].imm : 0);
		return STEP_END;
	case X86_INS_PUSH:
		path->sp -= 8;
		return STEP_ON;
	case X86_INS_POP:
		return pop(path, insn);
	case X86_INS_LEAVE:
		if (!path->fp_known)
			return STEP_LOST;
		path->way.restored |= 1u << MW_X86_RBP;
		path->way.restored_at[MW_X86_RBP] = path->fp;
		path->sp = path->fp + 8;
		path->fp_known = false;
		return STEP_ON;
	case X86_INS_CALL:
		path->called = path->at;
		return STEP_ON;
	case X86_INS_HLT:
	case X86_INS_UD2:
	case X86_INS_INT3:
		return STEP_END;
	default:
		break;
	}
	if (mw_x86_in_group(insn, X86_GRP_JUMP))
		return jump(search, path, insn);
	if (is_reg(insn, 0, X86_REG_RSP) && insn->x86.op_count > 1)
		return set_sp(path, insn);
	if (is_reg(insn, 0, X86_REG_RBP) && insn->id != X86_INS_CMP && insn->id != X86_INS_TEST) {
		path->fp_known = insn->id == X86_INS_MOV && is_reg(insn, 1, X86_REG_RSP);
		path->fp = path->sp;
	}
	return STEP_ON;
}

static void follow(struct search *search, struct path path)
{
	while (path.at < search->size && !search->seen[path.at] && search->insns++ < MAX_INSNS) {
		struct mw_x86_insn insn;
		enum step next;

		search->seen[path.at] = 1;
		if (!mw_x86_decode(search->bytes + path.at, search->size - path.at, search->base + path.at, &insn)) {
			search->blind = true;
			return;
		}
		path.at += insn.length;
		next = step(search, &path, &insn);
		search->blind |= next == STEP_LOST;
		if (next != STEP_ON)
			return;
	}
}

size_t mw_x86_ways_out(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, const struct mw_regs *regs,
		       struct mw_way_out *ways, size_t capacity, bool *blind)
{
	struct search *search = calloc(1, sizeof(*search));
	size_t count = 0;

	if (search)
		search->seen = calloc(size ? size : 1, 1);
	*blind = !search || !search->seen;
	if (search && search->seen && pc - base < size) {
		struct path first = {.at = (size_t)(pc - base),
				     .called = (size_t)(pc - base),
				     .sp = regs->gpr[MW_X86_RSP],
				     .fp = regs->gpr[MW_X86_RBP],
				     .fp_known = true};

		search->bytes = bytes;
		search->size = size;
		search->base = base;
		search->ways = ways;
		search->capacity = capacity;
		search->sp = first.sp;
		follow(search, first);
		while (search->path_count > 0)
			follow(search, search->paths[--search->path_count]);
		count = search->way_count;
		/* A loop without an end that calls is no place where a thread must have begun. */
		*blind = search->blind || search->insns > MAX_INSNS || (count == 0 && search->loops);
	}
	if (search)
		free(search->seen);
	free(search);
	return count;
}
