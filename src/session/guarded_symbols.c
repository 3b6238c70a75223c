// SPDX-License-Identifier: MIT
/* guarded_symbols.c: see guarded_symbols.h. */
#include "session/guarded_symbols.h"

#include "session/crash.h"

struct question {
	const struct mw_view_symbols *inner;
	uint32_t module;
	mw_addr addr;
	const struct mw_symbol_frame **frames;
	size_t *count;
	struct mw_error *err;
};

static void ask(void *context)
{
	struct question *question = context;

	question->err = question->inner->resolve(question->inner->context, question->module, question->addr,
						 question->frames, question->count);
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct mw_guarded_symbols *guarded = context;
	struct question question = {&guarded->inner, module, addr, frames, count, NULL};

	if (!guarded->crashed && mw_crash_try(ask, &question))
		return question.err;
	guarded->crashed = true;
	*frames = &guarded->unknown;
	*count = 1;
	return NULL;
}

struct mw_view_symbols mw_guarded_symbols_of(struct mw_guarded_symbols *guarded, const struct mw_view_symbols *inner)
{
	*guarded = (struct mw_guarded_symbols){.inner = *inner};
	return (struct mw_view_symbols){.context = guarded, .resolve = resolve};
}
