// SPDX-License-Identifier: MIT
/* encode.c: metadata into records (encode.h). decode.c is its mirror. */
#include "store/encode.h"

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A number that may be unknown (UINT64_MAX): 0 says so. */
static void put_known(struct mw_store_put *put, uint64_t value)
{
	mw_store_put_number(put, value + 1);
}

/* The number of a hook or a module, or none (UINT32_MAX): 0 says so. */
static void put_reference(struct mw_store_put *put, uint32_t number)
{
	mw_store_put_number(put, number < MW_STORE_NUMBER_MAX ? number + 1U : 0);
}

void mw_store_encode_target(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_target *target = fact;
	size_t count = lesser(target->command_count, lesser(limit, MW_STORE_LIST_MAX));

	mw_store_put_signed(put, target->pid);
	mw_store_put_string(put, target->comm);
	mw_store_put_string(put, target->exe);
	mw_store_put_signed(put, target->started_realtime_ns);
	mw_store_put_number(put, (target->track_heap ? 1U : 0U) | (target->track_vm ? 2U : 0U));
	mw_store_put_number(put, target->depth);
	mw_store_put_string(put, target->engine);
	mw_store_put_string(put, target->engine_reason);
	mw_store_put_number(put, count);
	for (size_t i = 0; i < count; i++)
		mw_store_put_string(put, target->command[i] ? target->command[i] : "");
}

void mw_store_encode_hook(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_hook *hook = fact;

	(void)limit;
	mw_store_put_number(put, hook->number);
	mw_store_put_string(put, hook->function);
	mw_store_put_string(put, hook->module);
	mw_store_put_string(put, hook->refused);
	mw_store_put_number(put, hook->address);
	mw_store_put_number(put, hook->role);
	mw_store_put_number(put, hook->kind);
}

void mw_store_encode_module(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_module *module = fact;

	(void)limit;
	mw_store_put_number(put, module->number);
	mw_store_put_string(put, module->path);
	mw_store_put_blob(put, module->build_id, lesser(module->build_id_size, MW_STORE_STRING_MAX));
	mw_store_put_number(put, module->start);
	mw_store_put_number(put, module->end);
	mw_store_put_number(put, module->base);
	mw_store_put_number(put, (module->suspect ? 1U : 0U) | (module->has_file ? 2U : 0U));
}

void mw_store_encode_before(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_range *range = fact;

	(void)limit;
	mw_store_put_number(put, range->start);
	mw_store_put_number(put, range->end);
}

/* Returns whether there is more to be put. */
static bool put_numbered(struct mw_store_put *put, const struct mw_store_numbered *numbered)
{
	mw_store_put_number(put, numbered->number);
	mw_store_put_number(put, numbered->fact ? 1 : 0);
	return numbered->fact;
}

void mw_store_encode_thread(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_numbered *numbered = fact;
	const struct mw_stored_thread *thread = numbered->fact;

	(void)limit;
	if (!put_numbered(put, numbered))
		return;
	mw_store_put_signed(put, thread->tid);
	mw_store_put_string(put, thread->name);
}

void mw_store_encode_stack(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_numbered *numbered = fact;
	const struct mw_raw_stack *stack = numbered->fact;
	uint64_t before = 0;
	size_t count;

	if (!put_numbered(put, numbered))
		return;
	count = lesser(stack->count, lesser(limit, MW_STORE_LIST_MAX));
	mw_store_put_number(put, count < stack->count ? MW_STACK_TRUNCATED : stack->cut);
	put_reference(put, stack->hook);
	mw_store_put_number(put, stack->kind);
	mw_store_put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		mw_store_put_signed(put, (int64_t)(stack->frames[i].addr - before));
		put_reference(put, stack->frames[i].module);
		before = stack->frames[i].addr;
	}
}

void mw_store_encode_sample(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_sample *sample = fact;

	(void)limit;
	mw_store_put_number(put, sample->time_ns);
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

void mw_store_encode_mark(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_mark *mark = fact;

	(void)limit;
	mw_store_put_number(put, mark->number);
	mw_store_put_number(put, mark->time_ns);
	mw_store_put_string(put, mark->name);
}

void mw_store_encode_mapping(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_store_moment_mapping *at = fact;

	(void)limit;
	mw_store_put_number(put, at->moment);
	mw_store_put_number(put, at->mapping->start);
	mw_store_put_number(put, at->mapping->end);
	mw_store_put_number(put, at->mapping->kind);
	put_known(put, at->mapping->resident);
	mw_store_put_string(put, at->mapping->path);
	mw_store_put_number(put, (at->mapping->exec ? 1U : 0U) | (at->mapping->accessible ? 2U : 0U));
}

void mw_store_encode_symbol(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_symbol *symbol = fact;
	size_t count = lesser(symbol->frame_count, lesser(limit, MW_STORE_SYMBOL_LIST_MAX));

	put_reference(put, symbol->module);
	mw_store_put_number(put, symbol->addr);
	mw_store_put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		const struct mw_stored_frame *frame = &symbol->frames[i];

		mw_store_put_string(put, frame->function);
		mw_store_put_string(put, frame->file);
		mw_store_put_number(put, frame->line);
		mw_store_put_number(put, frame->offset);
		mw_store_put_number(put, frame->inlined ? 1 : 0);
	}
}

void mw_store_encode_end(struct mw_store_put *put, const void *fact, size_t limit)
{
	const struct mw_stored_end *end = fact;
	size_t count = lesser(end->figure_count, lesser(limit, MW_STORE_LIST_MAX));

	mw_store_put_number(put, end->length_ns);
	mw_store_put_number(put, end->ended);
	mw_store_put_number(put, end->has_exit_status ? 1 : 0);
	mw_store_put_signed(put, end->exit_status);
	mw_store_put_string(put, end->left_behind);
	mw_store_put_number(put, count);
	for (size_t i = 0; i < count; i++) {
		mw_store_put_string(put, end->figures[i].name);
		mw_store_put_number(put, end->figures[i].value);
	}
}
