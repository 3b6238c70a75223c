// SPDX-License-Identifier: MIT
/* orphans.c: forked children whose maker was killed before it could tell of them (quiesce.h). */
#include "tracee/quiesce.h"

#include "base/clock.h"
#include "proc/status.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(5000000000) /* for all to come to their first stops: it takes their having had a CPU */
#define REST_US     1000

static _Thread_local struct mw_orphans *spared;

void mw_orphans_spare(struct mw_orphans *others)
{
	others->next = spared;
	spared = others;
}

void mw_orphans_spare_no_more(const struct mw_orphans *others)
{
	for (struct mw_orphans **at = &spared; *at; at = &(*at)->next) {
		if (*at == others) {
			*at = others->next;
			return;
		}
	}
}

static bool is_known(const struct mw_orphans *orphans, pid_t pid)
{
	if (orphans->known(orphans->context, pid))
		return true;
	for (const struct mw_orphans *others = spared; others; others = others->next)
		if (others->known(others->context, pid))
			return true;
	return false;
}

bool mw_orphans_unheard(pid_t tid, int what)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)tid, &info, what | WNOWAIT | WNOHANG | __WALL) == 0 && info.si_pid == tid;
}

/* Who traces it, and its parent; 0 where it can't be known. */
static pid_t tracer_of(pid_t pid, pid_t *parent)
{
	struct mw_status status;
	bool known = mw_error_none(mw_status_read(pid, &status));

	*parent = known ? status.ppid : 0;
	return known ? status.tracer : 0;
}

/* Does the calling thread trace the process, and not the one that made it? One that is traced will tell. */
static bool is_orphan(pid_t pid)
{
	pid_t parent, none;

	return tracer_of(pid, &parent) == gettid() && tracer_of(parent, &none) != gettid();
}

static void await(const struct mw_orphans *orphans, pid_t pid, uint64_t begin)
{
	while (is_orphan(pid) && !is_known(orphans, pid)) {
		/* What others hold has been waited for. */
		if (mw_orphans_unheard(pid, WSTOPPED)) {
			orphans->stopped(orphans->context, pid);
			return;
		}
		if (mw_clock_ns() - begin > PATIENCE_NS)
			return;
		usleep(REST_US);
	}
}

void mw_orphans_find(const struct mw_orphans *orphans)
{
	uint64_t begin = mw_clock_ns();
	DIR *directory = opendir("/proc");
	const struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			await(orphans, pid, begin);
	}
	closedir(directory);
}
