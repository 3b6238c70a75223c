/* SPDX-License-Identifier: MIT */
/* root_name.h: the words for what a pointer from a root stands in: a variable, a thread's stack, memory of no known use. */
#ifndef MW_HEAP_ROOT_NAME_H
#define MW_HEAP_ROOT_NAME_H

#include "heap/classes.h"
#include "heap/reach.h"
#include "heap/stacks.h"

struct mw_root_names;

/* What was found of an image, for who describes it. All borrowed. */
struct mw_findings {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	struct mw_classes *classes;
	struct mw_root_names *names;
	const struct mw_reached *reached;
};

/* All are borrowed, and must outlive it. Errors: MEMORY. */
struct mw_error *mw_root_names_create(const struct mw_image *image, struct mw_classes *classes,
				      const struct mw_modules *modules, struct mw_root_names **out) MW_MUST_CHECK;
void mw_root_names_destroy(struct mw_root_names *names);
/* Where a pointer stands, as closely as is known: "global shop::sessions+16". malloc'ed. Errors: MEMORY. */
struct mw_error *mw_root_name(struct mw_root_names *names, const struct mw_root *root, char **out) MW_MUST_CHECK;
/* What of a file an address lies in, roots or not: "main()+16", "data of libc.so.6 at 0x7f0012345678"; NULL: in none. malloc'ed. Errors: MEMORY. */
struct mw_error *mw_root_name_code(struct mw_root_names *names, mw_addr addr, char **out) MW_MUST_CHECK;
/* The number, from 0 without gaps, of what all pointers in one variable, stack frame or mapping count to: as
 * mw_reach_options.number_root wants it, with the names for its context. Errors: MEMORY. */
struct mw_error *mw_root_number(void *names, const struct mw_root *root, uint32_t *number) MW_MUST_CHECK;
/* The name of that; good as long as `names`. */
const char *mw_root_name_of(const struct mw_root_names *names, uint32_t number);

#endif
