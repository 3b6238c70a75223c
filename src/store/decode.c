// SPDX-License-Identifier: MIT
/* decode.c: records that are reported (decode.h). encode.c is its mirror. */
#include "store/decode.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Where to get: what makes no sense or goes beyond `end` sets `bad`, and gives 0 from then on. */
struct get {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get_number(struct get *get)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; !get->bad && shift < 64 && get->at < get->end; shift += 7) {
		uint8_t byte = *get->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	get->bad = true;
	return 0;
}

/* Bad where it is `limit` or more. */
static uint32_t get_below(struct get *get, uint64_t limit)
{
	uint64_t value = get_number(get);

	if (value < limit && value <= UINT32_MAX)
		return (uint32_t)value;
	get->bad = true;
	return 0;
}

static int64_t get_signed(struct get *get)
{
	return (int64_t)mw_store_unzigzag(get_number(get));
}

static const uint8_t *get_blob(struct get *get, size_t *size)
{
	uint64_t wanted = get_number(get);
	const uint8_t *bytes = get->at;

	*size = 0;
	if (get->bad || wanted > (size_t)(get->end - get->at)) {
		get->bad = true;
		return NULL;
	}
	get->at += wanted;
	*size = (size_t)wanted;
	return bytes;
}

/* NULL or a string that ends in 0, in the bytes themselves. */
static const char *get_string(struct get *get)
{
	uint64_t size = get_number(get);
	const uint8_t *text = get->at;

	if (get->bad || size == 0)
		return NULL;
	/* `size` counts the 0 at its end, the only one there may be. */
	if (size > (size_t)(get->end - get->at) || memchr(text, 0, (size_t)size) != text + size - 1) {
		get->bad = true;
		return NULL;
	}
	get->at += size;
	return (const char *)text;
}

/* --- which numbers were given ---------------------------------------------------------------------------- */

#define WORD_BITS 64u

static bool has(const struct mw_store_known *known, uint32_t number)
{
	return number < known->next && known->bits[number / WORD_BITS] >> number % WORD_BITS & 1;
}

/*
 * A number was given, used or not. *bad where it leaves others out, or takes back that one is used; then, and where it
 * is bad already, nothing is taken.
 */
static struct mw_error *take_known(struct mw_store_known *known, uint32_t number, bool used, bool *bad)
{
	if (number > known->next || (!used && number < known->next))
		*bad = true;
	if (*bad)
		return NULL;
	if (number == known->next) {
		if (number % WORD_BITS == 0) {
			if (!MW_VECTOR_ROOM(known->bits, number / WORD_BITS, known->words))
				return mw_error_nomem();
			known->bits[number / WORD_BITS] = 0;
		}
		known->next++;
		known->missing++;
	}
	if (used && !has(known, number)) {
		known->bits[number / WORD_BITS] |= UINT64_C(1) << number % WORD_BITS;
		known->missing--;
	}
	return NULL;
}

void mw_store_process_deinit(struct mw_store_process *process)
{
	free(process->stacks.bits);
	free(process->threads.bits);
}

bool mw_store_knows_all(const struct mw_store_process *process, const struct mw_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!has(&process->threads, events[i].thread))
			return false;
		if (events[i].stack != MW_STACK_NONE && !has(&process->stacks, events[i].stack))
			return false;
	}
	return true;
}

/* --- records --------------------------------------------------------------------------------------------- */

/* No list of structs is longer than its bytes are by more than that: 16 bytes of 2, 24 of 3, 40 of 5. Two lengths bound it, that
 * and MW_STORE_LIST_MAX. */
#define LIST_FACTOR 8U

/* Of one record. */
struct record {
	const struct mw_store_emission *emission;
	struct mw_store_process *process;
	uint32_t number; /* of the process */
	struct get get;
};

typedef struct mw_error *(*emitter)(struct record *record);

/* Tell the visitor if the record made sense and it wants to hear. */
#define TELL(record, what, ...)                                                                                        \
	((record)->get.bad || !(record)->emission->visitor->what                                                       \
		 ? NULL                                                                                                \
		 : (record)->emission->visitor->what((record)->emission->visitor->context, (record)->number,           \
						     __VA_ARGS__))

static uint64_t get_known(struct get *get)
{
	return get_number(get) - 1;
}

static int get_int(struct get *get)
{
	int64_t value = get_signed(get);

	if (value >= INT32_MIN && value <= INT32_MAX)
		return (int)value;
	get->bad = true;
	return 0;
}

/* UINT32_MAX or a number below MW_STORE_NUMBER_MAX, of a hook or a module. */
static uint32_t get_reference(struct get *get)
{
	return get_below(get, MW_STORE_NUMBER_MAX + 1) - 1U;
}

/* How many items of at least `least` bytes follow. */
static uint32_t get_count(struct get *get, uint32_t limit, size_t least)
{
	uint32_t count = get_below(get, (uint64_t)limit + 1);

	if (count > (size_t)(get->end - get->at) / least) {
		get->bad = true;
		return 0;
	}
	return count;
}

/* What a record that ends before has not. `room` is the list's place behind the command line. */
static void get_surroundings(struct get *get, struct mw_stored_target *target, struct mw_stored_child *room)
{
	uint32_t flags;

	if (get->bad || get->at == get->end)
		return;
	target->limit.of = (enum mw_limit_of)get_below(get, MW_LIMIT_MACHINE + 1);
	target->limit.bytes = get_number(get);
	target->limit.used = get_number(get);
	target->distribution = get_string(get);
	flags = (uint32_t)get_number(get);
	target->own_root = flags & 1;
	target->by_root = flags & 2;
	target->knows_children = flags & 4;
	target->runtimes = get_below(get, UINT64_C(1) << 32);
	target->children = room;
	target->child_count = get_count(get, MW_STORED_CHILDREN_MAX, 3);
	for (size_t i = 0; i < target->child_count; i++)
		room[i] = (struct mw_stored_child){
			.pid = get_int(get), .comm = get_string(get), .watched = get_below(get, 2) != 0};
}

static struct mw_error *emit_target(struct record *record)
{
	struct get *get = &record->get;
	const char **command = (const char **)(void *)record->emission->list.bytes;
	struct mw_stored_target target = {.command = command};
	uint32_t flags;

	target.pid = get_int(get);
	target.comm = get_string(get);
	target.exe = get_string(get);
	target.started_realtime_ns = get_signed(get);
	flags = (uint32_t)get_number(get);
	target.track_heap = flags & 1;
	target.track_vm = flags & 2;
	target.launched = flags & 4;
	target.attached = flags & 8;
	target.depth = get_below(get, UINT64_C(1) << 32);
	target.engine = get_string(get);
	target.engine_reason = get_string(get);
	target.command_count = get_count(get, MW_STORE_LIST_MAX, 2);
	for (size_t i = 0; i < target.command_count; i++) {
		command[i] = get_string(get);
		get->bad |= !command[i];
	}
	get_surroundings(get, &target, (struct mw_stored_child *)(void *)(command + target.command_count));
	return TELL(record, target, &target);
}

static struct mw_error *emit_hook(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_hook hook = {.number = get_below(get, MW_STORE_NUMBER_MAX)};

	hook.function = get_string(get);
	hook.module = get_string(get);
	hook.refused = get_string(get);
	hook.address = get_number(get);
	hook.role = get_below(get, UINT64_C(1) << 32);
	hook.kind = get_below(get, MW_KIND_COUNT);
	return TELL(record, hook, &hook);
}

static struct mw_error *emit_module(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_module module = {.number = get_below(get, MW_STORE_NUMBER_MAX)};
	uint32_t flags;

	module.path = get_string(get);
	module.build_id = get_blob(get, &module.build_id_size);
	module.start = get_number(get);
	module.end = get_number(get);
	module.base = get_number(get);
	flags = (uint32_t)get_number(get);
	module.suspect = flags & 1;
	module.has_file = flags & 2;
	return TELL(record, module, &module);
}

static struct mw_error *emit_before(struct record *record)
{
	mw_addr start = get_number(&record->get);
	mw_addr end = get_number(&record->get);

	record->get.bad |= start > end;
	return TELL(record, before, start, end);
}

static struct mw_error *emit_thread(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_thread thread = {.number = get_below(get, UINT32_MAX)};
	bool used = get_below(get, 2);

	if (used) {
		thread.tid = get_int(get);
		thread.name = get_string(get);
	}
	MW_TRY(take_known(&record->process->threads, thread.number, used, &get->bad));
	return used ? TELL(record, thread, &thread) : NULL;
}

static struct mw_error *emit_stack(struct record *record)
{
	struct get *get = &record->get;
	struct mw_raw_frame *frames = (struct mw_raw_frame *)(void *)record->emission->list.bytes;
	struct mw_raw_stack stack = {.frames = frames};
	uint32_t number = get_below(get, UINT32_MAX);
	bool used = get_below(get, 2);
	uint64_t before = 0;

	if (used) {
		stack.cut = (enum mw_stack_cut)get_below(get, MW_STACK_BROKEN + 1);
		stack.hook = get_reference(get);
		stack.kind = (enum mw_kind)get_below(get, MW_KIND_COUNT);
		stack.count = get_count(get, MW_STORE_LIST_MAX, 2);
	}
	for (uint32_t i = 0; i < stack.count; i++) {
		before += (uint64_t)get_signed(get);
		frames[i] = (struct mw_raw_frame){before, get_reference(get)};
	}
	MW_TRY(take_known(&record->process->stacks, number, used, &get->bad));
	return used ? TELL(record, stack, number, &stack) : NULL;
}

static struct mw_error *emit_sample(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_sample sample = {.time_ns = get_number(get)};

	sample.rss = get_known(get);
	sample.pss = get_known(get);
	sample.vsize = get_known(get);
	sample.own_resident = get_known(get);
	sample.own_mapped = get_known(get);
	sample.heap_impacting = get_known(get);
	sample.vm_impacting = get_known(get);
	sample.arena_used = get_known(get);
	sample.arena_free = get_known(get);
	sample.arena_size = get_known(get);
	return TELL(record, sample, &sample);
}

static struct mw_error *emit_mark(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_mark mark = {.number = get_below(get, UINT64_C(1) << 32)};

	mark.time_ns = get_number(get);
	mark.name = get_string(get);
	return TELL(record, mark, &mark);
}

static struct mw_error *emit_mapping(struct record *record)
{
	struct get *get = &record->get;
	enum mw_stored_moment moment = (enum mw_stored_moment)get_below(get, MW_STORED_END + 1);
	struct mw_stored_mapping mapping = {.start = get_number(get)};
	uint32_t flags;

	mapping.end = get_number(get);
	mapping.kind = get_below(get, MW_REGION_KIND_COUNT);
	mapping.resident = get_known(get);
	mapping.path = get_string(get);
	/* Older recordings end the record here. */
	flags = get->at < get->end ? (uint32_t)get_number(get) : 0;
	mapping.exec = flags & 1;
	mapping.accessible = flags & 2;
	get->bad |= mapping.start > mapping.end;
	return TELL(record, mapping, moment, &mapping);
}

static struct mw_error *emit_symbol(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_frame *frames = (struct mw_stored_frame *)(void *)record->emission->list.bytes;
	struct mw_stored_symbol symbol = {.module = get_reference(get), .frames = frames};

	_Static_assert(sizeof(*frames) * MW_STORE_SYMBOL_LIST_MAX <= MW_STORE_CHUNK_MAX, "the list fits");
	symbol.addr = get_number(get);
	symbol.frame_count = get_count(get, MW_STORE_SYMBOL_LIST_MAX, 5);
	for (size_t i = 0; i < symbol.frame_count; i++) {
		frames[i].function = get_string(get);
		frames[i].file = get_string(get);
		frames[i].line = get_below(get, UINT64_C(1) << 32);
		frames[i].offset = get_number(get);
		frames[i].inlined = get_below(get, 2);
	}
	return TELL(record, symbol, &symbol);
}

static struct mw_error *emit_end(struct record *record)
{
	struct get *get = &record->get;
	struct mw_stored_figure *figures = (struct mw_stored_figure *)(void *)record->emission->list.bytes;
	struct mw_stored_end end = {.length_ns = get_number(get), .figures = figures};

	_Static_assert(sizeof(*figures) * MW_STORE_LIST_MAX <= MW_STORE_CHUNK_MAX, "the list fits");
	end.ended = get_below(get, UINT64_C(1) << 32);
	end.has_exit_status = get_below(get, 2);
	end.exit_status = get_int(get);
	end.left_behind = get_string(get);
	end.figure_count = get_count(get, MW_STORE_LIST_MAX, 2);
	for (size_t i = 0; i < end.figure_count; i++) {
		figures[i].name = get_string(get);
		figures[i].value = get_number(get);
		get->bad |= !figures[i].name;
	}
	return TELL(record, end, &end);
}

static const emitter emitters[MW_STORE_TYPE_COUNT] = {
	[MW_STORE_TARGETS] = emit_target, [MW_STORE_HOOKS] = emit_hook,     [MW_STORE_MODULES] = emit_module,
	[MW_STORE_BEFORE] = emit_before,  [MW_STORE_THREADS] = emit_thread, [MW_STORE_STACKS] = emit_stack,
	[MW_STORE_SAMPLES] = emit_sample, [MW_STORE_MARKS] = emit_mark,     [MW_STORE_MAPPINGS] = emit_mapping,
	[MW_STORE_SYMBOLS] = emit_symbol, [MW_STORE_ENDS] = emit_end,
};

struct mw_error *mw_store_emit(struct mw_store_emission *emission, struct mw_store_process *process,
			       const struct mw_store_chunk *chunk, const uint8_t *content, const char **why)
{
	struct get all = {content, content + chunk->raw_size, false};
	struct record record = {.emission = emission, .process = process, .number = chunk->process};
	size_t list = LIST_FACTOR * (size_t)chunk->raw_size;

	if (!mw_store_buffer_room(&emission->list, list < MW_STORE_CHUNK_MAX ? list : MW_STORE_CHUNK_MAX))
		return mw_error_nomem();
	for (uint32_t i = 0; i < chunk->count; i++) {
		size_t size;
		const uint8_t *bytes = get_blob(&all, &size);

		if (all.bad) {
			*why = "a chunk has fewer records than it says";
			return NULL;
		}
		record.get = (struct get){bytes, bytes + size, false};
		MW_TRY(emitters[chunk->type](&record));
		if (record.get.bad) {
			*why = "a record is invalid";
			return NULL;
		}
	}
	if (all.at != all.end)
		*why = "a chunk has more records than it says";
	return NULL;
}

bool mw_store_decode_close(const struct mw_store_chunk *chunk, const uint8_t *content, uint64_t *chunks)
{
	struct get all = {content, content + chunk->raw_size, false}, record;
	size_t size;

	record.at = get_blob(&all, &size);
	record.end = all.at;
	record.bad = all.bad;
	*chunks = get_number(&record);
	return chunk->count == 1 && !record.bad;
}
