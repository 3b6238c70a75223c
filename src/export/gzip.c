// SPDX-License-Identifier: MIT
/* gzip.c: see gzip.h. */
#include "export/gzip.h"

#include <string.h>

#define OS_UNIX 3

struct mw_error *mw_export_gzip_init(struct mw_export_gzip *gzip, FILE *out, const char *comment, int level)
{
	*gzip = (struct mw_export_gzip){.out = out, .header = {.comment = (Bytef *)comment, .os = OS_UNIX}};
	if (deflateInit2(&gzip->stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflateSetHeader(&gzip->stream, &gzip->header) != Z_OK)
		return mw_error_nomem();
	return NULL;
}

static void put(struct mw_export_gzip *gzip, const void *bytes, size_t size, int flush)
{
	unsigned char piece[1 << 14];

	gzip->stream.next_in = (Bytef *)bytes;
	gzip->stream.avail_in = (uInt)size;
	do {
		gzip->stream.next_out = piece;
		gzip->stream.avail_out = sizeof(piece);
		gzip->failed |= deflate(&gzip->stream, flush) == Z_STREAM_ERROR;
		fwrite(piece, 1, sizeof(piece) - gzip->stream.avail_out, gzip->out);
	} while (!gzip->failed && gzip->stream.avail_out == 0);
}

void mw_export_gzip_put(struct mw_export_gzip *gzip, const void *bytes, size_t size)
{
	put(gzip, bytes, size, Z_NO_FLUSH);
}

struct mw_error *mw_export_gzip_finish(struct mw_export_gzip *gzip)
{
	put(gzip, NULL, 0, Z_FINISH);
	return gzip->failed ? mw_error_nomem() : NULL;
}

void mw_export_gzip_deinit(struct mw_export_gzip *gzip)
{
	(void)deflateEnd(&gzip->stream);
}

bool mw_export_gzip_is_own(const char *head, size_t size, const char *comment)
{
	static const char magic[] = "\x1f\x8b\x08\x10"; /* gzip, deflated, with a comment */
	size_t length = strlen(comment) + 1;

	return size > 10 + length && memcmp(head, magic, sizeof(magic) - 1) == 0 &&
	       memcmp(head + 10, comment, length) == 0;
}
