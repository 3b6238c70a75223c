/* SPDX-License-Identifier: MIT */
/*
 * orders: does what it is told to, and allocates nothing else. Each byte of standard input is an order, answered by a
 * line:
 *
 *   a  100 blocks of 1,000 bytes      A  free those of the last a
 *   b  10 blocks of 5,000             c  1,000 blocks that are freed at once
 *   v  3 mappings of 1 MiB            t  7 blocks of 300 in a thread whose name would drive a terminal
 *   w  a block of 111 by a function with a name of wide letters
 *   r  … of 222 by one whose name is written from right to left
 *   l  … of 333 by one whose name has 10,000 letters
 *   x  exit with status 3
 */
#include "target.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define JOIN(a, b, c, d, e, f, g, h, i, j) a##b##c##d##e##f##g##h##i##j
#define TEN(x)                             JOIN(x, x, x, x, x, x, x, x, x, x)
#define LONG_NAME                          TEN(TEN(TEN(long_name_)))
#define LIFE                               900
#define A_COUNT                            100
#define HOSTILE                            "\x1b[31mr\x1b[7mx\xe2\x80\xae"

static void *held[A_COUNT];

static KEEP void grow_a(void)
{
	for (unsigned i = 0; i < A_COUNT; i++) {
		held[i] = malloc(1000);
		OPAQUE(held[i]);
	}
}

static KEEP void shrink_a(void)
{
	for (unsigned i = 0; i < A_COUNT; i++) {
		free(held[i]);
		held[i] = NULL;
	}
}

static KEEP void grow_b(void)
{
	for (unsigned i = 0; i < 10; i++) {
		void *block = malloc(5000);

		OPAQUE(block);
	}
}

static KEEP void churn(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		void *block = malloc(64);

		OPAQUE(block);
		free(block);
	}
}

static KEEP void map_v(void)
{
	for (unsigned i = 0; i < 3; i++) {
		void *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (block == MAP_FAILED)
			target_fail("mmap");
		OPAQUE(block);
	}
}

static KEEP void grow_t(void)
{
	for (unsigned i = 0; i < 7; i++) {
		void *block = malloc(300);

		OPAQUE(block);
	}
}

static KEEP void 寿司を食べる(void)
{
	void *block = malloc(111);

	OPAQUE(block);
}

static KEEP void שלום(void)
{
	void *block = malloc(222);

	OPAQUE(block);
}

static KEEP void LONG_NAME(void)
{
	void *block = malloc(333);

	OPAQUE(block);
}

/* There from the begin: a thread that is made allocates. */
static pthread_barrier_t come, gone;

static void *work(void *unused)
{
	pthread_setname_np(pthread_self(), HOSTILE);
	for (;;) {
		pthread_barrier_wait(&come);
		grow_t();
		pthread_barrier_wait(&gone);
	}
	return unused;
}

static void obey(char order)
{
	static void (*const orders[128])(void) = {
		['a'] = grow_a, ['A'] = shrink_a,     ['b'] = grow_b, ['c'] = churn,
		['v'] = map_v,  ['w'] = 寿司を食べる, ['r'] = שלום,   ['l'] = LONG_NAME,
	};

	if (order == 'x')
		_exit(3);
	if (order == 't') {
		pthread_barrier_wait(&come);
		pthread_barrier_wait(&gone);
	} else if (order > 0 && orders[(unsigned char)order]) {
		orders[(unsigned char)order]();
	} else {
		target_fail("no such order");
	}
}

int main(void)
{
	pthread_t thread;
	char order;

	pthread_barrier_init(&come, NULL, 2);
	pthread_barrier_init(&gone, NULL, 2);
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		target_fail("pthread_create");
	target_ready_for(LIFE);
	while (read(STDIN_FILENO, &order, 1) == 1) {
		obey(order);
		target_say_text("done");
	}
	return 0;
}
