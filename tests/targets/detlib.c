/* SPDX-License-Identifier: MIT */
/* libdetlib: what `deterministic` loads inside the window: frames of another module between its own. */
#include "target.h"

#include <stdlib.h>

KEEP void detlib_call(void (*leaf)(unsigned what), unsigned what, unsigned depth);

KEEP void detlib_call(void (*leaf)(unsigned what), unsigned what, unsigned depth)
{
	volatile char room[64 + 8];
	void *block;

	room[depth % 64] = 4;
	if (depth == 0) {
		block = malloc(24 + what % 100);
		OPAQUE(block);
		leaf(what);
		free(block);
		return;
	}
	detlib_call(leaf, what, depth - 1);
	if (room[depth % 64] != 4)
		target_fail("a stack frame was overwritten");
}
