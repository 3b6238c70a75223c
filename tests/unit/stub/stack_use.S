/* SPDX-License-Identifier: MIT */
/* stack_use.S: a call of a hooked function, any number of frames of 16 bytes deep, that says where its stack ends. */
	.text
/* void stack_use_call(void *function, long depth, void *pointer) */
	.globl	stack_use_call, stack_use_call_end
	.balign 16
stack_use_call:
	subq	$8, %rsp
	decq	%rsi
	js	1f
	call	stack_use_call
	jmp	2f
1:	movq	%rdi, %rax
	movq	%rsp, stack_use_sp(%rip)
	movq	%rdx, %rdi
	movl	$16, %esi
	movl	$16, %edx
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	call	*%rax
2:	addq	$8, %rsp
	ret
stack_use_call_end:
/* What is hooked: uses nothing of the stack. */
	.globl	stack_use_original
stack_use_original:
	leaq	stack_use_block(%rip), %rax
	ret
/* A signal's handler is called by the kernel; the call comes right from it. */
	.globl	stack_use_handler
stack_use_handler:
	movq	stack_use_function(%rip), %rdi
	movl	$3, %esi
	leaq	stack_use_block(%rip), %rdx
	jmp	stack_use_call
	.globl	stack_use_signal, stack_use_restorer, stack_use_signal_end
stack_use_signal:
	nop
stack_use_restorer:
	movl	$15, %eax
	syscall
stack_use_signal_end:

	.bss
	.balign 64
	.globl	stack_use_sp, stack_use_function, stack_use_block
stack_use_sp:	.zero 8
stack_use_function: .zero 8
stack_use_block: .zero 64
	.section .note.GNU-stack, "", @progbits
