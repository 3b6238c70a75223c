/* SPDX-License-Identifier: MIT */
/* advice.h: what the figures of a heap say in words, and what to do about it. */
#ifndef MW_HEAP_ADVICE_H
#define MW_HEAP_ADVICE_H

#include <memwatch/heap.h>

/* Add the sentences that the figures bear. Errors: MEMORY. */
struct mw_error *mw_advise(struct mw_heap_report *report) MW_MUST_CHECK;

#endif
