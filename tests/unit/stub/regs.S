/* SPDX-License-Identifier: MIT */
/*
 * regs.S: a call with all registers and flags as wanted, and a function that looks at all of them and changes them.
 *
 * struct regs: 0 rax, rdx, rcx, rbx, rsi, rdi, rbp, (sp), 64 r8 … 120 r15, 128 flags, 136 unused, 144 xmm0 … 15
 */
	.macro	load from
	movq	128(\from), %rax
	pushq	%rax
	popfq
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu	144+16*\n(\from), %xmm\n
	.endr
	movq	0(\from), %rax
	movq	8(\from), %rdx
	movq	16(\from), %rcx
	movq	32(\from), %rsi
	movq	40(\from), %rdi
	movq	64(\from), %r8
	movq	72(\from), %r9
	movq	80(\from), %r10
	.endm
	.macro	store to
	movq	%rax, 0+\to(%rip)
	movq	%rdx, 8+\to(%rip)
	movq	%rcx, 16+\to(%rip)
	movq	%rbx, 24+\to(%rip)
	movq	%rsi, 32+\to(%rip)
	movq	%rdi, 40+\to(%rip)
	movq	%rbp, 48+\to(%rip)
	movq	%rsp, 56+\to(%rip)
	movq	%r8, 64+\to(%rip)
	movq	%r9, 72+\to(%rip)
	movq	%r10, 80+\to(%rip)
	movq	%r11, 88+\to(%rip)
	movq	%r12, 96+\to(%rip)
	movq	%r13, 104+\to(%rip)
	movq	%r14, 112+\to(%rip)
	movq	%r15, 120+\to(%rip)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu	%xmm\n, 144+16*\n+\to(%rip)
	.endr
	pushfq
	popq	128+\to(%rip)
	.endm

	.text
/* void regs_call(void *function): regs_in → call → regs_out */
	.globl	regs_call
regs_call:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp
	movq	%rdi, regs_function(%rip)
	leaq	regs_in(%rip), %r11
	movq	24(%r11), %rbx
	movq	48(%r11), %rbp
	movq	96(%r11), %r12
	movq	104(%r11), %r13
	movq	112(%r11), %r14
	movq	120(%r11), %r15
	load	%r11
	movq	88(%r11), %r11
	call	*regs_function(%rip)
	store	regs_out
	movq	%rsp, regs_sp(%rip)
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
/* What is called in the end: all registers → regs_seen; those that a function may change ← regs_given. */
	.globl	regs_target
regs_target:
	store	regs_seen
	leaq	regs_given(%rip), %r11
	load	%r11
	movq	88(%r11), %r11
	ret

	.bss
	.balign 64
	.globl	regs_in, regs_out, regs_seen, regs_given, regs_sp
regs_in:	.zero 400
regs_out:	.zero 400
regs_seen:	.zero 400
regs_given:	.zero 400
regs_function:	.zero 8
regs_sp:	.zero 8
	.section .note.GNU-stack, "", @progbits
