// SPDX-License-Identifier: MIT
/* root_name.c: roots in words (root_name.h). */
#include "heap/root_name.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/path.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mw_root_names {
	const struct mw_image *image;
	struct mw_classes *classes;
	const struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
	struct mw_stacks *stacks;
	struct mw_index index; /* of: */
	char **texts;
	size_t text_capacity;
	/* What was numbered last: most pointers are next to the one before. */
	enum mw_root_kind kind;
	mw_addr start, end;
	uint32_t number;
};

/* A root's name. All words of [start, end) have it, but for the offset. */
struct place {
	char *text;
	uint64_t offset;  /* in the variable */
	const char *file; /* where that is declared, or NULL */
	uint32_t line;
	mw_addr start, end;
};

struct mw_error *mw_root_names_create(const struct mw_image *image, struct mw_classes *classes,
				      const struct mw_modules *modules, struct mw_root_names **out)
{
	struct mw_root_names *names = calloc(1, sizeof(*names));
	struct mw_error *err;

	if (!names)
		return mw_error_nomem();
	names->image = image;
	names->classes = classes;
	names->modules = modules;
	err = mw_symbolizer_create(modules, &names->symbolizer);
	if (!err)
		err = mw_stacks_create(image, modules, names->symbolizer, &names->stacks);
	if (err) {
		mw_root_names_destroy(names);
		return err;
	}
	*out = names;
	return NULL;
}

void mw_root_names_destroy(struct mw_root_names *names)
{
	if (!names)
		return;
	MW_EACH(text, names->texts, names->index.count)
		free(*text);
	free(names->texts);
	mw_index_deinit(&names->index);
	mw_stacks_destroy(names->stacks);
	mw_symbolizer_destroy(names->symbolizer);
	free(names);
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

static const char *thread_name(const struct mw_image *image, pid_t tid)
{
	MW_EACH(thread, image->threads, image->thread_count)
		if (thread->tid == tid)
			return thread->name;
	return "?";
}

/* False without memory. */
static MW_PRINTF(2, 3) bool set_text(struct place *place, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&place->text, format, arguments) < 0)
		place->text = NULL;
	va_end(arguments);
	return place->text != NULL;
}

static void cover_mapping(const struct mw_root_names *names, struct place *place)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(names->image, place->start);

	if (mapping) {
		place->start = mapping->bss_end ? mapping->bss_end : mapping->start;
		place->end = mapping->end;
	}
}

static struct mw_error *name_data(const struct mw_root_names *names, mw_addr at, struct place *place)
{
	const char *file = mw_classes_file(names->classes, at);
	struct mw_variable variable;

	MW_TRY(mw_classes_variable(names->classes, at, &variable));
	if (variable.name) {
		place->offset = variable.offset;
		place->start = at - variable.offset;
		place->end = place->start + variable.size;
		MW_TRY(mw_symbolizer_variable(names->symbolizer, variable.module, place->start, &place->file,
					      &place->line));
		return set_text(place, "global %s", variable.name) ? NULL : mw_error_nomem();
	}
	return set_text(place, "data of %s", file ? mw_path_name(file) : "a module") ? NULL : mw_error_nomem();
}

static struct mw_error *name_thread_data(const struct mw_root_names *names, const struct mw_root *root,
					 struct place *place)
{
	const char *thread = thread_name(names->image, root->tid);
	struct mw_variable variable = {0};
	bool made;

	MW_EACH(candidate, names->image->threads, names->image->thread_count)
		if (candidate->tid == root->tid)
			MW_TRY(mw_classes_thread_variable(names->classes, candidate->thread_pointer, root->at,
							  &variable));
	if (variable.name) {
		place->offset = variable.offset;
		place->start = root->at - variable.offset;
		place->end = place->start + variable.size;
		made = set_text(place, "thread-local %s of thread %d (%s)", variable.name, (int)root->tid, thread);
	} else {
		made = set_text(place, "thread-local data of thread %d (%s)", (int)root->tid, thread);
	}
	return made ? NULL : mw_error_nomem();
}

static struct mw_error *name_stack(const struct mw_root_names *names, const struct mw_root *root, struct place *place)
{
	const char *thread = thread_name(names->image, root->tid);
	struct mw_stack_place frame;
	char at[256] = "";
	bool made;

	MW_TRY(mw_stacks_find(names->stacks, root->tid, root->at, &frame));
	if (frame.function) {
		place->start = frame.start;
		place->end = frame.end;
		if (frame.file)
			snprintf(at, sizeof(at), " %s:%" PRIu32, mw_path_name(frame.file), frame.line);
		made = set_text(place, "stack of thread %d (%s): %s%s%s, frame %" PRIu32, (int)root->tid, thread,
				frame.function, strchr(frame.function, '(') ? "" : "()", at, frame.frame);
	} else {
		made = set_text(place, "stack of thread %d (%s)", (int)root->tid, thread);
	}
	return made ? NULL : mw_error_nomem();
}

static struct mw_error *name_kernel_word(const struct mw_root_names *names, uint64_t number, struct place *place)
{
	const struct mw_image_kernel_word *word = &names->image->kernel_words[number];
	bool made = false;

	switch (word->kind) {
	case MW_KERNEL_EPOLL:
		made = set_text(place, "data of epoll set %d", word->of);
		break;
	case MW_KERNEL_TIMER:
		made = set_text(place, "data of a timer");
		break;
	case MW_KERNEL_PIPE:
		made = set_text(place, "data in a pipe or socket");
		break;
	case MW_KERNEL_SIGNAL_STACK:
		made = set_text(place, "alternate signal stack of thread %d (%s)", word->of,
				thread_name(names->image, (pid_t)word->of));
		break;
	}
	return made ? NULL : mw_error_nomem();
}

static struct mw_error *find_place(const struct mw_root_names *names, const struct mw_root *root, struct place *place)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(names->image, root->at);
	const char *path = mapping && *mapping->path ? mapping->path : "anonymous memory";
	const char *thread = thread_name(names->image, root->tid);
	bool made = false;

	*place = (struct place){.start = root->at, .end = root->at + 1};
	switch (root->kind) {
	case MW_ROOT_REGISTER:
		made = set_text(place, "register of thread %d (%s)", (int)root->tid, thread);
		break;
	case MW_ROOT_STACK:
		return name_stack(names, root, place);
	case MW_ROOT_TLS:
		return name_thread_data(names, root, place);
	case MW_ROOT_DATA:
		return name_data(names, root->at, place);
	case MW_ROOT_MAPPING:
		cover_mapping(names, place);
		made = set_text(place, "%s", path);
		break;
	case MW_ROOT_KERNEL:
		return name_kernel_word(names, root->at, place);
	case MW_ROOT_UNKNOWN:
		cover_mapping(names, place);
		made = set_text(place, "memory of an allocator that is not known");
		break;
	case MW_ROOT_MOVED:
		made = set_text(place, "a pointer that moved while the process was read");
		break;
	}
	return made ? NULL : mw_error_nomem();
}

/* Does the address say where it stands, beside the name? */
static bool needs_address(const struct mw_root *root, const struct place *place)
{
	return root->kind == MW_ROOT_MAPPING || root->kind == MW_ROOT_UNKNOWN ||
	       (root->kind == MW_ROOT_DATA && place->end == place->start + 1);
}

struct mw_error *mw_root_name(struct mw_root_names *names, const struct mw_root *root, char **out)
{
	char offset[32] = "", file[256] = "", address[32] = "";
	struct place place;
	int length;

	MW_TRY(find_place(names, root, &place));
	if (place.offset && root->kind == MW_ROOT_DATA)
		snprintf(offset, sizeof(offset), "+%" PRIu64, place.offset);
	if (place.file)
		snprintf(file, sizeof(file), " (%s:%" PRIu32 ")", mw_path_name(place.file), place.line);
	if (needs_address(root, &place))
		snprintf(address, sizeof(address), "%s at %#" PRIx64, root->kind == MW_ROOT_UNKNOWN ? "," : "",
			 root->at);
	length = asprintf(out, "%s%s%s%s", place.text, offset, file, address);
	free(place.text);
	return length < 0 ? mw_error_nomem() : NULL;
}

struct mw_error *mw_root_name_code(struct mw_root_names *names, mw_addr addr, char **out)
{
	const struct mw_module *module = mw_modules_find(names->modules, addr);
	const struct mw_image_mapping *mapping = mw_image_mapping_of(names->image, addr);
	const struct mw_symbol_frame *frames, *function;
	char offset[32] = "";
	size_t count;
	int length;

	*out = NULL;
	if (!module || !mapping)
		return NULL;
	if (!mapping->exec)
		return mw_root_name(names, &(struct mw_root){.kind = MW_ROOT_DATA, .at = addr}, out);
	MW_TRY(mw_symbolizer_resolve(names->symbolizer, module->number, addr, false, &frames, &count));
	function = count ? &frames[count - 1] : NULL;
	if (!function || !function->function) {
		length = asprintf(out, "code of %s", mw_path_name(module->path));
	} else {
		if (function->offset)
			snprintf(offset, sizeof(offset), "+%" PRIu64, function->offset);
		length = asprintf(out, "%s%s%s", function->function, strchr(function->function, '(') ? "" : "()",
				  offset);
	}
	return length < 0 ? mw_error_nomem() : NULL;
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *text)
{
	uint64_t hash = 0;

	for (const char *c = text; *c; c++)
		hash = mw_hash_add(hash, (unsigned char)*c);
	return (uint32_t)mw_hash_mix(hash);
}

static uint32_t hash_of_number(const void *context, uint32_t number)
{
	return hash_of(((char *const *)context)[number]);
}

/* Takes the text. */
static struct mw_error *number_of(struct mw_root_names *names, char *text, uint32_t *out)
{
	uint32_t hash = hash_of(text), number;

	MW_INDEX_EACH(&names->index, hash, number) {
		if (strcmp(names->texts[number], text) != 0)
			continue;
		free(text);
		*out = number;
		return NULL;
	}
	if (!mw_index_reserve(&names->index, hash_of_number, names->texts) ||
	    !MW_VECTOR_ROOM(names->texts, names->index.count, names->text_capacity)) {
		free(text);
		return mw_error_nomem();
	}
	*out = mw_index_put(&names->index, hash);
	names->texts[*out] = text;
	return NULL;
}

/* The name of what all words of a place count to: mappings are told apart by where they begin. */
static struct mw_error *complete(struct place *place, const struct mw_root *root)
{
	char *text = NULL;
	int length;

	if (root->kind == MW_ROOT_MAPPING || root->kind == MW_ROOT_UNKNOWN)
		length = asprintf(&text, "%s from %#" PRIx64 " on", place->text, place->start);
	else if (place->file)
		length = asprintf(&text, "%s (%s:%" PRIu32 ")", place->text, mw_path_name(place->file), place->line);
	else
		return NULL;
	free(place->text);
	place->text = length < 0 ? NULL : text;
	return place->text ? NULL : mw_error_nomem();
}

struct mw_error *mw_root_number(void *context, const struct mw_root *root, uint32_t *number)
{
	struct mw_root_names *names = context;
	struct place place;

	if (names->end && names->kind == root->kind && root->at >= names->start && root->at < names->end) {
		*number = names->number;
		return NULL;
	}
	MW_TRY(find_place(names, root, &place));
	MW_TRY(complete(&place, root));
	MW_TRY(number_of(names, place.text, number));
	if (root->kind == MW_ROOT_REGISTER || root->kind == MW_ROOT_KERNEL) /* `at` is no address */
		return NULL;
	names->kind = root->kind;
	names->start = place.start;
	names->end = place.end;
	names->number = *number;
	return NULL;
}

const char *mw_root_name_of(const struct mw_root_names *names, uint32_t number)
{
	return names->texts[number];
}
