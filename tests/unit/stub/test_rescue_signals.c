// SPDX-License-Identifier: MIT
/* test_rescue_signals.c: the rescue, and what the program does with its signals meanwhile: masks, actions, handlers. */
#include "rescue_rig.h"

#include "arch/x86_64/x86_64.h"
#include "unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))
#define BROKEN   77 /* what a function of the program's gives that is not carried out for it */
#define ROUNDS   300
#define RESTORER UINT64_C(0x04000000)

/* mov $BROKEN, eax; ret */
static const uint8_t answers[] = {0xb8, BROKEN, 0, 0, 0, 0xc3};

static uint64_t kernel_mask(void)
{
	uint64_t mask = 0;

	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, MASK_SIZE), 0);
	return mask;
}

typedef int set_mask(int how, const uint64_t *set, uint64_t *old);

static set_mask *mask_at(size_t at)
{
	union {
		void *data;
		set_mask *code;
	} cast = {rig_function_at(at)};

	return cast.code;
}

static const uint64_t one = UINT64_C(1) << (SIGUSR1 - 1);

static void test_mask(void **state)
{
	const uint64_t both = one | TRAP_BIT, before = kernel_mask();
	set_mask *mask = mask_at(STEP);
	uint64_t old = 0;

	(void)state;
	rig_write_code(STEP, answers, sizeof(answers));
	rig_plant(STEP, false, MW_RESCUE_MASK);
	assert_int_equal(mask(SIG_BLOCK, &both, &old), 0);
	assert_int_equal(kernel_mask(), before | one);
	assert_int_equal(old, before);
	assert_int_equal(mask(SIG_SETMASK, &both, NULL), 0);
	assert_int_equal(kernel_mask(), one);
	/* These need no help. */
	assert_int_equal(mask(SIG_BLOCK, &one, &old), BROKEN);
	assert_int_equal(mask(SIG_UNBLOCK, &both, &old), BROKEN);
	assert_int_equal(mask(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(mask(99, &both, &old), BROKEN);
	/* Nobody may be asked which thread it is. */
	assert_int_equal(rig.rescue->blocked_count, 0);
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_SIZE), 0);
}

/* Threads that believe SIGTRAP to be blocked are shown that, and are known while they do. */
static void test_mask_shown(void **state)
{
	const uint64_t both = one | TRAP_BIT, trap = TRAP_BIT, before = kernel_mask();
	set_mask *mask = mask_at(STEP);
	uint64_t old = 0;

	(void)state;
	rig_write_code(STEP, answers, sizeof(answers));
	rig_plant(STEP, false, MW_RESCUE_MASK);
	rig.rescue->may_call = 1;
	rig.rescue->blocked_count = 2;
	rig.rescue->blocked[0] = 1;
	rig.rescue->blocked[1] = (uint32_t)gettid();
	assert_int_equal(mask(SIG_BLOCK, NULL, &old), 0);
	assert_int_equal(old, before | TRAP_BIT);
	assert_int_equal(mask(SIG_BLOCK, &one, &old), 0);
	assert_int_equal(old, before | TRAP_BIT);
	assert_int_equal(kernel_mask(), before | one);
	assert_int_equal(rig.rescue->blocked[1], gettid());
	assert_int_equal(mask(SIG_UNBLOCK, &trap, &old), 0);
	assert_int_equal(old, before | both);
	assert_int_equal(rig.rescue->blocked[1], 0);
	assert_int_equal(mask(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(mask(SIG_BLOCK, &trap, NULL), 0);
	assert_int_equal(rig.rescue->blocked[1], gettid());
	assert_int_equal(mask(SIG_SETMASK, &before, &old), 0);
	assert_int_equal(old, before | both);
	assert_int_equal(rig.rescue->blocked[1], 0);
	assert_int_equal(rig.rescue->blocked[0], 1);
	/* Another one still believes it: that breakpoint stays. */
	assert_int_equal(rig.code[STEP], 0xcc);
}

/* Somebody believes it, but children would die of that breakpoint. */
static void test_mask_gives_way_to_children(void **state)
{
	uint64_t old = 0;

	(void)state;
	rig_write_code(STEP, answers, sizeof(answers));
	rig_plant(STEP, false, MW_RESCUE_MASK);
	rig.rescue->may_call = rig.rescue->clears = 1;
	rig.rescue->blocked_count = 1;
	rig.rescue->blocked[0] = 1;
	/* Not while memwatch has left a call half done. */
	rig.rescue->masking = 1;
	assert_int_equal(mask_at(STEP)(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(rig.code[STEP], 0xcc);
	rig.rescue->masking = rig.rescue->healing = 0;
	assert_int_equal(mask_at(STEP)(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(rig.code[STEP], answers[0]);
}

/* Nobody is left who believes it. */
static void test_mask_heals(void **state)
{
	uint64_t old = 0;

	(void)state;
	rig_write_code(STEP, answers, sizeof(answers));
	rig_plant(STEP, false, MW_RESCUE_MASK);
	rig.rescue->may_call = 1;
	rig.rescue->blocked_count = 1;
	assert_int_equal(mask_at(STEP)(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(rig.code[STEP], answers[0]);
}

/* memwatch had begun with it: the mask was another one then. */
static void test_mask_begun(void **state)
{
	const uint64_t trap = TRAP_BIT, before = kernel_mask(), was = before | one | TRAP_BIT;
	uint64_t old = 0;

	(void)state;
	rig_write_code(STEP, answers, sizeof(answers));
	rig_plant(STEP, false, MW_RESCUE_MASK);
	rig.rescue->may_call = rig.rescue->masking = 1;
	rig_random_regs(&regs_in);
	regs_in.gpr[5] = SIG_UNBLOCK;
	regs_in.gpr[4] = (uint64_t)(uintptr_t)&trap;
	regs_in.gpr[1] = (uint64_t)(uintptr_t)&old;
	regs_in.gpr[2] = was;
	regs_in.gpr[11] = MW_RESCUE_BEGUN;
	regs_call(rig.code + STEP);
	assert_int_equal(regs_out.gpr[0], 0);
	assert_int_equal(old, was);
	assert_int_equal(kernel_mask(), before | one);
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_SIZE), 0);
}

static _Atomic unsigned arrived;
static siginfo_t last;

static void on_trap(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (number == SIGTRAP)
		arrived++;
	last = *info;
}

/* mov $8, r10d; mov $13, eax; syscall; ret */
static const uint8_t calls[] = {0x41, 0xba, 8, 0, 0, 0, 0xb8, 13, 0, 0, 0, 0x0f, 0x05, 0xc3};
#define CALL_AT 11

typedef int64_t set_action(uint64_t signal, const struct mw_rescue_action *set, struct mw_rescue_action *old);

static set_action *action_at(size_t at)
{
	union {
		void *data;
		set_action *code;
	} cast = {rig_function_at(at)};

	return cast.code;
}

/* By a breakpoint, or by a jump. */
static set_action *redirected(bool jump)
{
	mw_addr insn = (mw_addr)(uintptr_t)(rig.code + STEP + CALL_AT),
		act = (mw_addr)(uintptr_t)rig.base + rig_header()->act;
	uint8_t bytes[MW_ACTION_JUMP], trampoline[MW_ACTION_TRAMPOLINE];

	rig_write_code(STEP, calls, sizeof(calls));
	if (jump) {
		assert_true(mw_arch_x86_64.action_jump(calls + CALL_AT - MW_ACTION_JUMP, insn,
						       (mw_addr)(uintptr_t)(rig.code + SLOTS), act, bytes, trampoline));
		rig_write_code(SLOTS, trampoline, sizeof(trampoline));
		rig_write_code(STEP + CALL_AT - MW_ACTION_JUMP, bytes, sizeof(bytes));
	} else {
		struct mw_rescue_breakpoint *entry = &rig.rescue->breakpoints[rig.rescue->count];
		uint8_t breakpoint = 0xcc;

		mw_arch_x86_64.plan(rig.code + STEP + CALL_AT, 2, insn, &entry->plan);
		assert_int_equal(entry->plan.length, 2);
		entry->kind = MW_RESCUE_ACTION;
		rig.rescue->index[mw_rescue_place(insn, MW_RESCUE_INDEX)] = ++rig.rescue->count;
		rig_write_code(STEP + CALL_AT, &breakpoint, 1);
	}
	return action_at(STEP);
}

static void kernel_action(int signal, struct mw_rescue_action *old)
{
	assert_int_equal(syscall(SYS_rt_sigaction, signal, NULL, old, MASK_SIZE), 0);
}

static const bool ways[] = {false, true};

static void test_own_action(void **state)
{
	const uint64_t two = UINT64_C(1) << (SIGUSR2 - 1);

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct mw_rescue_action set = {.handler = (uint64_t)(uintptr_t)on_trap,
					       .flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | RESTORER,
					       .restorer = 77,
					       .mask = two | TRAP_BIT},
					old, now;
		set_action *call;

		assert_int_equal(rig_teardown(state) | rig_setup(state), 0);
		rig.rescue->may_call = 1;
		call = redirected(ways[i]);
		memset(&old, 0xaa, sizeof(old));
		assert_int_equal(call(SIGTRAP, &set, &old), 0);
		assert_int_equal(old.handler, 0);
		assert_int_equal(old.mask, 0);
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_memory_equal(&old, &set, sizeof(set));
		/* The kernel's is still ours, on the stack that the program wants, under its mask. */
		rig_action(NULL, &now);
		assert_int_equal(now.handler, (uint64_t)(uintptr_t)rig.base + rig_header()->handler);
		assert_int_equal(now.flags & (SA_ONSTACK | SA_RESTART), SA_ONSTACK);
		assert_int_equal(now.mask, two);
		set.handler = 0;
		assert_int_equal(call(SIGTRAP, &set, NULL), 0);
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_int_equal(old.handler, 0);
		/* While the kernel does not lead it here yet, it is between the two. */
		rig.rescue->led = 0;
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_int_equal(old.handler, now.handler);
		assert_int_equal(rig.rescue->hits, 0);
	}
}

static void assert_shown(set_action *call, int signal, const struct mw_rescue_action *expected, bool stripped)
{
	struct mw_rescue_action now, shown;

	assert_int_equal(call((uint64_t)signal, NULL, &shown), 0);
	assert_memory_equal(&shown, expected, sizeof(shown));
	kernel_action(signal, &now);
	assert_int_equal(now.handler, expected->handler);
	assert_int_equal(now.flags, expected->flags);
	assert_int_equal(now.mask, stripped ? expected->mask & ~TRAP_BIT : expected->mask);
	assert_int_equal(rig.rescue->marks.stripped[signal - 1] != 0, stripped);
	assert_int_equal(rig.rescue->marks.coming[signal - 1], 0);
}

static void other_actions(set_action *call)
{
	const uint64_t most = UINT64_MAX & ~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1));
	struct mw_rescue_action all = {.handler = 0x1000, .flags = SA_RESTART | RESTORER, .restorer = 7, .mask = most},
				none = {.handler = 0x1000, .flags = RESTORER, .restorer = 7, .mask = one}, old, first;

	kernel_action(SIGUSR2, &first);
	assert_int_equal(call(SIGUSR2, &all, &old), 0);
	assert_memory_equal(&old, &first, sizeof(old));
	assert_shown(call, SIGUSR2, &all, true);
	all.handler = 0x2000;
	assert_int_equal(call(SIGUSR2, &all, &old), 0);
	assert_int_equal(old.handler, 0x1000);
	assert_int_equal(old.mask, most);
	assert_shown(call, SIGUSR2, &all, true);
	assert_int_equal(call(SIGUSR2, &none, &old), 0);
	assert_memory_equal(&old, &all, sizeof(old));
	assert_shown(call, SIGUSR2, &none, false);
	/* One that another has set past us is none of ours. */
	assert_int_equal(call(SIGUSR2, &all, NULL), 0);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR2, &none, NULL, MASK_SIZE), 0);
	assert_int_equal(call(SIGUSR2, &first, &old), 0);
	assert_memory_equal(&old, &none, sizeof(old));
	/* What fails fails as ever. */
	assert_int_equal(call(SIGKILL, &all, NULL), -EINVAL);
	assert_int_equal(call(0, &all, NULL), -EINVAL);
	assert_int_equal(call(65, &all, NULL), -EINVAL);
	assert_int_equal(call(SIGUSR2, NULL, NULL), 0);
	for (size_t i = 0; i < MW_RESCUE_SIGNALS; i++)
		assert_int_equal(rig.rescue->marks.stripped[i] | rig.rescue->marks.coming[i], 0);
}

static void test_other_actions(void **state)
{
	for (size_t i = 0; i < 2 * COUNT(ways); i++) {
		assert_int_equal(rig_teardown(state) | rig_setup(state), 0);
		rig.rescue->may_call = i % 2;
		other_actions(redirected(ways[i / 2]));
	}
}

/* It has actions of its own: what the process has is known as before. */
static void test_child_in_the_memory(void **state)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct mw_rescue_action all = {.handler = 0x1000, .flags = RESTORER, .mask = one | TRAP_BIT}, old;
		struct mw_rescue_marks before;
		set_action *call;

		assert_int_equal(rig_teardown(state) | rig_setup(state), 0);
		rig.rescue->may_call = 1;
		call = redirected(ways[i]);
		assert_int_equal(call(SIGUSR2, &all, NULL), 0);
		before = rig.rescue->marks;
		rig.rescue->pid++;
		assert_int_equal(call(SIGUSR2, NULL, &old), 0);
		assert_memory_equal(&old, &all, sizeof(old));
		assert_int_equal(call(SIGUSR2, &all, &old), 0);
		assert_memory_equal(&old, &all, sizeof(old));
		kernel_action(SIGUSR2, &old);
		assert_int_equal(old.mask, one | TRAP_BIT);
		assert_int_equal(call(SIGTRAP, &all, &old), 0);
		assert_int_equal(old.handler, 0);
		assert_int_equal(rig.rescue->own[rig.rescue->own_at % 2].handler, 0);
		assert_memory_equal(&before, &rig.rescue->marks, sizeof(before));
		rig.rescue->pid--;
		old.mask = 0;
		assert_int_equal(call(SIGUSR2, &old, NULL), 0);
	}
}

/* A jump leaves every register as the system call does. */
static void test_registers_of_action(void **state)
{
	struct mw_rescue_action old;

	(void)state;
	redirected(true);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct regs expected;

		rig_random_regs(&regs_in);
		regs_in.gpr[5] = SIGUSR2;
		regs_in.gpr[4] = 0;
		regs_in.gpr[1] = (uint64_t)(uintptr_t)&old;
		regs_call(rig.code + STEP);
		expected = regs_in;
		expected.gpr[0] = 0;
		expected.gpr[2] = regs_out.gpr[2];
		expected.gpr[7] = regs_out.gpr[7];
		expected.gpr[10] = 8;
		expected.gpr[11] = regs_out.gpr[11];
		for (size_t i = 0; i < 16; i++)
			assert_int_equal(regs_out.gpr[i], expected.gpr[i]);
		assert_int_equal(regs_out.flags, expected.flags);
		assert_memory_equal(regs_out.xmm, expected.xmm, sizeof(expected.xmm));
	}
}

/* With the last breakpoint out, handlers block what they were to block. */
static void test_heals_actions(void **state)
{
	struct mw_rescue_action all = {.handler = 0x1000, .flags = RESTORER, .mask = one | TRAP_BIT}, now;
	set_action *call;

	(void)state;
	rig.rescue->may_call = 1;
	call = redirected(true);
	rig_plant(2 * STEP, false, MW_RESCUE_PLAIN);
	assert_int_equal(call(SIGUSR2, &all, NULL), 0);
	kernel_action(SIGUSR2, &now);
	assert_int_equal(now.mask, one);
	assert_int_equal(rig_sum_at(2 * STEP)(3, 4), 7);
	kernel_action(SIGUSR2, &now);
	assert_int_equal(now.mask, one | TRAP_BIT);
	assert_int_equal(rig.rescue->marks.stripped[SIGUSR2 - 1], 0);
	now.handler = now.mask = 0;
	assert_int_equal(call(SIGUSR2, &now, NULL), 0);
}

/* The program's own action, by its C library. */
static void own_action(int flags)
{
	struct sigaction own = {.sa_flags = SA_SIGINFO | flags};

	own.sa_sigaction = on_trap;
	assert_int_equal(sigaction(SIGTRAP, &own, NULL), 0);
	rig_lead_here();
	arrived = 0;
}

static void trap_in_one_byte(void)
{
	__asm__ volatile("int3");
}

static void trap_in_two_bytes(void)
{
	__asm__ volatile(".byte 0xcd, 3");
}

static void raise_it(void)
{
	raise(SIGTRAP);
}

static void test_own_handler(void **state)
{
	(void)state;
	rig_plant_all();
	own_action(0);
	for (unsigned i = 0; i < 10; i++) {
		raise_it();
		assert_int_equal(arrived, 3 * i + 1);
		assert_int_equal(last.si_code, SI_TKILL);
		assert_int_equal(last.si_pid, getpid());
		trap_in_one_byte();
		assert_int_equal(arrived, 3 * i + 2);
		assert_int_equal(last.si_code, SI_KERNEL);
		trap_in_two_bytes();
		assert_int_equal(arrived, 3 * i + 3);
		assert_int_equal(last.si_code, SI_KERNEL);
		assert_int_equal(rig_sum_at(0)(i, 7), i + 7);
	}
	assert_int_equal(arrived, 30);
}

static void test_handler_of_one_time(void **state)
{
	(void)state;
	own_action((int)SA_RESETHAND);
	raise_it();
	assert_int_equal(arrived, 1);
	assert_int_equal(rig.rescue->own[rig.rescue->own_at % 2].handler, 0);
	rig_assert_child(raise_it, SIGTRAP);
}

static void test_ignored(void **state)
{
	(void)state;
	signal(SIGTRAP, SIG_IGN);
	rig_lead_here();
	raise_it();
	assert_int_equal(rig.rescue->own[rig.rescue->own_at % 2].handler, (uint64_t)(uintptr_t)SIG_IGN);
	/* The kernel lets nobody ignore these. */
	rig_assert_child(trap_in_one_byte, SIGTRAP);
	rig_assert_child(trap_in_two_bytes, SIGTRAP);
	rig_assert_child(raise_it, 0);
}

static void test_default_action(void **state)
{
	(void)state;
	rig_plant_all();
	rig_assert_child(raise_it, SIGTRAP);
	rig_assert_child(trap_in_one_byte, SIGTRAP);
	rig_assert_child(trap_in_two_bytes, SIGTRAP);
}

static void queue(int si_code)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = si_code;
	assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, &info), 0);
}

static void test_served_already(void **state)
{
	(void)state;
	own_action(0);
	queue(SI_KERNEL);
	assert_int_equal(arrived, 0);
	queue(SI_QUEUE);
	assert_int_equal(arrived, 1);
	assert_int_equal(last.si_code, SI_QUEUE);
}

/* One that is to come to its breakpoint again, behind a gap that a linker has filled. */
static void test_served_behind_a_gap(void **state)
{
	const uint8_t filled = 0xcc;

	(void)state;
	own_action(0);
	rig_plant_all();
	rig_write_code(STEP - 1, &filled, 1);
	assert_int_equal(rig_sum_at(STEP - 1)(20, 22), 42);
	assert_int_equal(arrived, 0);
	assert_int_equal(rig.rescue->hits, 1);
	/* No breakpoint of ours stands there. */
	rig_write_code(CODE_SIZE / 2, &filled, 1);
	rig_write_code(CODE_SIZE / 2 + 1, rig_functions[0].bytes, sizeof(rig_functions[0].bytes));
	assert_int_equal(rig_sum_at(CODE_SIZE / 2)(20, 22), 42);
	assert_int_equal(arrived, 1);
}

/* One that goes on in a copy that a page begins with, or that has a breakpoint's byte before it. */
static void test_served_in_a_copy(void **state)
{
	const uint8_t filled = 0xcc;
	size_t at = rig_function_count;

	(void)state;
	own_action(0);
	while (at-- > 0 && strcmp(rig_functions[at].name, "in a slot") != 0)
		continue;
	rig_plant(at * STEP, true, MW_RESCUE_PLAIN);
	rig_write_code(SLOTS - 1, &filled, 1);
	assert_int_equal(rig_sum_at(SLOTS - 1)(20, 22), 42);
	rig.rescue->breakpoints[0].slot = (uint64_t)(uintptr_t)(rig.code + MW_RESCUE_PAGE);
	rig_write_code(MW_RESCUE_PAGE, rig_functions[at].bytes, sizeof(rig_functions[at].bytes));
	rig_write_code(MW_RESCUE_PAGE - 1, &filled, 1);
	assert_int_equal(rig_sum_at(MW_RESCUE_PAGE - 1)(20, 22), 42);
	assert_int_equal(arrived, 0);
	assert_int_equal(rig.rescue->hits, 0);
}

/* One that goes on behind its instruction, whose last byte is that of a breakpoint. */
static void test_served_behind_the_instruction(void **state)
{
	/* lea rax, [rdi + rsi - 52]; lea rax, [rdi + rsi]; ret */
	const uint8_t code[] = {0x48, 0x8d, 0x44, 0x37, 0xcc, 0x48, 0x8d, 0x04, 0x37, 0xc3};

	(void)state;
	own_action(0);
	rig_write_code(MW_RESCUE_PAGE + STEP, code, sizeof(code));
	rig_plant(MW_RESCUE_PAGE + STEP, false, MW_RESCUE_PLAIN);
	assert_int_equal(rig_sum_at(MW_RESCUE_PAGE + STEP + 4)(20, 22), 42);
	assert_int_equal(arrived, 0);
}

/* rt_tgsigqueueinfo(pid, tid, SIGTRAP, info), whose return address is `at`: the stack pointer is the caller's. */
static void queue_at(size_t at, siginfo_t *info, uint64_t *sp)
{
	const uint8_t code[] = {0x0f, 0x05, 0xc3};
	register siginfo_t *fourth __asm__("r10");
	uint64_t result = SYS_rt_tgsigqueueinfo, pid = (uint64_t)getpid(), tid = (uint64_t)gettid();

	rig_write_code(at - 2, code, sizeof(code));
	*sp = 0;
	fourth = info;
	__asm__ volatile("lea -8(%%rsp), %%rcx; mov %%rcx, %[sp];"
			 "call *%[code]"
			 : "+a"(result), [sp] "+m"(*sp)
			 : "D"(pid), "S"(tid), "d"((uint64_t)SIGTRAP), "r"(fourth), [code] "r"(rig.code + at - 2)
			 : "rcx", "r11", "memory");
	assert_int_equal(result, 0);
}

/* One that goes on where nothing but memwatch's mark tells that it was served, and one whose mark is for elsewhere. */
static void test_served_and_marked(void **state)
{
	siginfo_t info;
	uint64_t sp, mark;

	(void)state;
	own_action(0);
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = SI_KERNEL;
	info.si_errno = MW_RESCUE_SERVED;
	queue_at(MW_RESCUE_PAGE, &info, &sp);
	assert_int_equal(arrived, 1);
	mark = mw_rescue_served((uint64_t)(uintptr_t)(rig.code + MW_RESCUE_PAGE), sp);
	info.si_pid = (pid_t)(uint32_t)mark;
	info.si_uid = (uid_t)(mark >> 32);
	queue_at(MW_RESCUE_PAGE, &info, &sp);
	assert_int_equal(arrived, 1);
}

UNIT_GROUP(rescue_signals)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mask, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_mask_shown, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_mask_heals, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_mask_gives_way_to_children, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_mask_begun, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_own_action, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_other_actions, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_child_in_the_memory, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_registers_of_action, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_heals_actions, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_own_handler, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_handler_of_one_time, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_ignored, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_default_action, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_served_already, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_served_behind_a_gap, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_served_in_a_copy, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_served_behind_the_instruction, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_served_and_marked, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("stub_rescue_signals", tests, NULL, NULL);
}
