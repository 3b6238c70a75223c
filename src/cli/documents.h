/* SPDX-License-Identifier: MIT */
/* documents.h: the manual page and the shells' completions, made from the tables of options (options.h). */
#ifndef MW_CLI_DOCUMENTS_H
#define MW_CLI_DOCUMENTS_H

#include <stdbool.h>
#include <stdio.h>

/* "man": memwatch(1); "bash", "zsh", "fish": what these read to complete a command line of memwatch's. False: there is no
 * such document. `out` NULL: only say whether there is. */
bool mw_documents_write(const char *kind, FILE *out, const char *version);

#endif
