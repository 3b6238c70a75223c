/* SPDX-License-Identifier: MIT */
/*
 * cleanup.h: free and close at the end of the scope, whichever way it is left.
 *
 *	MW_FREE char *path = NULL;
 *	MW_CLOSE int fd = open(…);
 *
 *	…
 *	return MW_TAKE(path);
 */
#ifndef MW_BASE_CLEANUP_H
#define MW_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Call `function` with a pointer to the variable at the end of its scope. */
#define MW_CLEANUP(function) __attribute__((cleanup(function)))

static inline void mw_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* errno stays. */
static inline void mw_cleanup_close(const int *fd)
{
	int errnum = errno;

	if (*fd >= 0)
		close(*fd);
	errno = errnum;
}

#define MW_FREE  MW_CLEANUP(mw_cleanup_free)
#define MW_CLOSE MW_CLEANUP(mw_cleanup_close)

/* The pointer, which the end of the scope leaves alone from here on. */
#define MW_TAKE(pointer)                                                                                               \
	({                                                                                                             \
		__typeof__(pointer) taken_ = (pointer);                                                                \
                                                                                                                       \
		(pointer) = NULL;                                                                                      \
		taken_;                                                                                                \
	})

#endif
