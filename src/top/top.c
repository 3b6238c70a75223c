// SPDX-License-Identifier: MIT
/* top.c: see top.h. */
#include "top/top.h"

#include "base/clock.h"
#include "base/path.h"
#include "session/outputs.h"
#include "session/session.h"
#include "session/watchdog.h"
#include "top/draw.h"
#include "top/screen.h"
#include "top/work.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS    50000000
#define PATIENCE_S 3 /* for names that are being read when it ends */
#define KEPT_SHARE 4 /* what is kept unasked takes at most one of so many free bytes of the disk … */
#define KEPT_MAX   (UINT64_C(8) << 30) /* … and this */

struct top {
	const struct mw_session_options *options;
	struct mw_session session;
	struct mw_top_feeds feeds;
	struct mw_top_work *work;
	bool work_ended;
	struct mw_top_screen *screen;
	char no_writer[300];       /* why nothing can be written */
	struct mw_outputs outputs; /* reports of all that was seen, when it ends */
	bool reports;              /* there are any */
	bool stuck;                /* a thread did not end: what it uses stays */
};

/* For a recording that nobody has asked for yet: a file without a name, that is gone with memwatch. */
static void keep_unasked(struct top *top)
{
	struct mw_session *session = &top->session;
	const char *directory;
	struct statvfs disk;
	struct mw_error *err = mw_session_keep_unnamed(session, &directory);

	if (err) {
		(void)snprintf(top->no_writer, sizeof(top->no_writer), "%s", mw_error_text(err));
		mw_error_destroy(err);
		return;
	}
	top->feeds.kept_max = KEPT_MAX;
	if (statvfs(directory, &disk) == 0 && disk.f_bavail * disk.f_frsize / KEPT_SHARE < KEPT_MAX)
		top->feeds.kept_max = disk.f_bavail * disk.f_frsize / KEPT_SHARE;
	/* On a full disk root could still write. */
	if (top->feeds.kept_max == 0)
		top->feeds.kept_max = 1;
}

/* After the writer: they are made of what it keeps. */
static struct mw_error *open_outputs(struct top *top)
{
	struct mw_session_options silent = *top->options;
	struct mw_error *err;

	/* Nobody has asked for text where the table was. */
	silent.quiet = true;
	MW_TRY(mw_outputs_check(&silent));
	MW_TRY(mw_outputs_open(&top->outputs, &silent));
	for (size_t i = 0; i < MW_OUTPUTS_MAX; i++)
		top->reports |= top->outputs.files[i] != NULL;
	if (!top->reports || top->session.writer)
		return NULL;
	err = mw_error_create(MW_ERROR_SYSTEM, 0, "what is seen can't be kept for the report: %s", top->no_writer);
	return mw_error_hint(err, "Name a file for it by -o, or a directory by TMPDIR");
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
	MW_TRY(open_outputs(top));
	session->leave = mw_top_tty_restore;
	session->stays_by = true;
	return mw_session_prepare(session);
}

static struct mw_error *start_threads(struct top *top)
{
	bool utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

	MW_TRY(mw_top_feeds_init(&top->feeds, &top->session));
	MW_TRY(mw_top_work_create(&top->feeds, top->no_writer, &top->work));
	return mw_top_screen_create(&top->feeds, top->work, utf8, &top->screen);
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
	struct mw_error *err = NULL;

	if (!mw_top_screen_destroy(top->screen, &err))
		top->stuck = true;
	if (top->work && !top->work_ended && !mw_top_work_end(top->work, PATIENCE_S))
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

static struct mw_partials partials_of(const struct top *top)
{
	struct mw_partials partials = mw_outputs_partials(&top->outputs);

	partials.paths[MW_PARTIALS_MAX - 1] = top->session.writer ? mw_store_partial(top->session.writer) : NULL;
	return partials;
}

/* The model knows what came since the zero point: the reports are of all that was kept. */
static struct mw_error *report_kept(struct top *top, int fd)
{
	const struct mw_partials partials = partials_of(top);
	struct mw_progress *progress = &top->session.progress;
	const struct mw_reports_wish wish = {
		.timelines = mw_outputs_want_timelines(top->options),
		.progress = progress,
	};
	struct mw_error *err;

	mw_process_setup_reporting(&partials);
	err = mw_reports_write_kept(fd, &wish, &top->outputs);
	mw_process_setup_reported();
	return err;
}

/* Names of all stacks go into the recording at its end, as in any. */
static struct mw_error *finish_recording(struct top *top)
{
	struct mw_store_writer *writer = top->session.writer;
	struct mw_error *err = NULL;

	if (!top->stuck && !mw_process_setup_hurried())
		err = mw_top_work_emit(top->work, show_names, top);
	mw_progress_clear(&top->session.progress);
	if (top->options->output || !mw_store_broken(writer))
		return mw_error_first(mw_store_finish(writer), err);
	mw_error_destroy(err);
	err = mw_error_create(MW_ERROR_SYSTEM, mw_store_broken(writer), "not all that was seen could be kept");
	mw_error_destroy(mw_store_finish(writer));
	return mw_error_hint(err, "The report is of what came before; start with -o FILE to keep all");
}

/* What was asked for at the end. */
static struct mw_error *finish(struct top *top)
{
	struct mw_store_writer *writer = top->session.writer;
	struct mw_error *err = NULL;
	int fd = -1;

	if (!writer || (!top->options->output && !top->reports))
		return NULL;
	mw_progress_init(&top->session.progress, true);
	if (top->reports)
		fd = mw_store_reopen(writer);
	if (top->reports && fd < 0)
		err = mw_error_create(MW_ERROR_SYSTEM, errno, "cannot read for the report what was kept");
	err = mw_error_first(err, finish_recording(top));
	if (fd >= 0 && mw_process_setup_hurried())
		err = mw_error_first(err,
				     mw_error_create(MW_ERROR_SYSTEM, 0, "interrupted before the report was written"));
	else if (fd >= 0)
		err = mw_error_first(err, report_kept(top, fd));
	if (fd >= 0)
		close(fd);
	return err;
}

static struct mw_error *watch(struct top *top)
{
	struct mw_session *session = &top->session;
	const struct mw_partials partials = partials_of(top);
	struct mw_error *err, *unseen;

	MW_TRY(mw_session_stand_by(session, &partials));
	MW_TRY(start_threads(top));
	err = mw_session_watch(session);
	mw_top_feeds_end(&top->feeds, !err && !session->detached);
	if (!err && !session->detached)
		await_quit();
	unseen = stop_threads(top);
	if (err || session->detached)
		return mw_error_first(err, unseen);
	/* Not before: whatever became of memwatch, the guard would have put back the terminal. */
	if (!top->stuck)
		mw_watchdog_end(NULL);
	return mw_error_first(unseen, finish(top));
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
	/* Each has a place on the screen by then. */
	top->session.none_left_out = true;
	err = prepare(top);
	if (!err)
		err = watch(top);
	if (!top->work_ended)
		unseen = stop_threads(top);
	err = mw_error_first(err, unseen);
	mw_outputs_close(&top->outputs);
	mw_process_setup_reporting(NULL);
	if (top->stuck) {
		leave_all(&top->session);
		return mw_session_end(&top->session, err);
	}
	mw_top_work_destroy(top->work);
	mw_top_feeds_deinit(&top->feeds);
	err = mw_session_end(&top->session, err);
	free(top);
	return err;
}
