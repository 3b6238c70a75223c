/* SPDX-License-Identifier: MIT */
/* function_starts.h: where a module's functions begin and end, for code that no frame description says it of. */
#ifndef MW_UNWIND_FUNCTION_STARTS_H
#define MW_UNWIND_FUNCTION_STARTS_H

#include "symbol/elf_image.h"

#include <memwatch/arch.h>

struct mw_function_start {
	uint64_t vaddr, size; /* size 0: unknown */
	bool part;            /* of a function that begins elsewhere (its cold part) */
};

/* By vaddr. Zero-initialise. */
struct mw_function_starts {
	struct mw_function_start *items;
	size_t count, capacity;
	uint64_t exit; /* vaddr of the C library's exit(), 0: it is not there */
};

/* From the file's symbols, and, where its code is not large, from the calls in it. Best effort: what there is no memory
 * for is not there. */
void mw_function_starts_init(struct mw_function_starts *starts, struct mw_elf *elf, const struct mw_arch *arch);
void mw_function_starts_deinit(struct mw_function_starts *starts);
/* The first that begins at `vaddr` or behind it, or NULL. */
const struct mw_function_start *mw_function_starts_from(const struct mw_function_starts *starts, uint64_t vaddr);
/* What is known of the function that holds `vaddr` (as addresses of the file). False: it begins elsewhere. */
bool mw_function_starts_find(const struct mw_function_starts *starts, uint64_t vaddr, struct mw_code_function *out);

#endif
