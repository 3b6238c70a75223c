/* SPDX-License-Identifier: MIT */
/* look.h: all that doctor finds out about a process before it prints any of it, and the parts that it prints. */
#ifndef MW_DOCTOR_LOOK_H
#define MW_DOCTOR_LOOK_H

#include "engine/engines.h"
#include "engine/survey.h"
#include "proc/status.h"
#include "session/options.h"
#include "symbol/symbolizer.h"

#include <stdio.h>

struct mw_doctor {
	pid_t pid;
	pid_t live; /* a thread that has memory, as the first may have ended */
	const struct mw_session_options *options;
	unsigned width;               /* columns to print in */
	struct mw_status status, own; /* of the process, and of memwatch */
	struct mw_error *refused;     /* before anything was looked at: it can't be watched. Else: */
	struct mw_maps maps;
	struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
	struct mw_hooks hooks;
	struct mw_jump_examination jump;
	size_t seccomp_filtered;  /* threads under seccomp */
	struct mw_error *no_trap; /* NULL: engine trap can be used, or is by the user's word; else why not */
	struct mw_error *lacking; /* nothing can be hooked, or a look failed; NULL: all is there */
};

/* Was the process's inside looked at? */
static inline bool mw_doctor_has_inside(const struct mw_doctor *doctor)
{
	return !doctor->refused && doctor->symbolizer;
}

/* --- text for people, broken into lines; and words for a shell --------------------------------------------------- */

struct mw_paragraph {
	FILE *out;
	unsigned width;  /* columns of a line; what has no space in it may be longer */
	unsigned indent; /* of all lines but the first */
	unsigned column; /* where the cursor is now */
	const char *end; /* of a line that goes on in the next: "" or " \\" */
};

/* Begin, with the cursor in column `at`. */
static inline void mw_paragraph_begin(struct mw_paragraph *paragraph, FILE *out, unsigned width, unsigned at,
				      unsigned indent)
{
	*paragraph = (struct mw_paragraph){.out = out, .width = width, .indent = indent, .column = at, .end = ""};
}
/* One word and a space before it where it is not the first of its line. It may come from a target: what is no printable
 * character is shown as \x1b. */
void mw_paragraph_word(struct mw_paragraph *paragraph, const char *word);
/* All words of a text, that are parted by spaces. */
void mw_paragraph_text(struct mw_paragraph *paragraph, const char *text);
/* … as printf makes it. */
void mw_paragraph_printf(struct mw_paragraph *paragraph, const char *format, ...) MW_PRINTF(2, 3);
static inline void mw_paragraph_end(struct mw_paragraph *paragraph)
{
	fputc('\n', paragraph->out);
}
/* A whole one, with the cursor in column `at`, which other lines are indented to. */
void mw_paragraph_write(FILE *out, unsigned width, unsigned at, const char *format, va_list args) MW_PRINTF(4, 0);

/* --- parts of what it prints --------------------------------------------------------------------------------- */

/* What /proc shows of it to anyone, in rows. What can't be read is said to be unknown. */
void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor);
/* Of which modules names, files and lines are known, and what to do for the others. Takes its time where debug
 * information is large, or comes through debuginfod. */
void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor);

#endif
