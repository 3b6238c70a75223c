// SPDX-License-Identifier: MIT
/* progress.c: the line on standard error that shows that something happens. */
#include "cli/progress.h"

#include "base/clock.h"
#include "cli/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define REDRAW_NS 100000000ULL
#define MOMENT_S  0.3 /* a rate over less says little */

void mw_progress_init(struct mw_progress *progress, bool wanted)
{
	*progress = (struct mw_progress){.width = mw_terminal_width(STDERR_FILENO)};
	progress->shown = wanted && progress->width > 0;
}

/* Blanks instead of an escape sequence, for terminals that know none. */
static void draw(struct mw_progress *progress, const char *text)
{
	int room = (int)progress->width - 1; /* the last column would wrap */
	int length = fprintf(stderr, "\r%.*s", room, text) - 1;

	if (length < 0)
		return;
	if ((size_t)length < progress->length)
		fprintf(stderr, "%*s\r%.*s", (int)(progress->length - (size_t)length), "", room, text);
	progress->length = (size_t)length;
	fflush(stderr);
}

/* Bytes as people read them; 1024 to the next unit. */
static const char *show_bytes(uint64_t bytes, char out[24])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(out, 24, "%" PRIu64 " B", bytes);
		return out;
	}
	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(out, 24, "%.1f %s", value, units[unit]);
	return out;
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
	char impacting[24], rss[24], blocks[24], events[24];
	char text[200];

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
		 window->duration_ns ? "left" : "(end with Ctrl-C)", show_bytes(window->impacting.bytes, impacting),
		 show_count((double)window->impacting.count, blocks), show_bytes(window->rss, rss),
		 show_count(rate, events), stood > 100 ? 100 : stood);
	draw(progress, text);
}

/* Is it time to draw again? */
static bool is_due(struct mw_progress *progress)
{
	uint64_t now_ns;

	if (!progress->shown)
		return false;
	now_ns = mw_clock_ns();
	if (now_ns < progress->next_ns)
		return false;
	progress->next_ns = now_ns + REDRAW_NS;
	return true;
}

void mw_progress_symbols(struct mw_progress *progress, size_t done, size_t total)
{
	char text[100];

	if (!is_due(progress))
		return;
	snprintf(text, sizeof(text), "memwatch: reading symbols ... %zu/%zu", done, total);
	draw(progress, text);
}

void mw_progress_share(struct mw_progress *progress, const char *phase, uint64_t done, uint64_t total)
{
	char text[100];

	if (!is_due(progress))
		return;
	snprintf(text, sizeof(text), "memwatch: %s ... %.0f %%", phase,
		 total ? 100 * (double)done / (double)total : 100.0);
	draw(progress, text);
}

void mw_progress_clear(struct mw_progress *progress)
{
	if (!progress->shown || !progress->length)
		return;
	fprintf(stderr, "\r%*s\r", (int)progress->length, "");
	fflush(stderr);
	progress->length = 0;
}
