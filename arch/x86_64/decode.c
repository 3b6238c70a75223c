// SPDX-License-Identifier: MIT
/* decode.c: capstone, kept in one place (decode.h). */
#include "arch/x86_64/decode.h"

#include "arch/x86_64/x86_64.h"
#include "base/reserve.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * One capstone handle for the process. Opening one builds tables, so not one a call; and a handle
 * keeps state between calls (its error, its instruction cache), so it is used under a lock.
 */
static struct {
	pthread_mutex_t lock;
	csh handle;
	cs_insn *insn;
	bool closed; /* the process is ending: don't open it again */
} decoder = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * capstone does not look at what its allocator gives it. Where there is no memory once, the reserve for that is given
 * back; without any left it crashes, and memwatch with it.
 */
static void *get_more(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (memory)
		return memory;
	mw_reserve_release();
	return realloc(old, size);
}

static void *get(size_t size)
{
	return get_more(NULL, size);
}

static void *get_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory)
		return memory;
	mw_reserve_release();
	return calloc(count, size);
}

static void decoder_close(void)
{
	if (decoder.insn)
		cs_free(decoder.insn, 1);
	decoder.insn = NULL;
	if (decoder.handle)
		(void)cs_close(&decoder.handle);
	decoder.handle = 0;
}

static bool decoder_open(void)
{
	static cs_opt_mem memory = {get, get_zeroed, get_more, free, vsnprintf};

	if (decoder.insn)
		return true;
	if (decoder.closed)
		return false;
	if (cs_option(0, CS_OPT_MEM, (uintptr_t)&memory) != CS_ERR_OK ||
	    cs_open(CS_ARCH_X86, CS_MODE_64, &decoder.handle) != CS_ERR_OK) {
		decoder.handle = 0;
		return false;
	}
	if (cs_option(decoder.handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
		decoder.insn = cs_malloc(decoder.handle);
	if (!decoder.insn)
		decoder_close();
	return decoder.insn != NULL;
}

__attribute__((destructor)) static void decoder_end(void)
{
	pthread_mutex_lock(&decoder.lock);
	decoder.closed = true;
	decoder_close();
	pthread_mutex_unlock(&decoder.lock);
}

static bool decode_locked(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_x86_insn *insn)
{
	const cs_insn *cs;
	const cs_detail *detail;

	if (!decoder_open())
		return false;
	cs = decoder.insn;
	if (!cs_disasm_iter(decoder.handle, &bytes, &size, &pc, decoder.insn) || !cs->detail)
		return false;
	detail = cs->detail;
	if (cs->size == 0 || cs->size >= MW_INSN_MAX || detail->groups_count > sizeof(insn->groups))
		return false;
	insn->id = cs->id;
	insn->length = (uint8_t)cs->size;
	insn->x86 = detail->x86;
	insn->group_count = detail->groups_count;
	memcpy(insn->groups, detail->groups, detail->groups_count);
	return true;
}

/* Take note of a legacy prefix; false where `byte` is none. */
static bool scan_legacy_prefix(uint8_t byte, struct mw_x86_insn *insn)
{
	switch (byte) {
	case 0x66:
		insn->opsize = true;
		return true;
	case 0x67:
		insn->addrsize = true;
		return true;
	case 0xf0:
		insn->lock = true;
		return true;
	case 0xf2:
	case 0xf3:
		insn->repeat = true;
		return true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
		return true;
	default:
		return false;
	}
}

static void scan_prefixes(const uint8_t *bytes, struct mw_x86_insn *insn)
{
	uint8_t i;

	for (i = 0; i < insn->length; i++) {
		if (scan_legacy_prefix(bytes[i], insn))
			insn->wide = false; /* a REX prefix counts only where the opcode follows it at once */
		else if ((bytes[i] & 0xf0) == 0x40)
			insn->wide = bytes[i] & 8;
		else
			break;
	}
	insn->prefix_length = i;
}

/*
 * Is it an instruction whose length or operands are not certain? With a 66 prefix and without REX.W, AMD reads a
 * displacement of 16 bits in a relative branch, Intel one of 32. capstone 4 reads one of 16 behind 67 and REX.W as
 * well, which no processor does. movsxd without REX.W, which no compiler makes, is a plain mov; capstone 4 takes it for
 * a 64-bit one, and capstone 5 does not know it. ud0 and ud1 have operands for some processors and none for others.
 */
static bool is_uncertain(const uint8_t *bytes, const struct mw_x86_insn *insn)
{
	size_t at = insn->prefix_length;

	if (at >= insn->length)
		return false;
	if (bytes[at] == 0x63)
		return !insn->wide;
	if (bytes[at] == 0x0f && at + 1U < insn->length) {
		at++;
		if (bytes[at] == 0xff || bytes[at] == 0xb9)
			return true;
		if ((bytes[at] & 0xf0) != 0x80)
			return false;
	} else if (bytes[at] != 0xe8 && bytes[at] != 0xe9) {
		return false;
	}
	return (insn->opsize && !insn->wide) || insn->length != at + 1 + sizeof(uint32_t);
}

bool mw_x86_decode(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_x86_insn *insn)
{
	struct mw_x86_insn found = {0};
	bool ok;

	/* capstone would take more than the processor does: no instruction is longer than 15 bytes. */
	if (size > MW_INSN_MAX - 1)
		size = MW_INSN_MAX - 1;
	pthread_mutex_lock(&decoder.lock);
	ok = decode_locked(bytes, size, pc, &found);
	pthread_mutex_unlock(&decoder.lock);
	if (!ok)
		return false;
	scan_prefixes(bytes, &found);
	if (is_uncertain(bytes, &found))
		return false;
	*insn = found;
	return true;
}

/* --- register operands ----------------------------------------------------------------------------------- */

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
