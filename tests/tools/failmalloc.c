// SPDX-License-Identifier: MIT
/*
 * failmalloc.c: by LD_PRELOAD, the calls of the malloc family fail of the process that it is loaded into, not of its
 * children, nor of what it execs.
 *
 *   MEMWATCH_TEST_MALLOC=N    the Nth fails, once
 *   MEMWATCH_TEST_MALLOC=N+   all fail from the Nth on
 *   MEMWATCH_TEST_MALLOC=N-   the Nth makes the process crash
 *   MEMWATCH_TEST_COUNT=FILE  how many there were until main() ended is written there
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

/* AddressSanitizer's, where the program has it: what it gives it must check. It has to allow for not being loaded
 * first, by verify_asan_link_order=0. */
#define SANITIZED __attribute__((weak))
void *__interceptor_malloc(size_t size) SANITIZED;
void *__interceptor_calloc(size_t count, size_t size) SANITIZED;
void *__interceptor_realloc(void *block, size_t size) SANITIZED;
void *__interceptor_memalign(size_t align, size_t size) SANITIZED;
#define NEXT(name) (__interceptor_##name ? __interceptor_##name : __libc_##name)

static atomic_ulong calls;
static unsigned long wanted;
static char how;
static char count_file[256];
static pid_t self;

static _Thread_local bool spared;

static bool fails(void)
{
	unsigned long number;

	if (!self || getpid() != self || spared)
		return false;
	number = atomic_fetch_add(&calls, 1) + 1;
	if (!wanted || number < wanted || (number > wanted && how != '+'))
		return false;
	if (how == '-')
		raise(SIGSEGV);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : NEXT(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : NEXT(calloc)(count, size);
}

void *realloc(void *block, size_t size)
{
	return fails() ? NULL : NEXT(realloc)(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}

void *memalign(size_t align, size_t size)
{
	return fails() ? NULL : NEXT(memalign)(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
	void *got = memalign(align, size);

	if (!got)
		return ENOMEM;
	*block = got;
	return 0;
}

/* AddressSanitizer calls it where a thread begins, and ends the process where it fails. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	int (*next)(pthread_t, pthread_attr_t *) = (int (*)(pthread_t, pthread_attr_t *))dlsym(RTLD_NEXT, __func__);
	int error;

	spared = true;
	error = next(thread, attributes);
	spared = false;
	return error;
}

__attribute__((constructor)) static void begin(void)
{
	const char *wish = getenv("MEMWATCH_TEST_MALLOC");
	const char *count = getenv("MEMWATCH_TEST_COUNT");
	char *end = NULL;

	if (wish) {
		wanted = strtoul(wish, &end, 10);
		how = *end;
	}
	if (count && strlen(count) < sizeof(count_file))
		memcpy(count_file, count, strlen(count) + 1);
	unsetenv("MEMWATCH_TEST_MALLOC");
	unsetenv("MEMWATCH_TEST_COUNT");
	unsetenv("LD_PRELOAD");
	self = getpid();
}

__attribute__((destructor)) static void finish(void)
{
	unsigned long count = atomic_load(&calls);
	char text[32];
	int length, fd;

	if (!*count_file || getpid() != self)
		return;
	self = 0;
	fd = open(count_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	length = snprintf(text, sizeof(text), "%lu", count);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		_exit(99);
	close(fd);
}
