// SPDX-License-Identifier: MIT
/*
 * fuzz_elf: libFuzzer's bytes as an ELF file of the target's: headers, symbols, notes, the frame descriptions, and the
 * compiler of these to rows. Then stacks are walked by what the file says, with the rest of the input as memory: by
 * libunwind, and by memwatch's own means where there are no descriptions. It ends, and stays within the file.
 */
#include "fuzz.h"

#include "symbol/elf_image.h"
#include "symbol/frames.h"
#include "symbol/modules.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#include <elf.h>

#define BIAS   UINT64_C(0x10000)
#define FRAMES 64u

static struct mw_module module = {.bias = BIAS, .path = "fuzz"};
static volatile uint64_t sum;

/* --- a table of one module ---------------------------------------------------------------------- */

struct mw_module *mw_modules_find(const struct mw_modules *modules, mw_addr addr)
{
	(void)modules;
	return addr >= module.start && addr < module.end ? &module : NULL;
}

/* ------------------------------------------------------------------------------------------------ */

static void look_at(const uint8_t *bytes, size_t size)
{
	if (bytes && size)
		sum += bytes[0] + bytes[size - 1];
}

static bool take_symbol(void *context, const struct mw_elf_symbol *symbol)
{
	size_t *count = context;

	sum += strlen(symbol->name) + symbol->vaddr;
	return ++*count < 4096;
}

static void read_file(struct mw_elf *elf)
{
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count, available = 0, symbols = 0;
	struct mw_elf_section section = mw_elf_section(elf, ".text");

	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = mw_elf_bytes(elf, segments[i].vaddr, &available);

		look_at(bytes, bytes ? available : 0);
	}
	if (section.present)
		look_at(mw_elf_file_bytes(elf, section.offset, section.size), section.size);
	look_at(elf->build_id, elf->build_id_size);
	sum += elf->soname ? strlen(elf->soname) : 0;
	mw_error_destroy(mw_elf_each_symbol(elf, take_symbol, &symbols));
}

static void compile(const struct mw_elf *elf, const struct mw_arch *arch)
{
	struct mw_row_dictionary dictionary = {.rows = NULL};
	struct mw_rows rows = {.count = 0};

	if (mw_rows_compile(elf, MW_ROWS_OF_ALL, arch, &dictionary, &rows))
		abort();
	for (size_t i = 0; i < rows.count; i++) {
		insist(rows.items[i].row < dictionary.index.count && (!i || rows.items[i - 1].pc < rows.items[i].pc));
		insist(mw_row_kind(dictionary.rows[rows.items[i].row]) < MW_ROW_KINDS);
	}
	mw_rows_deinit(&rows);
	mw_row_dictionary_deinit(&dictionary);
}

static void find_functions(const struct mw_elf *elf)
{
	struct mw_frame_table table = {.count = 0};
	struct mw_frame_entry entry;
	uint64_t start, end;

	if (mw_frame_table_init(&table, elf))
		abort();
	for (size_t i = 0; i < table.count && i < 256; i++) {
		if (!mw_frame_table_entry(&table, i, &entry))
			break;
		if (mw_frame_table_find(&table, table.base + (uint64_t)(int64_t)entry.code, &start, &end))
			insist(start < end);
	}
	mw_frame_table_deinit(&table);
}

static bool read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct fuzz_input *memory = context;

	if (addr >= memory->left || size > memory->left - addr)
		return false;
	memcpy(out, memory->at + addr, size);
	return true;
}

static void walk(const struct mw_elf *elf, const struct mw_arch *arch, struct fuzz_input memory)
{
	const struct mw_memory_view view = {.context = &memory, .read = read_memory};
	static const struct mw_modules none;
	struct mw_unwound_frame frames[FRAMES];
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;
	struct mw_unwinder *unwinder;
	enum mw_stack_cut cut;
	uint32_t walked;

	insist(!mw_unwinder_libunwind(&none, arch, &unwinder));
	for (size_t i = 0; i < count && i < 4; i++)
		for (unsigned j = 0; j < 8; j++) {
			struct mw_regs regs = {.pc = segments[i].vaddr + BIAS + segments[i].memory_size / 8 * j + 1};

			regs.gpr[arch->dwarf_sp] = 8 * j;
			regs.gpr[6] = 64;
			unwinder->ops->walk(unwinder, &regs, &view, frames, FRAMES, &walked, &cut);
			insist(walked <= FRAMES && cut <= MW_STACK_BROKEN);
		}
	mw_unwinder_destroy(unwinder);
}

/* As the loader would have it. */
static void place(struct mw_elf *elf)
{
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;

	module.elf = elf;
	module.start = UINT64_MAX;
	module.end = 0;
	for (size_t i = 0; i < count; i++) {
		mw_addr start = segments[i].vaddr + BIAS, end = start + segments[i].memory_size;

		if (start < module.start)
			module.start = start;
		if (end > module.end)
			module.end = end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct mw_arch *arch = mw_arch_find(EM_X86_64);
	struct mw_elf *elf = NULL;
	struct mw_error *err;

	if (size == 0)
		return 0;
	err = mw_elf_open_memory(bytes, size, "fuzz", &elf);
	if (err) {
		mw_error_destroy(err);
		return 0;
	}
	read_file(elf);
	if (elf->is_64) {
		compile(elf, arch);
		find_functions(elf);
		place(elf);
		walk(elf, arch, (struct fuzz_input){bytes, size});
	}
	mw_elf_unref(elf);
	return 0;
}
