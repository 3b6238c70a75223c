/* SPDX-License-Identifier: MIT */
/* library.h: for targets that load libraries. */
#ifndef MW_TEST_LIBRARY_H
#define MW_TEST_LIBRARY_H

#include "target.h"

#include <dlfcn.h>

typedef void (*library_function)(void);

/* The library's function; the target fails where it has none. */
static inline library_function library_find(void *library, const char *name)
{
	union {
		void *data;
		library_function code;
	} cast = {dlsym(library, name)};

	if (!cast.data)
		target_fail(dlerror());
	return cast.code;
}

#endif
