/* SPDX-License-Identifier: MIT */
/* file.h: whole files of /proc, read into memory. */
#ifndef MW_PROC_FILE_H
#define MW_PROC_FILE_H

#include <memwatch/error.h>
#include <memwatch/types.h>

/*
 * Read a file whose size nobody knows beforehand, to its end. `*bytes` is malloc'ed and has a NUL
 * after its `*size` bytes (the file may hold NULs of its own); `size` may be NULL. Files above 1 GiB are refused.
 * Errors: GONE on ENOENT and ESRCH, DENIED, DATA, MEMORY, SYSTEM; errno is in the error.
 */
struct mw_error *mw_proc_file_read(char **bytes, size_t *size, const char *format, ...) MW_PRINTF(3, 4) MW_MUST_CHECK;

/*
 * The same into a buffer of the caller's, of `capacity` bytes, a NUL behind what was read: what it has no room for is
 * left out; `size` may be NULL. Takes no memory, so that it can't fail for that. The path has less than 64 bytes.
 */
struct mw_error *mw_proc_file_read_small(char *bytes, size_t capacity, size_t *size, const char *format, ...)
	MW_PRINTF(4, 5) MW_MUST_CHECK;

/* The error for a failed system call on something in /proc: the kind follows from `errnum`. */
struct mw_error *mw_proc_error(int errnum, const char *what, const char *path) MW_MUST_CHECK;

/*
 * The target of a link, malloc'ed, however long. Errors as above.
 */
struct mw_error *mw_proc_link_read(char **out, const char *path) MW_MUST_CHECK;

#endif
