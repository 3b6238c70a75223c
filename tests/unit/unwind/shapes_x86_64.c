// SPDX-License-Identifier: MIT
/* shapes_x86_64.c: x86-64 functions without frame descriptions (shapes.h). */
#include "shapes.h"

#include <stddef.h>

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, R15 };

#define MARK(reg) (0x1000u + (reg))

/* What the assembler's part leaves behind: rbx rbp r12 r13 r14 r15 rsp pc; the caller's rsp and pc. */
uint64_t shape_raw[8] __attribute__((visibility("hidden")));
uint64_t shape_home[2] __attribute__((visibility("hidden")));
void shape_look(void) __attribute__((visibility("hidden")));

/*
 * shape_probe stands for the function that a shape calls: notes the registers as they will be when it has
 * returned, and hands them to C on an aligned stack. shape_escape does so and never returns: it goes on where the
 * shape's caller does, which is shape_enter.
 */
__asm__(".text\n"
	".macro notice\n"
	"	mov %rbx, shape_raw(%rip)\n"
	"	mov %rbp, shape_raw+8(%rip)\n"
	"	mov %r12, shape_raw+16(%rip)\n"
	"	mov %r13, shape_raw+24(%rip)\n"
	"	mov %r14, shape_raw+32(%rip)\n"
	"	mov %r15, shape_raw+40(%rip)\n"
	"	lea 8(%rsp), %rax\n"
	"	mov %rax, shape_raw+48(%rip)\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, shape_raw+56(%rip)\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	call shape_look\n"
	"	leave\n"
	".endm\n"
	".type shape_probe, @function\n"
	"shape_probe:\n"
	"	notice\n"
	"	ret\n"
	".type shape_escape, @function\n"
	"shape_escape:\n"
	"	notice\n"
	"	mov shape_home(%rip), %rsp\n"
	"	jmp *shape_home+8(%rip)\n"
	".purgem notice\n"
	".globl shape_enter\n"
	".type shape_enter, @function\n"
	"shape_enter:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov $0x1003, %ebx\n	mov $0x1006, %ebp\n	mov $0x100c, %r12d\n"
	"	mov $0x100d, %r13d\n	mov $0x100e, %r14d\n	mov $0x100f, %r15d\n"
	"	mov %rsp, shape_home(%rip)\n"
	"	lea 1f(%rip), %rax\n"
	"	mov %rax, shape_home+8(%rip)\n"
	"	call *%rdi\n"
	"1:	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n");

/* No .cfi in these; each name is its case. */
__asm__(".text\n"
	".macro shape name\n	.p2align 4\n	.globl \\name\n	.type \\name, @function\n\\name:\n	.endm\n"

	"	shape shape_push\n"
	"	push %rbx\n	mov $7, %ebx\n	call shape_probe\n	pop %rbx\n	ret\n"

	"	shape shape_sub\n"
	"	sub $0x128, %rsp\n	call shape_probe\n	add $0x128, %rsp\n	ret\n"

	"	shape shape_all\n"
	"	push %r15\n	push %r14\n	push %r13\n	push %r12\n	push %rbp\n	push %rbx\n"
	"	sub $0x18, %rsp\n"
	"	xor %ebx, %ebx\n	mov %rdi, %rbp\n	mov %rdi, %r12\n	mov $1, %r13d\n	mov $2, %r14d\n"
	"	mov $3, %r15d\n	call shape_probe\n"
	"	add $0x18, %rsp\n"
	"	pop %rbx\n	pop %rbp\n	pop %r12\n	pop %r13\n	pop %r14\n	pop %r15\n	ret\n"

	"	shape shape_leave\n"
	"	push %rbp\n	mov %rsp, %rbp\n	sub $0x40, %rsp\n	call shape_probe\n	leave\n	ret\n"

	/* A stack of unknown size under a frame pointer. */
	"	shape shape_alloca\n"
	"	push %rbp\n	mov %rsp, %rbp\n	push %rbx\n	push %r12\n	mov $5, %ebx\n	mov $6, %r12d\n"
	"	mov %rdi, %rax\n	and $0x70, %eax\n	sub %rax, %rsp\n	and $-32, %rsp\n"
	"	call shape_probe\n	lea -0x10(%rbp), %rsp\n	pop %r12\n	pop %rbx\n	pop %rbp\n	ret\n"

	/* Several returns that agree, one of them behind the others and above the pc. */
	"	shape shape_returns\n"
	"	push %rbx\n	mov $9, %ebx\n	test %rdi, %rdi\n	jnz 2f\n"
	"1:	xor %eax, %eax\n	pop %rbx\n	ret\n"
	"2:	call shape_probe\n	test %eax, %eax\n	js 1b\n	jz 3f\n	pop %rbx\n	ret\n"
	"3:	mov $1, %eax\n	pop %rbx\n	ret\n"

	/* The last call is a jump. */
	"	shape shape_tail\n"
	"	push %rbx\n	mov $4, %ebx\n	call shape_probe\n	pop %rbx\n	jmp shape_nothing\n"
	"	shape shape_nothing\n"
	"	ret\n"

	/* Calls on the way out move nothing; arguments on the stack do. */
	"	shape shape_arguments\n"
	"	sub $8, %rsp\n	push $1\n	push $2\n	call shape_probe\n	add $0x10, %rsp\n"
	"	call shape_nothing\n	add $8, %rsp\n	ret\n"

	"	shape shape_loop\n"
	"	push %rbx\n	push %rbp\n	mov $1, %ebx\n	xor %ebp, %ebp\n"
	"1:	call shape_probe\n	dec %ebx\n	jnz 1b\n	pop %rbp\n	pop %rbx\n	ret\n"

	/* Ends with a call that never returns; the code that happens to follow is another function's. */
	"	shape shape_no_return\n"
	"	sub $0x48, %rsp\n	call shape_escape\n"
	"	.type shape_behind, @function\n"
	"shape_behind:\n"
	"	add $0x28, %rsp\n	ret\n"

	/* Ends for good, as its code says. */
	"	shape shape_halt\n"
	"	push %rbx\n	call shape_escape\n	hlt\n"

	/* Goes back to a stack that it had put aside, as code does that calls C on another one. */
	"	shape shape_switch\n"
	"	push %rbx\n	mov %rsp, %rbx\n	and $-64, %rsp\n	call shape_probe\n	mov %rbx, "
	"%rsp\n	pop %rbx\n"
	"	ret\n"

	/* What is between these two is said to be generated: what its code does not say is by the frame pointer. */
	"	.globl v8_Shape_embedded_blob_code_\n"
	"v8_Shape_embedded_blob_code_:\n"
	"	shape shape_generated\n"
	"	push %rbp\n	mov %rsp, %rbp\n	push $7\n	lea 1f(%rip), %rax\n	jmp *%rax\n"
	"	.skip 8, 0x06\n"
	"1:	call shape_probe\n	leave\n	ret\n"
	".size shape_generated, . - shape_generated\n"
	/* Moves its return address about before it sets up its frame. */
	"	shape shape_generated_moves\n"
	"	pop %rcx\n	push %rcx\n	push %rbp\n	mov %rsp, %rbp\n	push $9\n"
	"	call shape_probe\n	leave\n	ret\n"
	".size shape_generated_moves, . - shape_generated_moves\n"
	/* Has no frame where it calls. */
	"	shape shape_generated_frameless\n"
	"	sub $8, %rsp\n	call shape_probe\n	add $8, %rsp\n	push %rbp\n	mov %rsp, %rbp\n"
	"	leave\n	ret\n"
	".size shape_generated_frameless, . - shape_generated_frameless\n"
	/* Stands in the place of the function whose frame it takes down. */
	"	shape shape_generated_for\n"
	"	push %rbp\n	mov %rsp, %rbp\n	jmp shape_generated_instead\n"
	".size shape_generated_for, . - shape_generated_for\n"
	"	shape shape_generated_instead\n"
	"	push %rdi\n	call shape_probe\n	mov %rbp, %rsp\n	pop %rbp\n	ret\n"
	".size shape_generated_instead, . - shape_generated_instead\n"
	/* Has put no frame up, and does not say how far its caller's is. */
	"	shape shape_generated_switch\n"
	"	mov %rsp, %r10\n	sub $8, %rsp\n	and $-16, %rsp\n	mov %r10, (%rsp)\n	call "
	"shape_probe\n"
	"	mov (%rsp), %rsp\n	ret\n"
	".size shape_generated_switch, . - shape_generated_switch\n"
	"shape_generated_end:\n"
	"	.pushsection .rodata\n	.globl v8_Shape_embedded_blob_code_size_\n"
	"v8_Shape_embedded_blob_code_size_:\n"
	"	.long shape_generated_end - v8_Shape_embedded_blob_code_\n	.popsection\n"
	"	.purgem shape\n");

void shape_enter(void (*shape)(void));

void shape_look(void)
{
	static const uint8_t order[] = {RBX, RBP, R12, R13, R14, R15, RSP};
	struct mw_regs regs = {.pc = shape_raw[7]}, caller = {.pc = shape_home[1]};

	for (unsigned i = 0; i < sizeof(order); i++) {
		regs.gpr[order[i]] = shape_raw[i];
		caller.gpr[order[i]] = MARK(order[i]);
	}
	caller.gpr[RSP] = shape_home[0];
	shape_seen(&regs, &caller);
}

#define SHAPES(on)                                                                                                     \
	on(push) on(sub) on(all) on(leave) on(alloca) on(returns) on(tail) on(arguments) on(loop) on(no_return)        \
		on(halt) on(switch) on(generated) on(generated_moves) on(generated_frameless) on(generated_for)        \
			on(generated_switch)
#define DECLARE(name) void shape_##name(void);
#define ROW(name)     {#name, shape_##name},

SHAPES(DECLARE)

static const struct {
	const char *name;
	void (*code)(void);
} shapes[] = {SHAPES(ROW)};

const char *shape_run(unsigned number)
{
	if (number >= sizeof(shapes) / sizeof(shapes[0]))
		return NULL;
	shape_enter(shapes[number].code);
	return shapes[number].name;
}
