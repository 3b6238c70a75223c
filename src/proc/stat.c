// SPDX-License-Identifier: MIT
/* stat.c: fields of /proc/TID/stat. */
#include "proc/stat.h"

#include <stdlib.h>
#include <string.h>

bool mw_stat_field(const char *text, size_t size, enum mw_stat_number number, uint64_t *out)
{
	/* After the name come only a letter and numbers, so the last parenthesis is the one that ends it. */
	const char *at = memrchr(text, ')', size);
	unsigned long long value;
	char *end;

	if (!at)
		return false;
	at++;
	for (int field = 3; field <= (int)number; field++) {
		if (*at != ' ')
			return false;
		at++;
		if (field < (int)number)
			at += strcspn(at, " ");
	}
	value = strtoull(at, &end, 10);
	if (end == at)
		return false;
	*out = value;
	return true;
}
