// SPDX-License-Identifier: MIT
/*
 * unit_main.c: runs groups of unit tests, each in a process of its own, so that none meets what another has left (signal
 * handlers, environment, children), and so that one that crashes does not end the others.
 *
 * unit_MODULE [--quick|--slow]      all groups, or those that are not slow, or those that are
 * unit_MODULE GROUP [ARGUMENT…]     that group alone, in this process
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool run_apart(const char *program, const struct unit_group *group)
{
	int status;
	pid_t pid;

	printf("%s %s (%s)\n", program, group->name, group->file);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", program, group->name, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror(program);
		return false;
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s %s: killed by signal %d\n", program, group->name, WTERMSIG(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == UNIT_SKIPPED)
		printf("%s %s: skipped\n", program, group->name);
	return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == UNIT_SKIPPED);
}

static int run_all(const char *program, bool quick, bool slow)
{
	const struct unit_group *failed[64];
	unsigned count = 0;

	for (const struct unit_group *group = unit_table; group->name; group++) {
		if (!(group->slow ? slow : quick) || run_apart(program, group))
			continue;
		if (count < sizeof(failed) / sizeof(failed[0]))
			failed[count++] = group;
	}
	for (unsigned i = 0; i < count; i++)
		fprintf(stderr, "%s %s failed (%s)\n", program, failed[i]->name, failed[i]->file);
	return count ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	if (argc == 1)
		return run_all(program, true, true);
	if (strcmp(argv[1], "--quick") == 0 || strcmp(argv[1], "--slow") == 0)
		return run_all(program, argv[1][2] == 'q', argv[1][2] == 's');
	for (const struct unit_group *group = unit_table; group->name; group++)
		if (strcmp(argv[1], group->name) == 0)
			return group->run(argc - 1, argv + 1);
	fprintf(stderr, "%s: no group %s; there are:\n", program, argv[1]);
	for (const struct unit_group *group = unit_table; group->name; group++)
		fprintf(stderr, "  %s%s\n", group->name, group->slow ? " (slow)" : "");
	return 2;
}
