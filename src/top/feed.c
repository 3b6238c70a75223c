// SPDX-License-Identifier: MIT
/* feed.c: see feed.h. */
#include "top/feed.h"

#include "base/clock.h"
#include "base/hash.h"
#include "view/summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEW_STACKS 8192                 /* that are added at once: the others with the next shot */
#define SHARE      50                   /* copying takes at most one in so many parts of the thread's time */
#define LOOK_NS    UINT64_C(1000000000) /* between two looks whether the program names its code */
#define NAMED      4                    /* of functions that are not hooked */

void mw_top_shot_destroy(struct mw_top_shot *shot)
{
	if (!shot)
		return;
	free(shot->stacks);
	free(shot->threads);
	free(shot->names);
	free(shot->courses);
	free(shot);
}

void mw_top_feed_init(struct mw_top_feed *feed, struct mw_session *session, size_t process, int news)
{
	const struct mw_recorder *recorder = &session->recorders[process];

	*feed = (struct mw_top_feed){.session = session, .process = process, .pid = recorder->pid, .news = news};
	feed->comm = recorder->comm ? recorder->comm : "?";
	pthread_mutex_init(&feed->lock, NULL);
}

void mw_top_feed_deinit(struct mw_top_feed *feed)
{
	if (!feed->session)
		return;
	for (uint32_t i = 0; i < mw_shared_list_count(&feed->known.stacks); i++) {
		struct mw_top_stack *stack = mw_shared_list_get(&feed->known.stacks, i);

		free(atomic_load(&stack->named));
		free(stack);
	}
	for (uint32_t i = 0; i < mw_shared_list_count(&feed->known.modules); i++)
		free(mw_shared_list_get(&feed->known.modules, i));
	mw_shared_list_deinit(&feed->known.stacks);
	mw_shared_list_deinit(&feed->known.modules);
	mw_map_deinit(&feed->same.first);
	mw_top_shot_destroy(feed->shot);
	pthread_mutex_destroy(&feed->lock);
}

void mw_top_feed_poke(struct mw_top_feed *feed)
{
	const uint64_t one = 1;

	if (write(feed->news, &one, sizeof(one)) < 0)
		return; /* it is full of news already */
}

/* --- stacks that are shown as one ------------------------------------------------------------------------- */

static mw_addr address_of(const struct mw_raw_frame *frame)
{
	return frame->module == MW_MODULE_NONE ? 0 : frame->addr;
}

static uint64_t hash_of(const struct mw_top_stack *stack)
{
	uint64_t hash = mw_hash_add((uint64_t)stack->kind << 8 | (uint64_t)stack->cut, stack->frame_count);

	for (uint32_t i = 0; i < stack->frame_count; i++)
		hash = mw_hash_add(mw_hash_add(hash, address_of(&stack->frames[i])), stack->frames[i].module);
	return hash;
}

static bool has_code(const struct mw_top_stack *stack)
{
	for (uint32_t i = stack->frame_count; i-- > 0;)
		if (stack->frames[i].module == MW_MODULE_NONE)
			return true;
	return false;
}

static bool equal(const struct mw_top_stack *a, const struct mw_top_stack *b)
{
	bool same_api = a->api == b->api || (a->api && b->api && strcmp(a->api, b->api) == 0);

	if (a->kind != b->kind || a->cut != b->cut || !same_api || a->frame_count != b->frame_count)
		return false;
	for (uint32_t i = 0; i < a->frame_count; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    address_of(&a->frames[i]) != address_of(&b->frames[i]))
			return false;
	return true;
}

/* A program begins to name its code when it likes. */
static bool is_named(struct mw_top_same *same, const struct mw_perf_place *place)
{
	uint64_t now_ns = mw_clock_ns();

	if (!same->named && (!same->looked_ns || now_ns - same->looked_ns >= LOOK_NS)) {
		same->looked_ns = now_ns;
		same->named = mw_perf_map_exists(place);
	}
	return same->named;
}

uint32_t mw_top_same_find(struct mw_top_same *same, const struct mw_perf_place *place,
			  const struct mw_shared_list *stacks, const struct mw_top_stack *stack)
{
	uint32_t count = mw_shared_list_count(stacks);
	uint64_t hash;
	uintptr_t first;

	if (!has_code(stack) || is_named(same, place))
		return count;
	hash = hash_of(stack);
	first = (uintptr_t)mw_map_get(&same->first, hash);
	if (first && first <= count && equal(mw_shared_list_get(stacks, (uint32_t)first - 1), stack))
		return (uint32_t)(first - 1);
	/* Without memory it is one by itself. */
	if (!first)
		mw_error_destroy(mw_map_set(&same->first, hash,
					    (void *)((uintptr_t)count + 1))); // NOLINT(performance-no-int-to-ptr)
	return count;
}

/* --- what is known ----------------------------------------------------------------------------------------- */

static struct mw_recorder *recorder_of(const struct mw_top_feed *feed)
{
	return &feed->session->recorders[feed->process];
}

static const struct mw_watched *model_of(const struct mw_top_feed *feed)
{
	return recorder_of(feed)->watched;
}

static bool add_modules(struct mw_top_feed *feed)
{
	const struct mw_metadata *metadata = &model_of(feed)->metadata;
	struct mw_shared_list *modules = &feed->known.modules;

	while (mw_shared_list_count(modules) < metadata->module_count) {
		struct mw_view_module *copy = malloc(sizeof(*copy));

		if (copy)
			*copy = metadata->modules[mw_shared_list_count(modules)];
		if (!copy || !mw_shared_list_add(modules, copy)) {
			free(copy);
			return false;
		}
	}
	return true;
}

/* Code in no file has no name to charge: the file whose frame is next outwards made it. */
static uint32_t charged_to(const struct mw_metadata *metadata, const struct mw_top_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		uint32_t module = stack->frames[i].module;

		if (module < metadata->module_count && metadata->modules[module].suspect)
			return module;
	}
	return MW_MODULE_NONE;
}

static bool add_stack(struct mw_top_feed *feed, uint32_t id)
{
	const struct mw_metadata *metadata = &model_of(feed)->metadata;
	const struct mw_track *track = model_of(feed)->track;
	struct mw_shared_list *stacks = &feed->known.stacks;
	struct mw_top_stack *copy;
	struct mw_track_stack stack;
	uint32_t first;

	mw_track_stack(track, id, &stack);
	copy = malloc(sizeof(*copy) + stack.frame_count * sizeof(copy->frames[0]));
	if (!copy)
		return false;
	*copy = (struct mw_top_stack){.kind = stack.kind, .cut = stack.cut, .frame_count = stack.frame_count};
	copy->api = stack.hook < metadata->hook_count ? metadata->hooks[stack.hook].function : NULL;
	mw_track_frames(track, id, copy->frames, stack.frame_count);
	copy->module = charged_to(metadata, copy);
	first = mw_top_same_find(&feed->same, &recorder_of(feed)->jit, stacks, copy);
	copy->as = first < id ? first + 1 : 0;
	if (!mw_shared_list_add(stacks, copy)) {
		free(copy);
		return false;
	}
	return true;
}

static bool add_stacks(struct mw_top_feed *feed)
{
	uint32_t known = mw_shared_list_count(&feed->known.stacks), count = mw_track_stack_count(model_of(feed)->track);
	uint32_t end = count - known < NEW_STACKS ? count : known + NEW_STACKS;
	bool good = true;

	for (; known < end && good; known++)
		good = add_stack(feed, known);
	return good;
}

/* --- shots ------------------------------------------------------------------------------------------------- */

/* At the end of `out`, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void append(char *out, size_t size, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(out + used, size - used, format, args);
	va_end(args);
}

void mw_top_show_missed(const struct mw_hook_info *hooks, size_t count, bool track_heap, bool track_vm, char *out,
			size_t size)
{
	size_t missed = 0;

	*out = '\0';
	for (size_t i = 0; i < count; i++)
		if (mw_view_is_missed(&hooks[i], track_heap, track_vm) && missed++ < NAMED)
			append(out, size, "%s%s", missed > 1 ? ", " : "", hooks[i].function);
	if (missed > NAMED)
		append(out, size, " and %zu more", missed - NAMED);
}

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
	mw_top_show_missed(model->metadata.hooks, model->metadata.hook_count, recorder->view->options->track_heap,
			   recorder->view->options->track_vm, shot->not_hooked, sizeof(shot->not_hooked));
	shot->kept = feed->session->writer && !mw_store_broken(feed->session->writer);
	if (recorder->sample_count)
		shot->rss = recorder->newest.rss;
}

/* False without memory. */
static bool fill_sums(struct mw_top_feed *feed, struct mw_top_shot *shot)
{
	const struct mw_track *track = model_of(feed)->track;

	if (!add_modules(feed) || !add_stacks(feed))
		return false;
	shot->stack_count = mw_shared_list_count(&feed->known.stacks);
	shot->thread_count = mw_track_thread_count(track);
	shot->stacks = calloc(shot->stack_count + 1, sizeof(*shot->stacks));
	shot->threads = calloc(shot->thread_count + 1, sizeof(*shot->threads));
	shot->names = calloc(shot->thread_count + 1, sizeof(*shot->names));
	if (!shot->stacks || !shot->threads || !shot->names)
		return false;
	mw_track_stack_sums(track, shot->stacks, shot->stack_count);
	mw_track_thread_sums(track, shot->threads, shot->thread_count);
	for (uint32_t i = 0; i < shot->thread_count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(track, i, &thread);
		shot->names[i] = (struct mw_top_thread){thread.tid, thread.name};
	}
	return true;
}

/* Where there is time for it: it takes at most its share, as copying does. */
static void fill_courses(struct mw_top_feed *feed, struct mw_top_shot *shot)
{
	struct mw_top_key keys[MW_TOP_COURSES];
	uint64_t began_ns = mw_clock_ns();
	uint32_t count;

	if (began_ns < feed->courses_ns)
		return;
	pthread_mutex_lock(&feed->lock);
	count = feed->wanted_count;
	memcpy(keys, feed->wanted, count * sizeof(*keys));
	pthread_mutex_unlock(&feed->lock);
	mw_top_courses_fill(model_of(feed)->track, &feed->known, keys, count, shot);
	feed->courses_ns = began_ns + (mw_clock_ns() - began_ns) * SHARE;
}

static void leave_shot(struct mw_top_feed *feed, uint64_t time_ns)
{
	uint64_t began_ns = mw_clock_ns(), took_ns;
	struct mw_top_shot *shot = calloc(1, sizeof(*shot)), *old;
	bool good = shot && fill_sums(feed, shot);

	if (good)
		fill_figures(feed, time_ns, shot);
	took_ns = mw_clock_ns() - began_ns;
	if (good)
		fill_courses(feed, shot);
	feed->next_ns = began_ns + took_ns * SHARE;
	/* Without memory there is one the next time, perhaps. */
	if (!good) {
		mw_top_shot_destroy(shot);
		return;
	}
	pthread_mutex_lock(&feed->lock);
	old = feed->shot;
	feed->shot = shot;
	pthread_mutex_unlock(&feed->lock);
	mw_top_shot_destroy(old);
	mw_top_feed_poke(feed);
}

/* --- moments ----------------------------------------------------------------------------------------------- */

/* False: nothing is recorded. */
static bool make_moment(const struct mw_top_feed *feed, uint64_t time_ns, bool whole, struct mw_top_moment *moment)
{
	const struct mw_recorder *recorder = recorder_of(feed);
	const struct mw_engine *engine = feed->session->engine;
	const struct mw_window_info *window = engine ? engine->ops->window(engine, feed->pid) : NULL;
	uint64_t latest_ns = mw_track_now(model_of(feed)->track);
	struct mw_engine_stats stats;

	if (!feed->session->writer)
		return false;
	moment->whole = whole;
	moment->number = mw_store_moment(feed->session->writer);
	moment->end.length_ns = latest_ns > time_ns ? latest_ns : time_ns;
	moment->end.ended = MW_END_INTERRUPT;
	/* Others may go on. */
	if (window && window->over) {
		moment->end.length_ns = window->length_ns;
		moment->end.ended = window->ended;
		moment->end.has_exit_status = window->has_exit_status;
		moment->end.exit_status = window->exit_status;
	}
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
	mw_emitter_mark(&feed->session->emitters[feed->process], latest_ns);
}

/* --- the engine's thread ----------------------------------------------------------------------------------- */

void mw_top_feed_begin(struct mw_top_feed *feed)
{
	struct mw_engine *engine = feed->session->engine;

	feed->engine = model_of(feed)->metadata.target.engine;
	feed->files = engine->ops->modules(engine, recorder_of(feed)->pid);
	atomic_store(&feed->phase, MW_TOP_WATCHING);
	leave_shot(feed, 0);
}

void mw_top_feed_sample(struct mw_top_feed *feed, uint64_t time_ns)
{
	bool zero = atomic_exchange(&feed->zero_wanted, false);

	feed->sampled_ns = time_ns;
	if (zero)
		set_zero(feed);
	if (zero || mw_clock_ns() >= feed->next_ns)
		leave_shot(feed, zero && feed->zero_ns > time_ns ? feed->zero_ns : time_ns);
}

void mw_top_feed_moments(struct mw_top_feed *feeds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (atomic_load(&feeds[i].phase) == MW_TOP_WATCHING && atomic_exchange(&feeds[i].moment_wanted, false))
			leave_moment(&feeds[i], feeds[i].sampled_ns, false, MW_TOP_WATCHING);
}

void mw_top_feed_end(struct mw_top_feed *feed, bool well)
{
	struct mw_engine *engine = feed->session->engine;
	uint64_t time_ns;

	feed->window = engine ? engine->ops->window(engine, recorder_of(feed)->pid) : NULL;
	time_ns = feed->window ? feed->window->length_ns : 0;

	leave_shot(feed, time_ns);
	leave_moment(feed, time_ns, well, MW_TOP_OVER);
	mw_top_feed_poke(feed);
}

/* --- the others -------------------------------------------------------------------------------------------- */

struct mw_top_shot *mw_top_feed_take(struct mw_top_feed *feed)
{
	struct mw_top_shot *shot;

	pthread_mutex_lock(&feed->lock);
	shot = feed->shot;
	feed->shot = NULL;
	pthread_mutex_unlock(&feed->lock);
	return shot;
}

void mw_top_feed_want(struct mw_top_feed *feed, const struct mw_top_key *keys, size_t count)
{
	pthread_mutex_lock(&feed->lock);
	feed->wanted_count = count < MW_TOP_COURSES ? (uint32_t)count : MW_TOP_COURSES;
	if (feed->wanted_count)
		memcpy(feed->wanted, keys, feed->wanted_count * sizeof(*keys));
	pthread_mutex_unlock(&feed->lock);
}

void mw_top_feed_want_moment(struct mw_top_feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	/* That of the window's end stays. */
	if (atomic_load(&feed->phase) != MW_TOP_OVER)
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
