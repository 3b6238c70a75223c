// SPDX-License-Identifier: MIT
/* feed.c: see feed.h. */
#include "top/feed.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "view/growth.h"
#include "view/summary.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#define NEW_STACKS 8192                 /* that are added at once: the others with the next shot */
#define SHARE      50                   /* copying takes at most one in so many parts of the thread's time */
#define LOOK_NS    UINT64_C(1000000000) /* between two looks whether the program names its code */
#define NAMED      4                    /* of functions that are not hooked */
#define NS         1e9

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
	return &feed->feeds->session->recorders[feed->process];
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

/* --- what became of the memory of rows ------------------------------------------------------------------------- */

/* The courses of the wanted rows, and which of the tracker's stacks they are of: indices, UINT32_MAX for none. */
struct wanted {
	const struct mw_top_known *known;
	struct mw_top_course *courses;
	uint32_t count;
	uint32_t *of_stack, *of_module; /* the last: of what is charged to none */
	uint32_t module_count;
	bool any_module;
	double (*levels)[MW_SERIES_MAX];
	uint32_t points; /* of each of these */
};

static uint32_t *place_of_module(const struct wanted *wanted, uint32_t module)
{
	return &wanted->of_module[module < wanted->module_count ? module : wanted->module_count];
}

/* A stack that is shown as part of another belongs to that one's row. */
static void assign(struct wanted *wanted, uint32_t known_count)
{
	for (uint32_t i = 0; i < wanted->count; i++) {
		const struct mw_top_key *of = &wanted->courses[i].of;

		wanted->any_module |= of->module;
		if (of->module)
			*place_of_module(wanted, of->key) = i;
		else if (of->key < known_count)
			wanted->of_stack[of->key] = i;
	}
	for (uint32_t i = 0; i < known_count; i++) {
		const struct mw_top_stack *stack = mw_shared_list_get(&wanted->known->stacks, i);

		if (stack->as)
			wanted->of_stack[i] = wanted->of_stack[stack->as - 1];
	}
}

static void add_level(struct wanted *wanted, uint32_t course, const struct mw_track_series *series)
{
	for (uint32_t i = 0; course != UINT32_MAX && i < series->count; i++)
		wanted->levels[course][i] += (double)series->bytes[i];
}

static void add_levels(struct wanted *wanted, const struct mw_track *track, uint64_t end_ns, uint32_t known_count)
{
	for (uint32_t i = 0; i < known_count; i++) {
		const struct mw_top_stack *stack = mw_shared_list_get(&wanted->known->stacks, i);
		struct mw_track_series series;

		if (stack->kind == MW_KIND_VM_INTERNAL || (!wanted->any_module && wanted->of_stack[i] == UINT32_MAX))
			continue;
		mw_track_stack_series(track, i, end_ns, &series);
		wanted->points = series.count;
		add_level(wanted, wanted->of_stack[i], &series);
		add_level(wanted, *place_of_module(wanted, stack->module), &series);
	}
}

static void set_bars(const struct wanted *wanted, uint32_t number)
{
	struct mw_top_course *course = &wanted->courses[number];
	const double *level = wanted->levels[number];
	uint32_t bars = wanted->points < MW_TOP_BARS ? wanted->points : MW_TOP_BARS;
	double most = 0;

	for (uint32_t i = 0; i < wanted->points; i++)
		most = fmax(most, level[i]);
	course->bar_count = (uint8_t)bars;
	for (uint32_t i = 0; i < bars; i++)
		course->bars[i] =
			most > 0 ? (uint8_t)ceil(MW_TOP_BAR_MAX * level[(i + 1) * wanted->points / bars - 1] / most)
				 : 0;
}

/* Modules get none: what is freed of one stack says nothing of another that leaks. */
static struct mw_error *judge(const struct wanted *wanted, const struct mw_track *track, double from, double to)
{
	MW_FREE struct mw_report_growth *growths = calloc(wanted->count, sizeof(*growths));
	MW_FREE struct mw_report_growth **out = calloc(wanted->count, sizeof(*out));
	const struct mw_summary_input input = {.track = track};
	const struct mw_report report = {.window = {.from = from, .to = to}};
	bool any = false;

	if (!growths || !out)
		return mw_error_nomem();
	for (uint32_t i = 0; i < wanted->count; i++) {
		out[i] = wanted->courses[i].of.module ? NULL : &growths[i];
		any |= out[i] != NULL;
	}
	/* It looks through all live blocks. */
	if (!any)
		return NULL;
	MW_TRY(mw_view_judge(&input, &report, wanted->of_stack, out, wanted->count));
	for (uint32_t i = 0; i < wanted->count; i++) {
		wanted->courses[i].judged = out[i] && growths[i].known;
		wanted->courses[i].verdict = growths[i].verdict;
		wanted->courses[i].certain = growths[i].certain;
	}
	return NULL;
}

void mw_top_courses_fill(const struct mw_track *track, const struct mw_top_known *known, const struct mw_top_key *keys,
			 uint32_t count, struct mw_top_shot *shot)
{
	uint32_t stack_count = mw_track_stack_count(track), known_count = mw_shared_list_count(&known->stacks);
	uint64_t latest_ns = mw_track_now(track), end_ns = shot->time_ns > latest_ns ? shot->time_ns : latest_ns;
	struct wanted wanted = {.known = known,
				.courses = shot->courses,
				.count = count,
				.module_count = mw_shared_list_count(&known->modules)};
	MW_FREE uint32_t *of_stack = calloc((size_t)stack_count + 1, sizeof(*of_stack));
	MW_FREE uint32_t *of_module = calloc((size_t)wanted.module_count + 1, sizeof(*of_module));
	MW_FREE double(*levels)[MW_SERIES_MAX] = calloc((size_t)count + 1, sizeof(*levels));

	/* Without memory there are those of an earlier shot. */
	if (!of_stack || !of_module || !levels)
		return;
	memset(of_stack, 0xff, stack_count * sizeof(*of_stack));
	memset(of_module, 0xff, ((size_t)wanted.module_count + 1) * sizeof(*of_module));
	for (uint32_t i = 0; i < count; i++)
		shot->courses[i] = (struct mw_top_course){.of = keys[i]};
	wanted.of_stack = of_stack;
	wanted.of_module = of_module;
	wanted.levels = levels;
	known_count = known_count < stack_count ? known_count : stack_count;
	assign(&wanted, known_count);
	add_levels(&wanted, track, end_ns, known_count);
	for (uint32_t i = 0; i < count; i++)
		set_bars(&wanted, i);
	if (mw_error_none(judge(&wanted, track, (double)shot->zero_ns / NS, (double)end_ns / NS)))
		shot->course_count = count;
}

/* --- shots ------------------------------------------------------------------------------------------------- */

struct mw_top_shot *mw_top_shot_create(uint32_t stacks, uint32_t threads, uint32_t courses)
{
	const size_t sums = (size_t)stacks + threads;
	struct mw_top_shot *shot = calloc(1, sizeof(*shot) + sums * sizeof(*shot->stacks) +
						     threads * sizeof(*shot->names) + courses * sizeof(*shot->courses));

	if (!shot)
		return NULL;
	shot->stack_count = stacks;
	shot->thread_count = threads;
	shot->stacks = (void *)(shot + 1);
	shot->threads = shot->stacks + stacks;
	shot->names = (void *)(shot->threads + threads);
	shot->courses = (void *)(shot->names + threads);
	return shot;
}

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
	shot->variance = totals.spreads.impacting.bytes;
	shot->sampled = mw_track_sampled(model->track);
	mw_track_totals(model->track, MW_KIND_VM, &totals);
	shot->vm = totals.impacting;
	shot->events = feed->earlier_events + mw_recorder_events(recorder);
	shot->has_stood = mw_recorder_stats(recorder, &stats);
	if (shot->has_stood) {
		shot->stood_ns = stats.stood_ns;
		shot->lost = stats.lost_events;
		shot->sampled_from_ns = stats.sampled_from_ns;
	}
	mw_top_show_missed(model->metadata.hooks, model->metadata.hook_count, feed->feeds->session->options->track_heap,
			   feed->feeds->session->options->track_vm, shot->not_hooked, sizeof(shot->not_hooked));
	shot->kept = feed->feeds->session->writer && !mw_store_broken(feed->feeds->session->writer);
	if (recorder->sample_count)
		shot->rss = recorder->newest.rss;
}

static void fill_sums(struct mw_top_feed *feed, struct mw_top_shot *shot)
{
	const struct mw_track *track = model_of(feed)->track;

	mw_track_stack_sums(track, shot->stacks, shot->stack_count);
	mw_track_thread_sums(track, shot->threads, shot->thread_count);
	for (uint32_t i = 0; i < shot->thread_count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(track, i, &thread);
		shot->names[i] = (struct mw_top_thread){thread.tid, thread.name};
	}
}

static int compare_keys(const void *one, const void *other, void *context)
{
	const struct mw_top_key *a = one, *b = other;
	const struct mw_top_shot *shot = context;
	uint64_t left = shot->stacks[a->key].impacting.bytes, right = shot->stacks[b->key].impacting.bytes;

	return left != right ? (left > right ? -1 : 1) : (a->key > b->key) - (a->key < b->key);
}

/* Nobody has asked for those of a process that ends before it is shown: its largest stacks. */
static uint32_t take_largest(struct mw_top_shot *shot, struct mw_top_key keys[MW_TOP_COURSES])
{
	MW_FREE struct mw_top_key *all = calloc((size_t)shot->stack_count + 1, sizeof(*all));
	uint32_t count = shot->stack_count < MW_TOP_COURSES ? shot->stack_count : MW_TOP_COURSES;

	if (!all)
		return 0;
	for (uint32_t i = 0; i < shot->stack_count; i++)
		all[i].key = i;
	qsort_r(all, shot->stack_count, sizeof(*all), compare_keys, shot);
	memcpy(keys, all, count * sizeof(*keys));
	return count;
}

/* Of the rows that are wanted, where there is time for it: it takes at most its share, as copying does. */
static void fill_courses(struct mw_top_feed *feed, bool last, struct mw_top_shot *shot)
{
	struct mw_top_key keys[MW_TOP_COURSES];
	uint64_t began_ns = mw_clock_ns();
	uint32_t count;

	if (!last && began_ns < feed->courses_ns)
		return;
	pthread_mutex_lock(&feed->lock);
	count = feed->wanted_count;
	memcpy(keys, feed->wanted, count * sizeof(*keys));
	pthread_mutex_unlock(&feed->lock);
	if (last && !count)
		count = take_largest(shot, keys);
	if (count)
		mw_top_courses_fill(model_of(feed)->track, &feed->known, keys, count, shot);
	feed->courses_ns = began_ns + (mw_clock_ns() - began_ns) * SHARE;
}

static void hand_over(struct mw_top_feed *feed, struct mw_top_shot *shot)
{
	struct mw_top_shot *old;

	pthread_mutex_lock(&feed->lock);
	old = feed->shot;
	feed->shot = shot;
	pthread_mutex_unlock(&feed->lock);
	free(old);
	mw_top_feeds_poke(feed->feeds);
}

/* Without memory there is one the next time, perhaps. */
static void leave_shot(struct mw_top_feed *feed, uint64_t time_ns, bool last)
{
	uint64_t began_ns = mw_clock_ns(), took_ns;
	struct mw_top_shot *shot = NULL;

	if (add_modules(feed) && add_stacks(feed))
		shot = mw_top_shot_create(mw_shared_list_count(&feed->known.stacks),
					  mw_track_thread_count(model_of(feed)->track), MW_TOP_COURSES);
	if (shot) {
		fill_sums(feed, shot);
		fill_figures(feed, time_ns, shot);
	}
	took_ns = mw_clock_ns() - began_ns;
	feed->next_ns = began_ns + took_ns * SHARE;
	if (!shot)
		return;
	fill_courses(feed, last, shot);
	hand_over(feed, shot);
}

/* --- moments ----------------------------------------------------------------------------------------------- */

/* False: nothing is recorded. */
static bool make_moment(const struct mw_top_feed *feed, uint64_t time_ns, bool whole, struct mw_top_moment *moment)
{
	const struct mw_recorder *recorder = recorder_of(feed);
	const struct mw_engine *engine = feed->feeds->session->engine;
	const struct mw_window_info *window = engine ? engine->ops->window(engine, feed->pid) : NULL;
	uint64_t latest_ns = mw_track_now(model_of(feed)->track);
	struct mw_engine_stats stats;

	if (!feed->feeds->session->writer)
		return false;
	moment->whole = whole;
	moment->number = mw_store_moment(feed->feeds->session->writer);
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
	mw_emitter_mark(&feed->feeds->session->emitters[feed->process], latest_ns);
}

/* --- the engine's thread ----------------------------------------------------------------------------------- */

static void begin(struct mw_top_feed *feed)
{
	const struct mw_stored_target *target = &model_of(feed)->metadata.target;
	struct mw_engine *engine = feed->feeds->session->engine;

	feed->engine = target->engine;
	feed->exe = target->exe;
	feed->files = engine->ops->modules(engine, feed->pid);
	atomic_store(&feed->phase, MW_TOP_WATCHING);
	leave_shot(feed, 0, false);
}

static void on_begun(void *context)
{
	struct mw_top_feeds *feeds = context;

	for (size_t i = 0; i < feeds->count; i++)
		begin(&feeds->items[i]);
}

static void sample(struct mw_top_feed *feed, uint64_t time_ns)
{
	bool zero = atomic_exchange(&feed->zero_wanted, false);

	feed->sampled_ns = time_ns;
	if (zero)
		set_zero(feed);
	if (zero || mw_clock_ns() >= feed->next_ns)
		leave_shot(feed, zero && feed->zero_ns > time_ns ? feed->zero_ns : time_ns, false);
}

static void end(struct mw_top_feed *feed, bool well)
{
	struct mw_engine *engine = feed->feeds->session->engine;
	uint64_t time_ns;

	feed->window = engine ? engine->ops->window(engine, feed->pid) : NULL;
	time_ns = feed->window ? feed->window->length_ns : 0;
	leave_shot(feed, time_ns, true);
	leave_moment(feed, time_ns, well, MW_TOP_OVER);
	mw_top_feeds_poke(feed->feeds);
}

/* One that has ended, where others go on. */
static bool has_ended(const struct mw_top_feed *feed)
{
	struct mw_engine *engine = feed->feeds->session->engine;
	const struct mw_window_info *window = engine->ops->window(engine, feed->pid);

	return window && window->over && feed->feeds->session->count > 1;
}

static void on_sampled(void *context, size_t process, uint64_t time_ns)
{
	struct mw_top_feeds *feeds = context;
	struct mw_store_writer *writer = feeds->session->writer;

	if (writer && feeds->kept_max && mw_store_written(writer) > feeds->kept_max)
		mw_store_give_up(writer, EFBIG);
	if (atomic_load(&feeds->items[process].phase) == MW_TOP_WATCHING)
		sample(&feeds->items[process], time_ns);
	for (size_t i = 0; i < feeds->count; i++) {
		struct mw_top_feed *feed = &feeds->items[i];

		if (atomic_load(&feed->phase) != MW_TOP_WATCHING)
			continue;
		/* Between two events: all that came is before it. */
		if (atomic_exchange(&feed->moment_wanted, false))
			leave_moment(feed, feed->sampled_ns, false, MW_TOP_WATCHING);
		if (has_ended(feed))
			end(feed, false);
	}
}

void mw_top_feeds_end(struct mw_top_feeds *feeds, bool well)
{
	for (size_t i = 0; i < feeds->count; i++)
		if (atomic_load(&feeds->items[i].phase) != MW_TOP_STARTING)
			end(&feeds->items[i], well);
}

struct mw_error *mw_top_feeds_init(struct mw_top_feeds *feeds, struct mw_session *session)
{
	feeds->session = session;
	feeds->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (feeds->news < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make an eventfd");
	feeds->items = calloc(session->count, sizeof(*feeds->items));
	if (!feeds->items)
		return mw_error_nomem();
	for (; feeds->count < session->count; feeds->count++) {
		struct mw_top_feed *feed = &feeds->items[feeds->count];
		const struct mw_recorder *recorder = &session->recorders[feeds->count];

		*feed = (struct mw_top_feed){.feeds = feeds, .process = feeds->count, .pid = recorder->pid};
		feed->comm = recorder->comm ? recorder->comm : "?";
		pthread_mutex_init(&feed->lock, NULL);
	}
	session->begun = on_begun;
	session->sampled = on_sampled;
	session->context = feeds;
	return NULL;
}

static void deinit(struct mw_top_feed *feed)
{
	for (uint32_t i = 0; i < mw_shared_list_count(&feed->known.stacks); i++)
		free(mw_shared_list_get(&feed->known.stacks, i));
	for (uint32_t i = 0; i < mw_shared_list_count(&feed->known.modules); i++)
		free(mw_shared_list_get(&feed->known.modules, i));
	mw_shared_list_deinit(&feed->known.stacks);
	mw_shared_list_deinit(&feed->known.modules);
	mw_map_deinit(&feed->same.first);
	free(feed->shot);
	pthread_mutex_destroy(&feed->lock);
}

void mw_top_feeds_deinit(struct mw_top_feeds *feeds)
{
	for (size_t i = 0; i < feeds->count; i++)
		deinit(&feeds->items[i]);
	free(feeds->items);
	if (feeds->session && feeds->news >= 0)
		close(feeds->news);
}

/* --- the others -------------------------------------------------------------------------------------------- */

struct mw_top_shot *mw_top_feed_take(struct mw_top_feed *feed, const struct mw_top_key *keys, size_t count)
{
	struct mw_top_shot *shot;

	pthread_mutex_lock(&feed->lock);
	shot = feed->shot;
	feed->shot = NULL;
	feed->wanted_count = count < MW_TOP_COURSES ? (uint32_t)count : MW_TOP_COURSES;
	if (feed->wanted_count)
		memcpy(feed->wanted, keys, feed->wanted_count * sizeof(*keys));
	pthread_mutex_unlock(&feed->lock);
	return shot;
}

bool mw_top_feeds_moments(struct mw_top_feeds *feeds, bool ask, struct mw_top_moment *out, uint64_t *latest)
{
	bool all = true;

	*latest = 0;
	for (size_t i = 0; i < feeds->count; i++) {
		struct mw_top_feed *feed = &feeds->items[i];

		pthread_mutex_lock(&feed->lock);
		/* That of the window's end stays. */
		if (ask && atomic_load(&feed->phase) != MW_TOP_OVER)
			feed->has_moment = false;
		all &= feed->has_moment;
		out[i] = feed->moment;
		pthread_mutex_unlock(&feed->lock);
		if (ask)
			atomic_store(&feed->moment_wanted, true);
		out[i].end.figures = out[i].figures;
		*latest = out[i].number > *latest ? out[i].number : *latest;
	}
	return all;
}
