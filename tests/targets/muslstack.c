/* SPDX-License-Identifier: MIT */
/* muslstack: functions of the C library that allocate for their caller, each from a function of its own. */
#include "target.h"

#include <stdio.h>

KEEP static void by_strdup(void)
{
	char *copy = strdup("a line of text that is copied");

	OPAQUE(copy);
}

KEEP static void by_fopen(void)
{
	FILE *file = fopen("/dev/null", "r");

	if (!file)
		target_fail("fopen");
}

KEEP static void by_getline(FILE *file)
{
	char *line = NULL;
	size_t size = 0;

	if (getline(&line, &size, file) < 0)
		target_fail("getline");
}

KEEP static void by_asprintf(void)
{
	char *text = NULL;

	if (asprintf(&text, "%d and %s", 17, "some more") < 0)
		target_fail("asprintf");
	OPAQUE(text);
}

KEEP static void by_calloc(void)
{
	void *block = calloc(3, 50);

	OPAQUE(block);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
	FILE *file = fopen("/proc/self/status", "r");

	if (!file)
		target_fail("fopen");
	target_ready();
	for (unsigned i = 0; i < rounds; i++) {
		by_strdup();
		rewind(file);
		by_getline(file);
		by_asprintf();
		by_calloc();
		if (i % 8 == 0)
			by_fopen();
	}
	target_say("rounds", rounds);
	target_done();
	return 0;
}
