// SPDX-License-Identifier: MIT
/* fixture_static.c: a static program that allocates. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	void *volatile block = malloc((size_t)argc + 1);

	(void)argv;
	free(block);
	return 0;
}
