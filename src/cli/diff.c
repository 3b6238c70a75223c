// SPDX-License-Identifier: MIT
/* diff.c: memwatch diff (diff.h). */
#include "cli/diff.h"

#include "session/outputs.h"
#include "session/terminal.h"
#include "view/diff.h"
#include "view/heap_diff.h"
#include "view/replay.h"
#include "view/summary.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- moments --------------------------------------------------------------------------------------------------------- */

#define LISTED_MARKS 8
#define DIGITS       "0123456789"

/* Does the name say no more than the number? */
static bool is_numbered(const struct mw_stored_mark *mark)
{
	char plain[32];

	snprintf(plain, sizeof(plain), "mark %" PRIu32, mark->number);
	return !mark->name || !*mark->name || strcmp(mark->name, plain) == 0;
}

/* "1 at 10.000 s, 2 (deployed) at 20.000 s, …" */
static void list_marks(const struct mw_metadata *metadata, char *out, size_t size)
{
	size_t length = 0;

	out[0] = '\0';
	for (size_t i = 0; i < metadata->mark_count && length < size; i++) {
		const struct mw_stored_mark *mark = &metadata->marks[i];
		bool named = !is_numbered(mark);

		if (i == LISTED_MARKS) {
			snprintf(out + length, size - length, " and %zu more", metadata->mark_count - i);
			return;
		}
		length += (size_t)snprintf(out + length, size - length, "%s%" PRIu32 "%s%.32s%s at %.3f s",
					   i ? ", " : "", mark->number, named ? " (" : "", named ? mark->name : "",
					   named ? ")" : "", (double)mark->time_ns / 1e9);
	}
}

static struct mw_error *no_such_mark(const char *option, const char *word, const struct mw_metadata *metadata)
{
	char list[1024];

	if (!metadata->mark_count)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': the recording has no marks", option, word),
			"Marks are made while recording: by --mark-every, or by SIGUSR1 to memwatch. "
			"Moments are also 'start', 'end' and times as in 12.5s");
	list_marks(metadata, list, sizeof(list));
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': no such mark", option, word),
			     "Marks are %s; moments are also 'start', 'end' and times as in 12.5s", list);
}

static void take_mark(const struct mw_stored_mark *mark, const struct mw_metadata *metadata, bool cut,
		      struct mw_cli_moment *out)
{
	/* What is of the window's last nanosecond is inside of it. */
	out->time_ns = !cut && mark->time_ns >= mw_metadata_length(metadata) ? MW_REPLAY_END : mark->time_ns;
	if (is_numbered(mark))
		snprintf(out->text, sizeof(out->text), "mark %" PRIu32, mark->number);
	else
		snprintf(out->text, sizeof(out->text), "mark %" PRIu32 " (%.64s)", mark->number, mark->name);
}

static const struct mw_stored_mark *by_number(const char *word, const struct mw_metadata *metadata)
{
	char number[16];

	for (size_t i = 0; i < metadata->mark_count; i++) {
		snprintf(number, sizeof(number), "%" PRIu32, metadata->marks[i].number);
		if (strcmp(number, word) == 0)
			return &metadata->marks[i];
	}
	return NULL;
}

static const struct mw_stored_mark *by_name(const char *word, const struct mw_metadata *metadata, size_t *count)
{
	const struct mw_stored_mark *found = NULL;

	*count = 0;
	for (size_t i = 0; i < metadata->mark_count; i++) {
		if (!metadata->marks[i].name || strcmp(metadata->marks[i].name, word) != 0)
			continue;
		found = found ? found : &metadata->marks[i];
		++*count;
	}
	return found;
}

/* 12.5s, 1m30s, and 12.5, which can be no mark's number. */
static bool is_time(const char *word)
{
	size_t length = strspn(word, DIGITS ".dhmsu");

	return !word[length] && (isdigit((unsigned char)*word) || *word == '.') && strspn(word, DIGITS) != length;
}

static struct mw_error *take_time(const char *option, const char *word, const struct mw_metadata *metadata, bool cut,
				  struct mw_cli_moment *out)
{
	uint64_t length = mw_metadata_length(metadata), time_ns;

	MW_TRY(mw_cli_parse(MW_CLI_TYPE_MOMENT, option, word, &time_ns));
	if (!cut && time_ns > length)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': the window ends at %.3f s", option,
						     word, (double)length / 1e9),
				     "Times are seconds since the window's start: take an earlier one, or 'end'");
	out->time_ns = !cut && time_ns == length ? MW_REPLAY_END : time_ns;
	out->text[0] = '\0';
	return NULL;
}

struct mw_error *mw_cli_moment_find(const char *option, const char *word, const struct mw_metadata *metadata, bool cut,
				    struct mw_cli_moment *out)
{
	const struct mw_stored_mark *mark;
	size_t named = 0;

	if (strcmp(word, "start") == 0) {
		*out = (struct mw_cli_moment){.time_ns = 0, .text = "start"};
		return NULL;
	}
	if (strcmp(word, "end") == 0) {
		*out = (struct mw_cli_moment){.time_ns = MW_REPLAY_END, .text = "end"};
		return NULL;
	}
	mark = by_number(word, metadata);
	if (!mark)
		mark = by_name(word, metadata, &named);
	if (named > 1)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0, "%s '%.64s': %zu marks have this name", option, word, named),
			"Name one by its number, which is %" PRIu32 " for the first of them", mark->number);
	if (!mark && is_time(word))
		return take_time(option, word, metadata, cut, out);
	if (!mark)
		return no_such_mark(option, word, metadata);
	take_mark(mark, metadata, cut, out);
	return NULL;
}

/* --- recordings ------------------------------------------------------------------------------------------------------ */

/* A recording, and what was last read of it. */
struct source {
	struct mw_replay *replay;
	bool read;
	uint64_t then_ns, now_ns; /* moments … */
	struct mw_moments moments;
};

struct session {
	const struct mw_cli_diff_options *options;
	const struct mw_session_options *wanted;
	struct source sources[MW_DIFF_SIDES]; /* one recording: only the first */
	struct mw_progress progress;
	struct mw_outputs outputs;
	struct mw_diff **diffs;
	size_t count;
};

static struct source *source_of(struct session *session, enum mw_diff_side side)
{
	return &session->sources[session->options->single ? MW_DIFF_OLD : side];
}

/* The same file under two names, or one name twice: without moments it has nothing to be compared with. */
static struct mw_error *check_same(const struct mw_cli_diff_options *options)
{
	struct stat old, new;

	if (options->moments[MW_DIFF_OLD] || options->moments[MW_DIFF_NEW] ||
	    stat(options->files[MW_DIFF_OLD], &old) != 0 || stat(options->files[MW_DIFF_NEW], &new) != 0 ||
	    old.st_dev != new.st_dev || old.st_ino != new.st_ino || !S_ISREG(old.st_mode))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "'%.200s' and '%.200s' are the same recording",
					     options->files[MW_DIFF_OLD], options->files[MW_DIFF_NEW]),
			     "Name another one, or two moments of this by --from and --to");
}

static struct mw_error *open_all(struct session *session)
{
	const struct mw_cli_diff_options *options = session->options;

	MW_TRY(check_same(options));
	for (unsigned side = 0; side < (session->options->single ? 1u : MW_DIFF_SIDES); side++)
		MW_TRY(mw_replay_open(options->files[side], mw_progress_share, &session->progress,
				      &session->sources[side].replay));
	return NULL;
}

/* What was read last is kept: the processes of a recording mostly share their moments. */
static struct mw_error *read_moments(struct source *source, uint64_t then_ns, uint64_t now_ns)
{
	if (source->read && source->then_ns == then_ns && source->now_ns == now_ns)
		return NULL;
	mw_moments_deinit(&source->moments);
	source->read = false;
	MW_TRY(mw_moments_read(source->replay, then_ns, now_ns, &source->moments));
	source->read = true;
	source->then_ns = then_ns;
	source->now_ns = now_ns;
	return NULL;
}

/* It breaks off, or nobody told how the process's window ended: its length is that of what is there. */
static bool is_cut(const struct mw_replay *replay, size_t process)
{
	return mw_replay_state(replay)->cut || !mw_replay_watched(replay, process)->metadata.has_end;
}

/* --- one process --------------------------------------------------------------------------------------- */

static struct mw_error *find_moments(struct session *session, size_t process, struct mw_cli_moment out[MW_DIFF_SIDES])
{
	static const char *const names[MW_DIFF_SIDES] = {"--from", "--to"};

	for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
		const struct mw_replay *replay = source_of(session, (enum mw_diff_side)side)->replay;
		const char *word = session->options->moments[side];

		if (!word)
			word = session->options->single && side == MW_DIFF_OLD ? "start" : "end";
		MW_TRY(mw_cli_moment_find(names[side], word, &mw_replay_watched(replay, process)->metadata,
					  is_cut(replay, process), &out[side]));
	}
	if (!session->options->single || out[MW_DIFF_OLD].time_ns < out[MW_DIFF_NEW].time_ns)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--from is %s --to",
					     out[MW_DIFF_OLD].time_ns == out[MW_DIFF_NEW].time_ns ? "the same moment as"
												  : "later than"),
			     "--from names the earlier of two moments");
}

static void fill_snapshot(const char *file, const struct mw_replay *replay, size_t process,
			  const struct mw_cli_moment *moment, struct mw_diff_snapshot *out)
{
	const struct mw_metadata *metadata = &mw_replay_watched(replay, process)->metadata;
	uint64_t length = mw_metadata_length(metadata);

	*out = (struct mw_diff_snapshot){
		.file = file,
		.moment = moment->text[0] ? moment->text : NULL,
		.pid = metadata->target.pid,
		.comm = metadata->target.comm,
		.exe = metadata->target.exe,
		.started_realtime_ns = metadata->target.started_realtime_ns,
		.at = (double)(moment->time_ns < length ? moment->time_ns : length) / 1e9,
		.launched = metadata->target.launched,
		.cut = is_cut(replay, process),
		.lost_events = metadata->stats.lost_events + mw_track_missed(mw_replay_watched(replay, process)->track),
		.lost_stacks = metadata->stats.lost_stacks,
	};
	for (size_t i = 0; i < metadata->hook_count; i++)
		out->not_hooked +=
			mw_view_is_missed(&metadata->hooks[i], metadata->target.track_heap, metadata->target.track_vm);
	out->tracked[MW_KIND_HEAP] = metadata->target.track_heap;
	out->tracked[MW_KIND_VM] = out->tracked[MW_KIND_VM_INTERNAL] = metadata->target.track_vm;
}

static struct mw_error *add_diff(struct session *session, const struct mw_diff_input inputs[MW_DIFF_SIDES])
{
	struct mw_diff **diffs = reallocarray(session->diffs, session->count + 1, sizeof(struct mw_diff *));

	if (!diffs)
		return mw_error_nomem();
	session->diffs = diffs;
	mw_progress_phase(&session->progress, "comparing");
	MW_TRY(mw_diff_create(inputs, session->options->kinds, &diffs[session->count]));
	session->count++;
	return NULL;
}

static struct mw_error *compare(struct session *session, size_t process)
{
	struct mw_cli_moment moments[MW_DIFF_SIDES];
	struct mw_summary_input summaries[MW_DIFF_SIDES];
	struct mw_diff_input inputs[MW_DIFF_SIDES] = {{.held = NULL}};

	MW_TRY(find_moments(session, process, moments));
	if (session->options->single)
		MW_TRY(read_moments(&session->sources[0], moments[MW_DIFF_OLD].time_ns, moments[MW_DIFF_NEW].time_ns));
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
		struct source *source = source_of(session, (enum mw_diff_side)side);
		const struct mw_moments_held *held;

		if (!session->options->single)
			MW_TRY(read_moments(source, 0, moments[side].time_ns));
		held = session->options->single && side == MW_DIFF_OLD ? &source->moments.then[process]
								       : &source->moments.now[process];
		mw_watched_input(mw_replay_watched(source->replay, process), &summaries[side]);
		fill_snapshot(session->options->files[side], source->replay, process, &moments[side],
			      &inputs[side].snapshot);
		inputs[side].summary = &summaries[side];
		inputs[side].held = held->amounts;
		inputs[side].spreads = held->spreads;
		inputs[side].stays = session->options->single ? held->stays : NULL;
		inputs[side].held_count = held->count;
	}
	return add_diff(session, inputs);
}

/* --- what is to be known beside ------------------------------------------------------------------------ */

static void report_cut(const char *file, const struct mw_replay *replay, size_t first, size_t count)
{
	const struct mw_store_state *state = mw_replay_state(replay);
	bool cut = false;

	for (size_t i = first; i < first + count; i++)
		cut = cut || is_cut(replay, i);
	if (!cut)
		return;
	fputs("memwatch: '", stderr);
	mw_message_put(stderr, file);
	fputs("' is not complete: ", stderr);
	mw_message_put(stderr, state->why ? state->why : "its end is missing");
	fprintf(stderr, "; %" PRIu64 " of %" PRIu64 " bytes are good, and compared\n", state->good, state->size);
}

/* Stacks that were cut at different depths are different ones. */
static void report_depth(struct session *session, size_t process)
{
	uint32_t old = mw_replay_watched(session->sources[MW_DIFF_OLD].replay, process)->metadata.target.depth;
	uint32_t new = mw_replay_watched(source_of(session, MW_DIFF_NEW)->replay, process)->metadata.target.depth;

	if (old != new)
		fprintf(stderr,
			"memwatch: the recordings were made with --depth %" PRIu32 " and %" PRIu32
			": stacks deeper than the smaller of them don't match\n",
			old, new);
}

/* Which processes to compare: from *first on, *count. */
static struct mw_error *choose_processes(struct session *session, size_t *first, size_t *count)
{
	size_t old = mw_replay_count(session->sources[MW_DIFF_OLD].replay);
	size_t new = mw_replay_count(source_of(session, MW_DIFF_NEW)->replay);
	size_t both = old < new ? old : new;

	if (session->options->process > both)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "--process %" PRIu64 ": '%.200s' has %zu process%s",
						     session->options->process,
						     session->options->files[old < new ? MW_DIFF_OLD : MW_DIFF_NEW],
						     both, both == 1 ? "" : "es"),
				     "Processes are numbered from 1, in the order given to -p");
	*first = session->options->process ? session->options->process - 1 : 0;
	*count = session->options->process ? 1 : both;
	if (old != new && !session->options->process)
		fprintf(stderr,
			"memwatch: the old recording has %zu process%s, the new one %zu: processes that only one has "
			"are left out\n",
			old, old == 1 ? "" : "es", new);
	return NULL;
}

/* --- two looks at heaps ------------------------------------------------------------------------------- */

/* Not windows; *looks: both are. Errors: USAGE. */
static struct mw_error *check_looks(const struct session *session, bool *looks)
{
	const struct mw_cli_diff_options *options = session->options;
	bool old = mw_replay_heap(session->sources[MW_DIFF_OLD].replay);
	bool new = options->single ? old : mw_replay_heap(session->sources[MW_DIFF_NEW].replay) != NULL;

	*looks = old && new;
	if (old != new)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "'%.200s' is a look at a heap, and '%.200s' a window",
						     options->files[old ? MW_DIFF_OLD : MW_DIFF_NEW],
						     options->files[old ? MW_DIFF_NEW : MW_DIFF_OLD]),
				     "Compare two looks, or two windows");
	if (old && (options->single || options->moments[MW_DIFF_OLD] || options->moments[MW_DIFF_NEW]))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "'%.200s' is a look at a heap: it has no moments",
						     options->files[MW_DIFF_OLD]),
				     "Leave out --from and --to, and name a second look: memwatch diff OLD NEW");
	if (old &&
	    (!options->kinds[MW_KIND_HEAP] || !options->kinds[MW_KIND_VM] || options->kinds[MW_KIND_VM_INTERNAL]))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--kind can't be used with looks at heaps"),
				     "Leave it out: all of the memory is compared");
	if (old && options->process)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "--process %" PRIu64 ": a look at a heap is of one process",
						     options->process),
				     "Leave it out");
	return NULL;
}

static struct mw_error *compare_looks(struct session *session)
{
	const struct mw_heap_report *const looks[MW_DIFF_SIDES] = {
		mw_replay_heap(session->sources[MW_DIFF_OLD].replay),
		mw_replay_heap(session->sources[MW_DIFF_NEW].replay),
	};
	struct mw_heap_diff *diff = NULL;
	struct mw_error *err;

	mw_progress_phase(&session->progress, "comparing");
	MW_TRY(mw_heap_diff_create(session->options->files, looks, &diff));
	mw_progress_clear(&session->progress);
	err = mw_outputs_write_heap_diff(&session->outputs, diff);
	mw_heap_diff_destroy(diff);
	return err;
}

static struct mw_error *run(struct session *session)
{
	size_t first = 0, count = 0;
	bool looks;

	session->outputs.progress = &session->progress;
	for (size_t i = 0; i < MW_DIFF_SIDES; i++)
		MW_TRY(mw_outputs_check_recording(session->wanted, session->options->files[i],
						  "a recording to compare"));
	MW_TRY(mw_outputs_check(session->wanted));
	MW_TRY(mw_outputs_open(&session->outputs, session->wanted));
	session->outputs.options.top = session->options->top;
	session->outputs.options.all = session->options->all;
	MW_TRY(open_all(session));
	MW_TRY(check_looks(session, &looks));
	if (looks)
		return compare_looks(session);
	MW_TRY(choose_processes(session, &first, &count));
	for (size_t i = 0; i < count; i++)
		MW_TRY(compare(session, first + i));
	mw_progress_clear(&session->progress);
	for (unsigned side = 0; side < (session->options->single ? 1u : MW_DIFF_SIDES); side++)
		report_cut(session->options->files[side], session->sources[side].replay, first, count);
	for (size_t i = 0; i < count; i++)
		report_depth(session, first + i);
	return mw_outputs_write_diffs(&session->outputs, (const struct mw_diff *const *)session->diffs, session->count);
}

struct mw_error *mw_cli_diff(const struct mw_cli_options *options)
{
	struct session session = {.options = &options->diff, .wanted = &options->session};
	struct mw_error *err;

	/* A reader that goes is an error of writing; other signals end it, as nothing is attached. */
	(void)signal(SIGPIPE, SIG_IGN);
	mw_progress_init(&session.progress, !options->session.quiet);
	err = run(&session);
	mw_progress_deinit(&session.progress);
	mw_outputs_close(&session.outputs);
	for (size_t i = 0; i < session.count; i++)
		mw_diff_destroy(session.diffs[i]);
	free(session.diffs);
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
		mw_moments_deinit(&session.sources[side].moments);
		mw_replay_close(session.sources[side].replay);
	}
	return err;
}
