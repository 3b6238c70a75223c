// SPDX-License-Identifier: MIT
/* snapshot.c: see snapshot.h. */
#include "session/snapshot.h"

#include "session/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MADE   '\x06' /* the last byte of what the copy writes: behind the report … */
#define FAILED '\x15' /* … or behind what it has failed with */
#define NICE   10     /* the processes, and memwatch itself, come first */

static struct mw_cube *cube_of(const struct mw_session *session, size_t i)
{
	return session->recorders[i].watched->collector.cube;
}

/* Nothing that the copy has in common with memwatch may be changed or held by it: the recording, the guard's pipe, the
 * terminal, the lock that says that memwatch lives. */
static void leave_alone(struct mw_session *session)
{
	mw_watchdog_forked();
	if (session->engine->ops->forked && !session->engine->ops->forked(session->engine))
		_exit(1);
	session->writer = NULL;
	session->sampled = NULL;
	session->progress.shown = false;
	for (size_t i = 0; i < session->count; i++) {
		session->emitters[i].receiver_count = 1; /* the model */
		if (cube_of(session, i))
			mw_cube_forked(cube_of(session, i));
	}
}

static struct mw_error *make(struct mw_session *session, mw_snapshot_write *write, void *context, int fd)
{
	FILE *stream = fdopen(fd, "w");
	struct mw_error *err;

	if (!stream)
		return mw_error_nomem();
	err = mw_session_report_now(session);
	if (!err)
		err = write(context, &session->reports, stream);
	if (!err && (fflush(stream) || ferror(stream)))
		err = mw_error_create(MW_ERROR_SYSTEM, errno, "cannot keep the report in memory");
	return err;
}

static _Noreturn void be_copy(struct mw_session *session, mw_snapshot_write *write, void *context, int fd, pid_t parent)
{
	struct mw_error *err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* Of a terminal's Ctrl-C memwatch itself is to hear. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	leave_alone(session);
	err = make(session, write, context, fd);
	if (err && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		dprintf(fd, "%s", mw_error_text(err));
	dprintf(fd, "%c", err ? FAILED : MADE);
	_exit(0);
}

struct mw_error *mw_snapshot_begin(struct mw_session *session, mw_snapshot_write *write, void *context,
				   struct mw_snapshot *out)
{
	pid_t parent = getpid();
	int errnum;

	*out = MW_SNAPSHOT_NONE;
	out->fd = memfd_create("memwatch-report", MFD_CLOEXEC);
	if (out->fd < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make a file in memory for a report");
	for (size_t i = 0; i < session->count; i++)
		if (cube_of(session, i))
			mw_cube_rest(cube_of(session, i));
	fflush(NULL);
	out->pid = fork();
	if (out->pid == 0)
		be_copy(session, write, context, out->fd, parent);
	if (out->pid > 0) {
		out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
		return NULL;
	}
	errnum = errno;
	out->pid = 0;
	mw_snapshot_end(out);
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a process for a report");
}

static struct mw_error *read_all(int fd, char **out, size_t *size)
{
	struct stat st;
	size_t done = 0;
	char *bytes;

	if (fstat(fd, &st))
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot read a report");
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return mw_error_nomem();
	while (done < (size_t)st.st_size) {
		ssize_t got = pread(fd, bytes + done, (size_t)st.st_size - done, (off_t)done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	bytes[done] = '\0';
	*out = bytes;
	*size = done;
	return NULL;
}

/* Whether it is this, or an engine, that waits for it. */
static bool has_ended(const struct mw_snapshot *snapshot)
{
	struct pollfd end = {.fd = snapshot->pidfd, .events = POLLIN};

	if (snapshot->pidfd >= 0)
		return poll(&end, 1, 0) > 0;
	return waitpid(snapshot->pid, NULL, WNOHANG) != 0;
}

struct mw_error *mw_snapshot_look(struct mw_snapshot *snapshot, bool *made, char **out, size_t *size)
{
	struct mw_error *err;
	char last;

	*made = false;
	if (!has_ended(snapshot))
		return NULL;
	err = read_all(snapshot->fd, out, size);
	mw_snapshot_end(snapshot);
	if (err)
		return err;
	last = *size ? (*out)[--*size] : '\0';
	(*out)[*size] = '\0';
	*made = last == MADE;
	if (*made)
		return NULL;
	err = mw_error_create(MW_ERROR_SYSTEM, 0, "the report could not be made: %s",
			      last == FAILED ? *out : "its process was ended");
	free(*out);
	return err;
}

void mw_snapshot_end(struct mw_snapshot *snapshot)
{
	struct pollfd end = {.fd = snapshot->pidfd, .events = POLLIN};

	if (snapshot->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, snapshot->pidfd, SIGKILL, NULL, 0);
		while (poll(&end, 1, -1) < 0 && errno == EINTR)
			;
		close(snapshot->pidfd);
	} else if (snapshot->pid > 0 && waitpid(snapshot->pid, NULL, WNOHANG) == 0) {
		kill(snapshot->pid, SIGKILL);
	}
	if (snapshot->pid > 0)
		(void)waitpid(snapshot->pid, NULL, 0);
	if (snapshot->fd >= 0)
		close(snapshot->fd);
	*snapshot = MW_SNAPSHOT_NONE;
}
