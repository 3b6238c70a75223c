// SPDX-License-Identifier: MIT
/* sigframe_compute_x86_64.c: a computation in registers alone (sigframe_compute.h). */
#include "sigframe_compute.h"

#include <stdint.h>
#include <string.h>

#define SPINS 20000

bool sigframe_computes(void)
{
	static const double numbers[4] = {1.25, -7.5, 1e300, 3.0};
	uint64_t found[4] = {0}, sum = 0;
	double vectors[4] = {0};
	unsigned flags = 0;

	__asm__ volatile("movupd (%[numbers]), %%xmm3\n"
			 "movupd 16(%[numbers]), %%xmm15\n"
			 "movq $0x1122334455667788, %%r12\n"
			 "movq $0x2233445566778899, %%r13\n"
			 "movq $0x33445566778899aa, %%r10\n"
			 "movq $0x445566778899aabb, %%r11\n"
			 "movl %[spins], %%ecx\n"
			 "1: addq $3, %[sum]\n"
			 "stc\n" /* which dec leaves alone */
			 "decl %%ecx\n"
			 "jnz 1b\n"
			 "setc %b[flags]\n"
			 "movq %%r12, (%[found])\n"
			 "movq %%r13, 8(%[found])\n"
			 "movq %%r10, 16(%[found])\n"
			 "movq %%r11, 24(%[found])\n"
			 "movupd %%xmm3, (%[vectors])\n"
			 "movupd %%xmm15, 16(%[vectors])\n"
			 : [sum] "+r"(sum), [flags] "+q"(flags)
			 : [numbers] "r"(numbers), [found] "r"(found), [vectors] "r"(vectors), [spins] "i"(SPINS)
			 : "rcx", "r10", "r11", "r12", "r13", "xmm3", "xmm15", "memory", "cc");
	return sum == UINT64_C(3) * SPINS && flags == 1 && memcmp(vectors, numbers, sizeof(vectors)) == 0 &&
	       found[0] == 0x1122334455667788 && found[1] == 0x2233445566778899 && found[2] == 0x33445566778899aa &&
	       found[3] == 0x445566778899aabb;
}
