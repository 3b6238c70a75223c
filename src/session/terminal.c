// SPDX-License-Identifier: MIT
/* terminal.c: what memwatch shows on terminals, and what it says on standard error (terminal.h). */
#include "session/terminal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "output/line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN     20 /* what claims less is wrong more often than narrow */
#define WIDTH_MAX     10000

unsigned mw_terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	char *end;
	long value;

	if (!isatty(fd))
		return 0;
	if (columns) {
		value = strtol(columns, &end, 10);
		if (!*end && value >= WIDTH_MIN && value <= WIDTH_MAX)
			return (unsigned)value;
	}
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
		return size.ws_col;
	return WIDTH_DEFAULT;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

void mw_message_put(FILE *out, const char *text)
{
	uint32_t character;

	for (size_t taken; (taken = mw_utf8_decode(text, &character)) != 0; text += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(character, encoded);

		if (mw_utf8_is_printable(character))
			fwrite(encoded, 1, size, out);
		else
			fputc('?', out);
	}
}

enum mw_message_status mw_message_error(struct mw_error *err)
{
	enum mw_message_status status;
	char line[BUFSIZ];

	if (!err)
		return MW_STATUS_DONE;
	status = mw_error_kind(err) == MW_ERROR_USAGE   ? MW_STATUS_USAGE
		 : mw_error_kind(err) == MW_ERROR_FOUND ? MW_STATUS_FOUND
							: MW_STATUS_FAILED;
	if (mw_error_errno(err) == EPIPE) {
		mw_error_destroy(err);
		return status;
	}
	/* In one write where that is possible, so that the messages of several programs don't mix. */
	setvbuf(stderr, line, _IOLBF, sizeof(line));
	fputs("memwatch: ", stderr);
	mw_message_put(stderr, mw_error_text(err));
	if (mw_error_hint_text(err)) {
		fputs(". ", stderr);
		mw_message_put(stderr, mw_error_hint_text(err));
	} else if (mw_error_errno(err) == EMFILE) {
		fputs(". Raise the limit of open files: ulimit -n 1024", stderr);
	}
	fputc('\n', stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
	mw_error_destroy(err);
	return status;
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

#define REDRAW_NS 100000000ULL
#define TICK_NS   250000000L    /* the thread looks */
#define QUIET_NS  1000000000ULL /* a phase that takes longer shows its seconds */
#define MOMENT_S  0.3           /* a rate over less says little */

/* A description of our own for the terminal, as what is set of standard error's is set for all that share it. */
static int open_terminal(void)
{
	int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	close(fd); /* one of the standard ones was closed: that is kept for others */
	return -1;
}

void mw_progress_init(struct mw_progress *progress, bool wanted)
{
	pthread_condattr_t attributes;

	*progress = (struct mw_progress){.fd = -1};
	if (wanted)
		progress->width = mw_terminal_width(STDERR_FILENO);
	progress->shown = progress->width > 0;
	pthread_mutex_init(&progress->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	if (progress->shown)
		progress->fd = open_terminal();
}

void mw_progress_deinit(struct mw_progress *progress)
{
	mw_progress_clear(progress);
	if (progress->fd >= 0)
		close(progress->fd);
	progress->fd = -1;
	pthread_cond_destroy(&progress->wake);
	pthread_mutex_destroy(&progress->lock);
}

/* What the terminal does not take now is not written. */
static void put(const struct mw_progress *progress, const char *text, size_t size)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t wrote = -1;

	if (progress->fd >= 0)
		wrote = write(progress->fd, text, size);
	else if (poll(&room, 1, 0) == 1 && room.revents & POLLOUT)
		wrote = write(STDERR_FILENO, text, size);
	(void)wrote;
}

/* Blanks instead of an escape sequence, for terminals that know none. Locked. */
static void draw(struct mw_progress *progress, const char *text)
{
	size_t length = strnlen(text, progress->width - 1); /* the last column would wrap */
	size_t blanks = progress->length > length ? progress->length - length : 0;
	MW_FREE char *line = NULL;
	int size;

	if (blanks)
		size = asprintf(&line, "\r%.*s%*s\r%.*s", (int)length, text, (int)blanks, "", (int)length, text);
	else
		size = asprintf(&line, "\r%.*s", (int)length, text);
	if (size < 0)
		return;
	put(progress, line, (size_t)size);
	progress->length = length;
}

/* Counts as people read them; 1000 to the next unit. */
static const char *show_count(double count, char out[24])
{
	if (count < 10000)
		snprintf(out, 24, "%.0f", count);
	else if (count < 1e7)
		snprintf(out, 24, "%.0f k", count / 1e3);
	else
		snprintf(out, 24, "%.0f M", count / 1e6);
	return out;
}

void mw_progress_window(struct mw_progress *progress, const struct mw_progress_window *window)
{
	uint64_t left = window->duration_ns > window->time_ns ? window->duration_ns - window->time_ns : 0;
	uint64_t passed = window->time_ns > progress->last_ns ? window->time_ns - progress->last_ns : 0;
	double seconds = (double)passed / 1e9, rate, stood;
	char blocks[24], events[24];
	char text[300];

	/* Several processes are sampled one after the other. */
	if (!progress->shown || (progress->last_ns && seconds < MOMENT_S))
		return;
	rate = seconds > 0 ? (double)(window->events - progress->last_events) / seconds : 0;
	stood = seconds > 0 && window->processes ? (double)(window->stood_ns - progress->last_stood_ns) / 1e7 /
							   seconds / (double)window->processes
						 : 0;
	progress->last_ns = window->time_ns;
	progress->last_events = window->events;
	progress->last_stood_ns = window->stood_ns;
	snprintf(text, sizeof(text),
		 "memwatch: %.0f s %s, not freed: %s in %s blocks, resident: %s, events: %s/s, stopped: %.1f %%",
		 (double)(window->duration_ns ? left : window->time_ns) / 1e9,
		 window->duration_ns ? "left" : "(end with Ctrl-C)", mw_show_size(window->impacting.bytes).text,
		 show_count((double)window->impacting.count, blocks), mw_show_size(window->rss).text,
		 show_count(rate, events), stood > 100 ? 100 : stood);
	pthread_mutex_lock(&progress->lock);
	draw(progress, text);
	pthread_mutex_unlock(&progress->lock);
}

void mw_progress_settling(struct mw_progress *progress, uint64_t left_ns)
{
	char text[100];

	if (!progress->shown)
		return;
	snprintf(text, sizeof(text), "memwatch: settling: recording frees for %.1f s more (Ctrl-C to stop)",
		 (double)left_ns / 1e9);
	pthread_mutex_lock(&progress->lock);
	draw(progress, text);
	pthread_mutex_unlock(&progress->lock);
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

/* Locked, as all here. */
static void draw_phase(struct mw_progress *progress, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - progress->since_ns;
	char text[160], share[64] = "", time[32] = "";

	if (progress->counted)
		snprintf(share, sizeof(share), " %" PRIu64 "/%" PRIu64, progress->done, progress->total);
	else if (progress->total)
		snprintf(share, sizeof(share), " %.0f %%", 100 * (double)progress->done / (double)progress->total);
	if (passed_ns >= QUIET_NS)
		snprintf(time, sizeof(time), "%s %" PRIu64 " s", *share ? "," : "", passed_ns / 1000000000u);
	snprintf(text, sizeof(text), "memwatch: %s ...%s%s", progress->phase, share, time);
	draw(progress, text);
	progress->next_ns = now_ns + REDRAW_NS;
}

static void *tick(void *context)
{
	struct mw_progress *progress = context;

	pthread_mutex_lock(&progress->lock);
	while (!progress->ended) {
		uint64_t until_ns = mw_clock_ns() + TICK_NS;
		const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
					       .tv_nsec = (long)(until_ns % 1000000000u)};
		int errnum = 0;

		while (!progress->ended && errnum != ETIMEDOUT)
			errnum = pthread_cond_timedwait(&progress->wake, &progress->lock, &until);
		if (!progress->ended && progress->phase)
			draw_phase(progress, mw_clock_ns());
	}
	pthread_mutex_unlock(&progress->lock);
	return NULL;
}

/* Signals are for the main thread. Without a thread there is what the phases tell themselves. */
static void begin_ticking(struct mw_progress *progress)
{

	if (progress->ticking)
		return;
	progress->ended = false;
	progress->ticking = mw_thread_create(&progress->thread, NULL, tick, progress) == 0;
}

/* Locked. Is it another one? */
static bool set_phase(struct mw_progress *progress, const char *phase, uint64_t now_ns)
{
	bool changed = !progress->phase || strcmp(progress->phase, phase) != 0;

	if (changed) {
		progress->since_ns = now_ns;
		progress->done = progress->total = 0;
		progress->counted = false;
	}
	progress->phase = phase;
	begin_ticking(progress);
	return changed;
}

void mw_progress_phase(struct mw_progress *progress, const char *phase)
{
	if (!progress->shown)
		return;
	pthread_mutex_lock(&progress->lock);
	(void)set_phase(progress, phase, mw_clock_ns());
	pthread_mutex_unlock(&progress->lock);
}

static void go_on(struct mw_progress *progress, const char *phase, uint64_t done, uint64_t total, bool counted)
{
	uint64_t now_ns;
	bool changed;

	if (!progress->shown)
		return;
	now_ns = mw_clock_ns();
	pthread_mutex_lock(&progress->lock);
	changed = set_phase(progress, phase, now_ns);
	progress->done = done;
	progress->total = total;
	progress->counted = counted;
	if (changed || now_ns >= progress->next_ns)
		draw_phase(progress, now_ns);
	pthread_mutex_unlock(&progress->lock);
}

void mw_progress_symbols(void *progress, size_t done, size_t total)
{
	go_on(progress, "reading symbols", done, total, true);
}

void mw_progress_share(void *progress, const char *phase, uint64_t done, uint64_t total)
{
	go_on(progress, phase, total ? done : 1, total ? total : 1, false);
}

void mw_progress_clear(struct mw_progress *progress)
{
	if (!progress->shown)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->ended = true;
	progress->phase = NULL;
	pthread_cond_signal(&progress->wake);
	pthread_mutex_unlock(&progress->lock);
	if (progress->ticking)
		pthread_join(progress->thread, NULL);
	progress->ticking = false;
	if (progress->length) {
		draw(progress, "");
		put(progress, "\r", 1);
	}
	progress->length = 0;
}
