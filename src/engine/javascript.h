/* SPDX-License-Identifier: MIT */
/* javascript.h: what functions of JavaScript are called that a stack's frames are of (script/v8.h). */
#ifndef MW_ENGINE_JAVASCRIPT_H
#define MW_ENGINE_JAVASCRIPT_H

#include "script/v8.h"

#include <memwatch/event.h>

/*
 * Name the frames that are a function's, `functions` of each; they have been learned where they can be. One may stand for
 * several, as calls are inlined. Writes at most `capacity` frames; `*truncated` where there are more.
 */
static inline void mw_javascript_name(const struct mw_v8 *v8, const struct mw_raw_stack *native,
				      const struct mw_javascript *functions, struct mw_raw_frame *out,
				      uint32_t capacity, uint32_t *count, bool *truncated)
{
	*count = 0;
	*truncated = false;
	for (uint32_t i = 0; i < native->count; i++) {
		unsigned named = 0;
		const uint32_t *numbers =
			functions[i].shared ? mw_v8_numbers(v8, &functions[i], native->frames[i].addr, &named) : NULL;

		for (unsigned j = 0; j < (named ? named : 1); j++) {
			if (*count == capacity) {
				*truncated = true;
				return;
			}
			out[(*count)++] =
				named ? (struct mw_raw_frame){numbers[j], mw_v8_module(v8)} : native->frames[i];
		}
	}
}

#endif
