// SPDX-License-Identifier: MIT
/* draw.c: see draw.h. */
#include "top/draw.h"

#include "output/line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>

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

bool mw_top_layout_make(int width, int height, struct mw_top_layout *out)
{
	static const struct {
		int at_least, width;
		size_t offset;
	} columns[] = {
		{0, 11, offsetof(struct mw_top_layout, bytes)},   {34, 12, offsetof(struct mw_top_layout, growth)},
		{46, 10, offsetof(struct mw_top_layout, blocks)}, {66, 19, offsetof(struct mw_top_layout, verdict)},
		{84, 9, offsetof(struct mw_top_layout, rate)},    {118, 9, offsetof(struct mw_top_layout, level)},
		{94, 5, offsetof(struct mw_top_layout, kind)},
	};

	*out = (struct mw_top_layout){.name = width};
	if (width < MW_TOP_WIDTH_MIN || height < MW_TOP_HEIGHT_MIN)
		return false;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (width >= columns[i].at_least) {
			memcpy((char *)out + columns[i].offset, &columns[i].width, sizeof(columns[i].width));
			out->name -= columns[i].width;
		}
	out->header = height >= 12 ? 3 : height >= 8 ? 2 : 1;
	out->head = height >= 7;
	out->foot = true;
	out->rows = height - out->header - out->head - out->foot;
	return true;
}

void mw_top_show_growth(double bytes_per_second, char *out, size_t size)
{
	bool falls = bytes_per_second < 0;
	struct mw_shown shown = mw_show_size((uint64_t)(falls ? -bytes_per_second + 0.5 : bytes_per_second + 0.5));

	(void)snprintf(out, size, "%s%s", strcmp(shown.text, "0 B") == 0 ? "" : falls ? "-" : "+", shown.text);
}

void mw_top_show_rate(double per_second, char *out, size_t size)
{
	if (per_second <= 0)
		(void)snprintf(out, size, "0");
	else if (per_second < 9.95)
		(void)snprintf(out, size, "%.1f", per_second);
	else if (per_second < 9999.5)
		(void)snprintf(out, size, "%.0f", per_second);
	else if (per_second < 9.9995e6)
		(void)snprintf(out, size, "%.0fk", per_second / 1e3);
	else
		(void)snprintf(out, size, "%.0fM", per_second / 1e6);
}

void mw_top_show_bars(const struct mw_top_course *course, bool utf8, char out[3 * MW_TOP_BARS + 1])
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = " _.-=+*%#";

	_Static_assert(sizeof(ascii) == MW_TOP_BAR_MAX + 2, "one for each height");
	*out = '\0';
	for (uint32_t i = 0; i < course->bar_count; i++) {
		const char one[] = {ascii[course->bars[i]], '\0'};

		strcat(out, utf8 ? bars[course->bars[i]] : one);
	}
}

void mw_top_show_time(double seconds, char *out, size_t size)
{
	uint64_t whole = (uint64_t)seconds;

	(void)snprintf(out, size, "%u:%02u:%02u", (unsigned)(whole / 3600), (unsigned)(whole / 60 % 60),
		       (unsigned)(whole % 60));
}

void mw_top_show_moment(uint64_t ns, char *out, size_t size)
{
	uint64_t us = ns / 1000 + (ns % 1000 != 0);

	(void)snprintf(out, size, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

/* --- the picture ----------------------------------------------------------------------------------------------------- */

#define NS 1e9

enum { PAIR_UP = 1, PAIR_DOWN };

static const char *const group_names[] = {"stack", "module", "thread"};
static const char *const sort_names[] = {"bytes not freed", "growth", "blocks", "allocations/s", "name"};

static const char *const help_lines[MW_TOP_HELP] = {
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
	mw_top_tty_entered();
	return NULL;
}

void mw_top_draw_end(void)
{
	endwin();
	mw_top_tty_left();
}

int mw_top_draw_key(void)
{
	wint_t key;
	int kind = get_wch(&key);

	return kind == ERR ? -1 : kind == OK ? (int)key : MW_TOP_KEY((int)key);
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

static void put_right(const struct mw_top_picture *picture, int y, int *x, int width, const char *text)
{
	int columns = (int)strlen(text);

	if (width) {
		int room = width - 1;

		put(picture, y, *x + (columns < room ? room - columns : 0), room, text);
	}
	*x += width;
}

/* --- the header -------------------------------------------------------------------------------------------- */

static void put_state(const struct mw_top_picture *picture, char *out, size_t size)
{
	const struct mw_window_info *window = NULL;

	if (atomic_load(&picture->feed->phase) == MW_TOP_OVER)
		window = picture->feed->window;
	if (atomic_load(&picture->feed->phase) != MW_TOP_OVER)
		(void)snprintf(out, size, "%s", picture->view->paused ? "PAUSED" : "");
	else if (window && window->ended == MW_END_EXIT && window->has_exit_status && WIFEXITED(window->exit_status))
		(void)snprintf(out, size, "ENDED with status %d", WEXITSTATUS(window->exit_status));
	else if (window && window->ended == MW_END_EXIT && window->has_exit_status && WIFSIGNALED(window->exit_status))
		(void)snprintf(out, size, "ENDED by signal %d", WTERMSIG(window->exit_status));
	else if (window && window->ended == MW_END_EXIT)
		(void)snprintf(out, size, "ENDED");
	else if (window && window->ended == MW_END_EXEC)
		(void)snprintf(out, size, "DETACHED: it exec'd another program");
	else if (window && window->ended == MW_END_LIMIT)
		(void)snprintf(out, size, "DETACHED: a limit was reached");
	else
		(void)snprintf(out, size, "LET GO");
}

static void put_first_line(const struct mw_top_picture *picture, int width)
{
	const struct mw_top_shot *shot = picture->view->shown;
	const char *engine = picture->feed->engine;
	char text[MW_TOP_TEXT], state[100], time[32] = "", others[80] = "";

	put_state(picture, state, sizeof(state));
	if (shot)
		mw_top_show_time((double)shot->time_ns / NS, time, sizeof(time));
	if (picture->process_count > 1)
		(void)snprintf(others, sizeof(others), ", process %zu of %zu (Tab)", picture->feed->process + 1,
			       picture->process_count);
	(void)snprintf(text, sizeof(text), "%s%s%s (%d)%s, engine %s, %s", state, *state ? "  " : "",
		       picture->feed->comm, (int)picture->feed->pid, others, engine ? engine : "?", time);
	attron(A_BOLD);
	put(picture, 0, 0, width, text);
	attroff(A_BOLD);
}

static void growth_of_all(const struct mw_top_view *view, char *out, size_t size)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;
	double change = (double)(now->heap.bytes + now->vm.bytes) - (double)(base->heap.bytes + base->vm.bytes);

	mw_top_show_growth(mw_top_view_rate(view, change), out, size);
}

static void put_impacting(const struct mw_top_picture *picture, int y, int width)
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_shot *shot = view->shown, *base = view->base;
	struct mw_shown all = mw_show_size(shot->heap.bytes + shot->vm.bytes), heap = mw_show_size(shot->heap.bytes),
			vm = mw_show_size(shot->vm.bytes), blocks = mw_show_count(shot->heap.count + shot->vm.count);
	char text[512], growth[80];

	growth_of_all(view, growth, sizeof(growth));
	(void)snprintf(text, sizeof(text), "not freed %s, %s/s (last %.0f s), %s blocks, heap %s, vm %s", all.text,
		       growth, (double)(shot->time_ns - base->time_ns) / NS, blocks.text, heap.text, vm.text);
	put(picture, y, 0, width, text);
}

static void put_process(const struct mw_top_picture *picture, int y, int width)
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_shot *shot = view->shown, *base = view->base;
	char text[600], rate[40], not_hooked[200] = "", stopped[40] = "not known", moment[40], zero[80] = "";
	double share = mw_top_view_rate(view, (double)(shot->stood_ns - base->stood_ns)) / NS * 100;

	mw_top_show_rate(mw_top_view_rate(view, (double)(shot->events - base->events)), rate, sizeof(rate));
	if (shot->has_stood)
		(void)snprintf(stopped, sizeof(stopped), "%.1f %%", share > 100 ? 100 : share);
	mw_top_show_moment(shot->zero_ns, moment, sizeof(moment));
	if (shot->zeros)
		(void)snprintf(zero, sizeof(zero), ", since %s s", moment);
	if (*shot->not_hooked)
		(void)snprintf(not_hooked, sizeof(not_hooked), ", not hooked: %s", shot->not_hooked);
	(void)snprintf(text, sizeof(text), "resident %s, events %s/s, stopped %s, lost %s%s%s%s",
		       mw_show_size(shot->rss).text, rate, stopped, mw_show_count(shot->lost).text, not_hooked, zero,
		       shot->kept ? "" : ", not kept");
	put(picture, y, 0, width, text);
}

/* All in one line, where there is no room for more. */
static void put_short(const struct mw_top_picture *picture, int width)
{
	const struct mw_top_shot *shot = picture->view->shown;
	char text[MW_TOP_TEXT], state[100], growth[80];

	put_state(picture, state, sizeof(state));
	growth_of_all(picture->view, growth, sizeof(growth));
	(void)snprintf(text, sizeof(text), "%s%s%s %s/s %s", state, *state ? " " : "",
		       mw_show_size(shot->heap.bytes + shot->vm.bytes).text, growth, picture->feed->comm);
	put(picture, 0, 0, width, text);
}

static void put_header(const struct mw_top_picture *picture, const struct mw_top_layout *layout, int width)
{
	if (!picture->view->shown)
		return;
	if (layout->header == 1) {
		put_short(picture, width);
		return;
	}
	put_first_line(picture, width);
	put_impacting(picture, 1, width);
	if (layout->header > 2)
		put_process(picture, 2, width);
}

/* --- the table --------------------------------------------------------------------------------------------- */

/* The name of a column, with a mark where rows are sorted by it. */
static void put_title(const struct mw_top_picture *picture, int y, int *x, int width, const char *title, int sort)
{
	bool sorted = (int)picture->view->sort == sort;
	char text[40];

	(void)snprintf(text, sizeof(text), "%s%s", sorted ? (picture->view->reversed ? "^" : "*") : "", title);
	if (sort == MW_TOP_BY_NAME)
		put(picture, y, *x, width, text);
	else
		put_right(picture, y, x, width, text);
}

static void put_head(const struct mw_top_picture *picture, const struct mw_top_layout *layout, int width)
{
	int y = layout->header, x = 0;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', width);
	put_title(picture, y, &x, layout->bytes, "not freed", MW_TOP_BY_BYTES);
	put_title(picture, y, &x, layout->growth, "growth/s", MW_TOP_BY_GROWTH);
	put_title(picture, y, &x, layout->blocks, "blocks", MW_TOP_BY_BLOCKS);
	put_title(picture, y, &x, layout->rate, "allocs/s", MW_TOP_BY_RATE);
	put_title(picture, y, &x, layout->level, "level", -1);
	put_title(picture, y, &x, layout->verdict, "verdict", -1);
	put_title(picture, y, &x, layout->kind, "kind", -1);
	put_title(picture, y, &x, layout->name, group_names[picture->view->group], MW_TOP_BY_NAME);
	attroff(A_REVERSE);
}

static void put_growth(const struct mw_top_picture *picture, const struct mw_top_row *row, bool selected, int y, int *x,
		       int width)
{
	double growth = mw_top_view_rate(picture->view, (double)row->growth);
	bool colored = picture->color && !selected && (growth >= 0.5 || growth <= -0.5);
	char text[80];

	mw_top_show_growth(growth, text, sizeof(text));
	if (colored)
		attron(COLOR_PAIR(growth > 0 ? PAIR_UP : PAIR_DOWN));
	put_right(picture, y, x, width, text);
	if (colored)
		attroff(COLOR_PAIR(growth > 0 ? PAIR_UP : PAIR_DOWN));
}

static void put_course(const struct mw_top_picture *picture, const struct mw_top_layout *layout,
		       const struct mw_top_item *item, bool selected, int y, int *x)
{
	const struct mw_top_course *course = mw_top_view_course(picture->view, item);
	bool colored = picture->color && !selected && course && course->judged && course->verdict >= MW_GROWTH_STEADY;
	char bars[3 * MW_TOP_BARS + 1] = "", text[40] = "";

	if (course)
		mw_top_show_bars(course, picture->utf8, bars);
	if (course && course->judged)
		(void)snprintf(text, sizeof(text), "%s%s", mw_growth_name(course->verdict),
			       course->certain || course->verdict == MW_GROWTH_TOO_SHORT ? "" : "?");
	put(picture, y, *x, layout->level - 1, bars);
	*x += layout->level;
	if (colored)
		attron(COLOR_PAIR(PAIR_UP));
	put_right(picture, y, x, layout->verdict, text);
	if (colored)
		attroff(COLOR_PAIR(PAIR_UP));
}

static void put_row(const struct mw_top_picture *picture, const struct mw_top_layout *layout,
		    const struct mw_top_item *item, bool selected, int y)
{
	const struct mw_top_view *view = picture->view;
	const struct mw_top_row *row = mw_top_view_row(view, item);
	bool is_stack = item->kind == MW_TOP_CHILD || view->group == MW_TOP_STACKS;
	char text[MW_TOP_TEXT], rate[40];
	int x = 0, indent = item->kind == MW_TOP_CHILD ? 2 : 0;

	if (!row)
		return;
	put_right(picture, y, &x, layout->bytes, mw_show_size(row->impacting.bytes).text);
	put_growth(picture, row, selected, y, &x, layout->growth);
	put_right(picture, y, &x, layout->blocks, mw_show_count(row->impacting.count).text);
	mw_top_show_rate(mw_top_view_rate(view, (double)row->new_allocations), rate, sizeof(rate));
	put_right(picture, y, &x, layout->rate, rate);
	put_course(picture, layout, item, selected, y, &x);
	put_right(picture, y, &x, layout->kind, !is_stack ? "" : row->kind == MW_KIND_VM ? "vm" : "heap");
	mw_top_view_text(view, item, text, sizeof(text));
	put(picture, y, x + indent, 1, view->group == MW_TOP_THREADS ? " " : item->open ? "-" : "+");
	put(picture, y, x + 2 + indent, layout->name - 2 - indent, text);
}

static void put_items(const struct mw_top_picture *picture, const struct mw_top_layout *layout, int width)
{
	const struct mw_top_view *view = picture->view;
	char text[MW_TOP_TEXT];

	for (size_t i = view->first; i < view->item_count && i - view->first < (size_t)layout->rows; i++) {
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
			mw_top_view_text(view, item, text, sizeof(text));
			put(picture, y, 0, width, text);
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

static void put_order(const struct mw_top_view *view, char *out, size_t size)
{
	const char *filter = mw_top_view_filter_text(view);
	char unnamed[80] = "", rows[MW_TOP_TEXT / 2] = "";

	if (view->unnamed && view->group != MW_TOP_THREADS)
		(void)snprintf(unnamed, sizeof(unnamed), ", %zu not looked up yet", view->unnamed);
	if (filter)
		(void)snprintf(rows, sizeof(rows), ", %zu of filter %s%s", view->rows.count, filter, unnamed);
	(void)snprintf(out, size, "h help  q quit  by %s, sorted by %s%s%s", group_names[view->group],
		       sort_names[view->sort], view->reversed ? ", reversed" : "", rows);
}

static void put_foot(const struct mw_top_picture *picture, int width, int y)
{
	const struct mw_top_view *view = picture->view;
	char text[MW_TOP_TEXT];
	int used;

	if (picture->prompt) {
		size_t length = strlen(picture->prompt);
		size_t room = width > 20 ? (size_t)width - 12 : 8;
		const char *tail = picture->prompt;

		/* The end is where it is typed. */
		while (length > room) {
			do {
				tail++;
				length--;
			} while ((*tail & 0xc0) == 0x80);
		}
		(void)snprintf(text, sizeof(text), "%s: %.*s", picture->asked, PATH_MAX, tail);
		used = put(picture, y, 0, width - 1, text);
		curs_set(1);
		move(y, used);
		return;
	}
	curs_set(0);
	if (picture->message)
		(void)snprintf(text, sizeof(text), "%s", picture->message);
	else
		put_order(view, text, sizeof(text));
	if (picture->message)
		attron(A_BOLD);
	put(picture, y, 0, width, text);
	attroff(A_BOLD);
}

static void put_help(const struct mw_top_picture *picture, int width, int height)
{
	for (int y = 0; y < height && picture->help_first + (size_t)y < MW_TOP_HELP; y++)
		put(picture, y, 0, width, help_lines[picture->help_first + (size_t)y]);
}

/* In as many lines as it takes. */
static void put_too_small(const struct mw_top_picture *picture, int width, int height)
{
	static const char text[] = "too small for a table: 20 columns by 5 lines is the least; q quits";
	size_t at = 0;

	for (int y = 0; y < height && at < sizeof(text) - 1 && width > 0; y++) {
		char line[sizeof(text)];
		size_t length = sizeof(text) - 1 - at < (size_t)width ? sizeof(text) - 1 - at : (size_t)width;

		memcpy(line, text + at, length);
		line[length] = '\0';
		put(picture, y, 0, width, line);
		at += length;
	}
}

void mw_top_draw(struct mw_top_picture *picture)
{
	struct mw_top_layout layout;
	int width, height;

	getmaxyx(stdscr, height, width);
	erase();
	picture->lines = 0;
	if (width < 1 || height < 1)
		return;
	if (!mw_top_layout_make(width, height, &layout)) {
		put_too_small(picture, width, height);
	} else if (picture->help) {
		put_help(picture, width, height);
	} else {
		picture->lines = (size_t)layout.rows;
		mw_top_view_scroll(picture->view, picture->lines);
		put_header(picture, &layout, width);
		if (layout.head)
			put_head(picture, &layout, width);
		put_items(picture, &layout, width);
		put_foot(picture, width, height - 1);
	}
	refresh();
}
