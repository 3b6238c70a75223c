/* SPDX-License-Identifier: MIT */
/* stacks.h: whose frame an address of a thread's stack lies in. */
#ifndef MW_HEAP_STACKS_H
#define MW_HEAP_STACKS_H

#include "heap/image.h"
#include "symbol/modules.h"
#include "symbol/symbolizer.h"

#include <memwatch/error.h>

struct mw_stacks;

/* All are borrowed, and must outlive it. Errors: MEMORY. */
struct mw_error *mw_stacks_create(const struct mw_image *image, const struct mw_modules *modules,
				  struct mw_symbolizer *symbolizer, struct mw_stacks **out) MW_MUST_CHECK;
void mw_stacks_destroy(struct mw_stacks *stacks);

struct mw_stack_place {
	const char *function; /* NULL: not known. Good as long as the symbolizer */
	const char *file;     /* or NULL */
	uint32_t line;
	uint32_t frame;     /* from 0, the innermost */
	mw_addr start, end; /* of the frame */
};

/* Errors: MEMORY. */
struct mw_error *mw_stacks_find(struct mw_stacks *stacks, pid_t tid, mw_addr at,
				struct mw_stack_place *out) MW_MUST_CHECK;

#endif
