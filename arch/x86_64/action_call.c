// SPDX-License-Identifier: MIT
/*
 * action_call.c: where code sets a signal's action (memwatch/arch.h, action_call).
 *
 *      mov  $13, %eax      or push $13; pop %rax: rt_sigaction
 *      …                   the arguments, no branches
 *      syscall
 *
 * … and how it is made elsewhere, where nothing stands between. A thread that stands before the syscall may make it.
 *
 *      before                  after                   trampoline
 *      mov  $13, %eax          jmp  trampoline         mov  $13, %eax
 *      syscall                 syscall                 lea  next(%rip), %rcx
 *  next:                    next:                      jmp  act
 */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/ops.h"

#include <string.h>

#define MOST 10 /* instructions between */

#define NUMBER 13

static const uint8_t move[] = {0xb8, NUMBER, 0x00, 0x00, 0x00};
static const uint8_t push[] = {0x6a, NUMBER, 0x58};

/* Behind the instructions that load the number, one byte of which is at `at`; 0: there are none. */
static size_t behind_number(const uint8_t *bytes, size_t size, size_t at)
{
	if (at == 0)
		return 0;
	at--;
	if (size - at >= sizeof(move) && memcmp(bytes + at, move, sizeof(move)) == 0)
		return at + sizeof(move);
	return size - at >= sizeof(push) && memcmp(bytes + at, push, sizeof(push)) == 0 ? at + sizeof(push) : 0;
}

static bool is_branch(const struct mw_x86_insn *insn)
{
	return mw_x86_in_group(insn, X86_GRP_JUMP) || mw_x86_in_group(insn, X86_GRP_CALL) ||
	       mw_x86_in_group(insn, X86_GRP_RET) || mw_x86_in_group(insn, X86_GRP_INT);
}

/* The system call behind `at`, or 0. */
static size_t find_call(const uint8_t *bytes, size_t size, size_t at)
{
	struct mw_x86_insn next;

	for (unsigned i = 0; i < MOST && at < size; i++, at += next.length) {
		if (!mw_x86_decode(bytes + at, size - at, at, &next))
			return 0;
		if (next.id == X86_INS_SYSCALL)
			return at;
		if (is_branch(&next))
			return 0;
	}
	return 0;
}

size_t mw_x86_action_call(const uint8_t *bytes, size_t size, size_t from, size_t *insn)
{
	const uint8_t *number;

	for (; from < size && (number = memchr(bytes + from, NUMBER, size - from)); from++) {
		size_t behind, call;

		from = (size_t)(number - bytes);
		behind = behind_number(bytes, size, from);
		call = behind ? find_call(bytes, size, behind) : 0;
		if (!call)
			continue;
		*insn = call;
		return call + 1;
	}
	return size;
}

static bool put_distance(uint8_t *to, mw_addr target, mw_addr end)
{
	int64_t far = (int64_t)(target - end);
	int32_t distance = (int32_t)far;

	memcpy(to, &distance, sizeof(distance));
	return far == distance;
}

bool mw_x86_action_jump(const uint8_t before[MW_ACTION_JUMP], mw_addr insn, mw_addr trampoline_at, mw_addr act,
			uint8_t jump[MW_ACTION_JUMP], uint8_t trampoline[MW_ACTION_TRAMPOLINE])
{
	uint8_t *at = trampoline + sizeof(move);

	if (memcmp(before, move, sizeof(move)) != 0)
		return false;
	jump[0] = 0xe9;
	memset(trampoline, 0xcc, MW_ACTION_TRAMPOLINE);
	memcpy(trampoline, move, sizeof(move));
	memcpy(at, "\x48\x8d\x0d", 3);
	at[7] = 0xe9;
	return put_distance(jump + 1, trampoline_at, insn) &&
	       put_distance(at + 3, insn + 2, trampoline_at + sizeof(move) + 7) &&
	       put_distance(at + 8, act, trampoline_at + sizeof(move) + 12);
}
