// SPDX-License-Identifier: MIT
/* careful.c: see careful.h. */
#include "session/careful.h"

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
	struct mw_careful *careful = context;
	struct question question = {&careful->inner, module, addr, frames, count, NULL};

	if (!careful->crashed && mw_crash_try(ask, &question))
		return question.err;
	careful->crashed = true;
	*frames = &careful->unknown;
	*count = 1;
	return NULL;
}

struct mw_view_symbols mw_careful_symbols(struct mw_careful *careful, const struct mw_view_symbols *inner)
{
	*careful = (struct mw_careful){.inner = *inner};
	return (struct mw_view_symbols){.context = careful, .resolve = resolve};
}
