// SPDX-License-Identifier: MIT
/* named.c: a library with which no file system has files without a name (O_TMPFILE), as many have none. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

typedef int openat_fn(int directory, const char *path, int flags, ...);

openat_fn openat64;

int openat(int directory, const char *path, int flags, ...)
{
	openat_fn *next = (openat_fn *)dlsym(RTLD_NEXT, "openat");
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if ((flags & O_TMPFILE) != O_TMPFILE)
		return next(directory, path, flags, mode);
	errno = EOPNOTSUPP;
	return -1;
}

int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));
