// SPDX-License-Identifier: MIT
/* test_detour_entries.c: all that is hooked on this host takes a detour. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <memwatch/arch.h>

static const struct mw_arch *arch;

static const char *const allocators[] = {
	"malloc",   "free",    "calloc",       "realloc", "posix_memalign", "aligned_alloc", "valloc",
	"memalign", "pvalloc", "reallocarray", "mmap",    "mmap64",         "munmap",        "mremap",
	"brk",      "sbrk",    "_exit",        "cfree",   "shmat",          "shmdt",
};

/* The executable segment that holds an address. */
struct segment {
	uintptr_t wanted;
	const uint8_t *start;
	size_t size;
};

static int find_segment(struct dl_phdr_info *info, size_t size, void *data)
{
	struct segment *segment = data;

	(void)size;
	for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_LOAD && (header->p_flags & PF_X) && segment->wanted >= start &&
		    segment->wanted - start < header->p_memsz) {
			segment->start = (const uint8_t *)start;
			segment->size = header->p_memsz;
			return 1;
		}
	}
	return 0;
}

/* With its size known and without; near and with as much distance as is allowed there is a trampoline for it. */
static void check(const char *name, const void *function)
{
	static const struct mw_trampoline_frame frame = {0x1000, 1, 72};
	struct segment segment = {.wanted = (uintptr_t)function};
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	assert_true(dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol);
	assert_int_equal(dl_iterate_phdr(find_segment, &segment), 1);
	for (unsigned known = 0; known < 2; known++) {
		mw_addr base = (uintptr_t)segment.start, pc = (uintptr_t)function;
		struct mw_detour detour;
		struct mw_trampoline trampoline;

		arch->detour(segment.start, segment.size, base, pc, known ? symbol->st_size : 0, &detour);
		if (detour.why)
			fail_msg("%s: %s", name, detour.why);
		assert_null(arch->trampoline(&detour, &frame, base + segment.size + 0x1000000, &trampoline));
	}
}

static void test_libc(void **state)
{
	void *library = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	unsigned found = 0;

	(void)state;
	if (!library) {
		skip();
		return;
	}
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++) {
		void *function = dlsym(library, allocators[i]);

		if (!function)
			continue;
		found++;
		check(allocators[i], function);
	}
	dlclose(library);
	assert_true(found >= 15);
}

static void test_unwinder(void **state)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_LAZY);
	void *function = library ? dlsym(library, "_Unwind_Find_FDE") : NULL;

	(void)state;
	if (!library) {
		skip();
		return;
	}
	assert_non_null(function);
	check("_Unwind_Find_FDE", function);
	dlclose(library);
}

/* _dl_debug_state, which dlsym keeps to itself. */
static void test_loader(void **state)
{
	(void)state;
	if (!_r_debug.r_brk)
		skip();
	check("_dl_debug_state", (const void *)_r_debug.r_brk);
}

UNIT_GROUP(detour_entries)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_unwinder),
		cmocka_unit_test(test_loader),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
