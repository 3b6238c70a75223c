/* SPDX-License-Identifier: MIT */
/*
 * stub_entry.S: how functions come to the recorder in the target, and go from it (src/stub/stub.h).
 *
 *      at enter, find_fde            while the recorder's C runs
 *                                    | return address of the call (R)
 *      | R         sp + 72           |
 *      | call      sp, a hook's      | call           S
 *                                    | saved          S - 144: registers as the function is to find them
 *
 * Every register and flag, vector and x87 state included (nothing here touches it), is at the original as it was at the
 * call, and back in the caller as the original left it. Calls and returns are balanced, as shadow stacks want it. The
 * direction flag is clear at calls, as the ABI says. No popf: it is slow.
 *
 * The C functions are jumped to, with a return address where a call would have put it, and jump back here: why there are
 * no calls, recorder.h says at STUB_FLAT. What they leave on the stack and in registers is of no matter then.
 */
#include "stub_layout.h"

	.section .stub.header, "a", @progbits
	.balign 64
image:
	.long	STUB_MAGIC_LOW, STUB_MAGIC_HIGH
	.long	mw_stub_image_end - image
	.long	mw_stub_context - image
	.long	enter - image
	.long	mw_stub_returned - image
	.long	find_fde - image
	.long	fde - image
	.long	table - image
	.long	mw_stub_code_end - image
	.long	entries_end - image
	.long	entered - image
	.long	left - image
	.long	STUB_LAYOUT
	.long	enter_size0 - image
	.long	enter_size1 - image
	.long	enter_product - image
	.long	enter_free - image
table:
	.long	mw_stub_returned - 1 - image
	.long	fde - image
	.balign 64

	.section .stub.entry, "ax", @progbits

/* Flags to %rax and back: %al is the overflow flag, %ah the others. */
	.macro	save_flags
	lahf
	seto	%al
	.endm
	.macro	restore_flags
	addb	$0x7f, %al
	sahf
	.endm

	.balign 64
enter:
	movq	%rax, 8(%rsp)
	save_flags
	movq	%rax, 16(%rsp)
	movq	mw_stub_context+STUB_CONTEXT_GUARD(%rip), %rax
guarded:
	cmpl	$1, (%rax)
	jne	off
on:
	movq	16(%rsp), %rax
	leaq	-STUB_SAVED_SIZE(%rsp), %rsp
	movq	%rax, STUB_SAVED_FLAGS(%rsp)
	movq	STUB_SAVED_SIZE+8(%rsp), %rax
	movq	%rax, 0(%rsp)
	movq	%rdx, 8(%rsp)
	movq	%rcx, 16(%rsp)
	movq	%rbx, 24(%rsp)
	movq	%rsi, 32(%rsp)
	movq	%rdi, 40(%rsp)
	movq	%rbp, 48(%rsp)
	movq	%r8, 64(%rsp)
	movq	%r9, 72(%rsp)
	movq	%r10, 80(%rsp)
	movq	%r11, 88(%rsp)
	movq	%r12, 96(%rsp)
	movq	%r13, 104(%rsp)
	movq	%r14, 112(%rsp)
	movq	%r15, 120(%rsp)
	movq	%rsp, %rdi
	leaq	STUB_SAVED_SIZE(%rsp), %rsi
	leaq	entered(%rip), %rax
	pushq	%rax
	jmp	mw_stub_entering
/* %edi: what next, %rsi: where the registers are saved. */
	.globl	mw_stub_entered
	.hidden	mw_stub_entered
mw_stub_entered:
entered:
	movq	%rsi, %rsp
	testl	%edi, %edi
	movq	8(%rsp), %rdx
	movq	16(%rsp), %rcx
	movq	24(%rsp), %rbx
	movq	32(%rsp), %rsi
	movq	40(%rsp), %rdi
	movq	48(%rsp), %rbp
	movq	64(%rsp), %r8
	movq	72(%rsp), %r9
	movq	80(%rsp), %r10
	movq	88(%rsp), %r11
	movq	96(%rsp), %r12
	movq	104(%rsp), %r13
	movq	112(%rsp), %r14
	movq	120(%rsp), %r15
	movq	STUB_SAVED_FLAGS(%rsp), %rax
	jz	pass
	restore_flags
	movq	0(%rsp), %rax
	leaq	STUB_SAVED_SIZE(%rsp), %rsp
	call	*STUB_CALL_ORIGINAL(%rsp)
/* The stack pointer is S again: the call lies where it lay, and right above it R. */
	.globl	mw_stub_returned
	.hidden	mw_stub_returned
mw_stub_returned:
	leaq	-STUB_LEFT_SIZE(%rsp), %rsp
	movq	%rax, 0(%rsp)
	save_flags
	movq	%rax, STUB_LEFT_FLAGS(%rsp)
	movq	%rdx, 8(%rsp)
	movq	%rcx, 16(%rsp)
/* A free has nothing to tell any more: as mw_stub_leave does with it. */
	movl	STUB_LEFT_SIZE+STUB_CALL_FLAGS(%rsp), %eax
	andl	$STUB_SILENT_FREE, %eax
	cmpl	$STUB_SILENT_FREE, %eax
	jne	leave
	leaq	STUB_LEFT_SIZE(%rsp), %rax
	xorq	mw_stub_context+STUB_CONTEXT_COOKIE(%rip), %rax
	cmpq	%rax, STUB_LEFT_SIZE+STUB_CALL_COOKIE(%rsp)
	jne	leave
	movq	mw_stub_context+STUB_CONTEXT_GUARD(%rip), %rax
	cmpl	$1, (%rax)
	jne	leave
	cmpl	$0, mw_stub_context+STUB_CONTEXT_RDFSBASE(%rip)
	je	leave
	movq	STUB_LEFT_SIZE+STUB_CALL_SLOT(%rsp), %rcx
	rdfsbase %rax
	cmpq	%rax, STUB_SLOT_OWNER(%rcx)
	jne	leave
	movq	STUB_LEFT_SIZE+STUB_CALL_PREV(%rsp), %rax
	movq	$0, STUB_LEFT_SIZE+STUB_CALL_COOKIE(%rsp)
	movq	%rax, STUB_SLOT_TOP(%rcx)
	decl	STUB_SLOT_OPEN(%rcx)
	movq	STUB_LEFT_FLAGS(%rsp), %rax
	restore_flags
	movq	0(%rsp), %rax
	movq	8(%rsp), %rdx
	movq	16(%rsp), %rcx
	leaq	STUB_LEFT_SIZE+STUB_CALL_SIZE(%rsp), %rsp
	ret
leave:
	movq	%rsi, 24(%rsp)
	movq	%rdi, 32(%rsp)
	movq	%r8, 40(%rsp)
	movq	%r9, 48(%rsp)
	movq	%r10, 56(%rsp)
	movq	%r11, 64(%rsp)
	movq	%rbx, 72(%rsp)
	movq	%rbp, 80(%rsp)
	movq	%r12, 88(%rsp)
	movq	%r13, 96(%rsp)
	movq	%r14, 104(%rsp)
	movq	%r15, 112(%rsp)
	leaq	STUB_LEFT_SIZE(%rsp), %rdi
	movq	0(%rsp), %rsi
	leaq	left(%rip), %rax
	pushq	%rax
	jmp	mw_stub_leaving
/* %rsi: the call. */
	.globl	mw_stub_left
	.hidden	mw_stub_left
mw_stub_left:
left:
	leaq	-STUB_LEFT_SIZE(%rsi), %rsp
	movq	STUB_LEFT_FLAGS(%rsp), %rax
	restore_flags
	movq	0(%rsp), %rax
	movq	8(%rsp), %rdx
	movq	16(%rsp), %rcx
	movq	24(%rsp), %rsi
	movq	32(%rsp), %rdi
	movq	40(%rsp), %r8
	movq	48(%rsp), %r9
	movq	56(%rsp), %r10
	movq	64(%rsp), %r11
	movq	72(%rsp), %rbx
	movq	80(%rsp), %rbp
	movq	88(%rsp), %r12
	movq	96(%rsp), %r13
	movq	104(%rsp), %r14
	movq	112(%rsp), %r15
	leaq	STUB_LEFT_SIZE+STUB_CALL_SIZE(%rsp), %rsp
	ret

/* Below the stack pointer lies the red zone: what handles a signal leaves it alone. */
pass:
	restore_flags
	movq	0(%rsp), %rax
	leaq	STUB_SAVED_SIZE+STUB_CALL_SIZE(%rsp), %rsp
	jmp	*STUB_CALL_ORIGINAL-STUB_CALL_SIZE(%rsp)

/*
 * The fast path, for functions that call no hooked one, while blocks are sampled: a call that is not sampled goes on to the
 * original at once. The slow path is that of `enter`, with STUB_TAKEN in the call's flags where the thread's countdown has
 * ended. The countdown is in the thread's slot. The slow path is also taken where the slot is not at the first place that
 * its hash leads to, and inside another hooked call.
 *
 *      call + 8   %rax, flags, %rcx, %rdx
 */
	.macro	begin_sampled
	movq	%rax, 8(%rsp)
	save_flags
	movq	%rax, 16(%rsp)
	movq	mw_stub_context+STUB_CONTEXT_GUARD(%rip), %rax
	cmpl	$STUB_GUARD_SAMPLING, (%rax)
	jne	guarded
	movq	%rcx, 24(%rsp)
	movq	%rdx, 32(%rsp)
	.endm
	.macro	find_slot
	cmpl	$0, mw_stub_context+STUB_CONTEXT_RDFSBASE(%rip)
	je	slow_path
	rdfsbase %rax
	movq	%rax, %rcx
	shrq	$4, %rcx
	movabsq	$0x9e3779b97f4a7c15, %rdx
	imulq	%rdx, %rcx
	shrq	$40, %rcx
	andl	mw_stub_context+STUB_CONTEXT_SLOT_MASK(%rip), %ecx
	shlq	$STUB_SLOT_SHIFT, %rcx
	addq	mw_stub_context+STUB_CONTEXT_SLOTS(%rip), %rcx
	cmpq	%rax, STUB_SLOT_OWNER(%rcx)
	jne	slow_path
	cmpq	$0, STUB_SLOT_TOP(%rcx)
	jne	slow_path
	.endm

	.balign 64
enter_size0:
	begin_sampled
	find_slot
	movq	%rdi, %rax
	jmp	subtract
	.balign 16
enter_size1:
	begin_sampled
	find_slot
	movq	%rsi, %rax
	jmp	subtract
	.balign 16
enter_product:
	begin_sampled
	find_slot
	movq	%rdi, %rax
	mulq	%rsi
	jo	slow_path
/* %rax: the size, %rcx: the slot */
subtract:
	cmpq	$1, %rax	/* 0 counts as 1 */
	adcq	$0, %rax
	js	slow_path
	subq	%rax, STUB_SLOT_COUNTDOWN(%rcx)
	jns	unsampled
	movq	$STUB_TAKEN, STUB_CALL_FLAGS(%rsp)
	jmp	3f
slow_path:
	movq	$0, STUB_CALL_FLAGS(%rsp)
3:	movq	24(%rsp), %rcx
	movq	32(%rsp), %rdx
	jmp	on
	.balign 16
enter_free:
	begin_sampled
	movq	%rdi, %rcx
	movq	%rdi, %rax
	shrq	$4, %rcx
	shrq	$23, %rax
	xorl	%eax, %ecx
	andl	$STUB_FILTER_MASK, %ecx
	movl	%ecx, %eax
	shrl	$STUB_FILTER_PIECE, %eax
	movq	mw_stub_context+STUB_CONTEXT_FILTER(%rip), %rdx
	cmpb	$0, STUB_FILTER_MASK+1(%rdx,%rax)
	je	unsampled
	cmpb	$0, (%rdx,%rcx)
	jne	slow_path
unsampled:
	movq	32(%rsp), %rdx
	jmp	original

/* The guard is not 1. A forked child is to say so, once: 0, and what is recorded is being recorded. */
off:
	cmpl	$3, (%rax)
	jbe	1f
	movq	$0, STUB_CALL_FLAGS(%rsp)
	jmp	on
1:	cmpl	$0, (%rax)
	jne	2f
	movq	mw_stub_context+STUB_CONTEXT_SHARED(%rip), %rax
	testq	%rax, %rax
	jz	2f
	cmpl	$1, STUB_CONTROL_RECORDING(%rax)
	je	on
2:	movq	%rcx, 24(%rsp)
original:
	movl	STUB_CALL_HOOK(%rsp), %ecx
	cmpl	mw_stub_context+STUB_CONTEXT_HOOK_COUNT(%rip), %ecx
	jae	3f
	imulq	$STUB_HOOK_SIZE, %rcx, %rcx
	leaq	mw_stub_context+STUB_CONTEXT_HOOKS+STUB_HOOK_ORIGINAL(%rip), %rax
	movq	(%rax,%rcx), %rcx
	movq	16(%rsp), %rax
	restore_flags
	movq	8(%rsp), %rax
	movq	%rcx, STUB_CALL_ORIGINAL(%rsp)
	movq	24(%rsp), %rcx
	leaq	STUB_CALL_SIZE(%rsp), %rsp
	jmp	*STUB_CALL_ORIGINAL-STUB_CALL_SIZE(%rsp)
3:	ud2

/* void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases {void *tbase, *dbase, *func;} *bases) */
	.balign 16
find_fde:
	movq	%rax, 8(%rsp)
	save_flags
	movq	%rax, 16(%rsp)
	leaq	mw_stub_returned(%rip), %rax
	subq	%rdi, %rax
	cmpq	$1, %rax
	ja	2b
	movq	$0, 0(%rsi)
	movq	$0, 8(%rsi)
	leaq	mw_stub_returned-1(%rip), %rax
	movq	%rax, 16(%rsi)
	leaq	fde(%rip), %rax
	leaq	STUB_CALL_SIZE(%rsp), %rsp
	ret
entries_end:

/* How to unwind from `returned`: the frame is the call and R. An exception that passes is told to mw_stub_unwound. */
	.section .stub.frame, "a", @progbits
	.balign 8
cie:
	.long	cie_end - cie_id
cie_id:
	.long	0
	.byte	1
	.asciz	"zPR"
	.uleb128 1
	.sleb128 -8
	.uleb128 16
	.uleb128 6
	.byte	0x1b		/* pcrel | sdata4 */
	.long	mw_stub_unwound - .
	.byte	0x1b
	.byte	0x0c		/* DW_CFA_def_cfa */
	.uleb128 7
	.uleb128 STUB_CALL_SIZE+8
	.byte	0x80+16		/* DW_CFA_offset: R is right below the CFA */
	.uleb128 1
	.balign 8
cie_end:
fde:
	.long	fde_end - fde_id
fde_id:
	.long	fde_id - cie
	.long	mw_stub_returned - 1 - .
	.long	2
	.uleb128 0
	.balign 8
fde_end:
	.long	0
	.balign 8

/* What memwatch fills in. */
	.section .stub.context, "a", @progbits
	.balign 64
	.globl	mw_stub_context
	.hidden	mw_stub_context
mw_stub_context:
	.zero	STUB_CONTEXT_SIZE
	.balign 64
	.section .note.GNU-stack, "", @progbits
