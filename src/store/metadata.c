// SPDX-License-Identifier: MIT
/* metadata.c: what the writer receives beside events (writer.h). */
#include "store/writer_state.h"

static void emit(struct mw_store_writer *writer, uint32_t process, enum mw_store_chunk_type type,
		 mw_store_encoder encode, const void *fact, size_t items)
{
	struct mw_store_stream *stream = mw_store_stream_of(writer, process);

	if (stream)
		mw_store_stream_emit(stream, type, encode, fact, items);
}

void mw_store_target(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_target *target)
{
	emit(writer, process, MW_STORE_TARGETS, mw_store_encode_target, target, target->command_count);
}

void mw_store_hook(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_hook *hook)
{
	if (hook->number < MW_STORE_NUMBER_MAX)
		emit(writer, process, MW_STORE_HOOKS, mw_store_encode_hook, hook, 0);
}

void mw_store_module(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_module *module)
{
	if (module->number < MW_STORE_NUMBER_MAX)
		emit(writer, process, MW_STORE_MODULES, mw_store_encode_module, module, 0);
}

void mw_store_before(struct mw_store_writer *writer, uint32_t process, mw_addr start, mw_addr end)
{
	const struct mw_store_range range = {start, end};
	struct mw_store_stream *stream = mw_store_stream_of(writer, process);

	if (!stream)
		return;
	/* It was not there yet for the events received up to now. */
	if (stream->event_count)
		mw_store_stream_close_events(stream);
	mw_store_stream_emit(stream, MW_STORE_BEFORE, mw_store_encode_before, &range, 0);
}

void mw_store_sample(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_sample *sample)
{
	emit(writer, process, MW_STORE_SAMPLES, mw_store_encode_sample, sample, 0);
}

void mw_store_mark(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_mark *mark)
{
	emit(writer, process, MW_STORE_MARKS, mw_store_encode_mark, mark, 0);
}

void mw_store_mapping(struct mw_store_writer *writer, uint32_t process, enum mw_stored_moment moment,
		      const struct mw_stored_mapping *mapping)
{
	const struct mw_store_moment_mapping at = {moment, mapping};

	emit(writer, process, MW_STORE_MAPPINGS, mw_store_encode_mapping, &at, 0);
}

void mw_store_symbol(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_symbol *symbol)
{
	emit(writer, process, MW_STORE_SYMBOLS, mw_store_encode_symbol, symbol, symbol->frame_count);
}

void mw_store_end(struct mw_store_writer *writer, uint32_t process, const struct mw_stored_end *end)
{
	emit(writer, process, MW_STORE_ENDS, mw_store_encode_end, end, end->figure_count);
}

/* --- as a receiver --------------------------------------------------------------------------------------- */

#define RECEIVE(what)                                                                                                  \
	static struct mw_error *on_##what(void *context, uint32_t process, const struct mw_stored_##what *what)        \
	{                                                                                                              \
		mw_store_##what(context, process, what);                                                               \
		return NULL;                                                                                           \
	}

MW_STORE_EACH(RECEIVE)

static struct mw_error *on_before(void *context, uint32_t process, mw_addr start, mw_addr end)
{
	mw_store_before(context, process, start, end);
	return NULL;
}

static struct mw_error *on_mapping(void *context, uint32_t process, enum mw_stored_moment moment,
				   const struct mw_stored_mapping *mapping)
{
	mw_store_mapping(context, process, moment, mapping);
	return NULL;
}

struct mw_store_visitor mw_store_receiver(struct mw_store_writer *writer)
{
	return MW_STORE_VISITOR(writer);
}
