/* SPDX-License-Identifier: MIT */
/*
 * forkbomb stay DEPTH WIDTH: each process forks WIDTH others, down to a depth. All of them allocate and check, and stay
 * until the harness ends the work; then all statuses are checked, up to the root. Says who they are.
 * forkbomb flow DEPTH WIDTH [MIB THREADS]: the same again and again, nobody stays, until the harness ends the work.
 * With so much memory that each fork takes its time, and with threads that do nothing.
 *
 * Each also looks at the code that it has been born with: no breakpoint may stand there that was none at the start.
 */
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 40
#define MOST   400  /* processes of one tree */
#define TREES  2000 /* that flow */
#define GOOD   33

/* Shared by all. */
static struct {
	_Atomic size_t count; /* of processes that have begun in this tree */
	_Atomic size_t total;
	pid_t pids[MOST];
} * tree;

static int go_on[2]; /* closed by the root: all end */
static unsigned char code[3][16];
static void *const functions[3] = {(void *)malloc, (void *)free, (void *)calloc};

static KEEP void forkbomb_root(void)
{
	void *block = malloc(92);

	OPAQUE(block);
}

static KEEP void forkbomb_child(unsigned char seed)
{
	unsigned char *blocks[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(20 + 31 * i);
		if (!blocks[i])
			_exit(91);
		memset(blocks[i], (int)(seed + i) & 0xff, 20 + 31 * i);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (blocks[i][19 + 31 * i] != (unsigned char)(seed + i))
			_exit(92);
		free(blocks[i]);
	}
}

static void take_up(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		target_fail("no memory");
	memset(memory, 1, size);
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* A jump there leads somewhere; a breakpoint would kill. */
static void look_at_code(void)
{
	for (size_t i = 0; i < 3; i++) {
		const volatile unsigned char *now = functions[i];

		for (size_t at = 0; at < 5; at += 4)
			if (now[at] == 0xcc && code[i][at] != 0xcc)
				_exit(93);
	}
}

static void fork_on(int depth, int width, bool stay);

static void live(int depth, int width, bool stay)
{
	size_t number = atomic_fetch_add(&tree->count, 1);
	struct pollfd end = {.fd = go_on[0], .events = POLLIN};

	look_at_code();
	atomic_fetch_add(&tree->total, 1);
	forkbomb_child((unsigned char)number);
	if (depth > 0)
		fork_on(depth - 1, width, stay);
	if (number < MOST)
		tree->pids[number] = getpid();
	while (stay && poll(&end, 1, 2) == 0)
		forkbomb_child((unsigned char)number);
	forkbomb_child((unsigned char)number);
	/* Whose children end well ends well. */
	for (;;) {
		int status;

		if (waitpid(-1, &status, 0) >= 0) {
			if (!WIFEXITED(status) || WEXITSTATUS(status) != GOOD)
				_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 90);
		} else if (errno != EINTR) {
			_exit(GOOD);
		}
	}
}

static void fork_on(int depth, int width, bool stay)
{
	for (int i = 0; i < width; i++) {
		pid_t pid = fork();

		if (pid < 0)
			_exit(94);
		if (pid == 0) {
			alarm(240);
			close(go_on[1]);
			live(depth, width, stay);
		}
	}
}

static void reap(void)
{
	int status;

	while (waitpid(-1, &status, 0) >= 0 || errno == EINTR) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == GOOD)
			continue;
		target_say("status", (uint64_t)status);
		target_fail("a process of the bomb did not end as it wanted to");
	}
}

static size_t processes_of(int depth, int width)
{
	size_t level = 1, sum = 0;

	for (int i = 0; i <= depth; i++) {
		level *= (size_t)width;
		sum += level;
	}
	return sum;
}

static bool told_to_end(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, 0) > 0;
}

static void stay(int depth, int width)
{
	size_t all = processes_of(depth, width);

	target_ready_for(280);
	forkbomb_root();
	fork_on(depth, width, true);
	for (size_t i = 0; i < all; i++) {
		while (!*(volatile pid_t *)&tree->pids[i])
			usleep(500);
	}
	forkbomb_root();
	for (size_t i = 0; i < all; i++) {
		char name[] = "process000";

		for (size_t at = 9, n = i; n > 0; n /= 10)
			name[at--] = (char)('0' + n % 10);
		target_say(name, (uint64_t)tree->pids[i]);
	}
	target_say("forkbomb_root.impacting.count", 2);
	target_say("forkbomb_root.impacting.bytes", 2 * 92);
	target_say("forkbomb_child.size.count", 0);
	target_say("heap.size.count", 2);
	target_done();
	close(go_on[1]);
	reap();
}

static void flow(int depth, int width)
{
	size_t trees = 0;

	target_ready_for(280);
	while (!told_to_end() && trees < TREES) {
		tree->count = 0;
		fork_on(depth, width, false);
		forkbomb_root();
		reap();
		trees++;
	}
	if (tree->total != trees * processes_of(depth, width))
		target_fail("processes are missing");
	target_wait();
	target_say("trees", trees);
	target_done();
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[2]) : 2;
	int width = argc > 3 ? atoi(argv[3]) : 3;

	if (argc > 4)
		take_up((size_t)atoi(argv[4]) << 20);
	for (int i = argc > 5 ? atoi(argv[5]) : 0; i > 0; i--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, idle, NULL))
			target_fail("no thread");
	}
	tree = mmap(NULL, sizeof(*tree), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tree == MAP_FAILED || pipe(go_on) || processes_of(depth, width) > MOST)
		target_fail("pipe, or too many");
	for (size_t i = 0; i < 3; i++)
		memcpy(code[i], functions[i], sizeof(code[i]));
	if (argc > 1 && strcmp(argv[1], "flow") == 0)
		flow(depth, width);
	else
		stay(depth, width);
	return 0;
}
