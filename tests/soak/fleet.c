/* SPDX-License-Identifier: MIT */
/*
 * fleet MODE BOARD LIFE [LIBRARY OWN]: works and checks itself for LIFE seconds or until it is killed; see fleet.h.
 * fleet child NUMBER: checks itself once and says so by its status.
 */
#include "fleet.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* A function that stays one: no inlining, no clones with other names. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

#define METER_BLOCKS 40
#define MANY         220
#define BUSY         3

struct board *fleet_board;
char *fleet_self;

static unsigned life = 600;

void fleet_wrong(const char *what)
{
	ssize_t n = write(STDERR_FILENO, what, strlen(what));

	(void)n;
	if (fleet_board && __atomic_fetch_add(&fleet_board->wrong, 1, __ATOMIC_SEQ_CST) == 0)
		strncpy(fleet_board->text, what, BOARD_TEXT - 1);
	_exit(3);
}

void fleet_rest(unsigned microseconds)
{
	struct timespec rest = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) != 0)
		;
}

void fleet_advance(unsigned number)
{
	fleet_board->counter[number]++;
	if (!fleet_board->full)
		fleet_rest(2000);
}

void fleet_bound(unsigned seconds)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(seconds);
}

int fleet_answer(unsigned number)
{
	return (int)(number * 7 % 100) + 20;
}

struct start {
	void (*work)(unsigned number);
	unsigned number;
};

static void *begin(void *data)
{
	struct start start = *(struct start *)data;

	free(data);
	start.work(start.number);
	return NULL;
}

void fleet_thread(void (*work)(unsigned number), unsigned number)
{
	struct start *start = malloc(sizeof(*start));
	pthread_attr_t small;
	pthread_t thread;

	if (!start)
		fleet_wrong("no memory for a thread");
	*start = (struct start){work, number};
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	if (pthread_create(&thread, &small, begin, start) != 0)
		fleet_wrong("no thread");
	pthread_attr_destroy(&small);
	pthread_detach(thread);
}

/* Blocks of which a report of the window has to know exactly: half of them stay until the next time. */
static void *metered[METER_BLOCKS];

static KEEP void fleet_meter(unsigned number)
{
	for (size_t i = 0; i < METER_BLOCKS; i++) {
		metered[i] = malloc(1000 + i);
		if (!metered[i])
			fleet_wrong("no memory for the meter");
		memset(metered[i], (int)i, 1000 + i);
		fleet_board->counter[number]++;
	}
}

static void meter(unsigned number)
{
	uint64_t told[4] = {0};

	for (size_t i = 0; i < METER_BLOCKS; i++)
		free(metered[i]);
	fleet_meter(number);
	for (size_t i = 0; i < METER_BLOCKS; i++) {
		fleet_board->counter[number]++;
		told[0]++;
		told[1] += 1000 + i;
		if (i % 2 == 0) {
			free(metered[i]);
			metered[i] = NULL;
			continue;
		}
		told[2]++;
		told[3] += 1000 + i;
	}
	for (size_t i = 0; i < 4; i++)
		fleet_board->metered[i] = told[i];
}

static void meter_work(unsigned number)
{
	for (;;) {
		uint64_t request = fleet_board->request;

		if (request != fleet_board->served) {
			meter(number);
			__atomic_store_n(&fleet_board->served, request, __ATOMIC_SEQ_CST);
		}
		fleet_board->counter[number]++;
		fleet_rest(3000);
	}
}

static void idle_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 17);
	for (;;) {
		blocks_step(&blocks, 4);
		blocks_check(&blocks);
		fleet_board->counter[number]++;
		fleet_rest(30000);
	}
}

static void busy_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 23);
	for (unsigned round = 0;; round++) {
		blocks_step(&blocks, 50);
		if (round % 64 == 63)
			blocks_deinit(&blocks);
		fleet_advance(number);
	}
}

static void many_work(unsigned number)
{
	struct blocks *blocks = malloc(sizeof(*blocks));

	if (!blocks)
		fleet_wrong("no memory for a thread's blocks");
	blocks_init(blocks, number + 5);
	blocks->modest = true;
	for (;;) {
		blocks_step(blocks, 6);
		fleet_board->counter[number]++;
		fleet_rest(20000 + number * 173);
	}
}

static int child(unsigned number)
{
	struct blocks blocks;

	alarm(60);
	blocks_init(&blocks, number);
	blocks_step(&blocks, 120);
	blocks_deinit(&blocks);
	return fleet_answer(number);
}

static struct board *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *board = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, BOARD_SIZE) == 0)
		board = mmap(NULL, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return board;
}

static unsigned threads(void (*work)(unsigned number), unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fleet_thread(work, i);
	return count;
}

static unsigned start(const char *mode, char **arguments)
{
	if (strcmp(mode, "idle") == 0)
		return threads(idle_work, 1);
	if (strcmp(mode, "busy") == 0)
		return threads(busy_work, BUSY);
	if (strcmp(mode, "many") == 0) {
		/* Heaps of glibc's are not to grow and shrink all the time: see blocks.modest. */
		mallopt(M_MMAP_THRESHOLD, 128 << 10);
		mallopt(M_TRIM_THRESHOLD, 64 << 20);
		mallopt(M_TOP_PAD, 4 << 20);
		return threads(many_work, MANY);
	}
	if (strcmp(mode, "forking") == 0)
		return fleet_forking();
	if (strcmp(mode, "signals") == 0)
		return fleet_signals();
	if (strcmp(mode, "dlopen") == 0 && arguments[0] && arguments[1])
		return fleet_dlopen(arguments[0], arguments[1]);
	fleet_wrong("no such mode");
}

int main(int argc, char **argv)
{
	unsigned counters;

	if (argc == 3 && strcmp(argv[1], "child") == 0)
		return child((unsigned)strtoul(argv[2], NULL, 10));
	if (argc < 4) {
		fprintf(stderr, "usage: fleet MODE BOARD LIFE [LIBRARY OWN]\n");
		return 2;
	}
	fleet_self = argv[0];
	fleet_board = board_open(argv[2]);
	life = (unsigned)strtoul(argv[3], NULL, 10);
	fleet_bound(life);
	counters = start(argv[1], argv + 4);
	fleet_board->counters = counters + 1;
	fleet_board->ready = (uint64_t)getpid();
	/* The first thread serves the meter. */
	meter_work(counters);
}
