/* SPDX-License-Identifier: MIT */
/* fuzz.h: what the fuzzers share: input that is taken bit by bit, and what must hold. */
#ifndef MW_FUZZ_H
#define MW_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void insist(bool good)
{
	if (!good)
		abort();
}

/* What is left of the input. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next `size` bytes as a number, little-endian; what is missing is 0. */
static inline uint64_t fuzz_take(struct fuzz_input *input, size_t size)
{
	size_t got = size < input->left ? size : input->left;
	uint64_t value = 0;

	if (got)
		memcpy(&value, input->at, got);
	input->at += got;
	input->left -= got;
	return value;
}

/* A number that is likely to hurt, or any other: one byte of input, or nine. */
static inline uint64_t fuzz_odd(struct fuzz_input *input)
{
	uint8_t kind = (uint8_t)fuzz_take(input, 1);

	switch (kind % 8) {
	case 0:
		return fuzz_take(input, 8);
	case 1:
		return UINT64_C(1) << kind / 8 * 2;
	case 2:
		return UINT64_MAX - kind / 8;
	case 3:
		return (uint64_t)INT32_MAX + kind / 8 - 16;
	case 4:
		return (uint64_t)UINT32_MAX + kind / 8 - 16;
	case 5:
		return fuzz_take(input, 2);
	default:
		return kind / 8;
	}
}

#endif
