/* SPDX-License-Identifier: MIT */
/*
 * cfi_table.h: where a module's frame descriptions are: its own search table (.eh_frame_hdr), or
 * one made from .eh_frame where it has none.
 */
#ifndef MW_UNWIND_CFI_TABLE_H
#define MW_UNWIND_CFI_TABLE_H

#include "symbol/modules.h"

/* A table of (function start, frame description), both 32-bit offsets from `base`, sorted. */
struct mw_cfi_table {
	bool present;
	mw_addr base;    /* in the target */
	mw_addr entries; /* in the target, or in MW_CFI_LOCAL_BASE's range for one of ours */
	uint64_t count;
	void *local; /* the entries where they are ours; freed by deinit */
};

/* Addresses that no target has: entries of tables made by us are read there. */
#define MW_CFI_LOCAL_BASE 0x8100000000000000u
#define MW_CFI_LOCAL_SPAN 0x0000000100000000u

/* Find or make the table of a module that has an image. A module without one leaves present false. Errors: MEMORY. */
struct mw_error *mw_cfi_table_init(const struct mw_module *module, struct mw_cfi_table *table) MW_MUST_CHECK;
void mw_cfi_table_deinit(struct mw_cfi_table *table);

#endif
