/* SPDX-License-Identifier: MIT */
/* known.h: which numbers a reader has been given. */
#ifndef MW_STORE_KNOWN_H
#define MW_STORE_KNOWN_H

#include "store/decode.h"

/*
 * A number was given, used or not. *bad where it leaves others out, or takes back that one is used; then, and where it
 * is bad already, nothing is taken. Errors: MEMORY.
 */
struct mw_error *mw_store_known_take(struct mw_store_known *known, uint32_t number, bool used, bool *bad) MW_MUST_CHECK;
bool mw_store_known_has(const struct mw_store_known *known, uint32_t number);

#endif
