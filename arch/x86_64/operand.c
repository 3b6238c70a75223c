// SPDX-License-Identifier: MIT
/* operand.c: register operands (operand.h). */
#include "arch/x86_64/operand.h"

#include <capstone/capstone.h>

/* Rows in DWARF order; columns are 8, 4, 2 and 1 byte wide. */
static const uint8_t registers[MW_REG_COUNT][4] = {
	{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL},
	{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
	{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
	{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
	{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
	{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
	{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
	{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
	{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
	{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
	{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
	{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
	{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
	{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
	{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
	{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
};

/* ah, dh, ch, bh are the second bytes of the first four rows. */
static const uint8_t high_registers[4] = {X86_REG_AH, X86_REG_DH, X86_REG_CH, X86_REG_BH};

bool mw_x86_register(unsigned reg, uint8_t *code, uint8_t *width)
{
	if (reg == X86_REG_INVALID)
		return false;
	for (uint8_t row = 0; row < MW_REG_COUNT; row++) {
		for (uint8_t column = 0; column < 4; column++) {
			if (registers[row][column] == reg) {
				*code = row;
				*width = (uint8_t)(8 >> column);
				return true;
			}
		}
	}
	for (uint8_t row = 0; row < 4; row++) {
		if (high_registers[row] == reg) {
			*code = row | MW_X86_HIGH;
			*width = 1;
			return true;
		}
	}
	return false;
}

uint64_t mw_x86_mask(uint8_t width)
{
	return width >= 8 ? UINT64_MAX : (1ULL << (width * 8)) - 1;
}
