// SPDX-License-Identifier: MIT
/*
 * fixture_thread_end.c: what the finder of glibc's thread end goes by, in a library of our own: glibc's names, a
 * function that frees and never returns where something is wrong. GCC moves that part elsewhere, with an FDE of its
 * own. With NO_MESSAGE it is the flag in thread-local storage that tells the function, as in glibc 2.26 to 2.31.
 */
#include <stddef.h>

void __libc_free(void *block);
void *__libc_malloc(size_t size);
void *malloc(size_t size);
void free(void *block);
const char *gnu_get_libc_version(void);
void thread_end(void);
void fixture_die(const char *message) __attribute__((cold, noreturn));
extern void *volatile fixture_callers[4];
extern volatile unsigned fixture_calls;
extern void *volatile fixture_blocks[4];

void *volatile fixture_callers[4];
volatile unsigned fixture_calls;
void *volatile fixture_blocks[4];
static __thread volatile char shutting_down __attribute__((tls_model("initial-exec")));

/* Calls inside the library go to this one directly, as glibc's do. */
static __attribute__((noinline)) void do_free(void *block)
{
	(void)block;
	fixture_callers[fixture_calls++ % 4] = __builtin_return_address(0);
}
void free(void *block) __attribute__((alias("do_free")));
void __libc_free(void *block) __attribute__((alias("do_free")));

static __attribute__((noinline)) void *do_malloc(size_t size)
{
	return size ? (void *)&fixture_calls : NULL;
}
void *malloc(size_t size) __attribute__((alias("do_malloc")));
void *__libc_malloc(size_t size) __attribute__((alias("do_malloc")));

const char *gnu_get_libc_version(void)
{
	return "0";
}

/* Exported, so that no compiler moves the message in here. */
__attribute__((noinline)) void fixture_die(const char *message)
{
	fixture_blocks[0] = (void *)(size_t)message;
	for (;;)
		;
}

#ifdef NO_MESSAGE
#define MESSAGE "something else"
#define ENDING  1
#else
#define MESSAGE "tcache_thread_shutdown(): unaligned tcache chunk detected"
#define ENDING  2
#endif

static __attribute__((noinline)) void end(void)
{
	shutting_down = ENDING;
	for (unsigned i = 0; i < 3; i++) {
		void *block = fixture_blocks[i];

		if (__builtin_expect((size_t)block % 16 != 0, 0))
			fixture_die(MESSAGE);
		do_free(block);
	}
}

void thread_end(void)
{
	end();
	fixture_blocks[1] = NULL;
}
