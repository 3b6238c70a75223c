/* SPDX-License-Identifier: MIT */
/* source.h: what views know of modules and symbols: those of a process that was just watched, or of a recording. */
#ifndef MW_VIEW_SOURCE_H
#define MW_VIEW_SOURCE_H

#include "symbol/symbolizer.h"

/* A file with code that a process has or had mapped. Zeroed: nothing is known of it. */
struct mw_view_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none */
	mw_addr start, end;   /* lowest and highest address of its mappings */
	uint64_t base;        /* where an address lies in the file: address - base */
	bool suspect;         /* what it allocates is its own: neither an allocator nor the C/C++ runtime */
	bool has_file;
};

/* Is it memory that a program keeps code in which it makes at run time: a memfd or shared memory, and no ELF file? */
bool mw_view_is_generated(const struct mw_view_module *module);

/* Who tells the frames at a return address. */
struct mw_view_symbols {
	void *context;
	/* As mw_symbolizer_resolve(); what it gives is good until the view is made. */
	struct mw_error *(*resolve)(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				    size_t *count);
};

/* The modules of a process, by number: malloc'ed; it borrows from `modules`. Errors: MEMORY. */
struct mw_error *mw_view_modules_of(const struct mw_modules *modules, struct mw_view_module **out,
				    size_t *count) MW_MUST_CHECK;
/* A symbolizer's answers; it must outlive them. */
struct mw_view_symbols mw_view_symbols_of(struct mw_symbolizer *symbolizer);

#endif
