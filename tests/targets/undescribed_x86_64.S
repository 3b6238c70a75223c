/* SPDX-License-Identifier: MIT */
/* undescribed_x86_64.S: what no compiler makes: void f(undescribed_step step, unsigned level). No .cfi here. */
	.text
	.macro function name
	.p2align 4
	.hidden \name
	.globl \name
	.type \name, @function
\name:
	.endm
	.macro done name
	.size \name, . - \name
	.endm

	function odd_enter
	enter $32, $0
	mov %rdi, %rax
	mov %esi, %edi
	call *%rax
	leave
	ret
	done odd_enter

	/* The stack pointer put aside in a register: where it was only that says. */
	function odd_stack
	push %r12
	mov %rsp, %r12
	and $-64, %rsp
	sub $128, %rsp
	mov %rdi, %rax
	mov %esi, %edi
	call *%rax
	mov %r12, %rsp
	pop %r12
	ret
	done odd_stack

	/* A frame pointer late, and not at the saved one. */
	function odd_late
	sub $0x18, %rsp
	test %esi, %esi
	js 1f
	push %rbx
	push %rbp
	lea -0x40(%rsp), %rbp
	sub $0x58, %rsp
	mov %rdi, %rax
	mov %esi, %edi
	call *%rax
	add $0x58, %rsp
	pop %rbp
	pop %rbx
1:	add $0x18, %rsp
	ret
	done odd_late

	/* The program counter, got by a call of what follows; and an end that two share. */
	function odd_shared
	push %rbx
	call 1f
1:	pop %rax
	mov %rdi, %rax
	mov %esi, %edi
	test $1, %edi
	jz 2f
	call *%rax
3:	pop %rbx
	ret
2:	call *%rax
	jmp 3b
	done odd_shared

	.section .note.GNU-stack, "", @progbits
