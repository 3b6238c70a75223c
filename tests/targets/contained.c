/* SPDX-License-Identifier: MIT */
/*
 * contained MODE COMMAND…: become COMMAND under a seccomp filter, as what a container's runtime starts.
 *   docker   has fail what containers may not, but for ptrace, as docker's and podman's own does
 *   restart  kills at restart_syscall
 *   memfd    kills at memfd_create
 *   none     nothing
 */
#include "filters.h"
#include "target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void kill_at(int call)
{
	struct filter filter = {.count = 0};

	filter_load(&filter, offsetof(struct seccomp_data, nr));
	filter_list(&filter, &call, 1, SECCOMP_RET_KILL_PROCESS);
	filter_answer(&filter, SECCOMP_RET_ALLOW);
	filter_install(&filter);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		target_fail("contained MODE COMMAND");
	if (strcmp(argv[1], "docker") == 0)
		filter_container(true);
	else if (strcmp(argv[1], "restart") == 0)
		kill_at(SYS_restart_syscall);
	else if (strcmp(argv[1], "memfd") == 0)
		kill_at(SYS_memfd_create);
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
