// SPDX-License-Identifier: MIT
/* format.c: the headers of files and chunks, and events in columns (format.h). */
#include "store/format.h"

#include <string.h>
#include <xxhash.h>

#define HASH_AT 32u /* where the hash is in a chunk's header, and what of the header it is of */

void mw_store_pack_file(uint8_t out[MW_STORE_FILE_HEADER])
{
	static const uint8_t magic[8] = {0x89, 'M', 'W', 'R', 'E', 'C', '\r', '\n'};

	memcpy(out, magic, sizeof(magic));
	mw_store_save32(out + 8, MW_STORE_VERSION);
	mw_store_save32(out + 12, 0);
}

static uint64_t hash_of(const uint8_t *header, const uint8_t *stored, size_t size)
{
	return XXH64(stored, size, XXH64(header, HASH_AT, 0));
}

void mw_store_pack_chunk(struct mw_store_chunk *chunk, const uint8_t *stored, uint8_t out[MW_STORE_CHUNK_HEADER])
{
	mw_store_save32(out, MW_STORE_CHUNK_MAGIC);
	mw_store_save32(out + 4, chunk->type | (uint32_t)chunk->coding << 16);
	mw_store_save32(out + 8, chunk->process);
	mw_store_save32(out + 12, chunk->count);
	mw_store_save64(out + 16, chunk->sequence);
	mw_store_save32(out + 24, chunk->raw_size);
	mw_store_save32(out + 28, chunk->stored_size);
	chunk->hash = hash_of(out, stored, chunk->stored_size);
	mw_store_save64(out + HASH_AT, chunk->hash);
}

bool mw_store_unpack_chunk(const uint8_t in[MW_STORE_CHUNK_HEADER], struct mw_store_chunk *out)
{
	uint32_t kinds = mw_store_load32(in + 4);

	*out = (struct mw_store_chunk){
		.type = (uint16_t)kinds,
		.coding = (uint16_t)(kinds >> 16),
		.process = mw_store_load32(in + 8),
		.count = mw_store_load32(in + 12),
		.sequence = mw_store_load64(in + 16),
		.raw_size = mw_store_load32(in + 24),
		.stored_size = mw_store_load32(in + 28),
		.hash = mw_store_load64(in + HASH_AT),
	};
	return mw_store_load32(in) == MW_STORE_CHUNK_MAGIC;
}

bool mw_store_hash_fits(const struct mw_store_chunk *chunk, const uint8_t header[MW_STORE_CHUNK_HEADER],
			const uint8_t *stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	/* Nobody guesses a hash: what is behind it is to be tried. */
	(void)chunk, (void)header, (void)stored;
	return true;
#else
	return hash_of(header, stored, chunk->stored_size) == chunk->hash;
#endif
}

/* --- events ---------------------------------------------------------------------------------------------- */

/* Where things are in the head of the content. */
enum { SHIFT_AT = 0, WIDTHS_AT = 1, ZERO_AT = 7, TIME_AT = 8, ADDR_AT = 16, HEAD_SIZE = 24 };
enum column { TIME, THREAD, STACK, ADDR, SIZE, SAMPLED, COLUMN_COUNT };

static const uint8_t widest[COLUMN_COUNT] = {8, 4, 4, 8, 8, 2};

/* An event's first byte. */
enum { TYPE_MASK = 0x0f, KIND_SHIFT = 4, KIND_MASK = 0x30, HAS_STACK = 0x40, HAS_SIZE = 0x80 };

#define SHIFT_MAX  12u
#define SLOT_COUNT 64u   /* threads by their number modulo that: where each was last */
#define BLOCK      1024u /* events that are handled at a time, so that they stay in the first cache */

struct encoder {
	const struct mw_event *events;
	size_t count;
	uint8_t *at;
	struct mw_store_planes *planes;
	unsigned int shift;
};

/* Write the lowest `width` bytes of values, each byte's plane by itself. */
static void split(struct encoder *encoder, const uint64_t *values, size_t count, unsigned int width,
		  const uint8_t *begin)
{
	for (unsigned int plane = 0; plane < width; plane++) {
		uint8_t *out = encoder->at;

		for (size_t i = 0; i < count; i++)
			out[i] = (uint8_t)(values[i] >> (8 * plane));
		encoder->at += count;
		encoder->planes->ends[encoder->planes->count++] = (uint32_t)(encoder->at - begin);
	}
}

static size_t values_of(const struct encoder *encoder, enum column column, uint64_t *out)
{
	const struct mw_event *events = encoder->events;
	uint64_t last[SLOT_COUNT], before = events[0].time_ns;
	size_t used = 0;

	if (column == ADDR)
		for (size_t i = 0; i < SLOT_COUNT; i++)
			last[i] = events[0].addr >> encoder->shift;
	for (size_t i = 0; i < encoder->count; i++) {
		const struct mw_event *event = &events[i];

		if (column == TIME) {
			out[i] = event->time_ns - before;
			before = event->time_ns;
		} else if (column == THREAD) {
			out[i] = event->thread;
		} else if (column == ADDR) {
			uint64_t *slot = &last[event->thread % SLOT_COUNT], at = event->addr >> encoder->shift;

			out[i] = mw_store_zigzag(at - *slot);
			*slot = at;
		} else if (column == STACK) {
			out[used] = event->stack;
			used += event->stack != MW_STACK_NONE;
		} else if (column == SAMPLED) {
			out[i] = (uint64_t)event->interval << 1 | event->unsampled;
		} else {
			out[used] = event->size;
			used += event->size != MW_SIZE_UNKNOWN;
		}
	}
	return column == STACK || column == SIZE ? used : encoder->count;
}

static uint8_t width_of(const uint64_t *values, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= values[i];
	return all ? (uint8_t)((71U - (unsigned int)__builtin_clzll(all)) / 8) : 0;
}

static unsigned int common_shift(const struct mw_event *events, size_t count)
{
	uint64_t all = UINT64_C(1) << SHIFT_MAX;

	for (size_t i = 0; i < count; i++)
		all |= events[i].addr;
	return (unsigned int)__builtin_ctzll(all);
}

size_t mw_store_columns_encode(const struct mw_event *events, size_t count, uint8_t *out,
			       struct mw_store_planes *planes)
{
	/* One for the last that is not taken. */
	uint64_t values[MW_STORE_EVENTS_MAX + 1];
	struct encoder encoder = {events, count, out + HEAD_SIZE, planes, common_shift(events, count)};

	memset(out, 0, HEAD_SIZE);
	out[SHIFT_AT] = (uint8_t)encoder.shift;
	mw_store_save64(out + TIME_AT, events[0].time_ns);
	mw_store_save64(out + ADDR_AT, events[0].addr);
	for (size_t i = 0; i < count; i++) {
		const struct mw_event *event = &events[i];

		encoder.at[i] = (uint8_t)(((unsigned int)event->type & TYPE_MASK) |
					  ((unsigned int)event->kind << KIND_SHIFT & KIND_MASK) |
					  (event->stack != MW_STACK_NONE ? HAS_STACK : 0) |
					  (event->size != MW_SIZE_UNKNOWN ? HAS_SIZE : 0));
	}
	encoder.at += count;
	planes->count = 1;
	planes->ends[0] = (uint32_t)(encoder.at - out);
	for (enum column column = 0; column < COLUMN_COUNT; column++) {
		size_t used = values_of(&encoder, column, values);
		uint8_t width = width_of(values, used);

		out[WIDTHS_AT + column] = width;
		split(&encoder, values, used, width, out);
	}
	return (size_t)(encoder.at - out);
}

struct decoder {
	const uint8_t *what;
	const uint8_t *columns[COLUMN_COUNT];
	size_t counts[COLUMN_COUNT], taken[COLUMN_COUNT]; /* values there are, and have been used */
	unsigned int widths[COLUMN_COUNT];
	unsigned int shift;
	uint64_t time;
	uint64_t last[SLOT_COUNT];
	uint64_t values[COLUMN_COUNT][BLOCK + 1];
};

/* Fetch up to BLOCK values of a column from the first that has not been used. */
static void join(struct decoder *decoder, enum column column)
{
	uint64_t *restrict out = decoder->values[column];
	size_t rest = decoder->counts[column] - decoder->taken[column];
	size_t count = rest < BLOCK ? rest : BLOCK;

	memset(out, 0, (BLOCK + 1) * sizeof(*out));
	for (unsigned int plane = 0; plane < decoder->widths[column]; plane++) {
		const uint8_t *restrict in =
			decoder->columns[column] + decoder->counts[column] * plane + decoder->taken[column];

		for (size_t i = 0; i < count; i++)
			out[i] |= (uint64_t)in[i] << (8 * plane);
	}
}

static const char *set_up(struct decoder *decoder, const uint8_t *in, size_t size, size_t count)
{
	const uint8_t *at = in + HEAD_SIZE + count;
	uint64_t wanted = HEAD_SIZE + count;
	size_t stacks = 0, sizes = 0;

	if (count == 0 || count > MW_STORE_EVENTS_MAX || size < wanted)
		return "a chunk of events has no sensible number of them";
	decoder->what = in + HEAD_SIZE;
	decoder->shift = in[SHIFT_AT];
	if (decoder->shift > SHIFT_MAX || in[ZERO_AT])
		return "a chunk of events has an invalid head";
	for (size_t i = 0; i < count; i++) {
		stacks += (decoder->what[i] & HAS_STACK) != 0;
		sizes += (decoder->what[i] & HAS_SIZE) != 0;
	}
	for (enum column column = 0; column < COLUMN_COUNT; column++) {
		decoder->counts[column] = column == STACK ? stacks : column == SIZE ? sizes : count;
		decoder->taken[column] = 0;
		decoder->widths[column] = in[WIDTHS_AT + column];
		if (decoder->widths[column] > widest[column])
			return "a chunk of events has numbers that are too wide";
		decoder->columns[column] = at;
		wanted += decoder->counts[column] * decoder->widths[column];
		if (wanted > size)
			return "a chunk of events is too short";
		at = in + wanted;
	}
	decoder->time = mw_store_load64(in + TIME_AT);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		decoder->last[i] = mw_store_load64(in + ADDR_AT) >> decoder->shift;
	return wanted == size ? NULL : "a chunk of events is too long";
}

/* Make `count` events, at most BLOCK, of the values fetched. False: one has a type or a kind that there is not. */
static bool assemble(struct decoder *decoder, size_t count, struct mw_event *out, struct mw_store_named *named)
{
	const uint64_t(*values)[BLOCK + 1] = (const uint64_t(*)[BLOCK + 1]) decoder->values;
	size_t stacks = 0, sizes = 0;
	uint64_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		uint8_t what = decoder->what[i];
		unsigned int type = what & (unsigned int)TYPE_MASK,
			     kind = (unsigned int)(what & KIND_MASK) >> KIND_SHIFT;
		uint32_t thread = (uint32_t)values[THREAD][i];
		uint64_t *slot = &decoder->last[thread % SLOT_COUNT];
		/* 0 or all ones, so that nothing hangs on what cannot be foreseen */
		uint64_t no_stack = (what & HAS_STACK) ? 0 : UINT64_MAX, no_size = (what & HAS_SIZE) ? 0 : UINT64_MAX;
		uint64_t next_stack = (values[STACK][stacks] + 1) & ~no_stack;

		wrong |= (uint64_t)(type > MW_EVENT_REMAP_FAIL) | (uint64_t)(kind >= MW_KIND_COUNT);
		decoder->time += values[TIME][i];
		*slot += mw_store_unzigzag(values[ADDR][i]);
		out[i].time_ns = decoder->time;
		out[i].addr = *slot << decoder->shift;
		out[i].size = values[SIZE][sizes] | no_size;
		out[i].stack = (uint32_t)(next_stack - 1);
		out[i].thread = thread;
		out[i].type = (uint8_t)type;
		out[i].kind = (uint8_t)kind;
		out[i].interval = (uint16_t)(values[SAMPLED][i] >> 1);
		out[i].unsampled = values[SAMPLED][i] & 1;
		named->intervals = named->intervals > out[i].interval ? named->intervals : out[i].interval;
		named->threads = named->threads > thread ? named->threads : (uint64_t)thread + 1;
		named->stacks = named->stacks > next_stack ? named->stacks : next_stack;
		stacks += no_stack + 1;
		sizes += no_size + 1;
	}
	decoder->what += count;
	decoder->taken[STACK] += stacks;
	decoder->taken[SIZE] += sizes;
	for (enum column column = 0; column < COLUMN_COUNT; column++)
		if (column != STACK && column != SIZE)
			decoder->taken[column] += count;
	return !wrong;
}

const char *mw_store_columns_decode(const uint8_t *in, size_t size, size_t count, struct mw_event *out,
				    struct mw_store_named *named)
{
	struct decoder decoder;
	const char *why = set_up(&decoder, in, size, count);

	if (why)
		return why;
	*named = (struct mw_store_named){0};
	for (size_t done = 0; done < count; done += BLOCK) {
		size_t some = count - done < BLOCK ? count - done : BLOCK;

		for (enum column column = 0; column < COLUMN_COUNT; column++)
			join(&decoder, column);
		if (!assemble(&decoder, some, out + done, named))
			return "an event is of a kind that there is not";
	}
	return NULL;
}
