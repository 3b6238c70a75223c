// SPDX-License-Identifier: MIT
/* userfault.c: see userfault.h. */
#include "proc/userfault.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool mw_userfault_held(pid_t pid)
{
	char path[64], target[64];
	struct dirent *entry;
	bool held = false;
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && !held && (entry = readdir(directory))) {
		ssize_t got = isdigit((unsigned char)*entry->d_name)
				      ? readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1)
				      : 0;

		target[got > 0 ? got : 0] = '\0';
		held = strcmp(target, "anon_inode:[userfaultfd]") == 0;
	}
	if (directory)
		closedir(directory);
	return held;
}
