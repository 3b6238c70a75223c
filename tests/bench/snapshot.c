// SPDX-License-Identifier: MIT
/*
 * snapshot MIB THREADS ROUNDS: how long a process of MIB resident and THREADS threads stands for a snapshot, side by
 * side with a fork() of its own. Prints the medians, and how fast the copy is read:
 *
 *      fork_ns=… pause_ns=… copied=1 read_mib_s=…
 *
 * The threads of the process wake ten times a second and write to its memory.
 */
#include "heap/snapshot.h"

#include "base/clock.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define MOST  101
#define PIECE (1u << 16) /* what a core keeps at hand */

static char *memory;
static size_t size;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *wake(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;

	for (;;) {
		usleep(100000);
		memory[number++ * (size_t)PAGE % size]++;
	}
	return NULL;
}

static uint64_t fork_once(void)
{
	uint64_t begin = mw_clock_ns(), end;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	end = mw_clock_ns();
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		fail("fork");
	return end - begin;
}

/* The process: forks once for each byte that comes, and tells how long that took. */
static void be_process(unsigned threads, int from, int to)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, wake, (void *)(uintptr_t)i))
			fail("pthread_create");
	}
	if (write(to, "r", 1) != 1)
		fail("write");
	while (read(from, &byte, 1) == 1) {
		uint64_t ns = fork_once();

		if (write(to, &ns, sizeof(ns)) != (ssize_t)sizeof(ns))
			fail("write");
	}
	exit(0);
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t median(uint64_t *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void check(struct mw_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "%s\n", mw_error_text(err));
	exit(1);
}

static double read_all(const struct mw_image *image)
{
	char *piece = malloc(PIECE);
	uint64_t begin = mw_clock_ns(), bytes = 0;

	for (size_t i = 0; piece && i < image->run_count; i++) {
		mw_addr end = image->runs[i].start + (mw_addr)image->runs[i].pages * PAGE;

		for (mw_addr at = image->runs[i].start; at < end; at += PIECE)
			bytes += mw_image_read_some(image, at, piece, end - at < PIECE ? (size_t)(end - at) : PIECE);
	}
	free(piece);
	return (double)bytes / (1 << 20) * 1e9 / (double)(mw_clock_ns() - begin);
}

int main(int argc, char **argv)
{
	uint64_t forks[MOST], pauses[MOST];
	unsigned rounds, copied = 0;
	int there[2], back[2];
	double rate = 0;
	char ready;
	pid_t pid;

	if (argc != 4 || pipe(there) || pipe(back))
		fail("snapshot MIB THREADS ROUNDS");
	size = strtoul(argv[1], NULL, 10) << 20;
	rounds = (unsigned)strtoul(argv[3], NULL, 10);
	rounds = rounds < 1 ? 1 : rounds < MOST ? rounds : MOST;
	pid = fork();
	if (pid == 0)
		be_process((unsigned)strtoul(argv[2], NULL, 10), there[0], back[1]);
	if (read(back[0], &ready, 1) != 1)
		fail("read");
	for (unsigned i = 0; i < rounds; i++) {
		struct mw_heap_snapshot *snapshot;

		if (write(there[1], "f", 1) != 1 || read(back[0], &forks[i], sizeof(*forks)) != (ssize_t)sizeof(*forks))
			fail("read");
		check(mw_heap_snapshot_take(pid, &(struct mw_heap_snapshot_options){0}, &snapshot));
		copied += mw_heap_snapshot_is_fork(snapshot);
		if (mw_heap_snapshot_why(snapshot))
			fprintf(stderr, "%s\n", mw_heap_snapshot_why(snapshot));
		if (i == 0)
			rate = read_all(mw_heap_snapshot_image(snapshot));
		check(mw_heap_snapshot_end_copy(snapshot));
		pauses[i] = mw_heap_snapshot_pause_ns(snapshot);
		check(mw_heap_snapshot_release(snapshot));
	}
	printf("fork_ns=%llu pause_ns=%llu copied=%d read_mib_s=%.0f\n", (unsigned long long)median(forks, rounds),
	       (unsigned long long)median(pauses, rounds), copied == rounds, rate);
	close(there[1]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
