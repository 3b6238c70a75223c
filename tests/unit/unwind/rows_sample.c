// SPDX-License-Identifier: MIT
/* rows_sample.c: functions whose frames compilers describe in unusual ways. */
#include <alloca.h>
#include <string.h>

void rows_sink(void *pointer);
int rows_aligned(int n);
int rows_varying(int n, ...);
int rows_many(int a, int b, int c, int d, int e, int f, int *g, int n);
int rows_early(int n);

__attribute__((noinline)) void rows_sink(void *pointer)
{
	__asm__ volatile("" : : "r"(pointer) : "memory");
}

int rows_aligned(int n)
{
	_Alignas(64) char array[128];

	memset(array, n, sizeof(array));
	rows_sink(array);
	return array[n];
}

int rows_varying(int n, ...)
{
	_Alignas(64) char array[128];
	char *more = alloca((size_t)n);

	rows_sink(array);
	rows_sink(more);
	return array[n];
}

int rows_many(int a, int b, int c, int d, int e, int f, int *g, int n)
{
	_Alignas(32) double array[16];
	char *more = alloca((size_t)n);

	rows_sink(array);
	rows_sink(more);
	rows_sink(&a);
	rows_sink(&b);
	rows_sink(&g);
	return (int)array[n] * *g + a + b + c + d + e + f;
}

int rows_early(int n)
{
	char large[70000];

	if (n == 3)
		return 1;
	rows_sink(large);
	if (n == 5)
		return large[n];
	rows_sink(&large[n]);
	return large[7] + rows_aligned(n);
}
