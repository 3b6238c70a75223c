// SPDX-License-Identifier: MIT
/* python.c: CPython's frames, as they stand in a process (script.h). */
#include "script/python.h"

#include "base/hash.h"
#include "base/path.h"
#include "proc/peek.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE         4096u
#define PAGES        8    /* kept during a walk */
#define INTERPRETERS 64   /* that are looked through for a thread */
#define THREADS      8192 /* … of each */
#define HOPS         65536u

/* --- which interpreter it is -------------------------------------------------------------------------------------- */

/* What a file with CPython in it has. */
struct python_file {
	uint64_t runtime, loop, loop_size, version; /* vaddr; 0: none */
};

static bool visit(void *context, const struct mw_elf_symbol *symbol)
{
	struct python_file *file = context;

	if (strcmp(symbol->name, "_PyRuntime") == 0) {
		file->runtime = symbol->vaddr;
	} else if (strcmp(symbol->name, "_PyEval_EvalFrameDefault") == 0) {
		file->loop = symbol->vaddr;
		file->loop_size = symbol->size;
	} else if (strcmp(symbol->name, "Py_Version") == 0) {
		file->version = symbol->vaddr;
	}
	return true;
}

/* The minor version by the file's name, "python3.10" or "libpython3.10.so.1.0"; 0: it does not say. */
static unsigned version_by_name(const char *path)
{
	const char *name = mw_path_name(path);
	unsigned minor = 0;

	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	if (sscanf(name, "python3.%u", &minor) != 1) // NOLINT(cert-err34-c): a number of other digits is no version
		return 0;
	return minor;
}

static unsigned version_of(const struct mw_module *module, const struct python_file *file)
{
	uint64_t version = 0;

	/* Of 3.11 on: as PY_VERSION_HEX. */
	if (file->version && mw_elf_read(module->elf, file->version, &version, sizeof(version)) && version >> 24 == 3)
		return (unsigned)(version >> 16 & 0xff);
	return version_by_name(module->path);
}

#define OFFSETS_COOKIE "xdebugpy"

/* What _PyRuntime begins with, of 3.13 on. */
struct debug_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t runtime_size, finalizing, interpreters_head;
	uint64_t interpreter_size, id, next, threads_head;
};

/* Take what the process says itself. False: it is of a kind that is not known. */
static bool take_offsets(struct mw_script *script, pid_t tid, const struct python_layout *layout)
{
	struct debug_offsets offsets;

	script->own = *layout;
	if (layout->minor < 13)
		return true;
	if (!mw_peek(tid, script->runtime, &offsets, sizeof(offsets)) ||
	    memcmp(offsets.cookie, OFFSETS_COOKIE, sizeof(offsets.cookie)) != 0)
		return false;
	if (offsets.free_threaded) {
		(void)snprintf(script->refused, sizeof(script->refused),
			       "CPython 3.%u is a free-threaded build: Python frames are missing", layout->minor);
		return false;
	}
	if (offsets.interpreters_head >= PYTHON_NO_FIELD || offsets.next >= PYTHON_NO_FIELD ||
	    offsets.threads_head >= PYTHON_NO_FIELD)
		return false;
	script->own.interpreters = (uint16_t)offsets.interpreters_head;
	script->own.next_interpreter = (uint16_t)offsets.next;
	script->own.threads = (uint16_t)offsets.threads_head;
	return true;
}

static struct mw_error *refuse(struct mw_script *script, unsigned minor)
{
	const char *how = minor > PYTHON_NEWEST ? "is newer than this memwatch knows" : "is none that memwatch knows";

	if (*script->refused)
		return NULL;
	if (minor)
		(void)snprintf(script->refused, sizeof(script->refused), "CPython 3.%u %s: Python frames are missing",
			       minor, how);
	else
		(void)snprintf(script->refused, sizeof(script->refused),
			       "The version of CPython is not known: Python frames are missing");
	return NULL;
}

static struct mw_error *add_loop(struct mw_script *script, mw_addr start, uint64_t size)
{
	if (size && script->loop_count < PYTHON_LOOPS)
		script->loops[script->loop_count++] = (struct python_loop){start, start + size};
	return NULL;
}

static struct mw_error *take_in_module(struct mw_script *script, pid_t tid, const struct mw_module *module)
{
	struct python_file file = {0};
	const struct python_layout *layout;
	unsigned minor;

	MW_TRY(mw_error_if_memory(mw_elf_each_symbol(module->elf, visit, &file)));
	if (!file.runtime || !file.loop)
		return NULL;
	minor = version_of(module, &file);
	layout = python_layout_of(minor);
	script->runtime = module->bias + file.runtime;
	if (!layout || !take_offsets(script, tid, layout))
		return refuse(script, minor);
	MW_TRY(mw_modules_add_named(script->modules, MW_NAMED_FRAMES_PYTHON, &script->named, &script->module));
	script->layout = &script->own;
	return add_loop(script, module->bias + file.loop, file.loop_size);
}

struct mw_error *mw_script_create(struct mw_modules *modules, struct mw_script **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return mw_error_nomem();
	(*out)->modules = modules;
	return NULL;
}

void mw_script_destroy(struct mw_script *script)
{
	if (!script)
		return;
	mw_map_deinit(&script->threads);
	python_codes_deinit(&script->codes);
	free(script);
}

struct mw_error *mw_script_take_in(struct mw_script *script, pid_t tid)
{
	for (; !script->layout && script->seen < mw_modules_count(script->modules); script->seen++) {
		const struct mw_module *module = mw_modules_get(script->modules, script->seen);

		if (module->elf && !module->gone)
			MW_TRY(take_in_module(script, tid, module));
	}
	return NULL;
}

bool mw_script_is_there(const struct mw_script *script)
{
	return script && script->layout;
}

const char *mw_script_refused(const struct mw_script *script)
{
	return script && *script->refused ? script->refused : NULL;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Pages of the process, as they were when they were first read: it is stopped. */
struct reader {
	pid_t tid;
	unsigned next;
	mw_addr at[PAGES];
	uint8_t pages[PAGES][PAGE];
};

static const uint8_t *page_of(struct reader *reader, mw_addr page)
{
	unsigned number;

	for (unsigned i = 0; i < PAGES; i++)
		if (reader->at[i] == page)
			return reader->pages[i];
	number = reader->next++ % PAGES;
	reader->at[number] = 0;
	if (!page || !mw_peek(reader->tid, page, reader->pages[number], PAGE))
		return NULL;
	reader->at[number] = page;
	return reader->pages[number];
}

static bool read_bytes(struct reader *reader, mw_addr addr, void *out, size_t size)
{
	uint8_t *to = out;

	while (size) {
		const uint8_t *page = page_of(reader, addr & ~(mw_addr)(PAGE - 1));
		size_t in = addr & (PAGE - 1), some = PAGE - in < size ? PAGE - in : size;

		if (!page)
			return false;
		memcpy(to, page + in, some);
		to += some;
		addr += some;
		size -= some;
	}
	return true;
}

static bool read_word(struct reader *reader, mw_addr addr, uint64_t *out)
{
	return read_bytes(reader, addr, out, sizeof(*out));
}

/* --- whose state it is -------------------------------------------------------------------------------------------- */

static bool is_of(const struct mw_script *script, struct reader *reader, mw_addr state, mw_addr thread_pointer)
{
	uint64_t id;

	return state && read_word(reader, state + script->layout->thread_id, &id) && id == thread_pointer;
}

/* Of one interpreter; the first one of a thread. */
static mw_addr search_threads(const struct mw_script *script, struct reader *reader, mw_addr interpreter,
			      mw_addr thread_pointer)
{
	uint64_t state;

	if (!read_word(reader, interpreter + script->layout->threads, &state))
		return 0;
	for (unsigned i = 0; state && i < THREADS; i++) {
		if (is_of(script, reader, state, thread_pointer))
			return state;
		if (!read_word(reader, state + script->layout->next_thread, &state))
			return 0;
	}
	return 0;
}

static mw_addr search(const struct mw_script *script, struct reader *reader, mw_addr thread_pointer)
{
	uint64_t interpreter;

	if (!read_word(reader, script->runtime + script->layout->interpreters, &interpreter))
		return 0;
	for (unsigned i = 0; interpreter && i < INTERPRETERS; i++) {
		mw_addr state = search_threads(script, reader, interpreter, thread_pointer);

		if (state)
			return state;
		if (!read_word(reader, interpreter + script->layout->next_interpreter, &interpreter))
			return 0;
	}
	return 0;
}

/* The state of the thread that this is, 0: it has none. */
static mw_addr state_of(struct mw_script *script, struct reader *reader, mw_addr thread_pointer)
{
	uint64_t state = 0;
	void *known;

	if (script->layout->current_thread != PYTHON_NO_FIELD &&
	    read_word(reader, script->runtime + script->layout->current_thread, &state) &&
	    is_of(script, reader, state, thread_pointer))
		return state;
	known = mw_map_get(&script->threads, thread_pointer);
	if (known && is_of(script, reader, (mw_addr)(uintptr_t)known, thread_pointer))
		return (mw_addr)(uintptr_t)known;
	state = search(script, reader, thread_pointer);
	/* Where it can't be kept, it is looked for again. */
	if (state)
		mw_error_destroy(mw_map_set(&script->threads, thread_pointer,
					    (void *)(uintptr_t)state)); // NOLINT(performance-no-int-to-ptr)
	return state;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

/* A list that is being made. */
struct list {
	struct mw_script_ref *refs;
	uint32_t count, capacity;
};

/* What the loop was run for ends with the frame that was found last. */
static bool end_run(struct list *list)
{
	if (list->count && !list->refs[list->count - 1].last) {
		list->refs[list->count - 1].last = true;
		return true;
	}
	if (list->count == list->capacity)
		return false;
	list->refs[list->count++] = (struct mw_script_ref){.last = true};
	return true;
}

/* Has the frame's function been entered, but not begun? It is not in tracebacks then. */
static bool is_incomplete(const struct python_layout *layout, const uint8_t *frame, const uint8_t *code, int64_t at)
{
	if (layout->first_traceable == PYTHON_NO_FIELD || frame[layout->owner] == PYTHON_BY_GENERATOR)
		return false;
	return at < (int64_t)(int32_t)python_half(code, layout->first_traceable) * 2;
}

/* Add the frame whose bytes these are. False: that makes no sense, or there is no room. */
static bool add(const struct python_layout *layout, struct reader *reader, const uint8_t *frame, struct list *list)
{
	struct mw_script_ref ref = {.code = python_word(frame, layout->code)};
	uint8_t code[256];
	int64_t at;

	if (!read_bytes(reader, ref.code, code, layout->code_size))
		return false;
	if (layout->bytecode == PYTHON_NO_FIELD)
		at = (int64_t)(int32_t)python_half(frame, layout->at) * layout->at_unit;
	else
		at = (int64_t)(python_word(frame, layout->at) - ref.code - layout->bytecode);
	ref.last = layout->owner == PYTHON_NO_FIELD || (layout->is_entry != PYTHON_NO_FIELD && frame[layout->is_entry]);
	if (is_incomplete(layout, frame, code, at))
		return !ref.last || end_run(list);
	/* Before the first instruction: that one is next. */
	ref.at = at < 0 ? 0 : (uint64_t)at;
	ref.check = python_check(layout, code);
	if (list->count == list->capacity)
		return false;
	list->refs[list->count++] = ref;
	return true;
}

uint32_t mw_script_walk(struct mw_script *script, pid_t tid, mw_addr thread_pointer, struct mw_script_ref *refs,
			uint32_t capacity, bool *cut)
{
	const struct python_layout *layout = script->layout;
	struct reader reader;
	struct list list = {.refs = refs, .capacity = capacity};
	uint64_t frame;
	mw_addr state;

	*cut = false;
	reader.tid = tid;
	reader.next = 0;
	memset(reader.at, 0, sizeof(reader.at));
	state = state_of(script, &reader, thread_pointer);
	if (!state)
		return 0;
	*cut = true;
	if (!read_word(&reader, state + layout->frame, &frame) ||
	    (frame && layout->cframe_frame != PYTHON_NO_FIELD &&
	     !read_word(&reader, frame + layout->cframe_frame, &frame)))
		return 0;
	for (unsigned i = 0; frame && i < HOPS; i++) {
		uint8_t bytes[128];

		if (!read_bytes(&reader, frame, bytes, layout->frame_size))
			return list.count;
		if (layout->owner != PYTHON_NO_FIELD && bytes[layout->owner] > PYTHON_BY_C_STACK)
			return list.count;
		if (layout->owner != PYTHON_NO_FIELD && bytes[layout->owner] == PYTHON_BY_C_STACK) {
			if (!end_run(&list))
				return list.count;
		} else if (!add(layout, &reader, bytes, &list)) {
			return list.count;
		}
		frame = python_word(bytes, layout->previous);
	}
	*cut = frame != 0;
	return list.count;
}

uint64_t mw_script_hash(const struct mw_script_ref *refs, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++) {
		hash = mw_hash_add(hash, refs[i].code ^ refs[i].check);
		hash = mw_hash_add(hash, refs[i].at << 1 | refs[i].last);
	}
	return mw_hash_mix(hash);
}
