/* SPDX-License-Identifier: MIT */
/* reserve.h: memory that is kept for when there is none any more: letting a process go takes some. */
#ifndef MW_BASE_RESERVE_H
#define MW_BASE_RESERVE_H

#include <stddef.h>

/* Keep so many bytes, which are not touched, until the first want of memory. Where they can't be had there are none. */
void mw_reserve_keep(size_t bytes);
/* Give them back: mw_error_nomem() does. From any thread. */
void mw_reserve_release(void);

#endif
