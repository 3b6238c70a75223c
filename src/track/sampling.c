// SPDX-License-Identifier: MIT
/* sampling.c: intervals and weights (sampling.h). */
#include "track/sampling.h"

#include "base/vector.h"

#include <stdlib.h>

void mw_intervals_deinit(struct mw_intervals *intervals)
{
	free(intervals->bytes);
	*intervals = (struct mw_intervals){0};
}

struct mw_error *mw_intervals_number(struct mw_intervals *intervals, uint64_t bytes, uint16_t *number)
{
	uint32_t found = 0;

	while (bytes && found < intervals->count && intervals->bytes[found] != bytes)
		found++;
	if (bytes && found == intervals->count) {
		if (found == MW_INTERVAL_MAX)
			return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "more than %u different sampling intervals",
					       MW_INTERVAL_MAX);
		if (!MW_VECTOR_ROOM(intervals->bytes, found, intervals->capacity))
			return mw_error_nomem();
		intervals->bytes[found] = bytes;
		intervals->count = found + 1;
	}
	*number = (uint16_t)(bytes ? found + 1 : 0);
	return NULL;
}
