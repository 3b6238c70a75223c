/* SPDX-License-Identifier: MIT */
/*
 * path.h: short paths, made where they are used: open(mw_path("/proc/%d/mem", pid).text, O_RDONLY); and their names.
 */
#ifndef MW_BASE_PATH_H
#define MW_BASE_PATH_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is longer is cut off. */
struct mw_path {
	char text[64];
};

__attribute__((format(printf, 1, 2))) static inline struct mw_path mw_path(const char *format, ...)
{
	struct mw_path path;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(path.text, sizeof(path.text), format, args);
	va_end(args);
	return path;
}

/* What stands behind the last '/'. */
static inline const char *mw_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
