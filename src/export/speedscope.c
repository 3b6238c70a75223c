// SPDX-License-Identifier: MIT
/* speedscope.c: a JSON file for speedscope: a sampled profile for each measure, each sample a stack with its figure. */
#include "export/frames.h"

#include <inttypes.h>
#include <string.h>

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define BEGIN  "{\"exporter\":\"memwatch\",\"$schema\":\"" SCHEMA "\""

typedef struct mw_error *visit(struct mw_export_frames *frames, const struct mw_export_process *process,
			       const struct mw_export_sample *sample, uint64_t figure, FILE *stream);

static struct mw_error *put_stack(struct mw_export_frames *frames, const struct mw_export_process *process,
				  const struct mw_export_sample *sample, uint64_t figure, FILE *stream)
{
	(void)figure;
	MW_TRY(mw_export_frames_of(frames, process, sample));
	for (size_t i = frames->count; i-- > 0;)
		fprintf(stream, "%c%" PRIu32, i + 1 == frames->count ? '[' : ',', frames->numbers[i]);
	putc(']', stream);
	return NULL;
}

static struct mw_error *put_weight(struct mw_export_frames *frames, const struct mw_export_process *process,
				   const struct mw_export_sample *sample, uint64_t figure, FILE *stream)
{
	(void)frames;
	(void)process;
	(void)sample;
	fprintf(stream, "%" PRIu64, figure);
	return NULL;
}

/* A list of what `put` makes of all samples that have that measure; `sum` of them. */
static struct mw_error *put_list(struct mw_export_frames *frames, enum mw_export_measure measure, visit *put,
				 FILE *stream, uint64_t *sum)
{
	const struct mw_export *export = frames->export;
	const char *before = "[";

	*sum = 0;
	for (size_t i = 0; i < export->count; i++)
		for (size_t j = 0; j < export->processes[i].sample_count; j++) {
			const struct mw_export_sample *sample = &export->processes[i].samples[j];
			uint64_t figure = mw_export_measure_of(measure, sample);

			if (!figure)
				continue;
			fputs(before, stream);
			MW_TRY(put(frames, &export->processes[i], sample, figure, stream));
			*sum += figure;
			before = ",";
		}
	fputs(*before == '[' ? "[]" : "]", stream);
	return NULL;
}

static struct mw_error *put_profile(struct mw_export_frames *frames, enum mw_export_measure measure, FILE *stream)
{
	bool bytes = measure == MW_EXPORT_INUSE_SPACE || measure == MW_EXPORT_ALLOC_SPACE;
	uint64_t sum;

	fprintf(stream,
		"{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"%s\",\"samples\":", mw_export_measure_name(measure),
		bytes ? "bytes" : "none");
	MW_TRY(put_list(frames, measure, put_stack, stream, &sum));
	fputs(",\"weights\":", stream);
	MW_TRY(put_list(frames, measure, put_weight, stream, &sum));
	fprintf(stream, ",\"startValue\":0,\"endValue\":%" PRIu64 "}", sum);
	return NULL;
}

static struct mw_error *put_frames(const struct mw_export_frames *frames, FILE *stream)
{
	fputs("],\"shared\":{\"frames\":[", stream);
	for (size_t i = 0; i < frames->numbering.count; i++) {
		const struct mw_export_frame *frame = &frames->items[i];

		fputs(i ? ",{\"name\":" : "{\"name\":", stream);
		MW_TRY(mw_export_put_json(stream, frame->name));
		if (frame->file) {
			fputs(",\"file\":", stream);
			MW_TRY(mw_export_put_json(stream, frame->file));
		}
		if (frame->line)
			fprintf(stream, ",\"line\":%" PRIu32, frame->line);
		putc('}', stream);
	}
	fputs("]}}\n", stream);
	return NULL;
}

/* The frames come last: by then all have their numbers. */
static struct mw_error *put_all(struct mw_export_frames *frames, FILE *stream)
{
	const struct mw_report *first = frames->export->count ? frames->export->processes[0].report : NULL;

	fputs(BEGIN ",\"name\":", stream);
	MW_TRY(mw_export_put_json(stream, first && first->target.comm ? first->target.comm : "memwatch"));
	fputs(",\"activeProfileIndex\":0,\"profiles\":[", stream);
	for (unsigned measure = 0; measure < MW_EXPORT_MEASURES; measure++) {
		if (measure)
			putc(',', stream);
		MW_TRY(put_profile(frames, (enum mw_export_measure)measure, stream));
	}
	return put_frames(frames, stream);
}

static struct mw_error *write_speedscope(const struct mw_export *export, FILE *stream)
{
	struct mw_export_frames frames = {.export = export, .root = MW_EXPORT_ROOT_OF_SEVERAL};
	struct mw_error *err = put_all(&frames, stream);

	mw_export_frames_deinit(&frames);
	return err;
}

static bool is_own(const char *head, size_t size)
{
	return size >= sizeof(BEGIN) - 1 && memcmp(head, BEGIN, sizeof(BEGIN) - 1) == 0;
}

const struct mw_export_format mw_export_speedscope = {
	.name = "speedscope",
	.what = "a speedscope file",
	.about = "www.speedscope.app, or speedscope of npm",
	.is_own = is_own,
	.write = write_speedscope,
};
