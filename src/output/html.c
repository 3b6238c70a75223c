// SPDX-License-Identifier: MIT
/* html.c: the page, and what is put into it (html.h). */
#include "output/html.h"

#include "output/json.h"

#include <inttypes.h>
#include <memwatch/timeline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

/* --- a stream whose text comes out of another, packed ------------------------------------------------------- */

/* Of three bytes each, so that nothing but the end needs padding. */
#define ROOM ((size_t)3 * 16384)
#define TEXT (ROOM / 3 * 4)

struct pack {
	FILE *out;
	z_stream zip;
	unsigned char packed[ROOM];
	char text[TEXT];
};

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Write the first `count` packed bytes; fewer than all only at the end. */
static void put_text(struct pack *pack, size_t count)
{
	const unsigned char *in = pack->packed;
	char *out = pack->text;
	size_t i = 0;

	for (; i + 3 <= count; i += 3) {
		*out++ = base64[in[i] >> 2];
		*out++ = base64[(in[i] & 3) << 4 | in[i + 1] >> 4];
		*out++ = base64[(in[i + 1] & 15) << 2 | in[i + 2] >> 6];
		*out++ = base64[in[i + 2] & 63];
	}
	if (i < count) {
		unsigned int second = i + 1 < count ? in[i + 1] : 0;

		*out++ = base64[in[i] >> 2];
		*out++ = base64[(in[i] & 3u) << 4 | second >> 4];
		*out++ = i + 1 < count ? base64[(second & 15) << 2] : '=';
		*out++ = '=';
	}
	fwrite(pack->text, 1, (size_t)(out - pack->text), pack->out);
}

static void deflate_all(struct pack *pack, int flush)
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
	struct pack *pack = cookie;

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

/* The stream's close function. */
static int finish(void *cookie)
{
	struct pack *pack = cookie;

	pack->zip.avail_in = 0;
	deflate_all(pack, Z_FINISH);
	deflateEnd(&pack->zip);
	free(pack);
	return 0;
}

struct mw_error *mw_html_pack(FILE *out, FILE **stream)
{
	const cookie_io_functions_t functions = {.write = take, .close = finish};
	struct pack *pack = calloc(1, sizeof(*pack));

	if (!pack)
		return mw_error_nomem();
	pack->out = out;
	pack->zip.next_out = pack->packed;
	pack->zip.avail_out = ROOM;
	if (deflateInit(&pack->zip, Z_DEFAULT_COMPRESSION) != Z_OK) {
		free(pack);
		return mw_error_nomem();
	}
	*stream = fopencookie(pack, "w", functions);
	if (!*stream) {
		deflateEnd(&pack->zip);
		free(pack);
		return mw_error_nomem();
	}
	return NULL;
}

/* --- the rows of a timeline as bytes (html/FORMAT.md) --------------------------------------------------- */

#define NUMBER_MAX 10u /* bytes */
#define EACH_MOST  (UINT64_C(1) << 32)
#define COUNT_MOST (UINT64_C(1) << 20)
#define SUM_MOST   (UINT64_C(1) << 46)
#define MEAN_BITS  8u

/* In the order in which they stand; tables of lifetimes end with BYTES. */
enum column { FIRST_KEY, SECOND_KEY, THIRD_KEY, BORN, DIED, COUNT, BYTES, UNKNOWN, LIVED };

static uint64_t zigzag(int64_t value)
{
	return value < 0 ? 2 * (uint64_t) - (value + 1) + 1 : 2 * (uint64_t)value;
}

/* How long blocks lived on average, with MEAN_BITS bits: that many, and how many follow them. */
static uint64_t lived(const struct mw_timeline_row *row)
{
	uint64_t mean = row->count ? row->lived_ns / row->count : 0;
	unsigned int shift = 0;

	while (mean >> shift >> MEAN_BITS)
		shift++;
	mean = shift ? ((mean >> (shift - 1)) + 1) >> 1 : mean;
	/* Rounded up to one bit more, it is the first of the next size. */
	return ((uint64_t)shift << (MEAN_BITS - 1)) + mean;
}

/* `each`: what its blocks have on average if they are like those before them. The page counts in doubles: what is not
 * exact in these is not multiplied. */
static uint64_t expected(const struct mw_timeline_row *row, uint64_t each)
{
	return row->count <= COUNT_MOST && each <= EACH_MOST ? row->count * each : 0;
}

/* What stands in a column of a row, which may depend on what stood `before` it. */
static uint64_t value_of(enum column column, const struct mw_timeline_row *row, const struct mw_timeline_row *before,
			 uint64_t each)
{
	switch (column) {
	case FIRST_KEY:
		return zigzag((int64_t)row->key[0] - before->key[0]);
	case SECOND_KEY:
		return row->key[1];
	case THIRD_KEY:
		return row->key[2];
	case BORN:
		return zigzag((int64_t)row->born - before->born);
	case DIED: /* 0: it lives; else how many bins it lived, plus 1: from the first where it came before that */
		return row->died ? (uint64_t)row->died - (row->born ? row->born - 1u : 0) : 0;
	case COUNT:
		return row->count;
	case BYTES:
		return zigzag((int64_t)(row->bytes - expected(row, each)));
	case UNKNOWN:
		return row->unknown;
	case LIVED:
		return lived(row);
	}
	return 0;
}

static uint64_t put(uint64_t number, FILE *out)
{
	uint8_t digits[NUMBER_MAX];
	size_t size = 0;

	for (; number > 127; number >>= 7)
		digits[size++] = (uint8_t)(number | 128);
	digits[size++] = (uint8_t)number;
	if (out)
		fwrite(digits, 1, size, out);
	return size;
}

static uint64_t put_column(const struct mw_timeline_table *table, enum column column, FILE *out)
{
	static const struct mw_timeline_row nothing;
	const struct mw_timeline_row *before = &nothing;
	uint64_t size = 0, blocks = 0, sum = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct mw_timeline_row *row = &table->rows[i];

		if (row->key[0] != before->key[0])
			blocks = sum = 0;
		size += put(value_of(column, row, before, blocks && sum < SUM_MOST ? sum / blocks : 0), out);
		blocks += row->count;
		sum += row->bytes;
		before = row;
	}
	return size;
}

/* Write all rows, up to that column, and return how many bytes they take. `out` NULL: only that. */
static uint64_t put_table(const struct mw_timeline_table *table, enum column last, FILE *out)
{
	uint64_t size = 0;

	for (enum column column = FIRST_KEY; column <= last; column++)
		size += put_column(table, column, out);
	return size;
}

/* -------------------------------------------------------------------------------------------------------- */

#define VERSION 2

extern const char mw_html_page[]; /* ends with a 0 that is not counted */
extern const uint64_t mw_html_page_size;

struct page {
	const struct mw_heap_report *heap; /* NULL: the page is of reports */
	const struct mw_report *const *reports;
	size_t count;
	const struct mw_output_options *options;
	FILE *stream;
};

static const struct mw_timeline *timeline_of(const struct page *page, size_t process)
{
	static const struct mw_timeline nothing = {.cells = {.bin_ns = 1, .bins = 1},
						   .lifetimes = {.bin_ns = 1, .bins = 1}};
	const struct mw_timeline *const *all = page->options->timelines;

	return all && all[process] ? all[process] : &nothing;
}

/* Where a table's rows stand among all bytes; moves on behind them. */
static void put_place(FILE *out, const char *key, const struct mw_timeline_table *table, uint64_t length,
		      uint64_t *offset)
{
	fprintf(out,
		",\n\"%s\":{\"offset\":%" PRIu64 ",\"length\":%" PRIu64 ",\"rows\":%zu,\"bins\":%" PRIu32
		",\"bin_ns\":%" PRIu64 "}",
		key, *offset, length, table->count, table->bins, table->bin_ns);
	*offset += length;
}

static json_t *mark_value(const struct mw_report_mark *mark)
{
	return MW_OBJECT(MW_KEY("at_ns", mark->time_ns), MW_OF(mark, name));
}

static bool put_item(FILE *out, size_t number, json_t *value)
{
	if (number)
		fputc(',', out);
	return mw_json_put(out, value);
}

static bool put_names(FILE *out, const struct mw_report *report, const struct mw_timeline *timeline)
{
	bool good = true;

	fputs(",\n\"threads\":[", out);
	for (size_t i = 0; i < timeline->thread_count; i++) {
		if (timeline->threads[i] == MW_TIMELINE_UNKNOWN)
			fputs(i ? ",null" : "null", out);
		else
			fprintf(out, i ? ",%" PRIu32 : "%" PRIu32, timeline->threads[i]);
	}
	fprintf(out, "],\n\"coarse\":%s,\n\"heaps\":[", timeline->coarse ? "true" : "false");
	for (size_t i = 0; i < timeline->heap_count && good; i++)
		good = put_item(out, i, mw_json_text(timeline->heaps[i]));
	fputs("],\n\"marks\":[", out);
	for (size_t i = 0; i < report->mark_count && good; i++)
		good = put_item(out, i, mark_value(&report->marks[i]));
	fputs("],\n\"space\":", out);
	return good && mw_json_put(out, mw_json_space(report->space));
}

static bool put_process(const struct page *page, size_t process, FILE *out, uint64_t *offset)
{
	const struct mw_timeline *timeline = timeline_of(page, process);
	bool good;

	fprintf(out, "\n{\"bin_ns\":%" PRIu64 ",\"bins\":%" PRIu32 ",\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64,
		timeline->cells.bin_ns, timeline->cells.bins, timeline->from_ns, timeline->to_ns);
	good = put_names(out, page->reports[process], timeline);
	put_place(out, "cells", &timeline->cells, put_table(&timeline->cells, LIVED, NULL), offset);
	if (timeline->owners.bins)
		put_place(out, "owners", &timeline->owners, put_table(&timeline->owners, LIVED, NULL), offset);
	put_place(out, "lifetimes", &timeline->lifetimes, put_table(&timeline->lifetimes, BYTES, NULL), offset);
	fputs("}", out);
	return good;
}

static struct mw_error *put_report(const struct page *page, FILE *out)
{
	uint64_t offset = 0;

	fprintf(out, "{\"version\":%d,\n", VERSION);
	if (page->heap) {
		fputs("\"heap\":", out);
		MW_TRY(mw_json_heap_write(page->heap, page->options, out));
		fputs("}\n", out);
		return NULL;
	}
	fprintf(out, "\"frames\":\"%s\",\n\"report\":", mw_frames_name(page->options->frames));
	MW_TRY(mw_json_write_shared(page->reports, page->count, page->options, out));
	fputs(",\"processes\":[", out);
	for (size_t i = 0; i < page->count; i++) {
		if (i)
			fputc(',', out);
		if (!put_process(page, i, out, &offset))
			return mw_error_nomem();
	}
	fputs("]}\n", out);
	return NULL;
}

/* In the order of their offsets. */
static struct mw_error *put_cells(const struct page *page, FILE *out)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct mw_timeline *timeline = timeline_of(page, i);

		put_table(&timeline->cells, LIVED, out);
		put_table(&timeline->owners, LIVED, out);
		put_table(&timeline->lifetimes, BYTES, out);
	}
	return NULL;
}

/* What stands in the page for something that is put there. */
static const struct part {
	const char *mark;
	struct mw_error *(*put)(const struct page *page, FILE *out);
} parts[] = {
	{"@@MEMWATCH_REPORT@@", put_report},
	{"@@MEMWATCH_CELLS@@", put_cells},
};

static struct mw_error *put_part(const struct page *page, const struct part *part)
{
	FILE *packed = NULL;
	struct mw_error *err;

	MW_TRY(mw_html_pack(page->stream, &packed));
	err = part->put(page, packed);
	fclose(packed);
	return err;
}

static struct mw_error *write_page(const struct page *page)
{
	const char *at = mw_html_page, *end = mw_html_page + mw_html_page_size;

	for (;;) {
		const struct part *next = NULL;
		const char *found = end;

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			const char *mark = memmem(at, (size_t)(end - at), parts[i].mark, strlen(parts[i].mark));

			if (mark && mark < found) {
				found = mark;
				next = &parts[i];
			}
		}
		fwrite(at, 1, (size_t)(found - at), page->stream);
		if (!next)
			return NULL;
		MW_TRY(put_part(page, next));
		at = found + strlen(next->mark);
	}
}

/* options->timelines NULL, or one of them: there is nothing to zoom into. */
static struct mw_error *write_reports(const struct mw_report *const *reports, size_t count,
				      const struct mw_output_options *options, FILE *stream)
{
	const struct page page = {.reports = reports, .count = count, .options = options, .stream = stream};

	return write_page(&page);
}

static struct mw_error *write_heap(const struct mw_heap_report *heap, const struct mw_output_options *options,
				   FILE *stream)
{
	const struct page page = {.heap = heap, .options = options, .stream = stream};

	return write_page(&page);
}

static bool is_own(const char *head, size_t size)
{
	static const char first[] = "<!doctype html>", title[] = "<title>memwatch";

	return size > sizeof(first) && memcmp(head, first, sizeof(first) - 1) == 0 &&
	       memmem(head, size, title, sizeof(title) - 1) != NULL;
}

const struct mw_output mw_output_html = {
	.name = "html",
	.timelines = true,
	.what = "a page",
	.media = "text/html; charset=utf-8",
	.is_own = is_own,
	.of_reports =
		{"the report as JSON, as a page; '-': on stdout\n",
		 "Write a page that shows the report in any browser, and needs nothing else: timeline, flame graph, "
		 "tables, suspects, and any interval of them. '-' is standard output."},
	.of_heaps = {"a page for the browser; '-' as above\n",
		     "Write a page that shows the look in any browser, and needs nothing else: what is lost, what the "
		     "memory is used for, who holds it. '-' is standard output."},
	.write = write_reports,
	.write_heap = write_heap,
};
