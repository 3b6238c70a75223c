// SPDX-License-Identifier: MIT
/*
 * How much stack the recorder needs, the real image as it is: programs choose their stacks for what they do themselves.
 */
#include "image.h"
#include "shared.h"
#include "unit.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Bytes from the return address of a hooked call downwards. An alternate signal stack is often 8 KiB, of which the
 * kernel's frame takes up to 3.5 where registers are wide, and MINSIGSTKSZ 2048; PTHREAD_STACK_MIN is 16 KiB, with the
 * thread's own variables in it. A call of glibc's malloc that has to find memory needs about 500 for itself. So a
 * kilobyte more is what such stacks have; the recorder needs some 800.
 */
#define MOST 1024u

#define STACK_SIZE (128u << 10)
#define PAINT      0xa5

void stack_use_call(void *function, long depth, void *pointer);
void stack_use_original(void);
void stack_use_handler(int number);
void stack_use_restorer(void);
extern const char stack_use_call_end[], stack_use_signal[], stack_use_signal_end[];
extern uint64_t stack_use_sp;
extern void *stack_use_function;
extern char stack_use_block[64];

static struct shared shared;
static struct image *image;
static uint8_t *stack, *other_stack;

static struct mw_ring_slot *own_slot(void)
{
	return shared_slot_of(&shared, (uint64_t)pthread_self());
}

static struct mw_ring_region region_of(const uint8_t *memory)
{
	return (struct mw_ring_region){(uint64_t)(uintptr_t)memory | MW_RING_REGION_OWN,
				       (uint64_t)(uintptr_t)memory + STACK_SIZE};
}

static void add_code(const void *start, const void *end, uint64_t row)
{
	shared_code(&shared, (uint64_t)(uintptr_t)start, (uint64_t)(uintptr_t)end, row);
}

/* `row`: of the frames that are called by each other. */
static void set_up(uint64_t row)
{
	struct shared_plan plan = SHARED_DEFAULT;
	const uint64_t end = mw_row(MW_ROW_END, 0, MW_ROW_FP_SAME, 0);
	const char *begin = (const char *)(uintptr_t)stack_use_call;
	struct mw_ring_slot *slot;

	plan.ring_units = 32768;
	plan.depth = 64;
	shared_create(&shared, &plan);
	shared.control->heartbeat = __builtin_ia32_rdtsc();
	add_code((const void *)0x1000, begin, end);
	add_code(begin, stack_use_call_end, row);
	add_code(stack_use_call_end, stack_use_signal, end);
	add_code(stack_use_signal, stack_use_signal_end, mw_row(MW_ROW_SIGNAL, 0, MW_ROW_FP_SAME, 0));
	add_code(stack_use_signal_end, (const void *)UINTPTR_MAX, end);
	image = image_create(&shared);
	stack = aligned_alloc(4096, STACK_SIZE);
	other_stack = aligned_alloc(4096, STACK_SIZE);
	slot = shared_slot(&shared, mw_ring_slot_first((uint64_t)pthread_self(), plan.slots));
	slot->owner = (uint64_t)pthread_self();
	slot->tid = (uint32_t)gettid();
	slot->regions[0] = region_of(stack);
	slot->regions[1] = region_of(other_stack);
	image_guard(image, 1);
}

static int set_up_plain(void **state)
{
	(void)state;
	set_up(mw_row(MW_ROW_SP, 16, MW_ROW_FP_SAME, 0));
	return 0;
}

static int set_up_slow(void **state)
{
	(void)state;
	set_up(mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_destroy(image);
	shared_destroy(&shared);
	free(stack);
	free(other_stack);
	return 0;
}

static void *trampoline(uint8_t role)
{
	const struct mw_stub_hook hook = {
		.original = (uint64_t)(uintptr_t)stack_use_original,
		.role = role,
		.flags = role <= STUB_ROLE_RESIZE ? MW_STUB_IS_HEAP : 0,
		.pointer = 0,
		.count = role == STUB_ROLE_CALLOC ? 1 : MW_STUB_NO_ARG,
		.argument = 2,
	};

	return image_trampoline(image, role, &hook, 0);
}

static struct {
	void *function;
	long depth;
} job;

static void do_job(void)
{
	stack_use_call(job.function, job.depth, stack_use_block);
}

/* What has been written below the return address of the hooked call on this stack. */
static unsigned used(const uint8_t *memory)
{
	const uint8_t *lowest = memory;

	while (*lowest == PAINT)
		lowest++;
	/* The call was made there at all, and with room enough. */
	assert_in_range(stack_use_sp, (uintptr_t)memory + 4096, (uintptr_t)memory + STACK_SIZE);
	assert_true(lowest > memory);
	return (unsigned)(stack_use_sp - 8 - (uintptr_t)lowest);
}

static void on_stack(void (*body)(void))
{
	ucontext_t there, here;

	memset(stack, PAINT, STACK_SIZE);
	assert_int_equal(getcontext(&there), 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_SIZE;
	there.uc_link = &here;
	makecontext(&there, body, 0);
	assert_int_equal(swapcontext(&here, &there), 0);
}

static void check(const char *what, unsigned bytes)
{
	print_message("%-28s %4u bytes\n", what, bytes);
	/* The call's own record is a part of it: it has been written. */
	assert_in_range(bytes, MW_STUB_CALL_SIZE, MOST);
}

static unsigned call_at(uint8_t role, long depth)
{
	job.function = trampoline(role);
	job.depth = depth;
	on_stack(do_job);
	return used(stack);
}

static bool recorded(uint32_t type)
{
	static struct shared_record record;
	bool found = false;

	while (shared_next(&shared, own_slot(), &record))
		found |= record.type == type;
	return found;
}

static void test_walks(void **state)
{
	static const long depths[] = {0, 1, 8, 8, 40, 40, 300, 300};

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		char what[64];

		snprintf(what, sizeof(what), "%ld deep", depths[i]);
		check(what, call_at(STUB_ROLE_MALLOC, depths[i]));
		assert_true(recorded(MW_RING_ALLOC));
	}
	assert_int_equal(own_slot()->slow_walks, 0);
}

static void test_roles(void **state)
{
	(void)state;
	for (uint8_t role = 0; role < STUB_ROLE_COUNT; role++) {
		char what[64];

		snprintf(what, sizeof(what), "role %u", role);
		check(what, call_at(role, 5));
		check("the same again", call_at(role, 5));
	}
}

static void test_slow_road(void **state)
{
	(void)state;
	check("slow road", call_at(STUB_ROLE_MALLOC, 40));
	assert_true(recorded(MW_RING_SLOW));
	check("a free of that block", call_at(STUB_ROLE_FREE, 40));
	check("a free of what nobody knows", call_at(STUB_ROLE_FREE, 40));
}

static void test_compared(void **state)
{
	(void)state;
	shared.control->compare = 1;
	check("compared", call_at(STUB_ROLE_MALLOC, 40));
	assert_true(recorded(MW_RING_SLOW));
}

static void test_new_thread(void **state)
{
	struct mw_ring_slot *slot = own_slot();

	(void)state;
	memset(slot, 0, sizeof(*slot));
	/* Nobody answers what stack that is. */
	check("first call of a thread", call_at(STUB_ROLE_MALLOC, 8));
	assert_non_null(own_slot());
	assert_int_equal(own_slot()->asked, 1);
}

struct kernel_action {
	void (*handler)(int number);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};
#define KERNEL_RESTORER 0x04000000ul

static void strike(void)
{
	raise(SIGUSR1);
}

static void test_signal_frame(void **state)
{
	const struct kernel_action action = {stack_use_handler, SA_ONSTACK | KERNEL_RESTORER, stack_use_restorer, 0};
	const stack_t alternate = {.ss_sp = other_stack, .ss_size = STACK_SIZE}, none = {.ss_flags = SS_DISABLE};

	(void)state;
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8), 0);
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	for (unsigned i = 0; i < 6; i++) {
		static const uint8_t roles[] = {STUB_ROLE_MALLOC, STUB_ROLE_MALLOC, STUB_ROLE_FREE};

		stack_use_function = trampoline(roles[i % 3]);
		memset(other_stack, PAINT, STACK_SIZE);
		on_stack(strike);
		check("in a signal's handler", used(other_stack));
	}
	assert_true(recorded(MW_RING_ALLOC));
	assert_int_equal(own_slot()->slow_walks, 0);
	assert_true(own_slot()->walks > 0);
	assert_int_equal(sigaltstack(&none, NULL), 0);
	signal(SIGUSR1, SIG_DFL);
}

UNIT_GROUP(stack_use)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walks, set_up_plain, tear_down),
		cmocka_unit_test_setup_teardown(test_roles, set_up_plain, tear_down),
		cmocka_unit_test_setup_teardown(test_slow_road, set_up_slow, tear_down),
		cmocka_unit_test_setup_teardown(test_compared, set_up_plain, tear_down),
		cmocka_unit_test_setup_teardown(test_new_thread, set_up_plain, tear_down),
		cmocka_unit_test_setup_teardown(test_signal_frame, set_up_plain, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
