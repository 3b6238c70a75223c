/* SPDX-License-Identifier: MIT */
/*
 * unmovable: an allocator with functions that no jump can be put over: one whose own loop comes back to its second
 * instruction, and one that is a single return with another function right behind it. Its names are mimalloc's.
 */
#include "target.h"

#include <stdlib.h>

#define ROUNDS 2000

void *mi_malloc(size_t size);
void *mi_calloc(size_t count, size_t size);
void mi_free(void *block);
size_t unmovable_next(size_t number);

extern __attribute__((visibility("hidden"))) char unmovable_memory[1 << 20];
char unmovable_memory[1 << 20] __attribute__((aligned(64)));
extern __attribute__((visibility("hidden"))) uint64_t unmovable_top;
uint64_t unmovable_top;

__asm__("	.text\n"
	"	.globl mi_malloc\n"
	"	.type mi_malloc, @function\n"
	"	.balign 16\n"
	"mi_malloc:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rbx, -16\n"
	"1:	mov unmovable_top(%rip), %rax\n"
	"	lea 15(%rax,%rdi), %rbx\n"
	"	and $-16, %rbx\n"
	"	lock cmpxchg %rbx, unmovable_top(%rip)\n"
	"	jne 1b\n"
	"	lea unmovable_memory(%rip), %rbx\n"
	"	add %rbx, %rax\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mi_malloc, . - mi_malloc\n"
	"	.globl mi_free\n"
	"	.type mi_free, @function\n"
	"mi_free:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mi_free, . - mi_free\n"
	"	.globl unmovable_next\n"
	"	.type unmovable_next, @function\n"
	"unmovable_next:\n"
	"	.cfi_startproc\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size unmovable_next, . - unmovable_next\n");

KEEP void *mi_calloc(size_t count, size_t size)
{
	size_t at = __atomic_fetch_add(&unmovable_top, (count * size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	return unmovable_memory + at;
}

static KEEP void unmovable_pair(void)
{
	char *block = mi_malloc(41);

	OPAQUE(block);
	if (block < unmovable_memory || block >= unmovable_memory + sizeof(unmovable_memory) - 41)
		target_fail("a block is not where it should be");
	mi_free(block);
}

static KEEP void unmovable_leak(void)
{
	void *block = mi_calloc(6, 7);

	OPAQUE(block);
}

int main(void)
{
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		unmovable_pair();
		unmovable_leak();
		if (unmovable_next((size_t)i) != (size_t)i + 1)
			target_fail("the function behind mi_free is changed");
	}
	target_say("unmovable_pair.transient.count", ROUNDS);
	target_say("unmovable_pair.transient.bytes", ROUNDS * 41);
	target_say("unmovable_leak.impacting.count", ROUNDS);
	target_say("unmovable_leak.impacting.bytes", ROUNDS * 42);
	target_say("heap.impacting.count", ROUNDS);
	target_done();
	return 0;
}
