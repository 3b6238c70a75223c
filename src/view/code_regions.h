/* SPDX-License-Identifier: MIT */
/*
 * code_regions.h: where code lies that is in no file: what a JIT compiler has made.
 *
 * A JIT makes code all the time, and a stack through each piece of it is a stack of its own by its address. So where
 * nobody names the code, all of a region is one frame. A region is what a JIT has reserved: executable anonymous
 * mappings that touch each other, also where inaccessible memory or small pieces of data lie between them. The lists of
 * mappings at the window's start and end tell them, which recordings keep: what is seen live is seen again.
 */
#ifndef MW_VIEW_CODE_REGIONS_H
#define MW_VIEW_CODE_REGIONS_H

#include "view/source.h"
#include "view/space.h"

struct mw_code_region {
	mw_addr start, end;
};

/* In order of address, without overlaps. Zero-initialise; mw_code_regions_deinit frees. */
struct mw_code_regions {
	struct mw_code_region *items;
	size_t count;
};

/* Those of either moment (each may be NULL). Errors: MEMORY. */
struct mw_error *mw_code_regions_make(const struct mw_space_moment *start, const struct mw_space_moment *end,
				      struct mw_code_regions *out) MW_MUST_CHECK;
void mw_code_regions_deinit(struct mw_code_regions *regions);
/* Code whose callers and names are known by region alone: what a view asks about it. Zeroed: nothing is known. */
struct mw_view_code {
	const struct mw_code_regions *regions; /* may be NULL */
	const struct mw_view_symbols *symbols; /* may be NULL */
};

/* What somebody calls the code of a frame that is in no file, or in a module of generated code; NULL: nothing. Good as
 * long as the symbols' answers. Errors: MEMORY. */
struct mw_error *mw_view_code_name(const struct mw_view_code *code, const struct mw_raw_frame *frame,
				   const char **name) MW_MUST_CHECK;

/* "(generated code at 0x7f0012340000, 1.5 MiB)" */
#define MW_CODE_REGION_TEXT 80
void mw_code_region_describe(const struct mw_code_region *region, char text[MW_CODE_REGION_TEXT]);

/* The region that the call before a return address lies in, or NULL. `regions` may be NULL. */
const struct mw_code_region *mw_code_regions_find(const struct mw_code_regions *regions, mw_addr addr);

#endif
