/* SPDX-License-Identifier: MIT */
/* launch.h: a command that is launched: a child that waits before its exec until it is attached to and let go. */
#ifndef MW_SESSION_LAUNCH_H
#define MW_SESSION_LAUNCH_H

#include <memwatch/error.h>

#include <sys/types.h>

struct mw_launch {
	pid_t pid;    /* 0: none */
	char *path;   /* the program, as it will be found */
	int go_fd;    /* a byte here lets it go; closed without one, it ends */
	int error_fd; /* errno, should the exec fail */
};

#define MW_LAUNCH_NONE                                                                                                 \
	{                                                                                                              \
		.go_fd = -1, .error_fd = -1                                                                            \
	}

/* Find the program as a shell would and fork. The child waits, with limits, signals and mask as memwatch found them.
 * Errors: SYSTEM, DENIED, UNSUPPORTED, MEMORY. */
struct mw_error *mw_launch_start(char **command, struct mw_launch *out) MW_MUST_CHECK;
/* Let the attached child do its exec. Errors: SYSTEM: it has ended before. */
struct mw_error *mw_launch_go(struct mw_launch *launch) MW_MUST_CHECK;
/* Did the exec fail? NULL where it did not, or is still to come. */
struct mw_error *mw_launch_check(struct mw_launch *launch, char **command) MW_MUST_CHECK;
/* A child that was not let go ends without having run anything; one that was runs on. Fine twice. */
void mw_launch_deinit(struct mw_launch *launch);

#endif
