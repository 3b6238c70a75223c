// SPDX-License-Identifier: MIT
/* debug_frames.c: a step through code that only .debug_frame describes (debug_frames.h). */
#include "unwind/debug_frames.h"

#include <stdlib.h>
#include <string.h>

void mw_debug_frames_deinit(struct mw_debug_frames *frames)
{
	for (size_t i = 0; i < frames->count; i++)
		mw_rows_deinit(&frames->rows[i]);
	free(frames->rows);
	free(frames->tried);
	mw_row_dictionary_deinit(&frames->dictionary);
	*frames = (struct mw_debug_frames){0};
}

static bool make_room(struct mw_debug_frames *frames, size_t count)
{
	struct mw_rows *rows = realloc(frames->rows, count * sizeof(*rows));
	bool *tried;

	if (!rows)
		return false;
	frames->rows = rows;
	tried = realloc(frames->tried, count * sizeof(*tried));
	if (!tried)
		return false;
	frames->tried = tried;
	memset(rows + frames->count, 0, (count - frames->count) * sizeof(*rows));
	memset(tried + frames->count, 0, (count - frames->count) * sizeof(*tried));
	frames->count = count;
	return true;
}

/* NULL: there are none. */
static const struct mw_rows *rows_of(struct mw_debug_frames *frames, const struct mw_arch *arch,
				     const struct mw_module *module)
{
	uint32_t number = module->number;

	if (number >= frames->count && !make_room(frames, (size_t)number + 1))
		return NULL;
	if (!frames->tried[number]) {
		frames->tried[number] = true;
		mw_error_destroy(
			mw_rows_compile_debug_frame(module->elf, arch, &frames->dictionary, &frames->rows[number]));
	}
	return frames->rows[number].count ? &frames->rows[number] : NULL;
}

static uint64_t add(uint64_t base, int32_t offset)
{
	return base + (uint64_t)(int64_t)offset;
}

static bool read_word(const struct mw_memory_view *memory, mw_addr at, uint64_t *word)
{
	return memory->read(memory->context, at, word, sizeof(*word));
}

static bool find_cfa(const struct mw_arch *arch, const struct mw_memory_view *memory, uint64_t row,
		     const struct mw_regs *regs, mw_addr *cfa)
{
	mw_addr sp = regs->gpr[arch->dwarf_sp], fp = regs->gpr[arch->dwarf_fp];

	switch (mw_row_kind(row)) {
	case MW_ROW_SP:
		*cfa = add(sp, mw_row_n(row));
		return true;
	case MW_ROW_FP:
		*cfa = add(fp, mw_row_n(row));
		return true;
	case MW_ROW_FP_DEREF:
		return read_word(memory, add(fp, mw_row_n(row)), cfa);
	default:
		return false;
	}
}

enum mw_debug_frames_step mw_debug_frames_step(struct mw_debug_frames *frames, const struct mw_modules *modules,
					       const struct mw_arch *arch, const struct mw_memory_view *memory,
					       mw_addr at, const struct mw_regs *regs, struct mw_regs *out)
{
	const struct mw_module *module = mw_modules_find(modules, at);
	const struct mw_rows *rows = module && module->elf ? rows_of(frames, arch, module) : NULL;
	struct mw_regs caller = *regs;
	uint64_t row;
	mw_addr cfa;

	if (!rows)
		return MW_DEBUG_FRAMES_NOTHING;
	row = mw_rows_find(rows, &frames->dictionary, at - module->bias);
	if (mw_row_kind(row) == MW_ROW_END)
		return MW_DEBUG_FRAMES_END;
	if (!find_cfa(arch, memory, row, regs, &cfa) || !read_word(memory, cfa - sizeof(caller.pc), &caller.pc))
		return MW_DEBUG_FRAMES_NOTHING;
	if (mw_row_fp(row) == MW_ROW_FP_SAVED) {
		mw_addr from = mw_row_kind(row) == MW_ROW_FP_DEREF ? regs->gpr[arch->dwarf_fp] : cfa;

		if (!read_word(memory, add(from, mw_row_fp_at(row)), &caller.gpr[arch->dwarf_fp]))
			return MW_DEBUG_FRAMES_NOTHING;
	}
	caller.gpr[arch->dwarf_sp] = cfa;
	if (caller.pc == 0)
		return MW_DEBUG_FRAMES_END;
	*out = caller;
	return MW_DEBUG_FRAMES_FOUND;
}
