// SPDX-License-Identifier: MIT
/* late_symbols.c: see late_symbols.h. */
#include "view/late_symbols.h"

#include "symbol/elf_find.h"

#include <stdlib.h>

struct mw_late_symbols {
	const struct mw_metadata *metadata;
	const char *const *directories;
	size_t directory_count;
	struct mw_modules *modules; /* numbered as the recording's; NULL: none was needed yet */
	struct mw_symbolizer *symbolizer;
};

struct mw_error *mw_late_symbols_create(const struct mw_metadata *metadata, const char *const *directories,
					size_t count, struct mw_late_symbols **out)
{
	struct mw_late_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return mw_error_nomem();
	symbols->metadata = metadata;
	symbols->directories = directories;
	symbols->directory_count = count;
	*out = symbols;
	return NULL;
}

void mw_late_symbols_destroy(struct mw_late_symbols *symbols)
{
	if (!symbols)
		return;
	mw_symbolizer_destroy(symbols->symbolizer);
	mw_modules_destroy(symbols->modules);
	free(symbols);
}

static struct mw_error *open_files(struct mw_late_symbols *symbols)
{
	const struct mw_metadata *metadata = symbols->metadata;

	MW_TRY(mw_modules_create(&symbols->modules));
	for (size_t i = 0; i < metadata->module_count; i++) {
		const struct mw_view_module *module = &metadata->modules[i];
		struct mw_elf *elf = NULL;

		MW_TRY(mw_find_file(module->path, module->build_id, module->build_id_size, symbols->directories,
				    symbols->directory_count, &elf));
		MW_TRY(mw_modules_add(symbols->modules, module->path, module->base, elf));
	}
	return mw_symbolizer_create(symbols->modules, &symbols->symbolizer);
}

struct mw_error *mw_late_symbols_resolve(struct mw_late_symbols *symbols, uint32_t module, mw_addr addr,
					 const struct mw_symbol_frame **frames, size_t *count)
{
	const struct mw_symbol_frame *stored = NULL;
	size_t stored_count = 0;

	if (!mw_metadata_resolve(symbols->metadata, module, addr, &stored, &stored_count))
		stored_count = 0;
	/* Code in no file has the names that were read with it, or none. */
	if (module != MW_MODULE_NONE && (!stored_count || !stored[0].function)) {
		if (!symbols->symbolizer)
			MW_TRY(open_files(symbols));
		MW_TRY(mw_symbolizer_resolve(symbols->symbolizer, module, addr, true, frames, count));
		/* What was said when it was recorded is as good as nothing. */
		if (!stored_count || (*count && (*frames)[0].function))
			return NULL;
	}
	*frames = stored;
	*count = stored_count;
	return NULL;
}
