// SPDX-License-Identifier: MIT
/* unpack.c: see unpack.h. */
#include "cli/unpack.h"

#include <limits.h>
#include <lz4frame.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#define GZIP_ONLY       16 /* with inflateInit2: gzip's header, not zlib's */
#define ZSTD_WINDOW_LOG 25 /* 32 MiB; the strongest levels that are in use take 8 */

struct packing {
	const char *end; /* of names */
	bool (*begin)(struct mw_unpack *unpack);
	bool (*go_on)(struct mw_unpack *unpack, const uint8_t *packed, size_t *taken, uint8_t *out, size_t *given);
	void (*finish)(struct mw_unpack *unpack);
};

struct mw_unpack {
	const struct packing *packing;
	union {
		z_stream gzip;
		LZ4F_dctx *lz4;
		ZSTD_DStream *zstd;
	} of;
	bool any;    /* something was taken */
	bool inside; /* what was packed has begun, and has not ended */
	bool broken;
};

/* --- gzip ---------------------------------------------------------------------------------------------- */

static bool gzip_begin(struct mw_unpack *unpack)
{
	return inflateInit2(&unpack->of.gzip, MAX_WBITS + GZIP_ONLY) == Z_OK;
}

static void gzip_finish(struct mw_unpack *unpack)
{
	inflateEnd(&unpack->of.gzip);
}

static bool gzip_go_on(struct mw_unpack *unpack, const uint8_t *packed, size_t *taken, uint8_t *out, size_t *given)
{
	z_stream *stream = &unpack->of.gzip;
	uInt in = *taken < UINT_MAX ? (uInt)*taken : UINT_MAX, room = *given < UINT_MAX ? (uInt)*given : UINT_MAX;
	int result;

	/* The one before has ended. */
	if (!unpack->inside && inflateReset(stream) != Z_OK)
		return false;
	stream->next_in = packed;
	stream->avail_in = in;
	stream->next_out = out;
	stream->avail_out = room;
	result = inflate(stream, Z_NO_FLUSH);
	*taken = in - stream->avail_in;
	*given = room - stream->avail_out;
	unpack->inside = result != Z_STREAM_END;
	return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

/* --- LZ4 ----------------------------------------------------------------------------------------------- */

static bool lz4_begin(struct mw_unpack *unpack)
{
	return !LZ4F_isError(LZ4F_createDecompressionContext(&unpack->of.lz4, LZ4F_VERSION));
}

static void lz4_finish(struct mw_unpack *unpack)
{
	LZ4F_freeDecompressionContext(unpack->of.lz4);
}

static bool lz4_go_on(struct mw_unpack *unpack, const uint8_t *packed, size_t *taken, uint8_t *out, size_t *given)
{
	size_t more = LZ4F_decompress(unpack->of.lz4, out, given, packed, taken, NULL);

	unpack->inside = more != 0;
	return !LZ4F_isError(more);
}

/* --- Zstandard ----------------------------------------------------------------------------------------- */

static bool zstd_begin(struct mw_unpack *unpack)
{
	unpack->of.zstd = ZSTD_createDStream();
	return unpack->of.zstd &&
	       !ZSTD_isError(ZSTD_DCtx_setParameter(unpack->of.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
}

static void zstd_finish(struct mw_unpack *unpack)
{
	ZSTD_freeDStream(unpack->of.zstd);
}

static bool zstd_go_on(struct mw_unpack *unpack, const uint8_t *packed, size_t *taken, uint8_t *out, size_t *given)
{
	ZSTD_inBuffer from = {packed, *taken, 0};
	ZSTD_outBuffer to = {out, *given, 0};
	size_t more = ZSTD_decompressStream(unpack->of.zstd, &to, &from);

	*taken = from.pos;
	*given = to.pos;
	unpack->inside = more != 0;
	return !ZSTD_isError(more);
}

/* ------------------------------------------------------------------------------------------------------- */

static const struct packing packings[] = {
	{".gz", gzip_begin, gzip_go_on, gzip_finish},
	{".lz4", lz4_begin, lz4_go_on, lz4_finish},
	{".zst", zstd_begin, zstd_go_on, zstd_finish},
};

static bool ends(const char *name, const char *with)
{
	size_t length = strlen(name), end = strlen(with);

	return length >= end && strcmp(name + length - end, with) == 0;
}

bool mw_unpack_is_packed(const char *name)
{
	static const char *const others[] = {".xz", ".bz2", ".lzma"};
	bool packed = false;

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		packed = packed || ends(name, packings[i].end);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		packed = packed || ends(name, others[i]);
	return packed;
}

struct mw_unpack *mw_unpack_create(const char *name)
{
	const struct packing *packing = NULL;
	struct mw_unpack *unpack;

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		if (ends(name, packings[i].end))
			packing = &packings[i];
	unpack = packing ? calloc(1, sizeof(*unpack)) : NULL;
	if (!unpack)
		return NULL;
	unpack->packing = packing;
	if (packing->begin(unpack))
		return unpack;
	mw_unpack_destroy(unpack);
	return NULL;
}

void mw_unpack_destroy(struct mw_unpack *unpack)
{
	if (!unpack)
		return;
	unpack->packing->finish(unpack);
	free(unpack);
}

bool mw_unpack(struct mw_unpack *unpack, const void *packed, size_t *taken, void *out, size_t *given)
{
	unpack->any |= *taken > 0;
	if (unpack->broken || (*taken == 0 && !unpack->inside))
		*taken = *given = 0;
	else
		unpack->broken = !unpack->packing->go_on(unpack, packed, taken, out, given);
	return !unpack->broken;
}

bool mw_unpack_is_whole(const struct mw_unpack *unpack)
{
	return unpack->any && !unpack->inside && !unpack->broken;
}
