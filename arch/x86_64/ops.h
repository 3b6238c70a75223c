/* SPDX-License-Identifier: MIT */
/*
 * ops.h: what mw_insn_plan's own fields mean for x86-64, between plan() and emulate().
 *
 * dst, src are operand codes (operand.h); a src of MW_X86_NO_REG stands for imm. width is the
 * operand's in bytes. An operation's other uses of the fields stand beside it.
 */
#ifndef MW_ARCH_X86_64_OPS_H
#define MW_ARCH_X86_64_OPS_H

#include <memwatch/arch.h>

#include "arch/x86_64/decode.h"

enum mw_x86_op {
	MW_X86_OP_NONE,
	MW_X86_OP_NOP,
	MW_X86_OP_MOV,
	MW_X86_OP_MOVZX, /* cond: width of src */
	MW_X86_OP_MOVSX, /* cond: width of src */
	MW_X86_OP_SIGN,  /* cwd, cdq, cqo: dst becomes the sign of src */
	MW_X86_OP_LEA,   /* src: base; cond: MW_X86_LEA_INDEX(index, log2 of scale) or MW_X86_NO_REG; imm: disp */
	MW_X86_OP_CMOV,  /* cond: condition code */
	MW_X86_OP_SET,   /* cond: condition code */
	MW_X86_OP_ADD,   /* add to test: dst op src */
	MW_X86_OP_SUB,
	MW_X86_OP_CMP,
	MW_X86_OP_AND,
	MW_X86_OP_OR,
	MW_X86_OP_XOR,
	MW_X86_OP_TEST,
	MW_X86_OP_INC,
	MW_X86_OP_DEC,
	MW_X86_OP_JMP,  /* to plan->target, or to src */
	MW_X86_OP_JCC,  /* cond: condition code */
	MW_X86_OP_CALL, /* to plan->target, or to src */
	MW_X86_OP_RET,  /* imm: bytes of arguments that are dropped */
	MW_X86_OP_PUSH,
	MW_X86_OP_POP,
	MW_X86_OP_LOAD, /* imm: displacement from rsp; or MW_MEMORY_DATA */
	MW_X86_OP_COUNT
};

#define MW_X86_LEA_INDEX(index, log2_scale) ((uint8_t)((index) | (log2_scale) << 4))

/* The functions of struct mw_arch, see there. */
void mw_x86_plan(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_insn_plan *plan);
void mw_x86_emulate(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word);
mw_addr mw_x86_memory_address(const struct mw_insn_plan *plan, const struct mw_regs *regs);
struct mw_error *mw_x86_relocate(const struct mw_insn_plan *plan, mw_addr dest, uint8_t out[MW_OOL_MAX],
				 size_t *copy_length, size_t *length) MW_MUST_CHECK;
size_t mw_x86_ways_out(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, const struct mw_regs *regs,
		       struct mw_way_out *ways, size_t capacity, bool *blind);
bool mw_x86_frame_at(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, const struct mw_code_function *known,
		     struct mw_code_frame *out);
size_t mw_x86_call_target(const uint8_t *bytes, size_t size, mw_addr base, size_t from, mw_addr *target);
size_t mw_x86_mask_set(const uint8_t *bytes, size_t size, mw_addr base, size_t from, size_t *operand, mw_addr *set);
size_t mw_x86_mask_constant(const uint8_t *bytes, size_t size, size_t from, size_t *operand);
size_t mw_x86_action_call(const uint8_t *bytes, size_t size, size_t from, size_t *insn);
bool mw_x86_action_jump(const uint8_t before[MW_ACTION_JUMP], mw_addr insn, mw_addr trampoline_at, mw_addr act,
			uint8_t jump[MW_ACTION_JUMP], uint8_t trampoline[MW_ACTION_TRAMPOLINE]);
bool mw_x86_inspect(const uint8_t *bytes, size_t size, mw_addr base, const struct mw_code_wanted *wanted,
		    struct mw_code_seen *seen);
size_t mw_x86_search(const uint8_t *bytes, size_t size, mw_addr base, size_t from, enum mw_code_deed deed,
		     const struct mw_code_wanted *wanted);
void mw_x86_detour(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, uint64_t function_size,
		   struct mw_detour *detour);
struct mw_error *mw_x86_trampoline(const struct mw_detour *detour, const struct mw_trampoline_frame *frame,
				   mw_addr dest, struct mw_trampoline *trampoline) MW_MUST_CHECK;
struct mw_error *mw_x86_detour_jump(const struct mw_detour *detour, mw_addr trampoline, uint8_t *out) MW_MUST_CHECK;

/* Why a trampoline can't hold the instruction, or NULL where it can. Static text. */
const char *mw_x86_trampoline_obstacle(const struct mw_insn_plan *plan);
/* Is it a call that a trampoline can hold? Its copy never goes on to what follows: the return comes to where the call stood.
 */
bool mw_x86_trampoline_calls(const struct mw_insn_plan *plan);

#endif
