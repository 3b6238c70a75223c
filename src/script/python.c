// SPDX-License-Identifier: MIT
/* python.c: CPython's frames, as they stand in a process (script.h). */
#include "script/python.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "proc/peek.h"
#include "symbol/frames.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE          4096u
#define PAGES         32    /* kept during a walk */
#define INTERPRETERS  64    /* that are looked through for a thread */
#define THREADS       8192  /* … of each */
#define CONTROL_BLOCK 2304u /* bytes from the thread pointer on in which a thread's own words are looked for */

/* --- which interpreter it is -------------------------------------------------------------------------------------- */

/* What a file with CPython in it has. */
enum { RUNTIME, LOOP, COLD, VERSION, SYMBOLS };

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

static unsigned version_of(const struct mw_module *module, uint64_t at)
{
	uint64_t version = 0;

	/* Of 3.11 on: as PY_VERSION_HEX. */
	if (at && mw_elf_read(module->elf, at, &version, sizeof(version)) && version >> 24 == 3)
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
		(void)snprintf(script->modules->frames_missing, sizeof(script->modules->frames_missing),
			       "CPython 3.%u is a free-threaded build: Python frames are missing", layout->minor);
		return false;
	}
	if (offsets.interpreters_head >= MW_SCRIPT_NO_FIELD || offsets.next >= MW_SCRIPT_NO_FIELD ||
	    offsets.threads_head >= MW_SCRIPT_NO_FIELD)
		return false;
	script->own.interpreters = (uint16_t)offsets.interpreters_head;
	script->own.next_interpreter = (uint16_t)offsets.next;
	script->own.threads = (uint16_t)offsets.threads_head;
	return true;
}

static void refuse(struct mw_script *script, unsigned minor)
{
	const char *how = minor > PYTHON_NEWEST ? "is newer than this memwatch knows" : "is none that memwatch knows";

	if (*script->modules->frames_missing)
		return;
	if (minor)
		(void)snprintf(script->modules->frames_missing, sizeof(script->modules->frames_missing),
			       "CPython 3.%u %s: Python frames are missing", minor, how);
	else
		(void)snprintf(script->modules->frames_missing, sizeof(script->modules->frames_missing),
			       "The version of CPython is not known: Python frames are missing");
}

static void add_loop(struct mw_script *script, mw_addr start, uint64_t size)
{
	if (size && script->loop_count < PYTHON_LOOPS)
		script->loops[script->loop_count++] = (struct python_loop){start, start + size};
}

/*
 * The loop jumps from one instruction to the next by a table of 256 places in it. By that its parts are found where they have
 * no names: a compiler may put most of it elsewhere than where its symbol is.
 */
#define TABLE       256
#define TABLE_PARTS 3
#define PART_LEAST  8192        /* bytes of one */
#define DATA_MAX    (16u << 20) /* bytes that are looked through for it */

struct parts {
	const struct mw_frame_table *functions;
	uint64_t loop; /* vaddr */
	struct python_loop items[TABLE_PARTS];
	size_t count, places;
};

/* Is `vaddr` a place of the table, of one of its parts or a new one? */
static bool is_place(struct parts *parts, uint64_t vaddr)
{
	uint64_t start, end;

	for (size_t i = 0; i < parts->count; i++)
		if (vaddr > parts->items[i].start && vaddr < parts->items[i].end)
			return true;
	if (parts->count == TABLE_PARTS || !mw_frame_table_find(parts->functions, vaddr, &start, &end) ||
	    vaddr == start || end - start < PART_LEAST)
		return false;
	parts->items[parts->count++] = (struct python_loop){start, end};
	return true;
}

static bool is_table(const struct parts *parts)
{
	bool own = parts->count == 1;

	for (size_t i = 0; i < parts->count; i++)
		own |= parts->items[i].start == parts->loop;
	return parts->places == TABLE && own;
}

/* Is the table there? */
static bool find_table(struct parts *parts, const uint64_t *words, size_t count, mw_addr bias)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_place(parts, words[i] - bias)) {
			parts->count = parts->places = 0;
			if (!is_place(parts, words[i] - bias))
				continue;
		}
		parts->places++;
		if (is_table(parts))
			return true;
	}
	return false;
}

static struct mw_error *add_parts(struct mw_script *script, pid_t tid, const struct mw_module *module, uint64_t loop)
{
	struct mw_frame_table functions;
	struct parts parts = {.functions = &functions, .loop = loop};
	bool found = false;

	MW_TRY(mw_frame_table_init(&functions, module->elf));
	for (size_t i = 0; !found && i < module->elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &module->elf->segments[i];
		mw_addr start = (module->bias + segment->vaddr + 7) & ~(mw_addr)7;
		size_t size = segment->file_size < DATA_MAX ? (size_t)segment->file_size & ~(size_t)7 : DATA_MAX;
		MW_FREE uint64_t *words = segment->exec || size < 16 ? NULL : malloc(size);

		parts.count = parts.places = 0;
		if (words && mw_peek(tid, start, words, size - 8))
			found = find_table(&parts, words, size / 8 - 1, module->bias);
	}
	mw_frame_table_deinit(&functions);
	for (size_t i = 0; found && i < parts.count; i++)
		if (parts.items[i].start != loop)
			add_loop(script, module->bias + parts.items[i].start,
				 parts.items[i].end - parts.items[i].start);
	return NULL;
}

static struct mw_error *take_in_module(struct mw_script *script, pid_t tid, const struct mw_module *module)
{
	struct mw_named_symbol file[SYMBOLS] = {[RUNTIME] = {.name = "_PyRuntime"},
						[LOOP] = {.name = "_PyEval_EvalFrameDefault"},
						[COLD] = {.name = "_PyEval_EvalFrameDefault.cold"},
						[VERSION] = {.name = "Py_Version"}};
	const struct python_layout *layout;
	unsigned minor;

	MW_TRY(mw_error_if_memory(mw_elf_find_named(module->elf, file, SYMBOLS)));
	if (!file[RUNTIME].vaddr || !file[LOOP].vaddr)
		return NULL;
	minor = version_of(module, file[VERSION].vaddr);
	layout = python_layout_of(minor);
	script->runtime = module->bias + file[RUNTIME].vaddr;
	if (!layout || !take_offsets(script, tid, layout)) {
		refuse(script, minor);
		return NULL;
	}
	MW_TRY(mw_modules_add_named(script->modules, MW_NAMED_FRAMES_PYTHON, &script->named, &script->module));
	script->layout = &script->own;
	if (layout->current_thread != MW_SCRIPT_NO_FIELD)
		script->place.current = script->runtime + layout->current_thread;
	add_loop(script, module->bias + file[LOOP].vaddr, file[LOOP].size);
	add_loop(script, module->bias + file[COLD].vaddr, file[COLD].size);
	return file[COLD].vaddr ? NULL : add_parts(script, tid, module, file[LOOP].vaddr);
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

bool mw_script_is_there(const struct mw_script *script)
{
	return script && script->layout;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Pages of the process, as they were when they were first read: it is stopped. */
struct reader {
	pid_t tid;
	unsigned next;
	mw_addr at[PAGES];
	uint8_t pages[PAGES][PAGE];
};

static void begin(struct reader *reader, pid_t tid)
{
	reader->tid = tid;
	reader->next = 0;
	memset(reader->at, 0, sizeof(reader->at));
}

static const uint8_t *page_of(struct reader *reader, mw_addr page)
{
	unsigned number;

	/* Empty ones have the page 0. */
	for (unsigned i = 0; page && i < PAGES; i++)
		if (reader->at[i] == page)
			return reader->pages[i];
	number = reader->next++ % PAGES;
	reader->at[number] = 0;
	if (!page || !mw_peek(reader->tid, page, reader->pages[number], PAGE))
		return NULL;
	reader->at[number] = page;
	return reader->pages[number];
}

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	struct reader *reader = context;
	const uint8_t *page = addr & 7 ? NULL : page_of(reader, addr & ~(mw_addr)(PAGE - 1));

	if (!page)
		return false;
	memcpy(word, page + (addr & (PAGE - 1)), sizeof(*word));
	return true;
}

/* --- whose state it is -------------------------------------------------------------------------------------------- */

static bool has_frames(const struct mw_script *script, struct reader *reader, mw_addr state)
{
	struct mw_script_ref ref;
	bool cut;

	return mw_script_frames(&script->layout->walk, read_word, reader, state, &ref, 1, &cut) > 0;
}

/* Of one interpreter; the first one of a thread. */
static mw_addr search_threads(const struct mw_script *script, struct reader *reader, mw_addr interpreter,
			      mw_addr thread_pointer, bool running)
{
	uint64_t state;

	if (!read_word(reader, interpreter + script->layout->threads, &state))
		return 0;
	for (unsigned i = 0; state && i < THREADS; i++) {
		if (mw_script_is_of(&script->layout->walk, read_word, reader, state, thread_pointer) &&
		    (!running || has_frames(script, reader, state)))
			return state;
		if (!read_word(reader, state + script->layout->next_thread, &state))
			return 0;
	}
	return 0;
}

/* The newest interpreter is the first. `running`: only a state that has frames. */
static mw_addr search(const struct mw_script *script, struct reader *reader, mw_addr thread_pointer, bool running)
{
	uint64_t interpreter;

	if (!read_word(reader, script->runtime + script->layout->interpreters, &interpreter))
		return 0;
	for (unsigned i = 0; interpreter && i < INTERPRETERS; i++) {
		mw_addr state = search_threads(script, reader, interpreter, thread_pointer, running);

		if (state)
			return state;
		if (!read_word(reader, interpreter + script->layout->next_interpreter, &interpreter))
			return 0;
	}
	return 0;
}

/* Of one interpreter; 0: no thread of it says it. */
static uint64_t find_own_in(const struct mw_script *script, struct reader *reader, mw_addr interpreter)
{
	const struct mw_script_layout *walk = &script->layout->walk;
	uint64_t state, thread, word;

	if (!read_word(reader, interpreter + script->layout->threads, &state))
		return 0;
	for (unsigned i = 0; state && i < THREADS; i++) {
		if (!read_word(reader, state + walk->thread_id, &thread))
			return 0;
		for (uint64_t at = 8; at < CONTROL_BLOCK; at += 8)
			if (read_word(reader, thread + at, &word) && word == state)
				return at;
		if (!read_word(reader, state + script->layout->next_thread, &state))
			return 0;
	}
	return 0;
}

/* Where do threads keep their state? CPython has it as a thread-specific value (its autoTSSkey), which the C library keeps in
 * the thread's control block: there is a word that is the state's address. Up to 3.11 it is that of the first interpreter
 * that the thread was in. 0: no thread says it. */
static uint64_t find_own(const struct mw_script *script, struct reader *reader)
{
	uint64_t interpreter, own = 0;

	if (!read_word(reader, script->runtime + script->layout->interpreters, &interpreter))
		return 0;
	for (unsigned i = 0; interpreter && i < INTERPRETERS && !own; i++) {
		own = find_own_in(script, reader, interpreter);
		if (!read_word(reader, interpreter + script->layout->next_interpreter, &interpreter))
			break;
	}
	return own;
}

const struct mw_script_layout *mw_script_layout_of(const struct mw_script *script, struct mw_script_place *place)
{
	*place = script->place;
	return script->layout ? &script->layout->walk : NULL;
}

/* May the thread be in another interpreter than the one whose state it has as its own? */
static bool has_several(const struct mw_script *script, struct reader *reader)
{
	uint64_t interpreter, next;

	return script->place.current &&
	       read_word(reader, script->runtime + script->layout->interpreters, &interpreter) && interpreter &&
	       read_word(reader, interpreter + script->layout->next_interpreter, &next) && next;
}

/* The state of the thread that this is, 0: it has none. */
static mw_addr state_of(struct mw_script *script, struct reader *reader, mw_addr thread_pointer)
{
	const struct mw_script_layout *walk = &script->layout->walk;
	const struct mw_script_place current = {.current = script->place.current};
	uint64_t state = mw_script_state(walk, &current, read_word, reader, thread_pointer);
	void *known;

	/* It is stopped: any state can be read. */
	if (!state && has_several(script, reader))
		state = search(script, reader, thread_pointer, true);
	if (!state)
		state = mw_script_state(walk, &script->place, read_word, reader, thread_pointer);
	/* A thread that has a state has it there. */
	if (state || script->place.own)
		return state;
	known = mw_map_get(&script->threads, thread_pointer);
	if (known && mw_script_is_of(walk, read_word, reader, (mw_addr)(uintptr_t)known, thread_pointer))
		return (mw_addr)(uintptr_t)known;
	state = search(script, reader, thread_pointer, false);
	/* Where it can't be kept, it is looked for again. */
	if (state)
		mw_error_destroy(mw_map_set(&script->threads, thread_pointer,
					    (void *)(uintptr_t)state)); // NOLINT(performance-no-int-to-ptr)
	return state;
}

struct mw_error *mw_script_take_in(struct mw_script *script, pid_t tid)
{
	for (; !script->layout && script->seen < mw_modules_count(script->modules); script->seen++) {
		const struct mw_module *module = mw_modules_get(script->modules, script->seen);

		if (module->elf && !module->gone)
			MW_TRY(take_in_module(script, tid, module));
	}
	if (script->layout && !script->place.own) {
		struct reader reader;

		begin(&reader, tid);
		script->place.own = find_own(script, &reader);
	}
	return NULL;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

uint32_t mw_script_walk(struct mw_script *script, pid_t tid, mw_addr thread_pointer, struct mw_script_ref *refs,
			uint32_t capacity, bool *cut)
{
	struct reader reader;
	mw_addr state;

	*cut = false;
	begin(&reader, tid);
	state = state_of(script, &reader, thread_pointer);
	return state ? mw_script_frames(&script->layout->walk, read_word, &reader, state, refs, capacity, cut) : 0;
}

uint64_t mw_script_hash(const struct mw_script_ref *refs, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++) {
		hash = mw_hash_add(hash, refs[i].code);
		hash = mw_hash_add(hash, refs[i].check ^ refs[i].at);
	}
	return mw_hash_mix(hash);
}
