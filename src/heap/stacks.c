// SPDX-License-Identifier: MIT
/* stacks.c: threads' stacks, unwound when they are first asked for (stacks.h). */
#include "heap/stacks.h"

#include "base/vector.h"
#include "tracee/tracee.h"
#include "unwind/unwind.h"

#include <stdlib.h>

#define DEPTH_MAX 512u

struct stack {
	bool tried;
	struct mw_unwound_frame *frames;
	uint32_t count;
};

struct mw_stacks {
	const struct mw_image *image;
	struct mw_symbolizer *symbolizer;
	struct mw_unwinder *unwinder; /* NULL: there is none for this machine */
	struct stack *items;          /* by thread of the image */
};

struct mw_error *mw_stacks_create(const struct mw_image *image, const struct mw_modules *modules,
				  struct mw_symbolizer *symbolizer, struct mw_stacks **out)
{
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	struct mw_stacks *stacks = calloc(1, sizeof(*stacks));
	struct mw_error *err = NULL;

	if (!stacks)
		return mw_error_nomem();
	stacks->image = image;
	stacks->symbolizer = symbolizer;
	stacks->items = calloc(image->thread_count + 1, sizeof(*stacks->items));
	if (!stacks->items)
		err = mw_error_nomem();
	else if (arch)
		err = mw_unwinder_libunwind(modules, arch, &stacks->unwinder);
	if (err) {
		mw_stacks_destroy(stacks);
		return err;
	}
	*out = stacks;
	return NULL;
}

void mw_stacks_destroy(struct mw_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; stacks->items && i < stacks->image->thread_count; i++)
		free(stacks->items[i].frames);
	free(stacks->items);
	mw_unwinder_destroy(stacks->unwinder);
	free(stacks);
}

static bool read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	return mw_image_read(context, addr, out, size);
}

static struct mw_error *unwind(struct mw_stacks *stacks, const struct mw_image_thread *thread, struct stack *stack)
{
	/* Only read from, by read_memory(). */
	const struct mw_memory_view view = {.context = (struct mw_image *)(uintptr_t)stacks->image,
					    .read = read_memory};
	enum mw_stack_cut cut;

	stack->tried = true;
	if (!stacks->unwinder || thread->register_count == 0)
		return NULL;
	stack->frames = calloc(DEPTH_MAX, sizeof(*stack->frames));
	if (!stack->frames)
		return mw_error_nomem();
	stacks->unwinder->ops->walk(stacks->unwinder, &thread->regs, &view, stack->frames, DEPTH_MAX, &stack->count,
				    &cut);
	return NULL;
}

static struct mw_error *name(struct mw_stacks *stacks, const struct stack *stack, struct mw_stack_place *place)
{
	const struct mw_unwound_frame *frame = &stack->frames[place->frame];
	const struct mw_symbol_frame *frames;
	size_t count;

	MW_TRY(mw_symbolizer_resolve(stacks->symbolizer, frame->module, frame->pc, place->frame > 0, &frames, &count));
	/* What is inlined has its variables in the frame of the function that it is inlined in. */
	if (count) {
		place->function = frames[count - 1].function;
		place->file = frames[count - 1].file;
		place->line = frames[count - 1].line;
	}
	return NULL;
}

struct mw_error *mw_stacks_find(struct mw_stacks *stacks, pid_t tid, mw_addr at, struct mw_stack_place *out)
{
	*out = (struct mw_stack_place){0};
	for (size_t i = 0; i < stacks->image->thread_count; i++) {
		const struct mw_image_thread *thread = &stacks->image->threads[i];
		struct stack *stack = &stacks->items[i];

		if (thread->tid != tid)
			continue;
		if (!stack->tried)
			MW_TRY(unwind(stacks, thread, stack));
		/* Each frame ends where the one that called it begins. */
		for (uint32_t k = 0; k < stack->count; k++) {
			if (stack->frames[k].cfa == 0)
				return NULL;
			if (at >= stack->frames[k].cfa)
				continue;
			out->frame = k;
			out->start = k ? stack->frames[k - 1].cfa : at;
			out->end = stack->frames[k].cfa;
			return at >= out->start ? name(stacks, stack, out) : NULL;
		}
		return NULL;
	}
	return NULL;
}
