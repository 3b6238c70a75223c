// SPDX-License-Identifier: MIT
/*
 * pairs BOARD DEPTH THREADS [vary|frames|order|use|null]: each thread makes malloc+free pairs as fast as it can, DEPTH of this
 * program's functions deep, and counts them on its line of the board.
 *
 * As it is, the stack is built once and the pairs are made in the leaf. `vary`: the stack is built anew for each pair,
 * by one of 128 ways (64, 8 deep) that differ in return addresses, so that no walk is like the one before. Which it is
 * comes from a random number, so that no branch predictor knows the path, and the levels that differ are spread over
 * the whole depth. `frames`: the same, and what lies between two of those levels has frames of other sizes, too.
 * `order`: as `vary`, one way after the other, which a predictor learns: the difference of the two, unwatched, is what
 * it does not know of `vary`. `use`: the block is written and read, some ten million pairs a second and thread.
 * `null`: only free(NULL), a stop that tells nothing.
 *
 * The line of a thread + PAIRS_BEST has the shortest time that PAIRS_BATCH pairs took, in ns, since somebody made it 0: what
 * a busy machine does not change.
 *
 * Built as `unwound` it has a freeing function of its own, by a name that memwatch knows, that does nothing: called for
 * a block that nobody allocated, it is one stop with its stack unwound and told. Mode `null` makes such calls.
 */
#include "board.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

#define WAY_BITS  7u
#define WAYS      (1u << WAY_BITS)
#define MAX_DEPTH 32
#define SIZE      64

#define PAIRS_BATCH 256
#define PAIRS_BEST  32

enum mode { SAME, VARY, FRAMES, ORDER, USE, NONE };

static enum mode mode;
static unsigned depth, ways[WAYS];
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

static inline uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline void count(struct board_line *line)
{
	static __thread uint64_t begun;
	uint64_t end;

	line->value++;
	if (line->value % PAIRS_BATCH)
		return;
	end = now();
	if (begun && (!line[PAIRS_BEST].value || end - begun < line[PAIRS_BEST].value))
		line[PAIRS_BEST].value = end - begun;
	begun = end;
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
static level *const levels[], *const *others; /* what the other call of each level leads to */

KEEP static void leaf(struct board_line *line, unsigned way)
{
	(void)way;
	switch (mode) {
	case VARY:
	case FRAMES:
	case ORDER:
		make_pair();
		count(line);
		break;
	case SAME:
		for (;; count(line)) {
			void *block = malloc(SIZE);

			__asm__ volatile("" : "+r"(block) : : "memory");
			free(block);
		}
	case USE:
		for (;; count(line))
			use_block();
	case NONE:
#ifdef UNWOUND
		for (;; count(line))
			mi_free(&board);
#else
		for (;; count(line))
			free(NULL);
#endif
	}
}

/* Levels are functions of their own, and the calls of one don't look alike: nothing may merge them. */
#define LEVEL_OF(name, n, words)                                                                                       \
	KEEP static void name##_##n(struct board_line *line, unsigned way)                                             \
	{                                                                                                              \
		volatile unsigned local[words];                                                                        \
		local[0] = (n);                                                                                        \
		if (way & 1)                                                                                           \
			others[(n)-1](line, way >> 1);                                                                 \
		else                                                                                                   \
			levels[local[0] - 1](line, way >> 1);                                                          \
		local[0] = 0;                                                                                          \
	}
#define LEVEL(n) LEVEL_OF(level, n, (n) % 5 + 1) LEVEL_OF(other, n, (n) % 3 * 8 + 13)

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

#define TABLE(name)                                                                                                    \
	{                                                                                                              \
		leaf, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8, name##_9,        \
			name##_10, name##_11, name##_12, name##_13, name##_14, name##_15, name##_16, name##_17,        \
			name##_18, name##_19, name##_20, name##_21, name##_22, name##_23, name##_24, name##_25,        \
			name##_26, name##_27, name##_28, name##_29, name##_30, name##_31                               \
	}

static level *const levels[MAX_DEPTH] = TABLE(level), *const wider[MAX_DEPTH] = TABLE(other);

/* Each way's bits, as far apart as the depth allows; leaf and work are two of it. */
static void plan_ways(void)
{
	unsigned count = depth - 2, bits = count < WAY_BITS ? count : WAY_BITS;

	for (unsigned i = 0; i < WAYS; i++)
		for (unsigned bit = 0; bit < bits; bit++)
			ways[i] |= (i >> bit & 1) << bit * count / bits;
}

static void *work(void *line)
{
	unsigned random = 2463534242u, next = 0;

	for (;;) {
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		next = mode == ORDER ? next + 1 : random >> (32 - WAY_BITS);
		levels[depth - 2](line, ways[next % WAYS]);
	}
	return NULL;
}

static enum mode mode_of(const char *name)
{
	static const char *const names[] = {"", "vary", "frames", "order", "use", "null"};

	for (unsigned i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return (enum mode)i;
	fprintf(stderr, "pairs: what is %s?\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	unsigned threads;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: pairs BOARD DEPTH THREADS [vary|frames|order|use|null]\n");
		return 2;
	}
	board = board_open(argv[1]);
	depth = (unsigned)strtoul(argv[2], NULL, 10);
	threads = (unsigned)strtoul(argv[3], NULL, 10);
	if (argc == 5)
		mode = mode_of(argv[4]);
	others = mode == FRAMES ? wider : levels;
	if (depth < 3 || depth > MAX_DEPTH || threads < 1 || threads > PAIRS_BEST) {
		fprintf(stderr, "pairs: 3 to %d deep, 1 to %d threads\n", MAX_DEPTH, PAIRS_BEST);
		return 2;
	}
	plan_ways();
	for (unsigned i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &board[i]))
			return 1;
	}
	work(&board[0]);
	return 0;
}
