// SPDX-License-Identifier: MIT
/* own_stack_test.c: which stack is a thread's own, where it is unused, and how a thread gets out of a call that a
 * killed tracer has left it in. */
#include "proc/status.h"
#include "tracee/inject.h"
#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE        4096u
#define THREAD      UINT64_C(0x7f0000800000) /* a thread pointer */
#define STACK       (64 * PAGE)
#define SMALL       (8 * PAGE)
#define WANTED      (2 * PAGE)
#define MOST_NAPS   50000
#define KILLED_AMID 3 /* times, with the process stopped all the while */

struct shared {
	volatile pid_t tid;
	volatile uintptr_t low, high; /* of the thread's own stack */
	volatile uint64_t rounds;
};

static bool bounds(const uint64_t *block, size_t count, mw_addr *low, mw_addr *high)
{
	*low = *high = 1;
	return mw_own_stack_bounds(THREAD, block, count, low, high);
}

static void test_bounds(void **state)
{
	const uint64_t glibc[] = {THREAD, 0, THREAD, 1, THREAD - 0x7ff640, 0x800fc0, PAGE, PAGE};
	const uint64_t unguarded[] = {0, 7, THREAD - 0x3000, 0x3900, 0, 0};
	const uint64_t musl[] = {THREAD, 0, 3, THREAD - 0x23000, 0x24000, THREAD - 0x500, 0x21000 - 0x500, 0x2000};
	const uint64_t first[] = {THREAD, 0, 0, 0x7ffd00001000, 0, 0, 0, 0};
	const uint64_t wild[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, THREAD - 1, UINT64_MAX,    1,   THREAD,
				 0,          0,          1,          THREAD,     THREAD + PAGE, PAGE};
	mw_addr low, high;

	(void)state;
	assert_true(bounds(glibc, 8, &low, &high));
	assert_int_equal(low, THREAD - 0x7ff640 + PAGE);
	assert_int_equal(high, THREAD);
	assert_true(bounds(unguarded, 6, &low, &high));
	assert_int_equal(low, THREAD - 0x3000);
	assert_true(bounds(musl, 8, &low, &high));
	assert_int_equal(low, THREAD - 0x21000);
	assert_int_equal(high, THREAD - 0x500);
	assert_false(bounds(first, 8, &low, &high));
	assert_false(bounds(wild, sizeof(wild) / sizeof(wild[0]), &low, &high));
	assert_false(bounds(glibc, 3, &low, &high));
	assert_int_equal(low, 1);
}

static void count_rounds(struct shared *shared)
{
	for (;;)
		shared->rounds++;
}

static void *run_thread(void *context)
{
	struct shared *shared = context;
	pthread_attr_t attributes;
	void *at;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &at, &size))
		_exit(3);
	shared->low = (uintptr_t)at;
	shared->high = shared->low + size;
	shared->tid = (pid_t)syscall(SYS_gettid);
	count_rounds(shared);
	return NULL;
}

/* A thread in memory that it was given, all of it used. */
static int body_given(void *context)
{
	static char memory[SMALL] __attribute__((aligned(PAGE)));
	pthread_attr_t attributes;
	pthread_t thread;

	memset(memory, 1, sizeof(memory));
	if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, memory, sizeof(memory)) ||
	    pthread_create(&thread, &attributes, run_thread, context))
		return 2;
	for (;;)
		pause();
}

/* A thread in the low part of a mapping, of which a page above its stack was never touched. */
static int body_beside_untouched(void *context)
{
	char *memory = mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	if (memory == MAP_FAILED || pthread_attr_init(&attributes) ||
	    pthread_attr_setstack(&attributes, memory, STACK) ||
	    pthread_create(&thread, &attributes, run_thread, context))
		return 2;
	for (;;)
		pause();
}

static int body_thread(void *context)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_thread, context))
		return 2;
	for (;;)
		pause();
}

static struct shared *shared;

static void run_coroutine(void)
{
	count_rounds(shared);
}

/* The first thread, on a stack of the program's own. */
static int body_coroutine(void *context)
{
	static ucontext_t outside, inside;

	(void)context;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (getcontext(&inside))
		return 2;
	inside.uc_stack.ss_sp = malloc(STACK);
	inside.uc_stack.ss_size = STACK;
	makecontext(&inside, run_coroutine, 0);
	shared->low = (uintptr_t)inside.uc_stack.ss_sp;
	shared->high = shared->low + STACK;
	shared->tid = getpid();
	return swapcontext(&outside, &inside);
}

__attribute__((noinline)) static void call_deeper(void)
{
	char local[PAGE];

	local[0] = 1;
	__asm__ volatile("" : : "r"(local) : "memory");
}

/* The first thread, near the low end of its stack; `blocked`: with a mapping that is too near for the stack to grow. */
static int run_deep(struct shared *context, bool blocked)
{
	char local[8 * STACK];
	char *below = (char *)((uintptr_t)local & ~(uintptr_t)(PAGE - 1)) - 16 * PAGE;

	memset(local, 1, sizeof(local));
	/* For what is called from here: as little as would not be room for a frame. */
	call_deeper();
	if (blocked && mmap(below, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != below)
		return 2;
	context->low = context->high = (uintptr_t)local;
	context->tid = getpid();
	count_rounds(context);
	return local[0];
}

static int body_deep(void *context)
{
	return run_deep(context, false);
}

static int body_deep_blocked(void *context)
{
	return run_deep(context, true);
}

static pid_t start(int (*body)(void *))
{
	const struct timespec moment = {.tv_nsec = 200000};
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(body(shared));
	}
	for (unsigned i = 0; shared->rounds == 0; i++) {
		assert_true(i < MOST_NAPS);
		nanosleep(&moment, NULL);
	}
	return pid;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	/* Of a traced thread before that of its process; one that is killed may stop once more on its way. */
	do
		assert_int_equal(waitpid(shared->tid, &status, __WALL), shared->tid);
	while (WIFSTOPPED(status) && ptrace(PTRACE_CONT, shared->tid, NULL, NULL) == 0);
	if (shared->tid != pid)
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
	munmap(shared, sizeof(*shared));
}

static bool room_of_stopped(struct mw_room *room)
{
	struct mw_maps maps = {0};
	bool found;

	FINE(mw_maps_read(shared->tid, &maps));
	found = mw_own_stack_room(shared->tid, &maps, WANTED, room);
	mw_maps_deinit(&maps);
	return found;
}

/* Stop the thread and find its room. */
static bool find_room(struct mw_room *room, mw_addr *sp)
{
	struct mw_tracee_regs regs;

	FINE(mw_tracee_seize(shared->tid));
	child_stop(shared->tid);
	FINE(mw_tracee_get_regs(shared->tid, &regs));
	*sp = regs.general.gpr[7];
	return room_of_stopped(room);
}

static void test_thread(void **state)
{
	pid_t pid = start(body_thread);
	struct mw_room room;
	mw_addr sp;

	(void)state;
	assert_true(find_room(&room, &sp));
	assert_true(room.zero);
	assert_int_equal(room.high - room.low, WANTED);
	assert_true(room.low >= shared->low && room.high < sp && sp < shared->high);
	end(pid);
}

/* No deeper call has been made, and none will be there when this one returns. */
static void test_deep(void **state)
{
	pid_t pid = start(body_deep);
	struct mw_room room, again;
	struct mw_maps maps = {0};
	mw_addr sp;

	(void)state;
	assert_true(find_room(&room, &sp));
	assert_true(room.zero);
	assert_int_equal(room.high - room.low, WANTED);
	assert_true(room.high < sp && sp - room.low < STACK);
	/* There is room now. */
	FINE(mw_maps_read(pid, &maps));
	assert_true(mw_own_stack_room(pid, &maps, WANTED, &again));
	assert_int_equal(again.low, room.low);
	mw_maps_deinit(&maps);
	end(pid);
	pid = start(body_deep_blocked);
	assert_false(find_room(&room, &sp));
	end(pid);
}

static bool is_touched(pid_t tid, mw_addr addr)
{
	uint64_t entry;
	char path[64];
	int pagemap;

	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)tid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(pagemap >= 0);
	assert_int_equal(pread(pagemap, &entry, sizeof(entry), (off_t)(addr / PAGE * sizeof(entry))), sizeof(entry));
	close(pagemap);
	return entry >> 62 != 0;
}

static void test_touches_nothing(void **state)
{
	pid_t pid = start(body_beside_untouched);
	struct mw_room room;
	mw_addr sp;

	(void)state;
	assert_true(find_room(&room, &sp));
	assert_true(is_touched(shared->tid, shared->high - PAGE));
	assert_false(is_touched(shared->tid, shared->high));
	assert_false(is_touched(shared->tid, room.low));
	end(pid);
}

/* What is in use everywhere is left alone near the stack pointer, and below the stack. */
static void test_given(void **state)
{
	pid_t pid = start(body_given);
	struct mw_room room;
	mw_addr sp;

	(void)state;
	assert_true(find_room(&room, &sp));
	assert_false(room.zero);
	assert_true(room.low >= shared->low && room.high <= sp - 2048 && sp < shared->high);
	end(pid);
}

static void test_coroutine(void **state)
{
	pid_t pid = start(body_coroutine);
	struct mw_room room;
	mw_addr sp;

	(void)state;
	assert_true(find_room(&room, &sp));
	assert_true(sp >= shared->low && sp < shared->high);
	assert_true(room.high <= shared->low || room.low >= shared->high);
	assert_true(room.zero);
	end(pid);
}

/* Something at the end of the room, as a killed memwatch leaves it; returns where. */
static mw_addr leave_word(const struct mw_room *room, uint64_t word)
{
	struct mw_scratch scratch;

	FINE(mw_scratch_put(shared->tid, room, &word, sizeof(word), &scratch));
	return scratch.at;
}

static uint64_t read_word(mw_addr at)
{
	uint64_t word;

	FINE(mw_remote_read_all(shared->tid, at, &word, sizeof(word)));
	return word;
}

/* What a killed memwatch has left on the stack of a thread that runs `body`: is it made zero? */
static void check_remains(int (*body)(void *), bool cleared)
{
	pid_t pid = start(body);
	struct mw_room room, again;
	mw_addr sp, at;

	assert_true(find_room(&room, &sp));
	at = leave_word(&room, 7);
	assert_true(room_of_stopped(&again));
	assert_int_equal(read_word(at), cleared ? 0 : 7);
	assert_true(again.zero);
	assert_true(cleared ? again.high == room.high : again.high <= at);
	end(pid);
}

static void test_remains(void **state)
{
	(void)state;
	check_remains(body_thread, true);
}

/* Which of what lies above has been overwritten since by frames that wait there, nobody knows. */
static void test_remains_on_waiting_stack(void **state)
{
	(void)state;
	check_remains(body_coroutine, false);
}

static void wait_for_stop(pid_t tid)
{
	const struct timespec moment = {.tv_nsec = 200000};

	for (unsigned i = 0; mw_state_read(tid) != 'T'; i++) {
		assert_true(i < MOST_NAPS);
		nanosleep(&moment, NULL);
	}
}

/* A tracer that stops amid a call, and is killed there. */
static void kill_amid(pid_t tid, const char *point)
{
	const uint64_t none[6] = {0};
	pid_t tracer = fork();
	int status;

	assert_true(tracer >= 0);
	if (tracer == 0) {
		struct mw_inject inject;
		struct mw_maps maps = {0};
		int64_t result;

		setenv("MEMWATCH_FAULT", point, 1);
		FINE(mw_tracee_seize(tid));
		FINE(mw_tracee_interrupt(tid));
		if (waitpid(tid, &status, __WALL) != tid)
			_exit(2);
		/* Of the first stop of one that is stopped already. */
		FINE(mw_remote_syscall_finish(tid));
		FINE(mw_maps_read(tid, &maps));
		FINE(mw_inject_init(&inject, tid, &maps));
		mw_error_destroy(mw_inject_call(&inject, SYS_getppid, none, &result));
		_exit(3);
	}
	assert_int_equal(waitpid(tracer, &status, WUNTRACED), tracer);
	assert_true(WIFSTOPPED(status));
	kill(tracer, SIGKILL);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	/* Its process is stopped. */
	wait_for_stop(tid);
}

static void test_finish(void **state)
{
	pid_t pid = start(body_coroutine);
	const char *const points[] = {"call.begin!", "call.result!"};
	struct mw_tracee_regs before, amid, after;

	(void)state;
	FINE(mw_tracee_seize(pid));
	child_stop(pid);
	FINE(mw_tracee_get_regs(pid, &before));
	kill(pid, SIGSTOP);
	FINE(mw_tracee_detach(pid, 0));
	wait_for_stop(pid);
	/* It is stopped, and does not get out by itself. */
	for (unsigned i = 0; i < KILLED_AMID; i++) {
		kill_amid(pid, points[i % 2]);
		FINE(mw_tracee_seize(pid));
		child_stop(pid);
		FINE(mw_tracee_get_regs(pid, &amid));
		assert_true(mw_sigframe_is_at(pid, &amid.general));
		if (i + 1 < KILLED_AMID)
			FINE(mw_tracee_detach(pid, 0));
	}
	FINE(mw_remote_syscall_finish(pid));
	FINE(mw_tracee_get_regs(pid, &after));
	assert_false(mw_sigframe_is_at(pid, &after.general));
	assert_memory_equal(&after.general.gpr[6], &before.general.gpr[6], 2 * sizeof(mw_addr));
	assert_true(after.general.pc - before.general.pc + 64 < 128);
	assert_true(mw_tracee_is_group_stopped(pid));
	end(pid);
}

UNIT_GROUP(own_stack)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_coroutine),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_touches_nothing),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_remains),
		cmocka_unit_test(test_remains_on_waiting_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
