// SPDX-License-Identifier: MIT
/* format.c: the headers of files and chunks (format.h). */
#include "store/format.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

#define HASH_AT 32u /* where the hash is in a chunk's header, and what of the header it is of */

uint32_t mw_store_load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

uint64_t mw_store_load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

void mw_store_save32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

void mw_store_save64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

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
