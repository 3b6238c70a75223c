/* SPDX-License-Identifier: MIT */
/*
 * rescue_entry.S: the handler of SIGTRAP as the kernel enters and leaves it (memwatch/rescue.h).
 *
 * A signal that is the program's own affair is handed on by a jump: the program's handler finds the stack as the kernel
 * has laid it, with its own restorer as return address, and nothing of ours in it.
 */
#include "rescue_layout.h"

	.section .rescue.header, "a", @progbits
	.globl	mw_rescue_image_start
	.hidden	mw_rescue_image_start
mw_rescue_image_start:
	.quad	MW_RESCUE_ASM_MAGIC
	.long	MW_RESCUE_ASM_LAYOUT
	.long	rescue_enter - mw_rescue_image_start
	.long	rescue_restorer - mw_rescue_image_start
	.long	rescue_call - mw_rescue_image_start
	.long	rescue_image_end - mw_rescue_image_start
	.long	rescue_act_enter - mw_rescue_image_start

	.section .rescue.entry, "ax", @progbits
	/* rdi: signal, rsi: siginfo, rdx: frame; (rsp): rescue_restorer */
	.globl	rescue_enter
	.type	rescue_enter, @function
rescue_enter:
	lock incl mw_rescue_image_start + MW_RESCUE_ASM_CODE(%rip)
	push	%rdi
	push	%rsi
	push	%rdx
	call	rescue_handle
	mov	%rdx, %rcx
	pop	%rdx
	pop	%rsi
	pop	%rdi
	test	%rax, %rax
	jz	1f
	test	%rcx, %rcx
	jz	2f
	mov	%rcx, (%rsp)
2:	lock decl mw_rescue_image_start + MW_RESCUE_ASM_CODE(%rip)
	jmp	*%rax
1:	lock decl mw_rescue_image_start + MW_RESCUE_ASM_CODE(%rip)
	ret
	.size	rescue_enter, . - rescue_enter

	.balign	16
	/* In the place of a system call instruction; rcx, which that loses: where to go on. The stack may be in use below
	 * its pointer. */
	.type	rescue_act_enter, @function
rescue_act_enter:
	lea	-128(%rsp), %rsp
	pushf
	lock incl mw_rescue_image_start + MW_RESCUE_ASM_CODE(%rip)
	push	%rcx
	push	%rbx
	push	%rax
	push	%r9
	push	%r8
	push	%r10
	push	%rdx
	push	%rsi
	push	%rdi
	mov	%rsp, %rdi
	mov	%rsp, %rbx
	and	$-16, %rsp
	call	rescue_act
	mov	%rbx, %rsp
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%r10
	pop	%r8
	pop	%r9
	pop	%rcx
	pop	%rbx
	pop	%rcx
	lock decl mw_rescue_image_start + MW_RESCUE_ASM_CODE(%rip)
	popf
	lea	128(%rsp), %rsp
	jmp	*%rcx
	.size	rescue_act_enter, . - rescue_act_enter

	.balign	16
	/* As every C library has it, so that debuggers know it. */
rescue_restorer:
	mov	$15, %rax
	syscall

	.balign	16
rescue_call:
	syscall
	ret

	.section .rescue.end, "a", @progbits
rescue_image_end:
	.section .note.GNU-stack, "", @progbits
