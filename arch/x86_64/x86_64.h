/* SPDX-License-Identifier: MIT */
/*
 * x86_64.h: what the files of this instruction set share. Callers outside arch/ get its row from mw_arch_find().
 *
 * What mw_insn_plan's own fields mean, between plan() and emulate(): dst, src are operand codes; a src of MW_X86_NO_REG
 * stands for imm. width is the operand's in bytes. An operation's other uses of the fields stand beside it.
 */
#ifndef MW_ARCH_X86_64_X86_64_H
#define MW_ARCH_X86_64_X86_64_H

#include <memwatch/arch.h>

/* DWARF numbers of the registers that instructions name implicitly. */
enum { MW_X86_RAX, MW_X86_RDX, MW_X86_RCX, MW_X86_RBX, MW_X86_RSI, MW_X86_RDI, MW_X86_RBP, MW_X86_RSP, MW_X86_R8 };

/*
 * Register operands, as a plan keeps them: a byte with the DWARF number and whether it is the high byte of that
 * register; the width stands beside it.
 */
#define MW_X86_HIGH   0x10 /* ah, dh, ch, bh: bits 8 to 15 of the register */
#define MW_X86_MEMORY 0xfe /* none: the operand is what is read from memory (MW_MEMORY_DATA) */
#define MW_X86_NO_REG 0xff /* none: the operand is the immediate, or there is no base or index */

/* All bits that an operand of `width` bytes (1, 2, 4, 8) has. */
static inline uint64_t mw_x86_mask(uint8_t width)
{
	return width >= 8 ? UINT64_MAX : (1ULL << (width * 8)) - 1;
}

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

extern const struct mw_arch mw_arch_x86_64;

/* A jump that stands at `from`, 5 bytes long where 32 bits of displacement reach, else 14. Returns its length. (plan.c) */
size_t mw_x86_jump(mw_addr from, mw_addr to, uint8_t *out);

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
void mw_x86_detour(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, uint64_t function_size,
		   struct mw_detour *detour);
struct mw_error *mw_x86_trampoline(const struct mw_detour *detour, const struct mw_trampoline_frame *frame,
				   mw_addr dest, struct mw_trampoline *trampoline) MW_MUST_CHECK;
struct mw_error *mw_x86_detour_jump(const struct mw_detour *detour, mw_addr trampoline, uint8_t *out) MW_MUST_CHECK;

#endif
