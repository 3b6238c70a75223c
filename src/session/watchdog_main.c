// SPDX-License-Identifier: MIT
/* watchdog_main.c: what a memwatch does that is executed in the place of one that is at its end (watchdog.h). */
#include "engine/stale.h"
#include "proc/program.h"
#include "session/crash.h"
#include "session/message.h"
#include "session/watchdog.h"
#include "tracee/seccomp_probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REST_NS 100000000 /* between two attempts … */
#define LONG_S  1         /* … where calls are to come back meanwhile */

struct mw_error *mw_watchdog_clean(const char *process, char *left, size_t size)
{
	pid_t pid = (pid_t)strtol(process, NULL, 10);
	const char *colon = strchr(process, ':');
	uint64_t started = colon ? strtoull(colon + 1, NULL, 10) : 0;
	struct mw_program now;

	*left = '\0';
	if (strstr(process, ":shared"))
		mw_seccomp_trust(pid);
	mw_program_read(pid, &now);
	if (started && now.started && now.started != started)
		return NULL; /* another one has its number */
	mw_seccomp_prepare(pid);
	return mw_stale_remove(pid, left, size);
}

/* How often is it tried? What is not to be had may be in a moment; mostly it is not. */
static unsigned attempts(const struct mw_error *err)
{
	if (!err)
		return 4;
	return mw_error_kind(err) == MW_ERROR_UNSUPPORTED ? 2 : 11;
}

/*
 * The kernel may just be taking the old memwatch away from it. On a busy machine calls that go through what is to be
 * taken out may take a while to come back.
 */
static struct mw_error *clean_patiently(const char *process, char *left, size_t size)
{
	for (unsigned i = 1;; i++) {
		struct mw_error *err = mw_watchdog_clean(process, left, size);
		const struct timespec rest = {.tv_sec = err ? 0 : LONG_S, .tv_nsec = err ? REST_NS : 0};

		if ((!err && !*left) || i >= attempts(err))
			return err;
		if (err && mw_error_kind(err) == MW_ERROR_GONE) {
			mw_error_destroy(err);
			return NULL;
		}
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}

/* What is on its way to a program that was in the midst of something else; nothing of it is for this one. */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP, SIGTTOU,
				      SIGTTIN, SIGPIPE, SIGALRM, SIGUSR1, SIGXFSZ};
	const struct itimerval never = {{0, 0}, {0, 0}};
	sigset_t none;

	setitimer(ITIMER_REAL, &never, NULL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* "detached from process 12, which runs on", "detached from processes 12, 13, which run on". */
static void report_processes(FILE *out, int count, char **processes)
{
	fprintf(out, "detached from process%s ", count == 1 ? "" : "es");
	for (int i = 0; i < count; i++)
		fprintf(out, "%s%d", i ? ", " : "", atoi(processes[i]));
	fprintf(out, ", which run%s on", count == 1 ? "s" : "");
}

static void emit(char **argv, int count, char **processes, const char *trouble)
{
	int number = atoi(argv[MW_WATCHDOG_SIGNAL]);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("memwatch: ", out);
	if (number > 0)
		fprintf(out, "memwatch has crashed (%s): ", mw_crash_name(number));
	else if (number < 0)
		fputs("memwatch was killed: ", out);
	else
		mw_message_put(out, argv[MW_WATCHDOG_MESSAGE]);
	if (number)
		report_processes(out, count, processes);
	if (*trouble) {
		fputs(", but ", out);
		mw_message_put(out, trouble);
	}
	if (number && *argv[MW_WATCHDOG_OUTPUT]) {
		fputs(". What was recorded until then is in ", out);
		mw_message_put(out, argv[MW_WATCHDOG_OUTPUT]);
	}
	fputc('\n', out);
	if (fclose(out) == 0 && write(STDERR_FILENO, text, size) < 0)
		free(text); /* nobody wants to know */
	else
		free(text);
}

int mw_watchdog_main(int argc, char **argv)
{
	char trouble[300] = "";
	int fd, status;
	pid_t guard;

	if (argc <= MW_WATCHDOG_PROCESSES)
		return 2;
	ignore_signals();
	if (strcmp(argv[MW_WATCHDOG_SIGNAL], "-1") == 0)
		prctl(PR_SET_NAME, "memwatch-guard");
	for (int i = MW_WATCHDOG_PROCESSES; i < argc; i++) {
		char left[160];
		struct mw_error *err = clean_patiently(argv[i], left, sizeof(left));

		if (err && !*trouble)
			(void)snprintf(trouble, sizeof(trouble), "%s", mw_error_text(err));
		else if (!err && *left && !*trouble)
			(void)snprintf(trouble, sizeof(trouble), "%s", left);
		mw_error_destroy(err);
	}
	emit(argv, argc - MW_WATCHDOG_PROCESSES, argv + MW_WATCHDOG_PROCESSES, trouble);
	fd = atoi(argv[MW_WATCHDOG_FD]);
	guard = (pid_t)atoi(argv[MW_WATCHDOG_GUARD]);
	if (fd > STDERR_FILENO && guard > 0) {
		if (write(fd, "d", 1) == 1)
			waitpid(guard, &status, 0);
		close(fd);
	}
	return 1;
}
