/* SPDX-License-Identifier: MIT */
/*
 * package_owner.h: which package a file of a target's root belongs to, and which one has its debug information.
 *
 * From the package manager's own files, read with bounds: none of its programs is run, as they may be the target's.
 */
#ifndef MW_CLI_PACKAGE_OWNER_H
#define MW_CLI_PACKAGE_OWNER_H

#include "cli/package_system.h"

#include <stdbool.h>
#include <stddef.h>

#define MW_PACKAGE_NAME_MAX 128

/* Does a package manager know a package of that name? */
enum mw_package_known {
	MW_PACKAGE_UNSURE, /* its lists can't be read, or it has none */
	MW_PACKAGE_ABSENT, /* none of them has it */
	MW_PACKAGE_LISTED,
	MW_PACKAGE_INSTALLED,
};

/* A file that lacks debug information. Names of packages are of [a-z0-9.+-] only, whatever the root says. */
struct mw_lacking {
	const char *path;                  /* as the target sees it; borrowed */
	const char *build_id;              /* in hex, "" where there is none; borrowed */
	char package[MW_PACKAGE_NAME_MAX]; /* that it belongs to, without architecture; "" where that isn't known */
	char origin[MW_PACKAGE_NAME_MAX];  /* that is built together with it, where the manager tells (apk); or "" */
	char debug[MW_PACKAGE_NAME_MAX];   /* that has its debug information; "" where that isn't known */
	enum mw_package_known known;       /* … to the package manager */
	bool runtime;                      /* the caller's: of the C or C++ runtime, or an allocator */
};

/* Fill in what can be found out. `root`: mw_root_directory(). Only dpkg's and apk's files can be read; for all others,
 * and without memory, names stay empty. */
void mw_package_find(int root, enum mw_packaging packaging, struct mw_lacking *files, size_t count);

#endif
