/* SPDX-License-Identifier: MIT */
/*
 * restarts: a program whose free jumps to its own start when it is called for the first time, as glibc's does from 2.43
 * on, and then to the C library's. It frees blocks from before the window.
 */
#include "target.h"

#include <stdlib.h>

#define BLOCKS 20

extern char restarts_begun;
extern void __libc_free(void *block);

__asm__(".pushsection .text\n"
	".globl free\n"
	".type free, @function\n"
	"free:\n"
	"	cmpb $0, restarts_begun(%rip)\n"
	"	jne 1f\n"
	"	movb $1, restarts_begun(%rip)\n"
	"	jmp free\n"
	"1:	jmp __libc_free@PLT\n"
	".size free, . - free\n"
	".popsection\n"
	".pushsection .data\n"
	".globl restarts_begun\n"
	"restarts_begun: .byte 0\n"
	".popsection\n");

int main(void)
{
	void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(24);
		OPAQUE(blocks[i]);
	}
	target_ready();
	for (int i = 0; i < BLOCKS; i++) {
		restarts_begun = 0;
		free(blocks[i]);
	}
	target_say("heap.aofi.count", BLOCKS);
	target_done();
	return 0;
}
