/* SPDX-License-Identifier: MIT */
/*
 * chain.S: functions that call each other. chain_N goes N frames down, each of 16 bytes, and makes pairs. vary_N and
 * frames_N go N down by one of two calls each, as bit N of the first argument says, and make one pair: in vary the two
 * differ in their return addresses, in frames one of them leads to functions with frames of 48 bytes (wide_N), which lie
 * between wide_start and wide_end.
 */
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
	/* (ways, malloc, free) */
	.balign 16
pair:
	pushq	%rdx
	movl	$64, %edi
	call	*%rsi
	movq	%rax, %rdi
	call	*(%rsp)
	addq	$8, %rsp
	ret
	.macro	fork name, n, below, other, size
	.globl	\name\n
	.balign 16
\name\n:
	subq	$\size, %rsp
	btl	$\n, %edi
	jc	1f
	call	\below
2:	addq	$\size, %rsp
	ret
1:	call	\other
	jmp	2b
	.endm
	.macro	forks n, j
	fork	vary_, \n, vary_\j, vary_\j, 8
	fork	frames_, \n, frames_\j, wide_\j, 8
	.text 1
	fork	wide_, \n, frames_\j, wide_\j, 40
	.text 0
	.endm
	.text 1
	.globl	wide_start
wide_start:
	.text 0
	fork	vary_, 2, pair, pair, 8
	fork	frames_, 2, pair, pair, 8
	.text 1
	fork	wide_, 2, pair, pair, 40
	.text 0
	.set	i, 3
	.rept	28
	.set	j, i - 1
	forks	%i, %j
	.set	i, i + 1
	.endr
	.globl	chain_end
chain_end:
	nop
	.text 1
	.globl	wide_end
wide_end:
	nop
	.text 0
	.section .note.GNU-stack, "", @progbits
