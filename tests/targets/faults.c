/* SPDX-License-Identifier: MIT */
/*
 * faults MODE: a program that lives by its own SIGSEGV, as collectors with write barriers do.
 *
 * barrier    threads write to pages that they have protected; the handler, on a stack of 16 KiB, notes the page, opens
 *            it and goes on. Each round protects them again, and allocates in between. Each page faults once a round.
 * allocator  blocks of the heap lie in protected pages when malloc, calloc, realloc and free come to write there: the
 *            fault is in the middle of the allocator, and the handler maps and unmaps memory of its own as well.
 * changing   the handler is exchanged, taken away and set anew between faults; each counts its own.
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE    4096u
#define THREADS 4
#define PAGES   16
#define ROUNDS  150
#define BIG     (4 * PAGE)

static char *heap_page; /* the page in question, where a mode has only one */
static _Atomic uint64_t handled, elsewhere, maps, others;
static __thread struct {
	char *pages;
	unsigned faults;
} mine;

static void handle(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	if (sigaction(SIGSEGV, &action, NULL))
		target_fail("sigaction");
}

static void use_alternate_stack(char *memory, size_t size)
{
	stack_t stack = {.ss_sp = memory, .ss_size = size};

	if (sigaltstack(&stack, NULL))
		target_fail("sigaltstack");
}

/* Opens the page of a fault; false if the fault is not a write to a protected page of [from, from + size). */
static bool repair(const siginfo_t *info, char *from, size_t size)
{
	char *at = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));

	if (info->si_code != SEGV_ACCERR || at < from || at >= from + size)
		return false;
	return mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0;
}

static void on_barrier(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (!repair(info, mine.pages, PAGES * PAGE))
		_exit(98);
	mine.faults++;
	atomic_fetch_add(&handled, 1);
}

static KEEP void faults_pair(size_t i)
{
	char *block = malloc(1 + i % 700);

	OPAQUE(block);
	memset(block, (int)i, 1 + i % 700);
	free(block);
}

static KEEP void faults_leak(void)
{
	void *block = malloc(73);

	OPAQUE(block);
}

static void *mutate(void *unused)
{
	/* Blocks of the heap that memwatch is told of only where the program says so: these are mappings. */
	char *stack = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mine.pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || mine.pages == MAP_FAILED)
		target_fail("mmap");
	use_alternate_stack(stack, 4 * PAGE);
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (mprotect(mine.pages, PAGES * PAGE, PROT_READ))
			target_fail("mprotect");
		for (unsigned i = 0; i < PAGES; i++) {
			volatile char *at = mine.pages + i * PAGE + round % PAGE;

			*at = (char)(*at + 1);
			*at = (char)(*at + 1); /* no fault any more */
			faults_pair(round * PAGES + i);
			if (i == 0)
				faults_leak();
		}
		if (mine.faults != (round + 1) * PAGES)
			target_fail("a write was not noted once");
	}
	for (unsigned i = 0; i < PAGES; i++)
		for (unsigned k = 0; k < ROUNDS; k++)
			if (mine.pages[i * PAGE + k] != 2)
				target_fail("a write was lost or doubled");
	return unused;
}

static void barrier(void)
{
	pthread_t threads[THREADS];

	handle(on_barrier, SA_ONSTACK | SA_RESTART);
	target_ready();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, mutate, NULL))
			target_fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (handled != (uint64_t)THREADS * ROUNDS * PAGES)
		target_fail("faults were lost or doubled");
	target_say("faults_pair.transient.count", THREADS * ROUNDS * PAGES);
	target_say("faults_pair.size.count", THREADS * ROUNDS * PAGES);
	target_say("faults_leak.impacting.count", THREADS * ROUNDS);
	target_say("faults_leak.impacting.bytes", THREADS * ROUNDS * 73);
}

static KEEP void vm_faults_in_handler(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		_exit(98);
	page[0] = 1;
	if (munmap(page, PAGE))
		_exit(98);
	atomic_fetch_add(&maps, 1);
}

static void on_heap_page(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (!repair(info, heap_page, PAGE))
		_exit(98);
	vm_faults_in_handler();
	atomic_fetch_add(&handled, 1);
}

/* The next write to that page is a fault. */
static void protect(char *page)
{
	heap_page = page;
	if (mprotect(page, PAGE, PROT_READ))
		target_fail("mprotect");
}

/* Blocks whose first page nothing else of the allocator lies in: it writes there when it frees, gives and fills. */
static KEEP void faults_in_allocator(uint64_t *expected)
{
	char *block = aligned_alloc(PAGE, BIG), *more;

	memset(block, 'x', BIG);
	protect(block);
	free(block); /* links it among the free ones */
	*expected += 1;
	block = aligned_alloc(PAGE, BIG);
	memset(block, 'y', BIG);
	more = malloc(2 * BIG);
	memset(more, 0, 2 * BIG);
	protect((char *)(((uintptr_t)more + PAGE) & ~(uintptr_t)(PAGE - 1)));
	free(more); /* in its middle nothing is written */
	more = calloc(1, 2 * BIG);
	OPAQUE(more);
	for (size_t i = 0; i < 2 * BIG; i++)
		if (more[i])
			target_fail("calloc gave what is not nought");
	mprotect(heap_page, PAGE, PROT_READ | PROT_WRITE);
	memset(more, 'c', 2 * BIG);
	protect((char *)(((uintptr_t)more + 2 * PAGE) & ~(uintptr_t)(PAGE - 1)));
	heap_page[PAGE / 2] = 'd';
	*expected += 1;
	if (heap_page[PAGE / 2] != 'd')
		target_fail("a write was lost");
	more = realloc(more, 5 * BIG);
	OPAQUE(more);
	if (more[0] != 'c' || more[2 * BIG - 1] != 'c')
		target_fail("realloc lost what was written");
	free(more);
	if (block[0] != 'y' || block[BIG - 1] != 'y')
		target_fail("a block lost what was written");
	free(block);
}

static void allocator(void)
{
	static char stack[16 * 1024];
	uint64_t expected = 0, calloc_faults;

	use_alternate_stack(stack, sizeof(stack));
	handle(on_heap_page, SA_ONSTACK);
	/* How often calloc met the page is the allocator's affair; it is in `handled` both ways. */
	target_ready();
	for (unsigned round = 0; round < ROUNDS; round++)
		faults_in_allocator(&expected);
	calloc_faults = handled - expected;
	if (handled < expected || calloc_faults > ROUNDS)
		target_fail("faults were lost or doubled");
	target_say("handled", handled);
	target_say("faults_in_allocator.transient.count", 5 * ROUNDS);
	target_say("faults_in_allocator.impacting.count", 0);
	target_say("vm_faults_in_handler.transient.count", maps);
	target_say("vm_faults_in_handler.transient.bytes", maps * PAGE);
}

static void on_other(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (!repair(info, heap_page, PAGE))
		_exit(98);
	atomic_fetch_add(&others, 1);
}

static void on_reset(int number, siginfo_t *info, void *context)
{
	struct sigaction now;

	(void)number, (void)context;
	if (!repair(info, heap_page, PAGE))
		_exit(98);
	/* It was for once. */
	if (sigaction(SIGSEGV, NULL, &now) || now.sa_handler != SIG_DFL)
		atomic_fetch_add(&elsewhere, 1);
	atomic_fetch_add(&handled, 1);
}

static void changing(void)
{
	struct sigaction old;

	heap_page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (heap_page == MAP_FAILED)
		target_fail("mmap");
	target_ready();
	for (unsigned round = 0; round < ROUNDS * 10; round++) {
		if (round % 2)
			handle(on_other, SA_NODEFER);
		else
			handle(on_reset, (int)SA_RESETHAND);
		faults_pair(round);
		protect(heap_page);
		((volatile char *)heap_page)[round % PAGE] = 1;
		if (sigaction(SIGSEGV, NULL, &old) ||
		    (round % 2 ? old.sa_sigaction != on_other : old.sa_handler != SIG_DFL))
			target_fail("the action is not what was set");
	}
	if (handled != ROUNDS * 5 || others != ROUNDS * 5 || elsewhere)
		target_fail("a fault went to another handler");
	target_say("faults_pair.transient.count", ROUNDS * 10);
	target_say("heap.size.count", ROUNDS * 10);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "barrier") == 0)
		barrier();
	else if (strcmp(mode, "allocator") == 0)
		allocator();
	else if (strcmp(mode, "changing") == 0)
		changing();
	else
		target_fail("usage: faults barrier|allocator|changing");
	target_done();
	return 0;
}
