// SPDX-License-Identifier: MIT
/* dhat.c: JSON of valgrind's DHAT, version 2, as its dh_view.html reads it: what stacks allocated, how long it lived, and what
 * was there at the peak and at the end. The viewer wants each stack once. */
#include "export/frames.h"

#include "base/vector.h"
#include "output/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BEGIN       "{\"dhatFileVersion\":2,\"mode\":\"memwatch\""
#define SHORT_LIVED 1000 /* microseconds: blocks that live less are pointed out */

/* A place in the program: a stack, whichever thread, kind and function of the allocator. */
struct place {
	size_t first, count; /* of its frames, in `numbers` */
	struct mw_amount size, most, at_peak, at_end;
	double lived_ns;
	const struct mw_report_stack *last; /* that `most` is of */
};

struct places {
	struct mw_export_frames frames;
	struct mw_map numbering; /* of their frames */
	struct place *items;
	size_t capacity;
	uint32_t *numbers;
	size_t number_count, number_capacity;
	struct mw_line text;
};

static bool open_place(struct places *places, struct place *place)
{
	*place = (struct place){.first = places->number_count, .count = places->frames.count};
	for (size_t i = 0; i < place->count; i++) {
		if (!MW_VECTOR_ROOM(places->numbers, places->number_count, places->number_capacity))
			return false;
		places->numbers[places->number_count++] = places->frames.numbers[i];
	}
	return true;
}

static bool add_place(struct places *places, const struct mw_export_sample *sample)
{
	const struct mw_export_frames *frames = &places->frames;
	size_t before = places->numbering.count;
	struct place *place;
	uint32_t number;

	if (!mw_map_number(&places->numbering, XXH64(frames->numbers, frames->count * sizeof(*frames->numbers), 0),
			   &number) ||
	    !MW_VECTOR_ROOM(places->items, number, places->capacity))
		return false;
	place = &places->items[number];
	if (places->numbering.count > before && !open_place(places, place))
		return false;
	mw_amount_add(&place->size, mw_sums_size(&sample->sums));
	mw_amount_add(&place->at_end, sample->sums.fates[MW_FATE_IMPACTING]);
	mw_amount_add(&place->at_peak, sample->at_peak);
	place->lived_ns += sample->lived_ns;
	/* That is known of the stack, not of each of its threads. */
	if (sample->stack && sample->stack != place->last)
		mw_amount_add(&place->most, (struct mw_amount){sample->stack->peak.count, sample->stack->peak.bytes});
	place->last = sample->stack;
	return true;
}

/* At least what was there at moments that are known, at most all; a filter may have left out some of it. */
static uint64_t bound(uint64_t most, uint64_t at_peak, uint64_t at_end, uint64_t all)
{
	most = most < all ? most : all;
	most = most > at_peak ? most : at_peak;
	return most > at_end ? most : at_end;
}

static void put_place(const struct places *places, const struct place *place, FILE *stream)
{
	fprintf(stream, "{\"tb\":%" PRIu64 ",\"tbk\":%" PRIu64 ",\"tl\":%.0f", place->size.bytes, place->size.count,
		place->lived_ns / 1000);
	fprintf(stream, ",\"mb\":%" PRIu64 ",\"mbk\":%" PRIu64,
		bound(place->most.bytes, place->at_peak.bytes, place->at_end.bytes, place->size.bytes),
		bound(place->most.count, place->at_peak.count, place->at_end.count, place->size.count));
	fprintf(stream, ",\"gb\":%" PRIu64 ",\"gbk\":%" PRIu64 ",\"eb\":%" PRIu64 ",\"ebk\":%" PRIu64 ",\"fs\":",
		place->at_peak.bytes, place->at_peak.count, place->at_end.bytes, place->at_end.count);
	/* Frame 0 is the root. */
	for (size_t i = 0; i < place->count; i++)
		fprintf(stream, "%c%" PRIu32, i ? ',' : '[', places->numbers[place->first + i] + 1);
	fputs("]}", stream);
}

static struct mw_error *put_frame(struct mw_line *text, const struct mw_export_frame *frame, FILE *stream)
{
	mw_line_cut(text, 0);
	if (frame->address)
		mw_line_printf(text, "0x%" PRIX64 ": ", (uint64_t)frame->address);
	mw_line_printf(text, "%s", frame->name);
	if (frame->file) {
		mw_line_put(text, " (", frame->file);
		mw_line_printf(text, ":%" PRIu32 ")", frame->line);
	}
	return text->failed ? mw_error_nomem() : mw_export_put_json(stream, text->data);
}

/* Times are in microseconds since the interval's start. */
static struct mw_error *put_head(struct places *places, FILE *stream)
{
	const struct mw_export_process *process = &places->frames.export->processes[0];
	double seconds = process->report->window.to - process->report->window.from;
	double peak = process->peak_at - process->report->window.from;

	fputs(BEGIN ",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":false,\"tu\":\"\xc2\xb5s\",\"Mtu\":\"s\"", stream);
	fprintf(stream, ",\"tuth\":%d,\"te\":%.0f,\"tg\":%.0f,\"pid\":%d,\"cmd\":", SHORT_LIVED,
		seconds > 1e-6 ? seconds * 1e6 : 1, peak > 0 ? peak * 1e6 : 0, (int)process->report->target.pid);
	MW_TRY(mw_export_command(process->report, &places->text));
	return mw_export_put_json(stream, places->text.data);
}

static struct mw_error *put_places(struct places *places, FILE *stream)
{
	fputs(",\"pps\":[", stream);
	for (size_t i = 0; i < places->numbering.count; i++) {
		fputs(i ? ",\n" : "\n", stream);
		put_place(places, &places->items[i], stream);
	}
	fputs("],\"ftbl\":[\"[root]\"", stream);
	for (size_t i = 0; i < places->frames.numbering.count; i++) {
		fputs(",\n", stream);
		MW_TRY(put_frame(&places->text, &places->frames.items[i], stream));
	}
	fputs("]}\n", stream);
	return NULL;
}

static struct mw_error *put_all(struct places *places, FILE *stream)
{
	const struct mw_export_process *process = &places->frames.export->processes[0];

	for (size_t i = 0; i < process->sample_count; i++) {
		const struct mw_export_sample *sample = &process->samples[i];

		if (!mw_sums_size(&sample->sums).count && !mw_sums_size(&sample->sums).bytes)
			continue;
		MW_TRY(mw_export_frames_of(&places->frames, process, sample));
		if (!add_place(places, sample))
			return mw_error_nomem();
	}
	MW_TRY(put_head(places, stream));
	return put_places(places, stream);
}

static struct mw_error *write_dhat(const struct mw_export *export, FILE *stream)
{
	struct places places = {.frames = {.export = export, .by_address = true}};
	struct mw_error *err = put_all(&places, stream);

	mw_export_frames_deinit(&places.frames);
	mw_map_deinit(&places.numbering);
	mw_line_deinit(&places.text);
	free(places.items);
	free(places.numbers);
	return err;
}

static bool is_own(const char *head, size_t size)
{
	return size >= sizeof(BEGIN) - 1 && memcmp(head, BEGIN, sizeof(BEGIN) - 1) == 0;
}

const struct mw_export_format mw_export_dhat = {
	.name = "dhat",
	.what = "a DHAT file",
	.about = "valgrind's dh_view.html",
	.peak = true,
	.is_own = is_own,
	.write = write_dhat,
};
