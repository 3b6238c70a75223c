// SPDX-License-Identifier: MIT
/* work.c: see work.h. */
#include "top/work.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "proc/maps.h"
#include "proc/regions.h"
#include "proc/status.h"
#include "session/process_setup.h"
#include "view/arena.h"
#include "view/frames.h"
#include "view/space.h"
#include "view/suspects.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAPPED_NS UINT64_C(1000000000) /* where code in no file is is not looked at more often … */
#define NAMES_NS  UINT64_C(5000000000) /* … nor what the program calls it … */
#define NAMES_MAX 64                   /* … nor that more often than this in all: old names stay in use */
#define STEP_NS   20000000
#define EMIT_EACH 64 /* stacks, or pieces of a file */
#define NEWS_MAX  600
#define SHOW_NS   200000000

/* What names are made of; of one thread. */
struct names {
	const struct mw_top_feed *feed;
	bool begun;
	struct mw_guarded_symbols guarded;
	struct mw_view_symbols symbols; /* the symbolizer's … */
	struct mw_view_symbols own;     /* … with what the program calls code in no file */
	struct mw_perf_place jit;
	struct mw_perf_map maps[NAMES_MAX];
	size_t map_count;
	uint64_t named_ns, mapped_ns;
	struct mw_summary_input input;  /* the framer's: modules, and … */
	struct mw_code_regions regions; /* … regions of code in no file */
	struct mw_view_module *modules;
	struct mw_framer *framer;
	struct mw_arena *arena; /* of all names */
};

struct mw_top_work {
	struct mw_top_feeds *feeds;
	struct names *names; /* one for each */
	struct mw_store_writer *writer;
	const char *no_writer;
	pthread_t thread;
	atomic_bool quit;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	uint32_t wanted[MW_TOP_WANTED];
	size_t wanted_count, wanted_at, wanted_of; /* the last: the process */
	char *path;                                /* of a recording that is to be written, or is being; NULL: none */
	bool saving;
	char news[NEWS_MAX];
	/* The thread's own. */
	const char *step;
	unsigned steps;
	uint64_t shown_ns; /* when the screen was last updated with names */
};

/* --- symbols ----------------------------------------------------------------------------------------------- */

/* What the program calls code in no file; it goes on making such code. */
static void read_names(struct names *names)
{
	uint64_t now_ns = mw_clock_ns();
	struct mw_perf_map *map = &names->maps[names->map_count];
	struct mw_error *err;

	if (names->map_count == NAMES_MAX || (names->named_ns && now_ns - names->named_ns < NAMES_NS))
		return;
	names->named_ns = now_ns;
	err = mw_perf_map_read(&names->jit, map);
	if (err) {
		mw_error_destroy(err);
		return;
	}
	mw_symbolizer_set_names(names->guarded.symbolizer, map);
	names->map_count++;
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct names *names = context;

	if (module == MW_MODULE_NONE && !names->guarded.crashed)
		read_names(names);
	return names->symbols.resolve(names->symbols.context, module, addr, frames, count);
}

/* The framer is made again when there are more modules. */
static struct mw_error *follow(struct names *names)
{
	const struct mw_shared_list *known = &names->feed->known.modules;
	uint32_t count = mw_shared_list_count(known);

	if (!names->begun) {
		MW_TRY(mw_guarded_symbols_init(&names->guarded, names->feed->files));
		names->symbols = mw_guarded_symbols_of(&names->guarded);
		names->own = (struct mw_view_symbols){.context = names, .resolve = resolve};
		names->begun = true;
	}
	if (names->framer && names->input.module_count == count)
		return NULL;
	mw_framer_destroy(names->framer);
	names->framer = NULL;
	free(names->modules);
	names->modules = calloc((size_t)count + 1, sizeof(*names->modules));
	if (!names->modules)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++)
		names->modules[i] = *(const struct mw_view_module *)mw_shared_list_get(known, i);
	names->input = (struct mw_summary_input){
		.modules = names->modules,
		.module_count = count,
		.symbols = &names->own,
		.regions = &names->regions,
		.exe = names->feed->exe,
	};
	return mw_framer_create(&names->input, names->arena, &names->framer);
}

static void names_deinit(struct names *names)
{
	if (names->begun)
		mw_guarded_symbols_deinit(&names->guarded);
	mw_framer_destroy(names->framer);
	free(names->modules);
	mw_code_regions_deinit(&names->regions);
	mw_arena_destroy(names->arena);
	for (size_t i = 0; i < names->map_count; i++)
		mw_perf_map_deinit(&names->maps[i]);
	mw_perf_place_deinit(&names->jit);
}

/* --- names of stacks --------------------------------------------------------------------------------------- */

/* By a list of mappings. */
static struct mw_error *make_regions(const struct mw_maps *maps, struct mw_code_regions *out)
{
	MW_FREE struct mw_stored_mapping *mappings = calloc(maps->count + 1, sizeof(*mappings));
	const struct mw_space_moment moment = {.mappings = mappings, .count = maps->count};

	if (!mappings)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		mappings[i] = (struct mw_stored_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.kind = mw_region_kind_of(mapping),
			.exec = mapping->exec,
			.accessible = mapping->read || mapping->write || mapping->exec,
		};
	}
	return mw_code_regions_make(&moment, NULL, out);
}

static bool has_new_region(const struct names *names, const struct mw_top_stack *stack)
{
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i].module == MW_MODULE_NONE &&
		    !mw_code_regions_find(&names->regions, stack->frames[i].addr))
			return true;
	return false;
}

/* Where code in no file is: regions grow, and new ones come. What can't be had stays as it was. */
static void follow_regions(struct names *names, const struct mw_top_stack *stack)
{
	struct mw_code_regions regions = {0};
	struct mw_maps maps = {0};
	uint64_t now_ns = mw_clock_ns();
	struct mw_error *err;

	if (!has_new_region(names, stack) || (names->mapped_ns && now_ns - names->mapped_ns < MAPPED_NS))
		return;
	names->mapped_ns = now_ns;
	err = mw_maps_read(mw_live_thread(names->feed->pid), &maps);
	if (!err)
		err = make_regions(&maps, &regions);
	if (!err) {
		mw_code_regions_deinit(&names->regions);
		names->regions = regions;
	}
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}

/* Takes as long as it takes. Errors: MEMORY. */
static struct mw_error *find_names(struct names *names, struct mw_top_stack *stack)
{
	struct mw_top_named *named;

	if (atomic_load(&stack->named))
		return NULL;
	MW_TRY(follow(names));
	follow_regions(names, stack);
	named = mw_arena_array(names->arena, 1, sizeof(*named));
	if (!named)
		return mw_error_nomem();
	named->stack = (struct mw_report_stack){.kind = stack->kind, .api = stack->api, .cut = stack->cut};
	MW_TRY(mw_framer_frames(names->framer, stack->frames, stack->frame_count, &named->stack));
	atomic_store(&stack->named, named);
	return NULL;
}

/* The names of all stacks go to a recording. `go_on` is asked now and then, false ends it. Errors: MEMORY. */
static struct mw_error *emit_names(struct names *names, struct mw_store_writer *writer,
				   bool (*go_on)(void *context, uint64_t done, uint64_t total), void *context)
{
	const struct mw_store_visitor receiver = mw_store_receiver(writer);
	struct mw_emitter emitter = {.process = (uint32_t)names->feed->process};
	uint32_t total = mw_shared_list_count(&names->feed->known.stacks);
	const struct mw_symbol_frame *frames;
	struct mw_view_symbols emission;
	struct mw_error *err = NULL;
	size_t count;

	MW_TRY(follow(names));
	mw_emitter_add(&emitter, &receiver);
	emission = mw_emitter_symbols(&emitter, &names->own);
	for (uint32_t i = 0; i < total && !err && go_on(context, i, total); i++) {
		const struct mw_top_stack *stack = mw_shared_list_get(&names->feed->known.stacks, i);

		for (uint32_t j = 0; j < stack->frame_count && !err; j++)
			err = emission.resolve(emission.context, stack->frames[j].module, stack->frames[j].addr,
					       &frames, &count);
	}
	mw_emitter_deinit(&emitter);
	return err;
}

/* --- recordings -------------------------------------------------------------------------------------------- */

static void set_news(struct mw_top_work *work, const char *text)
{
	pthread_mutex_lock(&work->lock);
	(void)snprintf(work->news, sizeof(work->news), "%s", text);
	pthread_mutex_unlock(&work->lock);
	mw_top_feeds_poke(work->feeds);
}

static bool go_on_saving(void *context, uint64_t done, uint64_t total)
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
static struct mw_error *await_moments(struct mw_top_work *work, struct mw_top_moment *moments,
				      struct mw_store_upto *upto)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t latest;

	for (bool ask = true; !atomic_load(&work->quit); ask = false) {
		if (mw_store_broken(work->writer))
			return given_up(work);
		if (mw_top_feeds_moments(work->feeds, ask, moments, &latest) &&
		    mw_store_passed(work->writer, latest, upto))
			return NULL;
		nanosleep(&step, NULL);
	}
	return mw_error_create(MW_ERROR_SYSTEM, ECANCELED, "memwatch ends");
}

static struct mw_error *complete(struct mw_top_work *work, const struct mw_top_moment *moments,
				 struct mw_store_writer *copy)
{
	for (size_t i = 0; i < work->feeds->count; i++) {
		struct mw_stored_end end = moments[i].end;

		if (moments[i].whole)
			continue;
		end.figures = moments[i].figures;
		if (moments[i].has_sample)
			MW_STORE_TELL(copy, sample, (uint32_t)i, &moments[i].sample);
		MW_STORE_TELL(copy, end, (uint32_t)i, &end);
	}
	work->step = "names";
	for (size_t i = 0; i < work->feeds->count; i++)
		MW_TRY(emit_names(&work->names[i], copy, go_on_saving, work));
	if (atomic_load(&work->quit))
		return mw_error_create(MW_ERROR_SYSTEM, ECANCELED, "memwatch ends");
	MW_TRY(mw_store_publish(copy));
	return mw_store_finish(copy);
}

static struct mw_error *save(struct mw_top_work *work)
{
	struct mw_store_writer *copy = NULL;
	MW_FREE struct mw_top_moment *moments = NULL;
	struct mw_store_upto upto = {0};
	struct mw_error *err;

	if (!work->writer)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "%s", work->no_writer);
	moments = calloc(work->feeds->count, sizeof(*moments));
	if (!moments)
		return mw_error_nomem();
	set_news(work, "writing the recording");
	MW_TRY(await_moments(work, moments, &upto));
	work->step = "events";
	work->steps = 0;
	MW_TRY(mw_store_copy(work->writer, &upto, work->path, go_on_saving, work, &copy));
	err = complete(work, moments, copy);
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

/* --- the thread -------------------------------------------------------------------------------------------- */

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
	mw_top_feeds_poke(work->feeds);
}

static void *run(void *context)
{
	struct mw_top_work *work = context;

	pthread_setname_np(pthread_self(), "memwatch-names");
	while (!atomic_load(&work->quit)) {
		struct mw_top_stack *stack = NULL;
		size_t process = 0;
		bool saves;

		pthread_mutex_lock(&work->lock);
		while (!atomic_load(&work->quit) && !work->saving && work->wanted_at == work->wanted_count)
			pthread_cond_wait(&work->changed, &work->lock);
		saves = work->saving;
		process = work->wanted_of;
		if (!saves && work->wanted_at < work->wanted_count)
			stack = mw_shared_list_get(&work->feeds->items[process].known.stacks,
						   work->wanted[work->wanted_at++]);
		pthread_mutex_unlock(&work->lock);
		if (atomic_load(&work->quit))
			break;
		if (saves) {
			save_and_report(work);
		} else if (stack) {
			/* Without memory for it there is no name for now. */
			mw_error_destroy(find_names(&work->names[process], stack));
			show_found(work);
		}
	}
	return NULL;
}

static struct mw_error *names_init(struct mw_top_work *work)
{
	work->names = calloc(work->feeds->count, sizeof(*work->names));
	if (!work->names)
		return mw_error_nomem();
	for (size_t i = 0; i < work->feeds->count; i++) {
		work->names[i].feed = &work->feeds->items[i];
		mw_perf_place_init(&work->names[i].jit, work->feeds->items[i].pid);
		work->names[i].arena = mw_arena_create();
		if (!work->names[i].arena)
			return mw_error_nomem();
	}
	return NULL;
}

struct mw_error *mw_top_work_create(struct mw_top_feeds *feeds, const char *no_writer, struct mw_top_work **out)
{
	struct mw_top_work *work = calloc(1, sizeof(*work));
	struct mw_error *err;

	if (!work)
		return mw_error_nomem();
	work->feeds = feeds;
	work->writer = feeds->session->writer;
	work->no_writer = no_writer;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->changed, NULL);
	err = names_init(work);
	if (!err)
		err = mw_process_setup_thread(&work->thread, run, work);
	if (err) {
		mw_top_work_destroy(work);
		return err;
	}
	*out = work;
	return NULL;
}

bool mw_top_work_end(struct mw_top_work *work, unsigned seconds)
{
	pthread_mutex_lock(&work->lock);
	atomic_store(&work->quit, true);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->lock);
	return mw_thread_join_within(work->thread, seconds);
}

struct mw_error *mw_top_work_emit(struct mw_top_work *work, bool (*go_on)(void *context, uint64_t done, uint64_t total),
				  void *context)
{
	for (size_t i = 0; i < work->feeds->count; i++)
		MW_TRY(emit_names(&work->names[i], work->writer, go_on, context));
	return NULL;
}

void mw_top_work_destroy(struct mw_top_work *work)
{
	if (!work)
		return;
	for (size_t i = 0; work->names && i < work->feeds->count; i++)
		names_deinit(&work->names[i]);
	free(work->names);
	free(work->path);
	pthread_cond_destroy(&work->changed);
	pthread_mutex_destroy(&work->lock);
	free(work);
}

void mw_top_work_want(struct mw_top_work *work, size_t process, const uint32_t *stacks, size_t count)
{
	pthread_mutex_lock(&work->lock);
	work->wanted_of = process;
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
