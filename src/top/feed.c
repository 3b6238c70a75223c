// SPDX-License-Identifier: MIT
/* feed.c: see feed.h. */
#include "top/feed.h"

#include "base/clock.h"
#include "base/vector.h"
#include "top/same.h"
#include "top/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NEW_STACKS 8192 /* that are added at once: the others with the next shot */
#define SHARE      50   /* copying takes at most one in so many parts of the thread's time */

struct mw_top_feed {
	struct mw_session *session;
	int news;
	const char *engine;
	_Atomic int phase;
	atomic_bool zero_wanted, moment_wanted;
	pthread_mutex_t lock; /* of what follows */
	struct mw_top_registry all;
	struct mw_top_shot *shot; /* NULL: it has been taken */
	struct mw_top_moment moment;
	bool has_moment;
	/* The engine's thread's own. */
	uint64_t next_ns; /* no shot before */
	struct mw_top_same same;
	uint64_t zero_ns, earlier_events;
	uint32_t zeros;
};

void mw_top_shot_destroy(struct mw_top_shot *shot)
{
	if (!shot)
		return;
	free(shot->stacks);
	free(shot->threads);
	free(shot);
}

struct mw_error *mw_top_feed_create(struct mw_session *session, struct mw_top_feed **out)
{
	struct mw_top_feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return mw_error_nomem();
	feed->session = session;
	feed->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (feed->news < 0) {
		free(feed);
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make an eventfd");
	}
	pthread_mutex_init(&feed->lock, NULL);
	*out = feed;
	return NULL;
}

void mw_top_feed_destroy(struct mw_top_feed *feed)
{
	if (!feed)
		return;
	for (size_t i = 0; i < feed->all.stack_count; i++)
		free((void *)feed->all.stacks[i]);
	mw_top_registry_deinit(&feed->all);
	mw_top_same_deinit(&feed->same);
	mw_top_shot_destroy(feed->shot);
	pthread_mutex_destroy(&feed->lock);
	close(feed->news);
	free(feed);
}

static void notify(struct mw_top_feed *feed)
{
	const uint64_t one = 1;

	if (write(feed->news, &one, sizeof(one)) < 0)
		return; /* it is full of news already */
}

/* --- the registry ------------------------------------------------------------------------------------------ */

static struct mw_recorder *recorder_of(const struct mw_top_feed *feed)
{
	return &feed->session->recorders[0];
}

static const struct mw_watched *model_of(const struct mw_top_feed *feed)
{
	return recorder_of(feed)->watched;
}

static bool add_modules(struct mw_top_feed *feed)
{
	const struct mw_metadata *metadata = &model_of(feed)->metadata;
	struct mw_top_registry *all = &feed->all;
	bool room = true;

	pthread_mutex_lock(&feed->lock);
	while (all->module_count < metadata->module_count && room) {
		room = MW_VECTOR_ROOM(all->modules, all->module_count, all->module_capacity);
		if (room) {
			all->modules[all->module_count] = metadata->modules[all->module_count];
			all->module_count++;
		}
	}
	pthread_mutex_unlock(&feed->lock);
	return room;
}

/* Code in no file has no name to charge: the file whose frame is next outwards made it. */
static uint32_t charged_to(const struct mw_top_feed *feed, const struct mw_top_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		uint32_t module = stack->frames[i].module;

		if (module < feed->all.module_count && feed->all.modules[module].suspect)
			return module;
	}
	return MW_MODULE_NONE;
}

static bool add_stack(struct mw_top_feed *feed, uint32_t id)
{
	const struct mw_metadata *metadata = &model_of(feed)->metadata;
	const struct mw_track *track = model_of(feed)->track;
	struct mw_top_registry *all = &feed->all;
	struct mw_top_stack *copy;
	struct mw_track_stack stack;
	uint32_t first;
	bool room;

	mw_track_stack(track, id, &stack);
	copy = malloc(sizeof(*copy) + stack.frame_count * sizeof(copy->frames[0]));
	if (!copy)
		return false;
	copy->kind = stack.kind;
	copy->cut = stack.cut;
	copy->api = stack.hook < metadata->hook_count ? metadata->hooks[stack.hook].function : NULL;
	copy->frame_count = stack.frame_count;
	mw_track_frames(track, id, copy->frames, stack.frame_count);
	copy->module = charged_to(feed, copy);
	first = mw_top_same_find(&feed->same, &recorder_of(feed)->jit, all->stacks, all->stack_count, copy);
	copy->as = first < all->stack_count ? first + 1 : 0;
	pthread_mutex_lock(&feed->lock);
	room = MW_VECTOR_ROOM(all->stacks, all->stack_count, all->stack_capacity);
	if (room)
		all->stacks[all->stack_count++] = copy;
	pthread_mutex_unlock(&feed->lock);
	if (!room)
		free(copy);
	return room;
}

static bool add_stacks(struct mw_top_feed *feed)
{
	uint32_t count = mw_track_stack_count(model_of(feed)->track);
	bool good = true;

	for (unsigned i = 0; feed->all.stack_count < count && i < NEW_STACKS && good; i++)
		good = add_stack(feed, (uint32_t)feed->all.stack_count);
	return good;
}

static bool add_threads(struct mw_top_feed *feed)
{
	const struct mw_track *track = model_of(feed)->track;
	struct mw_top_registry *all = &feed->all;
	uint32_t count = mw_track_thread_count(track);
	bool good = true;

	pthread_mutex_lock(&feed->lock);
	for (uint32_t i = 0; i < count && good; i++) {
		struct mw_track_thread thread;

		good = MW_VECTOR_ROOM(all->threads, i, all->thread_capacity);
		if (!good)
			continue;
		mw_track_thread(track, i, &thread);
		all->threads[i] = (struct mw_top_thread){thread.tid, thread.name};
		all->thread_count = i == all->thread_count ? i + 1 : all->thread_count;
	}
	pthread_mutex_unlock(&feed->lock);
	return good;
}

/* --- shots ------------------------------------------------------------------------------------------------- */

static void fill_figures(const struct mw_top_feed *feed, uint64_t time_ns, struct mw_top_shot *shot)
{
	const struct mw_recorder *recorder = recorder_of(feed);
	const struct mw_watched *model = model_of(feed);
	struct mw_track_totals totals;
	struct mw_engine_stats stats;

	shot->time_ns = time_ns;
	shot->zero_ns = feed->zero_ns;
	shot->zeros = feed->zeros;
	mw_track_totals(model->track, MW_KIND_HEAP, &totals);
	shot->heap = totals.impacting;
	mw_track_totals(model->track, MW_KIND_VM, &totals);
	shot->vm = totals.impacting;
	shot->events = feed->earlier_events + mw_recorder_events(recorder);
	shot->has_stood = mw_recorder_stats(recorder, &stats);
	if (shot->has_stood) {
		shot->stood_ns = stats.stood_ns;
		shot->lost = stats.lost_events;
	}
	mw_top_show_missed(model->metadata.hooks, model->metadata.hook_count, recorder->view->track_heap,
			   recorder->view->track_vm, shot->not_hooked, sizeof(shot->not_hooked));
	if (recorder->sample_count)
		shot->rss = recorder->newest.rss;
}

/* NULL without memory: then there is one the next time, perhaps. */
static struct mw_top_shot *make_shot(struct mw_top_feed *feed, uint64_t time_ns)
{
	const struct mw_track *track = model_of(feed)->track;
	struct mw_top_shot *shot = calloc(1, sizeof(*shot));

	if (!shot || !add_modules(feed) || !add_stacks(feed) || !add_threads(feed)) {
		free(shot);
		return NULL;
	}
	fill_figures(feed, time_ns, shot);
	shot->stack_count = (uint32_t)feed->all.stack_count;
	shot->thread_count = (uint32_t)feed->all.thread_count;
	shot->stacks = calloc(shot->stack_count + 1, sizeof(*shot->stacks));
	shot->threads = calloc(shot->thread_count + 1, sizeof(*shot->threads));
	if (!shot->stacks || !shot->threads) {
		mw_top_shot_destroy(shot);
		return NULL;
	}
	mw_track_stack_sums(track, shot->stacks, shot->stack_count);
	mw_track_thread_sums(track, shot->threads, shot->thread_count);
	return shot;
}

static void leave_shot(struct mw_top_feed *feed, uint64_t time_ns)
{
	uint64_t began_ns = mw_clock_ns(), took_ns;
	struct mw_top_shot *shot = make_shot(feed, time_ns), *old;

	took_ns = mw_clock_ns() - began_ns;
	feed->next_ns = began_ns + took_ns * SHARE;
	if (!shot)
		return;
	pthread_mutex_lock(&feed->lock);
	old = feed->shot;
	feed->shot = shot;
	pthread_mutex_unlock(&feed->lock);
	mw_top_shot_destroy(old);
	notify(feed);
}

/* --- moments ----------------------------------------------------------------------------------------------- */

/* False: nothing is recorded. */
static bool make_moment(const struct mw_top_feed *feed, uint64_t time_ns, bool whole, struct mw_top_moment *moment)
{
	const struct mw_recorder *recorder = recorder_of(feed);
	uint64_t latest_ns = mw_track_now(model_of(feed)->track);
	struct mw_engine_stats stats;

	if (!feed->session->writer)
		return false;
	moment->whole = whole;
	moment->number = mw_store_moment(feed->session->writer);
	moment->end.length_ns = latest_ns > time_ns ? latest_ns : time_ns;
	moment->end.ended = MW_END_INTERRUPT;
	moment->has_sample = recorder->sample_count > 0;
	moment->sample = recorder->newest;
	if (mw_recorder_stats(recorder, &stats))
		moment->end.figure_count = mw_figures_list(&stats, moment->figures);
	return true;
}

/* The last one comes with its phase: who asks for one in between would wait for another for good. */
static void leave_moment(struct mw_top_feed *feed, uint64_t time_ns, bool whole, enum mw_top_phase phase)
{
	struct mw_top_moment moment = {0};
	bool there = make_moment(feed, time_ns, whole, &moment);

	pthread_mutex_lock(&feed->lock);
	if (there) {
		feed->moment = moment;
		feed->has_moment = true;
	}
	atomic_store(&feed->phase, phase);
	pthread_mutex_unlock(&feed->lock);
}

/* The zero point comes between two events: all that were received are before it. It is right behind the last of them, and
 * not now: what an engine emits later may be from before now. In the recording it is a mark. */
static void set_zero(struct mw_top_feed *feed)
{
	struct mw_recorder *recorder = recorder_of(feed);
	uint64_t latest_ns = mw_track_now(model_of(feed)->track) + 1;
	struct mw_error *err;

	feed->earlier_events += mw_recorder_events(recorder);
	err = mw_track_interval(model_of(feed)->track, latest_ns);
	/* Then the figures before are gone, and those from now on good all the same. */
	mw_error_destroy(err);
	feed->zero_ns = latest_ns;
	feed->zeros++;
	mw_emitter_mark(&feed->session->emitters[0], latest_ns);
}

/* --- the engine's thread ----------------------------------------------------------------------------------- */

void mw_top_feed_begin(struct mw_top_feed *feed)
{
	feed->engine = model_of(feed)->metadata.target.engine;
	atomic_store(&feed->phase, MW_TOP_WATCHING);
	leave_shot(feed, 0);
}

void mw_top_feed_sample(struct mw_top_feed *feed, uint64_t time_ns)
{
	bool zero = atomic_exchange(&feed->zero_wanted, false);

	if (zero)
		set_zero(feed);
	if (zero || mw_clock_ns() >= feed->next_ns)
		leave_shot(feed, zero && feed->zero_ns > time_ns ? feed->zero_ns : time_ns);
	if (atomic_exchange(&feed->moment_wanted, false))
		leave_moment(feed, time_ns, false, MW_TOP_WATCHING);
}

void mw_top_feed_end(struct mw_top_feed *feed, bool well)
{
	const struct mw_window_info *window = mw_top_feed_window(feed);
	uint64_t time_ns = window ? window->length_ns : 0;

	leave_shot(feed, time_ns);
	leave_moment(feed, time_ns, well, MW_TOP_OVER);
	notify(feed);
}

const struct mw_window_info *mw_top_feed_window(const struct mw_top_feed *feed)
{
	struct mw_engine *engine = feed->session->engine;

	return engine ? engine->ops->window(engine, recorder_of(feed)->pid) : NULL;
}

/* --- the others -------------------------------------------------------------------------------------------- */

enum mw_top_phase mw_top_feed_phase(const struct mw_top_feed *feed)
{
	return (enum mw_top_phase)atomic_load(&feed->phase);
}

struct mw_top_shot *mw_top_feed_take(struct mw_top_feed *feed)
{
	struct mw_top_shot *shot;

	pthread_mutex_lock(&feed->lock);
	shot = feed->shot;
	feed->shot = NULL;
	pthread_mutex_unlock(&feed->lock);
	return shot;
}

bool mw_top_feed_follow(struct mw_top_feed *feed, struct mw_top_registry *registry)
{
	const struct mw_top_registry *all = &feed->all;
	bool stacks, modules, threads;

	pthread_mutex_lock(&feed->lock);
	stacks = MW_VECTOR_ROOM(registry->stacks, all->stack_count, registry->stack_capacity);
	modules = MW_VECTOR_ROOM(registry->modules, all->module_count, registry->module_capacity);
	threads = MW_VECTOR_ROOM(registry->threads, all->thread_count, registry->thread_capacity);
	for (; stacks && registry->stack_count < all->stack_count; registry->stack_count++)
		registry->stacks[registry->stack_count] = all->stacks[registry->stack_count];
	for (; modules && registry->module_count < all->module_count; registry->module_count++)
		registry->modules[registry->module_count] = all->modules[registry->module_count];
	if (threads && all->thread_count) {
		memcpy(registry->threads, all->threads, all->thread_count * sizeof(*all->threads));
		registry->thread_count = all->thread_count;
	}
	pthread_mutex_unlock(&feed->lock);
	return stacks && modules && threads;
}

void mw_top_registry_deinit(struct mw_top_registry *registry)
{
	free(registry->stacks);
	free(registry->modules);
	free(registry->threads);
	*registry = (struct mw_top_registry){.stacks = NULL};
}

void mw_top_feed_zero(struct mw_top_feed *feed)
{
	atomic_store(&feed->zero_wanted, true);
}

void mw_top_feed_want_moment(struct mw_top_feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	/* That of the window's end stays. */
	if (mw_top_feed_phase(feed) != MW_TOP_OVER)
		feed->has_moment = false;
	pthread_mutex_unlock(&feed->lock);
	atomic_store(&feed->moment_wanted, true);
}

bool mw_top_feed_moment(struct mw_top_feed *feed, struct mw_top_moment *out)
{
	bool there;

	pthread_mutex_lock(&feed->lock);
	there = feed->has_moment;
	if (there) {
		*out = feed->moment;
		out->end.figures = out->figures;
	}
	pthread_mutex_unlock(&feed->lock);
	return there;
}

const char *mw_top_feed_engine(const struct mw_top_feed *feed)
{
	return mw_top_feed_phase(feed) == MW_TOP_STARTING ? NULL : feed->engine;
}

void mw_top_feed_poke(struct mw_top_feed *feed)
{
	notify(feed);
}

int mw_top_feed_descriptor(const struct mw_top_feed *feed)
{
	return feed->news;
}
