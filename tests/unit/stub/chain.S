/* SPDX-License-Identifier: MIT */
/* chain.S: functions that call each other, each with a frame of 16 bytes: chain_N goes N frames down, and makes pairs. */
	.text
	.globl	chain_start
chain_start:
	nop
	.macro	level n, below
	.globl	chain_\n
	.balign 16
chain_\n:
	subq	$8, %rsp
	call	chain_\below
	addq	$8, %rsp
	ret
	.endm
/* (pairs, malloc, free) */
	.globl	chain_1
	.balign 16
chain_1:
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	movq	%rdi, %rbx
	movq	%rsi, %r12
	movq	%rdx, %r13
	subq	$16, %rsp
1:	movl	$64, %edi
	call	*%r12
	movq	%rax, %rdi
	call	*%r13
	decq	%rbx
	jnz	1b
	addq	$16, %rsp
	popq	%r13
	popq	%r12
	popq	%rbx
	ret
	.globl	chain_1_end
chain_1_end:
	.set	i, 2
	.altmacro
	.macro	levels_to last
	.rept	\last - 1
	.set	j, i - 1
	level	%i, %j
	.set	i, i + 1
	.endr
	.endm
	levels_to 40
	.globl	chain_end
chain_end:
	nop
	.section .note.GNU-stack, "", @progbits
