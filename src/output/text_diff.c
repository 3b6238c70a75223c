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
#include <math.h>
#include <string.h>
#include <time.h>

#define LENGTHS_ALIKE 0.005 /* windows whose lengths are no further apart than this share of both together */

struct writer {
	const struct mw_diff *diff;
	FILE *stream;
	struct mw_text text; /* of its lines */
};

/* Are the numbers those of an hour? */
static bool is_hourly(const struct mw_diff *diff)
{
	return diff->basis == MW_DIFF_RATES;
}

/* As it is printed: outstanding, or left behind in an hour. */
static struct mw_amount shown_of(const struct mw_diff *diff, struct mw_amount held, enum mw_diff_side side)
{
	double seconds = diff->snapshots[side].at;

	return is_hourly(diff)
		       ? (struct mw_amount){mw_diff_hourly(held.count, seconds), mw_diff_hourly(held.bytes, seconds)}
		       : held;
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
	struct mw_line *line = &writer->text.line;

	mw_line_printf(line, "// %s: ", side == MW_DIFF_OLD ? "old" : "new");
	mw_line_name(line, snapshot->file);
	mw_line_put(line, ", ", snapshot->exe ? snapshot->exe : snapshot->comm);
	MW_TEXT_ROW(&writer->text, " (pid %d)", snapshot->pid);
	mw_line_printf(line, "//      at %.3f s", snapshot->at);
	if (snapshot->moment) {
		mw_line_put(line, ", ", snapshot->moment);
	}
	add_date(line, snapshot->started_realtime_ns);
	MW_TEXT_ROW(&writer->text, ": %" PRIu64 " bytes in %" PRIu64 " blocks %s", total.bytes, total.count,
		    is_hourly(writer->diff) ? "allocated in it and not freed" : "outstanding");
	if (snapshot->sampled)
		MW_TEXT_ROW(&writer->text, "//      Sampled, one heap block in %s on average: amounts are estimates",
			    mw_show_size(snapshot->sampled).text);
	if (snapshot->cut)
		MW_TEXT_ROW(&writer->text, "//      The recording is not complete: compared as far as it goes");
	if (snapshot->not_hooked)
		MW_TEXT_ROW(&writer->text, "//      Incomplete: %zu entry points of allocators were not hooked",
			    snapshot->not_hooked);
	if (snapshot->lost_events || snapshot->lost_stacks)
		MW_TEXT_ROW(&writer->text, "//      Incomplete: %" PRIu64 " events and %" PRIu64 " stacks were lost",
			    snapshot->lost_events, snapshot->lost_stacks);
}

static void put_kinds(struct writer *writer)
{
	const struct mw_diff *diff = writer->diff;
	const char *before = "// kinds: ";

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		if (!diff->compared[kind])
			continue;
		mw_line_printf(&writer->text.line, "%s%s", before, mw_kind_name((enum mw_kind)kind));
		before = ", ";
	}
	if (!writer->text.line.length)
		mw_line_printf(&writer->text.line, "// kinds: none");
	mw_text_line(&writer->text, MW_STYLE_PLAIN);
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++) {
		bool in_old = diff->snapshots[MW_DIFF_OLD].tracked[kind];

		if (kind == MW_KIND_VM_INTERNAL || in_old == diff->snapshots[MW_DIFF_NEW].tracked[kind])
			continue;
		MW_TEXT_ROW(&writer->text, "//      %s is left out: only the %s recording has it",
			    mw_kind_name((enum mw_kind)kind), in_old ? "old" : "new");
	}
}

static void put_rebuilt(struct writer *writer)
{
	for (size_t i = 0; i < writer->diff->rebuilt_count; i++) {
		mw_line_put(&writer->text.line, "// built anew in between, so that stacks through it don't match: ",
			    writer->diff->rebuilt[i]);
		mw_text_line(&writer->text, MW_STYLE_PLAIN);
	}
}

/* What the numbers are of, where it is not UMDH's "outstanding". */
static void put_basis(struct writer *writer)
{
	const struct mw_diff_snapshot *old = &writer->diff->snapshots[MW_DIFF_OLD];
	const struct mw_diff_snapshot *new = &writer->diff->snapshots[MW_DIFF_NEW];
	double difference = new->at > old->at ? new->at - old->at : old->at - new->at;
	bool same = old->pid == new->pid && old->exe &&new->exe &&strcmp(old->exe, new->exe) == 0;

	if (!is_hourly(writer->diff))
		return;
	fprintf(writer->stream,
		"// Two windows of %s: each knows only what was allocated in it. Compared is how fast each left\n"
		"// blocks unfreed: BYTES and COUNT are those of an hour. = is about the same rate (within a quarter, "
		"or by "
		"chance).\n",
		same ? "one process" : "two processes");
	if (difference >= LENGTHS_ALIKE * (new->at + old->at))
		fprintf(writer->stream, "// The windows differ in length: old %.3f s, new %.3f s.\n", old->at, new->at);
}

static void put_program(struct writer *writer)
{
	const struct mw_diff_snapshot *old = &writer->diff->snapshots[MW_DIFF_OLD];
	const struct mw_diff_snapshot *new = &writer->diff->snapshots[MW_DIFF_NEW];
	static const char *const texts[] = {
		[MW_DIFF_PROGRAM_MOVED] = "the same build at another path",
		[MW_DIFF_PROGRAM_REBUILT] = "different builds, so that stacks through them don't match",
		[MW_DIFF_PROGRAM_OTHER] = "different paths, so that stacks through them may not match",
	};

	if (!texts[writer->diff->program])
		return;
	mw_line_printf(&writer->text.line, "// Warning: the executables differ (%s): ", texts[writer->diff->program]);
	mw_line_name(&writer->text.line, old->exe ? old->exe : old->comm);
	mw_line_printf(&writer->text.line, " (build-id %s), ", old->build_id ? old->build_id : "not known");
	mw_line_name(&writer->text.line, new->exe ? new->exe : new->comm);
	MW_TEXT_ROW(&writer->text, " (build-id %s)", new->build_id ? new->build_id : "not known");
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
	put_basis(writer);
	put_program(writer);
	put_kinds(writer);
	put_rebuilt(writer);
	fputs(syntax, writer->stream);
}

/* --- stacks -------------------------------------------------------------------------------------------- */

static void put_frame(struct writer *writer, const struct mw_report_frame *frame)
{
	struct mw_line *line = &writer->text.line;

	mw_line_printf(line, "\t");
	mw_text_module(line, frame);
	if (frame->function)
		mw_line_name(line, frame->function);
	if (mw_text_has_offset(frame))
		mw_line_printf(line, "+0x%" PRIx64, frame->offset);
	if (frame->file) {
		mw_line_put(line, " (", frame->file);
		if (frame->line)
			mw_line_printf(line, ", %" PRIu32, frame->line);
		mw_line_printf(line, ")");
	}
	MW_TEXT_ROW(&writer->text, "%s", frame->inlined ? " [inlined]" : "");
}

static void put_frames(struct writer *writer, const struct mw_diff_stack *stack)
{
	enum mw_frames shown = writer->text.options->frames ? writer->text.options->frames : MW_FRAMES_ALL;
	bool scripts = shown == MW_FRAMES_SCRIPT && mw_report_has_script(stack->frames, stack->frame_count);

	/* As in UMDH's stacks the allocator's entry point comes first. */
	if (stack->api) {
		const struct mw_report_frame entry = {.function = stack->api, .module = stack->api_module};

		put_frame(writer, &entry);
	}
	for (size_t i = 0; i < stack->frame_count; i++) {
		size_t run = mw_report_interpreter(shown, &stack->frames[i], stack->frame_count - i);

		if (scripts && !mw_language_is_script(stack->frames[i].language))
			continue;
		if (!run) {
			put_frame(writer, &stack->frames[i]);
			continue;
		}
		MW_TEXT_ROW(&writer->text, "\t... (interpreter, %zu frame%s)", run, run == 1 ? "" : "s");
		i += run - 1;
	}
	if (stack->cut == MW_STACK_TRUNCATED)
		mw_line_printf(&writer->text.line, "\t... cut here: the wanted depth was reached");
	else if (stack->cut == MW_STACK_BROKEN)
		mw_line_printf(&writer->text.line, "\t... cut here: no unwind information");
	else if (stack->end != MW_STACK_END_NONE)
		mw_line_printf(&writer->text.line, "\t... ends here: %s", mw_stack_end_name(stack->end));
	if (writer->text.line.length)
		mw_text_line(&writer->text, MW_STYLE_PLAIN);
	fputc('\n', writer->stream);
}

/* What stands behind the rates, for people. */
static void put_rates(struct writer *writer, const struct mw_diff_stack *stack)
{
	static const char *const sides[] = {"old", "new"};
	const char *what = "about the same rate";

	for (unsigned side = MW_DIFF_SIDES; side-- > 0;) {
		const struct mw_amount *held = &stack->held[side];
		double seconds = writer->diff->snapshots[side].at;

		mw_line_printf(&writer->text.line,
			       "%s %s: %" PRIu64 " bytes in %" PRIu64 " blocks in %.3f s, %.1f bytes a second",
			       side == MW_DIFF_NEW ? "//" : ";", sides[side], held->bytes, held->count, seconds,
			       (double)held->bytes / seconds);
	}
	if (!stack->held[MW_DIFF_OLD].count)
		what = "only new";
	else if (!stack->held[MW_DIFF_NEW].count)
		what = "only old";
	else if (stack->change != MW_DIFF_SAME)
		what = stack->change == MW_DIFF_MORE ? "faster" : "slower, but it goes on";
	MW_TEXT_ROW(&writer->text, ": %s", what);
	fputc('\n', writer->stream);
}

/* The standard error of what is printed of a change. */
static double error_of(const struct mw_diff *diff, const struct mw_diff_spread *spread)
{
	double old = sqrt(spread->held[MW_DIFF_OLD].bytes), new = sqrt(spread->held[MW_DIFF_NEW].bytes);

	if (!is_hourly(diff))
		return sqrt(spread->change.bytes);
	return 3600 * hypot(old / diff->snapshots[MW_DIFF_OLD].at, new / diff->snapshots[MW_DIFF_NEW].at);
}

/* How far off the change may be, for people. */
static void put_error(struct writer *writer, const struct mw_diff_spread *spread, bool noise)
{
	fprintf(writer->stream, "// estimated: right to ± %.0f bytes%s (standard error)%s\n",
		error_of(writer->diff, spread), is_hourly(writer->diff) ? " an hour" : "",
		noise ? ": it is within noise" : "");
}

static void put_stack(struct writer *writer, const struct mw_diff_stack *stack)
{
	const struct mw_amount shown[] = {shown_of(writer->diff, stack->held[MW_DIFF_OLD], MW_DIFF_OLD),
					  shown_of(writer->diff, stack->held[MW_DIFF_NEW], MW_DIFF_NEW)};
	const struct mw_amount *old = &shown[MW_DIFF_OLD], *new = &shown[MW_DIFF_NEW];
	struct change bytes = change_of(old->bytes, new->bytes), count = change_of(old->count, new->count);

	if (is_hourly(writer->diff) && stack->change == MW_DIFF_SAME)
		bytes.sign = count.sign = '=';
	fprintf(writer->stream,
		"%c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) %" PRIu64 " allocs BackTrace%s\n"
		"%c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) BackTrace%s allocations\n\n",
		bytes.sign, bytes.by, new->bytes, old->bytes, new->count, stack->id, count.sign, count.by, new->count,
		old->count, stack->id);
	if (is_hourly(writer->diff))
		put_rates(writer, stack);
	if (mw_diff_is_sampled(writer->diff, stack->kind)) {
		put_error(writer, &stack->spread, stack->noise);
		fputc('\n', writer->stream);
	}
	put_frames(writer, stack);
}

/* What is not shown, in one line: of what bytes and how many blocks. */
static void put_rest(struct writer *writer, size_t count, const struct mw_amount rest[MW_DIFF_SIDES], const char *what)
{
	struct change bytes = change_of(rest[MW_DIFF_OLD].bytes, rest[MW_DIFF_NEW].bytes);

	if (count)
		fprintf(writer->stream,
			"// %zu %s stack%s not shown: %c %" PRIu64 " ( %" PRIu64 " - %" PRIu64 " ) bytes%s\n", count,
			what, count == 1 ? "" : "s", bytes.sign, bytes.by, rest[MW_DIFF_NEW].bytes,
			rest[MW_DIFF_OLD].bytes, is_hourly(writer->diff) ? " an hour" : "");
}

static void add_rest(const struct writer *writer, struct mw_amount rest[MW_DIFF_SIDES],
		     const struct mw_diff_stack *stack)
{
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
		mw_amount_add(&rest[side], shown_of(writer->diff, stack->held[side], (enum mw_diff_side)side));
}

static void put_stacks(struct writer *writer)
{
	struct mw_amount more[MW_DIFF_SIDES] = {{0}}, same[MW_DIFF_SIDES] = {{0}};
	size_t shown = 0, more_count = 0, same_count = 0;

	for (size_t i = 0; i < writer->diff->stack_count; i++) {
		const struct mw_diff_stack *stack = &writer->diff->stacks[i];

		/* A rate that stays the same is a leak that goes on. */
		if (!writer->text.options->all && !is_hourly(writer->diff) && stack->change == MW_DIFF_SAME) {
			add_rest(writer, same, stack);
			same_count++;
		} else if (shown == writer->text.options->top) {
			add_rest(writer, more, stack);
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
	const struct mw_diff *diff = writer->diff;
	uint64_t old = shown_of(diff, total_of(diff, MW_DIFF_OLD), MW_DIFF_OLD).bytes;
	uint64_t new = shown_of(diff, total_of(diff, MW_DIFF_NEW), MW_DIFF_NEW).bytes;
	struct change change = change_of(old, new);

	if (is_hourly(diff) && diff->change == MW_DIFF_SAME)
		fprintf(writer->stream, "Total about the same == %" PRIu64 " an hour\n", new);
	else
		fprintf(writer->stream, "Total %s == %" PRIu64 "%s\n", change.sign == '-' ? "decrease" : "increase",
			change.by, is_hourly(diff) ? " an hour" : "");
	if (mw_diff_is_sampled(diff, MW_KIND_HEAP))
		put_error(writer, &diff->spreads[MW_KIND_HEAP], diff->noise);
}

struct mw_error *mw_text_diff_write(const struct mw_diff *const *diffs, size_t count,
				    const struct mw_output_options *options, FILE *stream)
{
	struct writer writer = {.stream = stream, .text = {.stream = stream, .options = options}};
	bool failed;

	for (size_t i = 0; i < count; i++) {
		writer.diff = diffs[i];
		if (count > 1)
			fprintf(stream, "%s// === process %zu of %zu ===\n", i ? "\n" : "", i + 1, count);
		put_header(&writer);
		put_stacks(&writer);
		put_total(&writer);
	}
	failed = writer.text.line.failed;
	mw_line_deinit(&writer.text.line);
	return failed ? mw_error_nomem() : NULL;
}
