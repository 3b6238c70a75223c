// SPDX-License-Identifier: MIT
/* screen.c: see screen.h. */
#include "top/screen.h"

#include "base/clock.h"
#include "base/thread.h"
#include "session/session.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>

#define TURN_MS    1000                 /* without news the screen is looked after so often */
#define MESSAGE_NS UINT64_C(5000000000) /* one stays so long */
#define PATIENCE_S 2                    /* for the thread to end */
#define DEAF_TURNS 20                   /* so often input that is none: the terminal is gone */

#define CONTROL(c) ((c) - 'A' + 1)
#define ESCAPE     0x1b
#define KEY(key)   ((1 << 24) + (key)) /* above all characters */
#define TYPED_MAX  (MW_FILTER_LENGTH + 1)
_Static_assert(TYPED_MAX >= PATH_MAX, "for both prompts");

struct mw_top_screen {
	struct mw_top_feeds *feeds;
	struct mw_top_feed *feed; /* of the process that is shown */
	struct mw_top_work *work;
	pthread_t thread, first;
	_Atomic bool stop;
	struct mw_error *err;
	/* The thread's own. */
	struct mw_top_view *views, *view; /* as the feeds */
	struct mw_top_picture picture;
	char message[600];
	uint64_t message_until_ns;
	bool busy; /* a recording is being written: its message stays */
	bool confirmed, dirty;
	bool asked;  /* for the end: twice would be a haste that nobody has */
	char *typed; /* what is being typed: one of these; NULL: nothing is */
	char path[TYPED_MAX], filters[MW_TOP_FILTERS][TYPED_MAX];
	struct mw_top_wishes wishes; /* of that process */
};

static void say(struct mw_top_screen *screen, const char *text)
{
	(void)snprintf(screen->message, sizeof(screen->message), "%s", text);
	screen->message_until_ns = mw_clock_ns() + MESSAGE_NS;
	screen->dirty = true;
}

static void ask_for_the_end(struct mw_top_screen *screen)
{
	if (screen->asked)
		return;
	screen->asked = true;
	/* As Ctrl-C does; whoever waits is woken. It is caught. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread) */
	pthread_kill(screen->first, SIGTERM);
}

/* --- the prompt -------------------------------------------------------------------------------------------- */

static void begin_prompt(struct mw_top_screen *screen)
{
	if (screen->busy) {
		say(screen, "a recording is still being written");
		return;
	}
	(void)snprintf(screen->path, sizeof(screen->path), "memwatch-%d.mw", (int)screen->feed->pid);
	screen->typed = screen->path;
	screen->confirmed = false;
}

static void take_path(struct mw_top_screen *screen)
{
	struct stat there;

	if (!*screen->path) {
		screen->typed = NULL;
		say(screen, "nothing is written");
		return;
	}
	if (!screen->confirmed && stat(screen->path, &there) == 0) {
		screen->confirmed = true;
		return;
	}
	screen->typed = NULL;
	screen->busy = mw_top_work_save(screen->work, screen->path);
	say(screen, screen->busy ? "writing the recording" : "a recording is still being written");
}

/* The filter of the rows that are shown; what was typed stays to be mended. */
static char *filter_text(struct mw_top_screen *screen)
{
	return screen->filters[screen->view->group == MW_TOP_THREADS ? MW_TOP_OF_THREADS : MW_TOP_OF_STACKS];
}

/* What of a process is shown, and in which order, is that of the others. */
static void arrange_like(struct mw_top_view *view, const struct mw_top_view *other)
{
	if (view->group != other->group)
		mw_top_view_group(view, other->group);
	view->sort = other->sort;
	view->reversed = other->reversed;
}

static void show_process(struct mw_top_screen *screen, size_t process)
{
	if (screen->view)
		arrange_like(&screen->views[process], screen->view);
	screen->wishes.course_count = 0;
	screen->feed = &screen->feeds->items[process];
	screen->view = &screen->views[process];
	screen->picture.feed = screen->feed;
	screen->picture.view = screen->view;
}

static void take_filter(struct mw_top_screen *screen)
{
	char text[sizeof(screen->message)];
	struct mw_error *err = NULL;
	const char *hint;

	screen->typed = NULL;
	for (size_t i = 0; i < screen->feeds->count && !err; i++) {
		arrange_like(&screen->views[i], screen->view);
		err = mw_top_view_filter(&screen->views[i], filter_text(screen));
	}
	hint = err ? mw_error_hint_text(err) : NULL;
	if (err) {
		(void)snprintf(text, sizeof(text), "%s%s%s", mw_error_text(err), hint ? ". " : "", hint ? hint : "");
		/* It is an option's elsewhere. */
		say(screen, strncmp(text, "--", 2) == 0 ? text + 2 : text);
	}
	mw_error_destroy(err);
}

static void clear_filter(struct mw_top_screen *screen)
{
	filter_text(screen)[0] = '\0';
	take_filter(screen);
}

static void add_to_typed(struct mw_top_screen *screen, int key)
{
	size_t length = strlen(screen->typed);
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t size = wcrtomb(bytes, (wchar_t)key, &state);

	if (size == (size_t)-1 || length + size >= TYPED_MAX)
		return;
	memcpy(screen->typed + length, bytes, size);
	screen->typed[length + size] = '\0';
}

static void cut_typed(struct mw_top_screen *screen)
{
	size_t length = strlen(screen->typed);

	while (length && (screen->typed[--length] & 0xc0) == 0x80)
		;
	screen->typed[length] = '\0';
}

static void leave_prompt(struct mw_top_screen *screen)
{
	if (screen->typed == screen->path)
		say(screen, "nothing is written");
	else
		clear_filter(screen);
	screen->typed = NULL;
}

static void prompt_key(struct mw_top_screen *screen, int key)
{
	if (key == '\r' || key == '\n' || key == KEY(KEY_ENTER)) {
		if (screen->typed == screen->path)
			take_path(screen);
		else
			take_filter(screen);
		return;
	}
	screen->confirmed = false;
	switch (key) {
	case ESCAPE:
	case CONTROL('G'):
		leave_prompt(screen);
		break;
	case 0x7f:
	case CONTROL('H'):
	case KEY(KEY_BACKSPACE):
	case KEY(KEY_DC):
		cut_typed(screen);
		break;
	case CONTROL('U'):
		screen->typed[0] = '\0';
		break;
	default:
		if (key >= ' ' && key < KEY(0))
			add_to_typed(screen, key);
	}
}

/* --- keys -------------------------------------------------------------------------------------------------- */

static void set_zero(struct mw_top_screen *screen)
{
	if (atomic_load(&screen->feed->phase) == MW_TOP_OVER) {
		say(screen, "the window is over");
		return;
	}
	atomic_store(&screen->feed->zero_wanted, true);
	if (screen->view->paused)
		mw_top_view_pause(screen->view, false);
	say(screen, "zero point: what is shown is allocated after it");
}

static void sort_by(struct mw_top_screen *screen, unsigned sort)
{
	struct mw_top_view *view = screen->view;

	view->reversed = false;
	view->sort = (enum mw_top_sort)(sort % MW_TOP_SORTS);
	view->selected = view->first = 0;
}

static void toggle(struct mw_top_screen *screen, bool open, bool close)
{
	if (!mw_top_view_item(screen->view) || mw_top_view_toggle(screen->view, open, close) || !open)
		return;
	say(screen, screen->view->group == MW_TOP_THREADS
			    ? "the stacks of a thread's blocks are in a report: w writes a recording for one"
			    : "too much is open");
}

static void sort_key(struct mw_top_screen *screen, int key)
{
	static const char keys[] = "idcan";
	const char *found = strchr(keys, key);
	unsigned sort = (unsigned)screen->view->sort;

	if (key == 's')
		sort_by(screen, sort + 1);
	else if (key == 'S')
		sort_by(screen, sort + MW_TOP_SORTS - 1);
	else if (found)
		sort_by(screen, (unsigned)(found - keys));
	else if (key == 'r')
		screen->view->reversed = !screen->view->reversed;
}

/* Those that move what is selected. */
static bool move_key(struct mw_top_screen *screen, int key)
{
	const long page = screen->view->lines > 1 ? (long)screen->view->lines - 1 : 1;
	const struct {
		int key, character;
		long by;
	} moves[] = {
		{KEY_UP, 'k', -1},     {KEY_DOWN, 'j', 1},        {KEY_PPAGE, -1, -page},
		{KEY_NPAGE, -1, page}, {KEY_HOME, -1, -LONG_MAX}, {KEY_END, -1, LONG_MAX},
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (key == KEY(moves[i].key) || key == moves[i].character) {
			mw_top_view_move(screen->view, moves[i].by);
			return true;
		}
	return false;
}

static void command_key(struct mw_top_screen *screen, int key)
{
	struct mw_top_view *view = screen->view;

	switch (key) {
	case 'q':
		say(screen, "detaching from the process ...");
		ask_for_the_end(screen);
		break;
	case 'h':
	case '?':
		screen->picture.help = true;
		screen->picture.help_first = 0;
		break;
	case 'g':
		mw_top_view_group(view, (enum mw_top_group)((view->group + 1) % MW_TOP_GROUPS));
		break;
	case '1':
	case '2':
	case '3':
		mw_top_view_group(view, (enum mw_top_group)(key - '1'));
		break;
	case 'z':
		set_zero(screen);
		break;
	case 'p':
		mw_top_view_pause(view, !view->paused);
		say(screen, view->paused ? "paused: recording goes on; p again for the newest" : "");
		break;
	case '\t':
		show_process(screen, (screen->feed->process + 1) % screen->feeds->count);
		break;
	case 'w':
		begin_prompt(screen);
		break;
	case '/':
		screen->confirmed = false;
		screen->typed = filter_text(screen);
		break;
	case ESCAPE:
		clear_filter(screen);
		break;
	case ' ':
	case '\r':
	case '\n':
	case KEY(KEY_ENTER):
	case KEY(KEY_RIGHT):
	case KEY(KEY_LEFT):
		toggle(screen, key != KEY(KEY_LEFT), key != KEY(KEY_RIGHT));
		break;
	case CONTROL('L'):
		clearok(curscr, TRUE);
		break;
	case CONTROL('Z'):
		say(screen, "not suspended: the process would be paused meanwhile; q detaches");
		break;
	default:
		if (!move_key(screen, key) && key < 128)
			sort_key(screen, key);
	}
}

static void help_key(struct mw_top_screen *screen, int key)
{
	int *first = &screen->picture.help_first;

	switch (key) {
	case 'j':
	case KEY(KEY_DOWN):
	case KEY(KEY_NPAGE):
		*first += 1;
		break;
	case 'k':
	case KEY(KEY_UP):
	case KEY(KEY_PPAGE):
		*first -= *first > 0;
		break;
	case KEY(KEY_RESIZE):
		break;
	default:
		screen->picture.help = false;
	}
	if (key == 'q')
		command_key(screen, key);
}

static void on_key(struct mw_top_screen *screen, int key)
{
	screen->dirty = true;
	if (screen->typed && key != KEY(KEY_RESIZE))
		prompt_key(screen, key);
	else if (screen->picture.help)
		help_key(screen, key);
	else
		command_key(screen, key);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

static void take_news(struct mw_top_screen *screen)
{
	char news[sizeof(screen->message)];

	for (size_t i = 0; i < screen->feeds->count; i++) {
		struct mw_top_feed *feed = &screen->feeds->items[i];
		struct mw_top_shot *shot = mw_top_feed_take(feed, screen->wishes.courses,
							    feed == screen->feed ? screen->wishes.course_count : 0);

		if (shot)
			mw_top_view_shot(&screen->views[i], shot);
	}
	mw_top_work_news(screen->work, news, sizeof(news), &screen->busy);
	if (*news)
		say(screen, news);
	if (mw_process_setup_refused_suspension())
		say(screen, "not suspended: the process would be paused meanwhile; q detaches");
	if (!screen->busy && mw_clock_ns() >= screen->message_until_ns)
		screen->message[0] = '\0';
	screen->dirty = true;
}

static void draw(struct mw_top_screen *screen)
{
	struct mw_top_picture *picture = &screen->picture;
	struct mw_top_wishes *wishes = &screen->wishes;
	char prompt[TYPED_MAX + 40];

	screen->dirty = false;
	picture->message = *screen->message ? screen->message : NULL;
	(void)snprintf(prompt, sizeof(prompt), "%s%s", screen->typed ? screen->typed : "",
		       screen->confirmed ? "  is there: Enter replaces it" : "");
	picture->prompt = screen->typed ? prompt : NULL;
	picture->asked = screen->typed == screen->path ? "write to" : "filter";
	mw_top_draw(picture);
	mw_top_view_wishes(screen->view, wishes);
	mw_top_work_want(screen->work, screen->feed->process, wishes->names, wishes->name_count);
}

/* A character, or KEY() of a KEY_... of ncurses; negative: none was pressed. */
static int next_key(void)
{
	wint_t key;
	int kind = get_wch(&key);

	return kind == ERR ? -1 : kind == OK ? (int)key : KEY((int)key);
}

/* False: the terminal is gone. */
static bool take_keys(struct mw_top_screen *screen, const struct pollfd *input, unsigned *deaf)
{
	bool any = false;
	int key;

	while ((key = next_key()) >= 0) {
		any = true;
		on_key(screen, key);
	}
	if (input->revents & (POLLERR | POLLNVAL))
		return false;
	*deaf = !any && input->revents ? *deaf + 1 : 0;
	return *deaf < DEAF_TURNS;
}

static void turn(struct mw_top_screen *screen)
{
	struct pollfd inputs[] = {
		{.fd = screen->feeds->news, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	static const struct pollfd none = {.fd = -1};
	unsigned deaf = 0;
	uint64_t count;

	while (!screen->stop) {
		bool heard = poll(inputs, deaf == DEAF_TURNS ? 1 : 2, TURN_MS) > 0;

		if (heard && inputs[0].revents && read(inputs[0].fd, &count, sizeof(count)) < 0)
			inputs[0].revents = 0;
		take_news(screen);
		if (deaf < DEAF_TURNS && !take_keys(screen, heard ? &inputs[1] : &none, &deaf)) {
			deaf = DEAF_TURNS;
			ask_for_the_end(screen);
		}
		if (screen->dirty)
			draw(screen);
	}
}

/* Until there is something to show. */
static bool await_begin(struct mw_top_screen *screen)
{
	struct pollfd news = {.fd = screen->feeds->news, .events = POLLIN};

	while (!screen->stop && atomic_load(&screen->feed->phase) == MW_TOP_STARTING)
		(void)poll(&news, 1, TURN_MS);
	return !screen->stop;
}

static void *run(void *context)
{
	struct mw_top_screen *screen = context;
	sigset_t size;

	pthread_setname_np(pthread_self(), "memwatch-screen");
	if (await_begin(screen)) {
		screen->err = mw_top_draw_begin(&screen->picture);
		if (screen->err) {
			ask_for_the_end(screen);
		} else {
			mw_process_setup_screen(true);
			sigemptyset(&size);
			sigaddset(&size, SIGWINCH);
			pthread_sigmask(SIG_UNBLOCK, &size, NULL);
			turn(screen);
			pthread_sigmask(SIG_BLOCK, &size, NULL);
			mw_top_draw_end(&screen->picture);
			mw_process_setup_screen(false);
		}
	}
	return NULL;
}

static void free_all(struct mw_top_screen *screen)
{
	for (size_t i = 0; screen->views && i < screen->feeds->count; i++)
		mw_top_view_deinit(&screen->views[i]);
	free(screen->views);
	free(screen);
}

struct mw_error *mw_top_screen_create(struct mw_top_feeds *feeds, struct mw_top_work *work, bool utf8,
				      struct mw_top_screen **out)
{
	struct mw_top_screen *screen = calloc(1, sizeof(*screen));
	struct mw_error *err = NULL;
	sigset_t size;

	if (!screen)
		return mw_error_nomem();
	screen->feeds = feeds;
	screen->picture.process_count = feeds->count;
	screen->picture.utf8 = utf8;
	screen->work = work;
	screen->first = pthread_self();
	screen->views = calloc(feeds->count, sizeof(*screen->views));
	for (size_t i = 0; screen->views && i < feeds->count; i++)
		screen->views[i].known = &feeds->items[i].known;
	/* In the first thread: it comes to the screen's, which alone takes it. */
	sigemptyset(&size);
	sigaddset(&size, SIGWINCH);
	pthread_sigmask(SIG_BLOCK, &size, NULL);
	if (screen->views) {
		show_process(screen, 0);
		err = mw_process_setup_thread(&screen->thread, run, screen);
	}
	if (!screen->views || err) {
		free_all(screen);
		return err ? err : mw_error_nomem();
	}
	*out = screen;
	return NULL;
}

bool mw_top_screen_destroy(struct mw_top_screen *screen, struct mw_error **why)
{
	if (!screen)
		return true;
	screen->stop = true;
	mw_top_feeds_poke(screen->feeds);
	if (!mw_thread_join_within(screen->thread, PATIENCE_S)) {
		/* Its terminal takes nothing (Ctrl-S, a connection that hangs): what it holds up is thrown away. */
		tcflush(STDOUT_FILENO, TCOFLUSH);
		tcflow(STDOUT_FILENO, TCOON);
		if (!mw_thread_join_within(screen->thread, PATIENCE_S)) {
			mw_top_tty_restore();
			mw_process_setup_screen(false);
			return false;
		}
	}
	*why = screen->err;
	free_all(screen);
	return true;
}
