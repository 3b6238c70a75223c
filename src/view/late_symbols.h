/* SPDX-License-Identifier: MIT */
/*
 * late_symbols.h: names for the frames of a recording that was made without them, or cut off before them: from files of
 * this machine, or in directories, that have the build-ids of the recording's modules.
 */
#ifndef MW_VIEW_LATE_SYMBOLS_H
#define MW_VIEW_LATE_SYMBOLS_H

#include "view/metadata.h"

struct mw_late_symbols;

/* Metadata and directories must outlive it. A module's file is looked for when it is first asked about. Errors:
 * MEMORY. */
struct mw_error *mw_late_symbols_create(const struct mw_metadata *metadata, const char *const *directories,
					size_t count, struct mw_late_symbols **out) MW_MUST_CHECK;
void mw_late_symbols_destroy(struct mw_late_symbols *symbols);
/* What was stored for that address, or, where that has no name, what can be found; `*count` is 0 for nothing at all. */
struct mw_error *mw_late_symbols_resolve(struct mw_late_symbols *symbols, uint32_t module, mw_addr addr,
					 const struct mw_symbol_frame **frames, size_t *count) MW_MUST_CHECK;

#endif
