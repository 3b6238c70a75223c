// SPDX-License-Identifier: MIT
/* frames.c: from captured addresses to the frames of a report, and to the ids of stacks (frames.h). */
#include "view/frames.h"

#include "alloc/families.h"
#include "base/vector.h"
#include "view/summary.h"
#include "view/suspects.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct mw_error *mw_view_modules_of(const struct mw_modules *modules, struct mw_view_module **out, size_t *count)
{
	size_t total = mw_modules_count(modules);
	struct mw_view_module *found = calloc(total + 1, sizeof(*found));

	if (!found)
		return mw_error_nomem();
	for (size_t i = 0; i < total; i++) {
		const struct mw_module *module = mw_modules_get(modules, (uint32_t)i);

		if (!module || !module->path)
			continue;
		found[i] = (struct mw_view_module){
			.path = module->path,
			.start = module->start,
			.end = module->end,
			.base = module->elf ? module->bias : module->start,
			.suspect = mw_alloc_classify(module->path, module->elf) == MW_MODULE_OTHER,
			.has_file = module->elf != NULL,
		};
		if (module->elf) {
			found[i].build_id = module->elf->build_id;
			found[i].build_id_size = module->elf->build_id_size;
		}
	}
	*out = found;
	*count = total;
	return NULL;
}

/* Is it memory that a program keeps code in which it makes at run time: a memfd or shared memory, and no ELF file? */
static bool is_generated_module(const struct mw_view_module *module)
{
	static const char *const places[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV"};

	if (module->has_file || !module->path)
		return false;
	if (mw_named_frames_are_of(module->path))
		return true;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(module->path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

/* --- regions of code in no file ----------------------------------------------------------------------------- */

#define NO_FILE "[jit]"             /* the module of frames in no file */
#define DATA    (UINT64_C(1) << 20) /* bytes of data between two pieces of code of one region, at most */

static struct mw_error *add_region(struct mw_code_regions *regions, const struct mw_code_region *region)
{
	if (!MW_VECTOR_ROOM(regions->items, regions->count, regions->capacity))
		return mw_error_nomem();
	regions->items[regions->count++] = *region;
	return NULL;
}

static struct mw_error *add_moment(struct mw_code_regions *regions, const struct mw_space_moment *moment)
{
	struct mw_code_region region = {0}; /* empty: none is begun */
	mw_addr end = 0;                    /* of the anonymous mappings that touch each other */
	uint64_t data = 0;                  /* since the region's last code */
	struct mw_error *err = NULL;

	for (size_t i = 0; moment && i < moment->count && !err; i++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[i];
		bool anonymous = mapping->kind == MW_REGION_ANONYMOUS;

		if (region.end && (!anonymous || mapping->start != end || data > DATA)) {
			err = add_region(regions, &region);
			region.end = 0;
		}
		end = mapping->end;
		if (!anonymous)
			continue;
		if (!mapping->exec) {
			data += mapping->accessible ? mapping->end - mapping->start : 0;
			continue;
		}
		if (!region.end)
			region.start = mapping->start;
		region.end = mapping->end;
		data = 0;
	}
	if (!err && region.end)
		err = add_region(regions, &region);
	return err;
}

static int compare_regions(const void *left, const void *right)
{
	const struct mw_code_region *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/* Regions grow: those of two moments that overlap are one. */
static void join_regions(struct mw_code_regions *regions)
{
	size_t kept = 0;

	if (regions->count)
		qsort(regions->items, regions->count, sizeof(*regions->items), compare_regions);
	for (size_t i = 0; i < regions->count; i++) {
		struct mw_code_region *last = kept ? &regions->items[kept - 1] : NULL;

		if (last && regions->items[i].start < last->end)
			last->end = regions->items[i].end > last->end ? regions->items[i].end : last->end;
		else
			regions->items[kept++] = regions->items[i];
	}
	regions->count = kept;
}

struct mw_error *mw_code_regions_make(const struct mw_space_moment *start, const struct mw_space_moment *end,
				      struct mw_code_regions *out)
{
	struct mw_code_regions regions = {0};
	struct mw_error *err = add_moment(&regions, start);

	if (!err)
		err = add_moment(&regions, end);
	if (err) {
		free(regions.items);
		return err;
	}
	join_regions(&regions);
	*out = regions;
	return NULL;
}

void mw_code_regions_deinit(struct mw_code_regions *regions)
{
	free(regions->items);
	*regions = (struct mw_code_regions){0};
}

const struct mw_code_region *mw_code_regions_find(const struct mw_code_regions *regions, mw_addr addr)
{
	size_t low = 0, high = regions ? regions->count : 0;

	addr &= ~MW_FRAME_NEAR;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mw_code_region *region = &regions->items[middle];

		if (addr - 1 < region->start)
			high = middle;
		else if (addr - 1 >= region->end)
			low = middle + 1;
		else
			return region;
	}
	return NULL;
}

/* What somebody calls the code of a frame that is in no file, or in a module of generated code; its function is NULL where
 * nobody does. Good as long as the symbols' answers. */
static struct mw_error *code_name(const struct mw_view_code *code, const struct mw_raw_frame *frame,
				  struct mw_symbol_frame *name)
{
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	*name = (struct mw_symbol_frame){0};
	if (!code->symbols || frame->addr & MW_FRAME_NEAR)
		return NULL;
	MW_TRY(code->symbols->resolve(code->symbols->context, frame->module, frame->addr, &frames, &count));
	if (count)
		*name = frames[0];
	return NULL;
}

void mw_code_region_describe(const struct mw_code_region *region, char text[MW_CODE_REGION_TEXT])
{
	static const char *const units[] = {"KiB", "MiB", "GiB"};
	double size = (double)(region->end - region->start) / 1024;
	size_t unit = 0;

	/* 1023.95 would be shown as 1024.0. */
	for (; size >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	(void)snprintf(text, MW_CODE_REGION_TEXT, "(generated code at 0x%" PRIx64 ", %.*f %s)", region->start,
		       unit ? 1 : 0, size, units[unit]);
}

/* --- ids of stacks ------------------------------------------------------------------------------------------ */

enum { KEY_BUILD_ID = 1, KEY_NAME = 2, KEY_CODE_NAME = 3, KEY_CODE_REGION = 4, KEY_FILE = 5 };

struct module_key {
	uint64_t key, base;
	bool known, generated, language;
};

/*
 * The id under which a stack is known in every run and process is XXH64 (seed 0) over, in this order and little-endian:
 *   the kind, one byte; the entry point's name (or none) with its NUL;
 *   for each captured frame, innermost first, its module's key and its offset, 8 bytes each.
 * The offset is the address less the module's base, so load addresses don't matter. A module's key is
 * XXH64 over one byte and what it announces: 1 and the build-id; 2 and the path's base name, where the
 * file has no build-id or could not be had.
 *
 * Of code that is in no file, or in one that a JIT has made for it, addresses mean nothing in another run, nor does each
 * of them mean another caller. Where it has a name its key is XXH64 over 3 and that, with offset 0. Else its key is XXH64
 * over the byte 4 with the number of its region, in order of address, for an offset (2^64-1: it is in none that is
 * known), or its file's key with offset 0. An interpreter's frame has a name, and for an offset XXH64 over 5 and the
 * source file's path, plus the line.
 *
 * Kind and entry point are in it because one call site can reach two of them through a pointer; those
 * are two stacks of the report, and an id names one. Inlined frames are not: they come from debug
 * information, which may be there today and not tomorrow.
 */
struct stack_ids {
	XXH64_state_t *state, *names; /* scratch */
	struct mw_view_code code;
	size_t count;
	struct module_key keys[];
};

static uint64_t hash_tagged(XXH64_state_t *state, unsigned char tag, const void *bytes, size_t size)
{
	XXH64_reset(state, 0);
	XXH64_update(state, &tag, 1);
	XXH64_update(state, bytes, size);
	return XXH64_digest(state);
}

static uint64_t module_key(XXH64_state_t *state, const struct mw_view_module *module)
{
	const char *name = module->path, *slash;

	if (module->build_id && module->build_id_size)
		return hash_tagged(state, KEY_BUILD_ID, module->build_id, module->build_id_size);
	slash = strrchr(name, '/');
	if (slash)
		name = slash + 1;
	return hash_tagged(state, KEY_NAME, name, strlen(name));
}

static void stack_ids_destroy(struct stack_ids *ids)
{
	if (!ids)
		return;
	XXH64_freeState(ids->state);
	XXH64_freeState(ids->names);
	free(ids);
}

/* Compute the modules' keys once. What `code` points to must outlive it; it is copied. Errors: MEMORY. */
static struct mw_error *stack_ids_create(const struct mw_view_module *modules, size_t count,
					 const struct mw_view_code *code, struct stack_ids **out)
{
	struct stack_ids *ids = calloc(1, sizeof(*ids) + count * sizeof(ids->keys[0]));

	if (!ids)
		return mw_error_nomem();
	ids->state = XXH64_createState();
	ids->names = XXH64_createState();
	if (!ids->state || !ids->names) {
		stack_ids_destroy(ids);
		return mw_error_nomem();
	}
	ids->code = *code;
	ids->count = count;
	for (size_t i = 0; i < count; i++) {
		ids->keys[i].known = modules[i].path != NULL;
		ids->keys[i].generated = is_generated_module(&modules[i]);
		ids->keys[i].language = mw_named_frames_are_of(modules[i].path);
		ids->keys[i].base = modules[i].base;
		ids->keys[i].key = modules[i].path ? module_key(ids->state, &modules[i]) : 0;
	}
	*out = ids;
	return NULL;
}

/* What a frame counts as: the key of where its code is, and an offset there. `module`: NULL where it is in none. */
static struct mw_error *frame_key(const struct stack_ids *ids, const struct module_key *module,
				  const struct mw_raw_frame *frame, uint64_t *key, uint64_t *offset)
{
	const struct mw_code_region *region;
	struct mw_symbol_frame name;

	if (module && !module->generated) {
		*key = module->key;
		*offset = frame->addr - module->base;
		return NULL;
	}
	*offset = 0;
	MW_TRY(code_name(&ids->code, frame, &name));
	if (name.function) {
		*key = hash_tagged(ids->names, KEY_CODE_NAME, name.function, strlen(name.function));
		if (module && module->language && name.file)
			*offset = hash_tagged(ids->names, KEY_FILE, name.file, strlen(name.file)) + name.line;
	} else if (module) {
		*key = module->key;
	} else {
		region = mw_code_regions_find(ids->code.regions, frame->addr);
		*key = hash_tagged(ids->names, KEY_CODE_REGION, "", 0);
		*offset = region ? (uint64_t)(region - ids->code.regions->items) : UINT64_MAX;
	}
	return NULL;
}

static struct mw_error *stack_id(const struct stack_ids *ids, enum mw_kind kind, const char *api,
				 const struct mw_raw_frame *frames, size_t count, uint64_t *id)
{
	unsigned char kind_byte = (unsigned char)kind;
	const char *name = api ? api : "";

	XXH64_reset(ids->state, 0);
	XXH64_update(ids->state, &kind_byte, 1);
	XXH64_update(ids->state, name, strlen(name) + 1);
	for (size_t i = 0; i < count; i++) {
		const struct module_key *module = NULL;
		uint64_t pair[2];

		if (frames[i].module < ids->count && ids->keys[frames[i].module].known)
			module = &ids->keys[frames[i].module];
		MW_TRY(frame_key(ids, module, &frames[i], &pair[0], &pair[1]));
		pair[0] = htole64(pair[0]);
		pair[1] = htole64(pair[1]);
		XXH64_update(ids->state, pair, sizeof(pair));
	}
	*id = XXH64_digest(ids->state);
	return NULL;
}

/* --- what a stack ends at ----------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *prefix)
{
	return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where libraries let a context begin: glibc's makecontext, Boost.Context. */
static bool begins_context(const char *function)
{
	static const char *const names[] = {"__start_context", "__push___start_context", "make_fcontext"};

	for (size_t i = 0; function && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(function, names[i]) == 0)
			return true;
	return false;
}

/* Is it Erlang's virtual machine? All code that it makes is Erlang's, and keeps to a stack of its own. */
static bool is_erlang(const struct mw_summary_input *input)
{
	for (size_t i = 0; i < input->module_count; i++) {
		const char *path = input->modules[i].path, *slash = path ? strrchr(path, '/') : NULL;

		if (begins(slash ? slash + 1 : path, "beam."))
			return true;
	}
	return false;
}

/* Has the code of a frame been made at run time, as far as is known? */
static bool is_generated(const struct mw_summary_input *input, const struct mw_report_frame *frame)
{
	if (frame->generated)
		return frame->function;
	for (size_t i = 0; frame->module && i < input->module_count; i++)
		if (input->modules[i].path && strcmp(input->modules[i].path, frame->module) == 0)
			return is_generated_module(&input->modules[i]);
	return frame->module && strcmp(frame->module, NO_FILE) == 0;
}

/*
 * From frames and stack->cut. Where the code that a stack ends at is known to have no native caller, and which other code
 * has called it is not on this stack (Go's runtime, Erlang), it is not cut any more.
 */
static void find_end(const struct mw_summary_input *input, struct mw_report_stack *stack)
{
	const struct mw_report_frame *last = stack->frame_count ? &stack->frames[stack->frame_count - 1] : NULL;

	stack->end = MW_STACK_END_NONE;
	if (!last || stack->cut == MW_STACK_TRUNCATED)
		return;
	if (stack->cut == MW_STACK_COMPLETE)
		stack->end = begins_context(last->function) ? MW_STACK_END_COROUTINE : MW_STACK_END_NONE;
	else if (begins(last->function, "runtime.asmcgocall"))
		stack->end = MW_STACK_END_GO;
	else if (is_generated(input, last))
		stack->end = is_erlang(input) ? MW_STACK_END_ERLANG : MW_STACK_END_GENERATED;
	if (stack->end == MW_STACK_END_GO || stack->end == MW_STACK_END_ERLANG)
		stack->cut = MW_STACK_COMPLETE;
}

/* --- frames ------------------------------------------------------------------------------------------------- */

struct framed_module {
	const char *path; /* in the arena; NULL: nothing is known of it */
	uint64_t base;
	bool suspect, generated;
	bool interprets; /* it is the interpreter of a language, or belongs to it */
	enum mw_language language;
};

struct mw_framer {
	const struct mw_summary_input *input;
	struct mw_arena *arena;
	struct mw_view_code code;
	struct stack_ids *ids;
	struct mw_raw_frame *raw; /* of the tracker's stack that is asked about */
	size_t raw_capacity;
	struct mw_report_frame *buffer; /* one stack's frames, before their number is known */
	size_t count, capacity;
	bool interpreted; /* that stack has frames of a script */
	size_t module_count;
	struct framed_module modules[];
};

static enum mw_language language_of(const char *named)
{
	if (strcmp(named, MW_NAMED_FRAMES_JAVA) == 0)
		return MW_LANGUAGE_JAVA;
	return strcmp(named, MW_NAMED_FRAMES_JAVASCRIPT) == 0 ? MW_LANGUAGE_JAVASCRIPT : MW_LANGUAGE_PYTHON;
}

struct mw_error *mw_framer_create(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_framer **out)
{
	size_t count = input->module_count;
	struct mw_framer *framer = calloc(1, sizeof(*framer) + count * sizeof(framer->modules[0]));
	struct mw_error *err;

	if (!framer)
		return mw_error_nomem();
	framer->input = input;
	framer->arena = arena;
	framer->code = (struct mw_view_code){input->regions, input->symbols};
	framer->module_count = count;
	for (size_t i = 0; i < count; i++) {
		framer->modules[i].path = mw_arena_string(arena, input->modules[i].path);
		framer->modules[i].base = input->modules[i].base;
		framer->modules[i].suspect = input->modules[i].suspect;
		framer->modules[i].generated = is_generated_module(&input->modules[i]);
		framer->modules[i].interprets = mw_suspects_interprets(input->modules[i].path);
		if (mw_named_frames_are_of(input->modules[i].path))
			framer->modules[i].language = language_of(input->modules[i].path);
	}
	err = stack_ids_create(input->modules, count, &framer->code, &framer->ids);
	if (err) {
		mw_framer_destroy(framer);
		return err;
	}
	*out = framer;
	return NULL;
}

void mw_framer_destroy(struct mw_framer *framer)
{
	if (!framer)
		return;
	stack_ids_destroy(framer->ids);
	free(framer->raw);
	free(framer->buffer);
	free(framer);
}

static struct mw_error *read_frames(struct mw_framer *framer, uint32_t number, uint32_t count)
{
	if (!MW_VECTOR_ROOM(framer->raw, count, framer->raw_capacity))
		return mw_error_nomem();
	mw_track_frames(framer->input->track, number, framer->raw, count);
	return NULL;
}

/* The entry point's name, or NULL: the tracker makes stacks of no hook for events that came without one. */
static const char *api_of(const struct mw_framer *framer, const struct mw_track_stack *stack)
{
	return stack->hook < framer->input->hook_count ? framer->input->hooks[stack->hook].function : NULL;
}

struct mw_error *mw_framer_id(struct mw_framer *framer, uint32_t number, const struct mw_track_stack *stack,
			      uint64_t *id)
{
	MW_TRY(read_frames(framer, number, stack->frame_count));
	return stack_id(framer->ids, stack->kind, api_of(framer, stack), framer->raw, stack->frame_count, id);
}

static struct mw_report_frame *append(struct mw_framer *framer)
{
	if (!MW_VECTOR_ROOM(framer->buffer, framer->count, framer->capacity))
		return NULL;
	return memset(&framer->buffer[framer->count++], 0, sizeof(struct mw_report_frame));
}

/* A frame that nothing but its module is known of. */
static struct mw_error *add_bare(struct mw_framer *framer, const struct framed_module *module, mw_addr addr)
{
	struct mw_report_frame *frame = append(framer);

	if (!frame)
		return mw_error_nomem();
	frame->address = addr;
	frame->module = module->path;
	frame->offset = addr - module->base;
	frame->interprets = framer->interpreted && module->interprets;
	return NULL;
}

/* Code that is in no file, or in one that was made for it, and that nobody names: all of the region is one frame. */
static struct mw_error *add_generated(struct mw_framer *framer, const struct framed_module *module, mw_addr addr)
{
	const struct mw_code_region *region = module ? NULL : mw_code_regions_find(framer->code.regions, addr);
	struct mw_report_frame *frame = append(framer);
	char text[MW_CODE_REGION_TEXT];

	if (!frame)
		return mw_error_nomem();
	frame->generated = true;
	if (module) {
		frame->module = module->path;
		frame->function = "(generated code)";
	} else if (region) {
		frame->module = NO_FILE;
		mw_code_region_describe(region, text);
		frame->function = mw_arena_string(framer->arena, text);
		frame->address = region->start;
	}
	return NULL;
}

/* Go's functions have a package before them; what C has of a file of Go's, which cgo takes it from, has none. */
static bool is_go(const struct mw_symbol_frame *frame)
{
	size_t length = frame->file ? strlen(frame->file) : 0;

	if (!frame->function || !strchr(frame->function, '.'))
		return false;
	return (length > 3 && strcmp(frame->file + length - 3, ".go") == 0) ||
	       (length > 2 && strcmp(frame->file + length - 2, ".s") == 0 && begins(frame->function, "runtime."));
}

static struct mw_error *add_frames(struct mw_framer *framer, const struct mw_raw_frame *raw)
{
	const struct framed_module *module = NULL;
	const struct mw_view_symbols *symbols = framer->code.symbols;
	const struct mw_symbol_frame *frames = NULL;
	size_t count = 0;

	if (raw->module < framer->module_count && framer->modules[raw->module].path)
		module = &framer->modules[raw->module];
	if (symbols && !(!module && raw->addr & MW_FRAME_NEAR))
		MW_TRY(symbols->resolve(symbols->context, raw->module, raw->addr, &frames, &count));
	if ((!module || module->generated) && (!count || !frames[0].function))
		return add_generated(framer, module, raw->addr);
	if (!count)
		return add_bare(framer, module, raw->addr);
	for (size_t i = 0; i < count; i++) {
		struct mw_report_frame *frame = append(framer);

		if (!frame)
			return mw_error_nomem();
		frame->function = mw_arena_string(framer->arena, frames[i].function);
		frame->module = module ? module->path : NO_FILE;
		frame->offset = frames[i].offset;
		frame->address = raw->addr;
		frame->file = mw_arena_string(framer->arena, frames[i].file);
		frame->line = frames[i].line;
		frame->inlined = frames[i].inlined;
		frame->language = module ? module->language : MW_LANGUAGE_NATIVE;
		if (frame->language == MW_LANGUAGE_NATIVE && is_go(&frames[i]))
			frame->language = MW_LANGUAGE_GO;
		frame->interprets = framer->interpreted && module && module->interprets;
	}
	return NULL;
}

/* The module that a stack is charged to, or NULL. */
static const char *find_suspect(const struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count,
				bool interpreted)
{
	/* Code in no file has no name to charge: the file whose frame is next outwards made it. What an interpreter
	 * does, it does for a script. */
	for (size_t i = 0; i < count; i++) {
		const struct framed_module *module = &framer->modules[raw[i].module];

		if (raw[i].module < framer->module_count && module->suspect && !(interpreted && module->interprets))
			return module->path;
	}
	return NULL;
}

static bool has_script(const struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (raw[i].module < framer->module_count &&
		    mw_language_is_script(framer->modules[raw[i].module].language))
			return true;
	return false;
}

struct mw_error *mw_framer_frames(struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count,
				  struct mw_report_stack *stack)
{
	uint64_t id;

	if (!*stack->id) {
		MW_TRY(stack_id(framer->ids, stack->kind, stack->api, raw, count, &id));
		(void)snprintf(stack->id, sizeof(stack->id), "%016" PRIx64, id);
	}
	framer->count = 0;
	framer->interpreted = has_script(framer, raw, count);
	for (size_t i = 0; i < count; i++)
		MW_TRY(add_frames(framer, &raw[i]));
	stack->suspect = find_suspect(framer, raw, count, framer->interpreted);
	stack->frames = mw_arena_array(framer->arena, framer->count, sizeof(*stack->frames));
	if (!stack->frames)
		return mw_error_nomem();
	if (framer->count)
		memcpy(stack->frames, framer->buffer, framer->count * sizeof(*stack->frames));
	stack->frame_count = framer->count;
	find_end(framer->input, stack);
	stack->charged = framer->count ? mw_suspects_frame(stack, framer->input->exe) : 0;
	return NULL;
}

struct mw_error *mw_framer_fill(struct mw_framer *framer, uint32_t number, const struct mw_track_stack *tracked,
				struct mw_report_stack *stack)
{
	MW_TRY(read_frames(framer, number, tracked->frame_count));
	stack->kind = tracked->kind;
	stack->api = mw_arena_string(framer->arena, api_of(framer, tracked));
	return mw_framer_frames(framer, framer->raw, tracked->frame_count, stack);
}
