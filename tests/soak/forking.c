/* SPDX-License-Identifier: MIT */
/* forking.c: children of every sort, one after the other, that check themselves and what they have inherited. */
#include "fleet.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SORTS 6

extern char **environ;

static void expect(pid_t child, int answer)
{
	int status = 0;
	pid_t found;

	if (child < 0) {
		char text[64];

		snprintf(text, sizeof(text), "no child: errno %d", errno);
		fleet_wrong(text);
	}
	do
		found = waitpid(child, &status, 0);
	while (found < 0 && errno == EINTR);
	if (found != child)
		fleet_wrong("a child can't be waited for");
	if (WIFSIGNALED(status)) {
		char text[64];

		snprintf(text, sizeof(text), "a child has died of signal %d", WTERMSIG(status));
		fleet_wrong(text);
	}
	if (WEXITSTATUS(status) != answer)
		fleet_wrong("a child has ended with another status than it should");
}

/* In a child made by fork: the parent's blocks are there, and more can be had. */
static void forked(struct blocks *blocks, unsigned number)
{
	alarm(60);
	blocks_check(blocks);
	blocks_step(blocks, 100);
	blocks_deinit(blocks);
	_exit(fleet_answer(number));
}

/* A child that has one itself. */
static void forked_twice(struct blocks *blocks, unsigned number)
{
	pid_t pid = fork();

	if (pid == 0)
		forked(blocks, number + 1);
	expect(pid, fleet_answer(number + 1));
	forked(blocks, number);
}

static void one(struct blocks *blocks, unsigned sort, unsigned number)
{
	char digits[16];
	char *arguments[] = {fleet_self, "child", digits, NULL};
	int answer = fleet_answer(number);
	pid_t pid = -1;

	snprintf(digits, sizeof(digits), "%u", number);
	switch (sort) {
	case 0:
		pid = fork();
		if (pid == 0)
			forked(blocks, number);
		break;
	case 1:
		pid = vfork();
		if (pid == 0) {
			execv(fleet_self, arguments);
			_exit(1);
		}
		break;
	case 2:
		errno = posix_spawn(&pid, fleet_self, NULL, NULL, arguments, environ);
		if (errno != 0)
			pid = -1;
		break;
	case 3:
		pid = vfork();
		if (pid == 0)
			_exit(answer);
		break;
	case 4:
		pid = fork();
		if (pid == 0)
			forked_twice(blocks, number);
		break;
	default:
		pid = fork();
		if (pid == 0) {
			blocks_step(blocks, 10);
			execv(fleet_self, arguments);
			_exit(1);
		}
	}
	expect(pid, answer);
}

static void parent_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 31);
	for (unsigned round = 0;; round++) {
		blocks_step(&blocks, 20);
		one(&blocks, (round + number) % SORTS, round % 1000);
		blocks_check(&blocks);
		fleet_advance(number);
		fleet_rest(2000);
	}
}

static void allocating_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 41);
	for (;;) {
		blocks_step(&blocks, 30);
		fleet_board->counter[number]++;
		fleet_rest(500);
	}
}

unsigned fleet_forking(void)
{
	fleet_thread(parent_work, 0);
	fleet_thread(parent_work, 1);
	fleet_thread(allocating_work, 2);
	return 3;
}
