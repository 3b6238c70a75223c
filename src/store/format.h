/* SPDX-License-Identifier: MIT */
/*
 * format.h: the file format, whose meaning stands in FORMAT.md: its numbers, headers of files and chunks, facts as
 * records (records.c), events as columns (format.c).
 */
#ifndef MW_STORE_FORMAT_H
#define MW_STORE_FORMAT_H

#include "store/store.h"

#include <memwatch/event.h>

#include <endian.h>
#include <string.h>

#define MW_STORE_VERSION         1u
#define MW_STORE_FILE_HEADER     16u         /* bytes */
#define MW_STORE_CHUNK_MAGIC     0x4b43574du /* "MWCK" */
#define MW_STORE_CHUNK_HEADER    40u         /* bytes */
#define MW_STORE_CHUNK_MAX       (1u << 20)  /* bytes of a chunk's content, and so of what is stored */
#define MW_STORE_EVENTS_MAX      16384u      /* in a chunk */
#define MW_STORE_STRING_MAX      131072u     /* longer ones are cut by the writer */
#define MW_STORE_PROCESS_MAX     (1u << 20)
#define MW_STORE_NUMBER_MAX      (1u << 20) /* of hooks and modules */
#define MW_STORE_LIST_MAX        65536u     /* more items are not put into one list … */
#define MW_STORE_SYMBOL_LIST_MAX 16384u     /* … of a symbol's */

enum mw_store_chunk_type {
	MW_STORE_TARGETS = 1,
	MW_STORE_HOOKS,
	MW_STORE_MODULES,
	MW_STORE_BEFORE,
	MW_STORE_THREADS,
	MW_STORE_STACKS,
	MW_STORE_EVENTS,
	MW_STORE_SAMPLES,
	MW_STORE_MARKS,
	MW_STORE_MAPPINGS,
	MW_STORE_SYMBOLS,
	MW_STORE_ENDS,
	MW_STORE_CLOSE,
	MW_STORE_SETTLED, /* events, as in MW_STORE_EVENTS */
	MW_STORE_INTERVALS,
	MW_STORE_LEAKS,
	MW_STORE_HEAP,
	MW_STORE_CHANGE,
	MW_STORE_POOLS,
	MW_STORE_TYPE_COUNT
};

static inline bool mw_store_is_events(unsigned int type)
{
	return type == MW_STORE_EVENTS || type == MW_STORE_SETTLED;
}

enum mw_store_coding { MW_STORE_RAW, MW_STORE_ZSTD };

struct mw_store_chunk {
	uint16_t type, coding;
	uint32_t process, count;
	uint64_t sequence;
	uint32_t raw_size, stored_size;
	uint64_t hash;
};

void mw_store_pack_file(uint8_t out[MW_STORE_FILE_HEADER]);
/* Fills in the hash, of the header and what is stored behind it. */
void mw_store_pack_chunk(struct mw_store_chunk *chunk, const uint8_t *stored, uint8_t out[MW_STORE_CHUNK_HEADER]);
/* False: it has no chunk's magic. Nothing else is checked. */
bool mw_store_unpack_chunk(const uint8_t in[MW_STORE_CHUNK_HEADER], struct mw_store_chunk *out);
bool mw_store_hash_fits(const struct mw_store_chunk *chunk, const uint8_t header[MW_STORE_CHUNK_HEADER],
			const uint8_t *stored);

static inline uint32_t mw_store_load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t mw_store_load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static inline void mw_store_save32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void mw_store_save64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint64_t mw_store_zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t mw_store_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

/* --- facts: a record each ------------------------------------------------------------------------------------ */

/* What a record of a chunk type but EVENTS and SETTLED says. */
union mw_store_fact {
	struct mw_stored_target target;
	struct mw_stored_hook hook;
	struct mw_stored_module module;
	struct {
		mw_addr start, end;
	} before;
	struct {
		struct mw_stored_thread thread;
		bool used; /* false: the number is not that of a thread */
	} thread;
	struct {
		uint32_t number;
		bool used;
		struct mw_raw_stack stack;
	} stack;
	struct {
		uint32_t number;
		uint64_t bytes;
	} interval;
	struct mw_stored_sample sample;
	struct mw_stored_mark mark;
	struct {
		enum mw_stored_moment moment;
		struct mw_stored_mapping mapping;
	} mapping;
	struct mw_stored_symbol symbol;
	struct mw_stored_end end;
	struct mw_stored_leaks leaks;
	struct mw_stored_heap heap;
	struct mw_stored_change change;
	struct mw_stored_pool pool;
	uint64_t chunks; /* CLOSE: before this one */
};

/* A fact as its record, with the length before it; lists are cut until that fits. Returns its size; 0: it does
 * not, or is invalid. */
size_t mw_store_encode(enum mw_store_chunk_type type, const union mw_store_fact *fact, uint8_t out[MW_STORE_CHUNK_MAX]);
/*
 * The record at `*at`, which moves to the next. NULL, or what is wrong. What lists hold is put into `room`, which has
 * MW_STORE_CHUNK_MAX bytes; strings stay where they are.
 */
const char *mw_store_decode(enum mw_store_chunk_type type, const uint8_t **at, const uint8_t *end, void *room,
			    union mw_store_fact *out);

/* --- events: a column for each field, byte by byte in planes (FORMAT.md) ---------------------------------------- */

/* Where each plane begins and the last ends, so that each is compressed for itself. */
#define MW_STORE_PLANES_MAX (1 + 8 + 4 + 4 + 8 + 8 + 2)
struct mw_store_planes {
	uint32_t ends[MW_STORE_PLANES_MAX];
	uint32_t count;
};

/* At most MW_STORE_EVENTS_MAX events into MW_STORE_CHUNK_MAX bytes; returns how many. */
size_t mw_store_columns_encode(const struct mw_event *events, size_t count, uint8_t *out,
			       struct mw_store_planes *planes);

/* The highest numbers that events name, plus one; 0: none. */
struct mw_store_named {
	uint64_t threads, stacks, intervals;
};

/* NULL, or what is wrong; `out` has room for `count` events, at most MW_STORE_EVENTS_MAX. */
const char *mw_store_columns_decode(const uint8_t *in, size_t size, size_t count, struct mw_event *out,
				    struct mw_store_named *named);

#endif
