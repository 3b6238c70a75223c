/* SPDX-License-Identifier: MIT */
/* image.S: the rescue's image as it is linked (memwatch/rescue.h), embedded. */
	.section .rodata.mw_rescue_image, "a", @progbits
	.balign 64
	.globl	mw_rescue_image
	.type	mw_rescue_image, @object
mw_rescue_image:
	.incbin	"rescue_image.bin"
1:
	.size	mw_rescue_image, 1b - mw_rescue_image
	.balign 4
	.globl	mw_rescue_image_size
	.type	mw_rescue_image_size, @object
mw_rescue_image_size:
	.long	1b - mw_rescue_image
	.size	mw_rescue_image_size, 4
	.section .note.GNU-stack, "", @progbits
