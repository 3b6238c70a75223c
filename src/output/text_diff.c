// SPDX-License-Identifier: MIT
/*
 * text_diff.c: a comparison as UMDH writes it, so that eyes and scripts that know UMDH's are at home.
 *
 * Lines that begin with // are for people. Numbers are decimal and have no padding.
 */
#include "output/line.h"
#include "output/text.h"

#include <memwatch/diff.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

struct writer {
	const struct mw_diff *diff;
	const struct mw_diff_output_options *options;
	FILE *stream;
	struct mw_line line; /* scratch */
	bool failed;         /* out of memory; the stream keeps its own errors */
};

/* Write the scratch line and empty it. */
static void end_line(struct writer *writer)
{
	if (writer->line.length)
		fwrite(writer->line.data, 1, writer->line.length, writer->stream);
	fputc('\n', writer->stream);
	writer->failed = writer->failed || writer->line.failed;
	mw_line_cut(&writer->line, 0);
}

/* A difference of any two numbers of 64 bits. */
struct change {
	char sign;
	uint64_t by;
};

static struct change change_of(uint64_t from, uint64_t to)
{
	return to < from ? (struct change){'-', from - to} : (struct change){'+', to - from};
}

static struct mw_amount total_of(const struct mw_diff *diff, enum mw_diff_side side)
{
	struct mw_amount sum = {0};

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		mw_amount_add(&sum, diff->totals[kind][side]);
	return sum;
}

/* --- header -------------------------------------------------------------------------------------------- */

static void add_date(struct mw_line *line, int64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	char date[64];
	struct tm tm;

	if (realtime_ns > 0 && gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm))
		mw_line_printf(line, " of a window that began %s", date);
}

static void put_snapshot(struct writer *writer, enum mw_diff_side side)
{
	const struct mw_diff_snapshot *snapshot = &writer->diff->snapshots[side];
	struct mw_amount total = total_of(writer->diff, side);
	struct mw_line *line = &writer->line;

	mw_line_printf(line, "// %s: ", side == MW_DIFF_OLD ? "old" : "new");
	mw_line_name(line, snapshot->file);
	mw_line_printf(line, ", ");
	mw_line_name(line, snapshot->exe ? snapshot->exe : snapshot->comm);
	mw_line_printf(line, " (pid %d)", snapshot->pid);
	end_line(writer);
	mw_line_printf(line, "//      at %.3f s", snapshot->at);
	if (snapshot->moment) {
		mw_line_printf(line, ", ");
		mw_line_name(line, snapshot->moment);
	}
	add_date(line, snapshot->started_realtime_ns);
	mw_line_printf(line, ": %" PRIu64 " bytes in %" PRIu64 " blocks outstanding", total.bytes, total.count);
	end_line(writer);
	if (snapshot->cut) {
		mw_line_printf(line, "//      The recording was cut off: compared as far as it goes");
		end_line(writer);
	}
	if (snapshot->not_hooked) {
		mw_line_printf(line, "//      Incomplete: %zu entry points of allocators were not hooked",
			       snapshot->not_hooked);
		end_line(writer);
	}
	if (snapshot->lost_events || snapshot->lost_stacks) {
		mw_line_printf(line, "//      Incomplete: %" PRIu64 " events and %" PRIu64 " stacks were lost",
			       snapshot->lost_events, snapshot->lost_stacks);
		end_line(writer);
	}
}

static void put_kinds(struct writer *writer)
{
	const struct mw_diff *diff = writer->diff;
	const char *before = "// kinds: ";

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		if (!diff->compared[kind])
			continue;
		mw_line_printf(&writer->line, "%s%s", before, mw_kind_name((enum mw_kind)kind));
		before = ", ";
	}
	if (!writer->line.length)
		mw_line_printf(&writer->line, "// kinds: none");
	end_line(writer);
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		bool in_old = diff->snapshots[MW_DIFF_OLD].tracked[kind];

		if (kind == MW_KIND_VM_INTERNAL || in_old == diff->snapshots[MW_DIFF_NEW].tracked[kind])
			continue;
		mw_line_printf(&writer->line, "//      %s is left out: only the %s recording has it",
			       mw_kind_name((enum mw_kind)kind), in_old ? "old" : "new");
		end_line(writer);
	}
}

static void put_rebuilt(struct writer *writer)
{
	for (size_t i = 0; i < writer->diff->rebuilt_count; i++) {
		mw_line_printf(&writer->line, "// built anew in between, so that stacks through it don't match: ");
		mw_line_name(&writer->line, writer->diff->rebuilt[i]);
		end_line(writer);
	}
}

static void put_header(struct writer *writer)
{
	static const char syntax[] = "//\n"
				     "// + BYTES_DELTA ( NEW_BYTES - OLD_BYTES ) NEW_COUNT allocs BackTraceID\n"
				     "// + COUNT_DELTA ( NEW_COUNT - OLD_COUNT ) BackTraceID allocations\n"
				     "//\n"
				     "// \tmodule!function+offset (file, line)\n"
				     "\n";

	put_snapshot(writer, MW_DIFF_OLD);
	put_snapshot(writer, MW_DIFF_NEW);
	put_kinds(writer);
	put_rebuilt(writer);
	fputs(syntax, writer->stream);
}

/* --- stacks -------------------------------------------------------------------------------------------- */

static void put_frame(struct writer *writer, const struct mw_report_frame *frame)
{
	struct mw_line *line = &writer->line;

	mw_line_printf(line, "\t");
	mw_text_module(line, frame);
	if (frame->function)
		mw_line_name(line, frame->function);
	/* Inlined code has no start of its own to count from, nor has a whole region. */
	if (!frame->inlined && !frame->generated)
		mw_line_printf(line, "+0x%" PRIx64, frame->offset);
	if (frame->file) {
		mw_line_printf(line, " (");
		mw_line_name(line, frame->file);
		if (frame->line)
			mw_line_printf(line, ", %" PRIu32, frame->line);
		mw_line_printf(line, ")");
	}
	mw_line_printf(line, "%s", frame->inlined ? " [inlined]" : "");
	end_line(writer);
}

static void put_frames(struct writer *writer, const struct mw_diff_stack *stack)
{
	/* As in UMDH's stacks the allocator's entry point comes first. */
	if (stack->api) {
		const struct mw_report_frame entry = {.function = stack->api, .module = stack->api_module};

		put_frame(writer, &entry);
	}
	for (size_t i = 0; i < stack->frame_count; i++)
		put_frame(writer, &stack->frames[i]);
	if (stack->cut == MW_STACK_TRUNCATED)
		mw_line_printf(&writer->line, "\t... cut here: the wanted depth was reached");
	else if (stack->cut == MW_STACK_BROKEN)
		mw_line_printf(&writer->line, "\t... cut here: no unwind information");
	else if (stack->end != MW_STACK_END_NONE)
		mw_line_printf(&writer->line, "\t... ends here: %s", mw_stack_end_name(stack->end));
	if (writer->line.length)
		end_line(writer);
	fputc('\n', writer->stream);
}

static void put_stack(struct writer *writer, const struct mw_diff_stack *stack)
{
	const struct mw_amount *old = &stack->held[MW_DIFF_OLD], *new = &stack->held[MW_DIFF_NEW];
	struct change bytes = change_of(old->bytes, new->bytes), count = change_of(old->count, new->count);

	fprintf(writer->stream,
		"%c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) %" PRIu64 " allocs BackTrace%s\n"
		"%c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) BackTrace%s allocations\n\n",
		bytes.sign, bytes.by, new->bytes, old->bytes, new->count, stack->id, count.sign, count.by, new->count,
		old->count, stack->id);
	put_frames(writer, stack);
}

static bool is_unchanged(const struct mw_diff_stack *stack)
{
	return stack->held[MW_DIFF_OLD].count == stack->held[MW_DIFF_NEW].count &&
	       stack->held[MW_DIFF_OLD].bytes == stack->held[MW_DIFF_NEW].bytes;
}

/* What is not shown, in one line: of what bytes and how many blocks. */
static void put_rest(struct writer *writer, size_t count, const struct mw_amount rest[MW_DIFF_SIDES], const char *what)
{
	struct change bytes = change_of(rest[MW_DIFF_OLD].bytes, rest[MW_DIFF_NEW].bytes);

	if (count)
		fprintf(writer->stream,
			"// %zu %s stack%s not shown: %c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) bytes\n", count,
			what, count == 1 ? "" : "s", bytes.sign, bytes.by, rest[MW_DIFF_NEW].bytes,
			rest[MW_DIFF_OLD].bytes);
}

static void add_rest(struct mw_amount rest[MW_DIFF_SIDES], const struct mw_diff_stack *stack)
{
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
		mw_amount_add(&rest[side], stack->held[side]);
}

static void put_stacks(struct writer *writer)
{
	struct mw_amount more[MW_DIFF_SIDES] = {{0}}, same[MW_DIFF_SIDES] = {{0}};
	size_t shown = 0, more_count = 0, same_count = 0;

	for (size_t i = 0; i < writer->diff->stack_count; i++) {
		const struct mw_diff_stack *stack = &writer->diff->stacks[i];

		if (!writer->options->all && is_unchanged(stack)) {
			add_rest(same, stack);
			same_count++;
		} else if (shown == writer->options->top) {
			add_rest(more, stack);
			more_count++;
		} else {
			put_stack(writer, stack);
			shown++;
		}
	}
	put_rest(writer, more_count, more, "more");
	put_rest(writer, same_count, same, "unchanged");
	if (more_count || same_count)
		fputc('\n', writer->stream);
}

static void put_total(struct writer *writer)
{
	struct change change =
		change_of(total_of(writer->diff, MW_DIFF_OLD).bytes, total_of(writer->diff, MW_DIFF_NEW).bytes);

	fprintf(writer->stream, "Total %s == %" PRIu64 "\n", change.sign == '-' ? "decrease" : "increase", change.by);
}

struct mw_error *mw_text_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_diff_output_options *options, FILE *stream)
{
	struct writer writer = {.options = options, .stream = stream};

	for (size_t i = 0; i < count; i++) {
		writer.diff = diffs[i];
		if (count > 1)
			fprintf(stream, "%s// === process %zu of %zu ===\n", i ? "\n" : "", i + 1, count);
		put_header(&writer);
		put_stacks(&writer);
		put_total(&writer);
	}
	mw_line_deinit(&writer.line);
	return writer.failed ? mw_error_nomem() : NULL;
}
