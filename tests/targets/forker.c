/* SPDX-License-Identifier: MIT */
/*
 * forker: makes children until it is killed. Each says that it is there ("b"), allocates and says so ("e"). One that
 * finds its maker gone waits until nothing more comes from the harness, and then looks for code in its memory that is
 * no file's ("left"), as its maker had none.
 */
#include "target.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(91);
}

static KEEP void forker_child_works(void)
{
	for (int i = 0; i < 20; i++)
		free(target_filled(100, 1));
}

static void look_for_code(void)
{
	char line[512], permissions[8], path[256];
	unsigned long inode;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps)) {
		*path = '\0';
		if (sscanf(line, "%*s %7s %*s %*s %lu %255s", permissions, &inode, path) >= 2 &&
		    permissions[2] == 'x' && inode == 0 && *path != '[')
			say("left\n");
	}
	if (!maps || fclose(maps) != 0)
		say("failed\n");
}

static void child(pid_t maker)
{
	char byte;

	alarm(60);
	say("b\n");
	forker_child_works();
	if (getppid() != maker) {
		while (read(STDIN_FILENO, &byte, 1) == 1)
			;
		forker_child_works();
		look_for_code();
		say("orphan\n");
	}
	say("e\n");
	_exit(0);
}

int main(void)
{
	pid_t self = getpid();

	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		target_fail("SIGCHLD");
	target_ready();
	for (int i = 0; i < 100000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			child(self);
		if (pid < 0)
			usleep(1000);
		else
			free(target_filled(100, 2));
	}
	return 0;
}
