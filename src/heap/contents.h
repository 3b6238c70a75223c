/* SPDX-License-Identifier: MIT */
/* contents.h: what stands in a block: its first bytes, strings in them, and what its pointers point at. */
#ifndef MW_HEAP_CONTENTS_H
#define MW_HEAP_CONTENTS_H

#include "heap/classes.h"
#include "heap/reach.h"
#include "heap/root_name.h"

struct mw_contents_input {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	struct mw_classes *classes;
	struct mw_root_names *names;
	const struct mw_reached *reached;
};

/* Fill in the contents of a group's first `count` samples. Errors: MEMORY. */
struct mw_error *mw_contents(const struct mw_contents_input *input, struct mw_heap_group *group,
			     size_t count) MW_MUST_CHECK;

#endif
