/* SPDX-License-Identifier: MIT */
/*
 * untouched: threads that block in read() into a large buffer on their stack, of which no page was ever touched; one of
 * them on a stack that it was given, in a mapping whose rest was never touched.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    ((size_t)4096)
#define THREADS 50
#define BUFFER  ((size_t)1 << 20)
#define STACK   ((size_t)2 << 20)
#define REST    (16 * PAGE) /* above the given stack, and below it */

static int ends[2];
static _Atomic int waiting;
static uintptr_t buffers[THREADS];

static KEEP void *wait_for_input(void *context)
{
	char buffer[BUFFER];
	char *start = (char *)(((uintptr_t)buffer + PAGE - 1) & ~(PAGE - 1));

	/* Some compilers have each page of a frame touched when it is entered. */
	if (madvise(start, BUFFER - PAGE, MADV_DONTNEED))
		target_fail("madvise");
	*(uintptr_t *)context = (uintptr_t)start;
	atomic_fetch_add(&waiting, 1);
	if (read(ends[0], buffer, sizeof(buffer)) < 0)
		target_fail("read");
	return NULL;
}

/* The first one runs on the given stack, the others on the C library's. */
static void start_threads(char *given)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, given, STACK) ||
	    pthread_create(&thread, &attributes, wait_for_input, &buffers[0]))
		target_fail("a thread on a given stack");
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, wait_for_input, &buffers[i]))
			target_fail("pthread_create");
	while (atomic_load(&waiting) < THREADS)
		usleep(1000);
}

static void say_range(const char *kind, int number, uintptr_t start, size_t size)
{
	char line[100];

	(void)snprintf(line, sizeof(line), "%s.%d=%zx-%zx", kind, number, (size_t)start, (size_t)start + size);
	target_say_text(line);
}

int main(void)
{
	char *mapping = mmap(NULL, REST + STACK + REST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapping == MAP_FAILED || pipe(ends))
		target_fail("mmap or pipe");
	start_threads(mapping + REST);
	target_ready();
	for (int i = 0; i < 10; i++) {
		void *block = malloc(75);

		OPAQUE(block);
		free(block);
	}
	for (int i = 0; i < THREADS; i++)
		say_range("buffer", i, buffers[i], BUFFER - PAGE);
	say_range("rest", 0, (uintptr_t)mapping, REST);
	say_range("rest", 1, (uintptr_t)mapping + REST + STACK, REST);
	target_done();
	return 0;
}
