// SPDX-License-Identifier: MIT
/* program_test.c: a process that stays the program that it was, becomes another, or ends. */
#include "proc/program.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

/* A child that says that it is there, waits for a byte, and then does what it is for. */
struct child {
	pid_t pid;
	int to, from;
};

static void *stay(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Run as another program: says so, and waits for its end. */
static void act_again(void)
{
	char byte;

	(void)!write(STDOUT_FILENO, "2", 1);
	(void)!read(STDIN_FILENO, &byte, 1);
	_exit(0);
}

enum act {
	BECOME,      /* another program: this one, executed anew */
	LEAVE_LEADER /* the first thread ends, another goes on */
};

static void act(enum act what)
{
	pthread_t thread;
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!write(STDOUT_FILENO, "1", 1);
	(void)!read(STDIN_FILENO, &byte, 1);
	if (what == BECOME)
		execl("/proc/self/exe", "unit_proc", "program", "again", (char *)NULL);
	if (pthread_create(&thread, NULL, stay, NULL))
		_exit(1);
	pthread_exit(NULL);
}

static void await(const struct child *child)
{
	char byte;

	assert_int_equal(read(child->from, &byte, 1), 1);
}

static void start(struct child *child, enum act what)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child->pid = fork();
	if (child->pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		act(what);
		_exit(1);
	}
	assert_true(child->pid > 0);
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
	await(child);
}

static void go_on(const struct child *child)
{
	assert_int_equal(write(child->to, "x", 1), 1);
}

static void end(const struct child *child)
{
	(void)kill(child->pid, SIGKILL);
	(void)waitpid(child->pid, NULL, 0);
	close(child->to);
	close(child->from);
}

/* It says this, and what to do; every failure is explained by it. */
static void expect(pid_t pid, const struct mw_program *before, const char *text, const char *hint)
{
	struct mw_error *err = mw_program_check(pid, before);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	assert_non_null(strstr(mw_error_text(err), text));
	assert_non_null(strstr(mw_error_hint_text(err), hint));
	mw_error_destroy(err);
	err = mw_program_explain(pid, before, mw_error_create(MW_ERROR_UNSUPPORTED, 0, "no allocator"));
	assert_non_null(strstr(mw_error_text(err), text));
	mw_error_destroy(err);
	assert_null(mw_program_explain(pid, before, NULL));
	err = mw_program_explain(pid, before, mw_error_nomem());
	assert_int_equal(mw_error_kind(err), MW_ERROR_MEMORY);
	mw_error_destroy(err);
}

static void stays(void **state)
{
	struct mw_program before;
	struct mw_error *err;

	(void)state;
	mw_program_read(getpid(), &before);
	assert_true(before.known);
	assert_null(mw_program_check(getpid(), &before));
	err = mw_program_explain(getpid(), &before, mw_error_create(MW_ERROR_DATA, 0, "something else"));
	assert_string_equal(mw_error_text(err), "something else");
	mw_error_destroy(err);
}

static void becomes_another(void **state)
{
	struct mw_program before;
	struct child child;

	(void)state;
	start(&child, BECOME);
	mw_program_read(child.pid, &before);
	assert_true(before.known);
	assert_null(mw_program_check(child.pid, &before));
	go_on(&child);
	await(&child);
	expect(child.pid, &before, "exec'd another program (", "attach again: memwatch -p");
	mw_program_read(child.pid, &before);
	assert_null(mw_program_check(child.pid, &before));
	end(&child);
}

static void ends(void **state)
{
	struct mw_program before;
	struct child child;
	siginfo_t info;

	(void)state;
	start(&child, BECOME);
	mw_program_read(child.pid, &before);
	(void)kill(child.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	/* A zombie, and then nothing. */
	expect(child.pid, &before, "ended while memwatch attached to it", "launch it");
	end(&child);
	expect(child.pid, &before, "ended while memwatch attached to it", "launch it");
	mw_program_read(child.pid, &before);
	/* Nobody knows what it was, but that it is no more. */
	assert_false(before.known);
	expect(child.pid, &before, "ended while memwatch attached to it", "launch it");
	assert_null(mw_program_check(getpid(), &before));
	/* Its number is another process's. */
	mw_program_read(getpid(), &before);
	before.started--;
	expect(getpid(), &before, "ended while memwatch attached to it", "launch it");
}

static bool is_zombie(pid_t pid)
{
	char path[32], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	return strstr(text, ") Z ") != NULL;
}

static void first_thread_ends(void **state)
{
	struct mw_program before;
	struct child child;

	(void)state;
	start(&child, LEAVE_LEADER);
	mw_program_read(child.pid, &before);
	go_on(&child);
	while (!is_zombie(child.pid))
		usleep(1000);
	assert_null(mw_program_check(child.pid, &before));
	end(&child);
}

UNIT_GROUP(program)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays),
		cmocka_unit_test(becomes_another),
		cmocka_unit_test(ends),
		cmocka_unit_test(first_thread_ends),
	};

	if (argc > 1 && strcmp(argv[1], "again") == 0)
		act_again();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
