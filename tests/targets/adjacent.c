/* SPDX-License-Identifier: MIT */
/*
 * adjacent: a coroutine's stack right below a thread's own, in one mapping with it: only a guard page
 * (MADV_GUARD_INSTALL) is between them, as there is below the stacks of glibc 2.42's threads. The thread allocates on
 * both, by way of code without unwind information.
 */
#include "target.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE      ((size_t)4096)
#define COROUTINE (16 * PAGE)
#define STACK     (64 * PAGE)
#define ROUNDS    50

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

void adjacent_bare(void (*function)(void));

__asm__(".text\n"
	".p2align 4\n"
	".globl adjacent_bare\n"
	".type adjacent_bare, @function\n"
	"adjacent_bare:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call *%rdi\n"
	"	pop %rbp\n"
	"	ret\n"
	".size adjacent_bare, .-adjacent_bare\n"
	".previous\n");

static ucontext_t own, coroutine;
static char *stacks;

static KEEP void adjacent_below(void)
{
	void *block = malloc(81);

	OPAQUE(block);
}

static KEEP void adjacent_above(void)
{
	void *block = malloc(82);

	OPAQUE(block);
}

static void body(void)
{
	for (;;) {
		adjacent_bare(adjacent_below);
		swapcontext(&coroutine, &own);
	}
}

static KEEP void *work(void *unused)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stacks;
	coroutine.uc_stack.ss_size = COROUTINE;
	coroutine.uc_link = &own;
	makecontext(&coroutine, body, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		swapcontext(&own, &coroutine);
		adjacent_bare(adjacent_above);
	}
	return unused;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	stacks = mmap(NULL, COROUTINE + PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		target_fail("mmap");
	/* Before Linux 6.13 there are none. */
	(void)madvise(stacks + COROUTINE, PAGE, MADV_GUARD_INSTALL);
	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, stacks + COROUTINE + PAGE, STACK))
		target_fail("pthread_attr_setstack");
	target_ready();
	if (pthread_create(&thread, &attributes, work, NULL))
		target_fail("pthread_create");
	pthread_join(thread, NULL);
	target_say("adjacent_below.impacting.count", ROUNDS);
	target_say("adjacent_above.impacting.count", ROUNDS);
	target_done();
	return 0;
}
