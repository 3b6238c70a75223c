// SPDX-License-Identifier: MIT
/* html_pack.c: see html_pack.h. */
#include "output/html_pack.h"

#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

/* Of three bytes each, so that nothing but the end needs padding. */
#define ROOM ((size_t)3 * 16384)
#define TEXT (ROOM / 3 * 4)

struct mw_html_pack {
	FILE *out, *stream;
	z_stream zip;
	unsigned char packed[ROOM];
	char text[TEXT];
};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Write the first `count` packed bytes; fewer than all only at the end. */
static void put_text(struct mw_html_pack *pack, size_t count)
{
	const unsigned char *in = pack->packed;
	char *out = pack->text;
	size_t i = 0;

	for (; i + 3 <= count; i += 3) {
		*out++ = digits[in[i] >> 2];
		*out++ = digits[(in[i] & 3) << 4 | in[i + 1] >> 4];
		*out++ = digits[(in[i + 1] & 15) << 2 | in[i + 2] >> 6];
		*out++ = digits[in[i + 2] & 63];
	}
	if (i < count) {
		unsigned int second = i + 1 < count ? in[i + 1] : 0;

		*out++ = digits[in[i] >> 2];
		*out++ = digits[(in[i] & 3u) << 4 | second >> 4];
		*out++ = i + 1 < count ? digits[(second & 15) << 2] : '=';
		*out++ = '=';
	}
	fwrite(pack->text, 1, (size_t)(out - pack->text), pack->out);
}

static void deflate_all(struct mw_html_pack *pack, int flush)
{
	int status;

	do {
		status = deflate(&pack->zip, flush);
		if (pack->zip.avail_out && !(flush == Z_FINISH && status == Z_STREAM_END))
			return;
		put_text(pack, ROOM - pack->zip.avail_out);
		pack->zip.next_out = pack->packed;
		pack->zip.avail_out = ROOM;
	} while (status == Z_OK);
}

/* The stream's write function. What goes wrong with `out` is kept there: this never fails. */
static ssize_t take(void *cookie, const char *bytes, size_t size)
{
	struct mw_html_pack *pack = cookie;

	/* zlib counts in unsigned int, and stdio gives it a buffer at a time. */
	for (size_t done = 0; done < size;) {
		size_t some = size - done < ROOM ? size - done : ROOM;

		pack->zip.next_in = (const unsigned char *)bytes + done;
		pack->zip.avail_in = (unsigned int)some;
		deflate_all(pack, Z_NO_FLUSH);
		done += some;
	}
	return (ssize_t)size;
}

struct mw_error *mw_html_pack_begin(FILE *out, struct mw_html_pack **result)
{
	struct mw_html_pack *pack = calloc(1, sizeof(*pack));

	if (!pack)
		return mw_error_nomem();
	pack->out = out;
	pack->zip.next_out = pack->packed;
	pack->zip.avail_out = ROOM;
	if (deflateInit(&pack->zip, Z_DEFAULT_COMPRESSION) != Z_OK) {
		free(pack);
		return mw_error_nomem();
	}
	pack->stream = fopencookie(pack, "w", (cookie_io_functions_t){.write = take});
	if (!pack->stream) {
		deflateEnd(&pack->zip);
		free(pack);
		return mw_error_nomem();
	}
	*result = pack;
	return NULL;
}

FILE *mw_html_pack_stream(struct mw_html_pack *pack)
{
	return pack->stream;
}

void mw_html_pack_end(struct mw_html_pack *pack)
{
	if (!pack)
		return;
	fclose(pack->stream);
	pack->zip.avail_in = 0;
	deflate_all(pack, Z_FINISH);
	deflateEnd(&pack->zip);
	free(pack);
}
