// SPDX-License-Identifier: MIT
/* test_suspects.c: whose line a stack is charged to, and what is merged. */
#include "alloc/families.h"
#include "unit.h"
#include "view/suspects.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EXE "/opt/shop/shopd"

static void test_wrappers(void **state)
{
	static const char *const wrappers[] = {
		"zmalloc",
		"zmalloc_usable",
		"os::malloc(unsigned long, MEMFLAGS)",
		"os::strdup(char const*, MEMFLAGS)",
		"os::pd_commit_memory_or_exit(char*, unsigned long, bool, char const*)",
		"PyMem_RawMalloc",
		"v8::base::OS::Allocate(void*, unsigned long)",
		"g_malloc0",
		"ngx_alloc",
		"ngx_palloc_small",
		"operator new(unsigned long)",
		"operator new[](unsigned long, std::nothrow_t const&)",
		"std::vector<int, std::allocator<int> >::push_back(int const&)",
		"void std::vector<shop::Order>::_M_realloc_insert<shop::Order>(shop::Order&&)",
		"std::shared_ptr<shop::Order> std::make_shared<shop::Order>()",
		"<alloc::vec::Vec<T,A> as core::clone::Clone>::clone",
		"<T as alloc::slice::hack::ConvertVec>::to_vec",
		"<str as alloc::string::SpecToString>::spec_to_string",
		"alloc::raw_vec::RawVec<T,A>::grow_one",
		"strdup",
		"xmalloc",
		"AllocSetAlloc",
	};
	static const char *const own[] = {
		"main",
		"shop::Basket::add(std::vector<int> const&)",
		"std_reader",
		"alloc_order",
		"ngx_http_create_request",
		"strdup_all",
		"calloc_table",
		"dictExpand",
		"shop::operator+(shop::Order const&, std::string const&)",
		"xmlParseDocument",
		"<shop::Order as core::clone::Clone>::clone",
		"<T as shop::Priced>::price",
		"core::Engine::add(int)",
		"alloc::Pool::take<shop::Order>()",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (!mw_suspects_is_wrapper(wrappers[i]))
			fail_msg("%s is a wrapper", wrappers[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (mw_suspects_is_wrapper(own[i]))
			fail_msg("%s is no wrapper", own[i]);
}

/* Java's class library is no line of the program's own. */
static void test_java(void **state)
{
	struct mw_report_frame made[] = {
		{.function = "Java_java_util_zip_Deflater_init",
		 .module = "/usr/lib/jvm/17/lib/libzip.so",
		 .interprets = mw_suspects_interprets("/usr/lib/jvm/17/lib/libzip.so")},
		{.function = "java.util.zip.Deflater.init",
		 .module = "[java]",
		 .file = "Deflater.java",
		 .language = MW_LANGUAGE_JAVA},
		{.function = "shop.Orders.pack",
		 .module = "[java]",
		 .file = "Orders.java",
		 .language = MW_LANGUAGE_JAVA},
		{.function = "java.lang.Thread.run",
		 .module = "[java]",
		 .file = "Thread.java",
		 .language = MW_LANGUAGE_JAVA},
	};
	struct mw_report_stack stack = {.frames = made, .frame_count = 4};

	(void)state;
	assert_true(made[0].interprets);
	assert_int_equal(mw_suspects_frame(&stack, EXE), 2);
	stack.frame_count = 2;
	assert_int_equal(mw_suspects_frame(&stack, EXE), 1);
}

static size_t charged(const char *const (*frames)[2], size_t count, const char *suspect)
{
	struct mw_report_frame made[16];
	const struct mw_report_stack stack = {.frames = made, .frame_count = count, .suspect = suspect};

	assert_true(count <= 16);
	for (size_t i = 0; i < count; i++)
		made[i] = (struct mw_report_frame){.function = frames[i][0], .module = frames[i][1]};
	return mw_suspects_frame(&stack, EXE);
}

/* Java's direct buffers: all that is known are wrappers, and code that is in no file. */
static void test_generated(void **state)
{
	static const char jvm[] = "/usr/lib/jvm/libjvm.so";
	struct mw_report_frame frames[] = {{.function = "os::malloc(unsigned long)", .module = jvm},
					   {.function = "Unsafe_AllocateMemory0", .module = jvm},
					   {.function = "(generated code)", .generated = true}};
	const struct mw_report_stack stack = {.frames = frames, .frame_count = 3, .suspect = jvm};

	(void)state;
	assert_int_equal(mw_suspects_frame(&stack, EXE), 1);
}

/* Neither what cgo makes, nor Go's runtime and library, which are in each program; but packages of others. */
static void test_go(void **state)
{
	static const char path[] = "/home/me/go/src/example.org/shop/shop.go";
	struct mw_report_frame frames[] = {
		{.function = "_cgo_16dd0645634b_Cfunc__Cmalloc", .module = EXE},
		{.function = "runtime.asmcgocall", .module = EXE, .file = "/usr/lib/go-1.19/src/runtime/asm_amd64.s"},
		{.function = "main._cgo_cmalloc", .module = EXE, .file = "_cgo_gotypes.go"},
		{.function = "main._Cfunc_CString", .module = EXE, .file = "_cgo_gotypes.go"},
		{.function = "net.cgoLookupIP", .module = EXE, .file = "/usr/lib/go-1.19/src/net/cgo_unix.go"},
		{.function = "net.(*Dialer).Dial", .module = EXE, .file = "net/dial.go"},
		{.function = "example.org/shop.Order", .module = EXE, .file = path},
		{.function = "main.main", .module = EXE, .file = "/home/me/shop/main.go"},
	};
	struct mw_report_stack stack = {.frames = frames, .frame_count = 8, .suspect = EXE};

	(void)state;
	for (size_t i = 1; i < 8; i++)
		frames[i].language = MW_LANGUAGE_GO;
	assert_int_equal(mw_suspects_frame(&stack, EXE), 6);
	/* Nobody else's: the first of its library. */
	stack.frame_count = 6;
	assert_int_equal(mw_suspects_frame(&stack, EXE), 4);
}

static void test_frames(void **state)
{
	static const char stdcxx[] = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", libxml[] = "/usr/lib/libxml2.so.2",
			  libc[] = "/lib/x86_64-linux-gnu/libc.so.6", plugin[] = "/opt/shop/plugins/pay.so";
	const char *const own[][2] = {{"operator new(unsigned long)", stdcxx},
				      {"std::string::append(char)", EXE},
				      {"shop::Basket::add(int)", EXE},
				      {"main", EXE}};
	const char *const library[][2] = {{"xmlMallocLoc", libxml},
					  {"xmlNewNode", libxml},
					  {"xmlParse", libxml},
					  {"shop::load(char const*)", EXE},
					  {"main", EXE}};
	const char *const loop[][2] = {{"xmlMallocLoc", libxml}, {"xmlNewNode", libxml}, {"xmlParse", libxml},
				       {"xmlRun", libxml},       {"xmlLoop", libxml},    {"main", EXE},
				       {"start", libc}};
	const char *const loaded[][2] = {{"pay_open", plugin}, {"shop::pay()", EXE}};
	const char *const stripped[][2] = {{"xmalloc", EXE}, {NULL, EXE}, {"main", EXE}};
	const char *const system[][2] = {{"xmlMallocLoc", libxml}, {"xmlNewNode", libxml}, {"start", libc}};
	const char *const none[][2] = {{"malloc", libc}, {"strdup", libc}};
	/* Functions without names, called by an allocator's that has one, are its insides. */
	const char *const inside[][2] = {{NULL, EXE}, {NULL, EXE}, {"palloc", EXE}, {"PrepareQuery", EXE}};
	/* A library's algorithm calls the program. */
	const char *const called[][2] = {{"malloc", libc}, {NULL, EXE}, {"std::for_each(int)", EXE}, {"main", EXE}};
	const char *const launcher[][2] = {{NULL, libxml},    {"xmlParse", libxml}, {"xmlRun", libxml},
					   {"xmlGo", libxml}, {NULL, EXE},          {"__libc_start_call_main", libc}};
	const char *const script[][2] = {{"xmlMallocLoc", libxml},
					 {"xmlNewNode", libxml},
					 {"cfunction_call", EXE},
					 {"_PyEval_EvalFrameDefault", EXE},
					 {"main", EXE}};
	/* Static functions of an interpreter without symbols: whoever calls them has a name, unless that runs the script. */
	const char *const stripped_script[][2] = {
		{NULL, EXE}, {"PyByteArray_Resize", EXE}, {NULL, EXE}, {"_PyEval_EvalFrameDefault", EXE}};
	const char *const stripped_loop[][2] = {{NULL, EXE}, {"_PyEval_EvalFrameDefault", EXE}, {"main", EXE}};
	const char *const heap[][2] = {{"v8::base::OS::Allocate(void*)", EXE},
				       {"v8::internal::VirtualMemory::VirtualMemory(int)", EXE},
				       {"v8::internal::MemoryAllocator::AllocatePage(int)", EXE},
				       {"main", EXE}};

	(void)state;
	assert_int_equal(charged(own, 4, EXE), 2);
	/* What a library allocates for the program is the program's. */
	assert_int_equal(charged(library, 5, libxml), 3);
	/* That it runs main's loop says nothing of who leaks. */
	assert_int_equal(charged(loop, 7, libxml), 1);
	assert_int_equal(charged(loaded, 2, plugin), 0);
	assert_int_equal(charged(stripped, 3, EXE), 1);
	assert_int_equal(charged(system, 3, libxml), 1);
	assert_int_equal(charged(none, 2, NULL), 1);
	assert_int_equal(charged(inside, 4, EXE), 3);
	assert_int_equal(charged(called, 4, EXE), 1);
	assert_int_equal(charged(launcher, 6, libxml), 0);
	assert_int_equal(charged(heap, 4, EXE), 2);
	assert_int_equal(charged(script, 5, libxml), 1);
	assert_int_equal(charged(stripped_script, 4, EXE), 1);
	assert_int_equal(charged(stripped_loop, 3, EXE), 0);
}

/* Allocations of one line by several callers, none of which can be judged by itself. */
static void test_merged(void **state)
{
	struct mw_report *report;
	struct world world;
	uint32_t stacks[5], thread;

	(void)state;
	world_init(&world);
	world.window.length_ns = 10000000000;
	thread = world_thread(&world, 1, "one");
	for (uint32_t i = 0; i < 5; i++) {
		const mw_addr frames[] = {(mw_addr)(uintptr_t)&test_merged + 4,
					  (mw_addr)(uintptr_t)&test_frames + 4 + i};

		stacks[i] = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, 2, MW_STACK_COMPLETE);
	}
	for (uint32_t i = 0; i < 10; i++)
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x10000 + i * 16, 100, stacks[i % 5], thread,
			    i + 0.5);
	report = world_report(&world);
	assert_int_equal(report->suspect_count, 1);
	/* Two blocks say nothing, ten do. */
	for (size_t i = 0; i < report->stack_count; i++)
		assert_int_equal(report->stacks[i].growth.verdict, MW_GROWTH_TOO_SHORT);
	assert_int_equal(report->suspects[0].verdict, MW_GROWTH_STEADY);
	assert_int_equal(report->suspects[0].stack_count, report->stack_count);
	assert_int_equal(report->suspects[0].blocks, 10);
	assert_int_equal(report->suspects[0].bytes, 1000);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* What is certain comes before what is not, unless that grows much faster; what is but a trifle comes last. */
static void test_order(void **state)
{
	static const mw_addr callers[] = {(mw_addr)(uintptr_t)&test_wrappers + 4, (mw_addr)(uintptr_t)&test_frames + 4,
					  (mw_addr)(uintptr_t)&test_merged + 4, (mw_addr)(uintptr_t)&test_generated + 4,
					  (mw_addr)(uintptr_t)&charged + 4};
	/* Of so many bytes; one comes every so many steps, and one in so many stays. */
	static const struct {
		unsigned bytes, every, kept;
	} lines[] = {{2000, 10, 1}, {500, 1, 20}, {100, 1, 100}, {900, 1, 20}, {5000, 10, 1}};
	static const unsigned order[] = {4, 3, 1, 0, 2}, steps = 2000;
	struct mw_report *report;
	struct world world;
	uint32_t stacks[5];

	(void)state;
	world_init(&world);
	world_thread(&world, 1, "one");
	for (unsigned i = 0; i < 5; i++)
		stacks[i] = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, &callers[i], 1, MW_STACK_COMPLETE);
	for (unsigned step = 0; step < steps; step++)
		for (unsigned i = 0; i < 5; i++) {
			mw_addr addr = 0x1000000 + 0x10000 * (mw_addr)step + 0x2000 * i;
			double at = 10.0 * step / steps + 1e-5 * i;

			if (step % lines[i].every)
				continue;
			world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, addr, lines[i].bytes, stacks[i], 0, at);
			if (step % lines[i].kept)
				world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, addr, lines[i].bytes, stacks[i], 0,
					    at + 1e-6);
		}
	report = world_report(&world);
	assert_int_equal(report->suspect_count, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(report->suspects[i].verdict, MW_GROWTH_STEADY);
		assert_int_equal(report->suspects[i].bytes,
				 lines[order[i]].bytes * (steps / lines[order[i]].every / lines[order[i]].kept));
		assert_int_equal(report->suspects[i].certain, order[i] != 0 && order[i] != 4);
	}
	mw_report_destroy(report);
	world_deinit(&world);
}

static __attribute__((noinline, used)) void heap_page_allocate(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Ruby takes pages for its objects, evenly for so many seconds. */
static void judge_pages(unsigned seconds, enum mw_growth_verdict expected, const char *words)
{
	const mw_addr frames[] = {(mw_addr)(uintptr_t)&heap_page_allocate + 1, (mw_addr)(uintptr_t)&test_merged + 4};
	struct mw_report *report;
	struct world world;
	uint32_t stack, thread;

	world_init(&world);
	world.window.length_ns = seconds * UINT64_C(1000000000);
	thread = world_thread(&world, 1, "one");
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, 2, MW_STACK_COMPLETE);
	for (uint32_t i = 0; i < 100; i++)
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x100000 + i * 0x10000, 0x10000, stack, thread,
			    (i + 0.5) * seconds / 100);
	report = world_report(&world);
	assert_int_equal(report->suspect_count, 1);
	assert_string_equal(report->suspects[0].frame->function, "heap_page_allocate");
	assert_true(report->suspects[0].runtime_heap);
	assert_int_equal(report->suspects[0].verdict, expected);
	assert_int_equal(report->stacks[0].growth.verdict, expected);
	assert_non_null(strstr(report->suspects[0].sentence, words));
	mw_report_destroy(report);
	world_deinit(&world);
}

static void test_collected(void **state)
{
	(void)state;
	judge_pages(60, MW_GROWTH_TOO_SHORT, "garbage that it has not collected yet; watch for 300 s");
	judge_pages(400, MW_GROWTH_STEADY, "A runtime keeps its objects in it");
}

/* Of a process that has ended nobody can watch more. */
static void test_ended(void **state)
{
	const mw_addr frames[] = {(mw_addr)(uintptr_t)&test_merged + 4};
	struct mw_report *report;
	struct world world;

	(void)state;
	world_init(&world);
	world.window.ended = MW_END_EXIT;
	world_thread(&world, 1, "one");
	world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x10000, 100,
		    world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, 1, MW_STACK_COMPLETE), 0, 9.5);
	report = world_report(&world);
	assert_int_equal(report->suspect_count, 1);
	assert_int_equal(report->suspects[0].verdict, MW_GROWTH_TOO_SHORT);
	assert_string_equal(report->suspects[0].sentence,
			    "The process ended too early to tell a leak from memory in use.");
	mw_report_destroy(report);
	world_deinit(&world);
}

/* Blocks come evenly for 20 s, one in four of which is freed after a second, or none, in a program that holds these runtimes. */
static void judge_held(uint32_t runtimes, const char *exe, bool freed, enum mw_growth_verdict expected)
{
	const struct mw_stored_target target = {.runtimes = runtimes};
	const mw_addr frames[] = {(mw_addr)(uintptr_t)&test_merged + 4};
	struct mw_report *report;
	struct world world;
	uint32_t stack, thread;

	world_init(&world);
	world.window.length_ns = 20000000000;
	world.input.target = &target;
	world.input.exe = exe;
	thread = world_thread(&world, 1, "one");
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, 1, MW_STACK_COMPLETE);
	for (uint32_t i = 0; i < 2000; i++) {
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x100000 + i * 0x400, 500, stack, thread, i * 0.01);
		if (freed && i >= 100 && i % 4 == 0)
			world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x100000 + (i - 100) * 0x400, 500, stack,
				    thread, i * 0.01 + 1e-3);
	}
	report = world_report(&world);
	assert_int_equal(report->stack_count, 1);
	assert_int_equal(report->stacks[0].growth.verdict, expected);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* What a collector frees some of it may free more of. */
static void test_held_by_runtime(void **state)
{
	char exe[4096] = "";
	uint32_t ruby = 0, python = 0;

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	for (unsigned i = 0; i < MW_RUNTIMES; i++) {
		ruby |= strcmp(mw_runtimes[i].name, "ruby") == 0 ? 1u << i : 0;
		python |= strcmp(mw_runtimes[i].name, "python") == 0 ? 1u << i : 0;
	}
	judge_held(ruby, exe, true, MW_GROWTH_TOO_SHORT);
	judge_held(ruby, exe, false, MW_GROWTH_STEADY);
	judge_held(python, exe, true, MW_GROWTH_STEADY);
	judge_held(ruby, "/usr/bin/other", true, MW_GROWTH_STEADY);
	judge_held(0, exe, true, MW_GROWTH_STEADY);
}

/* Elements come until that moment of 10 s, and their table is replaced by a larger one once. */
static void judge_table(double until, enum mw_growth_verdict elements, enum mw_growth_verdict table)
{
	const mw_addr line = (mw_addr)(uintptr_t)&test_merged + 4, work = (mw_addr)(uintptr_t)&test_order + 4;
	struct mw_report *report;
	struct world world;
	uint32_t stacks[3], thread, seen = 0;

	world_init(&world);
	thread = world_thread(&world, 1, "one");
	for (uint32_t i = 0; i < 3; i++) {
		const mw_addr frames[] = {i < 2 ? line : work, (mw_addr)(uintptr_t)&test_frames + 4 + i};

		stacks[i] = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, 2, MW_STACK_COMPLETE);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		mw_addr addr = 0x100000 + i * 0x1000;
		double at = i * 0.01;

		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, addr, 200, stacks[2], thread, at);
		world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, addr, 200, stacks[2], thread, at + 1e-5);
		if (at < until)
			world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, addr + 0x400, 80, stacks[0], thread,
				    at + 2e-5);
		if (i == 100) {
			world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, addr + 0x800, 4328, stacks[1], thread,
				    at + 3e-5);
			world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x1000, 2056, stacks[1], thread, at + 4e-5);
		}
	}
	report = world_report(&world);
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];

		if (!stack->impacting.count)
			continue;
		seen++;
		assert_int_equal(stack->growth.verdict, stack->impacting.count == 1 ? table : elements);
	}
	assert_int_equal(seen, 2);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* A table stops growing with what is in it. */
static void test_storage_of_elements(void **state)
{
	(void)state;
	judge_table(4, MW_GROWTH_PLATEAU, MW_GROWTH_PLATEAU);
	judge_table(10, MW_GROWTH_STEADY, MW_GROWTH_TOO_SHORT);
}

UNIT_GROUP(suspects)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrappers),
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_generated),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_collected),
		cmocka_unit_test(test_held_by_runtime),
		cmocka_unit_test(test_storage_of_elements),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
