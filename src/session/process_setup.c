// SPDX-License-Identifier: MIT
/* process_setup.c: descriptors, limits and signals of memwatch's own process. */
#include "session/process_setup.h"

#include "base/clock.h"

#include <memwatch/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* timeout(1) and terminals may send a signal twice: what comes within this time counts as one. */
#define SAME_SIGNAL_NS 300000000ULL
/* Open files that a small process is watched with; each of its libraries may be one more. */
#define LEAST_FILES 32

static sigset_t found_mask;
static struct rlimit found_files;
static bool prepared;
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t signalled; /* somebody has asked for the end */
static volatile sig_atomic_t hurried;   /* … and then for it to be at once */
static volatile sig_atomic_t reporting;
static volatile sig_atomic_t screen;  /* the terminal shows a table */
static volatile sig_atomic_t refused; /* to be suspended, while it does */
/* Copies: their owner may free them while a signal comes. */
static char partial_files[MW_PARTIALS_MAX][PATH_MAX];
static uint64_t first_signal_ns;

/* Times of marks that were asked for, not yet taken: written by the handler at `marks_asked`, read up to it. */
static uint64_t mark_times[MW_PROCESS_SETUP_MARKS];
static volatile sig_atomic_t marks_asked;
static int marks_taken;

void mw_process_setup_guard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		/* The wrong direction on purpose: writing to a closed output must fail, not vanish. */
		int flags = fd == 0 ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags | O_CLOEXEC) != fd)
			_exit(1);
	}
}

static void on_signal(int number)
{
	static const char text[] = "\nmemwatch: interrupted before the report was written\n";

	if (!interrupted)
		interrupted = MW_STOP_INTERRUPT;
	if (!signalled) {
		first_signal_ns = mw_clock_ns();
		signalled = 1;
		hurried = number == SIGQUIT;
		return;
	}
	if (mw_clock_ns() - first_signal_ns < SAME_SIGNAL_NS)
		return;
	hurried = 1;
	if (!reporting)
		return;
	for (size_t i = 0; i < MW_PARTIALS_MAX; i++)
		if (*partial_files[i])
			unlink(partial_files[i]);
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* ^Z: while memwatch is stopped, the process is paused. */
static void on_suspend(int number)
{
	static const char text[] =
		"\nmemwatch: not suspended: the process would be paused meanwhile; Ctrl-C ends the window\n";

	(void)number;
	if (screen) {
		refused = 1;
		return;
	}
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

static void on_mark(int number)
{
	(void)number;
	/* More at once than there is room for are as one. */
	if (marks_asked - marks_taken < MW_PROCESS_SETUP_MARKS) {
		mark_times[marks_asked % MW_PROCESS_SETUP_MARKS] = mw_clock_ns();
		marks_asked++;
	}
}

bool mw_process_setup_take_mark(uint64_t *at_ns)
{
	sigset_t marks, before;
	bool any;

	sigemptyset(&marks);
	sigaddset(&marks, SIGUSR1);
	sigprocmask(SIG_BLOCK, &marks, &before);
	any = marks_taken < marks_asked;
	if (any)
		*at_ns = mark_times[marks_taken++ % MW_PROCESS_SETUP_MARKS];
	sigprocmask(SIG_SETMASK, &before, NULL);
	return any;
}

static const struct {
	void (*handler)(int);
	int number;
	bool unless_ignored; /* it stays ignored where it was */
} watched[] = {
	{on_signal, SIGINT, false}, {on_signal, SIGTERM, false}, {on_signal, SIGHUP, true}, {on_signal, SIGQUIT, false},
	{SIG_IGN, SIGPIPE, false},  {SIG_IGN, SIGXFSZ, false},   {on_mark, SIGUSR1, false}, {on_suspend, SIGTSTP, true},
	{SIG_IGN, SIGTTIN, false},  {SIG_IGN, SIGTTOU, false},
};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

static struct sigaction found_actions[WATCHED];

static void prepare_signals(void)
{
	sigset_t all;

	sigemptyset(&all);
	for (size_t i = 0; i < WATCHED; i++)
		sigaddset(&all, watched[i].number);
	sigprocmask(SIG_SETMASK, NULL, &found_mask);
	for (size_t i = 0; i < WATCHED; i++) {
		struct sigaction action = {.sa_handler = watched[i].handler};

		/* One at a time: a handler that is interrupted by another would count wrongly. */
		if (action.sa_handler == on_signal)
			action.sa_mask = all;
		else if (action.sa_handler != SIG_IGN)
			action.sa_flags = SA_RESTART;
		sigaction(watched[i].number, NULL, &found_actions[i]);
		if (!watched[i].unless_ignored || found_actions[i].sa_handler != SIG_IGN)
			sigaction(watched[i].number, &action, NULL);
	}
}

void mw_process_setup_ignore_write_signals(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

void mw_process_setup_prepare(void)
{
	struct rlimit raised;

	prepare_signals();
	if (getrlimit(RLIMIT_NOFILE, &found_files) == 0) {
		raised = found_files;
		raised.rlim_cur = raised.rlim_max;
		setrlimit(RLIMIT_NOFILE, &raised);
	}
	prepared = true;
}

struct mw_error *mw_process_setup_check_files(void)
{
	struct rlimit files;
	struct mw_error *err;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= LEAST_FILES)
		return NULL;
	err = mw_error_create(MW_ERROR_SYSTEM, EMFILE, "memwatch may open only %llu files, and needs more",
			      (unsigned long long)files.rlim_cur);
	return mw_error_hint(err, "Raise the limit: ulimit -n 1024");
}

const volatile sig_atomic_t *mw_process_setup_interrupted(void)
{
	return &interrupted;
}

void mw_process_setup_limit_reached(void)
{
	if (!interrupted)
		interrupted = MW_STOP_LIMIT;
}

void mw_process_setup_foreign_signals(sigset_t *out)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

	sigfillset(out);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(out, own[i]);
}

bool mw_process_setup_end_asked(void)
{
	return signalled;
}

void mw_process_setup_screen(bool shown)
{
	screen = shown;
}

bool mw_process_setup_refused_suspension(void)
{
	bool was = refused;

	refused = 0;
	return was;
}

bool mw_process_setup_hurried(void)
{
	return hurried;
}

void mw_process_setup_reported(void)
{
	reporting = 0;
}

/* Nothing is stopped for memwatch any more. */
static void allow_suspending(void)
{
	for (size_t i = 0; i < WATCHED; i++)
		if (watched[i].number == SIGTSTP || watched[i].number == SIGTTIN || watched[i].number == SIGTTOU)
			sigaction(watched[i].number, &found_actions[i], NULL);
}

void mw_process_setup_reporting(const struct mw_partials *partials)
{
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < MW_PARTIALS_MAX; i++)
		snprintf(partial_files[i], sizeof(partial_files[i]), "%s",
			 partials && partials->paths[i] ? partials->paths[i] : "");
	allow_suspending();
	sigprocmask(SIG_SETMASK, &before, NULL);
	reporting = 1;
}

void mw_process_setup_restore(void)
{
	if (!prepared)
		return;
	if (found_files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &found_files);
	for (size_t i = 0; i < WATCHED; i++)
		sigaction(watched[i].number, &found_actions[i], NULL);
	sigprocmask(SIG_SETMASK, &found_mask, NULL);
}
