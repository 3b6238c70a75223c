// SPDX-License-Identifier: MIT
/* inspect.c: what a function's code does (mw_arch.inspect), and a quick look for code that may do it (mw_arch.search).
 */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/ops.h"

#include <string.h>

static void look_at_branch(mw_addr target, const struct mw_code_wanted *wanted, struct mw_code_seen *seen)
{
	for (size_t i = 0; i < wanted->callee_count; i++)
		if (target == wanted->callees[i]) {
			seen->calls++;
			break;
		}
	if (target >= wanted->target_start && target < wanted->target_end)
		seen->branches++;
}

static void look_at(const struct mw_x86_insn *insn, mw_addr next, const struct mw_code_wanted *wanted,
		    struct mw_code_seen *seen)
{
	const cs_x86_op *first = &insn->x86.operands[0], *second = &insn->x86.operands[1];

	if (insn->x86.op_count == 1 && first->type == X86_OP_IMM &&
	    (mw_x86_in_group(insn, X86_GRP_JUMP) || mw_x86_in_group(insn, X86_GRP_CALL)))
		look_at_branch((mw_addr)first->imm, wanted, seen);
	if (insn->x86.op_count != 2)
		return;
	if (insn->id == X86_INS_LEA && wanted->data && second->mem.base == X86_REG_RIP &&
	    next + (uint64_t)second->mem.disp == wanted->data)
		seen->data++;
	if (insn->id == X86_INS_MOV && first->type == X86_OP_MEM && first->size == 1 &&
	    first->mem.segment == X86_REG_FS && second->type == X86_OP_IMM && second->imm == 1)
		seen->flags++;
}

bool mw_x86_inspect(const uint8_t *bytes, size_t size, mw_addr base, const struct mw_code_wanted *wanted,
		    struct mw_code_seen *seen)
{
	size_t at = 0;

	*seen = (struct mw_code_seen){0};
	while (at < size) {
		struct mw_x86_insn insn;

		if (!mw_x86_decode(bytes + at, size - at, base + at, &insn))
			return false;
		at += insn.length;
		look_at(&insn, base + at, wanted, seen);
	}
	return true;
}

/* Bytes before and behind a place that the looks_like functions read. */
#define BEFORE 3
#define BEHIND 4

/* Where the 32-bit displacement at `at`, the end of its instruction, leads to. */
static mw_addr displaced(const uint8_t *at, mw_addr addr)
{
	int32_t displacement;

	memcpy(&displacement, at, sizeof(displacement));
	return addr + sizeof(displacement) + (uint64_t)(int64_t)displacement;
}

static bool looks_like_data(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	/* lea displacement(%rip), %reg: REX.W 8d 00reg101 */
	return (at[-1] & 0xc7) == 0x05 && at[-2] == 0x8d && (at[-3] & 0xfb) == 0x48 &&
	       displaced(at, addr) == wanted->data;
}

static bool looks_like_branch(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	mw_addr target;

	if (at[-1] != 0xe9 && !(at[-2] == 0x0f && (at[-1] & 0xf0) == 0x80)) /* jmp, jcc */
		return false;
	target = displaced(at, addr);
	return target >= wanted->target_start && target < wanted->target_end;
}

static bool looks_like_flag(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	(void)addr;
	(void)wanted;
	/* movb $imm, %fs:…: 64 [41] c6 */
	return at[0] == 0xc6 && (at[-1] == 0x64 || (at[-1] == 0x41 && at[-2] == 0x64));
}

size_t mw_x86_search(const uint8_t *bytes, size_t size, mw_addr base, size_t from, enum mw_code_deed deed,
		     const struct mw_code_wanted *wanted)
{
	static bool (*const looks_like[])(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted) = {
		[MW_CODE_TAKES_DATA] = looks_like_data,
		[MW_CODE_BRANCHES] = looks_like_branch,
		[MW_CODE_SETS_FLAG] = looks_like_flag,
	};

	if (size < BEFORE + BEHIND)
		return size;
	for (size_t at = from < BEFORE ? BEFORE : from; at <= size - BEHIND; at++)
		if (looks_like[deed](bytes + at, base + at, wanted))
			return at;
	return size;
}
