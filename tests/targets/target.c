/* SPDX-License-Identifier: MIT */
/* target.c: the protocol between a target and the harness; see target.h. */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void put(const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDOUT_FILENO, text, length);
		if (n < 0 && errno != EINTR)
			_exit(97);
		if (n > 0) {
			text += n;
			length -= (size_t)n;
		}
	}
}

/* "KEY" "SEPARATOR" "VALUE\n" in one write, so that lines of several threads don't mix. */
static void put_line(const char *key, char separator, uint64_t value)
{
	char line[160];
	char digits[24];
	size_t n = 0, d = 0;

	for (; key[n] && n < 120; n++)
		line[n] = key[n];
	line[n++] = separator;
	do {
		digits[d++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (d > 0)
		line[n++] = digits[--d];
	line[n++] = '\n';
	put(line, n);
}

void target_wait(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
}

void target_ready_for(unsigned life)
{
	/* Where memwatch is slower (mwlive.py), all takes longer. */
	const char *slowness = getenv("MEMWATCH_TEST_SLOWNESS");

	/* A target must not outlive a harness that was killed. */
	prctl(PR_SET_PDEATHSIG, 9);
	alarm(life * (slowness ? (unsigned)atoi(slowness) : 1));
	put_line("ready", ' ', (uint64_t)getpid());
	target_wait();
}

void target_ready(void)
{
	target_ready_for(120);
}

void target_say(const char *key, uint64_t value)
{
	put_line(key, '=', value);
}

void target_say_text(const char *line)
{
	put(line, strlen(line));
	put("\n", 1);
}

void target_done(void)
{
	put("done\n", 5);
	target_wait();
}

void target_fail(const char *what)
{
	put("failed ", 7);
	put(what, strlen(what));
	put("\n", 1);
	_exit(1);
}
