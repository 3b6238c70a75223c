// SPDX-License-Identifier: MIT
/* fallback_test.c: stepping out of functions that no table describes. */
#include "living.h"
#include "shapes.h"
#include "unit.h"
#include "unwind/fallback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct mw_modules *modules;

/* What the step out of the shape under test came to. */
static struct {
	unsigned times;
	enum mw_fallback_step found;
	struct mw_regs out, caller;
} seen;

static enum mw_fallback_step step(const struct mw_regs *regs, struct mw_regs *out)
{
	static struct mw_fallback fallback;
	pid_t self = getpid();
	struct mw_memory_view memory = living_memory(&self);

	fallback.modules = modules;
	fallback.arch = living_arch();
	return mw_fallback_step(&fallback, &memory, regs, out);
}

void shape_seen(const struct mw_regs *regs, const struct mw_regs *caller)
{
	seen.times++;
	seen.caller = *caller;
	seen.found = step(regs, &seen.out);
}

/* What can't be stepped out of: what comes of it is checked. */
static bool is_otherwise(const char *name)
{
	static const struct {
		const char *name;
		enum mw_fallback_step found;
	} others[] = {
		{"no_return", MW_FALLBACK_END},
		{"halt", MW_FALLBACK_END},
		{"switch", MW_FALLBACK_LOST},
		{"generated_switch", MW_FALLBACK_LOST},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(name, others[i].name) != 0)
			continue;
		if (seen.found != others[i].found)
			fail_msg("%s: %d", name, seen.found);
		return true;
	}
	return false;
}

static void steps_out_of_each(void **state)
{
	unsigned number = 0;
	const char *name;

	(void)state;
	for (;; number++) {
		memset(&seen, 0, sizeof(seen));
		name = shape_run(number);
		if (!name)
			break;
		assert_int_equal(seen.times, 1);
		if (is_otherwise(name))
			continue;
		if (seen.found != MW_FALLBACK_FOUND)
			fail_msg("%s: %d", name, seen.found);
		if (seen.out.pc != seen.caller.pc)
			fail_msg("%s: pc %#llx, not %#llx", name, (unsigned long long)seen.out.pc,
				 (unsigned long long)seen.caller.pc);
		for (unsigned i = 0; i < MW_REG_COUNT; i++)
			if (seen.out.gpr[i] != seen.caller.gpr[i])
				fail_msg("%s: register %u: %#llx, not %#llx", name, i,
					 (unsigned long long)seen.out.gpr[i], (unsigned long long)seen.caller.gpr[i]);
	}
	assert_true(number >= 10);
}

static void is_lost_outside_of_code(void **state)
{
	struct mw_regs regs = {.pc = (uint64_t)(uintptr_t)&regs}, out = {.pc = 77};

	(void)state;
	regs.gpr[living_arch()->dwarf_sp] = (uint64_t)(uintptr_t)&regs;
	assert_int_equal(step(&regs, &out), MW_FALLBACK_LOST);
	regs.pc = 0;
	assert_int_equal(step(&regs, &out), MW_FALLBACK_LOST);
	regs.pc = 1;
	assert_int_equal(step(&regs, &out), MW_FALLBACK_LOST);
	assert_int_equal(out.pc, 77);
}

/* Anywhere in any module, with any stack: an answer, and never a pc that no call stands before. */
static void takes_anything(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		const struct mw_module *module = mw_modules_get(modules, round % (uint32_t)mw_modules_count(modules));
		struct mw_regs regs = {.pc = 0}, out;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		regs.pc = module->start + (seed >> 20) % (module->end - module->start);
		regs.gpr[living_arch()->dwarf_sp] = round % 2 ? seed : (uint64_t)(uintptr_t)&out & ~(uint64_t)7;
		if (step(&regs, &out) == MW_FALLBACK_FOUND)
			assert_non_null(mw_modules_find(modules, out.pc - 1));
	}
}

UNIT_GROUP(fallback)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_out_of_each),
		cmocka_unit_test(is_lost_outside_of_code),
		cmocka_unit_test(takes_anything),
	};
	int failed;

	modules = living_modules(getpid());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	mw_modules_destroy(modules);
	return failed;
}
