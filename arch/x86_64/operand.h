/* SPDX-License-Identifier: MIT */
/*
 * operand.h: register operands, as a plan keeps them: a byte with the DWARF number and whether it
 * is the high byte of that register; the width stands beside it.
 */
#ifndef MW_ARCH_X86_64_OPERAND_H
#define MW_ARCH_X86_64_OPERAND_H

#include <memwatch/arch.h>

/* DWARF numbers of the registers that instructions name implicitly. */
enum { MW_X86_RAX, MW_X86_RDX, MW_X86_RCX, MW_X86_RBX, MW_X86_RSI, MW_X86_RDI, MW_X86_RBP, MW_X86_RSP, MW_X86_R8 };

#define MW_X86_HIGH   0x10 /* ah, dh, ch, bh: bits 8 to 15 of the register */
#define MW_X86_MEMORY 0xfe /* none: the operand is what is read from memory (MW_MEMORY_DATA) */
#define MW_X86_NO_REG 0xff /* none: the operand is the immediate, or there is no base or index */

/* The operand code of capstone's register `reg` and its width in bytes; false where it is no general register. */
bool mw_x86_register(unsigned reg, uint8_t *code, uint8_t *width);

/* All bits that an operand of `width` bytes (1, 2, 4, 8) has. */
uint64_t mw_x86_mask(uint8_t width);

#endif
