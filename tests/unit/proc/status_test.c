// SPDX-License-Identifier: MIT
/* status_test.c: what /proc says of live processes, zombies, kernel threads and threads. */
#include "proc/peek.h"
#include "proc/program.h"
#include "proc/root.h"
#include "proc/status.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_kind(struct mw_error *err, enum mw_error_kind kind)
{
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), kind);
	mw_error_destroy(err);
}

static pid_t start_sleeper(void)
{
	pid_t child = fork();

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void end(pid_t child)
{
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void reads_own_status(void **state)
{
	struct mw_status status = {0};
	char before[17] = {0};
	sigset_t set;

	(void)state;
	(void)prctl(PR_GET_NAME, before);
	(void)prctl(PR_SET_NAME, "a)\n\\ R 1 (b");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)raise(SIGUSR2);
	(void)signal(SIGWINCH, SIG_IGN);
	assert_null(mw_status_read(getpid(), &status));
	assert_string_equal(status.name, "a)\n\\ R 1 (b");
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.ppid, getppid());
	assert_int_equal(status.tracer, 0);
	assert_int_equal(status.state, 'R');
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.euid, geteuid());
	assert_true(status.threads >= 1);
	assert_true(status.ns_pid > 0);
	assert_false(status.kernel_thread);
	assert_true(status.sig_blocked & 1ULL << (SIGUSR2 - 1));
	assert_true(status.sig_pending & 1ULL << (SIGUSR2 - 1));
	assert_true(status.sig_ignored & 1ULL << (SIGWINCH - 1));
	(void)prctl(PR_SET_NAME, before);
}

static void reads_names(void **state)
{
	char before[17] = {0}, name[17];

	(void)state;
	(void)prctl(PR_GET_NAME, before);
	(void)prctl(PR_SET_NAME, "two\nlines\n");
	mw_comm_read(getpid(), getpid(), name);
	assert_string_equal(name, "two\nlines\n");
	(void)prctl(PR_SET_NAME, before);
	mw_comm_read(99999999, 99999999, name);
	assert_string_equal(name, "?");
}

static void reads_child(void **state)
{
	struct mw_status status = {0};
	pid_t child = start_sleeper();
	pid_t *pids = NULL;
	siginfo_t info;
	size_t count = 0;
	bool found = false;

	(void)state;
	assert_null(mw_status_read(child, &status));
	assert_int_equal(status.ppid, getpid());
	assert_int_equal(mw_shares_memory(child, getpid()), 0);
	assert_null(mw_children_read(getpid(), getpid(), &pids, &count));
	for (size_t i = 0; i < count; i++)
		found = found || pids[i] == child;
	assert_true(found);
	free(pids);
	assert_null(mw_children_alive(getpid(), &pids, &count));
	found = false;
	for (size_t i = 0; i < count; i++)
		found = found || pids[i] == child;
	assert_true(found);
	free(pids);
	/* A zombie lives no more. */
	(void)kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_null(mw_children_alive(getpid(), &pids, &count));
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(pids[i], child);
	free(pids);
	pids = NULL;
	expect_kind(mw_children_read(99999999, 99999999, &pids, &count), MW_ERROR_GONE);
	end(child);
	expect_kind(mw_status_read(child, &status), MW_ERROR_GONE);
	expect_kind(mw_tasks_read(child, &pids, &count), MW_ERROR_GONE);
}

static void reads_zombie(void **state)
{
	struct mw_status status = {0};
	siginfo_t info;
	char *exe = NULL;
	char **argv = NULL;
	size_t count = 1;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_null(mw_status_read(child, &status));
	assert_int_equal(status.state, 'Z');
	assert_int_equal(mw_state_read(child), 'Z');
	assert_true(mw_state_is_end('Z'));
	expect_kind(mw_exe_read(child, &exe), MW_ERROR_GONE);
	assert_null(mw_command_read(child, &argv, &count));
	assert_int_equal(count, 0);
	assert_null(argv[0]);
	free(argv);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(mw_state_read(child), 'X');
	assert_true(mw_state_is_end('X'));
	assert_false(mw_state_is_end(mw_state_read(getpid())));
}

static void reads_kernel_thread(void **state)
{
	struct mw_status status = {0};
	struct mw_error *err;
	char *exe = NULL;
	uint64_t rss = 1, pss, vsize;

	(void)state;
	err = mw_status_read(2, &status);
	if (err || strcmp(status.name, "kthreadd") != 0) {
		mw_error_destroy(err);
		skip();
	}
	assert_true(status.kernel_thread);
	err = mw_exe_read(2, &exe);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_null(mw_memory_read(2, true, &rss, &pss, &vsize));
	assert_int_equal(rss, 0);
	assert_int_equal(pss, MW_SIZE_UNKNOWN);
}

struct waiter {
	pthread_barrier_t *started, *end;
	pid_t tid;
};

static void *wait_in_thread(void *argument)
{
	struct waiter *waiter = argument;

	waiter->tid = gettid();
	(void)pthread_barrier_wait(waiter->started);
	(void)pthread_barrier_wait(waiter->end);
	return NULL;
}

#define THREADS 20

static void check_threads(const struct waiter *waiters)
{
	struct mw_status status = {0};
	pid_t *tids = NULL;
	size_t count = 0;

	assert_null(mw_tasks_read(getpid(), &tids, &count));
	assert_true(count >= THREADS + 1);
	for (size_t i = 0; i < THREADS; i++) {
		bool found = false;

		for (size_t j = 0; j < count; j++)
			found = found || tids[j] == waiters[i].tid;
		assert_true(found);
	}
	free(tids);
	/* A thread that is no leader has a directory of its own, and tells its leader. */
	assert_null(mw_status_read(waiters[3].tid, &status));
	assert_int_equal(status.tgid, getpid());
	assert_true(mw_task_cpu(getpid(), waiters[3].tid) >= 0);
	assert_int_equal(mw_shares_memory(getpid(), waiters[3].tid), 1);
}

static void lists_threads(void **state)
{
	struct waiter waiters[THREADS];
	pthread_t threads[THREADS];
	pthread_barrier_t started, ended;

	(void)state;
	(void)pthread_barrier_init(&started, NULL, THREADS + 1);
	(void)pthread_barrier_init(&ended, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++) {
		waiters[i] = (struct waiter){&started, &ended, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, wait_in_thread, &waiters[i]), 0);
	}
	(void)pthread_barrier_wait(&started);
	check_threads(waiters);
	(void)pthread_barrier_wait(&ended);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_barrier_destroy(&started);
	(void)pthread_barrier_destroy(&ended);
}

static void reads_command(void **state)
{
	static char *const arguments[] = {"/bin/sh", "-c", "read x", "", "two words", NULL};
	char **argv = NULL, *exe = NULL;
	size_t count = 0;
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = vfork();
	if (child == 0) {
		(void)dup2(ends[0], 0);
		(void)execv(arguments[0], arguments);
		_exit(127);
	}
	/* vfork returns a little before exec is over. */
	for (;;) {
		assert_null(mw_command_read(child, &argv, &count));
		if (count)
			break;
		free(argv);
		(void)sched_yield();
	}
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(argv[i], arguments[i]);
		free(argv[i]);
	}
	assert_null(argv[count]);
	free(argv);
	assert_null(mw_exe_read(child, &exe));
	assert_int_equal(exe[0], '/');
	assert_non_null(strstr(exe, "sh"));
	free(exe);
	close(ends[0]);
	close(ends[1]);
	end(child);
}

/* A program that writes its title over its arguments leaves zeros behind it. */
static void reads_title(void **state)
{
	size_t room = 0, count = 0;
	char **argv = NULL;
	pid_t child;

	(void)state;
	assert_null(mw_command_read(getpid(), &argv, &count));
	for (size_t i = 0; i < count; i++) {
		room += strlen(argv[i]) + 1;
		free(argv[i]);
	}
	free(argv);
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(program_invocation_name, 0, room);
		program_invocation_name[0] = 't';
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	assert_null(mw_command_read(child, &argv, &count));
	assert_int_equal(count, 1);
	assert_string_equal(argv[0], "t");
	assert_null(argv[1]);
	free(argv[0]);
	free(argv);
	end(child);
}

static void reads_memory(void **state)
{
	uint64_t rss = 0, pss = 0, vsize = 0, value = 0;
	int here = 42, there = 0;

	(void)state;
	assert_null(mw_memory_read(getpid(), false, &rss, &pss, &vsize));
	assert_true(rss > 0 && rss <= vsize);
	assert_int_equal(pss, MW_SIZE_UNKNOWN);
	assert_null(mw_memory_read(getpid(), true, &rss, &pss, &vsize));
	assert_true(pss > 0);
	expect_kind(mw_memory_read(99999999, false, &rss, &pss, &vsize), MW_ERROR_GONE);
	assert_true(mw_auxv_read(getpid(), AT_SYSINFO_EHDR, &value));
	assert_int_equal(value, getauxval(AT_SYSINFO_EHDR));
	assert_false(mw_auxv_read(getpid(), 123456, &value));
	assert_true(mw_ptrace_scope() >= 0);
	assert_int_equal(mw_shares_memory(getpid(), getpid()), 1);
	assert_true(mw_peek(getpid(), (mw_addr)(uintptr_t)&here, &there, sizeof(there)));
	assert_int_equal(there, 42);
	assert_false(mw_peek(getpid(), 16, &there, sizeof(there)));
}

/* Memory that ends: what is there is read, however many pages it is. */
static void peeks_up_to_the_end(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 70 * page;
	char *there = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *here = malloc(size);
	mw_addr addr = (mw_addr)(uintptr_t)there;

	(void)state;
	assert_ptr_not_equal(there, MAP_FAILED);
	assert_non_null(here);
	for (size_t i = 0; i < size; i++)
		there[i] = (char)(i * 31 >> 3);
	assert_int_equal(munmap(there + size, page), 0);
	assert_int_equal(mw_peek_some(getpid(), addr, here, size), size);
	assert_memory_equal(here, there, size);
	assert_int_equal(mw_peek_some(getpid(), addr + 5, here, size), size - 5);
	assert_int_equal(errno, EFAULT);
	assert_memory_equal(here, there + 5, size - 5);
	assert_false(mw_peek(getpid(), addr + size - 1, here, 2));
	assert_int_equal(mw_peek_some(getpid(), addr + size, here, 1), 0);
	assert_int_equal(mw_peek_some(getpid(), UINT64_MAX - 1, here, 4), 0);
	assert_int_equal(errno, EFAULT);
	munmap(there, size);
	free(here);
}

static void finds_stat_fields(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t flags;
	} cases[] = {
		{"1 (a) S 0 1 1 0 -1 4194560 9", true, 4194560},
		{"1 (a) R 5) S 0 1 1 0 -1 77", true, 77},
		{"1 (a\n) S 0 1 1 0 -1 78\n", true, 78},
		{"1 (a) S 0 1 1 0 -1", false, 0},
		{"1 (a) S 0 1 1 0 -1 ", false, 0},
		{"1 (a)", false, 0},
		{"1 a S 0 1", false, 0},
		{"", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t flags = 0;

		assert_int_equal(mw_stat_field(cases[i].text, strlen(cases[i].text), MW_STAT_FLAGS, &flags),
				 cases[i].good);
		assert_int_equal(flags, cases[i].flags);
	}
}

/* On 4.18 and 5.10 programs have 0x4000 from the first process, by which it is not one of the kernel's threads. */
static void knows_workers_of_its_kernel(void **state)
{
	(void)state;
	assert_false(mw_stat_worker_flags(0x404100, "4.18.0-25-generic"));
	assert_false(mw_stat_worker_flags(0x404110, "5.10.0-32-amd64"));
	assert_true(mw_stat_worker_flags(0x404110, "5.12.0"));
	assert_false(mw_stat_worker_flags(0x404100, "6.3.1"));
	assert_true(mw_stat_worker_flags(0x404100, "6.4"));
	assert_true(mw_stat_worker_flags(0x404100, "10.0.1"));
	assert_false(mw_stat_worker_flags(0x400100, "6.18.44"));
	assert_false(mw_stat_worker_flags(0x404110, "unknown"));
}

static void opens_only_files(void **state)
{
	char directory[] = "/tmp/mw-root-XXXXXX";
	char name[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(name, sizeof(name), "%s/fifo", directory);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(mw_root_open(getpid(), name), -1);
	assert_int_equal(errno, ENXIO);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(rmdir(directory), 0);
	assert_int_equal(mw_root_open(getpid(), "/dev/null"), -1);
	assert_int_equal(errno, ENXIO);
	assert_int_equal(mw_root_open(getpid(), name), -1);
	assert_int_equal(errno, ENOENT);
	fd = mw_root_open(getpid(), "/etc/passwd");
	assert_true(fd >= 0);
	close(fd);
	assert_string_equal(mw_root_strip("/jail/x", "/jail"), "/x");
	assert_string_equal(mw_root_strip("/jailed/x", "/jail"), "/jailed/x");
	assert_string_equal(mw_root_strip("/x", ""), "/x");
}

UNIT_GROUP(status)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_own_status),
		cmocka_unit_test(reads_names),
		cmocka_unit_test(reads_child),
		cmocka_unit_test(reads_zombie),
		cmocka_unit_test(reads_kernel_thread),
		cmocka_unit_test(lists_threads),
		cmocka_unit_test(reads_command),
		cmocka_unit_test(reads_memory),
		cmocka_unit_test(knows_workers_of_its_kernel),
		cmocka_unit_test(finds_stat_fields),
		cmocka_unit_test(opens_only_files),
		cmocka_unit_test(peeks_up_to_the_end),
		cmocka_unit_test(reads_title),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
