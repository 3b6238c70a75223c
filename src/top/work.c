// SPDX-License-Identifier: MIT
/* work.c: see work.h. */
#include "top/work.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_NS   20000000
#define EMIT_EACH 64 /* stacks, or pieces of a file */
#define NEWS_MAX  600
#define SHOW_NS   200000000

struct mw_top_work {
	struct mw_top_feed *feed;
	struct mw_top_names *names;
	struct mw_store_writer *writer;
	const char *no_writer;
	pthread_t thread;
	atomic_bool quit;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	uint32_t wanted[MW_TOP_WANTED];
	size_t wanted_count, wanted_at;
	char *path; /* of a recording that is to be written, or is being; NULL: none */
	bool saving;
	char news[NEWS_MAX];
	/* The thread's own. */
	const char *step;
	unsigned steps;
	uint64_t shown_ns; /* when the screen was last updated with names */
};

static void set_news(struct mw_top_work *work, const char *text)
{
	pthread_mutex_lock(&work->lock);
	(void)snprintf(work->news, sizeof(work->news), "%s", text);
	pthread_mutex_unlock(&work->lock);
	mw_top_feed_poke(work->feed);
}

static bool go_on(void *context, uint64_t done, uint64_t total)
{
	struct mw_top_work *work = context;
	char text[NEWS_MAX];

	if (work->steps++ % EMIT_EACH == 0) {
		(void)snprintf(text, sizeof(text), "writing the recording: %s, %.0f %%", work->step,
			       total ? 100 * (double)done / (double)total : 100.0);
		set_news(work, text);
	}
	return !atomic_load(&work->quit);
}

static struct mw_error *given_up(const struct mw_top_work *work)
{
	int errnum = mw_store_broken(work->writer);

	if (errnum == EFBIG)
		return mw_error_create(MW_ERROR_SYSTEM, 0,
				       "the kept events have become too large: start with -o FILE to keep all");
	return mw_error_create(MW_ERROR_SYSTEM, errnum ? errnum : ECANCELED, "nothing more is recorded");
}

/* Until the engine's thread has come to a moment, and all before it is in the file. */
static struct mw_error *await_moment(struct mw_top_work *work, struct mw_top_moment *moment, struct mw_store_upto *upto)
{
	const struct timespec step = {.tv_nsec = STEP_NS};

	mw_top_feed_want_moment(work->feed);
	while (!atomic_load(&work->quit)) {
		if (mw_store_broken(work->writer))
			return given_up(work);
		if (mw_top_feed_moment(work->feed, moment) && mw_store_passed(work->writer, moment->number, upto))
			return NULL;
		nanosleep(&step, NULL);
	}
	return mw_error_create(MW_ERROR_SYSTEM, ECANCELED, "memwatch ends");
}

static struct mw_error *complete(struct mw_top_work *work, const struct mw_top_moment *moment,
				 struct mw_store_writer *copy)
{
	if (!moment->whole) {
		if (moment->has_sample)
			mw_store_sample(copy, 0, &moment->sample);
		mw_store_end(copy, 0, &moment->end);
	}
	work->step = "names";
	MW_TRY(mw_top_names_emit(work->names, copy, go_on, work));
	if (atomic_load(&work->quit))
		return mw_error_create(MW_ERROR_SYSTEM, ECANCELED, "memwatch ends");
	MW_TRY(mw_store_publish(copy));
	return mw_store_finish(copy);
}

static struct mw_error *save(struct mw_top_work *work)
{
	struct mw_store_writer *copy = NULL;
	struct mw_top_moment moment = {0};
	struct mw_store_upto upto = {0};
	struct mw_error *err;

	if (!work->writer)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "%s", work->no_writer);
	set_news(work, "writing the recording");
	MW_TRY(await_moment(work, &moment, &upto));
	moment.end.figures = moment.figures;
	work->step = "events";
	work->steps = 0;
	MW_TRY(mw_store_copy(work->writer, &upto, work->path, go_on, work, &copy));
	err = complete(work, &moment, copy);
	mw_store_destroy(copy);
	return err;
}

static void save_and_report(struct mw_top_work *work)
{
	struct mw_error *err = save(work);
	char text[NEWS_MAX];

	if (err)
		(void)snprintf(text, sizeof(text), "not written: %s", mw_error_text(err));
	else
		(void)snprintf(text, sizeof(text), "written: %s", work->path);
	mw_error_destroy(err);
	pthread_mutex_lock(&work->lock);
	free(work->path);
	work->path = NULL;
	work->saving = false;
	pthread_mutex_unlock(&work->lock);
	set_news(work, text);
}

/* Many are found quickly, and each time all is drawn. */
static void show_found(struct mw_top_work *work)
{
	uint64_t now_ns = mw_clock_ns();
	bool last;

	pthread_mutex_lock(&work->lock);
	last = work->wanted_at == work->wanted_count;
	pthread_mutex_unlock(&work->lock);
	if (!last && now_ns - work->shown_ns < SHOW_NS)
		return;
	work->shown_ns = now_ns;
	mw_top_feed_poke(work->feed);
}

static void *run(void *context)
{
	struct mw_top_work *work = context;

	pthread_setname_np(pthread_self(), "memwatch-names");
	while (!atomic_load(&work->quit)) {
		uint32_t stack = 0;
		bool saves, finds;

		pthread_mutex_lock(&work->lock);
		while (!atomic_load(&work->quit) && !work->saving && work->wanted_at == work->wanted_count)
			pthread_cond_wait(&work->changed, &work->lock);
		saves = work->saving;
		finds = !saves && work->wanted_at < work->wanted_count;
		if (finds)
			stack = work->wanted[work->wanted_at++];
		pthread_mutex_unlock(&work->lock);
		if (atomic_load(&work->quit))
			break;
		if (saves)
			save_and_report(work);
		else if (finds) {
			/* Without memory for it there is no name for now. */
			mw_error_destroy(mw_top_names_find(work->names, stack));
			show_found(work);
		}
	}
	return NULL;
}

struct mw_error *mw_top_work_create(struct mw_top_feed *feed, struct mw_top_names *names,
				    struct mw_store_writer *writer, const char *no_writer, struct mw_top_work **out)
{
	struct mw_top_work *work = calloc(1, sizeof(*work));
	sigset_t all, before;
	int errnum;

	mw_process_setup_foreign_signals(&all);
	if (!work)
		return mw_error_nomem();
	work->feed = feed;
	work->names = names;
	work->writer = writer;
	work->no_writer = no_writer;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->changed, NULL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&work->thread, NULL, run, work);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum) {
		free(work);
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread");
	}
	*out = work;
	return NULL;
}

bool mw_top_work_destroy(struct mw_top_work *work, unsigned patience_ms)
{
	struct timespec until;

	if (!work)
		return true;
	pthread_mutex_lock(&work->lock);
	atomic_store(&work->quit, true);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += patience_ms / 1000 + 1;
	if (pthread_timedjoin_np(work->thread, NULL, &until) != 0)
		return false;
	free(work->path);
	pthread_cond_destroy(&work->changed);
	pthread_mutex_destroy(&work->lock);
	free(work);
	return true;
}

void mw_top_work_want(struct mw_top_work *work, const uint32_t *stacks, size_t count)
{
	pthread_mutex_lock(&work->lock);
	work->wanted_count = count < MW_TOP_WANTED ? count : MW_TOP_WANTED;
	work->wanted_at = 0;
	memcpy(work->wanted, stacks, work->wanted_count * sizeof(*stacks));
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->lock);
}

bool mw_top_work_save(struct mw_top_work *work, const char *path)
{
	char *copy = strdup(path);
	bool free_for_it;

	pthread_mutex_lock(&work->lock);
	free_for_it = copy && !work->saving;
	if (free_for_it) {
		work->path = copy;
		work->saving = true;
		pthread_cond_signal(&work->changed);
	}
	pthread_mutex_unlock(&work->lock);
	if (!free_for_it)
		free(copy);
	return free_for_it;
}

void mw_top_work_news(struct mw_top_work *work, char *out, size_t size, bool *busy)
{
	pthread_mutex_lock(&work->lock);
	*busy = work->saving;
	(void)snprintf(out, size, "%s", work->news);
	work->news[0] = '\0';
	pthread_mutex_unlock(&work->lock);
}
