/* SPDX-License-Identifier: MIT */
/*
 * stack_id.h: the id under which a stack is known in every run and process.
 *
 * It is XXH64 (seed 0) over, in this order and little-endian:
 *   the kind, one byte; the entry point's name (or none) with its NUL;
 *   for each captured frame, innermost first, its module's key and its offset, 8 bytes each.
 * The offset is the address less the module's base, so load addresses don't matter. A module's key is
 * XXH64 over one byte and what it announces: 1 and the build-id; 2 and the path's base name, where the
 * file has no build-id or could not be had.
 *
 * Of code that is in no file, or in one that a JIT has made for it (mw_view_is_generated), addresses mean nothing in
 * another run, nor does each of them mean another caller. Where it has a name its key is XXH64 over 3 and that, with
 * offset 0. Else its key is XXH64 over the byte 4 with the number of its region, in order of address, for an offset
 * (2^64-1: it is in none that is known), or its file's key with offset 0.
 *
 * Kind and entry point are in it because one call site can reach two of them through a pointer; those
 * are two stacks of the report, and an id names one. Inlined frames are not: they come from debug
 * information, which may be there today and not tomorrow.
 */
#ifndef MW_VIEW_STACK_ID_H
#define MW_VIEW_STACK_ID_H

#include "view/code_regions.h"
#include "view/source.h"

#include <memwatch/event.h>

struct mw_stack_ids;

/* Compute the modules' keys once. What `code` points to must outlive it; it is copied. For one thread at a time. */
struct mw_error *mw_stack_ids_create(const struct mw_view_module *modules, size_t count,
				     const struct mw_view_code *code, struct mw_stack_ids **out) MW_MUST_CHECK;
void mw_stack_ids_destroy(struct mw_stack_ids *ids);
/* Errors: MEMORY. */
struct mw_error *mw_stack_id(const struct mw_stack_ids *ids, enum mw_kind kind, const char *api,
			     const struct mw_raw_frame *frames, size_t count, uint64_t *id) MW_MUST_CHECK;

#endif
