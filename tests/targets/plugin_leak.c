/* SPDX-License-Identifier: MIT */
/* plugin_leak: a library that a target loads inside the window and that leaks. */
#include "plugin.h"
#include "target.h"

#include <stdlib.h>

KEEP void plugin_leak(void)
{
	void *block = malloc(57);

	OPAQUE(block);
}

KEEP void plugin_pair(void)
{
	void *block = calloc(3, 19);

	OPAQUE(block);
	free(block);
}
