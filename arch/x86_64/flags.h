/* SPDX-License-Identifier: MIT */
/* flags.h: the arithmetic flags, computed as the processor does. */
#ifndef MW_ARCH_X86_64_FLAGS_H
#define MW_ARCH_X86_64_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#define MW_X86_CF    0x001ULL
#define MW_X86_PF    0x004ULL
#define MW_X86_AF    0x010ULL
#define MW_X86_ZF    0x040ULL
#define MW_X86_SF    0x080ULL
#define MW_X86_OF    0x800ULL
#define MW_X86_ARITH (MW_X86_CF | MW_X86_PF | MW_X86_AF | MW_X86_ZF | MW_X86_SF | MW_X86_OF)

/* `flags` after a + b, operands of `width` bytes. */
uint64_t mw_x86_flags_add(uint64_t flags, uint64_t a, uint64_t b, uint8_t width);

/* `flags` after a - b (sub, cmp). */
uint64_t mw_x86_flags_sub(uint64_t flags, uint64_t a, uint64_t b, uint8_t width);

/* `flags` after and, or, xor, test with this result. AF, which is undefined, is cleared as processors do. */
uint64_t mw_x86_flags_logic(uint64_t flags, uint64_t result, uint8_t width);

/* Is the condition `cc` (the low four bits of a jcc, cmovcc or setcc opcode) true? */
bool mw_x86_condition(uint8_t cc, uint64_t flags);

#endif
