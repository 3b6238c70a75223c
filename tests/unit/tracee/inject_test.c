// SPDX-License-Identifier: MIT
/* inject_test.c: memory put into a process and taken out again. */
#include "proc/file.h"
#include "proc/peek.h"
#include "quiet_child.h"
#include "tracee/inject.h"
#include "tracee/quiesce.h"
#include "tracee_child.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (UINT64_C(64) << 20)

static int tick(struct board *board)
{
	board->ready = 1;
	while (!board->result)
		board->ticks++;
	return 0;
}

/* Would be killed for what memwatch has it do. */
static int body_filtered(struct board *board)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	tick(board);
	/* It has its filter back. */
	syscall(SYS_memfd_create, "x", 0);
	return 0;
}

static int body_small(struct board *board)
{
	struct rlimit limit = {.rlim_cur = UINT64_C(32) << 20, .rlim_max = RLIM_INFINITY};

	setrlimit(RLIMIT_AS, &limit);
	return tick(board);
}

static int body_no_files(struct board *board)
{
	struct rlimit limit = {.rlim_cur = 3, .rlim_max = 1024};

	setrlimit(RLIMIT_NOFILE, &limit);
	return tick(board);
}

static int body_no_file_size(struct board *board)
{
	struct rlimit limit = {0, 0};

	setrlimit(RLIMIT_FSIZE, &limit);
	return tick(board);
}

static int body_locked(struct board *board)
{
	/* What it has already may be large (a sanitizer's). */
	if (mlockall(MCL_FUTURE) ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 77;
	return tick(board);
}

static int body_epoll(struct board *board)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);
	int got;

	epoll_ctl(epoll, EPOLL_CTL_ADD, board->pipe[0], &event);
	board->ready = 1;
	got = epoll_wait(epoll, &event, 1, -1);
	return got == 1 ? 0 : errno;
}

static char *maps_text(pid_t pid)
{
	char *text;
	size_t size;

	FINE(mw_proc_file_read(&text, &size, "/proc/%d/maps", (int)pid));
	return text;
}

static unsigned count_fds(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* A process that stands, and what it was before. */
struct held {
	struct board *board;
	pid_t pid;
	struct mw_quiesce quiesce;
	struct mw_inject inject;
	char *maps_before;
	unsigned fds_before;
};

static void hold(struct held *held, int (*body)(struct board *board))
{
	struct mw_maps maps = {0};

	memset(held, 0, sizeof(*held));
	held->board = board_create();
	if (body == body_epoll) {
		int ends[2];

		assert_int_equal(pipe(ends), 0);
		held->board->pipe[0] = ends[0];
		held->board->pipe[1] = ends[1];
	}
	held->pid = quiet_start(body, held->board);
	if (body == body_epoll)
		child_await_call(held->pid, SYS_epoll_wait);
	held->maps_before = maps_text(held->pid);
	held->fds_before = count_fds(held->pid);
	FINE(mw_quiesce_begin(&held->quiesce, held->pid));
	FINE(mw_maps_read(held->pid, &maps));
	FINE(mw_inject_init(&held->inject, mw_quiesce_pick(&held->quiesce), &maps));
	mw_maps_deinit(&maps);
}

/* Nothing is left in it. */
static void assert_clean(struct held *held)
{
	char *maps = maps_text(held->pid);

	assert_string_equal(maps, held->maps_before);
	free(maps);
	assert_int_equal(count_fds(held->pid), held->fds_before);
}

/* It runs to the end that its body has. */
static void let_go(struct held *held, int result)
{
	FINE(mw_quiesce_end(&held->quiesce));
	assert_true(is_free(held->pid));
	if (held->board->pipe[1]) {
		assert_int_equal(write(held->board->pipe[1], "x", 1), 1);
	} else {
		assert_true(await_more(&held->board->ticks, held->board->ticks));
		held->board->result = 1;
	}
	assert_int_equal(quiet_end(held->pid), result);
	if (held->board->pipe[1]) {
		close(held->board->pipe[0]);
		close(held->board->pipe[1]);
	}
	free(held->maps_before);
	board_destroy(held->board);
}

static void assert_shared(struct held *held)
{
	struct mw_shared_memory memory;
	const struct mw_mapping *mapping;
	struct mw_maps maps = {0};
	uint64_t word = 0x1234567890abcdef;
	struct stat file;

	FINE(mw_shared_memory_create(&held->inject, 0, SIZE, &memory));
	assert_int_equal(count_fds(held->pid), held->fds_before);
	FINE(mw_maps_read(held->pid, &maps));
	mapping = mw_maps_find(&maps, memory.there);
	assert_non_null(mapping);
	assert_int_equal(mapping->end - mapping->start, SIZE);
	assert_true(mapping->shared && mapping->read && mapping->write && !mapping->exec);
	assert_int_equal(mapping->inode, memory.inode);
	assert_int_equal(makedev(mapping->major, mapping->minor), memory.device);
	mw_maps_deinit(&maps);
	/* Nobody has its pages yet, not even in a process that locks its memory. */
	assert_int_equal(fstat(memory.fd, &file), 0);
	assert_int_equal(file.st_blocks, 0);
	/* Nor can anyone take away what is mapped. */
	assert_int_equal(ftruncate(memory.fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(memory.fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	FINE(mw_shared_memory_fill(&memory, 4096, 8192));
	assert_int_equal(fstat(memory.fd, &file), 0);
	assert_true(file.st_blocks >= 16 && file.st_blocks * 512 < (blkcnt_t)SIZE);
	memcpy((char *)memory.here + 4096, &word, sizeof(word));
	word = 0;
	assert_true(mw_peek(held->pid, memory.there + 4096, &word, sizeof(word)));
	assert_int_equal(word, 0x1234567890abcdef);
	FINE(mw_inject_unmap(&held->inject, memory.there, SIZE));
	mw_shared_memory_close(&memory);
	mw_shared_memory_close(&memory);
}

static void private_memory(void **state)
{
	const struct mw_mapping *mapping;
	struct mw_maps maps = {0};
	struct mw_error *err;
	struct held held;
	mw_addr at, other;

	(void)state;
	hold(&held, tick);
	FINE(mw_inject_map(&held.inject, 0, 8192, PROT_READ | PROT_WRITE, &at));
	FINE(mw_inject_protect(&held.inject, at, 4096, PROT_READ | PROT_EXEC));
	FINE(mw_inject_advise(&held.inject, at + 4096, 4096, MADV_WIPEONFORK));
	/* Never over what is there. */
	err = mw_inject_map(&held.inject, at, 4096, PROT_READ, &other);
	assert_non_null(err);
	assert_int_equal(mw_error_errno(err), EEXIST);
	mw_error_destroy(err);
	FINE(mw_maps_read(held.pid, &maps));
	mapping = mw_maps_find(&maps, at);
	assert_non_null(mapping);
	assert_true(mapping->exec && !mapping->write && mapping->end == at + 4096);
	mw_maps_deinit(&maps);
	FINE(mw_inject_unmap(&held.inject, at, 8192));
	/* At a place that was chosen. */
	FINE(mw_inject_map(&held.inject, at, 4096, PROT_READ, &other));
	assert_int_equal(other, at);
	FINE(mw_inject_unmap(&held.inject, at, 4096));
	assert_clean(&held);
	let_go(&held, 0);
}

static void shared_with(int (*body)(struct board *board), int result)
{
	struct held held;

	hold(&held, body);
	assert_shared(&held);
	assert_clean(&held);
	let_go(&held, result);
}

static void shared_memory(void **state)
{
	(void)state;
	shared_with(tick, 0);
}

static void a_wait_goes_on(void **state)
{
	(void)state;
	shared_with(body_epoll, 0);
}

static void without_file_size(void **state)
{
	(void)state;
	shared_with(body_no_file_size, 0);
}

static void with_locked_memory(void **state)
{
	(void)state;
	shared_with(body_locked, 0);
}

static void under_seccomp(void **state)
{
	(void)state;
	if (geteuid() != 0 || prctl(PR_GET_SECCOMP) != 0) {
		print_message("not root, or under a filter: the filter of another can't be suspended\n");
		skip();
	}
	shared_with(body_filtered, 128 + SIGSYS);
}

static void into_a_stopped_process(void **state)
{
	struct held held;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct mw_maps maps = {0};

		memset(&held, 0, sizeof(held));
		held.board = board_create();
		held.pid = quiet_start(tick, held.board);
		kill(held.pid, SIGSTOP);
		assert_true(await_state(held.pid, 'T'));
		held.maps_before = maps_text(held.pid);
		held.fds_before = count_fds(held.pid);
		FINE(mw_quiesce_begin(&held.quiesce, held.pid));
		FINE(mw_maps_read(held.pid, &maps));
		FINE(mw_inject_init(&held.inject, mw_quiesce_pick(&held.quiesce), &maps));
		mw_maps_deinit(&maps);
		assert_shared(&held);
		assert_clean(&held);
		FINE(mw_quiesce_end(&held.quiesce));
		assert_true(await_state(held.pid, 'T'));
		kill(held.pid, SIGCONT);
		let_go(&held, 0);
	}
}

/* A call that takes a while, with a SIGSTOP pending; `then` comes within it. */
static void stop_before_call(struct held *held, int then)
{
	const uint64_t arguments[6] = {0, 0, 200};
	int64_t result = -1;
	pid_t sender;

	hold(held, tick);
	kill(held->pid, SIGSTOP);
	sender = fork();
	if (sender == 0) {
		usleep(100000);
		_exit(then && kill(held->pid, then));
	}
	FINE(mw_inject_call(&held->inject, SYS_poll, arguments, &result));
	/* A SIGCONT wakes a thread even where it is blocked. */
	assert_true(then || result == 0);
	assert_int_equal(quiet_end(sender), 0);
}

static void stopped_within_a_call(void **state)
{
	struct held held;

	(void)state;
	stop_before_call(&held, 0);
	FINE(mw_quiesce_end(&held.quiesce));
	assert_true(await_state(held.pid, 'T'));
	kill(held.pid, SIGCONT);
	let_go(&held, 0);
}

/* What came last counts. */
static void continued_within_a_call(void **state)
{
	struct held held;

	(void)state;
	stop_before_call(&held, SIGCONT);
	let_go(&held, 0);
}

static void fails_with(int (*body)(struct board *board), const char *word)
{
	struct mw_shared_memory memory;
	struct mw_error *err;
	struct held held;

	hold(&held, body);
	err = mw_shared_memory_create(&held.inject, 0, SIZE, &memory);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_SYSTEM);
	assert_non_null(strstr(mw_error_text(err), word));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
	assert_clean(&held);
	let_go(&held, 0);
}

static void limits_are_named(void **state)
{
	(void)state;
	fails_with(body_small, "RLIMIT_AS");
	fails_with(body_no_files, "RLIMIT_NOFILE");
}

static void killed_meanwhile(void **state)
{
	struct mw_shared_memory memory;
	struct mw_error *err;
	struct held held;

	(void)state;
	hold(&held, tick);
	kill(held.pid, SIGKILL);
	err = mw_shared_memory_create(&held.inject, 0, SIZE, &memory);
	assert_non_null(err);
	mw_error_destroy(err);
	FINE(mw_quiesce_end(&held.quiesce));
	assert_true(waitpid(held.pid, NULL, 0) == held.pid || errno == ECHILD);
	free(held.maps_before);
	board_destroy(held.board);
}

UNIT_GROUP(inject)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_memory),         cmocka_unit_test(shared_memory),
		cmocka_unit_test(a_wait_goes_on),         cmocka_unit_test(without_file_size),
		cmocka_unit_test(with_locked_memory),     cmocka_unit_test(under_seccomp),
		cmocka_unit_test(into_a_stopped_process), cmocka_unit_test(limits_are_named),
		cmocka_unit_test(stopped_within_a_call),  cmocka_unit_test(continued_within_a_call),
		cmocka_unit_test(killed_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
