// SPDX-License-Identifier: MIT
/*
 * fuzz_store: libFuzzer's bytes as a recording. Checksums are not looked at in this build. Whatever the bytes are,
 * reading ends, strings end, and events name only what was told.
 */
#include "store/format.h"
#include "store/reader.h"
#include "view/kept_heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACKS_SEEN 4096U

struct seen {
	uint8_t stacks[STACKS_SEEN], threads[STACKS_SEEN]; /* of process 0 */
	uint32_t intervals;
	volatile size_t sum;
	struct mw_kept_heap heap;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void look(struct seen *seen, const char *text)
{
	seen->sum += text ? strlen(text) : 0;
}

static void insist(bool good)
{
	if (!good)
		abort();
}

static struct mw_error *take_target(void *context, uint32_t process, const struct mw_stored_target *target)
{
	(void)process;
	look(context, target->comm);
	look(context, target->exe);
	look(context, target->engine);
	look(context, target->engine_reason);
	for (size_t i = 0; i < target->command_count; i++)
		look(context, target->command[i]);
	return NULL;
}

static struct mw_error *take_hook(void *context, uint32_t process, const struct mw_stored_hook *hook)
{
	(void)process;
	look(context, hook->function);
	look(context, hook->module);
	look(context, hook->refused);
	insist(hook->number < MW_STORE_NUMBER_MAX && hook->kind < MW_KIND_COUNT);
	return NULL;
}

static struct mw_error *take_module(void *context, uint32_t process, const struct mw_stored_module *module)
{
	struct seen *seen = context;

	(void)process;
	look(seen, module->path);
	for (size_t i = 0; i < module->build_id_size; i++)
		seen->sum += module->build_id[i];
	insist(module->number < MW_STORE_NUMBER_MAX);
	return NULL;
}

static struct mw_error *take_before(void *context, uint32_t process, mw_addr start, mw_addr end)
{
	(void)context, (void)process;
	insist(start <= end);
	return NULL;
}

static struct mw_error *take_thread(void *context, uint32_t process, const struct mw_stored_thread *thread)
{
	struct seen *seen = context;

	look(seen, thread->name);
	if (process == 0 && thread->number < STACKS_SEEN)
		seen->threads[thread->number] = 1;
	return NULL;
}

static struct mw_error *take_stack(void *context, uint32_t process, uint32_t number, const struct mw_raw_stack *stack)
{
	struct seen *seen = context;

	insist(stack->kind < MW_KIND_COUNT && stack->cut <= MW_STACK_BROKEN);
	for (uint32_t i = 0; i < stack->count; i++)
		insist(stack->frames[i].module < MW_STORE_NUMBER_MAX || stack->frames[i].module == MW_MODULE_NONE);
	if (process == 0 && number < STACKS_SEEN)
		seen->stacks[number] = 1;
	return NULL;
}

static struct mw_error *take_interval(void *context, uint32_t process, uint16_t number, uint64_t bytes)
{
	struct seen *seen = context;

	insist(bytes && number && number <= MW_INTERVAL_MAX);
	if (process == 0)
		insist(number == ++seen->intervals);
	return NULL;
}

static struct mw_error *take_events(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	const struct seen *seen = context;

	insist(count <= MW_STORE_EVENTS_MAX);
	for (size_t i = 0; i < count; i++) {
		insist(process != 0 || events[i].interval <= seen->intervals);
		insist(events[i].type <= MW_EVENT_REMAP_FAIL && events[i].kind < MW_KIND_COUNT);
		if (process == 0 && events[i].stack < STACKS_SEEN)
			insist(seen->stacks[events[i].stack]);
		if (process == 0 && events[i].thread < STACKS_SEEN)
			insist(seen->threads[events[i].thread]);
	}
	return NULL;
}

static struct mw_error *take_sample(void *context, uint32_t process, const struct mw_stored_sample *sample)
{
	struct seen *seen = context;

	(void)process;
	seen->sum += sample->arena_size;
	return NULL;
}

static struct mw_error *take_mark(void *context, uint32_t process, const struct mw_stored_mark *mark)
{
	(void)process;
	look(context, mark->name);
	return NULL;
}

static struct mw_error *take_mapping(void *context, uint32_t process, enum mw_stored_moment moment,
				     const struct mw_stored_mapping *mapping)
{
	(void)process;
	look(context, mapping->path);
	insist(moment <= MW_STORED_END && mapping->start <= mapping->end && mapping->kind < MW_REGION_KIND_COUNT);
	return NULL;
}

static struct mw_error *take_symbol(void *context, uint32_t process, const struct mw_stored_symbol *symbol)
{
	(void)process;
	for (size_t i = 0; i < symbol->frame_count; i++) {
		look(context, symbol->frames[i].function);
		look(context, symbol->frames[i].file);
	}
	return NULL;
}

static struct mw_error *take_end(void *context, uint32_t process, const struct mw_stored_end *end)
{
	(void)process;
	look(context, end->left_behind);
	for (size_t i = 0; i < end->figure_count; i++)
		look(context, end->figures[i].name);
	return NULL;
}

static struct mw_error *take_leaks(void *context, uint32_t process, const struct mw_stored_leaks *leaks)
{
	(void)process;
	for (size_t i = 0; i < leaks->holder_count; i++)
		look(context, leaks->holder[i]);
	return NULL;
}

static struct mw_error *take_change(void *context, uint32_t process, const struct mw_stored_change *change)
{
	struct seen *seen = context;

	(void)process;
	seen->sum += strlen(change->name) + strlen(change->detail);
	return NULL;
}

static struct mw_error *take_pool(void *context, uint32_t process, const struct mw_stored_pool *pool)
{
	(void)process;
	look(context, pool->pool);
	look(context, pool->name);
	look(context, pool->path);
	look(context, pool->example);
	return NULL;
}

/* Parts of a look become a look, or an error. */
static struct mw_error *take_heap(void *context, uint32_t process, const struct mw_stored_heap *heap)
{
	struct seen *seen = context;

	(void)process;
	return mw_kept_heap_take(&seen->heap, heap);
}

static void look_at_heap(struct seen *seen)
{
	const struct mw_heap_report *heap = seen->heap.report;

	if (!heap)
		return;
	look(seen, heap->exe);
	look(seen, heap->build_id);
	look(seen, heap->why);
	insist(strlen(heap->comm) < sizeof(heap->comm) && strlen(heap->boot_id) < sizeof(heap->boot_id));
	for (size_t i = 0; i < heap->line_count; i++)
		seen->sum += strlen(heap->lines[i].name) + strlen(heap->lines[i].detail);
	for (size_t i = 0; i < heap->allocator_count; i++) {
		seen->sum += strlen(heap->allocators[i].name) + strlen(heap->allocators[i].version);
		insist(heap->allocators[i].walked || heap->allocators[i].why);
	}
	for (size_t i = 0; i < heap->group_count; i++) {
		const struct mw_heap_group *group = &heap->groups[i];

		insist(group->verdict <= MW_REACH_COUNT && group->sample_count &&
		       group->sample_count <= MW_HEAP_SAMPLES);
		for (size_t j = 0; j < group->holder_count; j++)
			seen->sum += strlen(group->holder[j]);
		for (size_t j = 0; j < group->content_count; j++)
			for (size_t k = 0; k < group->contents[j].note_count; k++)
				seen->sum += strlen(group->contents[j].notes[k].text);
	}
	for (size_t i = 0; i < heap->gap_count; i++)
		seen->sum += strlen(heap->gaps[i].why);
	for (size_t i = 0; i < heap->holder_count; i++)
		seen->sum += strlen(heap->holders[i].name);
	for (size_t i = 0; i < heap->advice_count; i++)
		seen->sum += strlen(heap->advice[i]);
}

static struct mw_error *take_settle(void *context, uint32_t process)
{
	(void)context;
	insist(process < MW_STORE_PROCESS_MAX);
	return NULL;
}

static void read_file(int fd)
{
	static struct seen seen;
	const struct mw_store_visitor visitor = {.context = &seen,
						 .target = take_target,
						 .hook = take_hook,
						 .module = take_module,
						 .before = take_before,
						 .thread = take_thread,
						 .stack = take_stack,
						 .interval = take_interval,
						 .events = take_events,
						 .settle = take_settle,
						 .sample = take_sample,
						 .mark = take_mark,
						 .mapping = take_mapping,
						 .symbol = take_symbol,
						 .end = take_end,
						 .leaks = take_leaks,
						 .heap = take_heap,
						 .change = take_change,
						 .pool = take_pool};
	struct mw_store_reader *reader;
	struct mw_store_state state;
	struct mw_error *err;
	char path[32];

	memset(&seen, 0, sizeof(seen));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = mw_store_open(path, &reader);
	if (err) {
		mw_error_destroy(err);
		return;
	}
	err = mw_store_read(reader, &visitor, &state);
	insist(err || (state.good <= state.size && state.cut == (state.why != NULL)));
	if (!err)
		look_at_heap(&seen);
	mw_error_destroy(err);
	mw_store_close(reader);
	mw_kept_heap_deinit(&seen.heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	insist(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
	read_file(fd);
	return 0;
}
