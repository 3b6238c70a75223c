/* SPDX-License-Identifier: MIT */
/*
 * fleet.h: programs that check themselves while memwatch comes and goes.
 *
 * They show numbers in a file (the board) that the soak maps as well, so that looking at them costs them nothing and
 * allocates nothing. Each of their threads has a counter that rises as long as it gets on with its work. The first
 * wrong result that one finds stands in the board as text; it ends the program.
 */
#ifndef MW_SOAK_FLEET_H
#define MW_SOAK_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layout is known to member.py and client.py as well. */
#define BOARD_SIZE     8192
#define BOARD_TEXT     160 /* bytes */
#define BOARD_COUNTERS 480

struct board {
	volatile uint64_t ready;      /* the process id, once all threads are at work */
	volatile uint64_t counters;   /* how many of them are in use */
	volatile uint64_t wrong;      /* wrong results */
	volatile uint64_t request;    /* the meter is to run: the soak adds 1 */
	volatile uint64_t served;     /* the last request that it has served */
	volatile uint64_t full;       /* not 0: threads that can work without a rest do so */
	volatile uint64_t metered[4]; /* what the meter allocated: count, bytes; of that not freed: count, bytes */
	char text[BOARD_TEXT];
	volatile uint64_t unused[34];
	volatile uint64_t counter[BOARD_COUNTERS];
};

extern struct board *fleet_board;

/* One wrong result: tell it and end. */
__attribute__((noreturn)) void fleet_wrong(const char *what);
/* `number` has got on. Rests a moment, unless all speed is asked for. */
void fleet_advance(unsigned number);
void fleet_rest(unsigned microseconds);
/* A thread that runs `work` with a number of 0 or more. A failure ends the program. */
void fleet_thread(void (*work)(unsigned number), unsigned number);
/* Stop the program when it should have ended long ago, whatever became of the soak. */
void fleet_bound(unsigned seconds);

/* What children answer when all was well, by the number that they were given. */
int fleet_answer(unsigned number);
/* The command that makes a child check itself and end with fleet_answer(number). */
extern char *fleet_self;

/* Blocks whose contents and places are known, of one thread. */
#define BLOCKS 48

struct blocks {
	struct {
		unsigned char *at;
		size_t size;
		uint32_t pattern;
	} block[BLOCKS];
	uint64_t random;
	uint64_t live;
	/*
	 * Nothing that makes glibc call mmap or sbrk under the lock of a heap that many threads share. Under engine
	 * trap the lock's holder is then stopped with it, behind all others that wait for memwatch, and as the lock is
	 * not a fair one, a thread may wait for minutes on a busy machine.
	 */
	bool modest;
};

void blocks_init(struct blocks *blocks, uint64_t seed);
/* Allocate, resize or free some; whatever is freed or moved is compared with what was written there. */
void blocks_step(struct blocks *blocks, unsigned times);
/* Compare all. */
void blocks_check(const struct blocks *blocks);
/* Compare and free all. */
void blocks_deinit(struct blocks *blocks);

/* The modes; each starts its threads and returns how many counters it uses. */
unsigned fleet_forking(void);
unsigned fleet_signals(void);
unsigned fleet_dlopen(const char *plain, const char *own);

#ifdef __cplusplus
}
#endif

#endif
