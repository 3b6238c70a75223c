// SPDX-License-Identifier: MIT
/* sample_static.c: a static program that says where its code is, and waits for the end of its input. */
#include <stdio.h>
#include <unistd.h>

int sample_function(int x);

int sample_function(int x)
{
	return x + 1;
}

int main(void)
{
	char byte;

	printf("ready %p\n", (void *)sample_function);
	(void)fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
