// SPDX-License-Identifier: MIT
/* walk_test.c: the walk of a stopped child's stack is what the C library's backtrace() said in the child. */
#include "files.h"
#include "living.h"
#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 200
#define KEEP __attribute__((noinline))

/* What the child says of its stack, for the parent to read. */
static struct report {
	void *frames[MOST];
	void *caller; /* of tell() */
	int count;
} * report;

/* Say it, and stop. */
static KEEP int tell(void *unused)
{
	(void)unused;
	report->count = backtrace(report->frames, MOST);
	report->caller = __builtin_return_address(0);
	raise(SIGUSR2);
	return 0;
}

static KEEP int recurse(int depth)
{
	volatile char room[100];
	int result;

	room[depth % 100] = 1;
	result = depth > 0 ? recurse(depth - 1) : tell(NULL);
	return result + room[depth % 100] - 1;
}

static int deep_body(void *context)
{
	return recurse(*(int *)context);
}

static void *in_thread(void *unused)
{
	recurse(5);
	return unused;
}

static int thread_body(void *context)
{
	pthread_t thread;

	(void)context;
	pthread_create(&thread, NULL, in_thread, NULL);
	return pthread_join(thread, NULL);
}

static void handler(int number)
{
	(void)number;
	recurse(3);
}

static int handler_body(void *context)
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	return *(int *)context;
}

static int through_body(void *context)
{
	void *library = dlopen(context, RTLD_NOW);
	union {
		void *data;
		int (*code)(int (*callback)(void *context), void *context);
	} through;

	if (!library)
		return 1;
	through.data = dlsym(library, "unwind_through");
	return through.data ? through.code(tell, NULL) : 2;
}

struct walk {
	struct mw_unwound_frame frames[MOST];
	uint32_t count;
	enum mw_stack_cut cut;
	struct mw_modules *modules;
};

static void take_walk(struct walk *walk, pid_t tid, uint32_t capacity)
{
	struct mw_memory_view memory = living_memory(&tid);
	struct mw_unwinder *unwinder = NULL;
	struct mw_tracee_regs regs;

	walk->modules = living_modules(tid);
	FINE(mw_unwinder_libunwind(walk->modules, living_arch(), &unwinder));
	FINE(mw_unwinder_memo(unwinder, living_arch(), &unwinder));
	FINE(mw_tracee_get_regs(tid, &regs));
	/* The second time from memory. */
	for (int i = 0; i < 2; i++) {
		memset(walk->frames, 0xff, sizeof(walk->frames));
		unwinder->ops->walk(unwinder, &regs.general, &memory, walk->frames, capacity, &walk->count, &walk->cut);
		assert_true(walk->count <= capacity);
		assert_true(walk->count > 0);
		assert_int_equal(walk->frames[0].pc, regs.general.pc);
	}
	mw_unwinder_destroy(unwinder);
}

/* What the child said, from the caller of tell() on, is how the walk ends. */
static void compare(const struct walk *walk, bool signal)
{
	const struct report *said = report;
	uint32_t first = 0, rest;
	unsigned signals = 0;

	while (first < (uint32_t)said->count && said->frames[first] != said->caller)
		first++;
	rest = (uint32_t)said->count - first;
	assert_true(rest > 2);
	assert_int_equal(walk->cut, MW_STACK_COMPLETE);
	assert_true(walk->count > rest);
	for (uint32_t i = 0; i < rest; i++) {
		uint32_t at = walk->count - rest + i;
		const struct mw_unwound_frame *frame = &walk->frames[at];
		uint64_t expected = (uint64_t)(uintptr_t)said->frames[first + i];
		bool interrupted = at > 0 && walk->frames[at - 1].signal;

		/* Both are taken as return addresses here. */
		if (frame->signal || interrupted)
			expected++;
		if (frame->pc != expected)
			fail_msg("frame %u of %u: %#llx, not %#llx", i, rest, (unsigned long long)frame->pc,
				 (unsigned long long)expected);
		signals += frame->signal;
		assert_true(frame->module < mw_modules_count(walk->modules));
		assert_ptr_equal(mw_modules_find(walk->modules, frame->pc - 1),
				 mw_modules_get(walk->modules, frame->module));
	}
	/* Stack pointers rise. */
	for (uint32_t i = 1; i + 1 < walk->count; i++)
		assert_true(walk->frames[i].cfa > walk->frames[i - 1].cfa);
	assert_int_equal(signals, signal);
}

static void await_report(pid_t tid)
{
	int status = child_next_stop(tid);

	if (!is_signal(status, SIGUSR2))
		fail_msg("stopped with %#x", (unsigned)status);
}

static void walks_a_recursion(void **state)
{
	(void)state;
	for (int depth = 0; depth < 120; depth += 30) {
		pid_t pid = child_start(deep_body, &depth);
		struct walk walk;

		await_report(pid);
		take_walk(&walk, pid, MOST);
		compare(&walk, false);
		assert_true(walk.count > (uint32_t)depth);
		mw_modules_destroy(walk.modules);
		child_kill(pid);
	}
}

static void is_cut_where_it_is_to_be(void **state)
{
	int depth = 40;
	pid_t pid = child_start(deep_body, &depth);
	struct walk whole, part;

	(void)state;
	await_report(pid);
	take_walk(&whole, pid, MOST);
	for (uint32_t capacity = 1; capacity <= whole.count; capacity++) {
		take_walk(&part, pid, capacity);
		assert_int_equal(part.count, capacity);
		assert_int_equal(part.cut, capacity < whole.count ? MW_STACK_TRUNCATED : MW_STACK_COMPLETE);
		assert_memory_equal(part.frames, whole.frames, capacity * sizeof(*part.frames));
		mw_modules_destroy(part.modules);
	}
	mw_modules_destroy(whole.modules);
	child_kill(pid);
}

static void walks_a_thread(void **state)
{
	pid_t pid = child_start(thread_body, NULL);
	struct walk walk;
	unsigned long tid;

	(void)state;
	assert_true(is_event(child_next_stop(pid), PTRACE_EVENT_CLONE));
	FINE(mw_tracee_event_message(pid, &tid));
	FINE(mw_tracee_resume(pid, 0));
	assert_true(is_event(child_next_stop((pid_t)tid), PTRACE_EVENT_STOP));
	FINE(mw_tracee_resume((pid_t)tid, 0));
	await_report((pid_t)tid);
	take_walk(&walk, (pid_t)tid, MOST);
	compare(&walk, false);
	mw_modules_destroy(walk.modules);
	kill(pid, SIGKILL);
	assert_int_equal(child_end((pid_t)tid), 128 + SIGKILL);
	assert_int_equal(child_end(pid), 128 + SIGKILL);
}

static void walks_through_a_handler(void **state)
{
	int zero = 0;
	pid_t pid = child_start(handler_body, &zero);
	struct walk walk;

	(void)state;
	assert_true(is_signal(child_next_stop(pid), SIGUSR1));
	FINE(mw_tracee_resume(pid, SIGUSR1));
	await_report(pid);
	take_walk(&walk, pid, MOST);
	compare(&walk, true);
	mw_modules_destroy(walk.modules);
	child_kill(pid);
}

/* Make PT_GNU_EH_FRAME a program header of no meaning. */
static void spoil_header(uint8_t *bytes, size_t size)
{
	Elf64_Ehdr file;
	unsigned found = 0;

	assert_true(size >= sizeof(file));
	memcpy(&file, bytes, sizeof(file));
	for (size_t i = 0; i < file.e_phnum; i++) {
		uint8_t *at = bytes + file.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr header;

		memcpy(&header, at, sizeof(header));
		if (header.p_type != PT_GNU_EH_FRAME)
			continue;
		header.p_type = PT_NULL;
		memcpy(at, &header, sizeof(header));
		found++;
	}
	assert_int_equal(found, 1);
}

/* Without the library's own search table the walk is the same; backtrace() itself comes to nothing there. */
static void walks_without_header(void **state)
{
	size_t size;
	uint8_t *bytes = file_read(THROUGH, &size);
	char bare[] = THROUGH ".bare", whole[] = THROUGH;
	char *const paths[2] = {whole, bare};
	struct walk walks[2];

	(void)state;
	spoil_header(bytes, size);
	file_write(bare, bytes, size);
	free(bytes);
	for (size_t i = 0; i < 2; i++) {
		pid_t pid = child_start(through_body, paths[i]);

		await_report(pid);
		take_walk(&walks[i], pid, MOST);
		if (i == 0)
			compare(&walks[i], false);
		child_kill(pid);
	}
	unlink(bare);
	assert_int_equal(walks[1].count, walks[0].count);
	assert_int_equal(walks[1].cut, MW_STACK_COMPLETE);
	for (uint32_t i = 0; i < walks[0].count; i++) {
		const struct mw_module *a = mw_modules_get(walks[0].modules, walks[0].frames[i].module);
		const struct mw_module *b = mw_modules_get(walks[1].modules, walks[1].frames[i].module);

		assert_int_equal(walks[0].frames[i].pc - a->bias, walks[1].frames[i].pc - b->bias);
	}
	mw_modules_destroy(walks[0].modules);
	mw_modules_destroy(walks[1].modules);
}

/* Registers that make no sense: an answer all the same. */
static void ends_on_nonsense(void **state)
{
	pid_t pid = getpid();
	struct mw_memory_view memory = living_memory(&pid);
	struct mw_modules *modules = living_modules(pid);
	struct mw_unwinder *unwinder = NULL;
	struct mw_unwound_frame frames[8];
	uint64_t seed = 3;

	(void)state;
	FINE(mw_unwinder_libunwind(modules, living_arch(), &unwinder));
	for (unsigned round = 0; round < 3000; round++) {
		const struct mw_module *module = mw_modules_get(modules, round % (uint32_t)mw_modules_count(modules));
		struct mw_regs regs = {.pc = 0};
		enum mw_stack_cut cut;
		uint32_t count;

		for (unsigned i = 0; i < MW_REG_COUNT; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			regs.gpr[i] = seed >> (round % 4 * 16);
		}
		if (round % 3)
			regs.gpr[living_arch()->dwarf_sp] = (uint64_t)(uintptr_t)&regs & ~(uint64_t)7;
		regs.pc = round % 5 ? module->start + (seed >> 20) % (module->end - module->start) : seed;
		unwinder->ops->walk(unwinder, &regs, &memory, frames, 8, &count, &cut);
		assert_true(count <= 8);
	}
	mw_unwinder_destroy(unwinder);
	mw_modules_destroy(modules);
}

UNIT_GROUP(walk)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_a_recursion),    cmocka_unit_test(is_cut_where_it_is_to_be),
		cmocka_unit_test(walks_a_thread),       cmocka_unit_test(walks_through_a_handler),
		cmocka_unit_test(walks_without_header), cmocka_unit_test(ends_on_nonsense),
	};

	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* Loads what backtrace() needs, once, before the children are made. */
	if (report == MAP_FAILED || backtrace(report->frames, MOST) < 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
