/* SPDX-License-Identifier: MIT */
/*
 * lazy: provides pages of its own memory as they are touched (userfaultfd): a thread of it does that, which allocates,
 * too. A thread's stack lies in such memory, and so does one of a context that another runs, with nothing below what
 * they have used. Leaks a block for each of the pages that it touches inside the window, and checks what is in them.
 */
#include "target.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE   4096u
#define PAGES  512u
#define STACKS (64u * PAGE) /* each */
#define MARK   7

static int provider;
static unsigned char *memory, page[PAGE] __attribute__((aligned(4096)));
static ucontext_t outside, inside;

static void moment(void)
{
	const struct timespec length = {.tv_nsec = 500000};
	void *block = malloc(50);

	OPAQUE(block);
	free(block);
	nanosleep(&length, NULL);
}

static void *provide(void *unused)
{
	for (;;) {
		struct uffd_msg message;
		struct uffdio_copy copy = {.src = (uintptr_t)page, .len = PAGE};

		if (read(provider, &message, sizeof(message)) != sizeof(message))
			target_fail("read of userfaultfd");
		moment();
		copy.dst = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		ioctl(provider, UFFDIO_COPY, &copy);
	}
	return unused;
}

static void *on_such_a_stack(void *unused)
{
	for (;;)
		moment();
	return unused;
}

static void in_context(void)
{
	for (;;) {
		moment();
		swapcontext(&inside, &outside);
	}
}

static void *by_turns(void *stack)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACKS;
	makecontext(&inside, in_context, 0);
	for (;;) {
		swapcontext(&outside, &inside);
		moment();
	}
	return NULL;
}

static void begin_to_provide(size_t size)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	provider = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)memory;
	range.range.len = size;
	if (provider < 0 || memory == MAP_FAILED || ioctl(provider, UFFDIO_API, &api) != 0 ||
	    ioctl(provider, UFFDIO_REGISTER, &range) != 0)
		target_fail("userfaultfd");
}

static KEEP void lazy_leak(void)
{
	void *block = malloc(77);

	OPAQUE(block);
}

int main(void)
{
	unsigned char *stacks;
	pthread_attr_t attributes;
	pthread_t thread;
	unsigned wrong = 0;

	memset(page, MARK, sizeof(page));
	begin_to_provide(PAGES * PAGE + 2 * STACKS);
	stacks = memory + PAGES * PAGE;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stacks, STACKS);
	if (pthread_create(&thread, NULL, provide, NULL) != 0 ||
	    pthread_create(&thread, &attributes, on_such_a_stack, NULL) != 0 ||
	    pthread_create(&thread, NULL, by_turns, stacks + STACKS) != 0)
		target_fail("pthread_create");
	target_ready();
	for (unsigned i = 0; i < PAGES; i++) {
		wrong += memory[(size_t)i * PAGE] != MARK;
		lazy_leak();
	}
	target_say("wrong", wrong);
	target_say("lazy_leak.impacting.count", PAGES);
	target_done();
	return 0;
}
