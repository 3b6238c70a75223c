/* SPDX-License-Identifier: MIT */
/* heap.h: memwatch heap: one look at the whole heap of a process. */
#ifndef MW_CLI_HEAP_H
#define MW_CLI_HEAP_H

#include "cli/options.h"

/* Errors: those of mw_look() and of writing; nothing is left in the process. */
struct mw_error *mw_cli_heap(const struct mw_cli_options *options) MW_MUST_CHECK;

#endif
