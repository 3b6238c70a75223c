/* SPDX-License-Identifier: MIT */
/* message.h: what memwatch says on standard error: one message an occasion. */
#ifndef MW_SESSION_MESSAGE_H
#define MW_SESSION_MESSAGE_H

#include <memwatch/error.h>

#include <stdio.h>

/* The exit statuses of the command line (SPEC 2). */
enum mw_message_status {
	MW_STATUS_DONE = 0,   /* recorded, and every output written */
	MW_STATUS_FAILED = 1, /* not */
	MW_STATUS_USAGE = 2,  /* the command line is wrong */
};

/* Print "memwatch: TEXT. HINT" as one line, free the error and return the exit status it stands for. NULL prints
 * nothing and is MW_STATUS_DONE. */
enum mw_message_status mw_message_error(struct mw_error *err);

/* Print text that may come from a target or the user: no escape sequence of theirs gets to a terminal, and no line gets
 * a second one. UTF-8 passes. */
void mw_message_put(FILE *out, const char *text);

#endif
