/* SPDX-License-Identifier: MIT */
/* package_debug.h: the names of packages with debug information. */
#ifndef MW_CLI_PACKAGE_DEBUG_H
#define MW_CLI_PACKAGE_DEBUG_H

#include "cli/package_owner.h"

/* Is it made of [a-z0-9.+_-] only, as names of packages are, and no option? */
bool mw_package_is_name(const char *name);

/* Fill in `debug` and `known` where `package` is known; what apt's lists say goes before what is usual. */
void mw_package_name_debug(int root, enum mw_packaging packaging, struct mw_lacking *files, size_t count);

#endif
