// SPDX-License-Identifier: MIT
/* flags.c: the arithmetic flags (flags.h). */
#include "arch/x86_64/flags.h"

#include "arch/x86_64/operand.h"

/* SF, ZF and PF depend on the result alone. PF looks at its lowest byte only, whatever the width. */
static uint64_t result_flags(uint64_t result, uint8_t width)
{
	uint64_t flags = 0;

	if (result >> (width * 8 - 1) & 1)
		flags |= MW_X86_SF;
	if (result == 0)
		flags |= MW_X86_ZF;
	if (!__builtin_parity((unsigned)(result & 0xff)))
		flags |= MW_X86_PF;
	return flags;
}

uint64_t mw_x86_flags_add(uint64_t flags, uint64_t a, uint64_t b, uint8_t width)
{
	uint64_t mask = mw_x86_mask(width);
	uint64_t sum = (a + b) & mask;

	a &= mask;
	b &= mask;
	flags = (flags & ~MW_X86_ARITH) | result_flags(sum, width);
	if (sum < a)
		flags |= MW_X86_CF;
	if ((a ^ b ^ sum) & 0x10)
		flags |= MW_X86_AF;
	/* Overflow: both operands have one sign, the sum the other. */
	if (((a ^ sum) & (b ^ sum)) >> (width * 8 - 1) & 1)
		flags |= MW_X86_OF;
	return flags;
}

uint64_t mw_x86_flags_sub(uint64_t flags, uint64_t a, uint64_t b, uint8_t width)
{
	uint64_t mask = mw_x86_mask(width);
	uint64_t difference = (a - b) & mask;

	a &= mask;
	b &= mask;
	flags = (flags & ~MW_X86_ARITH) | result_flags(difference, width);
	if (a < b)
		flags |= MW_X86_CF;
	if ((a ^ b ^ difference) & 0x10)
		flags |= MW_X86_AF;
	/* Overflow: the operands differ in sign and the result has the second one's. */
	if (((a ^ b) & (a ^ difference)) >> (width * 8 - 1) & 1)
		flags |= MW_X86_OF;
	return flags;
}

uint64_t mw_x86_flags_logic(uint64_t flags, uint64_t result, uint8_t width)
{
	return (flags & ~MW_X86_ARITH) | result_flags(result & mw_x86_mask(width), width);
}

bool mw_x86_condition(uint8_t cc, uint64_t flags)
{
	bool cf = flags & MW_X86_CF;
	bool zf = flags & MW_X86_ZF;
	bool sf = flags & MW_X86_SF;
	bool of = flags & MW_X86_OF;
	bool holds = false;

	/* Pairs: the lowest bit of the code turns the condition round. */
	switch (cc >> 1 & 7) {
	case 0: /* o */
		holds = of;
		break;
	case 1: /* b */
		holds = cf;
		break;
	case 2: /* e */
		holds = zf;
		break;
	case 3: /* be */
		holds = cf || zf;
		break;
	case 4: /* s */
		holds = sf;
		break;
	case 5: /* p */
		holds = flags & MW_X86_PF;
		break;
	case 6: /* l */
		holds = sf != of;
		break;
	case 7: /* le */
		holds = zf || sf != of;
		break;
	}
	return holds != (cc & 1);
}
