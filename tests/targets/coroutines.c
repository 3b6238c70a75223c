/* SPDX-License-Identifier: MIT */
/*
 * coroutines: allocates on stacks that begin in the ways of libraries for coroutines. Each kind has a size of block of
 * its own, 100 + its number in enum kind.
 */
#include "target.h"

#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE   4096u
#define STACK  (4 * PAGE)
#define ROUNDS 50

enum kind {
	CONTEXT,    /* makecontext */
	ZERO,       /* 0 to return to */
	JUMPED,     /* jumped to: the return address would stand behind the stack's memory */
	FILLED,     /* a word in its place that is no code, the last one of the stack's memory */
	ADJACENT,   /* a function to return to that begins right behind another */
	TRAMPOLINE, /* called by code that says that nothing has called it */
	BARE,       /* called by code that says nothing */
	UNKNOWN,    /* what stands there is no code, and there is more memory above: nobody can know */
	KINDS
};

void coroutine_switch(void **to, void **from);
void coroutine_adjacent(void);
void coroutine_trampoline(void);
void coroutine_bare(void);

/* What a switch keeps stands on the stack, in the order of its pops. */
__asm__(".text\n"
	".p2align 4\n"
	".globl coroutine_switch\n"
	".type coroutine_switch, @function\n"
	"coroutine_switch:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r12\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r13\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r14\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r15\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rsp, (%rsi)\n"
	"	mov (%rdi), %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size coroutine_switch, .-coroutine_switch\n"
	".p2align 4\n"
	".type coroutine_before, @function\n"
	"coroutine_before:\n"
	"	.cfi_startproc\n"
	"	sub $24, %rsp\n"
	"	.cfi_def_cfa_offset 32\n"
	"1:	jmp 1b\n"
	"	.cfi_endproc\n"
	".size coroutine_before, .-coroutine_before\n"
	".globl coroutine_adjacent\n"
	".type coroutine_adjacent, @function\n"
	"coroutine_adjacent:\n"
	"	.cfi_startproc\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	".size coroutine_adjacent, .-coroutine_adjacent\n"
	".p2align 4\n"
	".globl coroutine_trampoline\n"
	".type coroutine_trampoline, @function\n"
	"coroutine_trampoline:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	call *%rbx\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size coroutine_trampoline, .-coroutine_trampoline\n"
	".p2align 4\n"
	".globl coroutine_bare\n"
	".type coroutine_bare, @function\n"
	"coroutine_bare:\n"
	"	call *%rbx\n"
	"	ud2\n"
	".size coroutine_bare, .-coroutine_bare\n"
	".previous\n");

static ucontext_t scheduler, context;
static void *outside, *inside[KINDS];
static enum kind current;
static void *kept[KINDS * ROUNDS];
static unsigned kept_count;

static KEEP void coroutine_leak(void)
{
	void *block = malloc(100 + (size_t)current);

	kept[kept_count++] = block;
	OPAQUE(block);
}

static void context_body(void)
{
	for (;;) {
		coroutine_leak();
		swapcontext(&context, &scheduler);
	}
}

static KEEP void coroutine_body(void)
{
	for (;;) {
		coroutine_leak();
		coroutine_switch(&outside, &inside[current]);
	}
}

static KEEP void coroutine_top_body(void)
{
	for (;;) {
		coroutine_leak();
		coroutine_switch(&outside, &inside[current]);
		OPAQUE(current);
	}
}

/* Memory with a hole before and behind it. */
static char *make_stack(void)
{
	char *at = mmap(NULL, STACK + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + PAGE, STACK, PROT_READ | PROT_WRITE))
		target_fail("mmap of a stack");
	return at + PAGE;
}

static uintptr_t *put_code(uintptr_t *top, void (*code)(void))
{
	memcpy(--top, &code, sizeof(*top));
	return top;
}

/* What the first switch to it pops: registers, and where to go. */
static void make(enum kind kind)
{
	uintptr_t *top = (uintptr_t *)(void *)(make_stack() + STACK);
	void (*body)(void) = coroutine_body;

	if (kind == FILLED)
		*--top = 0x1234;
	if (kind == UNKNOWN) {
		top -= 8;
		*--top = 0x1234;
	}
	if (kind == ADJACENT) {
		*--top = 0x1234;
		*--top = 0x5678;
		top = put_code(top, coroutine_adjacent);
	}
	if (kind == ZERO || kind == TRAMPOLINE || kind == BARE)
		*--top = 0;
	if (kind == TRAMPOLINE)
		top = put_code(top, coroutine_trampoline);
	else if (kind == JUMPED || kind == FILLED)
		top = put_code(top, coroutine_top_body);
	else
		top = put_code(top, kind == BARE ? coroutine_bare : coroutine_body);
	top -= 6;
	memcpy(&top[4], &body, sizeof(body)); /* rbx */
	inside[kind] = top;
}

int main(void)
{
	char key[64];

	getcontext(&context);
	context.uc_stack.ss_sp = make_stack();
	context.uc_stack.ss_size = STACK;
	context.uc_link = &scheduler;
	makecontext(&context, context_body, 0);
	for (enum kind kind = ZERO; kind < KINDS; kind++)
		make(kind);
	target_ready();
	for (unsigned i = 0; i < ROUNDS; i++) {
		current = CONTEXT;
		swapcontext(&scheduler, &context);
		for (current = ZERO; current < KINDS; current++)
			coroutine_switch(&inside[current], &outside);
	}
	snprintf(key, sizeof(key), "coroutine_leak.impacting.count");
	target_say(key, (uint64_t)KINDS * ROUNDS);
	target_done();
	return 0;
}
