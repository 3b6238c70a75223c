// SPDX-License-Identifier: MIT
/* names.c: see names.h. */
#include "top/names.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/status.h"
#include "session/crash.h"
#include "session/space.h"
#include "view/arena.h"
#include "view/code_regions.h"
#include "view/group.h"
#include "view/stack_id.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_NS UINT64_C(1000000000) /* without news mappings are not looked at more often … */
#define NAMES_NS   UINT64_C(5000000000) /* … nor what the program calls code in no file … */
#define NAMES_MAX  64                   /* … nor that more often than this in all: old names stay in use */

struct mw_top_names {
	struct mw_top_feed *feed;
	pid_t pid;
	struct mw_modules *modules; /* of the process, by numbers of its own */
	struct mw_symbolizer *symbolizer;
	struct mw_guarded_symbols careful;
	struct mw_view_symbols symbols;
	struct mw_view_symbols by_number; /* asked by the engine's numbers of modules */
	struct mw_perf_place jit;
	struct mw_perf_map maps[NAMES_MAX];
	size_t map_count;
	uint64_t refreshed_ns, named_ns, mapped_ns;
	size_t refreshed_count; /* modules that were known by then */
	struct mw_top_registry known;
	uint32_t *own; /* by the engine's number of a module: ours, or MW_MODULE_NONE */
	size_t own_count;
	struct mw_stack_ids *ids;
	struct mw_code_regions regions; /* of code in no file */
	struct mw_arena *texts;         /* what they are called */
	size_t id_count;
	struct mw_emitter emitter; /* which addresses have been emitted, while that is done */
	pthread_mutex_t lock;      /* of what follows */
	struct mw_top_named **found;
	size_t found_capacity;
};

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count);

struct mw_error *mw_top_names_create(struct mw_top_feed *feed, pid_t pid, struct mw_top_names **out)
{
	struct mw_top_names *names = calloc(1, sizeof(*names));
	struct mw_view_symbols plain;
	struct mw_error *err;

	if (!names)
		return mw_error_nomem();
	names->feed = feed;
	names->pid = pid;
	names->by_number = (struct mw_view_symbols){.context = names, .resolve = resolve};
	pthread_mutex_init(&names->lock, NULL);
	mw_perf_place_init(&names->jit, pid);
	names->texts = mw_arena_create();
	err = names->texts ? mw_modules_create(&names->modules) : mw_error_nomem();
	if (!err)
		err = mw_symbolizer_create(names->modules, &names->symbolizer);
	if (err) {
		mw_top_names_destroy(names);
		return err;
	}
	plain = mw_view_symbols_of(names->symbolizer);
	names->symbols = mw_guarded_symbols_of(&names->careful, &plain);
	*out = names;
	return NULL;
}

void mw_top_names_destroy(struct mw_top_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->found_capacity; i++)
		free(names->found[i]);
	free(names->found);
	/* What a crash was in may not be touched any more. */
	if (!names->careful.crashed) {
		mw_symbolizer_destroy(names->symbolizer);
		mw_modules_destroy(names->modules);
	}
	mw_stack_ids_destroy(names->ids);
	mw_code_regions_deinit(&names->regions);
	mw_arena_destroy(names->texts);
	free(names->own);
	mw_top_registry_deinit(&names->known);
	for (size_t i = 0; i < names->map_count; i++)
		mw_perf_map_deinit(&names->maps[i]);
	mw_perf_place_deinit(&names->jit);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

/* --- modules ----------------------------------------------------------------------------------------------- */

/* Another file may have come to stand under the same path, and be mapped where the other was. */
static bool may_be_same(const struct mw_module *own, const struct mw_view_module *module)
{
	const struct mw_elf *elf = own->elf;

	if (!elf || !elf->build_id_size || !module->build_id_size)
		return true;
	return elf->build_id_size == module->build_id_size &&
	       memcmp(elf->build_id, module->build_id, elf->build_id_size) == 0;
}

static uint32_t find_own(const struct mw_top_names *names, const struct mw_view_module *module)
{
	for (size_t i = mw_modules_count(names->modules); i-- > 0;) {
		const struct mw_module *own = mw_modules_get(names->modules, (uint32_t)i);

		if (own && own->path && module->path && strcmp(own->path, module->path) == 0 &&
		    (own->elf ? own->bias : own->start) == module->base && may_be_same(own, module))
			return (uint32_t)i;
	}
	return MW_MODULE_NONE;
}

/*
 * Take in what is mapped now. A process that has ended has nothing any more: what was known stays. What has become
 * known since the last look is worth one at once: a stack is given its names but once.
 */
static void refresh(struct mw_top_names *names)
{
	uint64_t now_ns = mw_clock_ns();
	struct mw_maps maps = {0};
	struct mw_error *err;
	pid_t tid;

	if (names->refreshed_ns && names->refreshed_count == names->known.module_count &&
	    now_ns - names->refreshed_ns < REFRESH_NS)
		return;
	names->refreshed_ns = now_ns;
	names->refreshed_count = names->known.module_count;
	tid = mw_live_thread(names->pid);
	err = mw_maps_read(tid, &maps);
	if (!err && maps.count)
		err = mw_modules_refresh(names->modules, tid, &maps, NULL, NULL);
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}

static bool follow_modules(struct mw_top_names *names)
{
	size_t count = names->known.module_count;
	uint32_t *own;
	bool missing = false;

	if (count > names->own_count) {
		own = reallocarray(names->own, count, sizeof(*own));
		if (!own)
			return false;
		names->own = own;
		while (names->own_count < count)
			names->own[names->own_count++] = MW_MODULE_NONE;
	}
	for (int again = 0; again < 2; again++) {
		missing = false;
		for (size_t i = 0; i < count; i++) {
			if (names->own[i] == MW_MODULE_NONE && names->known.modules[i].path)
				names->own[i] = find_own(names, &names->known.modules[i]);
			missing |= names->own[i] == MW_MODULE_NONE && names->known.modules[i].path;
		}
		if (!missing || again)
			break;
		refresh(names);
	}
	return true;
}

/* Ids of stacks are made from the engine's modules, and borrow them: they are made again when there are more. */
static bool follow_ids(struct mw_top_names *names)
{
	size_t count = names->known.module_count;
	const struct mw_view_code code = {&names->regions, &names->by_number};
	struct mw_error *err;

	if (names->ids && names->id_count == count)
		return true;
	mw_stack_ids_destroy(names->ids);
	names->ids = NULL;
	names->id_count = count;
	err = mw_stack_ids_create(names->known.modules, count, &code, &names->ids);
	mw_error_destroy(err);
	return !err;
}

/* What the program calls code in no file; it goes on making such code. */
static void read_names(struct mw_top_names *names)
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
	mw_symbolizer_set_names(names->symbolizer, map);
	names->map_count++;
}

/* --- stacks ------------------------------------------------------------------------------------------------ */

/* The engine's number becomes ours. */
static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct mw_top_names *names = context;
	uint32_t own = module < names->own_count ? names->own[module] : MW_MODULE_NONE;

	if (own == MW_MODULE_NONE && module == MW_MODULE_NONE && !names->careful.crashed)
		read_names(names);
	/* One that could not be found is no code without a file. */
	if (own == MW_MODULE_NONE && module != MW_MODULE_NONE) {
		*count = 0;
		return NULL;
	}
	return names->symbols.resolve(names->symbols.context, own, addr, frames, count);
}

/* Where code in no file is: regions grow, and new ones come. */
static const struct mw_code_region *find_region(struct mw_top_names *names, mw_addr addr)
{
	const struct mw_code_region *found = mw_code_regions_find(&names->regions, addr);
	struct mw_code_regions regions = {0};
	struct mw_maps maps = {0};
	uint64_t now_ns = mw_clock_ns();
	struct mw_error *err;

	if (found || (names->mapped_ns && now_ns - names->mapped_ns < REFRESH_NS))
		return found;
	names->mapped_ns = now_ns;
	err = mw_maps_read(mw_live_thread(names->pid), &maps);
	if (!err)
		err = mw_space_code_of(&maps, &regions);
	if (!err) {
		mw_code_regions_deinit(&names->regions);
		names->regions = regions;
	}
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	return mw_code_regions_find(&names->regions, addr);
}

/* What all of the region is called where the code itself has no name. */
static const char *describe(struct mw_top_names *names, const struct mw_raw_frame *raw)
{
	const struct mw_code_region *region = find_region(names, raw->addr);
	char text[MW_CODE_REGION_TEXT];

	if (!region)
		return NULL;
	mw_code_region_describe(region, text);
	return mw_arena_string(names->texts, text);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

struct lines {
	struct mw_top_named *named;
	size_t capacity;
};

static struct mw_top_line *add_line(struct lines *lines)
{
	struct mw_top_named *named = lines->named;

	if (!named || named->line_count == lines->capacity) {
		size_t capacity = lines->capacity ? 2 * lines->capacity : 32;

		named = realloc(named, sizeof(*named) + capacity * sizeof(named->lines[0]));
		if (!named)
			return NULL;
		if (!lines->named)
			named->line_count = 0;
		lines->named = named;
		lines->capacity = capacity;
	}
	return memset(&named->lines[named->line_count++], 0, sizeof(named->lines[0]));
}

static struct mw_error *add_frame(struct mw_top_names *names, const struct mw_raw_frame *raw, struct lines *lines)
{
	const struct mw_view_module *module =
		raw->module < names->known.module_count ? &names->known.modules[raw->module] : NULL;
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	MW_TRY(resolve(names, raw->module, raw->addr, &frames, &count));
	if (!count || (!frames[0].function && !module))
		count = 0;
	for (size_t i = 0; i < count || i == 0; i++) {
		struct mw_top_line *line = add_line(lines);

		if (!line)
			return mw_error_nomem();
		line->module = module ? base_name(module->path) : NULL;
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

/* As report says it: in the module that is charged, the first function that is not a library's. */
static size_t find_charged(const struct mw_top_names *names, const struct mw_top_stack *stack,
			   const struct mw_top_named *named, const size_t *first_line)
{
	size_t first = SIZE_MAX;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if (stack->frames[i].module != stack->module || stack->module >= names->known.module_count)
			continue;
		for (size_t j = first_line[i]; j < first_line[i + 1]; j++) {
			first = first == SIZE_MAX ? j : first;
			if (named->lines[j].function && !mw_view_is_library(named->lines[j].function))
				return j;
		}
	}
	return first == SIZE_MAX ? 0 : first;
}

static struct mw_error *make_named(struct mw_top_names *names, const struct mw_top_stack *stack,
				   struct mw_top_named **out)
{
	size_t *first_line = calloc((size_t)stack->frame_count + 1, sizeof(*first_line));
	struct lines lines = {0};
	uint64_t id = 0;
	struct mw_error *err = first_line ? NULL : mw_error_nomem();

	if (!err && !add_line(&lines))
		err = mw_error_nomem();
	if (!err)
		lines.named->line_count = 0;
	for (uint32_t i = 0; i < stack->frame_count && !err; i++) {
		first_line[i] = lines.named->line_count;
		err = add_frame(names, &stack->frames[i], &lines);
	}
	if (err) {
		free(lines.named);
		free(first_line);
		return err;
	}
	first_line[stack->frame_count] = lines.named->line_count;
	lines.named->charged = find_charged(names, stack, lines.named, first_line);
	lines.named->id[0] = '\0';
	free(first_line);
	if (names->ids)
		err = mw_stack_id(names->ids, stack->kind, stack->api, stack->frames, stack->frame_count, &id);
	if (err) {
		free(lines.named);
		return err;
	}
	if (names->ids)
		(void)snprintf(lines.named->id, sizeof(lines.named->id), "%016" PRIx64, id);
	*out = lines.named;
	return NULL;
}

static bool publish(struct mw_top_names *names, uint32_t stack, struct mw_top_named *named)
{
	bool good = true;

	pthread_mutex_lock(&names->lock);
	if (stack >= names->found_capacity) {
		size_t capacity = 2 * (size_t)stack + 64;
		struct mw_top_named **found = reallocarray(names->found, capacity, sizeof(*found));

		if (found) {
			memset(found + names->found_capacity, 0, (capacity - names->found_capacity) * sizeof(*found));
			names->found = found;
			names->found_capacity = capacity;
		} else {
			good = false;
		}
	}
	if (good)
		names->found[stack] = named;
	pthread_mutex_unlock(&names->lock);
	return good;
}

const struct mw_top_named *mw_top_names_get(struct mw_top_names *names, uint32_t stack)
{
	const struct mw_top_named *named = NULL;

	pthread_mutex_lock(&names->lock);
	if (stack < names->found_capacity)
		named = names->found[stack];
	pthread_mutex_unlock(&names->lock);
	return named;
}

static bool follow(struct mw_top_names *names)
{
	return mw_top_feed_follow(names->feed, &names->known) && follow_modules(names) && follow_ids(names);
}

struct mw_error *mw_top_names_find(struct mw_top_names *names, uint32_t stack)
{
	struct mw_top_named *named = NULL;

	if (mw_top_names_get(names, stack))
		return NULL;
	if (!follow(names))
		return mw_error_nomem();
	if (stack >= names->known.stack_count)
		return NULL;
	MW_TRY(make_named(names, names->known.stacks[stack], &named));
	if (publish(names, stack, named))
		return NULL;
	free(named);
	return mw_error_nomem();
}

struct mw_error *mw_top_names_emit(struct mw_top_names *names, struct mw_store_writer *writer,
				   bool (*go_on)(void *context, uint64_t done, uint64_t total), void *context)
{
	const struct mw_view_symbols inner = {.context = names, .resolve = resolve};
	const struct mw_store_visitor receiver = mw_store_receiver(writer);
	const struct mw_symbol_frame *frames;
	struct mw_view_symbols emission;
	struct mw_error *err = NULL;
	size_t count;

	names->refreshed_ns = 0;
	if (!follow(names))
		return mw_error_nomem();
	names->emitter = (struct mw_emitter){.process = 0};
	mw_emitter_add(&names->emitter, &receiver);
	emission = mw_emitter_symbols(&names->emitter, &inner);
	for (size_t i = 0; i < names->known.stack_count && !err; i++) {
		const struct mw_top_stack *stack = names->known.stacks[i];

		if (go_on && !go_on(context, i, names->known.stack_count))
			break;
		for (uint32_t j = 0; j < stack->frame_count && !err; j++) {
			err = emission.resolve(emission.context, stack->frames[j].module, stack->frames[j].addr,
					       &frames, &count);
		}
	}
	mw_emitter_deinit(&names->emitter);
	return err;
}
