// SPDX-License-Identifier: MIT
/* records.c: facts into records and back (FORMAT.md, format.h). For each record one function says what is in it. */
#include "store/format.h"

#define LENGTH_SIZE 3u /* bytes before a record: as many as a number below MW_STORE_CHUNK_MAX takes */

/* A record that is written, or read. */
struct codec {
	bool writing;
	uint8_t *at, *end;
	bool bad;     /* it does not fit, or is invalid; what is read is 0 from then on */
	size_t limit; /* written: of a list's items */
	char *room;   /* read: for lists, … */
	size_t left;  /* … bytes */
};

static void put_bytes(struct codec *codec, const void *bytes, size_t size)
{
	codec->bad |= size > (size_t)(codec->end - codec->at);
	if (codec->bad || !size)
		return;
	memcpy(codec->at, bytes, size);
	codec->at += size;
}

static void put_number(struct codec *codec, uint64_t value)
{
	uint8_t bytes[10];
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[size++] = (uint8_t)(value | 0x80);
	bytes[size++] = (uint8_t)value;
	put_bytes(codec, bytes, size);
}

static uint64_t get_number(struct codec *codec)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; !codec->bad && shift < 64 && codec->at < codec->end; shift += 7) {
		uint8_t byte = *codec->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	codec->bad = true;
	return 0;
}

static void *get_bytes(struct codec *codec, uint64_t size)
{
	void *bytes = codec->at;

	codec->bad |= size > (size_t)(codec->end - codec->at);
	if (codec->bad || !size)
		return NULL;
	codec->at += size;
	return bytes;
}

/* --- fields: what is written stays as it is ----------------------------------------------------------------- */

static void number(struct codec *codec, uint64_t *value)
{
	if (codec->writing)
		put_number(codec, *value);
	else
		*value = get_number(codec);
}

static uint32_t get_below(struct codec *codec, uint64_t limit)
{
	uint64_t value = get_number(codec);

	codec->bad |= value >= limit;
	return codec->bad ? 0 : (uint32_t)value;
}

static void below(struct codec *codec, uint32_t *value, uint64_t limit)
{
	if (codec->writing) {
		codec->bad |= *value >= limit;
		put_number(codec, *value);
	} else {
		*value = get_below(codec, limit);
	}
}

static void number32(struct codec *codec, uint32_t *value)
{
	below(codec, value, UINT64_C(1) << 32);
}

/* UINT64_MAX: unknown, which is 0. */
static void known(struct codec *codec, uint64_t *value)
{
	if (codec->writing)
		put_number(codec, *value + 1);
	else
		*value = get_number(codec) - 1;
}

/* Of a hook or a module; UINT32_MAX: none, which is 0. */
static void reference(struct codec *codec, uint32_t *value)
{
	if (codec->writing)
		put_number(codec, *value < MW_STORE_NUMBER_MAX ? *value + 1 : 0);
	else
		*value = get_below(codec, MW_STORE_NUMBER_MAX + 1) - 1;
}

static void signed64(struct codec *codec, int64_t *value)
{
	if (codec->writing)
		put_number(codec, mw_store_zigzag((uint64_t)*value));
	else
		*value = (int64_t)mw_store_unzigzag(get_number(codec));
}

static void integer(struct codec *codec, int *value)
{
	int64_t wide = codec->writing ? *value : 0;

	signed64(codec, &wide);
	codec->bad |= wide != (int)wide;
	if (!codec->writing)
		*value = (int)wide;
}

static void boolean(struct codec *codec, bool *value)
{
	if (codec->writing)
		put_number(codec, *value);
	else
		*value = get_below(codec, 2);
}

/* Bits of one number, from the lowest on; others are ignored. */
static void flags(struct codec *codec, bool *const *bits, size_t count)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < count; i++)
		mask |= (uint64_t)*bits[i] << i;
	number(codec, &mask);
	for (size_t i = 0; i < count; i++)
		*bits[i] = mask >> i & 1;
}

#define FLAGS(codec, ...) flags(codec, (bool *[]){__VA_ARGS__}, sizeof((bool *[]){__VA_ARGS__}) / sizeof(bool *))

/* NULL is distinguished from "". What is longer than MW_STORE_STRING_MAX is cut. */
static void string(struct codec *codec, const char **text)
{
	uint64_t size;

	if (codec->writing) {
		size_t length = *text ? strnlen(*text, MW_STORE_STRING_MAX) : 0;

		put_number(codec, *text ? length + 1 : 0);
		put_bytes(codec, *text, length);
		put_bytes(codec, "", *text ? 1 : 0);
		return;
	}
	size = get_number(codec);
	*text = get_bytes(codec, size);
	/* The size counts the 0 at its end, the only one there may be; it stays in the bytes themselves. */
	codec->bad |= *text && memchr(*text, 0, size) != *text + size - 1;
}

/* One that must be there. */
static void text(struct codec *codec, const char **text)
{
	const char *none = "";

	string(codec, codec->writing && !*text ? &none : text);
	codec->bad |= !codec->writing && !*text;
}

static void blob(struct codec *codec, const uint8_t **bytes, size_t *size)
{
	uint64_t wide = *size < MW_STORE_STRING_MAX ? *size : MW_STORE_STRING_MAX;

	number(codec, &wide);
	if (codec->writing)
		put_bytes(codec, *bytes, wide);
	else
		*bytes = get_bytes(codec, wide);
	*size = *bytes ? wide : 0;
}

/* The length of a list of at most `most` items, each of `size` bytes in the fact. Returns these, or room for them. */
static void *list(struct codec *codec, const void *items, size_t *count, size_t most, size_t size)
{
	char *room = codec->room;
	uint64_t wide;

	if (codec->writing) {
		most = most < codec->limit ? most : codec->limit;
		*count = *count < most ? *count : most;
		put_number(codec, *count);
		return (void *)(uintptr_t)items;
	}
	wide = get_number(codec);
	codec->bad |= wide > most || wide > codec->left / size;
	*count = codec->bad ? 0 : wide;
	codec->room += *count * size;
	codec->left -= *count * size;
	return room;
}

/* --- records ---------------------------------------------------------------------------------------------- */

static void target(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_target *it = &fact->target;
	const char **command;
	struct mw_stored_child *children;

	integer(codec, &it->pid);
	string(codec, &it->comm);
	string(codec, &it->exe);
	signed64(codec, &it->started_realtime_ns);
	FLAGS(codec, &it->track_heap, &it->track_vm, &it->launched, &it->attached);
	number32(codec, &it->depth);
	string(codec, &it->engine);
	string(codec, &it->engine_reason);
	it->command = command = list(codec, it->command, &it->command_count, MW_STORE_LIST_MAX, sizeof(*it->command));
	for (size_t i = 0; i < it->command_count; i++)
		text(codec, &command[i]);
	/* Older recordings end the record here. */
	if (!codec->writing && codec->at == codec->end)
		return;
	below(codec, (uint32_t *)&it->limit.of, MW_LIMIT_MACHINE + 1);
	number(codec, &it->limit.bytes);
	number(codec, &it->limit.used);
	string(codec, &it->distribution);
	FLAGS(codec, &it->own_root, &it->by_root, &it->knows_children);
	number32(codec, &it->runtimes);
	it->children = children =
		list(codec, it->children, &it->child_count, MW_STORED_CHILDREN_MAX, sizeof(*it->children));
	for (size_t i = 0; i < it->child_count; i++) {
		integer(codec, &children[i].pid);
		string(codec, &children[i].comm);
		boolean(codec, &children[i].watched);
	}
	if (!codec->writing && codec->at == codec->end)
		return;
	string(codec, &it->frames_missing);
}

static void hook(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_hook *it = &fact->hook;

	below(codec, &it->number, MW_STORE_NUMBER_MAX);
	string(codec, &it->function);
	string(codec, &it->module);
	string(codec, &it->refused);
	number(codec, &it->address);
	number32(codec, &it->role);
	below(codec, &it->kind, MW_KIND_COUNT);
}

static void module(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_module *it = &fact->module;

	below(codec, &it->number, MW_STORE_NUMBER_MAX);
	string(codec, &it->path);
	blob(codec, &it->build_id, &it->build_id_size);
	number(codec, &it->start);
	number(codec, &it->end);
	number(codec, &it->base);
	FLAGS(codec, &it->suspect, &it->has_file);
}

static void range(struct codec *codec, mw_addr *start, mw_addr *end)
{
	number(codec, start);
	number(codec, end);
	codec->bad |= !codec->writing && *start > *end;
}

static void before(struct codec *codec, union mw_store_fact *fact)
{
	range(codec, &fact->before.start, &fact->before.end);
}

static void thread(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_thread *it = &fact->thread.thread;

	below(codec, &it->number, UINT32_MAX);
	boolean(codec, &fact->thread.used);
	if (!fact->thread.used)
		return;
	integer(codec, &it->tid);
	string(codec, &it->name);
}

static void stack(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_raw_stack *it = &fact->stack.stack;
	size_t count = it->count;
	struct mw_raw_frame *frames;
	uint64_t last = 0;

	below(codec, &fact->stack.number, UINT32_MAX);
	boolean(codec, &fact->stack.used);
	if (!fact->stack.used)
		return;
	if (codec->writing && count > codec->limit)
		it->cut = MW_STACK_TRUNCATED;
	below(codec, (uint32_t *)&it->cut, MW_STACK_BROKEN + 1);
	reference(codec, &it->hook);
	below(codec, (uint32_t *)&it->kind, MW_KIND_COUNT);
	it->frames = frames = list(codec, it->frames, &count, MW_STORE_LIST_MAX, sizeof(*frames));
	it->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		int64_t step = codec->writing ? (int64_t)(frames[i].addr - last) : 0;

		signed64(codec, &step);
		reference(codec, &frames[i].module);
		last += (uint64_t)step;
		if (!codec->writing)
			frames[i].addr = last;
	}
}

static void interval(struct codec *codec, union mw_store_fact *fact)
{
	below(codec, &fact->interval.number, MW_INTERVAL_MAX + 1);
	number(codec, &fact->interval.bytes);
	codec->bad |= !fact->interval.number || !fact->interval.bytes;
}

static void sample(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_sample *it = &fact->sample;

	number(codec, &it->time_ns);
	known(codec, &it->rss);
	known(codec, &it->pss);
	known(codec, &it->vsize);
	known(codec, &it->own_resident);
	known(codec, &it->own_mapped);
	known(codec, &it->heap_impacting);
	known(codec, &it->vm_impacting);
	known(codec, &it->arena_used);
	known(codec, &it->arena_free);
	known(codec, &it->arena_size);
}

static void mark(struct codec *codec, union mw_store_fact *fact)
{
	number32(codec, &fact->mark.number);
	number(codec, &fact->mark.time_ns);
	string(codec, &fact->mark.name);
}

static void mapping(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_mapping *it = &fact->mapping.mapping;

	below(codec, (uint32_t *)&fact->mapping.moment, MW_STORED_END + 1);
	range(codec, &it->start, &it->end);
	below(codec, &it->kind, MW_REGION_KIND_COUNT);
	known(codec, &it->resident);
	string(codec, &it->path);
	/* Older recordings end the record here. */
	if (codec->writing || codec->at < codec->end)
		FLAGS(codec, &it->exec, &it->accessible);
	if (codec->writing || codec->at < codec->end) {
		number(codec, &it->committed);
		number(codec, &it->used);
	}
}

static void symbol(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_symbol *it = &fact->symbol;
	struct mw_stored_frame *frames;

	reference(codec, &it->module);
	number(codec, &it->addr);
	it->frames = frames = list(codec, it->frames, &it->frame_count, MW_STORE_SYMBOL_LIST_MAX, sizeof(*it->frames));
	for (size_t i = 0; i < it->frame_count; i++) {
		string(codec, &frames[i].function);
		string(codec, &frames[i].file);
		number32(codec, &frames[i].line);
		number(codec, &frames[i].offset);
		boolean(codec, &frames[i].inlined);
	}
}

static void end(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_end *it = &fact->end;
	struct mw_stored_figure *figures;

	number(codec, &it->length_ns);
	number32(codec, &it->ended);
	boolean(codec, &it->has_exit_status);
	integer(codec, &it->exit_status);
	string(codec, &it->left_behind);
	it->figures = figures = list(codec, it->figures, &it->figure_count, MW_STORE_LIST_MAX, sizeof(*it->figures));
	for (size_t i = 0; i < it->figure_count; i++) {
		text(codec, &figures[i].name);
		number(codec, &figures[i].value);
	}
}

static void amount(struct codec *codec, struct mw_amount *value)
{
	number(codec, &value->count);
	number(codec, &value->bytes);
}

static void leaks(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_leaks *it = &fact->leaks;
	const char **holder;

	number(codec, &it->stack);
	for (unsigned i = 0; i < MW_REACH_COUNT; i++)
		amount(codec, &it->amounts[i]);
	it->holder = holder = list(codec, it->holder, &it->holder_count, MW_STORED_HOLDERS_MAX, sizeof(*it->holder));
	for (size_t i = 0; i < it->holder_count; i++)
		text(codec, &holder[i]);
}

static void change(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_change *it = &fact->change;

	number32(codec, &it->kind);
	text(codec, &it->name);
	text(codec, &it->detail);
	number(codec, &it->stack);
	signed64(codec, &it->bytes);
}

static void pool(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_pool *it = &fact->pool;

	number(codec, &it->stack);
	text(codec, &it->pool);
	text(codec, &it->name);
	text(codec, &it->path);
	text(codec, &it->example);
	amount(codec, &it->blocks);
}

/* --- looks at heaps: structs of memwatch/heap.h, whose strings are not const ------------------------------- */

static void own_string(struct codec *codec, char **value)
{
	const char *it = *value;

	string(codec, &it);
	*value = (char *)(uintptr_t)it;
}

static void own_text(struct codec *codec, char **value)
{
	const char *it = *value;

	text(codec, &it);
	*value = (char *)(uintptr_t)it;
}

/* One that is an array. */
static void name(struct codec *codec, char *value, size_t size)
{
	const char *it = value;

	text(codec, &it);
	codec->bad |= !codec->writing && it && strlen(it) >= size;
	if (!codec->writing && !codec->bad)
		strcpy(value, it);
}

static void counter(struct codec *codec, size_t *value)
{
	uint64_t wide = *value;

	number(codec, &wide);
	*value = (size_t)wide;
}

static void heap_head(struct codec *codec, struct mw_heap_report *it)
{
	uint64_t ns = codec->writing ? (uint64_t)(it->seconds * 1e9 + 0.5) : 0;
	bool holders = codec->writing && it->holders;

	integer(codec, &it->pid);
	name(codec, it->comm, sizeof(it->comm));
	own_string(codec, &it->exe);
	own_string(codec, &it->build_id);
	name(codec, it->boot_id, sizeof(it->boot_id));
	number(codec, &it->start_ticks);
	signed64(codec, &it->started_realtime_ns);
	number32(codec, &it->by);
	FLAGS(codec, &it->forked, &holders);
	/* That there is a list, though it be empty. */
	if (!codec->writing)
		it->holders = holders ? (void *)codec->room : NULL;
	number32(codec, &it->passes);
	own_string(codec, &it->why);
	number(codec, &it->pause_ns);
	number(codec, &ns);
	it->seconds = (double)ns / 1e9;
	number(codec, &it->scanned);
	number(codec, &it->unread);
	number(codec, &it->rss);
	number(codec, &it->swapped);
	known(codec, &it->page_tables);
	for (unsigned i = 0; i < MW_REACH_COUNT; i++)
		amount(codec, &it->leaks[i]);
	counter(codec, &it->line_count);
	counter(codec, &it->allocator_count);
	counter(codec, &it->group_count);
	counter(codec, &it->gap_count);
	counter(codec, &it->holder_count);
	counter(codec, &it->advice_count);
}

static void heap_line(struct codec *codec, struct mw_heap_line *it)
{
	text(codec, &it->name);
	own_text(codec, &it->detail);
	number(codec, &it->bytes);
	number(codec, &it->swapped);
	/* Older recordings end the record here. */
	if (codec->writing || codec->at < codec->end) {
		number(codec, &it->reserved);
		number(codec, &it->committed);
		number(codec, &it->used);
	}
}

static void heap_allocator(struct codec *codec, struct mw_heap_figures *it)
{
	text(codec, &it->name);
	own_text(codec, &it->version);
	own_string(codec, &it->module);
	FLAGS(codec, &it->walked);
	own_string(codec, &it->why);
	amount(codec, &it->live);
	amount(codec, &it->free);
	number(codec, &it->retained);
	known(codec, &it->trimmable);
	number(codec, &it->cached);
	number(codec, &it->skipped);
	number(codec, &it->pinned_pages);
	number(codec, &it->pinned);
	counter(codec, &it->arenas);
}

static void heap_group(struct codec *codec, struct mw_heap_group *it)
{
	own_string(codec, &it->class_name);
	known(codec, &it->size);
	string(codec, &it->allocator);
	own_string(codec, &it->arena);
	below(codec, (uint32_t *)&it->verdict, MW_REACH_COUNT + 1);
	amount(codec, &it->blocks);
	it->holder = list(codec, it->holder, &it->holder_count, MW_STORE_LIST_MAX, sizeof(*it->holder));
	for (size_t i = 0; i < it->holder_count; i++)
		own_text(codec, &it->holder[i]);
	counter(codec, &it->sample_count);
	codec->bad |= it->sample_count > MW_HEAP_SAMPLES;
	for (size_t i = 0; i < it->sample_count && !codec->bad; i++)
		number(codec, &it->samples[i]);
	counter(codec, &it->content_count);
}

static void heap_content(struct codec *codec, struct mw_heap_content *it)
{
	const uint8_t *bytes = it->bytes;

	number(codec, &it->at);
	number(codec, &it->size);
	blob(codec, &bytes, &it->byte_count);
	it->bytes = (unsigned char *)(uintptr_t)bytes;
	it->notes = list(codec, it->notes, &it->note_count, MW_STORE_LIST_MAX, sizeof(*it->notes));
	for (size_t i = 0; i < it->note_count; i++) {
		number(codec, &it->notes[i].offset);
		own_text(codec, &it->notes[i].text);
	}
}

static void heap(struct codec *codec, union mw_store_fact *fact)
{
	struct mw_stored_heap *it = &fact->heap;

	number32(codec, &it->part);
	switch (it->part) {
	case MW_STORED_HEAP_HEAD:
		heap_head(codec, &it->head);
		break;
	case MW_STORED_HEAP_LINE:
		heap_line(codec, &it->line);
		break;
	case MW_STORED_HEAP_ALLOCATOR:
		heap_allocator(codec, &it->allocator);
		break;
	case MW_STORED_HEAP_GROUP:
		heap_group(codec, &it->group);
		break;
	case MW_STORED_HEAP_CONTENT:
		heap_content(codec, &it->content);
		break;
	case MW_STORED_HEAP_GAP:
		number(codec, &it->gap.start);
		number(codec, &it->gap.bytes);
		text(codec, &it->gap.why);
		break;
	case MW_STORED_HEAP_HOLDER:
		own_text(codec, &it->holder.name);
		number32(codec, &it->holder.depth);
		amount(codec, &it->holder.retained);
		amount(codec, &it->holder.own);
		break;
	case MW_STORED_HEAP_ADVICE:
		text(codec, &it->advice);
		break;
	default:
		break;
	}
}

static void last(struct codec *codec, union mw_store_fact *fact)
{
	number(codec, &fact->chunks);
}

static void (*const records[MW_STORE_TYPE_COUNT])(struct codec *codec, union mw_store_fact *fact) = {
	[MW_STORE_TARGETS] = target,     [MW_STORE_HOOKS] = hook,     [MW_STORE_MODULES] = module,
	[MW_STORE_BEFORE] = before,      [MW_STORE_THREADS] = thread, [MW_STORE_STACKS] = stack,
	[MW_STORE_SAMPLES] = sample,     [MW_STORE_MARKS] = mark,     [MW_STORE_MAPPINGS] = mapping,
	[MW_STORE_SYMBOLS] = symbol,     [MW_STORE_ENDS] = end,       [MW_STORE_CLOSE] = last,
	[MW_STORE_INTERVALS] = interval, [MW_STORE_LEAKS] = leaks,    [MW_STORE_HEAP] = heap,
	[MW_STORE_CHANGE] = change,      [MW_STORE_POOLS] = pool,
};

size_t mw_store_encode(enum mw_store_chunk_type type, const union mw_store_fact *fact, uint8_t out[MW_STORE_CHUNK_MAX])
{
	size_t limit = MW_STORE_LIST_MAX, size;
	struct codec record, length;

	do {
		/* Lists are shortened in it. */
		union mw_store_fact copy = *fact;

		record = (struct codec){.writing = true, .at = out + LENGTH_SIZE, .end = out + MW_STORE_CHUNK_MAX};
		record.limit = limit;
		records[type](&record, &copy);
		limit /= 2;
	} while (record.bad && limit);
	if (record.bad)
		return 0;
	size = (size_t)(record.at - out) - LENGTH_SIZE;
	length = (struct codec){.at = out, .end = out + LENGTH_SIZE};
	put_number(&length, size);
	memmove(length.at, out + LENGTH_SIZE, size);
	return (size_t)(length.at - out) + size;
}

const char *mw_store_decode(enum mw_store_chunk_type type, const uint8_t **at, const uint8_t *end, void *room,
			    union mw_store_fact *out)
{
	/* Nothing is written to what is read. */
	struct codec all = {.at = (uint8_t *)(uintptr_t)*at, .end = (uint8_t *)(uintptr_t)end}, record = all;
	uint64_t size = get_number(&all);

	record.at = all.at;
	(void)get_bytes(&all, size);
	if (all.bad)
		return "a chunk has fewer records than it says";
	*at = record.end = all.at;
	record.room = room;
	record.left = MW_STORE_CHUNK_MAX;
	memset(out, 0, sizeof(*out));
	records[type](&record, out);
	return record.bad ? "a record is invalid" : NULL;
}
