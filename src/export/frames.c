// SPDX-License-Identifier: MIT
/* frames.c: see frames.h. */
#include "export/frames.h"

#include "base/path.h"
#include "base/vector.h"
#include "output/json.h"
#include "output/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define INTERPRETER "(interpreter)"

/* By what frames differ. Strings of one report are the same where they are equal. */
struct key {
	const char *function, *module, *file;
	uint64_t offset, address;
	uint64_t line, inlined;
};

static struct mw_error *append(struct mw_export_frames *frames, const struct key *key, enum mw_language language,
			       const char *name)
{
	size_t before = frames->numbering.count;
	struct mw_export_frame *frame;
	uint32_t number;

	if (!mw_map_number(&frames->numbering, XXH64(key, sizeof(*key), 0), &number) ||
	    !MW_VECTOR_ROOM(frames->numbers, frames->count, frames->number_capacity) ||
	    !MW_VECTOR_ROOM(frames->items, number, frames->capacity))
		return mw_error_nomem();
	frames->numbers[frames->count++] = number;
	if (frames->numbering.count == before)
		return NULL;
	frame = &frames->items[number];
	*frame = (struct mw_export_frame){.name = strdup(name),
					  .file = key->file,
					  .module = key->module,
					  .line = (uint32_t)key->line,
					  .address = key->address,
					  .inlined = key->inlined,
					  .language = language};
	return frame->name ? NULL : mw_error_nomem();
}

/* One that stands for what is no function: that text, which is static, or, where it is not, is known by what it is `of`. */
static struct mw_error *append_text(struct mw_export_frames *frames, const char *text, const void *of)
{
	const struct key key = {.function = of ? NULL : text, .module = of};
	struct mw_error *err = append(frames, &key, MW_LANGUAGE_NATIVE, text);

	if (!err)
		frames->items[frames->numbers[frames->count - 1]].module = NULL;
	return err;
}

static void name_frame(struct mw_line *line, const struct mw_report_frame *frame)
{
	if (frame->function && *frame->function)
		mw_line_name(line, frame->function);
	else if (frame->module) {
		mw_line_name(line, mw_path_name(frame->module));
		mw_line_printf(line, "+0x%" PRIx64, frame->offset);
	} else
		mw_line_printf(line, "0x%" PRIx64, (uint64_t)frame->address);
}

static struct mw_error *append_frame(struct mw_export_frames *frames, const struct mw_report_frame *frame)
{
	bool script = mw_language_is_script(frame->language);
	struct mw_line line = {0};
	struct mw_error *err;
	struct key key = {
		.function = frame->function,
		.module = frame->module,
		.file = frame->file,
		.line = frame->line,
		.inlined = frame->inlined,
	};

	if (!frame->function)
		key.offset = frame->module ? frame->offset : frame->address;
	if (frames->by_address && !script)
		key.address = frame->address;
	name_frame(&line, frame);
	err = line.failed || !line.data ? mw_error_nomem() : append(frames, &key, frame->language, line.data);
	mw_line_deinit(&line);
	return err;
}

static struct mw_error *append_process(struct mw_export_frames *frames, const struct mw_report *report)
{
	struct mw_line line = {0};
	struct mw_error *err;

	mw_line_put(&line, "process ", report->target.comm);
	mw_line_printf(&line, " %d", (int)report->target.pid);
	err = line.failed ? mw_error_nomem() : append_text(frames, line.data, report);
	mw_line_deinit(&line);
	return err;
}

static const char *cut_text(enum mw_stack_cut cut)
{
	switch (cut) {
	case MW_STACK_TRUNCATED:
		return "(cut here: the wanted depth was reached)";
	case MW_STACK_BROKEN:
		return "(cut here: no unwind information)";
	case MW_STACK_COMPLETE:
		break;
	}
	return NULL;
}

static struct mw_error *append_stack(struct mw_export_frames *frames, const struct mw_report_stack *stack)
{
	enum mw_frames shown = frames->export->frames == MW_FRAMES_DEFAULT ? MW_FRAMES_ALL : frames->export->frames;
	bool scripts = shown == MW_FRAMES_SCRIPT && mw_report_has_script(stack->frames, stack->frame_count);

	for (size_t i = 0; i < stack->frame_count; i++) {
		size_t run = mw_report_interpreter(shown, &stack->frames[i], stack->frame_count - i);

		if (scripts && !mw_language_is_script(stack->frames[i].language))
			continue;
		if (!run) {
			MW_TRY(append_frame(frames, &stack->frames[i]));
			continue;
		}
		MW_TRY(append_text(frames, INTERPRETER, NULL));
		i += run - 1;
	}
	return cut_text(stack->cut) ? append_text(frames, cut_text(stack->cut), NULL) : NULL;
}

struct mw_error *mw_export_frames_of(struct mw_export_frames *frames, const struct mw_export_process *process,
				     const struct mw_export_sample *sample)
{
	frames->count = 0;
	if (sample->stack)
		MW_TRY(append_stack(frames, sample->stack));
	if (!frames->count)
		MW_TRY(append_text(frames, "(no stack)", NULL));
	if (frames->root == MW_EXPORT_ROOT_NEVER ||
	    (frames->root == MW_EXPORT_ROOT_OF_SEVERAL && frames->export->count < 2))
		return NULL;
	return append_process(frames, process->report);
}

void mw_export_frames_deinit(struct mw_export_frames *frames)
{
	for (size_t i = 0; frames->items && i < frames->numbering.count; i++)
		free(frames->items[i].name);
	free(frames->items);
	free(frames->numbers);
	mw_map_deinit(&frames->numbering);
}

struct mw_error *mw_export_command(const struct mw_report *report, struct mw_line *out)
{
	mw_line_cut(out, 0);
	for (size_t i = 0; i < report->target.command_count; i++)
		mw_line_put(out, i ? " " : "", report->target.command[i]);
	if (!out->length)
		mw_line_name(out, report->target.comm && *report->target.comm ? report->target.comm : "?");
	return out->failed ? mw_error_nomem() : NULL;
}

struct mw_error *mw_export_put_json(FILE *stream, const char *text)
{
	json_t *value = mw_json_text(text);

	if (!value)
		return mw_error_nomem();
	/* Errors of writing stay in the stream. */
	(void)json_dumpf(value, stream, JSON_ENCODE_ANY);
	json_decref(value);
	return NULL;
}

uint64_t mw_export_measure_of(enum mw_export_measure measure, const struct mw_export_sample *sample)
{
	struct mw_amount amount = measure == MW_EXPORT_INUSE_SPACE || measure == MW_EXPORT_INUSE_OBJECTS
					  ? sample->sums.fates[MW_FATE_IMPACTING]
					  : mw_sums_size(&sample->sums);

	return measure == MW_EXPORT_INUSE_SPACE || measure == MW_EXPORT_ALLOC_SPACE ? amount.bytes : amount.count;
}
