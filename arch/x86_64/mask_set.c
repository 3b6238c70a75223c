// SPDX-License-Identifier: MIT
/*
 * mask_set.c: where code sets its signal mask to a constant (memwatch/arch.h, mask_set).
 *
 *      lea  set(%rip), %rsi        in any order, with others between
 *      mov  $14, %eax              rt_sigprocmask
 *      syscall
 *
 * or has the constant in itself (mask_constant):
 *
 *      movabs $set, %rax           stored where %rsi points to
 *      mov  $14, %eax
 *      syscall
 */
#include "arch/x86_64/ops.h"

#include <string.h>

#define AROUND      64 /* bytes */
#define CONSTANT    2  /* bytes before the constant of movabs */
#define LIBRARY_OWN (UINT64_C(7) << 31)

static const uint8_t number[] = {0xb8, 0x0e, 0x00, 0x00, 0x00};
static const uint8_t load[] = {0x48, 0x8d, 0x35};
static const uint8_t call[] = {0x0f, 0x05};

size_t mw_x86_mask_set(const uint8_t *bytes, size_t size, mw_addr base, size_t from, size_t *operand, mw_addr *set)
{
	while (from < size) {
		const uint8_t *at = memmem(bytes + from, size - from, number, sizeof(number));
		const uint8_t *syscall, *lea, *begin, *found = NULL;
		size_t left;
		int32_t displacement;

		if (!at)
			break;
		from = (size_t)(at - bytes) + sizeof(number);
		left = size - from < AROUND ? size - from : AROUND;
		syscall = memmem(bytes + from, left, call, sizeof(call));
		begin = at - bytes > AROUND ? at - AROUND : bytes;
		/* The nearest before the call is the one. */
		for (; syscall && (lea = memmem(begin, (size_t)(syscall - begin), load, sizeof(load))); begin = lea + 1)
			found = lea;
		if (!found || (size_t)(syscall - found) < sizeof(load) + sizeof(displacement))
			continue;
		memcpy(&displacement, found + sizeof(load), sizeof(displacement));
		*operand = (size_t)(found - bytes) + sizeof(load);
		*set = base + *operand + sizeof(displacement) + (mw_addr)(int64_t)displacement;
		return from;
	}
	return size;
}

/* A constant that holds all signals but those that the C library keeps for itself, at the last of its loads. */
static const uint8_t *last_load(const uint8_t *begin, const uint8_t *end)
{
	const uint8_t *found = NULL;
	uint64_t set;

	for (const uint8_t *at = begin; end - at >= (ptrdiff_t)(CONSTANT + sizeof(set)); at++) {
		if ((at[0] != 0x48 && at[0] != 0x49) || at[1] < 0xb8 || at[1] > 0xbf)
			continue;
		memcpy(&set, at + CONSTANT, sizeof(set));
		if ((set | LIBRARY_OWN) == UINT64_MAX)
			found = at;
	}
	return found;
}

size_t mw_x86_mask_constant(const uint8_t *bytes, size_t size, size_t from, size_t *operand)
{
	while (from < size) {
		const uint8_t *at = memmem(bytes + from, size - from, number, sizeof(number));
		const uint8_t *found;
		size_t left;

		if (!at)
			break;
		from = (size_t)(at - bytes) + sizeof(number);
		left = size - from < AROUND ? size - from : AROUND;
		if (!memmem(bytes + from, left, call, sizeof(call)))
			continue;
		found = last_load(at - bytes > AROUND ? at - AROUND : bytes, at);
		if (!found)
			continue;
		*operand = (size_t)(found - bytes) + CONSTANT;
		return from;
	}
	return size;
}
