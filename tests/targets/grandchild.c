/* SPDX-License-Identifier: MIT */
/* grandchild: a child that allocates nothing, and forks another when the harness says so. Says who they are. */
#include "target.h"

#include <sys/wait.h>
#include <unistd.h>

static int ask[2], tell[2];

static void stay(void)
{
	char byte;

	close(ask[1]);
	while (read(ask[0], &byte, 1) > 0)
		;
	_exit(0);
}

static void child(void)
{
	char byte;
	pid_t other;

	alarm(110);
	close(ask[1]);
	if (read(ask[0], &byte, 1) != 1)
		_exit(1);
	other = fork();
	if (other == 0)
		stay();
	if (write(tell[1], &other, sizeof(other)) != sizeof(other))
		_exit(1);
	waitpid(other, NULL, 0);
	_exit(0);
}

int main(void)
{
	pid_t first, second;

	if (pipe(ask) || pipe(tell))
		target_fail("pipe");
	target_ready();
	first = fork();
	if (first == 0)
		child();
	target_say("first", (uint64_t)first);
	target_wait();
	if (write(ask[1], "x", 1) != 1 || read(tell[0], &second, sizeof(second)) != sizeof(second))
		target_fail("pipe");
	target_say("second", (uint64_t)second);
	target_done();
	close(ask[1]);
	waitpid(first, NULL, 0);
	return 0;
}
