/* SPDX-License-Identifier: MIT */
/* image.S: the recorder's image as it is linked (stub.h), embedded. */
	.section .rodata.mw_stub_image, "a", @progbits
	.balign 64
	.globl	mw_stub_image
	.type	mw_stub_image, @object
mw_stub_image:
	.incbin	"stub_image.bin"
1:
	.size	mw_stub_image, 1b - mw_stub_image
	.balign 4
	.globl	mw_stub_image_size
	.type	mw_stub_image_size, @object
mw_stub_image_size:
	.long	1b - mw_stub_image
	.size	mw_stub_image_size, 4
	.section .note.GNU-stack, "", @progbits
