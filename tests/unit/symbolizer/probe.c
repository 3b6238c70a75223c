// SPDX-License-Identifier: MIT
/* probe.c: see probe.h. */
#include "probe.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

typedef int (*fixture_fn)(void (*)(void));

static mw_addr seen;
static jmp_buf back;

/* Leaves by longjmp, as one of the fixtures has no code to return to. */
static __attribute__((noinline)) void note_caller(void)
{
	seen = (mw_addr)(uintptr_t)__builtin_return_address(0);
	longjmp(back, 1);
}

static void expect_success(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

void probe_open(struct probe *probe, const char *library)
{
	struct mw_maps maps = {0};

	probe->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!probe->library)
		fail_msg("%s", dlerror());
	expect_success(mw_maps_read(getpid(), &maps));
	expect_success(mw_modules_create(&probe->modules));
	expect_success(mw_modules_refresh(probe->modules, getpid(), &maps, NULL, NULL));
	expect_success(mw_symbolizer_create(probe->modules, &probe->symbolizer));
	mw_maps_deinit(&maps);
}

void probe_close(struct probe *probe)
{
	mw_symbolizer_destroy(probe->symbolizer);
	mw_modules_destroy(probe->modules);
	dlclose(probe->library);
}

mw_addr probe_address(const struct probe *probe, const char *name)
{
	fixture_fn function = (fixture_fn)dlsym(probe->library, name);

	assert_non_null(function);
	if (!setjmp(back))
		function(note_caller);
	return seen;
}

size_t probe_frames(const struct probe *probe, const char *name, const struct mw_symbol_frame **frames)
{
	mw_addr addr = probe_address(probe, name);
	const struct mw_module *module = mw_modules_find(probe->modules, addr);
	size_t count;

	assert_non_null(module);
	expect_success(mw_symbolizer_resolve(probe->symbolizer, module->number, addr, true, frames, &count));
	return count;
}

const char *probe_source(const struct probe *probe, const char *name)
{
	const struct mw_module *module = mw_modules_find(probe->modules, probe_address(probe, name));

	return mw_symbolizer_source(probe->symbolizer, module->number, NULL);
}

void probe_expect(const struct mw_symbol_frame *frame, const char *function, const char *file, uint32_t line,
		  bool inlined)
{
	assert_non_null(frame->function);
	assert_string_equal(frame->function, function);
	if (file) {
		assert_non_null(frame->file);
		assert_string_equal(basename(frame->file), file);
	} else {
		assert_null(frame->file);
	}
	assert_int_equal(frame->line, line);
	assert_int_equal(frame->inlined, inlined);
}
