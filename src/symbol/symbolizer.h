/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.h: from (module, address) to function, file, line and inlined frames, by libdw.
 *
 * Debug information comes from the file itself, .gnu_debuglink, build-id directories,
 * .gnu_debugdata and, where DEBUGINFOD_URLS is set, debuginfod. Slow and allowed to be: only
 * used while no target waits. Results are cached by address, those in files with the file's image, for all processes
 * that have it.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_H
#define MW_SYMBOL_SYMBOLIZER_H

#include "symbol/modules.h"

struct mw_symbol_frame {
	const char *function; /* demangled, or NULL */
	const char *file;     /* or NULL */
	uint32_t line;        /* 0: unknown */
	uint64_t offset;      /* from the function's start, or from the module's (vaddr in the file) */
	bool inlined;
};

struct mw_symbolizer;
struct mw_perf_map;

/* `modules` must outlive the symbolizer. */
struct mw_error *mw_symbolizer_create(const struct mw_modules *modules, struct mw_symbolizer **out) MW_MUST_CHECK;
void mw_symbolizer_destroy(struct mw_symbolizer *symbolizer);
/*
 * The frames at `addr` in module `number`, innermost inlined one first, the function itself last; at
 * least one (its function may be NULL). `is_return`: addr is a return address, the call before it is
 * meant. The array and its strings are good as long as the symbolizer. Errors: MEMORY only; missing
 * information is no error.
 */
struct mw_error *mw_symbolizer_resolve(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr, bool is_return,
				       const struct mw_symbol_frame **frames, size_t *count) MW_MUST_CHECK;
/* Where the variable that begins at `addr` in module `number` is declared; *file is NULL where that is not known, and
 * else good as long as the symbolizer. Errors: MEMORY. */
struct mw_error *mw_symbolizer_variable(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr,
					const char **file, uint32_t *line) MW_MUST_CHECK;
/* What the program itself calls code in no file (proc/perf_map.h), to be asked for code in modules without elf. Must
 * outlive the symbolizer; NULL: nothing is known. */
void mw_symbolizer_set_names(struct mw_symbolizer *symbolizer, const struct mw_perf_map *names);
/* Where the module's debug information comes from: static text as "embedded", "/usr/lib/debug/….debug",
 * "debuginfod", "only symbols", "none". Good as long as the symbolizer. Where it has some that can't be read `*obstacle`
 * (may be NULL) becomes static text that says why, to follow "its debug sections"; else NULL. */
const char *mw_symbolizer_source(struct mw_symbolizer *symbolizer, uint32_t number, const char **obstacle);

/* libdw can't say that it has found no memory: it calls this then, from within calls of a symbolizer. It must not
 * return, and what the symbolizer works on may not be touched any more. NULL: libdw prints a message and ends the
 * program. */
extern void (*__attribute__((noreturn)) mw_symbol_no_memory)(void);

#endif
