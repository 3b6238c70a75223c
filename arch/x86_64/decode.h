/* SPDX-License-Identifier: MIT */
/*
 * decode.h: one x86-64 instruction, as capstone and its own prefix bytes describe it.
 *
 * capstone says what the instruction is, how long, and on which operands. The prefixes and the
 * opcode are taken from the bytes, because capstone 4 drops repeated prefixes and reports sizes of
 * displacements wrongly where a 66 prefix is part of the opcode.
 */
#ifndef MW_ARCH_X86_64_DECODE_H
#define MW_ARCH_X86_64_DECODE_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memwatch/types.h>

struct mw_x86_insn {
	unsigned id; /* x86_insn of capstone */
	uint8_t length;
	uint8_t prefix_length; /* legacy and REX prefixes: the opcode stands behind them */
	bool wide;             /* REX.W */
	bool opsize;           /* 66 */
	bool addrsize;         /* 67 */
	bool lock;             /* F0 */
	bool repeat;           /* F2 or F3 */
	uint8_t group_count;
	uint8_t groups[8];
	cs_x86 x86;
};

/*
 * Decode the instruction at the start of `bytes`, which stands at `pc`. False where there is none,
 * where it is cut short, and where capstone cannot work. Any thread.
 */
bool mw_x86_decode(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_x86_insn *insn);

/* Does capstone count the instruction to `group` (X86_GRP_…)? */
static inline bool mw_x86_in_group(const struct mw_x86_insn *insn, unsigned group)
{
	for (uint8_t i = 0; i < insn->group_count; i++) {
		if (insn->groups[i] == group)
			return true;
	}
	return false;
}

/* The operand code of capstone's register `reg` and its width in bytes; false where it is no general register. */
bool mw_x86_register(unsigned reg, uint8_t *code, uint8_t *width);

/* A displacement of 32 bits. */
static inline int64_t mw_x86_displacement(const uint8_t *at)
{
	int32_t displacement;

	memcpy(&displacement, at, sizeof(displacement));
	return displacement;
}

#endif
