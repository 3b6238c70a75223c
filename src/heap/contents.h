/* SPDX-License-Identifier: MIT */
/* contents.h: what stands in a block: its first bytes, strings in them, and what its pointers point at. */
#ifndef MW_HEAP_CONTENTS_H
#define MW_HEAP_CONTENTS_H

#include "heap/root_name.h"

/* Fill in the contents of a group's first `count` samples. Errors: MEMORY. */
struct mw_error *mw_contents(const struct mw_findings *found, struct mw_heap_group *group, size_t count) MW_MUST_CHECK;

#endif
