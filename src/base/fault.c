// SPDX-License-Identifier: MIT
/* fault.c: fault points (fault.h). */
#include "base/fault.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct {
	bool read;
	const char *point;
	size_t length;
	unsigned long countdown;
	char stop; /* ! or ?, 0: fail */
} wanted;

static void read_wish(void)
{
	const char *wish = secure_getenv("MEMWATCH_FAULT");
	const char *colon;

	wanted.read = true;
	if (!wish || !*wish)
		return;
	colon = strchr(wish, ':');
	wanted.point = wish;
	wanted.length = colon ? (size_t)(colon - wish) : strlen(wish);
	wanted.stop = wish[strlen(wish) - 1];
	if (wanted.stop != '!' && wanted.stop != '?')
		wanted.stop = 0;
	else if (!colon)
		wanted.length--;
	wanted.countdown = colon ? strtoul(colon + 1, NULL, 10) : 1;
}

struct mw_error *mw_fault(const char *point)
{
	if (!wanted.read)
		read_wish();
	if (!wanted.point || strlen(point) != wanted.length || memcmp(point, wanted.point, wanted.length) != 0)
		return NULL;
	if (wanted.countdown == 0 || --wanted.countdown > 0)
		return NULL;
	/* Until it is killed: the guard has it go on. */
	while (wanted.stop == '!')
		raise(SIGSTOP);
	if (wanted.stop) {
		raise(SIGSTOP);
		return NULL;
	}
	return mw_error_create(MW_ERROR_SYSTEM, 0, "made to fail at \"%s\" (MEMWATCH_FAULT is set)", point);
}
