// SPDX-License-Identifier: MIT
/* quiet_open.c: see quiet_open.h. */
#include "symbol/quiet_open.h"

#include "proc/root.h"
#include "symbol/inflate.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static _Thread_local unsigned quiet, plain;

void mw_quiet_open_begin(void)
{
	quiet++;
}

void mw_quiet_open_end(void)
{
	quiet--;
}

void mw_quiet_open_plain_begin(void)
{
	plain++;
}

void mw_quiet_open_plain_end(void)
{
	plain--;
}

/* By another name here, as the headers may have open() inlined. */
int mw_quiet_open(const char *path, int flags, ...) __asm__("open") __attribute__((visibility("default")));
int mw_quiet_open64(const char *path, int flags, ...) __asm__("open64")
	__attribute__((alias("open"), visibility("default")));

static int open_quietly(const char *path)
{
	unsigned before = quiet;
	int fd, inflated = -1;

	quiet = 0;
	fd = mw_root_open_link(path);
	if (fd >= 0 && !plain)
		inflated = mw_inflate_file(fd, NULL);
	quiet = before;
	if (inflated < 0)
		return fd;
	close(fd);
	return inflated;
}

static int open_as(const char *path, int flags, mode_t mode)
{
	/* Cryptography, for debuginfod, may want randomness. */
	bool reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_DIRECTORY | O_PATH)) &&
		     strcmp(path, "/dev/urandom") != 0;

	return quiet && reads ? open_quietly(path) : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int mw_quiet_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return open_as(path, flags, mode);
}
