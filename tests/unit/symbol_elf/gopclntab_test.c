// SPDX-License-Identifier: MIT
/* gopclntab_test.c: Go's table of functions, of each of its forms, made by hand; and spoiled. */
#include "symbol/gopclntab.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CODE    0x400000u /* vaddr of code, and of all that is only read */
#define TEXT    0x1000u   /* where Go's code begins in it */
#define TABLE   0x2000u
#define INLINED 0x3000u /* what functions' data is counted from */
#define DATA    0x4000u /* in the file, and from CODE: what is written, with runtime.moduledata */
#define SIZE    0x5000u

/* A file with the table, as bytes. */
struct made {
	uint8_t bytes[SIZE];
	size_t at; /* where the next one goes */
	bool absolute, start_lines;
};

static void put(struct made *made, uint64_t value, size_t size)
{
	assert_true(made->at + size <= SIZE);
	memcpy(made->bytes + made->at, &value, size);
	made->at += size;
}

static void put_text(struct made *made, const char *text)
{
	memcpy(made->bytes + made->at, text, strlen(text) + 1);
	made->at += strlen(text) + 1;
}

static void put_headers(struct made *made)
{
	static const char names[] = "\0.gopclntab\0.names";
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = CODE, .p_filesz = DATA, .p_memsz = DATA},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W,
		 .p_offset = DATA,
		 .p_vaddr = CODE + DATA,
		 .p_filesz = SIZE - DATA,
		 .p_memsz = SIZE - DATA},
	};
	const Elf64_Shdr sections[] = {
		{.sh_type = SHT_NULL},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC,
		 .sh_addr = CODE + TABLE,
		 .sh_offset = TABLE,
		 .sh_size = INLINED - TABLE},
		{.sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = 0x400, .sh_size = sizeof(names)},
	};
	Elf64_Ehdr head = {.e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = 0x100,
			   .e_shoff = 0x200,
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3,
			   .e_shstrndx = 2};

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(made->bytes, &head, sizeof(head));
	memcpy(made->bytes + 0x100, segments, sizeof(segments));
	memcpy(made->bytes + 0x200, sections, sizeof(sections));
	memcpy(made->bytes + 0x400, names, sizeof(names));
}

/* Where the parts begin, from the table's begin. */
enum { NAMES = 0x100, UNITS = 0x200, FILES = 0x240, VALUES = 0x300, FUNCTIONS = 0x400, RECORDS = 0x500 };

/* Lists of values: a change, zigzag, and for how many bytes it is good. */
static const uint8_t no_frame[] = {2, 64, 0},                /* 0 */
	frame_24[] = {2, 4, 48, 56, 47, 4, 0},               /* 0, 24 from byte 4 to 60, 0 */
	file_0[] = {2, 64, 0}, lines[] = {22, 16, 4, 48, 0}, /* 10, then 12 from byte 16 on */
	inlined[] = {0, 8, 2, 8, 1, 48, 0};                  /* -1, 0 from byte 8 to 16, -1 */

static uint32_t put_values(struct made *made, const uint8_t *values, size_t size)
{
	uint32_t offset = (uint32_t)(made->at - TABLE - VALUES);

	memcpy(made->bytes + made->at, values, size);
	made->at += size;
	return offset;
}

#define PUT_VALUES(made, values) put_values(made, values, sizeof(values))

static void put_record(struct made *made, uint64_t start, uint32_t name, uint32_t sizes, uint32_t files, uint32_t line,
		       uint32_t tree, uint8_t flags)
{
	uint32_t values = tree ? 3 : 0, data = tree ? 4 : 0;

	put(made, made->absolute ? CODE + TEXT + start : start, made->absolute ? 8 : 4);
	put(made, name, 4);
	put(made, 0, 4); /* arguments */
	put(made, 0, 4); /* deferreturn */
	put(made, sizes, 4);
	put(made, files, 4);
	put(made, line, 4);
	put(made, values, 4);
	put(made, 0, 4); /* unit */
	if (made->start_lines)
		put(made, 9, 4);
	put(made, 0, 1);
	put(made, flags, 1);
	put(made, 0, 1);
	put(made, data, 1);
	for (uint32_t i = 0; i < values; i++)
		put(made, i == 2 ? tree : 0, 4);
	for (uint32_t i = 0; i < data; i++)
		put(made, i == 3 ? 0x10 : UINT32_MAX, 4);
}

/* main.leak (64 bytes, with main.wrap inlined in it), then runtime.goexit, whose record is at *goexit. */
static void make(struct made *made, uint32_t magic)
{
	uint32_t sizes, none, files, line, tree, records[2];

	memset(made, 0, sizeof(*made));
	made->absolute = magic == 0xfffffffa;
	made->start_lines = magic == 0xfffffff1;
	put_headers(made);
	made->at = TABLE;
	put(made, magic, 4);
	put(made, 0, 2);
	put(made, 1, 1);
	put(made, 8, 1);
	put(made, 2, 8);
	put(made, 1, 8);
	if (!made->absolute)
		put(made, CODE + TEXT, 8);
	put(made, NAMES, 8);
	put(made, UNITS, 8);
	put(made, FILES, 8);
	put(made, VALUES, 8);
	put(made, FUNCTIONS, 8);
	made->at = TABLE + NAMES + 1;
	put_text(made, "main.leak");      /* 1 */
	put_text(made, "runtime.goexit"); /* 11 */
	put_text(made, "main.wrap");      /* 26 */
	made->at = TABLE + UNITS;
	put(made, 0, 4);
	made->at = TABLE + FILES;
	put_text(made, "/src/leak.go");
	made->at = TABLE + VALUES + 1;
	sizes = PUT_VALUES(made, frame_24);
	none = PUT_VALUES(made, no_frame);
	files = PUT_VALUES(made, file_0);
	line = PUT_VALUES(made, lines);
	tree = PUT_VALUES(made, inlined);
	made->at = TABLE + RECORDS;
	records[0] = RECORDS - FUNCTIONS;
	put_record(made, 0, 1, sizes, files, line, tree, 0);
	records[1] = (uint32_t)(made->at - TABLE - FUNCTIONS);
	put_record(made, 64, 11, none, files, line, 0, 1);
	made->at = TABLE + FUNCTIONS;
	for (unsigned i = 0; i < 3; i++) {
		put(made, made->absolute ? CODE + TEXT + i * 64u : i * 64u, made->absolute ? 8 : 4);
		put(made, i < 2 ? records[i] : 0, made->absolute ? 8 : 4);
	}
	/* runtime.moduledata, not at the very begin, and what it leads to. */
	made->at = DATA + 64;
	for (unsigned i = 0; i < 64; i++)
		put(made,
		    i == 0                               ? CODE + TABLE
		    : i == 22                            ? CODE + TEXT
		    : i == (made->start_lines ? 40 : 38) ? CODE + INLINED
							 : 0,
		    8);
	made->at = INLINED + 0x10;
	if (made->start_lines)
		put(made, 0, 4); /* kind */
	else
		for (unsigned i = 0; i < 3; i++)
			put(made, 0, 4); /* parent and kind, file, line */
	put(made, 26, 4);
	put(made, 20, 4); /* a place of the call: line 12 */
}

static struct mw_elf *open_made(const struct made *made)
{
	struct mw_elf *elf = NULL;

	assert_null(mw_elf_open_memory(made->bytes, SIZE, "made", &elf));
	return elf;
}

static void check(uint32_t magic)
{
	struct made *made = malloc(sizeof(*made));
	struct mw_go_frame frames[MW_GO_INLINED];
	struct mw_go_function function;
	struct mw_go_values sizes;
	struct mw_go_table table;
	struct mw_elf *elf;

	assert_non_null(made);
	make(made, magic);
	elf = open_made(made);
	assert_true(mw_elf_is_go(elf));
	assert_true(mw_go_table_init(&table, elf));
	assert_int_equal(mw_go_code_size(&table), 128);
	assert_false(mw_go_function_find(&table, CODE + TEXT - 1, &function));
	assert_false(mw_go_function_find(&table, CODE + TEXT + 128, &function));
	assert_true(mw_go_function_find(&table, CODE + TEXT + 127, &function));
	assert_string_equal(function.name, "runtime.goexit");
	assert_true(function.outermost);
	assert_true(mw_go_function_find(&table, CODE + TEXT + 63, &function));
	assert_string_equal(function.name, "main.leak");
	assert_false(function.outermost);
	assert_int_equal(function.start, CODE + TEXT);
	sizes = mw_go_frame_sizes(&table, &function);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(mw_go_values_next(&sizes));
		assert_int_equal(sizes.value, i == 1 ? 24 : 0);
		assert_int_equal(sizes.end, CODE + TEXT + (i == 0 ? 4 : i == 1 ? 60 : 64));
	}
	assert_false(mw_go_values_next(&sizes));
	assert_int_equal(mw_go_frames(&table, &function, CODE + TEXT + 4, frames), 1);
	assert_string_equal(frames[0].function, "main.leak");
	assert_string_equal(frames[0].file, "/src/leak.go");
	assert_int_equal(frames[0].line, 10);
	/* What is inlined can't be told of 1.16's. */
	if (magic != 0xfffffffa) {
		assert_int_equal(mw_go_frames(&table, &function, CODE + TEXT + 12, frames), 2);
		assert_string_equal(frames[0].function, "main.wrap");
		assert_int_equal(frames[0].line, 10);
		assert_string_equal(frames[1].function, "main.leak");
		assert_int_equal(frames[1].line, 12);
	}
	mw_elf_unref(elf);
	free(made);
}

static void test_forms(void **state)
{
	(void)state;
	check(0xfffffffa);
	check(0xfffffff0);
	check(0xfffffff1);
}

static void test_others(void **state)
{
	struct made *made = malloc(sizeof(*made));
	struct mw_go_table table;
	struct mw_elf *elf;

	(void)state;
	assert_non_null(made);
	/* Go 1.2's, and one that nobody knows yet. */
	for (unsigned i = 0; i < 2; i++) {
		make(made, i ? 0xfffffff2 : 0xfffffffb);
		elf = open_made(made);
		assert_false(mw_go_table_init(&table, elf));
		mw_elf_unref(elf);
	}
	free(made);
}

/* Whatever stands in it: nothing is read that is not there, and it ends. */
static void test_spoiled(void **state)
{
	struct made *made = malloc(sizeof(*made)), *spoiled = malloc(sizeof(*made));
	static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	uint64_t seed = 11;

	(void)state;
	assert_true(made && spoiled);
	for (unsigned round = 0; round < 3000; round++) {
		struct mw_go_frame frames[MW_GO_INLINED];
		struct mw_go_function function;
		struct mw_go_table table;
		struct mw_elf *elf;

		make(made, magics[round % 3]);
		*spoiled = *made;
		for (unsigned i = 0; i < 1 + round % 4; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			spoiled->bytes[TABLE + (seed >> 33) % (round % 2 ? 0x60 : INLINED - TABLE)] =
				(uint8_t)(seed >> 25);
		}
		elf = open_made(spoiled);
		if (mw_go_table_init(&table, elf))
			for (uint64_t at = 0; at < 128; at += 3)
				if (mw_go_function_find(&table, CODE + TEXT + at, &function)) {
					struct mw_go_values sizes = mw_go_frame_sizes(&table, &function);

					while (mw_go_values_next(&sizes))
						;
					assert_true(mw_go_frames(&table, &function, CODE + TEXT + at, frames) >= 1);
				}
		mw_elf_unref(elf);
	}
	free(made);
	free(spoiled);
}

UNIT_GROUP(gopclntab)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_others),
					   cmocka_unit_test(test_spoiled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
