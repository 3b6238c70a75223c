// SPDX-License-Identifier: MIT
/* chunker.c: chunks as they go into the file (chunker.h). */
#include "store/chunker.h"

#include "store/bytes.h"
#include "store/columns.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL     1
#define FRAME_MIN 2048u /* smaller planes are compressed together: a frame for each would cost more than it gains */

struct mw_store_chunker {
	ZSTD_CCtx *zstd;
	uint64_t sequence;
	uint8_t content[MW_STORE_CHUNK_MAX]; /* of events, before it is compressed */
	uint8_t chunk[MW_STORE_CHUNK_HEADER + MW_STORE_CHUNK_MAX];
};

struct mw_store_chunker *mw_store_chunker_create(uint64_t first)
{
	struct mw_store_chunker *chunker = malloc(sizeof(*chunker));

	if (!chunker)
		return NULL;
	chunker->sequence = first;
	chunker->zstd = ZSTD_createCCtx();
	if (!chunker->zstd) {
		free(chunker);
		return NULL;
	}
	return chunker;
}

void mw_store_chunker_destroy(struct mw_store_chunker *chunker)
{
	if (!chunker)
		return;
	ZSTD_freeCCtx(chunker->zstd);
	free(chunker);
}

uint64_t mw_store_chunker_count(const struct mw_store_chunker *chunker)
{
	return chunker->sequence;
}

/* Compress planes into frames of their own: their bytes are of different kinds. 0: it does not get smaller. */
static size_t compress(struct mw_store_chunker *chunker, const uint8_t *content, const struct mw_store_planes *planes)
{
	uint8_t *stored = chunker->chunk + MW_STORE_CHUNK_HEADER;
	size_t used = 0, size = planes->ends[planes->count - 1];
	uint32_t begin = 0;

	for (uint32_t i = 0; i < planes->count; i++) {
		uint32_t end = planes->ends[i];
		size_t done;

		if (end == begin || (end - begin < FRAME_MIN && i + 1 < planes->count))
			continue;
		done = ZSTD_compressCCtx(chunker->zstd, stored + used, size - used, content + begin, end - begin,
					 LEVEL);
		if (ZSTD_isError(done))
			return 0;
		used += done;
		begin = end;
	}
	return used < size ? used : 0;
}

static size_t finish(struct mw_store_chunker *chunker, struct mw_store_chunk *chunk, const uint8_t *content,
		     const struct mw_store_planes *planes, const uint8_t **out)
{
	uint8_t *stored = chunker->chunk + MW_STORE_CHUNK_HEADER;
	size_t compressed = compress(chunker, content, planes);

	chunk->raw_size = planes->ends[planes->count - 1];
	chunk->coding = compressed ? MW_STORE_ZSTD : MW_STORE_RAW;
	chunk->stored_size = compressed ? (uint32_t)compressed : chunk->raw_size;
	if (!compressed)
		memcpy(stored, content, chunk->raw_size);
	chunk->sequence = chunker->sequence++;
	mw_store_pack_chunk(chunk, stored, chunker->chunk);
	*out = chunker->chunk;
	return MW_STORE_CHUNK_HEADER + chunk->stored_size;
}

size_t mw_store_chunker_make(struct mw_store_chunker *chunker, const struct mw_store_job *job, const uint8_t **out)
{
	struct mw_store_chunk chunk = {.type = job->type, .process = job->process, .count = job->count};
	struct mw_store_planes planes = {.ends = {job->size}, .count = 1};

	if (job->type != MW_STORE_EVENTS)
		return finish(chunker, &chunk, job->bytes, &planes, out);
	mw_store_columns_encode(job->bytes, job->count, chunker->content, &planes);
	return finish(chunker, &chunk, chunker->content, &planes, out);
}

size_t mw_store_chunker_close(struct mw_store_chunker *chunker, const uint8_t **out)
{
	struct mw_store_chunk chunk = {.type = MW_STORE_CLOSE, .count = 1};
	uint8_t record[16];
	struct mw_store_put put = {record + 1, record + sizeof(record), false};
	struct mw_store_planes planes = {.count = 1};

	mw_store_put_number(&put, chunker->sequence);
	record[0] = (uint8_t)(put.at - record - 1);
	planes.ends[0] = (uint32_t)(put.at - record);
	return finish(chunker, &chunk, record, &planes, out);
}
