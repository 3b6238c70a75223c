// SPDX-License-Identifier: MIT
/* test_entries.c: the first instructions of this host's libc can all be displaced. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <memwatch/arch.h>
#include <unistd.h>

static const struct mw_arch *arch;

/* All that memwatch puts a breakpoint on, where libc has it. */
static const char *const hooked[] = {
	"malloc",         "calloc",        "realloc",      "reallocarray", "free",    "cfree",
	"memalign",       "aligned_alloc", "valloc",       "pvalloc",      "mmap",    "posix_memalign",
	"mmap64",         "munmap",        "mremap",       "brk",          "sbrk",    "malloc_usable_size",
	"__libc_malloc",  "__libc_calloc", "shmat",        "shmdt",        "fork",    "__libc_memalign",
	"__libc_realloc", "__libc_free",   "pthread_exit", "dlopen",       "dlclose", "pthread_create",
	"exit",           "_exit",         "longjmp",      "siglongjmp",   "strdup",  "__register_frame_info",
};

/* The real libc, also where a sanitizer's malloc stands before it. */
static void *open_libc(void)
{
	return dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
}

static void test_hooked_functions(void **state)
{
	void *libc = open_libc();
	unsigned found = 0;

	(void)state;
	if (!libc)
		skip();
	for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++) {
		const uint8_t *code = dlsym(libc, hooked[i]);
		struct mw_insn_plan plan;

		if (!code)
			continue;
		found++;
		arch->plan(code, MW_INSN_MAX, (uint64_t)(uintptr_t)code, &plan);
		if (plan.how == MW_INSN_REFUSE)
			fail_msg("%s: %s", hooked[i], plan.why);
	}
	assert_true(found >= 20);
	dlclose(libc);
}

/* Count what stands at the entry of every function that the symbol table exports. */
static void plan_symbols(Elf *elf, Elf_Scn *section, uint64_t base, unsigned *functions, unsigned *refused)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	assert_non_null(gelf_getshdr(section, &header));
	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		struct mw_insn_plan plan;

		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0)
			continue;
		arch->plan((const uint8_t *)(uintptr_t)(base + symbol.st_value), MW_INSN_MAX, base + symbol.st_value,
			   &plan);
		(*functions)++;
		if (plan.how == MW_INSN_REFUSE) {
			print_message("%s: %s\n", elf_strptr(elf, header.sh_link, symbol.st_name), plan.why);
			(*refused)++;
		}
	}
}

static void test_all_exported_functions(void **state)
{
	void *libc = open_libc();
	unsigned functions = 0, refused = 0;
	struct link_map *map = NULL;
	Elf_Scn *section = NULL;
	Elf *elf;
	int fd;

	(void)state;
	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &map) != 0 || !map) {
		skip();
		return;
	}
	assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			plan_symbols(elf, section, map->l_addr, &functions, &refused);
	}
	elf_end(elf);
	close(fd);
	dlclose(libc);
	print_message("%u functions, %u refused\n", functions, refused);
	assert_true(functions > 500);
	/* A function that starts with a system call or a loop is rare, and none allocates. */
	assert_true(refused * 100 <= functions);
}

UNIT_GROUP(entries)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hooked_functions),
		cmocka_unit_test(test_all_exported_functions),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
