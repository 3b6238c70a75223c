// SPDX-License-Identifier: MIT
/* tracee_test.c: seize, stop, look, change, let go. */
#include "tracee/tracee.h"

#include "sigframe_compute.h"
#include "tracee_child.h"
#include "unit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Some seconds' tenth of work whose result is known. */
static int calculate(void *context)
{
	uint64_t sum = 1;

	(void)context;
	for (uint64_t i = 0; i < 60000000; i++) {
		sum = sum * 6364136223846793005u + i;
		__asm__ volatile("" : "+r"(sum));
	}
	return (int)(sum >> 57);
}

/* Registers go out as they came in, and a target whose registers were played with and put back computes on. */
static void registers_round_trip(void **state)
{
	int expected = calculate(NULL);
	pid_t pid = child_start(calculate, NULL);
	struct mw_tracee_regs saved, changed, now;
	struct mw_regs played;

	(void)state;
	for (int round = 0; round < 5; round++) {
		child_stop(pid);
		FINE(mw_tracee_get_regs(pid, &saved));
		assert_int_equal(saved.general.pc, saved.raw.rip);
		assert_true(saved.general.thread_pointer != 0);
		changed = saved;
		for (unsigned i = 0; i < MW_REG_COUNT; i++)
			changed.general.gpr[i] = 0x1111111111111111u * (i + 1);
		changed.general.pc += 1;
		changed.general.flags ^= 1; /* carry */
		changed.general.syscall = (uint64_t)-1;
		played = changed.general;
		FINE(mw_tracee_set_regs(pid, &changed));
		FINE(mw_tracee_get_regs(pid, &now));
		assert_memory_equal(&now.general, &played, sizeof(played));
		FINE(mw_tracee_set_regs(pid, &saved));
		FINE(mw_tracee_get_regs(pid, &now));
		assert_memory_equal(&now.general, &saved.general, sizeof(now.general));
		FINE(mw_tracee_resume(pid, 0));
		usleep(2000);
	}
	assert_int_equal(child_end(pid), expected);
}

static int compute(void *context)
{
	(void)context;
	while (sigframe_computes())
		;
	return 1;
}

/* General and vector registers, also a vector's upper half; each word once, none of them 0. */
static void tells_all_words(void **state)
{
	static const double vectors[] = {1.25, -7.5, 1e300, 3.0};
	static const uint64_t general[] = {0x1122334455667788, 0x2233445566778899, 0x33445566778899aa};
	pid_t pid = child_start(compute, NULL);
	uint64_t words[MW_REGS_WORDS];
	struct mw_tracee_regs regs;
	size_t count = 0, found = 0;

	(void)state;
	/* It may stand between two computations. */
	for (unsigned round = 0; round < 100 && found < 7; round++) {
		usleep(2000);
		child_stop(pid);
		FINE(mw_tracee_get_regs(pid, &regs));
		FINE(mw_regs_words(pid, &regs, words, MW_REGS_WORDS, &count));
		found = 0;
		for (size_t i = 0; i < count; i++) {
			assert_true(words[i] != 0);
			for (size_t j = 0; j < i; j++)
				assert_true(words[i] != words[j]);
			for (size_t j = 0; j < sizeof(general) / sizeof(general[0]); j++)
				found += words[i] == general[j];
			for (size_t j = 0; j < sizeof(vectors) / sizeof(vectors[0]); j++)
				found += memcmp(&words[i], &vectors[j], sizeof(words[i])) == 0;
		}
		FINE(mw_tracee_resume(pid, 0));
	}
	assert_int_equal(found, 7);
	child_stop(pid);
	FINE(mw_regs_words(pid, &regs, words, 3, &count));
	assert_int_equal(count, 3);
	child_kill(pid);
}

/* DWARF order is not the kernel's: each register by its own value. */
static void registers_have_their_places(void **state)
{
	struct user_regs_struct raw = {.rax = 10,
				       .rdx = 11,
				       .rcx = 12,
				       .rbx = 13,
				       .rsi = 14,
				       .rdi = 15,
				       .rbp = 16,
				       .rsp = 17,
				       .r8 = 18,
				       .r9 = 19,
				       .r10 = 20,
				       .r11 = 21,
				       .r12 = 22,
				       .r13 = 23,
				       .r14 = 24,
				       .r15 = 25,
				       .rip = 26,
				       .eflags = 27,
				       .orig_rax = 28,
				       .fs_base = 29,
				       .cs = 30,
				       .gs_base = 31};
	struct user_regs_struct back = raw;
	struct mw_regs regs;

	(void)state;
	mw_regs_from_kernel(&raw, &regs);
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		assert_int_equal(regs.gpr[i], 10 + i);
	assert_int_equal(regs.pc, 26);
	assert_int_equal(regs.flags, 27);
	assert_int_equal(regs.syscall, 28);
	assert_int_equal(regs.thread_pointer, 29);
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		regs.gpr[i] += 100;
	mw_regs_to_kernel(&regs, &back);
	assert_int_equal(back.rax, 110);
	assert_int_equal(back.rdx, 111);
	assert_int_equal(back.rsi, 114);
	assert_int_equal(back.rsp, 117);
	assert_int_equal(back.r15, 125);
	assert_int_equal(back.cs, 30);
	assert_int_equal(back.gs_base, 31);
	assert_int_equal(back.fs_base, 29);
}

/* Only an EINTR at a system call's end is made a restart. */
static void restarts_only_interrupted_calls(void **state)
{
	static const struct {
		uint64_t call, result;
		bool restarts;
	} cases[] = {
		{232, (uint64_t)-EINTR, true},
		{0, (uint64_t)-EINTR, true},
		{(uint64_t)-1, (uint64_t)-EINTR, false}, /* in no system call: a number in a register */
		{232, 0, false},
		{232, EINTR, false},
		{232, (uint64_t)-EAGAIN, false},
		{232, (uint64_t)-512, false}, /* ERESTARTSYS: the kernel sees to it */
		{232, (uint64_t)-516, false}, /* ERESTART_RESTARTBLOCK */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_regs regs = {.syscall = cases[i].call, .pc = 5}, before;

		regs.gpr[0] = cases[i].result;
		before = regs;
		assert_int_equal(mw_regs_restart(&regs, EINTR), cases[i].restarts);
		if (cases[i].restarts)
			before.gpr[0] = (uint64_t)-514;
		assert_memory_equal(&regs, &before, sizeof(regs));
	}
}

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
	(void)number;
	handled++;
}

/* Signals pass when they are handed on, and don't when they are not. */
static int take_signals(void *context)
{
	(void)context;
	signal(SIGUSR1, count_signal);
	for (int i = 0; i < 3; i++)
		raise(SIGUSR1);
	return handled;
}

static void signals_pass_as_told(void **state)
{
	pid_t pid = child_start(take_signals, NULL);
	siginfo_t info;
	int status;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_true(is_signal(child_next_stop(pid), SIGUSR1));
		FINE(mw_tracee_siginfo(pid, &info));
		assert_int_equal(info.si_signo, SIGUSR1);
		assert_int_equal(info.si_pid, pid);
		FINE(mw_tracee_resume(pid, i == 1 ? 0 : SIGUSR1));
	}
	/* Its end is announced with its status. */
	status = child_next_stop(pid);
	assert_true(is_event(status, PTRACE_EVENT_EXIT));
	FINE(mw_tracee_resume(pid, 0));
	assert_int_equal(child_end(pid), 2);
}

static void signal_masks(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	uint64_t mask = 0;

	(void)state;
	child_stop(pid);
	FINE(mw_tracee_set_sigmask(pid, (uint64_t)1 << (SIGUSR1 - 1) | (uint64_t)1 << (SIGRTMAX - 1)));
	FINE(mw_tracee_get_sigmask(pid, &mask));
	assert_true(mask == ((uint64_t)1 << (SIGUSR1 - 1) | (uint64_t)1 << (SIGRTMAX - 1)));
	kill(pid, SIGUSR1);
	FINE(mw_tracee_resume(pid, 0));
	usleep(10000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG | __WALL), 0);
	child_stop(pid);
	FINE(mw_tracee_set_sigmask(pid, 0));
	FINE(mw_tracee_resume(pid, 0));
	assert_true(is_signal(child_next_stop(pid), SIGUSR1));
	child_kill(pid);
}

/* Let go, it is nobody's; with the signal that it stopped for, it gets that. */
static void detaches(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct mw_error *err;
	int status;

	(void)state;
	child_stop(pid);
	FINE(mw_tracee_detach(pid, 0));
	err = mw_tracee_interrupt(pid);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	mw_error_destroy(err);
	FINE(mw_tracee_seize(pid));
	kill(pid, SIGTERM);
	assert_true(is_signal(child_next_stop(pid), SIGTERM));
	FINE(mw_tracee_detach(pid, SIGTERM));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* A stopped process is left stopped, and its SIGCONT is heard of. */
static void listens_in_group_stops(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	int status;

	(void)state;
	kill(pid, SIGSTOP);
	assert_true(is_signal(child_next_stop(pid), SIGSTOP));
	FINE(mw_tracee_resume(pid, SIGSTOP));
	status = child_next_stop(pid);
	assert_true(is_event(status, PTRACE_EVENT_STOP));
	assert_int_equal(WSTOPSIG(status), SIGSTOP);
	FINE(mw_tracee_listen(pid));
	usleep(10000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG | __WALL), 0);
	kill(pid, SIGCONT);
	status = child_next_stop(pid);
	assert_true(is_event(status, PTRACE_EVENT_STOP));
	assert_int_equal(WSTOPSIG(status), SIGTRAP);
	child_kill(pid);
}

static void tells_who_is_gone(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct mw_tracee_regs regs;
	unsigned long message;
	siginfo_t info;
	uint64_t mask;

	(void)state;
	child_stop(pid);
	child_kill(pid);
	struct mw_error *errors[] = {mw_tracee_seize(pid),
				     mw_tracee_interrupt(pid),
				     mw_tracee_resume(pid, 0),
				     mw_tracee_listen(pid),
				     mw_tracee_detach(pid, 0),
				     mw_tracee_get_regs(pid, &regs),
				     mw_tracee_siginfo(pid, &info),
				     mw_tracee_get_sigmask(pid, &mask),
				     mw_tracee_set_sigmask(pid, 0),
				     mw_tracee_event_message(pid, &message),
				     mw_tracee_mend_interrupted_call(pid)};
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		assert_non_null(errors[i]);
		assert_int_equal(mw_error_kind(errors[i]), MW_ERROR_GONE);
		assert_int_equal(mw_error_errno(errors[i]), ESRCH);
		mw_error_destroy(errors[i]);
	}
	assert_false(mw_tracee_trap_queued(pid));
}

static void refuses_a_second_tracer(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct mw_error *err = mw_tracee_seize(pid);

	(void)state;
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DENIED);
	mw_error_destroy(err);
	child_kill(pid);
}

/* Signals that it holds back, as if queued by the kernel (which lets only itself say so of itself). */
static int queue_for_itself(void *context)
{
	const siginfo_t *info = context;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (info->si_signo && syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), info->si_signo, info))
		return 1;
	return child_sleep(NULL);
}

static void knows_of_queued_traps(void **state)
{
	static const struct {
		int number, code;
		bool trap;
	} cases[] = {
		{0, 0, false},
		{SIGTRAP, SI_KERNEL, true},    /* int3 */
		{SIGTRAP, SI_USER, false},     /* somebody's kill() */
		{SIGTRAP, TRAP_HWBKPT, false}, /* a debugger's register */
		{SIGSEGV, SI_KERNEL, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		siginfo_t info = {.si_signo = cases[i].number, .si_code = cases[i].code};
		pid_t pid = child_start(queue_for_itself, &info);

		child_await_call(pid, SYS_pause);
		child_stop(pid);
		if (mw_tracee_trap_queued(pid) != cases[i].trap)
			fail_msg("case %zu", i);
		/* Looking does not take it away. */
		assert_int_equal(mw_tracee_trap_queued(pid), cases[i].trap);
		child_kill(pid);
	}
}

UNIT_GROUP(tracee)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_round_trip),
		cmocka_unit_test(tells_all_words),
		cmocka_unit_test(registers_have_their_places),
		cmocka_unit_test(restarts_only_interrupted_calls),
		cmocka_unit_test(signals_pass_as_told),
		cmocka_unit_test(signal_masks),
		cmocka_unit_test(detaches),
		cmocka_unit_test(listens_in_group_stops),
		cmocka_unit_test(tells_who_is_gone),
		cmocka_unit_test(refuses_a_second_tracer),
		cmocka_unit_test(knows_of_queued_traps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
