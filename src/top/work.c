// SPDX-License-Identifier: MIT
/* work.c: see work.h. */
#include "top/work.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/maps.h"
#include "proc/regions.h"
#include "proc/status.h"
#include "session/crash.h"
#include "view/arena.h"
#include "view/frames.h"
#include "view/space.h"
#include "view/views.h"

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
	pid_t pid;
	bool begun;
	struct mw_guarded_symbols guarded;
	struct mw_view_symbols symbols; /* the symbolizer's … */
	struct mw_view_symbols own;     /* … with what the program calls code in no file */
	struct mw_perf_place jit;
	struct mw_perf_map maps[NAMES_MAX];
	size_t map_count;
	uint64_t named_ns, mapped_ns;
	struct mw_stack_ids *ids;
	uint32_t id_count;              /* modules that those are made from */
	struct mw_code_regions regions; /* of code in no file */
	struct mw_arena *texts;         /* what they are called */
};

struct mw_top_work {
	struct mw_top_feed *feeds;
	struct names *names; /* one for each */
	size_t count;
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

/* Ids of stacks are made again when there are more modules. */
static struct mw_error *follow_ids(struct names *names)
{
	const struct mw_shared_list *known = &names->feed->known.modules;
	const struct mw_view_code code = {&names->regions, &names->own};
	uint32_t count = mw_shared_list_count(known);
	struct mw_view_module *modules;
	struct mw_error *err;

	if (names->ids && names->id_count == count)
		return NULL;
	modules = calloc((size_t)count + 1, sizeof(*modules));
	if (!modules)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++)
		modules[i] = *(const struct mw_view_module *)mw_shared_list_get(known, i);
	mw_stack_ids_destroy(names->ids);
	names->ids = NULL;
	names->id_count = count;
	err = mw_stack_ids_create(modules, count, &code, &names->ids);
	free(modules);
	return err;
}

static struct mw_error *follow(struct names *names)
{
	if (!names->begun) {
		MW_TRY(mw_guarded_symbols_init(&names->guarded, names->feed->files));
		names->symbols = mw_guarded_symbols_of(&names->guarded);
		names->own = (struct mw_view_symbols){.context = names, .resolve = resolve};
		names->begun = true;
	}
	return follow_ids(names);
}

static void names_deinit(struct names *names)
{
	if (names->begun)
		mw_guarded_symbols_deinit(&names->guarded);
	mw_stack_ids_destroy(names->ids);
	mw_code_regions_deinit(&names->regions);
	mw_arena_destroy(names->texts);
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

/* Where code in no file is: regions grow, and new ones come. */
static const struct mw_code_region *find_region(struct names *names, mw_addr addr)
{
	const struct mw_code_region *found = mw_code_regions_find(&names->regions, addr);
	struct mw_code_regions regions = {0};
	struct mw_maps maps = {0};
	uint64_t now_ns = mw_clock_ns();
	struct mw_error *err;

	if (found || (names->mapped_ns && now_ns - names->mapped_ns < MAPPED_NS))
		return found;
	names->mapped_ns = now_ns;
	err = mw_maps_read(mw_live_thread(names->pid), &maps);
	if (!err)
		err = make_regions(&maps, &regions);
	if (!err) {
		mw_code_regions_deinit(&names->regions);
		names->regions = regions;
	}
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	return mw_code_regions_find(&names->regions, addr);
}

/* What all of the region is called where the code itself has no name. */
static const char *describe(struct names *names, const struct mw_raw_frame *raw)
{
	const struct mw_code_region *region = find_region(names, raw->addr);
	char text[MW_CODE_REGION_TEXT];

	if (!region)
		return NULL;
	mw_code_region_describe(region, text);
	return mw_arena_string(names->texts, text);
}

static struct mw_top_line *add_line(struct mw_top_named **named, size_t *capacity)
{
	struct mw_top_named *wider = *named;

	if (wider->line_count == *capacity) {
		wider = realloc(wider, sizeof(*wider) + 2 * *capacity * sizeof(wider->lines[0]));
		if (!wider)
			return NULL;
		*named = wider;
		*capacity *= 2;
	}
	return memset(&wider->lines[wider->line_count++], 0, sizeof(wider->lines[0]));
}

static struct mw_error *add_frame(struct names *names, const struct mw_raw_frame *raw, struct mw_top_named **named,
				  size_t *capacity)
{
	const struct mw_view_module *module = mw_shared_list_get(&names->feed->known.modules, raw->module);
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	MW_TRY(resolve(names, raw->module, raw->addr, &frames, &count));
	if (!count || (!frames[0].function && !module))
		count = 0;
	for (size_t i = 0; i < count || i == 0; i++) {
		struct mw_top_line *line = add_line(named, capacity);

		if (!line)
			return mw_error_nomem();
		line->module = module ? module->path : NULL;
		line->offset = module ? raw->addr - module->base : 0;
		if (!count && !module)
			line->function = describe(names, raw);
		if (!count)
			continue;
		line->function = frames[i].function;
		line->file = frames[i].file;
		line->line = frames[i].line;
		line->offset = frames[i].function ? frames[i].offset : line->offset;
		line->inlined = frames[i].inlined;
	}
	return NULL;
}

/* As report says it: in the module that is charged, the first function that is not a library's. The lines of frame `i`
 * begin at `first_line[i]`. */
static size_t find_charged(const struct mw_top_stack *stack, const struct mw_top_named *named, const size_t *first_line)
{
	size_t first = SIZE_MAX;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if (stack->module == MW_MODULE_NONE || stack->frames[i].module != stack->module)
			continue;
		for (size_t j = first_line[i]; j < first_line[i + 1]; j++) {
			first = first == SIZE_MAX ? j : first;
			if (named->lines[j].function && !mw_view_is_library(named->lines[j].function))
				return j;
		}
	}
	return first == SIZE_MAX ? 0 : first;
}

/* `*named` has room for `capacity` lines, and may move. */
static struct mw_error *fill_named(struct names *names, const struct mw_top_stack *stack, size_t *first_line,
				   size_t capacity, struct mw_top_named **named)
{
	uint64_t id;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		first_line[i] = (*named)->line_count;
		MW_TRY(add_frame(names, &stack->frames[i], named, &capacity));
	}
	first_line[stack->frame_count] = (*named)->line_count;
	(*named)->charged = find_charged(stack, *named, first_line);
	MW_TRY(mw_stack_id(names->ids, stack->kind, stack->api, stack->frames, stack->frame_count, &id));
	(void)snprintf((*named)->id, sizeof((*named)->id), "%016" PRIx64, id);
	return NULL;
}

/* Takes as long as it takes. Errors: MEMORY. */
static struct mw_error *find_names(struct names *names, struct mw_top_stack *stack)
{
	const size_t capacity = 2 * (size_t)stack->frame_count + 1;
	struct mw_top_named *named;
	size_t *first_line;
	struct mw_error *err;

	if (atomic_load(&stack->named))
		return NULL;
	MW_TRY(follow(names));
	named = calloc(1, sizeof(*named) + capacity * sizeof(named->lines[0]));
	first_line = calloc((size_t)stack->frame_count + 1, sizeof(*first_line));
	err = named && first_line ? fill_named(names, stack, first_line, capacity, &named) : mw_error_nomem();
	free(first_line);
	if (err)
		free(named);
	else
		atomic_store(&stack->named, named);
	return err;
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
	mw_top_feed_poke(&work->feeds[0]);
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

/* Of each process, the number of the latest: all are there. */
static bool take_moments(struct mw_top_work *work, struct mw_top_moment *moments, uint64_t *latest)
{
	*latest = 0;
	for (size_t i = 0; i < work->count; i++) {
		if (!mw_top_feed_moment(&work->feeds[i], &moments[i]))
			return false;
		*latest = moments[i].number > *latest ? moments[i].number : *latest;
	}
	return true;
}

/* Until the engine's thread has come to a moment, and all before it is in the file. */
static struct mw_error *await_moments(struct mw_top_work *work, struct mw_top_moment *moments,
				      struct mw_store_upto *upto)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t latest;

	for (size_t i = 0; i < work->count; i++)
		mw_top_feed_want_moment(&work->feeds[i]);
	while (!atomic_load(&work->quit)) {
		if (mw_store_broken(work->writer))
			return given_up(work);
		if (take_moments(work, moments, &latest) && mw_store_passed(work->writer, latest, upto))
			return NULL;
		nanosleep(&step, NULL);
	}
	return mw_error_create(MW_ERROR_SYSTEM, ECANCELED, "memwatch ends");
}

static struct mw_error *complete(struct mw_top_work *work, const struct mw_top_moment *moments,
				 struct mw_store_writer *copy)
{
	for (size_t i = 0; i < work->count; i++) {
		struct mw_stored_end end = moments[i].end;

		if (moments[i].whole)
			continue;
		end.figures = moments[i].figures;
		if (moments[i].has_sample)
			MW_STORE_TELL(copy, sample, (uint32_t)i, &moments[i].sample);
		MW_STORE_TELL(copy, end, (uint32_t)i, &end);
	}
	work->step = "names";
	for (size_t i = 0; i < work->count; i++)
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
	moments = calloc(work->count, sizeof(*moments));
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
	mw_top_feed_poke(&work->feeds[0]);
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
			stack = mw_shared_list_get(&work->feeds[process].known.stacks, work->wanted[work->wanted_at++]);
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
	work->names = calloc(work->count, sizeof(*work->names));
	if (!work->names)
		return mw_error_nomem();
	for (size_t i = 0; i < work->count; i++) {
		work->names[i].feed = &work->feeds[i];
		work->names[i].pid = work->feeds[i].pid;
		mw_perf_place_init(&work->names[i].jit, work->feeds[i].pid);
		work->names[i].texts = mw_arena_create();
		if (!work->names[i].texts)
			return mw_error_nomem();
	}
	return NULL;
}

struct mw_error *mw_top_work_create(struct mw_top_feed *feeds, size_t count, const char *no_writer,
				    struct mw_top_work **out)
{
	struct mw_top_work *work = calloc(1, sizeof(*work));
	struct mw_error *err;
	sigset_t all, before;
	int errnum;

	if (!work)
		return mw_error_nomem();
	work->feeds = feeds;
	work->count = count;
	work->writer = feeds[0].session->writer;
	work->no_writer = no_writer;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->changed, NULL);
	err = names_init(work);
	if (err) {
		mw_top_work_destroy(work);
		return err;
	}
	mw_process_setup_foreign_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&work->thread, NULL, run, work);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum) {
		mw_top_work_destroy(work);
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread");
	}
	*out = work;
	return NULL;
}

bool mw_top_work_end(struct mw_top_work *work, unsigned patience_ms)
{
	struct timespec until;

	pthread_mutex_lock(&work->lock);
	atomic_store(&work->quit, true);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += patience_ms / 1000 + 1;
	return pthread_timedjoin_np(work->thread, NULL, &until) == 0;
}

struct mw_error *mw_top_work_emit(struct mw_top_work *work, bool (*go_on)(void *context, uint64_t done, uint64_t total),
				  void *context)
{
	for (size_t i = 0; i < work->count; i++)
		MW_TRY(emit_names(&work->names[i], work->writer, go_on, context));
	return NULL;
}

void mw_top_work_destroy(struct mw_top_work *work)
{
	if (!work)
		return;
	for (size_t i = 0; work->names && i < work->count; i++)
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
