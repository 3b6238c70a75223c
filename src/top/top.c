// SPDX-License-Identifier: MIT
/*
 * top.c: see top.h. A thread of its own draws, and takes keys.
 *
 * It holds nobody up: a terminal that takes no more text stops that thread alone. SIGWINCH is for it, all other signals
 * are for memwatch's first thread, which it asks for the end as Ctrl-C does.
 */
#include "top/top.h"

#include "base/clock.h"
#include "session/outputs.h"
#include "session/session.h"
#include "session/watchdog.h"
#include "top/draw.h"
#include "top/work.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>

#define LOOK_NS     50000000
#define PATIENCE_MS 2000 /* for names that are being read when it ends */
#define KEPT_SHARE  4    /* what is kept unasked takes at most one of so many free bytes of the disk … */
#define KEPT_MAX    (UINT64_C(8) << 30)  /* … and this */
#define TURN_MS     1000                 /* without news the screen is looked after so often */
#define MESSAGE_NS  UINT64_C(5000000000) /* one stays so long */
#define PATIENCE_S  2                    /* for the thread to end … */
#define PATIENCE_NS UINT64_C(20000000)   /* between two looks whether it has */
#define DEAF_TURNS  20                   /* so often input that is none: the terminal is gone */
#define CTRL(c)     ((c) - 'A' + 1)

struct screen {
	struct mw_top_feed *feed;
	struct mw_top_work *work;
	pthread_t thread, first;
	_Atomic bool stop, ended;
	struct mw_error *err;
	/* The thread's own. */
	struct mw_top_view view;
	struct mw_top_picture picture;
	char message[600];
	uint64_t message_until_ns;
	bool busy; /* a recording is being written: its message stays */
	bool prompting, confirmed, dirty;
	bool asked; /* for the end: twice would be a haste that nobody has */
	char path[PATH_MAX];
	uint32_t wanted[MW_TOP_WANTED];
};

/* In the first thread, before any other is made. */
static void block_sigwinch(void)
{
	sigset_t size;

	sigemptyset(&size);
	sigaddset(&size, SIGWINCH);
	pthread_sigmask(SIG_BLOCK, &size, NULL);
}

static void say(struct screen *screen, const char *text)
{
	(void)snprintf(screen->message, sizeof(screen->message), "%s", text);
	screen->message_until_ns = mw_clock_ns() + MESSAGE_NS;
	screen->dirty = true;
}

static void ask_for_the_end(struct screen *screen)
{
	if (screen->asked)
		return;
	screen->asked = true;
	/* As Ctrl-C does; whoever waits is woken. It is caught. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread) */
	pthread_kill(screen->first, SIGTERM);
}

/* --- the prompt -------------------------------------------------------------------------------------------- */

static void begin_prompt(struct screen *screen)
{
	if (screen->busy) {
		say(screen, "a recording is still being written");
		return;
	}
	(void)snprintf(screen->path, sizeof(screen->path), "memwatch-%d.mw", (int)screen->picture.pid);
	screen->prompting = true;
	screen->confirmed = false;
}

static void take_path(struct screen *screen)
{
	struct stat there;

	if (!*screen->path) {
		screen->prompting = false;
		say(screen, "nothing is written");
		return;
	}
	if (!screen->confirmed && stat(screen->path, &there) == 0) {
		screen->confirmed = true;
		return;
	}
	screen->prompting = false;
	screen->busy = mw_top_work_save(screen->work, screen->path);
	say(screen, screen->busy ? "writing the recording" : "a recording is still being written");
}

static void add_to_path(struct screen *screen, int key)
{
	size_t length = strlen(screen->path);
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t size = wcrtomb(bytes, (wchar_t)key, &state);

	if (size == (size_t)-1 || length + size >= sizeof(screen->path))
		return;
	memcpy(screen->path + length, bytes, size);
	screen->path[length + size] = '\0';
}

static void cut_path(struct screen *screen)
{
	size_t length = strlen(screen->path);

	while (length && (screen->path[--length] & 0xc0) == 0x80)
		;
	screen->path[length] = '\0';
}

static void prompt_key(struct screen *screen, int key)
{
	if (key == '\r' || key == '\n' || key == MW_TOP_KEY(KEY_ENTER)) {
		take_path(screen);
		return;
	}
	screen->confirmed = false;
	switch (key) {
	case 0x1b:
	case CTRL('G'):
		screen->prompting = false;
		say(screen, "nothing is written");
		break;
	case 0x7f:
	case CTRL('H'):
	case MW_TOP_KEY(KEY_BACKSPACE):
	case MW_TOP_KEY(KEY_DC):
		cut_path(screen);
		break;
	case CTRL('U'):
		screen->path[0] = '\0';
		break;
	default:
		if (key >= ' ' && key < MW_TOP_KEY(0))
			add_to_path(screen, key);
	}
}

/* --- keys -------------------------------------------------------------------------------------------------- */

static void set_zero(struct screen *screen)
{
	if (atomic_load(&screen->feed->phase) == MW_TOP_OVER) {
		say(screen, "the window is over");
		return;
	}
	atomic_store(&screen->feed->zero_wanted, true);
	if (screen->view.paused)
		mw_top_view_pause(&screen->view, false);
	say(screen, "zero point: what is shown is allocated after it");
}

static void sort_by(struct screen *screen, unsigned sort)
{
	struct mw_top_view *view = &screen->view;

	view->reversed = false;
	view->sort = (enum mw_top_sort)(sort % MW_TOP_SORTS);
	view->selected = view->first = 0;
}

static void toggle(struct screen *screen, bool open, bool close)
{
	if (!mw_top_view_item(&screen->view) || mw_top_view_toggle(&screen->view, open, close) || !open)
		return;
	say(screen, screen->view.group == MW_TOP_THREADS
			    ? "the stacks of a thread's blocks are in a report: w writes a recording for one"
			    : "too much is open");
}

static void sort_key(struct screen *screen, int key)
{
	static const char keys[] = "idcan";
	const char *found = strchr(keys, key);
	unsigned sort = (unsigned)screen->view.sort;

	if (key == 's')
		sort_by(screen, sort + 1);
	else if (key == 'S')
		sort_by(screen, sort + MW_TOP_SORTS - 1);
	else if (found)
		sort_by(screen, (unsigned)(found - keys));
	else if (key == 'r')
		screen->view.reversed = !screen->view.reversed;
}

/* Those that move what is selected. */
static bool move_key(struct screen *screen, int key)
{
	const long page = screen->picture.lines > 1 ? (long)screen->picture.lines - 1 : 1;
	const struct {
		int key, character;
		long by;
	} moves[] = {
		{KEY_UP, 'k', -1},     {KEY_DOWN, 'j', 1},        {KEY_PPAGE, -1, -page},
		{KEY_NPAGE, -1, page}, {KEY_HOME, -1, -LONG_MAX}, {KEY_END, -1, LONG_MAX},
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (key == MW_TOP_KEY(moves[i].key) || key == moves[i].character) {
			mw_top_view_move(&screen->view, moves[i].by);
			return true;
		}
	return false;
}

static void command_key(struct screen *screen, int key)
{
	struct mw_top_view *view = &screen->view;

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
	case 'w':
		begin_prompt(screen);
		break;
	case ' ':
	case '\r':
	case '\n':
	case MW_TOP_KEY(KEY_ENTER):
	case MW_TOP_KEY(KEY_RIGHT):
	case MW_TOP_KEY(KEY_LEFT):
		toggle(screen, key != MW_TOP_KEY(KEY_LEFT), key != MW_TOP_KEY(KEY_RIGHT));
		break;
	case CTRL('L'):
		clearok(curscr, TRUE);
		break;
	case CTRL('Z'):
		say(screen, "not suspended: the process would be paused meanwhile; q detaches");
		break;
	default:
		if (!move_key(screen, key) && key < 128)
			sort_key(screen, key);
	}
}

static void help_key(struct screen *screen, int key)
{
	size_t *first = &screen->picture.help_first;

	switch (key) {
	case 'j':
	case MW_TOP_KEY(KEY_DOWN):
	case MW_TOP_KEY(KEY_NPAGE):
		*first += *first + 1 < MW_TOP_HELP;
		break;
	case 'k':
	case MW_TOP_KEY(KEY_UP):
	case MW_TOP_KEY(KEY_PPAGE):
		*first -= *first > 0;
		break;
	case MW_TOP_KEY(KEY_RESIZE):
		break;
	default:
		screen->picture.help = false;
	}
	if (key == 'q')
		command_key(screen, key);
}

static void on_key(struct screen *screen, int key)
{
	screen->dirty = true;
	if (screen->prompting && key != MW_TOP_KEY(KEY_RESIZE))
		prompt_key(screen, key);
	else if (screen->picture.help)
		help_key(screen, key);
	else
		command_key(screen, key);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

static void take_news(struct screen *screen)
{
	struct mw_top_shot *shot = mw_top_feed_take(screen->feed);
	char news[sizeof(screen->message)];

	if (shot)
		mw_top_view_shot(&screen->view, shot);
	mw_top_work_news(screen->work, news, sizeof(news), &screen->busy);
	if (*news)
		say(screen, news);
	if (mw_process_setup_refused_suspension())
		say(screen, "not suspended: the process would be paused meanwhile; q detaches");
	if (!screen->busy && mw_clock_ns() >= screen->message_until_ns)
		screen->message[0] = '\0';
	screen->dirty = true;
}

static void draw(struct screen *screen)
{
	struct mw_top_picture *picture = &screen->picture;
	char prompt[PATH_MAX + 40];
	size_t count;

	screen->dirty = false;
	(void)mw_top_view_update(&screen->view);
	picture->message = *screen->message ? screen->message : NULL;
	(void)snprintf(prompt, sizeof(prompt), "%s%s", screen->path,
		       screen->confirmed ? "  is there: Enter replaces it" : "");
	picture->prompt = screen->prompting ? prompt : NULL;
	mw_top_draw(picture);
	count = mw_top_view_wanted(&screen->view, picture->lines, screen->wanted, MW_TOP_WANTED);
	mw_top_work_want(screen->work, screen->wanted, count);
}

/* False: the terminal is gone. */
static bool take_keys(struct screen *screen, const struct pollfd *input, unsigned *deaf)
{
	bool any = false;
	int key;

	while ((key = mw_top_draw_key()) >= 0) {
		any = true;
		on_key(screen, key);
	}
	if (input->revents & (POLLERR | POLLNVAL))
		return false;
	*deaf = !any && input->revents ? *deaf + 1 : 0;
	return *deaf < DEAF_TURNS;
}

static void turn(struct screen *screen)
{
	struct pollfd inputs[] = {
		{.fd = screen->feed->news, .events = POLLIN},
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
static bool await_begin(struct screen *screen)
{
	struct pollfd news = {.fd = screen->feed->news, .events = POLLIN};

	while (!screen->stop && atomic_load(&screen->feed->phase) == MW_TOP_STARTING)
		(void)poll(&news, 1, TURN_MS);
	return !screen->stop;
}

static void *run(void *context)
{
	struct screen *screen = context;
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
			mw_top_draw_end();
			mw_process_setup_screen(false);
		}
	}
	screen->ended = true;
	return NULL;
}

/* Starts the thread, which takes the terminal over when the window has begun. All is borrowed. Errors: MEMORY,
 * SYSTEM. */
static struct mw_error *screen_create(struct mw_top_feed *feed, struct mw_top_work *work,
				      const struct mw_top_picture *picture, struct screen **out)
{
	struct screen *screen = calloc(1, sizeof(*screen));
	sigset_t foreign, before;
	int errnum;

	if (!screen)
		return mw_error_nomem();
	screen->feed = feed;
	screen->work = work;
	screen->first = pthread_self();
	screen->view.known = &feed->known;
	screen->picture = *picture;
	screen->picture.feed = feed;
	screen->picture.view = &screen->view;
	mw_process_setup_foreign_signals(&foreign);
	pthread_sigmask(SIG_SETMASK, &foreign, &before);
	errnum = pthread_create(&screen->thread, NULL, run, screen);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum) {
		free(screen);
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread");
	}
	*out = screen;
	return NULL;
}

static bool await_end(struct screen *screen)
{
	const struct timespec step = {.tv_nsec = PATIENCE_NS};
	uint64_t until_ns = mw_clock_ns() + PATIENCE_S * UINT64_C(1000000000);

	while (!screen->ended && mw_clock_ns() < until_ns)
		nanosleep(&step, NULL);
	return screen->ended;
}

/* Give the terminal back and end the thread. False: it does not end (the terminal takes no text), and all that it was
 * given must stay; the terminal has been put back as well as can be. */
static bool screen_destroy(struct screen *screen)
{
	if (!screen)
		return true;
	screen->stop = true;
	mw_top_feed_poke(screen->feed);
	if (!await_end(screen)) {
		/* Its terminal stands still (Ctrl-S, a connection that hangs). */
		mw_top_tty_unblock();
		if (!await_end(screen)) {
			mw_top_tty_restore();
			mw_process_setup_screen(false);
			return false;
		}
	}
	pthread_join(screen->thread, NULL);
	mw_top_view_deinit(&screen->view);
	mw_error_destroy(screen->err);
	free(screen);
	return true;
}

/* The terminal could not be taken over: why, once. NULL: it could. */
static struct mw_error *screen_error(struct screen *screen)
{
	struct mw_error *err = screen && screen->ended ? screen->err : NULL;

	if (err)
		screen->err = NULL;
	return err;
}

/* --- the session ----------------------------------------------------------------------------------------------------- */

struct top {
	const struct mw_session_options *options;
	struct mw_session session;
	struct mw_top_feed feed;
	struct mw_top_work *work;
	bool work_ended;
	struct screen *screen;
	char no_writer[300]; /* why nothing can be written */
	uint64_t kept_max;   /* bytes of what is kept unasked; 0: no limit */
	bool stuck;          /* a thread did not end: what it uses stays */
};

static void on_begun(void *context)
{
	struct top *top = context;

	mw_top_feed_begin(&top->feed);
}

static void on_sampled(void *context, size_t process, uint64_t time_ns)
{
	struct top *top = context;
	struct mw_store_writer *writer = top->session.writer;

	(void)process;
	if (writer && top->kept_max && mw_store_written(writer) > top->kept_max)
		mw_store_give_up(writer, EFBIG);
	if (atomic_load(&top->feed.phase) == MW_TOP_WATCHING)
		mw_top_feed_sample(&top->feed, time_ns);
}

/* For a recording that nobody has asked for yet: a file without a name, that is gone with memwatch. */
static void keep_unasked(struct top *top)
{
	struct mw_session *session = &top->session;
	const char *directory = getenv("TMPDIR");
	struct statvfs disk;
	struct mw_error *err;
	char path[PATH_MAX];

	if (!directory || !*directory)
		directory = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
	(void)snprintf(path, sizeof(path), "%s/memwatch-top-%d-%ld.mw", directory, (int)getpid(), (long)time(NULL));
	session->nameless = true;
	err = mw_store_create(path, &session->writer);
	if (err) {
		(void)snprintf(top->no_writer, sizeof(top->no_writer), "%s", mw_error_text(err));
		mw_error_destroy(err);
		return;
	}
	top->kept_max = KEPT_MAX;
	if (statvfs(directory, &disk) == 0 && disk.f_bavail * disk.f_frsize / KEPT_SHARE < KEPT_MAX)
		top->kept_max = disk.f_bavail * disk.f_frsize / KEPT_SHARE;
	/* On a full disk root could still write. */
	if (top->kept_max == 0)
		top->kept_max = 1;
}

static struct mw_error *prepare(struct top *top)
{
	struct mw_session *session = &top->session;

	MW_TRY(mw_process_setup_check_files());
	MW_TRY(mw_outputs_check(top->options));
	MW_TRY(mw_top_tty_prepare());
	if (top->options->output)
		MW_TRY(mw_store_create(top->options->output, &session->writer));
	else
		keep_unasked(top);
	session->begun = on_begun;
	session->sampled = on_sampled;
	session->leave = mw_top_tty_restore;
	session->stays_by = true;
	session->context = top;
	return mw_session_prepare(session);
}

static struct mw_error *start_threads(struct top *top)
{
	const struct mw_top_picture picture = {
		.pid = top->options->pids.items[0],
		.comm = top->session.recorders[0].comm ? top->session.recorders[0].comm : "?",
		.utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
	};

	block_sigwinch();
	MW_TRY(mw_top_feed_init(&top->feed, &top->session));
	MW_TRY(mw_top_work_create(&top->feed, picture.pid, top->no_writer, &top->work));
	return screen_create(&top->feed, top->work, &picture, &top->screen);
}

/* The last table stays until somebody has seen it. */
static void await_quit(void)
{
	const struct timespec step = {.tv_nsec = LOOK_NS};

	while (!mw_process_setup_end_asked())
		nanosleep(&step, NULL);
}

/* From now on nobody but us uses what they had. Returns why the screen could not be shown, if so. */
static struct mw_error *stop_threads(struct top *top)
{
	struct mw_error *err = screen_error(top->screen);

	if (!screen_destroy(top->screen))
		top->stuck = true;
	if (top->work && !top->work_ended && !mw_top_work_end(top->work, PATIENCE_MS))
		top->stuck = true;
	top->screen = NULL;
	top->work_ended = true;
	return err;
}

static bool show_names(void *context, uint64_t done, uint64_t total)
{
	struct top *top = context;

	mw_progress_symbols(&top->session.progress, done, total);
	return !mw_process_setup_hurried();
}

/* A recording that was asked for gets its names at the end, as any does. */
static struct mw_error *finish_output(struct top *top)
{
	struct mw_store_writer *writer = top->session.writer;
	struct mw_error *err = NULL;

	if (!top->options->output || !writer)
		return NULL;
	mw_progress_init(&top->session.progress, true);
	if (!top->stuck && !mw_process_setup_hurried())
		err = mw_top_work_emit(top->work, show_names, top);
	mw_progress_clear(&top->session.progress);
	return mw_error_first(mw_store_finish(writer), err);
}

static struct mw_error *watch(struct top *top)
{
	struct mw_session *session = &top->session;
	struct mw_partials partials = {{session->writer ? mw_store_partial(session->writer) : NULL}};
	struct mw_error *err, *unseen;

	MW_TRY(mw_session_stand_by(session, &partials));
	MW_TRY(start_threads(top));
	err = mw_session_watch(session);
	if (atomic_load(&top->feed.phase) == MW_TOP_WATCHING)
		mw_top_feed_end(&top->feed, !err && !session->detached);
	if (!err && !session->detached)
		await_quit();
	unseen = stop_threads(top);
	if (err || session->detached)
		return mw_error_first(err, unseen);
	/* Not before: whatever became of memwatch, the guard would have put back the terminal. */
	if (!top->stuck)
		mw_watchdog_end(NULL);
	return mw_error_first(unseen, finish_output(top));
}

/* A thread that hangs may wake at any time: nothing that it knows of is freed, and what is watched has been let go. */
static void leave_all(struct mw_session *session)
{
	session->engine = NULL;
	session->writer = NULL;
	session->recorders = NULL;
	session->emitters = NULL;
	session->watched = (struct mw_watched_set){.count = 0};
	session->count = 0;
}

struct mw_error *mw_top_run(const struct mw_session_options *options)
{
	struct top *top = calloc(1, sizeof(*top));
	struct mw_error *err, *unseen = NULL;

	if (!top)
		return mw_error_nomem();
	top->options = options;
	mw_session_init(&top->session, options, false);
	err = prepare(top);
	if (!err)
		err = watch(top);
	if (!top->work_ended)
		unseen = stop_threads(top);
	err = mw_error_first(err, unseen);
	if (top->stuck) {
		leave_all(&top->session);
		return mw_session_end(&top->session, err);
	}
	mw_top_work_destroy(top->work);
	mw_top_feed_deinit(&top->feed);
	err = mw_session_end(&top->session, err);
	free(top);
	return err;
}
