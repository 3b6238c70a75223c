// SPDX-License-Identifier: MIT
/* tty.c: the terminal that a live table takes over (draw.h). */
#include "top/draw.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

/* Behind everything else: its names are everyday words. */
#include <curses.h>
#include <term.h>

#define LEAVE_MAX 256

struct tty {
	atomic_bool taken;
	struct termios before, taken_over;
	size_t leave_size;
	char leave[LEAVE_MAX]; /* what makes the terminal show what it showed before */
};

static struct tty *tty;

static void add_leave(const char *capability)
{
	const char *text = tigetstr(capability);
	size_t length;

	if (!text || text == (char *)-1)
		return;
	for (length = strlen(text); length && tty->leave_size < LEAVE_MAX; length--, text++) {
		/* "$<5>": a delay, for terminals of another age */
		const char *delay_end = text[0] == '$' && text[1] == '<' ? strchr(text, '>') : NULL;

		if (delay_end) {
			length -= (size_t)(delay_end - text);
			text = delay_end;
			continue;
		}
		tty->leave[tty->leave_size++] = *text;
	}
}

static const char other[] = "To watch without one: memwatch -p PID -d TIME, with a report at the end";

static struct mw_error *refuse(const char *why, const char *hint)
{
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0, "top shows its table on a terminal, and %s", why),
			     "%s", hint);
}

/* With what is known of the terminal. */
static struct mw_error *prepare(void)
{
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1 || !tigetstr("clear") || tigetstr("clear") == (char *)-1)
		return refuse("the terminal type in TERM can't position text", other);
	tty = mmap(NULL, sizeof(*tty), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tty == MAP_FAILED) {
		tty = NULL;
		return mw_error_nomem();
	}
	if (tcgetattr(STDOUT_FILENO, &tty->before) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot read the terminal's settings");
	add_leave("sgr0");
	add_leave("rmkx");
	add_leave("cnorm");
	add_leave("rmcup");
	return NULL;
}

struct mw_error *mw_top_tty_prepare(void)
{
	const char *term = getenv("TERM");
	struct mw_error *err;
	int result = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse(isatty(STDIN_FILENO) ? "standard output is none" : "standard input is none", other);
	if (!term || !*term || strcmp(term, "dumb") == 0)
		return refuse("the terminal type in TERM can show only lines", other);
	if (setupterm(NULL, STDOUT_FILENO, &result) != OK || result != 1)
		return refuse("the terminal type in TERM is unknown",
			      "Set TERM to one that is known here, as in: TERM=xterm memwatch top -p PID");
	err = prepare();
	/* curses reads it anew. */
	del_curterm(cur_term);
	return err;
}

void mw_top_tty_entered(void)
{
	tcgetattr(STDOUT_FILENO, &tty->taken_over);
	atomic_store(&tty->taken, true);
}

void mw_top_tty_left(void)
{
	if (tty)
		atomic_store(&tty->taken, false);
}

static bool is_as_taken_over(const struct termios *now)
{
	const struct termios *ours = &tty->taken_over;

	return now->c_iflag == ours->c_iflag && now->c_oflag == ours->c_oflag && now->c_lflag == ours->c_lflag &&
	       memcmp(now->c_cc, ours->c_cc, sizeof(now->c_cc)) == 0;
}

void mw_top_tty_restore(void)
{
	static const int candidates[] = {STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO};
	struct termios now;

	if (!tty || !atomic_exchange(&tty->taken, false))
		return;
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		int fd = candidates[i];

		if (tcgetattr(fd, &now) != 0)
			continue;
		if (write(fd, tty->leave, tty->leave_size) < 0)
			continue;
		if (is_as_taken_over(&now))
			tcsetattr(fd, TCSANOW, &tty->before);
		return;
	}
}

void mw_top_tty_unblock(void)
{
	tcflush(STDOUT_FILENO, TCOFLUSH);
	tcflow(STDOUT_FILENO, TCOON);
}
