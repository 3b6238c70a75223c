// SPDX-License-Identifier: MIT
/*
 * mask_set.c: where code sets its signal mask to a constant (memwatch/arch.h, mask_set).
 *
 *      lea  set(%rip), %rsi        in any order, with others between
 *      mov  $14, %eax              rt_sigprocmask
 *      syscall
 */
#include "arch/x86_64/ops.h"

#include <string.h>

#define AROUND 64 /* bytes */

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
