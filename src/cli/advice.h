/* SPDX-License-Identifier: MIT */
/* advice.h: the commands that get missing debug information. */
#ifndef MW_CLI_ADVICE_H
#define MW_CLI_ADVICE_H

#include "cli/package_owner.h"

#include <stdio.h>

struct mw_advice {
	const struct mw_distribution *distribution; /* of the root in which the files lie */
	const struct mw_lacking *files;             /* after mw_package_find() */
	size_t count;
	const char *sudo; /* what to begin a command with that root alone may give: "" or "sudo " */
	unsigned width;   /* columns */
};

/* The command for those of the runtime, or for all others, in lines of its own that can be copied to a shell; nothing
 * where there is none. */
void mw_advice_command(FILE *out, const struct mw_advice *advice, bool runtime);
/* What must be there for these commands to work, in words. */
void mw_advice_needs(FILE *out, const struct mw_advice *advice);
/* What to do for those that no package is known of. */
void mw_advice_others(FILE *out, const struct mw_advice *advice);
/* Has mw_advice_command() anything to say of it? */
bool mw_advice_has_command(const struct mw_advice *advice, const struct mw_lacking *file);

#endif
