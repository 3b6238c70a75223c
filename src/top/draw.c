// SPDX-License-Identifier: MIT
/* draw.c: see draw.h. */
#include "top/draw.h"

#include "output/line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
/* Which are macros there. */
#undef columns
#undef lines

/* --- the terminal ------------------------------------------------------------------------------------------ */

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

static void note_entered(void)
{
	tcgetattr(STDOUT_FILENO, &tty->taken_over);
	atomic_store(&tty->taken, true);
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

/* --- what fits ------------------------------------------------------------------------------------------------------- */

#define MARK "\xe2\x80\xa6" /* … */

/* Scripts that are written from right to left: a terminal might reorder what stands beside them. */
static bool is_right_to_left(uint32_t c)
{
	return (c >= 0x590 && c <= 0x8ff) || (c >= 0xfb1d && c <= 0xfdff) || (c >= 0xfe70 && c <= 0xfeff) ||
	       (c >= 0x10800 && c <= 0x10fff) || (c >= 0x1e800 && c <= 0x1efff);
}

/* A character as it is shown; returns its columns. `size` is set to its bytes, at most 12. */
static size_t show(uint32_t c, bool utf8, char out[16], size_t *size)
{
	int width = c < 0x80 ? 1 : utf8 ? wcwidth((wchar_t)c) : -1;

	if (c == MW_UTF8_REPLACEMENT && !utf8)
		c = '?';
	if (c == MW_UTF8_REPLACEMENT || (c == '?' && width < 1))
		width = 1;
	if (mw_utf8_is_printable(c) && !is_right_to_left(c) && width > 0) {
		*size = mw_utf8_encode(c, out);
		return (size_t)width;
	}
	*size = (size_t)snprintf(out, 16, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%06x", (unsigned)c);
	return *size;
}

size_t mw_top_cut(const char *text, size_t columns, bool utf8, char *out)
{
	size_t used = 0, length = 0, mark_used = 0, mark_length = 0, taken, size;
	uint32_t c;

	columns = columns > MW_TOP_WIDTH_MAX ? MW_TOP_WIDTH_MAX : columns;
	for (; (taken = mw_utf8_decode(text, &c)) != 0; text += taken) {
		char piece[16];
		size_t width = show(c, utf8, piece, &size);

		if (used + width > columns) {
			length = mark_length;
			used = mark_used;
			if (columns) {
				memcpy(out + length, utf8 ? MARK : "~", utf8 ? sizeof(MARK) - 1 : 1);
				length += utf8 ? sizeof(MARK) - 1 : 1;
				used++;
			}
			break;
		}
		memcpy(out + length, piece, size);
		length += size;
		used += width;
		if (used < columns) {
			mark_length = length;
			mark_used = used;
		}
	}
	out[length] = '\0';
	return used;
}

static const struct column {
	int at_least, width; /* of a screen that has it; its own */
	int wide_at, wide;   /* of a screen that has it wider; 0: none */
	int sort;            /* rows are sorted by it; -1: they are not */
	const char *title;
} table[MW_TOP_COLUMNS] = {
	[MW_TOP_BYTES] = {0, 11, 0, 0, MW_TOP_BY_BYTES, "not freed"},
	[MW_TOP_GROWTH] = {34, 12, 0, 0, MW_TOP_BY_GROWTH, "growth/s"},
	[MW_TOP_BLOCKS] = {66, 10, 0, 0, MW_TOP_BY_BLOCKS, "blocks"},
	[MW_TOP_RATE] = {84, 9, 0, 0, MW_TOP_BY_RATE, "allocs/s"},
	[MW_TOP_LEVEL] = {118, 9, 0, 0, -1, "level"},
	[MW_TOP_VERDICT] = {46, 10, 57, 19, -1, "verdict"},
	[MW_TOP_KIND] = {94, 5, 0, 0, -1, "kind"},
};

bool mw_top_layout_make(int width, int height, struct mw_top_layout *out)
{
	*out = (struct mw_top_layout){.name = width};
	if (width < MW_TOP_WIDTH_MIN || height < MW_TOP_HEIGHT_MIN)
		return false;
	for (size_t i = 0; i < MW_TOP_COLUMNS; i++) {
		out->columns[i] = width >= table[i].at_least ? table[i].width : 0;
		if (table[i].wide && width >= table[i].wide_at)
			out->columns[i] = table[i].wide;
		out->name -= out->columns[i];
	}
	out->header = height >= 12 ? 3 : height >= 8 ? 2 : 1;
	out->head = height >= 7;
	/* The last line is for keys and messages. */
	out->rows = height - out->header - out->head - 1;
	return true;
}

struct mw_shown mw_top_show_rate(double per_second)
{
	struct mw_shown shown = {"0"};

	if (per_second > 0 && per_second < 9.95)
		(void)snprintf(shown.text, sizeof(shown.text), "%.1f", per_second);
	else if (per_second > 0 && per_second < 9999.5)
		(void)snprintf(shown.text, sizeof(shown.text), "%.0f", per_second);
	else if (per_second > 0 && per_second < 9.9995e6)
		(void)snprintf(shown.text, sizeof(shown.text), "%.0fk", per_second / 1e3);
	else if (per_second > 0)
		(void)snprintf(shown.text, sizeof(shown.text), "%.0fM", per_second / 1e6);
	return shown;
}

struct mw_shown mw_top_show_bars(const struct mw_top_course *course, bool utf8)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", "_", ".", "-", "=", "+", "*", "%", "#"};
	struct mw_shown shown = {""};

	_Static_assert(sizeof(ascii) == (MW_TOP_BAR_MAX + 1) * sizeof(*ascii), "one for each height");
	_Static_assert(sizeof(shown.text) > (size_t)3 * MW_TOP_BARS, "for all bars");
	for (uint32_t i = 0; i < course->bar_count; i++)
		strcat(shown.text, (utf8 ? bars : ascii)[course->bars[i]]);
	return shown;
}

struct mw_shown mw_top_show_moment(uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 != 0);
	struct mw_shown shown;

	(void)snprintf(shown.text, sizeof(shown.text), "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
	return shown;
}

/* --- the picture ----------------------------------------------------------------------------------------------------- */

#define NS 1e9

enum { PAIR_UP = 1, PAIR_DOWN };

static const char *const group_names[] = {"stack", "module", "thread"};
static const char *const sort_names[] = {"bytes not freed", "growth", "blocks", "allocations/s", "name"};

static const char *const help_lines[] = {
	"Not freed: allocated since the zero point (at first the attach), and not freed.",
	"Growth and rates are those of the last 10 seconds, or since the zero point.",
	"Verdicts and levels are about all of the time since then: growth that goes on is red.",
	"A verdict with ? leaves another explanation open, as a cache that still fills.",
	"Modules and threads have no verdict: one stack may leak under what others free.",
	"",
	"Up Down PgUp PgDn Home End   select (also k j)",
	"Enter Space Right Left       open and close a stack: its frames; a module: its stacks",
	"g  1 2 3                     by stack, module, thread",
	"s S                          sort by the next, the previous column",
	"i d c a n                    sort by bytes not freed, growth, blocks, allocations/s, name",
	"r                            reverse the order",
	"Tab                          the next process, where several are watched",
	"z                            new zero point: what follows is allocated after it",
	"/                            show only what a filter takes, as in: function:parse or module:libc;",
	"                             of threads thread:worker. As report --filter. Esc: all again",
	"p                            pause the display; recording goes on",
	"w                            write a recording of all that was seen, for memwatch report; not of what",
	"                             came since there was no room for it, which the header says: not kept",
	"Ctrl-L                       redraw the screen",
	"h ?                          this help; any other key closes it",
	"q Ctrl-C                     detach from the process and quit",
};

/* Keys that would stop the process with memwatch (^Z), or the display (^S), are keys like others. */
static void set_modes(void)
{
	struct termios modes;

	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (tcgetattr(STDOUT_FILENO, &modes) != 0)
		return;
	modes.c_iflag &= ~(tcflag_t)IXON;
	modes.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
	def_prog_mode();
}

struct mw_error *mw_top_draw_begin(struct mw_top_picture *picture)
{
	const char *no_color = getenv("NO_COLOR");

	if (!newterm(NULL, stdout, stdin))
		return mw_error_create(MW_ERROR_SYSTEM, 0, "the terminal can't be set up");
	set_modes();
	picture->color = !(no_color && *no_color) && has_colors() && start_color() == OK;
	if (picture->color) {
		use_default_colors();
		init_pair(PAIR_UP, COLOR_RED, -1);
		init_pair(PAIR_DOWN, COLOR_GREEN, -1);
	}
	note_entered();
	return NULL;
}

void mw_top_draw_end(struct mw_top_picture *picture)
{
	mw_line_deinit(&picture->line);
	endwin();
	if (tty)
		atomic_store(&tty->taken, false);
}

/* Text of anybody's, cut; returns the columns that it took. */
static int put(const struct mw_top_picture *picture, int y, int x, int columns, const char *text)
{
	char line[MW_TOP_LINE];
	size_t used;

	if (columns <= 0)
		return 0;
	used = mw_top_cut(text, (size_t)columns, picture->utf8, line);
	mvaddstr(y, x, line);
	return (int)used;
}

/* The scratch line, which is empty then. */
static int put_scratch(struct mw_top_picture *picture, int y, int x, int columns)
{
	int used = put(picture, y, x, columns, picture->line.length ? picture->line.data : "");

	mw_line_cut(&picture->line, 0);
	return used;
}

/* A cell of the table, at its right edge, in that colour where there are colours; 0: none. */
static void put_cell(const struct mw_top_picture *picture, int y, int *x, int width, const char *text, short pair)
{
	int used = (int)mw_utf8_columns(text, strlen(text)), room = width - 1;

	pair = picture->color ? pair : 0;
	if (pair)
		attron(COLOR_PAIR(pair));
	put(picture, y, *x + (used < room ? room - used : 0), room, text);
	if (pair)
		attroff(COLOR_PAIR(pair));
	*x += width;
}

/* From line `y` on, which may be above the screen, in as many lines as it takes, broken at blanks. Returns the next. */
static int put_wrapped(const struct mw_top_picture *picture, int y, int width, int height, const char *text)
{
	do {
		size_t length = strlen(text), size = length;
		char line[MW_TOP_LINE];

		if (length > (size_t)width) {
			for (size = (size_t)width; size && text[size] != ' ';)
				size--;
			size = size ? size : (size_t)width;
		}
		(void)snprintf(line, sizeof(line), "%.*s", (int)size, text);
		if (y >= 0 && y < height)
			put(picture, y, 0, width, line);
		text += size + strspn(text + size, " ");
		y++;
	} while (*text);
	return y;
}

/* --- the header -------------------------------------------------------------------------------------------- */

/* Nothing while it is watched. */
static void add_state(struct mw_line *line, const struct mw_top_feed *feed)
{
	const struct mw_window_info *window = feed->window;
	bool exited = window && window->ended == MW_END_EXIT;

	if (exited && window->has_exit_status && WIFEXITED(window->exit_status))
		mw_line_printf(line, "ENDED with status %d  ", WEXITSTATUS(window->exit_status));
	else if (exited && window->has_exit_status && WIFSIGNALED(window->exit_status))
		mw_line_printf(line, "ENDED by signal %d  ", WTERMSIG(window->exit_status));
	else if (exited)
		mw_line_printf(line, "ENDED  ");
	else if (window && window->ended == MW_END_EXEC)
		mw_line_printf(line, "DETACHED: it exec'd another program  ");
	else if (window && window->ended == MW_END_LIMIT)
		mw_line_printf(line, "DETACHED: a limit was reached  ");
	else
		mw_line_printf(line, "LET GO  ");
}

/* "+1.5 KiB", "-512 B", "0 B" */
static struct mw_shown show_growth(double rate)
{
	return mw_show_change(rate < 0 ? (uint64_t)(0.5 - rate) : 0, rate < 0 ? 0 : (uint64_t)(0.5 + rate));
}

static void put_process(struct mw_top_picture *picture, int y, int width)
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_shot *shot = view->shown, *base = view->base;
	double share = mw_top_view_rate(view, (double)(shot->stood_ns - base->stood_ns)) / NS * 100;
	struct mw_line *line = &picture->line;

	if (shot->sampled) {
		mw_line_printf(line, "sampled");
		if (shot->sampled_from_ns)
			mw_line_printf(line, " from %s s on (exact: --max-wait 100)",
				       mw_top_show_moment(shot->sampled_from_ns).text);
		mw_line_printf(line, ", one heap block in %s: amounts are estimates, ",
			       mw_show_size(shot->sampled).text);
	}
	mw_line_printf(line, "resident %s, events %s/s, stopped ", mw_show_size(shot->rss).text,
		       mw_top_show_rate(mw_top_view_rate(view, (double)(shot->events - base->events))).text);
	if (shot->has_stood)
		mw_line_printf(line, "%.1f %%", share > 100 ? 100 : share);
	else
		mw_line_printf(line, "not known");
	mw_line_printf(line, ", lost %s", mw_show_count(shot->lost).text);
	if (*shot->not_hooked)
		mw_line_printf(line, ", not hooked: %s", shot->not_hooked);
	if (shot->zeros)
		mw_line_printf(line, ", since %s s", mw_top_show_moment(shot->zero_ns).text);
	if (!shot->kept)
		mw_line_printf(line, ", not kept");
	put_scratch(picture, y, 0, width);
}

/* In so many lines. */
static void put_header(struct mw_top_picture *picture, int lines, int width)
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_shot *shot = view->shown, *base = view->base;
	const struct mw_top_feed *feed = picture->feed;
	struct mw_line *line = &picture->line;
	struct mw_shown bytes, growth;

	if (!shot)
		return;
	bytes = mw_show_size(shot->heap.bytes + shot->vm.bytes);
	growth = show_growth(mw_top_view_rate(view, (double)(shot->heap.bytes + shot->vm.bytes) -
							    (double)(base->heap.bytes + base->vm.bytes)));
	if (atomic_load(&feed->phase) == MW_TOP_OVER)
		add_state(line, feed);
	else if (view->paused)
		mw_line_printf(line, "PAUSED  ");
	if (lines == 1) {
		mw_line_printf(line, "%s%s %s/s %s", bytes.text, shot->sampled ? " (estimated)" : "", growth.text,
			       feed->comm);
		put_scratch(picture, 0, 0, width);
		return;
	}
	mw_line_printf(line, "%s (%d)", feed->comm, (int)feed->pid);
	if (picture->process_count > 1)
		mw_line_printf(line, ", process %zu of %zu (Tab)", feed->process + 1, picture->process_count);
	mw_line_printf(line, ", engine %s, %s", feed->engine ? feed->engine : "?",
		       mw_show_seconds((double)shot->time_ns / NS).text);
	attron(A_BOLD);
	put_scratch(picture, 0, 0, width);
	attroff(A_BOLD);
	mw_line_printf(line, "not freed %s", bytes.text);
	if (shot->sampled)
		mw_line_printf(line, " %s %s", picture->utf8 ? "±" : "+-",
			       mw_show_size((uint64_t)(sqrt(shot->variance) + 0.5)).text);
	mw_line_printf(line, ", %s/s (last %.0f s), %s blocks, heap %s, vm %s", growth.text,
		       (double)(shot->time_ns - base->time_ns) / NS,
		       mw_show_count(shot->heap.count + shot->vm.count).text, mw_show_size(shot->heap.bytes).text,
		       mw_show_size(shot->vm.bytes).text);
	put_scratch(picture, 1, 0, width);
	if (lines > 2)
		put_process(picture, 2, width);
}

/* --- the table --------------------------------------------------------------------------------------------- */

/* The name of a column, with a mark where rows are sorted by it. */
static const char *title_of(const struct mw_top_view *view, int sort, const char *title, char text[40])
{
	(void)snprintf(text, 40, "%s%s", (int)view->sort != sort ? "" : view->reversed ? "^" : "*", title);
	return text;
}

static void put_head(const struct mw_top_picture *picture, const struct mw_top_layout *layout, int width)
{
	const struct mw_top_view *view = picture->view;
	int x = 0, y = layout->header;
	char text[40];

	attron(A_REVERSE);
	mvhline(y, 0, ' ', width);
	for (size_t i = 0; i < MW_TOP_COLUMNS; i++)
		put_cell(picture, y, &x, layout->columns[i], title_of(view, table[i].sort, table[i].title, text), 0);
	put(picture, y, x, layout->name, title_of(view, MW_TOP_BY_NAME, group_names[view->group], text));
	attroff(A_REVERSE);
}

struct cell {
	struct mw_shown shown;
	short pair; /* its colour; 0: none */
};

static void fill_cells(const struct mw_top_picture *picture, const struct mw_top_item *item,
		       const struct mw_top_row *row, struct cell cells[MW_TOP_COLUMNS])
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_course *course = mw_top_view_course(view, item);
	double growth = mw_top_view_rate(view, (double)row->growth);

	cells[MW_TOP_BYTES].shown = mw_show_size(row->impacting.bytes);
	cells[MW_TOP_GROWTH].shown = show_growth(growth);
	if (fabs(growth) >= 0.5)
		cells[MW_TOP_GROWTH].pair = growth > 0 ? PAIR_UP : PAIR_DOWN;
	cells[MW_TOP_BLOCKS].shown = mw_show_count(row->impacting.count);
	cells[MW_TOP_RATE].shown = mw_top_show_rate(mw_top_view_rate(view, (double)row->new_allocations));
	if (item->kind == MW_TOP_CHILD || view->group == MW_TOP_STACKS)
		(void)snprintf(cells[MW_TOP_KIND].shown.text, sizeof(cells->shown.text), "%s",
			       row->kind == MW_KIND_VM ? "vm" : "heap");
	if (course)
		cells[MW_TOP_LEVEL].shown = mw_top_show_bars(course, picture->utf8);
	if (!course || !course->judged)
		return;
	(void)snprintf(cells[MW_TOP_VERDICT].shown.text, sizeof(cells->shown.text), "%s%s",
		       mw_growth_name(course->verdict),
		       course->certain || course->verdict == MW_GROWTH_TOO_SHORT ? "" : "?");
	cells[MW_TOP_VERDICT].pair = course->verdict >= MW_GROWTH_STEADY ? PAIR_UP : 0;
}

static void put_row(struct mw_top_picture *picture, const struct mw_top_layout *layout, const struct mw_top_item *item,
		    bool selected, int y)
{
	const struct mw_top_row *row = mw_top_view_row(picture->view, item);
	int x = 0, indent = item->kind == MW_TOP_CHILD ? 2 : 0;
	struct cell cells[MW_TOP_COLUMNS] = {0};

	if (!row)
		return;
	fill_cells(picture, item, row, cells);
	for (size_t i = 0; i < MW_TOP_COLUMNS; i++)
		put_cell(picture, y, &x, layout->columns[i], cells[i].shown.text, selected ? 0 : cells[i].pair);
	put(picture, y, x + indent, 1, picture->view->group == MW_TOP_THREADS ? " " : item->open ? "-" : "+");
	mw_top_view_text(picture->view, item, &picture->line);
	put_scratch(picture, y, x + 2 + indent, layout->name - 2 - indent);
}

static void put_items(struct mw_top_picture *picture, const struct mw_top_layout *layout, int width)
{
	const struct mw_top_view *view = picture->view;

	for (size_t i = view->first; i < view->item_count && i - view->first < view->lines; i++) {
		const struct mw_top_item *item = &view->items[i];
		int y = layout->header + layout->head + (int)(i - view->first);
		bool selected = i == view->selected;

		if (selected) {
			attron(A_REVERSE);
			mvhline(y, 0, ' ', width);
		}
		if (item->kind == MW_TOP_ROW || item->kind == MW_TOP_CHILD) {
			put_row(picture, layout, item, selected, y);
		} else {
			mw_top_view_text(view, item, &picture->line);
			put_scratch(picture, y, 0, width);
		}
		if (selected)
			attroff(A_REVERSE);
	}
	if (!view->item_count)
		put(picture, layout->header + layout->head, 0, width,
		    !view->shown                    ? "attaching ..."
		    : mw_top_view_filter_text(view) ? "nothing that the filter takes; Esc shows all"
						    : "nothing has been allocated yet");
}

/* --- the last line ----------------------------------------------------------------------------------------- */

static void put_prompt(struct mw_top_picture *picture, int width, int y)
{
	size_t length = strlen(picture->prompt), room = width > 20 ? (size_t)width - 12 : 8;
	const char *tail = picture->prompt;

	/* The end is where it is typed. */
	while (length > room) {
		do {
			tail++;
			length--;
		} while ((*tail & 0xc0) == 0x80);
	}
	mw_line_printf(&picture->line, "%s: %s", picture->asked, tail);
	curs_set(1);
	move(y, put_scratch(picture, y, 0, width - 1));
}

static void put_order(struct mw_top_picture *picture, int width, int y)
{
	const struct mw_top_view *view = picture->view;
	const char *filter = mw_top_view_filter_text(view);
	struct mw_line *line = &picture->line;

	mw_line_printf(line, "h help  q quit  by %s, sorted by %s%s", group_names[view->group], sort_names[view->sort],
		       view->reversed ? ", reversed" : "");
	if (filter)
		mw_line_printf(line, ", %zu of filter %s", view->rows.count, filter);
	if (filter && view->unnamed && view->group != MW_TOP_THREADS)
		mw_line_printf(line, ", %zu not looked up yet", view->unnamed);
	put_scratch(picture, y, 0, width);
}

static void put_foot(struct mw_top_picture *picture, int width, int y)
{
	if (picture->prompt) {
		put_prompt(picture, width, y);
		return;
	}
	curs_set(0);
	if (!picture->message) {
		put_order(picture, width, y);
		return;
	}
	attron(A_BOLD);
	put(picture, y, 0, width, picture->message);
	attroff(A_BOLD);
}

static void put_help(struct mw_top_picture *picture, int width, int height)
{
	const size_t count = sizeof(help_lines) / sizeof(help_lines[0]);
	int lines = 0, most, y;

	for (size_t i = 0; i < count; i++)
		lines = put_wrapped(picture, lines, width, 0, help_lines[i]);
	/* Its end is at the end of the screen at most. */
	most = lines > height ? lines - height : 0;
	picture->help_first = picture->help_first < most ? picture->help_first : most;
	y = -picture->help_first;
	for (size_t i = 0; i < count; i++)
		y = put_wrapped(picture, y, width, height, help_lines[i]);
}

void mw_top_draw(struct mw_top_picture *picture)
{
	struct mw_top_layout layout;
	int width, height;
	bool fits;

	getmaxyx(stdscr, height, width);
	erase();
	fits = mw_top_layout_make(width, height, &layout);
	picture->view->lines = fits && !picture->help ? (size_t)layout.rows : 0;
	/* Without memory for what is new there is what was. */
	(void)mw_top_view_update(picture->view);
	if (width < 1 || height < 1)
		return;
	if (!fits) {
		put_wrapped(picture, 0, width, height,
			    "too small for a table: 20 columns by 5 lines is the least; q quits");
	} else if (picture->help) {
		put_help(picture, width, height);
	} else {
		put_header(picture, layout.header, width);
		if (layout.head)
			put_head(picture, &layout, width);
		put_items(picture, &layout, width);
		put_foot(picture, width, height - 1);
	}
	refresh();
}
