// SPDX-License-Identifier: MIT
/* filter_test.c: what a seccomp filter says, against the kernel's own doing. */
#include "tracee/filter.h"
#include "unit.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ARGUMENT(i)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + (i)*8)
#define EQUAL(k, t)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, t, 0)
#define ANSWER(k)    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##k)
#define ALL_KNOWN    0x3f
#define PROGRAMS     400
#define LONGEST      40
#define KERNEL_KILLS (MW_FILTER_KILL_PROCESS | MW_FILTER_KILL_THREAD)

/* A call that does nothing, with these arguments. */
static const struct mw_filter_call harmless = {
	.number = SYS_getppid, .arguments = {1, 2, UINT64_C(0x123456789), UINT64_MAX, 0, 77}, .known = ALL_KNOWN};

struct program {
	struct sock_filter code[LONGEST + 3];
	unsigned short count;
};

static void on_sys(int signal)
{
	(void)signal;
	_exit(3);
}

/* Install the programs and make the call. */
static void make_call(const struct program *programs, size_t count)
{
	const uint64_t *arguments = harmless.arguments;
	long result;

	signal(SIGSYS, on_sys);
	for (size_t i = 0; i < count; i++) {
		struct sock_fprog fprog = {.len = programs[i].count, .filter = (struct sock_filter *)programs[i].code};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog))
			_exit(4);
	}
	errno = 0;
	result = syscall(harmless.number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
			 arguments[5]);
	if (result == getpid())
		_exit(5);
	/* An error of 0 is a success that has done nothing. */
	_exit(result > 0 ? 0 : errno == ENOSYS ? 2 : 1);
}

/* What the kernel does, as a set; 0 where it does not take the programs. */
static unsigned ask_kernel(const struct program *programs, size_t count)
{
	static const unsigned meanings[] = {MW_FILTER_PASSES, MW_FILTER_ERRNO,
					    MW_FILTER_TRACE | MW_FILTER_NOTIFY | MW_FILTER_ERRNO, MW_FILTER_TRAP, 0};
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		make_call(programs, count);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSYS);
		return KERNEL_KILLS;
	}
	assert_true(WEXITSTATUS(status) < (int)COUNT(meanings));
	return meanings[WEXITSTATUS(status)];
}

static unsigned ask(const struct program *programs, size_t count, const struct mw_filter_call *call)
{
	unsigned actions = MW_FILTER_ALLOW;

	for (size_t i = 0; i < count; i++)
		actions = mw_filter_both(actions, mw_filter_actions(programs[i].code, programs[i].count, call));
	return actions;
}

/* All but the one call is allowed. */
static void begin(struct program *program)
{
	const struct sock_filter head[] = {LOAD(nr), EQUAL(SYS_getppid, 1), ANSWER(ALLOW)};

	memcpy(program->code, head, sizeof(head));
	program->count = COUNT(head);
}

static uint32_t any_of(const uint32_t *items, size_t count)
{
	return items[(size_t)rand() % count];
}

static struct sock_filter any_load(void)
{
	static const uint32_t offsets[] = {0, 4, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60};
	static const uint32_t others[] = {
		BPF_LD | BPF_IMM,         BPF_LDX | BPF_IMM,         BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM,
		BPF_LD | BPF_W | BPF_LEN, BPF_LDX | BPF_W | BPF_LEN, BPF_ST,           BPF_STX,
		BPF_MISC | BPF_TAX,       BPF_MISC | BPF_TXA};

	if (rand() % 2)
		return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, any_of(offsets, COUNT(offsets)));
	return (struct sock_filter)BPF_STMT((uint16_t)any_of(others, COUNT(others)), (uint32_t)rand() % 3);
}

static struct sock_filter any_operation(void)
{
	static const uint32_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
					      BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
	uint32_t operation = any_of(operations, COUNT(operations));

	return (struct sock_filter)BPF_STMT(
		(uint16_t)(BPF_ALU | operation | (operation != BPF_NEG && rand() % 2 ? BPF_X : BPF_K)),
		1 + (uint32_t)rand() % 30);
}

static struct sock_filter any_jump(size_t room)
{
	static const uint32_t operations[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	static const uint32_t values[] = {0, 1, 2, 77, UINT32_MAX, 0x23456789, SYS_getppid, 64};

	if (rand() % 5 == 0)
		return (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)((size_t)rand() % room));
	return (struct sock_filter)BPF_JUMP(
		(uint16_t)(BPF_JMP | any_of(operations, COUNT(operations)) | (rand() % 3 ? BPF_K : BPF_X)),
		any_of(values, COUNT(values)), (uint8_t)((size_t)rand() % room), (uint8_t)((size_t)rand() % room));
}

static struct sock_filter any_answer(bool sensible)
{
	static const uint32_t answers[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
					   SECCOMP_RET_ERRNO | 7,    SECCOMP_RET_TRACE,       SECCOMP_RET_LOG,
					   SECCOMP_RET_ALLOW,        SECCOMP_RET_ERRNO | 1,   SECCOMP_RET_USER_NOTIF};

	if (!sensible && rand() % 4 == 0)
		return (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	if (!sensible && rand() % 8 == 0)
		return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x12340000);
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, any_of(answers, COUNT(answers)));
}

static void any_program(struct program *program, bool sensible)
{
	size_t length = 2 + (size_t)rand() % (LONGEST - 2);

	begin(program);
	for (size_t i = 0; i + 1 < length; i++) {
		struct sock_filter *at = &program->code[program->count++];

		switch (rand() % 8) {
		case 0:
		case 1:
		case 2:
			*at = any_load();
			break;
		case 3:
		case 4:
			*at = any_operation();
			break;
		case 7:
			*at = any_answer(sensible);
			break;
		default:
			*at = any_jump(length - 1 - i);
		}
	}
	program->code[program->count++] = any_answer(sensible);
}

static bool is_one(unsigned set)
{
	return set && (set & (set - 1)) == 0;
}

/* Exactly what the kernel does where all is known, and among what it may do where it is not. */
static void same_as_kernel(void **state)
{
	struct mw_filter_call unknown = harmless;
	unsigned taken = 0, seen = 0;

	(void)state;
	srand(1);
	unknown.known = 0x15;
	for (unsigned i = 0; i < PROGRAMS; i++) {
		struct program programs[2];
		size_t count = 1 + i % 2;
		unsigned does, says;

		for (size_t j = 0; j < count; j++)
			any_program(&programs[j], count > 1);
		does = ask_kernel(programs, count);
		says = ask(programs, count, &harmless);
		if (!does)
			continue; /* not even taken: there may be words read that were never written */
		assert_true(is_one(says));
		taken++;
		seen |= says;
		if (!(says & does))
			fail_msg("program %u: the kernel does %x, and not %x", i, does, says);
		assert_true(ask(programs, count, &unknown) & does);
		assert_int_equal(ask(programs, count, &unknown) & says, says);
	}
	assert_true(taken > PROGRAMS / 4);
	assert_int_equal(seen, 0xff);
}

static unsigned say(const struct sock_filter *code, size_t count)
{
	return mw_filter_actions(code, count, &harmless);
}

#define SAY(...) say((const struct sock_filter[]){__VA_ARGS__}, COUNT(((const struct sock_filter[]){__VA_ARGS__})))

/* What no kernel has taken. */
static void hostile(void **state)
{
	struct sock_filter *code = calloc(MW_FILTER_MAX + 1, sizeof(*code));

	(void)state;
	assert_non_null(code);
	assert_int_equal(say(code, 0), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(LOAD(nr)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX - 1), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_JMP | BPF_JA, 1), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(EQUAL(0, 255), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_JUMP(BPF_JMP | 0xf0 | BPF_K, 0, 0, 0), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_LD | BPF_MEM, 16), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_STX, UINT32_MAX), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	assert_int_equal(SAY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ANSWER(ALLOW)), MW_FILTER_KILL_THREAD);
	assert_int_equal(SAY(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 99), ANSWER(ALLOW)), MW_FILTER_ALLOW);
	assert_int_equal(SAY(BPF_STMT(0xffff, 0), ANSWER(ALLOW)), MW_FILTER_KILL_PROCESS);
	for (size_t i = 0; i < MW_FILTER_MAX; i++)
		code[i] = (struct sock_filter)LOAD(nr);
	code[MW_FILTER_MAX] = (struct sock_filter)ANSWER(ALLOW);
	assert_int_equal(say(code, MW_FILTER_MAX), MW_FILTER_KILL_PROCESS);
	assert_int_equal(say(code, MW_FILTER_MAX + 1), MW_FILTER_KILL_PROCESS);
	assert_int_equal(say(code + 1, MW_FILTER_MAX), MW_FILTER_ALLOW);
	/* Ways that fork at each instruction are gone once all the same. */
	for (size_t i = 0; i + 1 < MW_FILTER_MAX; i++)
		code[i] = i % 2 ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, i + 2 < MW_FILTER_MAX)
				: (struct sock_filter)LOAD(instruction_pointer);
	code[MW_FILTER_MAX - 2] = code[MW_FILTER_MAX - 1] = (struct sock_filter)ANSWER(ALLOW);
	assert_int_equal(say(code, MW_FILTER_MAX), MW_FILTER_ALLOW);
	for (unsigned i = 0; i < 10000; i++) {
		for (size_t j = 0; j < 64; j++)
			code[j] = (struct sock_filter){.code = (uint16_t)(rand() % 256),
						       .jt = (uint8_t)(rand() % 8),
						       .jf = (uint8_t)(rand() % 8),
						       .k = (uint32_t)rand() % 80};
		assert_true(say(code, 64) != 0);
	}
	free(code);
}

/* What is not known may be anything; what all ways agree on is known again. */
static void unknown(void **state)
{
	const struct sock_filter third[] = {ARGUMENT(2), EQUAL(7, 1), ANSWER(KILL_PROCESS), ANSWER(ALLOW)};
	const struct sock_filter where[] = {LOAD(instruction_pointer), EQUAL(7, 1), ANSWER(TRAP), ANSWER(LOG)};
	const struct sock_filter joins[] = {
		ARGUMENT(2),
		EQUAL(7, 1),
		BPF_STMT(BPF_LD | BPF_IMM, 5),
		BPF_STMT(BPF_LD | BPF_IMM, 5),
		EQUAL(5, 1),
		ANSWER(KILL_PROCESS),
		ANSWER(ALLOW),
	};
	const struct sock_filter parts[] = {ARGUMENT(2), EQUAL(7, 1),  BPF_STMT(BPF_LD | BPF_IMM, 5),
					    EQUAL(5, 1), ANSWER(TRAP), ANSWER(ALLOW)};
	const struct sock_filter said[] = {ARGUMENT(2), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct mw_filter_call call = {.number = SYS_getppid, .arguments = {0, 0, 7}, .known = 1 << 2};

	(void)state;
	assert_int_equal(mw_filter_actions(third, COUNT(third), &call), MW_FILTER_ALLOW);
	assert_int_equal(mw_filter_actions(where, COUNT(where), &call), MW_FILTER_TRAP | MW_FILTER_LOG);
	call.known = 0;
	assert_int_equal(mw_filter_actions(third, COUNT(third), &call), MW_FILTER_ALLOW | MW_FILTER_KILL_PROCESS);
	assert_int_equal(mw_filter_actions(joins, COUNT(joins), &call), MW_FILTER_ALLOW);
	assert_int_equal(mw_filter_actions(parts, COUNT(parts), &call), MW_FILTER_ALLOW | MW_FILTER_TRAP);
	assert_int_equal(mw_filter_actions(said, COUNT(said), &call), 0xff);
}

static void together(void **state)
{
	(void)state;
	assert_int_equal(mw_filter_both(MW_FILTER_ALLOW, MW_FILTER_ALLOW), MW_FILTER_ALLOW);
	assert_int_equal(mw_filter_both(MW_FILTER_ALLOW, MW_FILTER_KILL_PROCESS), MW_FILTER_KILL_PROCESS);
	assert_int_equal(mw_filter_both(MW_FILTER_ERRNO, MW_FILTER_NOTIFY), MW_FILTER_ERRNO);
	assert_int_equal(mw_filter_both(MW_FILTER_ERRNO | MW_FILTER_ALLOW, MW_FILTER_NOTIFY),
			 MW_FILTER_ERRNO | MW_FILTER_NOTIFY);
	assert_int_equal(mw_filter_both(MW_FILTER_TRAP | MW_FILTER_ALLOW, MW_FILTER_ERRNO),
			 MW_FILTER_TRAP | MW_FILTER_ERRNO);
}

UNIT_GROUP(filter)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_kernel),
		cmocka_unit_test(hostile),
		cmocka_unit_test(unknown),
		cmocka_unit_test(together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
