// SPDX-License-Identifier: MIT
/* hooks_test.c: what would be hooked in the test's own process, and what not when somebody was there before. */
#include "engine/survey.h"
#include "tracee/tracee.h"
#include "unit.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The process's memory with something else at one address. */
static struct {
	mw_addr at;
	uint8_t bytes[16];
	size_t size;
	bool unreadable;
} patch;

static bool read_patched(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context;
	if (patch.unreadable && patch.at >= addr && patch.at - addr < size)
		return false;
	if (mw_remote_read(getpid(), addr, out, size) != size)
		return false;
	for (size_t i = 0; i < patch.size; i++)
		if (patch.at + i >= addr && patch.at + i - addr < size)
			((uint8_t *)out)[patch.at + i - addr] = patch.bytes[i];
	return true;
}

static const struct mw_memory_view memory = {.read = read_patched};
static const struct mw_arch *arch;
static struct mw_modules *modules;

static void refresh(void)
{
	struct mw_maps maps = {0};
	size_t added, removed;

	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(mw_modules_refresh(modules, getpid(), &maps, &added, &removed));
	mw_maps_deinit(&maps);
}

static int setup(void **state)
{
	(void)state;
	memset(&patch, 0, sizeof(patch));
	assert_null(mw_modules_create(&modules));
	refresh();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mw_modules_destroy(modules);
	return 0;
}

static struct mw_hooks find(uint32_t first, bool heap, bool vm)
{
	struct mw_hooks hooks = {0};
	struct mw_error *err = mw_hooks_find(&hooks, modules, first, arch, &memory, heap, vm);

	if (err)
		fail_msg("%s", mw_error_text(err));
	return hooks;
}

/* The C library's, also where a sanitizer's stands before it. */
static mw_addr libc_address(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY), *found;

	assert_non_null(libc);
	found = dlsym(libc, name);
	assert_non_null(found);
	dlclose(libc);
	return (mw_addr)(uintptr_t)found;
}

static const struct mw_hook *hook_at(const struct mw_hooks *hooks, mw_addr addr)
{
	const struct mw_hook *found = NULL;

	for (size_t i = 0; i < hooks->count; i++) {
		if (hooks->items[i].info.address != addr)
			continue;
		assert_null(found); /* one hook an address */
		found = &hooks->items[i];
	}
	return found;
}

static void finds_libc(void **state)
{
	static const struct {
		const char *name;
		enum mw_role role;
		enum mw_kind kind;
	} expected[] = {
		{"malloc", MW_ROLE_MALLOC, MW_KIND_HEAP},
		{"calloc", MW_ROLE_CALLOC, MW_KIND_HEAP},
		{"realloc", MW_ROLE_REALLOC, MW_KIND_HEAP},
		{"free", MW_ROLE_FREE, MW_KIND_HEAP},
		{"posix_memalign", MW_ROLE_POSIX_MEMALIGN, MW_KIND_HEAP},
		{"mmap", MW_ROLE_MMAP, MW_KIND_VM},
		{"munmap", MW_ROLE_MUNMAP, MW_KIND_VM},
		{"mremap", MW_ROLE_MREMAP, MW_KIND_VM},
		{"sbrk", MW_ROLE_SBRK, MW_KIND_VM},
	};
	struct mw_hooks hooks = find(0, true, true);
	uint32_t last = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		mw_addr addr = libc_address(expected[i].name);
		const struct mw_hook *hook = hook_at(&hooks, addr);

		if (!hook)
			fail_msg("%s is not there", expected[i].name);
		assert_int_equal(hook->info.role, expected[i].role);
		assert_int_equal(hook->info.kind, expected[i].kind);
		assert_null(hook->info.refused);
		assert_true(hook->glibc);
		assert_int_equal(hook->plan.pc, addr);
		assert_int_not_equal(hook->plan.how, MW_INSN_REFUSE);
		assert_non_null(strstr(hook->info.module, "libc"));
		assert_ptr_equal(mw_modules_get(modules, hook->module), mw_modules_find(modules, addr));
	}
	/* In the order of modules. */
	for (size_t i = 0; i < hooks.count; i++) {
		assert_true(hooks.items[i].module >= last);
		last = hooks.items[i].module;
	}
	assert_true(mw_hooks_usable(&hooks, MW_KIND_HEAP) >= 5);
	assert_true(mw_hooks_usable(&hooks, MW_KIND_VM) >= 4);
	mw_hooks_deinit(&hooks);
	mw_hooks_deinit(&hooks);
}

static void leaves_out_what_is_not_wanted(void **state)
{
	struct mw_hooks both = find(0, true, true), heap = find(0, true, false), vm = find(0, false, true),
			none = find(0, false, false);

	(void)state;
	assert_int_equal(none.count, 0);
	assert_int_equal(heap.count + vm.count, both.count);
	assert_int_equal(mw_hooks_usable(&heap, MW_KIND_VM), 0);
	assert_int_equal(mw_hooks_usable(&vm, MW_KIND_HEAP), 0);
	assert_int_equal(mw_hooks_usable(&heap, MW_KIND_HEAP), mw_hooks_usable(&both, MW_KIND_HEAP));
	assert_int_equal(mw_hooks_usable(&vm, MW_KIND_VM), mw_hooks_usable(&both, MW_KIND_VM));
	mw_hooks_deinit(&both);
	mw_hooks_deinit(&heap);
	mw_hooks_deinit(&vm);
	mw_hooks_deinit(&none);
}

/* With the patch in place malloc is refused for that reason, and nothing else is. */
static void expect_refused(const char *reason)
{
	struct mw_hooks hooks = find(0, true, true);
	const struct mw_hook *hook = hook_at(&hooks, patch.at);

	assert_non_null(hook);
	if (!hook->info.refused || !strstr(hook->info.refused, reason))
		fail_msg("%s, not %s", hook->info.refused ? hook->info.refused : "not refused", reason);
	for (size_t i = 0; i < hooks.count; i++)
		if (hooks.items[i].info.refused && &hooks.items[i] != hook)
			fail_msg("%s is refused: %s", hooks.items[i].info.function, hooks.items[i].info.refused);
	assert_int_equal(mw_hooks_usable(&hooks, MW_KIND_HEAP) + mw_hooks_usable(&hooks, MW_KIND_VM), hooks.count - 1);
	mw_hooks_deinit(&hooks);
}

static void refuses_what_another_tool_has(void **state)
{
	static const uint8_t jump[] = {0xe9, 0x11, 0x22, 0x33, 0x44};

	(void)state;
	patch.at = libc_address("malloc");
	patch.size = 1;
	memcpy(patch.bytes, arch->breakpoint, arch->breakpoint_length);
	expect_refused("breakpoint");
	memcpy(patch.bytes, jump, sizeof(jump));
	patch.size = sizeof(jump);
	expect_refused("patched");
	patch.size = 0;
	patch.unreadable = true;
	expect_refused("can't be read");
}

/* Behind the first instruction nothing is displaced. */
static void a_patch_further_on_is_no_reason(void **state)
{
	struct mw_hooks hooks = find(0, true, true);
	const struct mw_hook *hook = hook_at(&hooks, libc_address("malloc"));

	(void)state;
	assert_non_null(hook);
	patch.at = hook->info.address + hook->plan.length;
	patch.bytes[0] = 0xcc;
	patch.size = 1;
	mw_hooks_deinit(&hooks);
	hooks = find(0, true, true);
	assert_null(hook_at(&hooks, libc_address("malloc"))->info.refused);
	mw_hooks_deinit(&hooks);
}

/* A library that comes is looked at alone, and one that has gone is not looked at any more. */
static void appends_what_comes(void **state)
{
	struct mw_hooks hooks = find(0, true, true);
	size_t before = hooks.count;
	uint32_t first = (uint32_t)mw_modules_count(modules);
	void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
	mw_addr own;

	(void)state;
	assert_non_null(plugin);
	refresh();
	own = (mw_addr)(uintptr_t)dlsym(plugin, "malloc");
	assert_null(mw_hooks_find(&hooks, modules, first, arch, &memory, true, true));
	assert_int_equal(hooks.count, before + 2);
	for (size_t i = before; i < hooks.count; i++) {
		assert_int_equal(hooks.items[i].module, first);
		assert_string_equal(hooks.items[i].info.module, PLUGIN);
		assert_false(hooks.items[i].glibc);
	}
	assert_non_null(hook_at(&hooks, own));
	assert_null(mw_hooks_find(&hooks, modules, first + 1, arch, &memory, true, true));
	assert_int_equal(hooks.count, before + 2);
	dlclose(plugin);
	refresh();
	assert_null(mw_hooks_find(&hooks, modules, first, arch, &memory, true, true));
	assert_int_equal(hooks.count, before + 2);
	mw_hooks_deinit(&hooks);
}

/* What was unmapped before it could be read is not missed; what another tool had patched until then is. */
static void rechecks_what_has_gone(void **state)
{
	void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
	struct mw_hooks unreadable, patched;

	(void)state;
	assert_non_null(plugin);
	refresh();
	patch.at = (mw_addr)(uintptr_t)dlsym(plugin, "malloc");
	patch.unreadable = true;
	unreadable = find(0, true, true);
	patch.unreadable = false;
	memcpy(patch.bytes, arch->breakpoint, arch->breakpoint_length);
	patch.size = arch->breakpoint_length;
	patched = find(0, true, true);
	assert_non_null(hook_at(&unreadable, patch.at)->info.refused);
	assert_non_null(hook_at(&patched, patch.at)->info.refused);
	dlclose(plugin);
	refresh();
	mw_hooks_recheck(&unreadable, modules, arch, &memory);
	mw_hooks_recheck(&patched, modules, arch, &memory);
	assert_null(hook_at(&unreadable, patch.at)->info.refused);
	assert_non_null(hook_at(&patched, patch.at)->info.refused);
	mw_hooks_deinit(&unreadable);
	mw_hooks_deinit(&patched);
}

/* A call that was made before there was a hook at its entry: its mapping would be nobody's. */
static void tells_calls_that_map(void **state)
{
	struct mw_hook hooks[] = {
		{.info = {.address = 0x1000, .role = MW_ROLE_MMAP}, .size = 0x40},
		{.info = {.address = 0x2000, .role = MW_ROLE_MALLOC}, .size = 0x40},
		{.info = {.address = 0x3000, .role = MW_ROLE_MREMAP}, .size = 0x40},
		{.info = {.address = 0x4000, .role = MW_ROLE_MUNMAP}, .size = 0x40},
		{.info = {.address = 0x5000, .role = MW_ROLE_MMAP}},
	};
	const struct mw_survey survey = {.hooks = {.items = hooks, .count = sizeof(hooks) / sizeof(hooks[0])}};

	(void)state;
	assert_true(mw_survey_is_mapping(&survey, 0x1001));
	assert_true(mw_survey_is_mapping(&survey, 0x103f));
	assert_true(mw_survey_is_mapping(&survey, 0x3020));
	/* At its entry the hook will see it. */
	assert_false(mw_survey_is_mapping(&survey, 0x1000));
	assert_false(mw_survey_is_mapping(&survey, 0x1040));
	assert_false(mw_survey_is_mapping(&survey, 0x2020));
	assert_false(mw_survey_is_mapping(&survey, 0x4020));
	assert_false(mw_survey_is_mapping(&survey, 0x5001));
	assert_false(mw_survey_is_mapping(&survey, 0));
}

static void names_are_there(void **state)
{
	(void)state;
	for (int role = 0; role < MW_ROLE_COUNT; role++)
		assert_string_not_equal(mw_role_name((enum mw_role)role), "?");
	assert_string_equal(mw_role_name(MW_ROLE_COUNT), "?");
	for (int end = 0; end <= MW_END_LOST; end++)
		assert_string_not_equal(mw_window_end_name((enum mw_window_end)end), "?");
	assert_string_equal(mw_window_end_name((enum mw_window_end)99), "?");
	assert_string_equal(mw_engine_find("trap")->name, "trap");
	assert_null(mw_engine_find("tra"));
	assert_null(mw_engine_find(""));
}

UNIT_GROUP(hooks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_libc, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_out_what_is_not_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_what_another_tool_has, setup, teardown),
		cmocka_unit_test_setup_teardown(a_patch_further_on_is_no_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(appends_what_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(rechecks_what_has_gone, setup, teardown),
		cmocka_unit_test(tells_calls_that_map),
		cmocka_unit_test(names_are_there),
	};

	arch = mw_arch_find(mw_target_machine());
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
