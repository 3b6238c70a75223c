// SPDX-License-Identifier: MIT
/*
 * pairs BOARD DEPTH THREADS [vary|use|null]: each thread makes malloc+free pairs as fast as it can, DEPTH of this
 * program's functions deep, and counts them on its line of the board.
 *
 * As it is, the stack is built once and the pairs are made in the leaf. `vary`: the stack is built anew for each pair,
 * by one of 128 ways that differ in return addresses only, so that no walk is like the one before. `use`: the block is
 * written and read, some ten million pairs a second and thread. `null`: only
 * free(NULL), a stop that tells nothing.
 *
 * Built as `unwound` it has a freeing function of its own, by a name that memwatch knows, that does nothing: called for
 * a block that nobody allocated, it is one stop with its stack unwound and told. Mode `null` makes such calls.
 */
#include "board.h"

#include <pthread.h>
#include <string.h>

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

#define WAYS      128u
#define MAX_DEPTH 32
#define SIZE      64

enum mode { SAME, VARY, USE, NONE };

static enum mode mode;
static unsigned depth;
static struct board_line *board;

#ifdef UNWOUND
KEEP void mi_free(void *block);
KEEP void mi_free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}
#endif

KEEP static void make_pair(void)
{
	void *block = malloc(SIZE);

	__asm__ volatile("" : "+r"(block) : : "memory");
	free(block);
}

#define WORDS 96

/* A program does something with its block. */
KEEP static void use_block(void)
{
	unsigned long *block = malloc(WORDS * sizeof(*block)), sum = 1;

	for (unsigned i = 0; block && i < WORDS; i++) {
		block[i] = sum;
		__asm__ volatile("" : : : "memory");
		sum = sum * 31 + block[i / 2];
	}
	__asm__ volatile("" : : "r"(sum));
	free(block);
}

/* `way`: which call to go down by, one bit a level. */
typedef void level(struct board_line *line, unsigned way);
static level *const levels[];

KEEP static void leaf(struct board_line *line, unsigned way)
{
	(void)way;
	switch (mode) {
	case VARY:
		make_pair();
		line->value++;
		break;
	case SAME:
		for (;; line->value++) {
			void *block = malloc(SIZE);

			__asm__ volatile("" : "+r"(block) : : "memory");
			free(block);
		}
	case USE:
		for (;; line->value++)
			use_block();
	case NONE:
#ifdef UNWOUND
		for (;; line->value++)
			mi_free(&board);
#else
		for (;; line->value++)
			free(NULL);
#endif
	}
}

/* Levels are functions of their own, and the calls of one don't look alike: nothing may merge them. */
#define LEVEL(n)                                                                                                       \
	KEEP static void level_##n(struct board_line *line, unsigned way)                                              \
	{                                                                                                              \
		volatile unsigned local[(n) % 5 + 1];                                                                  \
		local[0] = (n);                                                                                        \
		if (way & 1)                                                                                           \
			levels[(n)-1](line, way >> 1);                                                                 \
		else                                                                                                   \
			levels[local[0] - 1](line, way >> 1);                                                          \
		local[0] = 0;                                                                                          \
	}

LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)
LEVEL(8)
LEVEL(9)
LEVEL(10)
LEVEL(11)
LEVEL(12)
LEVEL(13)
LEVEL(14)
LEVEL(15)
LEVEL(16)
LEVEL(17)
LEVEL(18)
LEVEL(19)
LEVEL(20)
LEVEL(21)
LEVEL(22)
LEVEL(23)
LEVEL(24)
LEVEL(25)
LEVEL(26)
LEVEL(27)
LEVEL(28)
LEVEL(29)
LEVEL(30)
LEVEL(31)

static level *const levels[MAX_DEPTH] = {
	leaf,     level_1,  level_2,  level_3,  level_4,  level_5,  level_6,  level_7,  level_8,  level_9,  level_10,
	level_11, level_12, level_13, level_14, level_15, level_16, level_17, level_18, level_19, level_20, level_21,
	level_22, level_23, level_24, level_25, level_26, level_27, level_28, level_29, level_30, level_31,
};

static void *work(void *line)
{
	/* leaf and this function are two of the depth. */
	for (unsigned way = 0;; way++)
		levels[depth - 2](line, way % WAYS);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: pairs BOARD DEPTH THREADS [vary|use|null]\n");
		return 2;
	}
	board = board_open(argv[1]);
	depth = (unsigned)strtoul(argv[2], NULL, 10);
	threads = (unsigned)strtoul(argv[3], NULL, 10);
	if (argc == 5)
		mode = strcmp(argv[4], "vary") == 0 ? VARY : strcmp(argv[4], "use") == 0 ? USE : NONE;
	if (depth < 3 || depth > MAX_DEPTH || threads < 1 || threads > BOARD_SIZE / sizeof(*board)) {
		fprintf(stderr, "pairs: 3 to %d deep, 1 to %zu threads\n", MAX_DEPTH, BOARD_SIZE / sizeof(*board));
		return 2;
	}
	for (unsigned i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &board[i]))
			return 1;
	}
	work(&board[0]);
	return 0;
}
