// SPDX-License-Identifier: MIT
/* encode.c: facts into records (FORMAT.md). decode.c is its mirror. */
#include "store/writer_state.h"

#include <string.h>

static void put_bytes(struct mw_store_put *put, const void *bytes, size_t size)
{
	if (put->full || (size_t)(put->end - put->at) < size) {
		put->full = true;
		return;
	}
	if (size)
		memcpy(put->at, bytes, size);
	put->at += size;
}

static void put_number(struct mw_store_put *put, uint64_t value)
{
	uint8_t bytes[10];
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[size++] = (uint8_t)(value | 0x80);
	bytes[size++] = (uint8_t)value;
	put_bytes(put, bytes, size);
}

static void put_signed(struct mw_store_put *put, int64_t value)
{
	put_number(put, mw_store_zigzag((uint64_t)value));
}

/* NULL is distinguished from "". What is longer than MW_STORE_STRING_MAX is cut. */
static void put_string(struct mw_store_put *put, const char *text)
{
	size_t length;

	if (!text) {
		put_number(put, 0);
		return;
	}
	length = strnlen(text, MW_STORE_STRING_MAX);
	put_number(put, length + 1);
	put_bytes(put, text, length);
	put_bytes(put, "", 1);
}

void mw_store_put_blob(struct mw_store_put *put, const uint8_t *bytes, size_t size)
{
	put_number(put, size);
	put_bytes(put, bytes, size);
}

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A number that may be unknown (UINT64_MAX): 0 says so. */
static void put_known(struct mw_store_put *put, uint64_t value)
{
	put_number(put, value + 1);
}

/* The number of a hook or a module, or none (UINT32_MAX): 0 says so. */
static void put_reference(struct mw_store_put *put, uint32_t number)
{
	put_number(put, number < MW_STORE_NUMBER_MAX ? number + 1U : 0);
}

static void encode_target(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_target *target = fact;
	size_t count = lesser(target->command_count, lesser(limit, MW_STORE_LIST_MAX));

	put_signed(put, target->pid);
	put_string(put, target->comm);
	put_string(put, target->exe);
	put_signed(put, target->started_realtime_ns);
	put_number(put, (target->track_heap ? 1U : 0U) | (target->track_vm ? 2U : 0U) | (target->launched ? 4U : 0U) |
				(target->attached ? 8U : 0U));
	put_number(put, target->depth);
	put_string(put, target->engine);
	put_string(put, target->engine_reason);
	put_number(put, count);
	for (size_t i = 0; i < count; i++)
		put_string(put, target->command[i] ? target->command[i] : "");
	put_number(put, target->limit.of);
	put_number(put, target->limit.bytes);
	put_number(put, target->limit.used);
	put_string(put, target->distribution);
	put_number(put,
		   (target->own_root ? 1U : 0U) | (target->by_root ? 2U : 0U) | (target->knows_children ? 4U : 0U));
	put_number(put, target->runtimes);
	count = lesser(target->child_count, lesser(limit, MW_STORED_CHILDREN_MAX));
	put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		put_signed(put, target->children[i].pid);
		put_string(put, target->children[i].comm);
		put_number(put, target->children[i].watched ? 1 : 0);
	}
}

static void encode_hook(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_hook *hook = fact;

	(void)limit;
	put_number(put, hook->number);
	put_string(put, hook->function);
	put_string(put, hook->module);
	put_string(put, hook->refused);
	put_number(put, hook->address);
	put_number(put, hook->role);
	put_number(put, hook->kind);
}

static void encode_module(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_module *module = fact;

	(void)limit;
	put_number(put, module->number);
	put_string(put, module->path);
	mw_store_put_blob(put, module->build_id, lesser(module->build_id_size, MW_STORE_STRING_MAX));
	put_number(put, module->start);
	put_number(put, module->end);
	put_number(put, module->base);
	put_number(put, (module->suspect ? 1U : 0U) | (module->has_file ? 2U : 0U));
}

static void encode_before(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_range *range = fact;

	(void)limit;
	put_number(put, range->start);
	put_number(put, range->end);
}

/* Returns whether there is more to be put. */
static bool put_numbered(struct mw_store_put *put, const struct mw_store_numbered *numbered)
{
	put_number(put, numbered->number);
	put_number(put, numbered->fact ? 1 : 0);
	return numbered->fact;
}

static void encode_thread(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_numbered *numbered = fact;
	const struct mw_stored_thread *thread = numbered->fact;

	(void)limit;
	if (!put_numbered(put, numbered))
		return;
	put_signed(put, thread->tid);
	put_string(put, thread->name);
}

static void encode_stack(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_numbered *numbered = fact;
	const struct mw_raw_stack *stack = numbered->fact;
	uint64_t before = 0;
	size_t count;

	if (!put_numbered(put, numbered))
		return;
	count = lesser(stack->count, lesser(limit, MW_STORE_LIST_MAX));
	put_number(put, count < stack->count ? MW_STACK_TRUNCATED : stack->cut);
	put_reference(put, stack->hook);
	put_number(put, stack->kind);
	put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		put_signed(put, (int64_t)(stack->frames[i].addr - before));
		put_reference(put, stack->frames[i].module);
		before = stack->frames[i].addr;
	}
}

static void encode_sample(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_sample *sample = fact;

	(void)limit;
	put_number(put, sample->time_ns);
	put_known(put, sample->rss);
	put_known(put, sample->pss);
	put_known(put, sample->vsize);
	put_known(put, sample->own_resident);
	put_known(put, sample->own_mapped);
	put_known(put, sample->heap_impacting);
	put_known(put, sample->vm_impacting);
	put_known(put, sample->arena_used);
	put_known(put, sample->arena_free);
	put_known(put, sample->arena_size);
}

static void encode_mark(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_mark *mark = fact;

	(void)limit;
	put_number(put, mark->number);
	put_number(put, mark->time_ns);
	put_string(put, mark->name);
}

static void encode_mapping(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_moment_mapping *at = fact;

	(void)limit;
	put_number(put, at->moment);
	put_number(put, at->mapping->start);
	put_number(put, at->mapping->end);
	put_number(put, at->mapping->kind);
	put_known(put, at->mapping->resident);
	put_string(put, at->mapping->path);
	put_number(put, (at->mapping->exec ? 1U : 0U) | (at->mapping->accessible ? 2U : 0U));
}

static void encode_symbol(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_symbol *symbol = fact;
	size_t count = lesser(symbol->frame_count, lesser(limit, MW_STORE_SYMBOL_LIST_MAX));

	put_reference(put, symbol->module);
	put_number(put, symbol->addr);
	put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		const struct mw_stored_frame *frame = &symbol->frames[i];

		put_string(put, frame->function);
		put_string(put, frame->file);
		put_number(put, frame->line);
		put_number(put, frame->offset);
		put_number(put, frame->inlined ? 1 : 0);
	}
}

static void encode_end(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_end *end = fact;
	size_t count = lesser(end->figure_count, lesser(limit, MW_STORE_LIST_MAX));

	put_number(put, end->length_ns);
	put_number(put, end->ended);
	put_number(put, end->has_exit_status ? 1 : 0);
	put_signed(put, end->exit_status);
	put_string(put, end->left_behind);
	put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		put_string(put, end->figures[i].name);
		put_number(put, end->figures[i].value);
	}
}

static void encode_close(struct mw_store_put *put, const void *fact, size_t limit)
{
	(void)limit;
	put_number(put, *(const uint64_t *)fact);
}

typedef void (*encoder)(struct mw_store_put *put, const void *fact, size_t limit);

static const encoder encoders[MW_STORE_TYPE_COUNT] = {
	[MW_STORE_TARGETS] = encode_target, [MW_STORE_HOOKS] = encode_hook,     [MW_STORE_MODULES] = encode_module,
	[MW_STORE_BEFORE] = encode_before,  [MW_STORE_THREADS] = encode_thread, [MW_STORE_STACKS] = encode_stack,
	[MW_STORE_SAMPLES] = encode_sample, [MW_STORE_MARKS] = encode_mark,     [MW_STORE_MAPPINGS] = encode_mapping,
	[MW_STORE_SYMBOLS] = encode_symbol, [MW_STORE_ENDS] = encode_end,       [MW_STORE_CLOSE] = encode_close,
};

void mw_store_encode(struct mw_store_put *put, enum mw_store_chunk_type type, const void *fact, size_t limit)
{
	encoders[type](put, fact, limit);
}
