// SPDX-License-Identifier: MIT
/*
 * The rescue's image in this process, for breakpoints in small functions made here: as if a memwatch had put them in
 * and been killed (memwatch/rescue.h).
 */
#include "arch/x86_64/x86_64.h"
#include "stub/rescue/rescue.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TRAP_BIT     (UINT64_C(1) << (SIGTRAP - 1))
#define MASK_SIZE    8
#define RESTORER     UINT64_C(0x04000000)
#define STEP         64 /* bytes for each function */
#define SLOTS        2048
#define CODE_SIZE    8192
#define RESULT       4321
#define BROKEN       77 /* what a function of the program's gives that is not carried out for it */
#define ROUNDS       300
#define THREADS      4
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct regs {
	uint64_t gpr[16];
	uint64_t flags, unused;
	uint8_t xmm[256];
};
extern struct regs regs_in, regs_out;
void regs_call(void *function);

/* Goes to `pad` as a function returns whose return address was exchanged; the true one and its stack pointer are told
 * to `note` before. Gives RESULT where it comes to it. */
uint64_t return_by(const void *pad, void (*note)(uint64_t ret, uint64_t sp));
__asm__(".text\n"
	"return_by:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %rax\n"
	"	lea 1f(%rip), %rdi\n"
	"	mov %rsp, %rsi\n"
	"	call *%rax\n"
	"	push %rbx\n"
	"	mov $4321, %eax\n"
	"	ret\n"
	"	ud2\n"
	"1:	pop %rbx\n"
	"	ret\n");

/* Leaf functions whose first instruction is displaced. Each gives its first two arguments' sum and leaves all else to
 * the caller; `slot`: it takes an out-of-line copy. */
static const struct function {
	const char *name;
	uint8_t bytes[24];
	bool slot;
} functions[] = {
	{"push rbp", {0x55, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}, false},
	{"push r12", {0x41, 0x54, 0x48, 0x8d, 0x04, 0x37, 0x41, 0x5c, 0xc3}, false},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"sub rsp", {0x48, 0x83, 0xec, 0x18, 0x48, 0x8d, 0x04, 0x37, 0x48, 0x8d, 0x64, 0x24, 0x18, 0xc3}, false},
	{"mov", {0x48, 0x89, 0xf8, 0x48, 0x8d, 0x04, 0x30, 0xc3}, false},
	{"mov32", {0x89, 0xf9, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"lea", {0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"nop", {0x90, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	/* test rdi, rdi; je 1f; lea; ret; 1: mov rax, rsi; ret */
	{"test", {0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x04, 0x37, 0xc3, 0x48, 0x89, 0xf0, 0xc3}, false},
	/* jc 1f; lea; ret; 1: lea; ret */
	{"jc", {0x72, 0x05, 0x48, 0x8d, 0x04, 0x37, 0xc3, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"cmp", {0x48, 0x39, 0xf7, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	/* jmp 1f; 1: lea; ret */
	{"jmp", {0xeb, 0x00, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"load", {0x48, 0x8b, 0x0c, 0x24, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"in a slot", {0x48, 0x8d, 0x04, 0x37, 0xc3}, true},
	{"push in a slot", {0x55, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}, true},
	/* bt rdi, 3; lea; ret: no emulation knows it */
	{"bt", {0x48, 0x0f, 0xba, 0xe7, 0x03, 0x48, 0x8d, 0x04, 0x37, 0xc3}, true},
};

typedef uint64_t sum(uint64_t a, uint64_t b);

static struct mw_rescue *rescue;
static uint8_t *base, *code;
static struct mw_rescue_action program; /* what this process does with SIGTRAP without all this */

static size_t data_size(void)
{
	return sizeof(struct mw_rescue);
}

static const struct mw_rescue_header *header(void)
{
	return (const struct mw_rescue_header *)(const void *)mw_rescue_image;
}

static void action(const struct mw_rescue_action *set, struct mw_rescue_action *old)
{
	assert_int_equal(syscall(SYS_rt_sigaction, SIGTRAP, set, old, MASK_SIZE), 0);
}

/* SIGTRAP goes to the rescue; the program's own action is that which is set now. */
static void lead_here(void)
{
	struct mw_rescue_action here = {
		.handler = (uint64_t)(uintptr_t)base + header()->handler,
		.flags = SA_SIGINFO | SA_NODEFER | RESTORER | SA_RESTART | SA_ONSTACK,
		.restorer = (uint64_t)(uintptr_t)base + header()->restorer,
	};

	action(&here, &rescue->own[rescue->own_at % 2]);
	rescue->led = 1;
	rescue->pid = (uint32_t)getpid();
}

static int setup(void **state)
{
	(void)state;
	base = mmap(NULL, MW_RESCUE_CODE + data_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_true(mw_rescue_image_size <= MW_RESCUE_CODE);
	memcpy(base, mw_rescue_image, mw_rescue_image_size);
	assert_int_equal(mprotect(base, MW_RESCUE_CODE, PROT_READ | PROT_EXEC), 0);
	rescue = (struct mw_rescue *)(void *)(base + MW_RESCUE_CODE);
	for (size_t i = 0; i < COUNT(functions); i++)
		memcpy(code + i * STEP, functions[i].bytes, sizeof(functions[i].bytes));
	assert_int_equal(mprotect(code, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
	action(NULL, &program);
	lead_here();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(rescue->inside, 0);
	action(&program, NULL);
	assert_int_equal(munmap(base, MW_RESCUE_CODE + data_size()), 0);
	assert_int_equal(munmap(code, CODE_SIZE), 0);
	return 0;
}

static void write_code(size_t at, const uint8_t *bytes, size_t size)
{
	assert_int_equal(mprotect(code, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(code + at, bytes, size);
	assert_int_equal(mprotect(code, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
}

/* A breakpoint at an offset of the code, and all that engine trap leaves word of for it. */
static void plant(size_t at, bool slot, uint32_t kind)
{
	struct mw_rescue_breakpoint *entry = &rescue->breakpoints[rescue->count];
	mw_addr pc = (mw_addr)(uintptr_t)(code + at);
	uint32_t place = mw_rescue_place(pc, MW_RESCUE_INDEX);
	uint8_t copy[MW_OOL_MAX], breakpoint = 0xcc;
	size_t copy_length, length;

	mw_arch_x86_64.plan(code + at, STEP, pc, &entry->plan);
	assert_string_not_equal(entry->plan.can_relocate || entry->plan.can_emulate ? "" : "refused", "refused");
	if (slot) {
		size_t to = SLOTS + rescue->count * MW_OOL_MAX;

		entry->slot = (uint64_t)(uintptr_t)(code + to);
		assert_null(mw_arch_x86_64.relocate(&entry->plan, entry->slot, copy, &copy_length, &length));
		entry->copy_length = (uint8_t)copy_length;
		entry->slot_size = (uint8_t)length;
		write_code(to, copy, length);
	} else {
		assert_true(entry->plan.can_emulate);
	}
	entry->kind = kind;
	while (rescue->index[place])
		place = (place + 1) & (MW_RESCUE_INDEX - 1);
	rescue->index[place] = ++rescue->count;
	write_code(at, &breakpoint, 1);
}

static void plant_all(void)
{
	for (size_t i = 0; i < COUNT(functions); i++)
		plant(i * STEP, functions[i].slot, MW_RESCUE_PLAIN);
}

static void *function_at(size_t at)
{
	return code + at;
}

static sum *sum_at(size_t at)
{
	union {
		void *data;
		sum *code;
	} cast = {function_at(at)};

	return cast.code;
}

static uint64_t random_word(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void random_regs(struct regs *regs)
{
	uint64_t *words = (uint64_t *)(void *)regs;

	for (size_t i = 0; i < sizeof(*regs) / 8; i++)
		words[i] = random_word();
	/* Carry, parity, adjust, zero, sign, overflow. */
	regs->flags = (regs->flags & 0x8d5) | 0x202;
	if (random_word() % 4 == 0)
		regs->gpr[5] = 0;
}

static void assert_calls(size_t number)
{
	static struct regs expected;

	random_regs(&regs_in);
	/* As the processor does it: the same bytes, elsewhere. */
	regs_call(code + CODE_SIZE / 2 + number * STEP);
	expected = regs_out;
	regs_call(code + number * STEP);
	expected.gpr[7] = regs_out.gpr[7];
	if (strcmp(functions[number].name, "load") == 0)
		assert_int_equal(regs_out.gpr[2], expected.gpr[2]);
	for (size_t i = 0; i < 16; i++)
		if (regs_out.gpr[i] != expected.gpr[i])
			fail_msg("%s: register %zu is %llx, not %llx", functions[number].name, i,
				 (unsigned long long)regs_out.gpr[i], (unsigned long long)expected.gpr[i]);
	assert_int_equal(regs_out.flags, expected.flags);
	assert_memory_equal(regs_out.xmm, expected.xmm, sizeof(expected.xmm));
	assert_int_equal(regs_out.gpr[0], regs_in.gpr[4] + regs_in.gpr[5]);
}

static void copy_all(void)
{
	for (size_t i = 0; i < COUNT(functions); i++)
		write_code(CODE_SIZE / 2 + i * STEP, functions[i].bytes, sizeof(functions[i].bytes));
}

static void assert_standing(bool expected)
{
	for (uint32_t i = 0; i < rescue->count; i++) {
		const struct mw_insn_plan *plan = &rescue->breakpoints[i].plan;
		const uint8_t *at = (const uint8_t *)(uintptr_t)plan->pc;

		assert_int_equal(*at, expected ? 0xcc : plan->bytes[0]);
	}
}

static void test_heals_all_at_the_first(void **state)
{
	(void)state;
	rescue->may_call = 1;
	copy_all();
	plant_all();
	assert_standing(true);
	for (size_t i = 0; i < COUNT(functions); i++)
		assert_calls(i);
	assert_standing(false);
	assert_int_equal(rescue->healed, 1);
	assert_int_equal(rescue->hits, 1);
}

/* Each of them is the one that is struck first. */
static void test_heals_at_any(void **state)
{
	for (size_t i = 0; i < COUNT(functions); i++) {
		assert_int_equal(teardown(state) | setup(state), 0);
		rescue->may_call = 1;
		copy_all();
		plant_all();
		assert_calls(i);
		assert_standing(false);
	}
}

static void test_passes_without_system_calls(void **state)
{
	(void)state;
	copy_all();
	plant_all();
	for (size_t i = 0; i < COUNT(functions); i++)
		for (size_t round = 0; round < ROUNDS; round++)
			assert_calls(i);
	assert_standing(true);
	assert_int_equal(rescue->healed, 0);
	assert_int_equal(rescue->hits, ROUNDS * COUNT(functions));
}

static _Atomic bool begun;

static void *keep_calling(void *wrong)
{
	while (!atomic_load(&begun))
		;
	for (uint64_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < COUNT(functions); i++)
			if (sum_at(i * STEP)(round, i) != round + i)
				atomic_fetch_add((_Atomic unsigned *)wrong, 1);
	return NULL;
}

static void call_from_threads(void)
{
	_Atomic unsigned wrong = 0;
	pthread_t threads[THREADS];

	atomic_store(&begun, false);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep_calling, &wrong), 0);
	atomic_store(&begun, true);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
}

static void test_threads_pass(void **state)
{
	(void)state;
	plant_all();
	call_from_threads();
	assert_standing(true);
	assert_int_equal(rescue->hits, ROUNDS * COUNT(functions) * THREADS);
}

static void test_threads_heal(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(teardown(state) | setup(state), 0);
		rescue->may_call = 1;
		plant_all();
		call_from_threads();
		assert_standing(false);
		assert_int_equal(rescue->healed, 1);
	}
}

static void assert_child(void (*body)(void), int expected)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		const struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, expected);
}

static void heal_without_files(void)
{
	const struct rlimit none = {0, 0};

	/* As the kernel does it. */
	rescue->pid = 0;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		_exit(1);
	for (size_t i = 0; i < COUNT(functions); i++)
		if (sum_at(i * STEP)(i, 5) != i + 5)
			_exit(2);
	_exit(rescue->healed == 1 && rescue->hits == 1 && *code == functions[0].bytes[0] ? 0 : 3);
}

static void test_heals_without_a_file(void **state)
{
	(void)state;
	rescue->may_call = 1;
	plant_all();
	assert_child(heal_without_files, 0);
	assert_standing(true);
}

/* Many places of the table are taken, from the one on where it should stand. */
static void note_return(uint64_t ret, uint64_t sp)
{
	uint32_t at = mw_rescue_place(sp, MW_RESCUE_RETURNS);

	for (unsigned i = 0; i < 10; i++, at = (at + 1) & (MW_RESCUE_RETURNS - 1)) {
		rescue->returns[at].sp = sp + 16 * (i + 1);
		rescue->returns[at].ret = 1;
	}
	rescue->returns[at].sp = sp;
	rescue->returns[at].ret = ret;
}

static void test_exchanged_return(void **state)
{
	(void)state;
	for (uint32_t may_call = 0; may_call < 2; may_call++) {
		rescue->may_call = may_call;
		if (may_call == 0)
			plant(2 * STEP, false, MW_RESCUE_PAD);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(return_by(function_at(2 * STEP), note_return), RESULT);
		assert_int_equal(code[2 * STEP], 0xcc);
	}
	assert_int_equal(rescue->hits, 20);
}

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
	} cast = {function_at(at)};

	return cast.code;
}

static const uint64_t one = UINT64_C(1) << (SIGUSR1 - 1);

static void test_mask(void **state)
{
	const uint64_t both = one | TRAP_BIT, before = kernel_mask();
	set_mask *mask = mask_at(STEP);
	uint64_t old = 0;

	(void)state;
	write_code(STEP, answers, sizeof(answers));
	plant(STEP, false, MW_RESCUE_MASK);
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
	assert_int_equal(rescue->blocked_count, 0);
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_SIZE), 0);
}

/* Threads that believe SIGTRAP to be blocked are shown that, and are known while they do. */
static void test_mask_shown(void **state)
{
	const uint64_t both = one | TRAP_BIT, trap = TRAP_BIT, before = kernel_mask();
	set_mask *mask = mask_at(STEP);
	uint64_t old = 0;

	(void)state;
	write_code(STEP, answers, sizeof(answers));
	plant(STEP, false, MW_RESCUE_MASK);
	rescue->may_call = 1;
	rescue->blocked_count = 2;
	rescue->blocked[0] = 1;
	rescue->blocked[1] = (uint32_t)gettid();
	assert_int_equal(mask(SIG_BLOCK, NULL, &old), 0);
	assert_int_equal(old, before | TRAP_BIT);
	assert_int_equal(mask(SIG_BLOCK, &one, &old), 0);
	assert_int_equal(old, before | TRAP_BIT);
	assert_int_equal(kernel_mask(), before | one);
	assert_int_equal(rescue->blocked[1], gettid());
	assert_int_equal(mask(SIG_UNBLOCK, &trap, &old), 0);
	assert_int_equal(old, before | both);
	assert_int_equal(rescue->blocked[1], 0);
	assert_int_equal(mask(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(mask(SIG_BLOCK, &trap, NULL), 0);
	assert_int_equal(rescue->blocked[1], gettid());
	assert_int_equal(mask(SIG_SETMASK, &before, &old), 0);
	assert_int_equal(old, before | both);
	assert_int_equal(rescue->blocked[1], 0);
	assert_int_equal(rescue->blocked[0], 1);
	/* Another one still believes it: that breakpoint stays. */
	assert_int_equal(code[STEP], 0xcc);
}

/* Nobody is left who believes it. */
static void test_mask_heals(void **state)
{
	uint64_t old = 0;

	(void)state;
	write_code(STEP, answers, sizeof(answers));
	plant(STEP, false, MW_RESCUE_MASK);
	rescue->may_call = 1;
	rescue->blocked_count = 1;
	assert_int_equal(mask_at(STEP)(SIG_BLOCK, NULL, &old), BROKEN);
	assert_int_equal(code[STEP], answers[0]);
}

/* memwatch had begun with it: the mask was another one then. */
static void test_mask_begun(void **state)
{
	const uint64_t trap = TRAP_BIT, before = kernel_mask(), was = before | one | TRAP_BIT;
	uint64_t old = 0;

	(void)state;
	write_code(STEP, answers, sizeof(answers));
	plant(STEP, false, MW_RESCUE_MASK);
	rescue->may_call = rescue->masking = 1;
	random_regs(&regs_in);
	regs_in.gpr[5] = SIG_UNBLOCK;
	regs_in.gpr[4] = (uint64_t)(uintptr_t)&trap;
	regs_in.gpr[1] = (uint64_t)(uintptr_t)&old;
	regs_in.gpr[2] = was;
	regs_in.gpr[11] = MW_RESCUE_BEGUN;
	regs_call(code + STEP);
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
	} cast = {function_at(at)};

	return cast.code;
}

/* By a breakpoint, or by a jump. */
static set_action *redirected(bool jump)
{
	mw_addr insn = (mw_addr)(uintptr_t)(code + STEP + CALL_AT), act = (mw_addr)(uintptr_t)base + header()->act;
	uint8_t bytes[MW_ACTION_JUMP], pad[MW_ACTION_PAD];

	write_code(STEP, calls, sizeof(calls));
	if (jump) {
		assert_true(mw_arch_x86_64.action_jump(calls + CALL_AT - MW_ACTION_JUMP, insn,
						       (mw_addr)(uintptr_t)(code + SLOTS), act, bytes, pad));
		write_code(SLOTS, pad, sizeof(pad));
		write_code(STEP + CALL_AT - MW_ACTION_JUMP, bytes, sizeof(bytes));
	} else {
		struct mw_rescue_breakpoint *entry = &rescue->breakpoints[rescue->count];
		uint8_t breakpoint = 0xcc;

		mw_arch_x86_64.plan(code + STEP + CALL_AT, 2, insn, &entry->plan);
		assert_int_equal(entry->plan.length, 2);
		entry->kind = MW_RESCUE_ACTION;
		rescue->index[mw_rescue_place(insn, MW_RESCUE_INDEX)] = ++rescue->count;
		write_code(STEP + CALL_AT, &breakpoint, 1);
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

		assert_int_equal(teardown(state) | setup(state), 0);
		rescue->may_call = 1;
		call = redirected(ways[i]);
		memset(&old, 0xaa, sizeof(old));
		assert_int_equal(call(SIGTRAP, &set, &old), 0);
		assert_int_equal(old.handler, 0);
		assert_int_equal(old.mask, 0);
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_memory_equal(&old, &set, sizeof(set));
		/* The kernel's is still ours, on the stack that the program wants, under its mask. */
		action(NULL, &now);
		assert_int_equal(now.handler, (uint64_t)(uintptr_t)base + header()->handler);
		assert_int_equal(now.flags & (SA_ONSTACK | SA_RESTART), SA_ONSTACK);
		assert_int_equal(now.mask, two);
		set.handler = 0;
		assert_int_equal(call(SIGTRAP, &set, NULL), 0);
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_int_equal(old.handler, 0);
		/* While the kernel does not lead it here yet, it is between the two. */
		rescue->led = 0;
		assert_int_equal(call(SIGTRAP, NULL, &old), 0);
		assert_int_equal(old.handler, now.handler);
		assert_int_equal(rescue->hits, 0);
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
	assert_int_equal(rescue->marks.stripped[signal - 1] != 0, stripped);
	assert_int_equal(rescue->marks.coming[signal - 1], 0);
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
		assert_int_equal(rescue->marks.stripped[i] | rescue->marks.coming[i], 0);
}

static void test_other_actions(void **state)
{
	for (size_t i = 0; i < 2 * COUNT(ways); i++) {
		assert_int_equal(teardown(state) | setup(state), 0);
		rescue->may_call = i % 2;
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

		assert_int_equal(teardown(state) | setup(state), 0);
		rescue->may_call = 1;
		call = redirected(ways[i]);
		assert_int_equal(call(SIGUSR2, &all, NULL), 0);
		before = rescue->marks;
		rescue->pid++;
		assert_int_equal(call(SIGUSR2, NULL, &old), 0);
		assert_memory_equal(&old, &all, sizeof(old));
		assert_int_equal(call(SIGUSR2, &all, &old), 0);
		assert_memory_equal(&old, &all, sizeof(old));
		kernel_action(SIGUSR2, &old);
		assert_int_equal(old.mask, one | TRAP_BIT);
		assert_int_equal(call(SIGTRAP, &all, &old), 0);
		assert_int_equal(old.handler, 0);
		assert_int_equal(rescue->own[rescue->own_at % 2].handler, 0);
		assert_memory_equal(&before, &rescue->marks, sizeof(before));
		rescue->pid--;
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

		random_regs(&regs_in);
		regs_in.gpr[5] = SIGUSR2;
		regs_in.gpr[4] = 0;
		regs_in.gpr[1] = (uint64_t)(uintptr_t)&old;
		regs_call(code + STEP);
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
	rescue->may_call = 1;
	call = redirected(true);
	plant(2 * STEP, false, MW_RESCUE_PLAIN);
	assert_int_equal(call(SIGUSR2, &all, NULL), 0);
	kernel_action(SIGUSR2, &now);
	assert_int_equal(now.mask, one);
	assert_int_equal(sum_at(2 * STEP)(3, 4), 7);
	kernel_action(SIGUSR2, &now);
	assert_int_equal(now.mask, one | TRAP_BIT);
	assert_int_equal(rescue->marks.stripped[SIGUSR2 - 1], 0);
	now.handler = now.mask = 0;
	assert_int_equal(call(SIGUSR2, &now, NULL), 0);
}

/* The program's own action, by its C library. */
static void own_action(int flags)
{
	struct sigaction own = {.sa_flags = SA_SIGINFO | flags};

	own.sa_sigaction = on_trap;
	assert_int_equal(sigaction(SIGTRAP, &own, NULL), 0);
	lead_here();
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
	plant_all();
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
		assert_int_equal(sum_at(0)(i, 7), i + 7);
	}
	assert_int_equal(arrived, 30);
}

static void test_handler_of_one_time(void **state)
{
	(void)state;
	own_action((int)SA_RESETHAND);
	raise_it();
	assert_int_equal(arrived, 1);
	assert_int_equal(rescue->own[rescue->own_at % 2].handler, 0);
	assert_child(raise_it, SIGTRAP);
}

static void test_ignored(void **state)
{
	(void)state;
	signal(SIGTRAP, SIG_IGN);
	lead_here();
	raise_it();
	assert_int_equal(rescue->own[rescue->own_at % 2].handler, (uint64_t)(uintptr_t)SIG_IGN);
	/* The kernel lets nobody ignore these. */
	assert_child(trap_in_one_byte, SIGTRAP);
	assert_child(trap_in_two_bytes, SIGTRAP);
	assert_child(raise_it, 0);
}

static void test_default_action(void **state)
{
	(void)state;
	plant_all();
	assert_child(raise_it, SIGTRAP);
	assert_child(trap_in_one_byte, SIGTRAP);
	assert_child(trap_in_two_bytes, SIGTRAP);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_heals_all_at_the_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heals_at_any, setup, teardown),
		cmocka_unit_test_setup_teardown(test_passes_without_system_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads_heal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heals_without_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exchanged_return, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mask_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mask_heals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mask_begun, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_action, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_actions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_in_the_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registers_of_action, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heals_actions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_handler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_handler_of_one_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_default_action, setup, teardown),
		cmocka_unit_test_setup_teardown(test_served_already, setup, teardown),
	};

	return cmocka_run_group_tests_name("stub_rescue", tests, NULL, NULL);
}
