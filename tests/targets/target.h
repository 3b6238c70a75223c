/* SPDX-License-Identifier: MIT */
/*
 * target.h: what every program to attach to shares.
 *
 * A target prints "ready PID", waits for a byte on its standard input, does work whose answer it
 * knows, prints that answer as key=value lines and "done", and waits for another byte (the end of
 * the input will do for both). Between "ready" and "done" it allocates nothing but what it
 * answers for. It never lives longer than two minutes.
 */
#ifndef MW_TEST_TARGET_H
#define MW_TEST_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function that stays one: no inlining, no clones with other names. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

/* Keeps the compiler from seeing through a value (and so from dropping an allocation). */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value) : : "memory")

#ifdef __cplusplus
extern "C" {
#endif

/* Say "ready PID" and wait for the harness. `life`: seconds after which SIGALRM ends it. */
void target_ready_for(unsigned life);
void target_ready(void);
/* Wait for one more byte of standard input (or its end). */
void target_wait(void);
/* One line of the answer. Allocates nothing. */
void target_say(const char *key, uint64_t value);
void target_say_text(const char *line);
/* Say "done" and wait for the harness to end the window. */
void target_done(void);
/* Ends the program with status 1 and the text. */
__attribute__((noreturn)) void target_fail(const char *what);

/*
 * The ledger: what a single-threaded target should be told to have allocated. It lives in static
 * memory. Sizes are those asked for; a block from before ledger_open() counts with its usable size.
 */
void ledger_open(void);
void ledger_alloc(const char *api, const void *block, size_t size);
void ledger_free(const void *block);
/* realloc of what was at `old` has returned `block`. */
void ledger_realloc(const char *api, uintptr_t old, const void *block, size_t size);
void ledger_say(void);

/* A block of the caller's (inlined: no frame of its own) that is filled with `mark`. */
static inline __attribute__((always_inline)) unsigned char *target_filled(size_t size, unsigned char mark)
{
	unsigned char *block = (unsigned char *)malloc(size);

	if (!block)
		target_fail("there is no memory any more");
	memset(block, mark, size);
	OPAQUE(block);
	return block;
}

#ifdef __cplusplus
}
#endif

#endif
