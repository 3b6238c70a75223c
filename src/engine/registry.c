// SPDX-License-Identifier: MIT
/* registry.c: the engines there are. */
#include "engine/auto_engine.h"
#include "engine/jump/jump_engine.h"
#include "engine/trap/trap_engine.h"

#include <string.h>

static const struct mw_engine_ops *const engines[] = {
	&mw_engine_auto,
	&mw_engine_jump,
	&mw_engine_trap,
};

const struct mw_engine_ops *mw_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
