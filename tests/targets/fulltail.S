/* SPDX-License-Identifier: MIT */
/* The code's last page is full: behind it there is no room for copies of instructions. .fini comes last, and ends with
 * a few bytes of the C library's. */
	.section .fini, "ax", @progbits
	jmp 1f
	.balign 4096
	.fill 4096 - 32, 1, 0xcc
1:
	.section .note.GNU-stack, "", @progbits
