// SPDX-License-Identifier: MIT
/* rig.c: what the store's tests share (rig.h). */
#include "rig.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rig_good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static struct mw_error *give_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct rig_inner *inner = context;

	(void)stack;
	*id = inner->give_stack != UINT32_MAX ? inner->give_stack : inner->next_stack;
	if (*id >= inner->next_stack)
		inner->next_stack = *id + 1;
	inner->give_stack = UINT32_MAX;
	return NULL;
}

static struct mw_error *give_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct rig_inner *inner = context;

	(void)tid, (void)name, (void)fresh;
	*number = inner->give_thread != UINT32_MAX ? inner->give_thread : inner->next_thread;
	if (*number >= inner->next_thread)
		inner->next_thread = *number + 1;
	inner->give_thread = UINT32_MAX;
	return NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct rig_inner *inner = context;

	(void)event;
	if (inner->refuse)
		return mw_error_create(MW_ERROR_DATA, 0, "refused");
	inner->events++;
	return NULL;
}

static struct mw_error *give_interval(void *context, uint64_t bytes, uint16_t *number)
{
	(void)context;
	*number = (uint16_t)bytes; /* no other has it */
	return NULL;
}

static bool knows(void *context, mw_addr addr)
{
	(void)context;
	return addr == 0x1234;
}

void rig_inner_init(struct rig_inner *inner)
{
	*inner = (struct rig_inner){.give_stack = UINT32_MAX, .give_thread = UINT32_MAX};
	inner->sink = (struct mw_event_sink){.context = inner,
					     .stack = give_stack,
					     .thread = give_thread,
					     .event = take_event,
					     .knows = knows,
					     .interval = give_interval};
}

static char directory[64];

const char *rig_path(const char *name)
{
	static char path[512];

	if (!directory[0]) {
		strcpy(directory, "/tmp/mw-store-XXXXXX");
		assert_non_null(mkdtemp(directory));
	}
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

int rig_cleanup(void **state)
{
	DIR *all;
	struct dirent *entry;

	(void)state;
	if (!directory[0])
		return 0;
	all = opendir(directory);
	while (all && (entry = readdir(all)))
		unlink(rig_path(entry->d_name));
	closedir(all);
	rmdir(directory);
	directory[0] = 0;
	return 0;
}

/* A string in quotes, "-" for NULL. */
static const char *quoted(const char *text)
{
	static char rooms[8][4096];
	static unsigned int turn;
	char *room = rooms[turn++ % 8];

	if (!text)
		return "-";
	snprintf(room, sizeof(rooms[0]), "\"%s\"", text);
	return room;
}

static struct mw_error *told_target(void *context, uint32_t process, const struct mw_stored_target *target)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u target %d %s %s %" PRId64 " %d %d %d %d %u %s %s", process, target->pid,
		quoted(target->comm), quoted(target->exe), target->started_realtime_ns, target->track_heap,
		target->track_vm, target->launched, target->attached, target->depth, quoted(target->engine),
		quoted(target->engine_reason));
	for (size_t i = 0; i < target->command_count; i++)
		fprintf(told->stream, " %s", quoted(target->command[i]));
	fprintf(told->stream, " %d %" PRIu64 " %" PRIu64 " %s %d %d %u %d", target->limit.of, target->limit.bytes,
		target->limit.used, quoted(target->distribution), target->own_root, target->by_root, target->runtimes,
		target->knows_children);
	for (size_t i = 0; i < target->child_count; i++)
		fprintf(told->stream, " %d:%s:%d", target->children[i].pid, quoted(target->children[i].comm),
			target->children[i].watched);
	fprintf(told->stream, "\n");
	return NULL;
}

static struct mw_error *told_hook(void *context, uint32_t process, const struct mw_stored_hook *hook)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u hook %u %s %s %s %" PRIx64 " %u %u\n", process, hook->number, quoted(hook->function),
		quoted(hook->module), quoted(hook->refused), hook->address, hook->role, hook->kind);
	return NULL;
}

static struct mw_error *told_module(void *context, uint32_t process, const struct mw_stored_module *module)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u module %u %s ", process, module->number, quoted(module->path));
	for (size_t i = 0; i < module->build_id_size; i++)
		fprintf(told->stream, "%02x", module->build_id[i]);
	fprintf(told->stream, " %" PRIx64 " %" PRIx64 " %" PRIx64 " %d %d\n", module->start, module->end, module->base,
		module->suspect, module->has_file);
	return NULL;
}

static struct mw_error *told_before(void *context, uint32_t process, mw_addr start, mw_addr end)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u before %" PRIx64 " %" PRIx64 "\n", process, start, end);
	return NULL;
}

static struct mw_error *told_thread(void *context, uint32_t process, const struct mw_stored_thread *thread)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u thread %u %d %s\n", process, thread->number, thread->tid, quoted(thread->name));
	return NULL;
}

static struct mw_error *told_stack(void *context, uint32_t process, uint32_t number, const struct mw_raw_stack *stack)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u stack %u %d %u %d", process, number, stack->cut, stack->hook, stack->kind);
	for (uint32_t i = 0; i < stack->count; i++)
		fprintf(told->stream, " %" PRIx64 "@%u", stack->frames[i].addr, stack->frames[i].module);
	fprintf(told->stream, "\n");
	return NULL;
}

static struct mw_error *told_interval(void *context, uint32_t process, uint16_t number, uint64_t bytes)
{
	const struct rig_told *told = context;

	fprintf(told->stream, "%u interval %u %" PRIu64 "\n", process, number, bytes);
	return NULL;
}

static struct mw_error *told_events(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	struct rig_told *told = context;

	for (size_t i = 0; i < count; i++) {
		fprintf(told->stream, "%u event %d %d %" PRIu64 " %" PRIx64 " %" PRIu64 " %u %u", process,
			events[i].type, events[i].kind, events[i].time_ns, events[i].addr, events[i].size,
			events[i].stack, events[i].thread);
		if (events[i].interval || events[i].unsampled)
			fprintf(told->stream, " %u %d", events[i].interval, events[i].unsampled);
		fprintf(told->stream, "\n");
	}
	told->events += count;
	return NULL;
}

static struct mw_error *told_sample(void *context, uint32_t process, const struct mw_stored_sample *sample)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u sample", process);
	for (const uint64_t *value = &sample->time_ns; value <= &sample->arena_size; value++)
		fprintf(told->stream, " %" PRIu64, *value);
	fprintf(told->stream, "\n");
	return NULL;
}

static struct mw_error *told_mark(void *context, uint32_t process, const struct mw_stored_mark *mark)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u mark %u %" PRIu64 " %s\n", process, mark->number, mark->time_ns, quoted(mark->name));
	return NULL;
}

static struct mw_error *told_mapping(void *context, uint32_t process, enum mw_stored_moment moment,
				     const struct mw_stored_mapping *mapping)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u mapping %d %" PRIx64 " %" PRIx64 " %u %" PRIu64 " %d %d %" PRIu64 " %" PRIu64 " %s\n",
		process, moment, mapping->start, mapping->end, mapping->kind, mapping->resident, mapping->exec,
		mapping->accessible, mapping->committed, mapping->used, quoted(mapping->path));
	return NULL;
}

static struct mw_error *told_symbol(void *context, uint32_t process, const struct mw_stored_symbol *symbol)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u symbol %u %" PRIx64, process, symbol->module, symbol->addr);
	for (size_t i = 0; i < symbol->frame_count; i++) {
		const struct mw_stored_frame *frame = &symbol->frames[i];

		fprintf(told->stream, " %s %s %u %" PRIu64 " %d", quoted(frame->function), quoted(frame->file),
			frame->line, frame->offset, frame->inlined);
	}
	fprintf(told->stream, "\n");
	return NULL;
}

static struct mw_error *told_end(void *context, uint32_t process, const struct mw_stored_end *end)
{
	struct rig_told *told = context;

	fprintf(told->stream, "%u end %" PRIu64 " %u %d %d %s", process, end->length_ns, end->ended,
		end->has_exit_status, end->exit_status, quoted(end->left_behind));
	for (size_t i = 0; i < end->figure_count; i++)
		fprintf(told->stream, " %s=%" PRIu64, end->figures[i].name, end->figures[i].value);
	fprintf(told->stream, "\n");
	return NULL;
}

static void tell_amounts(FILE *stream, const struct mw_amount *amounts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(stream, " %" PRIu64 "/%" PRIu64, amounts[i].count, amounts[i].bytes);
}

static struct mw_error *told_leaks(void *context, uint32_t process, const struct mw_stored_leaks *leaks)
{
	const struct rig_told *told = context;

	fprintf(told->stream, "%u leaks %" PRIx64, process, leaks->stack);
	tell_amounts(told->stream, leaks->amounts, MW_REACH_COUNT);
	for (size_t i = 0; i < leaks->holder_count; i++)
		fprintf(told->stream, " %s", quoted(leaks->holder[i]));
	fprintf(told->stream, "\n");
	return NULL;
}

static struct mw_error *told_change(void *context, uint32_t process, const struct mw_stored_change *change)
{
	const struct rig_told *told = context;

	fprintf(told->stream, "%u change %u %s %s %" PRIx64 " %" PRId64 "\n", process, change->kind,
		quoted(change->name), quoted(change->detail), change->stack, change->bytes);
	return NULL;
}

static struct mw_error *told_pool(void *context, uint32_t process, const struct mw_stored_pool *pool)
{
	const struct rig_told *told = context;

	fprintf(told->stream, "%u pool %" PRIx64 " %s %s %s %s", process, pool->stack, quoted(pool->pool),
		quoted(pool->name), quoted(pool->path), quoted(pool->example));
	tell_amounts(told->stream, &pool->blocks, 1);
	fprintf(told->stream, "\n");
	return NULL;
}

static void tell_head(FILE *stream, const struct mw_heap_report *head)
{
	fprintf(stream,
		"%d %s %s %s %s %" PRIu64 " %" PRId64 " %x %d %s %" PRIu64 " %.9f %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %zu %zu %zu %zu %zu %zu",
		head->pid, quoted(head->comm), quoted(head->exe), quoted(head->build_id), quoted(head->boot_id),
		head->start_ticks, head->started_realtime_ns, head->by, head->forked, quoted(head->why), head->pause_ns,
		head->seconds, head->scanned, head->unread, head->rss, head->swapped, head->page_tables,
		head->line_count, head->allocator_count, head->group_count, head->gap_count, head->holder_count,
		head->advice_count);
	tell_amounts(stream, head->leaks, MW_REACH_COUNT);
}

static void tell_figures(FILE *stream, const struct mw_heap_figures *figures)
{
	fprintf(stream, "%s %s %s %d %s", quoted(figures->name), quoted(figures->version), quoted(figures->module),
		figures->walked, quoted(figures->why));
	tell_amounts(stream, &figures->live, 1);
	tell_amounts(stream, &figures->free, 1);
	fprintf(stream, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu",
		figures->retained, figures->trimmable, figures->cached, figures->skipped, figures->pinned_pages,
		figures->pinned, figures->arenas);
}

static void tell_group(FILE *stream, const struct mw_heap_group *group)
{
	fprintf(stream, "%s %" PRIu64 " %s %s %d", quoted(group->class_name), group->size, quoted(group->allocator),
		quoted(group->arena), group->verdict);
	tell_amounts(stream, &group->blocks, 1);
	for (size_t i = 0; i < group->holder_count; i++)
		fprintf(stream, " %s", quoted(group->holder[i]));
	for (size_t i = 0; i < group->sample_count; i++)
		fprintf(stream, " %" PRIx64, group->samples[i]);
	fprintf(stream, " %zu", group->content_count);
}

static void tell_content(FILE *stream, const struct mw_heap_content *content)
{
	fprintf(stream, "%" PRIx64 " %" PRIu64 " ", content->at, content->size);
	for (size_t i = 0; i < content->byte_count; i++)
		fprintf(stream, "%02x", content->bytes[i]);
	for (size_t i = 0; i < content->note_count; i++)
		fprintf(stream, " %" PRIu64 ":%s", content->notes[i].offset, quoted(content->notes[i].text));
}

static struct mw_error *told_heap(void *context, uint32_t process, const struct mw_stored_heap *heap)
{
	const struct rig_told *told = context;
	FILE *stream = told->stream;

	fprintf(stream, "%u heap %u ", process, heap->part);
	if (heap->part == MW_STORED_HEAP_HEAD)
		tell_head(stream, &heap->head);
	else if (heap->part == MW_STORED_HEAP_LINE)
		fprintf(stream, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			quoted(heap->line.name), quoted(heap->line.detail), heap->line.bytes, heap->line.swapped,
			heap->line.reserved, heap->line.committed, heap->line.used);
	else if (heap->part == MW_STORED_HEAP_ALLOCATOR)
		tell_figures(stream, &heap->allocator);
	else if (heap->part == MW_STORED_HEAP_GROUP)
		tell_group(stream, &heap->group);
	else if (heap->part == MW_STORED_HEAP_CONTENT)
		tell_content(stream, &heap->content);
	else if (heap->part == MW_STORED_HEAP_GAP)
		fprintf(stream, "%" PRIx64 " %" PRIu64 " %s", heap->gap.start, heap->gap.bytes, quoted(heap->gap.why));
	else if (heap->part == MW_STORED_HEAP_HOLDER) {
		fprintf(stream, "%s %u", quoted(heap->holder.name), heap->holder.depth);
		tell_amounts(stream, &heap->holder.retained, 1);
		tell_amounts(stream, &heap->holder.own, 1);
	} else if (heap->part == MW_STORED_HEAP_ADVICE) {
		fprintf(stream, "%s", quoted(heap->advice));
	}
	fprintf(stream, "\n");
	return NULL;
}

void rig_told_init(struct rig_told *told)
{
	told->events = 0;
	told->stream = open_memstream(&told->text, &told->size);
	assert_non_null(told->stream);
	told->visitor = (struct mw_store_visitor){
		.context = told,
		.target = told_target,
		.hook = told_hook,
		.module = told_module,
		.before = told_before,
		.thread = told_thread,
		.stack = told_stack,
		.interval = told_interval,
		.events = told_events,
		.sample = told_sample,
		.mark = told_mark,
		.mapping = told_mapping,
		.symbol = told_symbol,
		.end = told_end,
		.leaks = told_leaks,
		.heap = told_heap,
		.change = told_change,
		.pool = told_pool,
	};
}

void rig_told_deinit(struct rig_told *told)
{
	fclose(told->stream);
	free(told->text);
}

struct mw_error *rig_read(const char *path, struct rig_told *told, struct mw_store_state *state)
{
	struct mw_store_reader *reader;
	struct mw_error *err;

	MW_TRY(mw_store_open(path, &reader));
	err = mw_store_read(reader, &told->visitor, state);
	mw_store_close(reader);
	fflush(told->stream);
	return err;
}

uint8_t *rig_load(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

void rig_save(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}
