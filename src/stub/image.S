/* SPDX-License-Identifier: MIT */
/* image.S: the images as they are linked (stub.h), embedded: each `name`, 64-aligned, and its `name_size`. */
	.macro	embed name, file
	.balign 64
	.globl	\name
	.type	\name, @object
\name:
	.incbin	"\file"
1:
	.size	\name, 1b - \name
	.balign 4
	.globl	\name\()_size
	.type	\name\()_size, @object
\name\()_size:
	.long	1b - \name
	.size	\name\()_size, 4
	.endm

	.section .rodata.mw_stub_image, "a", @progbits
	embed	mw_stub_image, stub_image.bin
	embed	mw_rescue_image, rescue_image.bin
	.section .note.GNU-stack, "", @progbits
