// SPDX-License-Identifier: MIT
/* launch.c: see launch.h. */
#include "session/launch.h"

#include "session/process_setup.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mw_error *cannot_run(const char *command, int errnum)
{
	struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot run '%s'", command);

	switch (errnum) {
	case ENOENT:
		return mw_error_hint(err, strchr(command, '/') ? "Check its path"
							       : "It is in no directory of PATH; give its path");
	case EACCES:
		return mw_error_hint(err, "It is not executable: see its mode with 'ls -l'");
	case EISDIR:
		return mw_error_hint(err, "Name a program");
	default:
		return err;
	}
}

/* 0, or why this file can't be run. */
static int check_file(const char *path)
{
	struct stat info;

	if (stat(path, &info) != 0)
		return errno;
	if (S_ISDIR(info.st_mode))
		return EISDIR;
	if (!S_ISREG(info.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* What execvp() would find, malloc'ed; else NULL, and why not: 0 without memory. A file that may not be run is passed over,
 * but remembered as the reason. */
static char *find_program(const char *command, int *why)
{
	const char *path = getenv("PATH");

	*why = ENOENT;
	if (strchr(command, '/')) {
		*why = check_file(command);
		return *why ? NULL : strdup(command);
	}
	for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
		int length = (int)strcspn(path, ":");
		char *candidate = NULL;
		int errnum;

		if (asprintf(&candidate, "%.*s/%s", length ? length : 1, length ? path : ".", command) < 0) {
			*why = 0;
			return NULL;
		}
		errnum = check_file(candidate);
		if (!errnum)
			return candidate;
		free(candidate);
		if (errnum == EACCES)
			*why = errnum;
	}
	return NULL;
}

/* The kernel takes set-user-id from a traced program unless the tracer is privileged: it would run as another. */
static struct mw_error *check_setuid(const char *path)
{
	struct stat info;
	struct mw_error *err;

	if (geteuid() == 0 || stat(path, &info) != 0)
		return NULL;
	if (!((info.st_mode & S_ISUID) && info.st_uid != geteuid()) &&
	    !((info.st_mode & S_ISGID) && info.st_gid != getegid()))
		return NULL;
	err = mw_error_create(MW_ERROR_DENIED, 0, "'%s' is set-user-id: traced, it would run without its privileges",
			      path);
	return mw_error_hint(err, "Run memwatch as root (sudo memwatch ...)");
}

/* The child's side: nothing but async-signal-safe calls. */
static void wait_and_exec(char **command, const char *path, int go, int report)
{
	char byte;
	ssize_t got;
	int errnum;

	mw_process_setup_restore();
	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(127); /* memwatch has changed its mind, or is gone */
	execv(path, command);
	/* A script without "#!": execvp gives it to the shell, as shells do. */
	if (errno == ENOEXEC)
		execvp(path, command);
	errnum = errno;
	if (write(report, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

static struct mw_error *fork_child(char **command, struct mw_launch *launch)
{
	int go[2], report[2];

	if (pipe2(go, O_CLOEXEC) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make a pipe");
	launch->go_fd = go[1];
	if (pipe2(report, O_CLOEXEC) != 0) {
		struct mw_error *err = mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make a pipe");

		close(go[0]);
		return err;
	}
	launch->error_fd = report[0];
	launch->pid = fork();
	if (launch->pid == 0) {
		close(go[1]); /* or its own copy would keep it waiting when memwatch is gone */
		wait_and_exec(command, launch->path, go[0], report[1]);
	}
	close(go[0]);
	close(report[1]);
	fcntl(report[0], F_SETFL, O_NONBLOCK);
	if (launch->pid < 0) {
		launch->pid = 0;
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot fork");
	}
	return NULL;
}

void mw_launch_deinit(struct mw_launch *launch)
{
	if (launch->go_fd >= 0) {
		close(launch->go_fd);
		/* It ends by itself now, but where another process holds the pipe as well; it is no program yet. An
		 * engine that let it go has not taken its status. */
		if (launch->pid > 0) {
			kill(launch->pid, SIGKILL);
			waitpid(launch->pid, NULL, 0);
		}
	}
	if (launch->error_fd >= 0)
		close(launch->error_fd);
	free(launch->path);
	*launch = (struct mw_launch){.go_fd = -1, .error_fd = -1};
}

struct mw_error *mw_launch_start(char **command, struct mw_launch *out)
{
	struct mw_launch launch = {.go_fd = -1, .error_fd = -1};
	struct mw_error *err;
	int why;

	launch.path = find_program(command[0], &why);
	if (!launch.path)
		return why ? cannot_run(command[0], why) : mw_error_nomem();
	err = check_setuid(launch.path);
	if (!err)
		err = mw_preflight_program(launch.path);
	if (!err)
		err = fork_child(command, &launch);
	if (err) {
		mw_launch_deinit(&launch);
		return err;
	}
	*out = launch;
	return NULL;
}

struct mw_error *mw_launch_go(struct mw_launch *launch)
{
	ssize_t wrote;
	int errnum;

	do
		wrote = write(launch->go_fd, "", 1);
	while (wrote < 0 && errno == EINTR);
	errnum = errno;
	close(launch->go_fd);
	launch->go_fd = -1;
	if (wrote != 1)
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "the command's process %d has ended before its start",
				       (int)launch->pid);
	return NULL;
}

struct mw_error *mw_launch_check(struct mw_launch *launch, char **command)
{
	int errnum = 0;

	if (launch->error_fd < 0 || read(launch->error_fd, &errnum, sizeof(errnum)) != (ssize_t)sizeof(errnum))
		return NULL;
	return cannot_run(command[0], errnum);
}
