/* SPDX-License-Identifier: MIT */
/* distribution.h: how distributions are asked for the debug information of what they have installed. */
#ifndef MW_SYMBOL_DISTRIBUTION_H
#define MW_SYMBOL_DISTRIBUTION_H

#include <memwatch/types.h>

#define MW_DISTRIBUTION_NAME_MAX 128

struct mw_distribution {
	const char *id;     /* ID of os-release, or a word of ID_LIKE; NULL: none that is known */
	const char *server; /* its debuginfod, or one for all */
	/* The command that installs debug information: `begin`, the arguments, `end`. NULL: there is none. */
	const char *begin, *end;
	enum {
		MW_TAKES_PID,   /* the process; paths where its root directory is not memwatch's */
		MW_TAKES_PATHS, /* of the modules */
		MW_TAKES_IDS,   /* 'debuginfo(build-id)=…' of the modules */
	} takes;
	const char *sudo; /* before `begin`, for those who are not root */
	const char *note; /* what the command needs, or why there is none; or NULL */
};

/*
 * By /etc/os-release or /usr/lib/os-release inside a root (mw_root_directory); the row without an id where neither can
 * be read, or its distribution is not known. `name`: as people write it ("Debian GNU/Linux 12 (bookworm)"), or "";
 * hostile.
 */
const struct mw_distribution *mw_distribution_find(int root, char name[MW_DISTRIBUTION_NAME_MAX]);

/* Its row by that id, or the row without one. NULL: none. */
const struct mw_distribution *mw_distribution_of(const char *id);

/* Does that path lie where packages put their files? */
bool mw_distribution_has(const char *path);

#endif
