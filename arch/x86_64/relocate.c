// SPDX-License-Identifier: MIT
/*
 * relocate.c: the copy of an instruction that runs elsewhere (memwatch/arch.h, relocate).
 *
 *	before                          after, at dest
 *	pc:  mov rax, [rip + d]         mov rax, [rip + d + (pc - dest)]
 *	pc+7: …                         jmp pc+7
 *
 * Where pc+7 is out of a jmp's reach, the jump back is `jmp [rip + 0]` and the address behind it.
 */
#include "arch/x86_64/ops.h"

#include <inttypes.h>
#include <string.h>

#define NEAR_JUMP_LENGTH 5
#define FAR_JUMP_LENGTH  14

static const uint8_t far_jump[6] = {0xff, 0x25, 0, 0, 0, 0};

_Static_assert(MW_INSN_MAX - 1 + FAR_JUMP_LENGTH <= MW_OOL_MAX, "a copy and its jump back fit");

/* The displacement of `to` from `from`, where 32 bits hold it. */
static bool displacement(mw_addr from, mw_addr to, int32_t *disp)
{
	int64_t distance = (int64_t)(to - from);

	if (distance < INT32_MIN || distance > INT32_MAX)
		return false;
	*disp = (int32_t)distance;
	return true;
}

static size_t write_jump(uint8_t *out, mw_addr from, mw_addr to)
{
	int32_t disp;

	if (displacement(from + NEAR_JUMP_LENGTH, to, &disp)) {
		out[0] = 0xe9;
		memcpy(out + 1, &disp, sizeof(disp));
		return NEAR_JUMP_LENGTH;
	}
	memcpy(out, far_jump, sizeof(far_jump));
	memcpy(out + sizeof(far_jump), &to, sizeof(to));
	return FAR_JUMP_LENGTH;
}

struct mw_error *mw_x86_relocate(const struct mw_insn_plan *plan, mw_addr dest, uint8_t out[MW_OOL_MAX],
				 size_t *copy_length, size_t *length)
{
	int32_t disp = 0;
	size_t jump_length;

	if (!plan->can_relocate)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the instruction at 0x%" PRIx64 " cannot be run elsewhere: %s", plan->pc,
				       plan->why);
	if (plan->disp_offset && !displacement(dest + plan->length, plan->target, &disp))
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the instruction at 0x%" PRIx64 " refers to 0x%" PRIx64
				       ", which its copy at 0x%" PRIx64 " cannot reach",
				       plan->pc, plan->target, dest);
	memcpy(out, plan->bytes, plan->length);
	if (plan->disp_offset)
		memcpy(out + plan->disp_offset, &disp, sizeof(disp));
	jump_length = write_jump(out + plan->length, dest + plan->length, plan->pc + plan->length);
	*copy_length = plan->length;
	*length = plan->length + jump_length;
	return NULL;
}
