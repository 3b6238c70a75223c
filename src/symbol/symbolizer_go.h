/* SPDX-License-Identifier: MIT */
/* symbolizer_go.h: frames of Go's code, as its runtime's tracebacks have them. */
#ifndef MW_SYMBOL_SYMBOLIZER_GO_H
#define MW_SYMBOL_SYMBOLIZER_GO_H

#include "symbol/symbolizer_dwarf.h"

/* The frames at `code`; `*found` where that is Go's. Offsets are those of `vaddr`. False without memory. */
bool mw_go_symbol_frames(struct mw_elf *elf, uint64_t code, uint64_t vaddr, struct mw_frame_list *list, bool *found);

#endif
