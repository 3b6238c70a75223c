/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h: reports on windows that still run.
 *
 * They are made by a forked copy of memwatch, which has the models as they were at the fork: names and verdicts take as
 * long as they take, and the processes are served meanwhile. They wait for the fork alone. The copy ends with memwatch.
 */
#ifndef MW_SESSION_SNAPSHOT_H
#define MW_SESSION_SNAPSHOT_H

#include "session/session.h"

struct mw_snapshot {
	pid_t pid; /* of the copy; 0: there is none */
	int pidfd; /* its, as an engine may wait for any child; -1: the kernel has none */
	int fd;    /* of a file in memory that it writes to */
};

#define MW_SNAPSHOT_NONE ((struct mw_snapshot){.pidfd = -1, .fd = -1})

/* How the reports are written; in the copy. */
typedef struct mw_error *mw_snapshot_write(void *context, struct mw_reports *reports, FILE *stream);

/* Begin to make one; between two run() of the engine. Errors: SYSTEM: no file or process can be made. */
struct mw_error *mw_snapshot_begin(struct mw_session *session, mw_snapshot_write *write, void *context,
				   struct mw_snapshot *out) MW_MUST_CHECK;
/* Is it made? Then `out` is what was written, malloc'ed, or what the copy has failed with. Errors: SYSTEM; then it is over
 * as well. */
struct mw_error *mw_snapshot_look(struct mw_snapshot *snapshot, bool *made, char **out, size_t *size) MW_MUST_CHECK;
/* End it, made or not. */
void mw_snapshot_end(struct mw_snapshot *snapshot);

#endif
