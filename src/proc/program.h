/* SPDX-License-Identifier: MIT */
/* program.h: which program a process runs, and is it still that one? An exec may come, or its end, at any time. */
#ifndef MW_PROC_PROGRAM_H
#define MW_PROC_PROGRAM_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/* The program's path as the target sees it (malloc'ed; " (deleted)" is kept off; UNSUPPORTED for a kernel thread,
 * GONE for a zombie), its arguments (malloc'ed array of malloc'ed strings, a NULL after the last; empty for both).
 * Arguments that are empty at the end are left out: they are the room behind a title. */
struct mw_error *mw_exe_read(pid_t pid, char **out) MW_MUST_CHECK;
struct mw_error *mw_command_read(pid_t pid, char ***argv, size_t *count) MW_MUST_CHECK;
/* Free these arguments, or none (NULL). */
void mw_command_free(char ***argv);

/*
 * The path that the program was executed by, where it has several names, by links (/usr/bin/redis-server for
 * /usr/bin/redis-check-rdb); `exe` is what mw_exe_read() gave. Malloc'ed; NULL where it is that one, where the two names
 * differ by a version only (python3 for python3.11), or where it can't be known.
 */
char *mw_exe_executed(pid_t tid, const char *exe);

/* What tells one run of a program from another: when the process began, and what its exec was told of its memory. */
struct mw_program {
	bool known;
	uint64_t started;      /* clock ticks since boot */
	uint64_t digest, size; /* of the auxiliary vector */
};

/* Not known where it may not be read, or where the process has ended. */
void mw_program_read(pid_t pid, struct mw_program *out);

/*
 * Is the process what it was when `before` was read? NULL also where that can't be known. Errors: GONE where it has
 * ended (also before `before` was read) or become another program, "while memwatch attached to it".
 */
struct mw_error *mw_program_check(pid_t pid, const struct mw_program *before) MW_MUST_CHECK;

/* Whatever failed with it, that is the better reason: takes `err` (NULL stays NULL) and returns it, or the other. */
struct mw_error *mw_program_explain(pid_t pid, const struct mw_program *before, struct mw_error *err) MW_MUST_CHECK;

#endif
