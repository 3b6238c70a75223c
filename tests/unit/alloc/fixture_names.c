// SPDX-License-Identifier: MIT
/* fixture_names.c: functions that are named like entry points, of which some are none. */
#include <stddef.h>

void *tc_malloc(size_t size);
void *tc_new(size_t size);
void *use(size_t size);
void *je_malloc(size_t size);

static char memory[64];

/* Two names, one address. */
__attribute__((noinline)) void *tc_malloc(size_t size)
{
	return size < sizeof(memory) ? memory : NULL;
}
void *tc_new(size_t size) __attribute__((alias("tc_malloc")));

/* Local. */
static __attribute__((noinline)) void *mi_malloc(size_t size)
{
	return size ? memory + size % sizeof(memory) : NULL;
}

void *use(size_t size)
{
	return mi_malloc(size * 3);
}

/* Chosen when the library is loaded. */
static void *(*choose(void))(size_t)
{
	return tc_malloc;
}
void *je_malloc(size_t size) __attribute__((ifunc("choose")));

/* Data. */
int mallocx_is_no_function;
