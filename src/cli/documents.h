/* SPDX-License-Identifier: MIT */
/* documents.h: the manual page and the shells' completions, made from the tables of options (command.h). */
#ifndef MW_CLI_DOCUMENTS_H
#define MW_CLI_DOCUMENTS_H

#include <stdio.h>

/* memwatch(1), for man. */
void mw_documents_manual(FILE *out, const char *version);

/* What bash, zsh and fish read to complete a command line of memwatch's. */
void mw_documents_bash(FILE *out);
void mw_documents_zsh(FILE *out);
void mw_documents_fish(FILE *out);

#endif
