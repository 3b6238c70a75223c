// SPDX-License-Identifier: MIT
/* canon.c: events in a form that is the same whoever caught them (canon.h). */
#include "canon.h"

#include "symbol/modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FRAME_TEXT 200

struct canon_stack {
	char *text;
	uint64_t number; /* of its first use, from 1; 0: not used yet */
};

/* What a thread's calls that have begun gave up, and their stacks. */
struct canon_thread {
	mw_addr held_at;
	void *held;
	uint32_t heap, unmap, remap;
};

static const char *const type_names[] = {
	"alloc",       "free",      "realloc_begin", "realloc_end", "realloc_fail", "map",
	"unmap_begin", "unmap_end", "unmap_fail",    "remap_begin", "remap_end",    "remap_fail",
};
static const char *const kind_names[] = {"heap", "vm", "vm_internal"};
static const char *const cut_names[] = {"complete", "truncated", "broken"};

static void *boxed(uint64_t number)
{
	return (void *)(uintptr_t)(number + 1);
}

static uint64_t unboxed(void *value)
{
	return (uint64_t)(uintptr_t)value - 1;
}

/* --- stacks ------------------------------------------------------------------------------------------ */

static int write_frame(const struct canon *canon, const struct mw_raw_frame *frame, char *text, size_t size)
{
	const struct mw_modules *modules = canon->engine->ops->modules(canon->engine, canon->pid);
	const struct mw_module *module = NULL;
	const char *name;

	if (frame->module < mw_modules_count(modules))
		module = mw_modules_get(modules, frame->module);
	if (!module)
		return snprintf(text, size, " ?+%#" PRIx64, frame->addr);
	name = strrchr(module->path, '/');
	return snprintf(text, size, " %.120s+%#" PRIx64, name ? name + 1 : module->path, frame->addr - module->bias);
}

static char *write_stack(const struct canon *canon, const struct mw_raw_stack *stack)
{
	const struct mw_hook_info *hooks;
	size_t hook_count = canon->engine->ops->hooks(canon->engine, canon->pid, &hooks);
	size_t size = FRAME_TEXT * ((size_t)stack->count + 1), used;
	char *text = malloc(size);

	if (!text)
		return NULL;
	used = (size_t)snprintf(text, size, "%.100s %s %s",
				stack->hook < hook_count ? hooks[stack->hook].function : "?", kind_names[stack->kind],
				cut_names[stack->cut]);
	for (uint32_t i = 0; i < stack->count; i++)
		used += (size_t)write_frame(canon, &stack->frames[i], text + used, size - used);
	return text;
}

static uint64_t hash_raw(const struct mw_raw_stack *stack)
{
	uint64_t seed = stack->hook | (uint64_t)stack->kind << 32 | (uint64_t)stack->cut << 40;

	/* Frames have padding: addresses and modules go in one by one. */
	for (uint32_t i = 0; i < stack->count; i++) {
		const uint64_t words[] = {stack->frames[i].addr, stack->frames[i].module};

		seed = XXH3_64bits_withSeed(words, sizeof(words), seed);
	}
	return XXH3_64bits_withSeed("", 0, seed);
}

/* The stack with that text, made if there is none yet. Takes the text. */
static struct mw_error *stack_of_text(struct canon *canon, char *text, struct canon_stack **out)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));
	struct canon_stack *stack = mw_map_get(&canon->texts, hash);
	struct mw_error *err;

	if (stack) {
		free(text);
		*out = stack;
		return NULL;
	}
	stack = calloc(1, sizeof(*stack));
	err = stack ? mw_map_set(&canon->texts, hash, stack) : mw_error_nomem();
	if (err) {
		free(stack);
		free(text);
		return err;
	}
	stack->text = text;
	*out = stack;
	return NULL;
}

static struct mw_error *on_stack(void *context, const struct mw_raw_stack *raw, uint32_t *id)
{
	struct canon *canon = context;
	uint64_t hash = hash_raw(raw);
	void *known = mw_map_get(&canon->raw, hash);
	struct canon_stack *stack, **stacks;
	char *text;

	canon->stacks_seen++;
	if (known) {
		*id = (uint32_t)unboxed(known);
		return NULL;
	}
	stacks =
		mw_vector_room(canon->stacks, canon->stack_count, &canon->stack_capacity, sizeof(struct canon_stack *));
	if (!stacks)
		return mw_error_nomem();
	canon->stacks = stacks;
	text = write_stack(canon, raw);
	if (!text)
		return mw_error_nomem();
	MW_TRY(stack_of_text(canon, text, &stack));
	MW_TRY(mw_map_set(&canon->raw, hash, boxed(canon->stack_count)));
	*id = (uint32_t)canon->stack_count;
	canon->stacks[canon->stack_count++] = stack;
	return NULL;
}

/* " s7", the stack told first where nobody has used it yet. */
static void use_stack(struct canon *canon, uint32_t id, char text[24])
{
	struct canon_stack *stack = id < canon->stack_count ? canon->stacks[id] : NULL;

	if (!stack) {
		strcpy(text, " s-");
		return;
	}
	if (!stack->number) {
		stack->number = ++canon->next_stack;
		fprintf(canon->out, "stack %" PRIu64 " %s\n", stack->number, stack->text);
	}
	snprintf(text, 24, " s%" PRIu64, stack->number);
}

/* --- threads ----------------------------------------------------------------------------------------- */

static struct mw_error *on_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct canon *canon = context;
	void *known = mw_map_get(&canon->tids, (uint64_t)tid);
	struct canon_thread *threads;

	(void)name;
	if (known && !fresh) {
		*number = (uint32_t)unboxed(known);
		return NULL;
	}
	threads = mw_vector_room(canon->threads, canon->thread_count, &canon->thread_capacity,
				 sizeof(struct canon_thread));
	if (!threads)
		return mw_error_nomem();
	canon->threads = threads;
	MW_TRY(mw_map_set(&canon->tids, (uint64_t)tid, boxed(canon->thread_count)));
	threads[canon->thread_count] = (struct canon_thread){0, NULL, MW_STACK_NONE, MW_STACK_NONE, MW_STACK_NONE};
	*number = (uint32_t)canon->thread_count++;
	return NULL;
}

/* --- events ------------------------------------------------------------------------------------------ */

static struct mw_error *new_block(struct canon *canon, const struct mw_event *event, uint64_t *number)
{
	*number = canon->next_block++;
	return event->addr ? mw_map_set(&canon->blocks, event->addr, boxed(*number)) : NULL;
}

static void new_region(struct canon *canon, mw_addr start, uint64_t size, uint64_t *number)
{
	if (canon->region_count == CANON_REGIONS) { /* the oldest is forgotten */
		canon->region_count--;
		memmove(canon->regions, canon->regions + 1, canon->region_count * sizeof(canon->regions[0]));
	}
	*number = canon->next_region++;
	canon->regions[canon->region_count++] = (struct canon_region){start, start + size, *number};
}

/* Where an address stands in the newest mapping that has it: "r7+0x1000". */
static void write_region(const struct canon *canon, mw_addr addr, char text[48])
{
	for (size_t i = canon->region_count; i-- > 0;) {
		const struct canon_region *region = &canon->regions[i];

		if (addr >= region->start && addr < region->end) {
			snprintf(text, 48, "r%" PRIu64 "+%#" PRIx64, region->number, addr - region->start);
			return;
		}
	}
	strcpy(text, "r-");
}

static void forget_regions(struct canon *canon, mw_addr start, uint64_t size)
{
	size_t left = 0;

	for (size_t i = 0; i < canon->region_count; i++)
		if (canon->regions[i].start < start || canon->regions[i].end > start + size)
			canon->regions[left++] = canon->regions[i];
	canon->region_count = left;
}

static struct mw_error *tell_heap(struct canon *canon, const struct mw_event *event, struct canon_thread *thread)
{
	const char *type = type_names[event->type];
	char stack[24];
	uint64_t number;
	void *block;

	switch (event->type) {
	case MW_EVENT_FREE:
	case MW_EVENT_REALLOC_BEGIN:
		block = mw_map_remove(&canon->blocks, event->addr);
		if (event->type == MW_EVENT_REALLOC_BEGIN)
			*thread = (struct canon_thread){event->addr, block, event->stack, thread->unmap, thread->remap};
		if (block) {
			fprintf(canon->out, "%s heap #%" PRIu64 " t%u\n", type, unboxed(block), event->thread);
			return NULL;
		}
		if (event->type == MW_EVENT_FREE)
			use_stack(canon, event->stack, stack);
		fprintf(canon->out, "%s heap #- %" PRIu64 "%s t%u\n", type, event->size,
			event->type == MW_EVENT_FREE ? stack : "", event->thread);
		return NULL;
	case MW_EVENT_REALLOC_FAIL:
		fprintf(canon->out, "%s heap t%u\n", type, event->thread);
		return thread->held ? mw_map_set(&canon->blocks, thread->held_at, thread->held) : NULL;
	default:
		use_stack(canon, event->stack != MW_STACK_NONE ? event->stack : thread->heap, stack);
		MW_TRY(new_block(canon, event, &number));
		fprintf(canon->out, "%s heap #%" PRIu64 " %" PRIu64 "%s t%u%s\n", type, number, event->size, stack,
			event->thread, event->addr ? "" : " null");
		return NULL;
	}
}

static void tell_vm(struct canon *canon, const struct mw_event *event, struct canon_thread *thread)
{
	const char *type = type_names[event->type], *kind = kind_names[event->kind];
	bool remap = event->type >= MW_EVENT_REMAP_BEGIN;
	uint32_t *begun = remap ? &thread->remap : &thread->unmap;
	uint32_t used = event->stack != MW_STACK_NONE ? event->stack : *begun;
	char where[48], stack[24];
	uint64_t number = 0;

	switch (event->type) {
	case MW_EVENT_UNMAP_BEGIN:
	case MW_EVENT_REMAP_BEGIN:
		*begun = event->stack;
		write_region(canon, event->addr, where);
		fprintf(canon->out, "%s %s %s %" PRIu64 " t%u\n", type, kind, where, event->size, event->thread);
		return;
	case MW_EVENT_UNMAP_FAIL:
	case MW_EVENT_REMAP_FAIL:
		fprintf(canon->out, "%s %s t%u\n", type, kind, event->thread);
		return;
	case MW_EVENT_UNMAP_END:
		use_stack(canon, used, stack);
		forget_regions(canon, event->addr, event->size);
		fprintf(canon->out, "%s %s%s t%u\n", type, kind, stack, event->thread);
		return;
	default:
		use_stack(canon, event->type == MW_EVENT_MAP ? event->stack : used, stack);
		new_region(canon, event->addr, event->size, &number);
		fprintf(canon->out, "%s %s r%" PRIu64 " %" PRIu64 "%s t%u\n", type, kind, number, event->size, stack,
			event->thread);
	}
}

static struct mw_error *on_event(void *context, const struct mw_event *event)
{
	struct canon *canon = context;

	canon->events++;
	if (event->type > MW_EVENT_REMAP_FAIL || event->kind >= MW_KIND_COUNT || event->thread >= canon->thread_count)
		return mw_error_create(MW_ERROR_DATA, 0, "event %d of kind %d by thread %u is invalid",
				       (int)event->type, (int)event->kind, event->thread);
	if (!canon->out) {
		/* Only what knows() has to know. */
		if (event->type == MW_EVENT_ALLOC || event->type == MW_EVENT_REALLOC_END)
			return event->addr ? mw_map_set(&canon->blocks, event->addr, boxed(0)) : NULL;
		if (event->type == MW_EVENT_FREE || event->type == MW_EVENT_REALLOC_BEGIN)
			mw_map_remove(&canon->blocks, event->addr);
		return NULL;
	}
	if (event->kind == MW_KIND_HEAP)
		return tell_heap(canon, event, &canon->threads[event->thread]);
	tell_vm(canon, event, &canon->threads[event->thread]);
	return NULL;
}

static bool on_knows(void *context, mw_addr addr)
{
	const struct canon *canon = context;

	return mw_map_get(&canon->blocks, addr) != NULL;
}

/* An interval is known by its bytes. */
static struct mw_error *on_interval(void *context, uint64_t bytes, uint16_t *number)
{
	(void)context;
	*number = (uint16_t)bytes;
	return NULL;
}

void canon_init(struct canon *canon, const struct mw_engine *engine, pid_t pid, FILE *out, struct mw_event_sink *sink)
{
	memset(canon, 0, sizeof(*canon));
	canon->engine = engine;
	canon->pid = pid;
	canon->out = out;
	*sink = (struct mw_event_sink){.context = canon,
				       .stack = on_stack,
				       .thread = on_thread,
				       .event = on_event,
				       .knows = on_knows,
				       .interval = on_interval};
}

void canon_deinit(struct canon *canon)
{
	void *value;

	for (size_t i = 0; mw_map_next(&canon->texts, &i, &value);) {
		struct canon_stack *stack = value;

		free(stack->text);
		free(stack);
	}
	mw_map_deinit(&canon->raw);
	mw_map_deinit(&canon->texts);
	mw_map_deinit(&canon->blocks);
	mw_map_deinit(&canon->tids);
	free(canon->stacks);
	free(canon->threads);
}
