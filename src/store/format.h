/* SPDX-License-Identifier: MIT */
/* format.h: the numbers of the file format; what they mean stands in FORMAT.md. */
#ifndef MW_STORE_FORMAT_H
#define MW_STORE_FORMAT_H

#include "store/store.h"

#include <memwatch/event.h>

#define MW_STORE_VERSION      1u
#define MW_STORE_FILE_HEADER  16u         /* bytes */
#define MW_STORE_CHUNK_MAGIC  0x4b43574du /* "MWCK" */
#define MW_STORE_CHUNK_HEADER 40u         /* bytes */
#define MW_STORE_CHUNK_MAX    (1u << 20)  /* bytes of a chunk's content, and so of what is stored */
#define MW_STORE_EVENTS_MAX   16384u      /* in a chunk */
#define MW_STORE_STRING_MAX   131072u     /* longer ones are cut by the writer */
#define MW_STORE_PROCESS_MAX  (1u << 20)
#define MW_STORE_NUMBER_MAX   (1u << 20) /* of hooks and modules */

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
	MW_STORE_TYPE_COUNT
};

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

uint32_t mw_store_load32(const uint8_t *at);
uint64_t mw_store_load64(const uint8_t *at);
void mw_store_save32(uint8_t *at, uint32_t value);
void mw_store_save64(uint8_t *at, uint64_t value);

#endif
