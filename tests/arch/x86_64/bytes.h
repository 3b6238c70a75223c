/* SPDX-License-Identifier: MIT */
/* bytes.h: instructions as byte strings, so that tables stay readable. */
#ifndef TESTS_ARCH_X86_64_BYTES_H
#define TESTS_ARCH_X86_64_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	const char *data;
	uint8_t size;
};

/* BYTES("\x48\x89\xe5") */
#define BYTES(literal)                                                                                                 \
	{                                                                                                              \
		literal, sizeof(literal) - 1                                                                           \
	}

#endif
