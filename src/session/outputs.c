// SPDX-License-Identifier: MIT
/* outputs.c: from watched processes to what is written of them, and where to (outputs.h). */
#include "session/outputs.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/place.h"
#include "session/exports.h"
#include "session/terminal.h"
#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_SIZE  4096 /* by which a file is known for what it is */
#define FILE_WIDTH 120  /* columns of a report that goes to no terminal */

struct mw_outfile {
	FILE *stream;
	int fd;
	int errnum;    /* of the first write that failed */
	char *name;    /* as the user said it */
	bool placed;   /* it is to get its name; else it is written directly */
	char *partial; /* where it is meanwhile; NULL: nowhere */
	struct mw_place place;
};

static bool is_stdout(const char *name)
{
	return strcmp(name, "-") == 0;
}

static struct mw_error *cannot_write(const char *name, int errnum)
{
	struct mw_error *err = is_stdout(name)
				       ? mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write to standard output")
				       : mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot write '%s'", name);

	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return mw_error_hint(err, "Its directory does not exist: create it first, or give another file");
	case EISDIR:
		return mw_error_hint(err, "Name a file");
	case ENOSPC:
	case EDQUOT:
		return mw_error_hint(err, "Free some space there, or write it elsewhere");
	case EFBIG:
		return mw_error_hint(err, "Raise the limit of a file's size (ulimit -f)");
	case EPIPE:
		return mw_error_hint(err, "The program that reads it has ended");
	case EBADF:
		return mw_error_hint(err, "It is closed: redirect it");
	default:
		return mw_error_hint(err, "Give a file that you may write");
	}
}

/* The stream's write function: stdio's own would forget why a write failed, and fail where a signal interrupts. */
static ssize_t write_all(void *cookie, const char *bytes, size_t size)
{
	struct mw_outfile *file = cookie;
	size_t done = 0;

	while (done < size && !file->errnum) {
		ssize_t wrote = write(file->fd, bytes + done, size - done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote < 0 && errno != EINTR)
			file->errnum = errno;
	}
	return (ssize_t)done;
}

/* The directory part with its '/', or "./"; malloc'ed. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

static struct mw_error *open_descriptor(struct mw_outfile *file, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return cannot_write(file->name, EBADF);
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? cannot_write(file->name, errno) : NULL;
}

/* Names of descriptors of our own: what is open is written to, from where it is at. -1: it is none. */
static int descriptor_of(const char *name)
{
	static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(name, "-") == 0 || strcmp(name, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(name, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		size_t length = strlen(directories[i]);
		size_t digits = strspn(name + (strnlen(name, length) < length ? 0 : length), "0123456789");

		if (strncmp(name, directories[i], length) == 0 && digits > 0 && digits < 6 && !name[length + digits])
			return (int)strtol(name + length, NULL, 10);
	}
	return -1;
}

static struct mw_error *open_any(struct mw_outfile *file)
{
	int fd = descriptor_of(file->name), errnum;

	if (fd >= 0)
		return open_descriptor(file, fd);
	errnum = mw_place_find(&file->place, file->name);
	if (file->place.why)
		return mw_error_hint(
			mw_error_create(MW_ERROR_SYSTEM, 0, "cannot write '%s': %s", file->name, file->place.why),
			"Remove it, or give another file");
	if (errnum)
		return cannot_write(file->name, errnum);
	file->fd = mw_place_open(&file->place);
	if (file->fd < 0)
		return cannot_write(file->name, errno);
	file->placed = file->place.kind != MW_PLACE_OPEN;
	file->partial = mw_place_partial(&file->place);
	return NULL;
}

struct mw_error *mw_outfile_open(const char *name, struct mw_outfile **out)
{
	struct mw_outfile *file = calloc(1, sizeof(*file));
	struct mw_error *err;

	if (!file)
		return mw_error_nomem();
	file->fd = file->place.dir = file->place.there = -1;
	file->name = strdup(name);
	err = file->name ? open_any(file) : mw_error_nomem();
	if (!err) {
		file->stream = fopencookie(file, "w", (cookie_io_functions_t){.write = write_all});
		err = file->stream ? NULL : mw_error_nomem();
	}
	if (err) {
		mw_outfile_abort(file);
		return err;
	}
	*out = file;
	return NULL;
}

/* Are these names of one file? One that is yet to be made is known by its directory and its name there. */
static bool is_same(const char *name, const char *other)
{
	struct stat one, two;
	MW_FREE char *one_in = NULL, *two_in = NULL;

	if (is_stdout(name) || is_stdout(other))
		return false;
	if (stat(name, &one) == 0 || stat(other, &two) == 0)
		return stat(name, &one) == 0 && stat(other, &two) == 0 && S_ISREG(one.st_mode) &&
		       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
	one_in = directory_of(name);
	two_in = directory_of(other);
	return one_in && two_in && strcmp(basename(name), basename(other)) == 0 && stat(one_in, &one) == 0 &&
	       stat(two_in, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

FILE *mw_outfile_stream(struct mw_outfile *file)
{
	return file->stream;
}

/* 0 or an errno value. */
static int finish_writing(struct mw_outfile *file)
{
	bool failed = fflush(file->stream) != 0 || ferror(file->stream);
	int fd = file->fd;

	if (failed || file->errnum)
		return file->errnum ? file->errnum : EIO;
	/* Pipes and terminals have nothing to sync, and say so. */
	if (file->placed && fsync(fd) != 0)
		return errno;
	if (file->placed) {
		int errnum = mw_place_name(&file->place, fd);

		if (errnum)
			return errnum;
	}
	file->fd = -1;
	return close(fd) != 0 && errno != EINTR ? errno : 0;
}

struct mw_error *mw_outfile_commit(struct mw_outfile *file)
{
	int errnum = finish_writing(file);
	struct mw_error *err = errnum ? cannot_write(file->name, errnum) : NULL;

	mw_outfile_abort(file);
	return err;
}

void mw_outfile_abort(struct mw_outfile *file)
{
	if (!file)
		return;
	if (file->stream) {
		file->errnum = file->errnum ? file->errnum : ECANCELED; /* what is still buffered goes nowhere */
		fclose(file->stream);
	}
	if (file->fd >= 0)
		close(file->fd);
	mw_place_deinit(&file->place);
	free(file->partial);
	free(file->name);
	free(file);
}

/* --- all outputs -------------------------------------------------------------------------------------------------- */

/* What is to be written: either of them. */
struct content {
	const struct mw_report *const *reports;
	const struct mw_diff *const *diffs;
	size_t count;
	const struct mw_heap_report *heap;
	const struct mw_heap_diff *heap_diff;
};

bool mw_outputs_want_timelines(const struct mw_session_options *options)
{
	for (size_t i = 0; mw_output_get(i); i++)
		if (options->files[i] && mw_output_get(i)->timelines)
			return true;
	return false;
}

static struct mw_error *check_pair(const char *option, const char *name, const char *other_option, const char *other)
{
	struct mw_error *err = NULL;

	if (!name || !other)
		return NULL;
	if (is_stdout(name) && is_stdout(other))
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s and --%s are both standard output", option,
				      other_option);
	else if (is_same(name, other))
		err = mw_error_create(MW_ERROR_USAGE, 0, "--%s and --%s are one file, '%s'", option, other_option,
				      name);
	return err ? mw_error_hint(err, "Give them different names") : NULL;
}

/* What is there under that name may be replaced if it is empty or `is_own`. What else stands in the way is reported when it is
 * opened. */
static struct mw_error *check_there(const char *option, const char *name, const char *what,
				    bool (*is_own)(const char *head, size_t size))
{
	char head[HEAD_SIZE];
	struct mw_place place;
	ssize_t size = 0;
	bool found;
	int fd;

	if (!name || descriptor_of(name) >= 0)
		return NULL;
	found = mw_place_find(&place, name) == 0 && place.kind == MW_PLACE_FILE;
	if (found) {
		fd = open(mw_path("/proc/self/fd/%d", place.there).text, O_RDONLY | O_CLOEXEC);
		size = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
		if (fd >= 0)
			close(fd);
	}
	mw_place_deinit(&place);
	if (size == 0 || (size > 0 && is_own(head, (size_t)size)))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "--%s '%s' is a file that is not %s of memwatch's",
					     option, name, what),
			     "Give another name, or --force to replace it");
}

#define WRITTEN_MAX (MW_PARTIALS_MAX)

/* A file that is asked for. */
struct written {
	const char *option, *name, *what;
	bool (*is_own)(const char *head, size_t size);
};

/* All of them; returns how many. */
static size_t list_written(const struct mw_session_options *options, struct written out[WRITTEN_MAX])
{
	const struct mw_export_wishes *exports = &options->exports;
	size_t count = 0;

	if (options->output)
		out[count++] = (struct written){"output", options->output, "a recording", mw_store_is_recording};
	for (size_t i = 0; mw_output_get(i); i++)
		if (options->files[i])
			out[count++] = (struct written){mw_output_get(i)->name, options->files[i],
							mw_output_get(i)->what, mw_output_get(i)->is_own};
	for (size_t i = 0; i < exports->count; i++)
		out[count++] = (struct written){exports->alone ? "output" : "export", exports->items[i].file,
						exports->items[i].format->what, exports->items[i].format->is_own};
	return count;
}

struct mw_error *mw_outputs_check(const struct mw_session_options *options)
{
	struct written written[WRITTEN_MAX];
	size_t count = list_written(options, written);

	MW_TRY(mw_exports_check(&options->exports));
	for (size_t i = 0; i < count && !options->force; i++)
		MW_TRY(check_there(written[i].option, written[i].name, written[i].what, written[i].is_own));
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			MW_TRY(check_pair(written[i].option, written[i].name, written[j].option, written[j].name));
	return NULL;
}

struct mw_error *mw_outputs_check_recording(const struct mw_session_options *options, const char *recording,
					    const char *what)
{
	struct written written[WRITTEN_MAX];
	size_t count = list_written(options, written);

	for (size_t i = 0; i < count; i++)
		if (written[i].name != options->output && is_same(written[i].name, recording))
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--%s '%s' is %s", written[i].option,
							     written[i].name, what),
					     "Give another name: the recording would be lost");
	return NULL;
}

/* Half of what goes to a terminal would be orders to it. */
static struct mw_error *open_export(struct mw_outputs *outputs, size_t number)
{
	const struct mw_export_format *format = outputs->wishes->items[number].format;

	MW_TRY(mw_outfile_open(outputs->wishes->items[number].file, &outputs->exports[number]));
	if (!format->binary || !isatty(outputs->exports[number]->fd))
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0, "%s is not written to a terminal: it is binary", format->what),
		outputs->wishes->alone ? "Name a file for it by -o, or send it to another program"
				       : "Name a file for it, as in --export %s:FILE",
		format->name);
}

struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options)
{
	bool stdout_taken = options->quiet;

	outputs->options.top = options->top;
	outputs->options.all = options->all;
	outputs->options.frames = options->frames;
	outputs->wishes = options->exports.count ? &options->exports : NULL;
	outputs->options.fail_on = options->fail_on;
	free(outputs->root);
	outputs->options.root = outputs->root = getcwd(NULL, 0);
	for (size_t i = 0; mw_output_get(i); i++)
		stdout_taken |= options->files[i] && is_stdout(options->files[i]);
	for (size_t i = 0; i < options->exports.count; i++)
		stdout_taken |= options->exports.alone || is_stdout(options->exports.items[i].file);
	for (size_t i = 0; mw_output_get(i); i++) {
		const char *name = mw_output_get(i)->reading && !stdout_taken ? "-" : options->files[i];

		if (name)
			MW_TRY(mw_outfile_open(name, &outputs->files[i]));
	}
	for (size_t i = 0; i < options->exports.count; i++)
		MW_TRY(open_export(outputs, i));
	return NULL;
}

/* Where it is the terminal itself, nothing else is to stand there. */
static void show_writing(const struct mw_outputs *outputs, const struct mw_outfile *file, const char *phase)
{
	if (!outputs->progress)
		return;
	if (isatty(file->fd))
		mw_progress_clear(outputs->progress);
	else
		mw_progress_phase(outputs->progress, phase);
}

/* Are colours wanted there: a terminal, not TERM=dumb, no NO_COLOR? */
static bool wants_color(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

static struct mw_error *render(const struct mw_outputs *outputs, const struct mw_output *output, FILE *stream,
			       const struct content *content)
{
	struct mw_output_options options = outputs->options;

	if (content->diffs)
		return output->write_diffs(content->diffs, content->count, &options, stream);
	if (output->reading) {
		options.width = mw_terminal_width(STDOUT_FILENO);
		/* Answers to a question are for other programs too: names in them stay whole. */
		if (!options.width && content->reports && !options.views)
			options.width = FILE_WIDTH;
		options.color = wants_color(STDOUT_FILENO);
	}
	if (content->heap_diff)
		return output->write_heap_diff(content->heap_diff, &options, stream);
	if (content->heap)
		return output->write_heap(content->heap, &options, stream);
	/* Without its timelines it would be a page with nothing in it. */
	for (size_t i = 0; output->timelines && i < content->count; i++)
		if (!options.timelines || !options.timelines[i])
			return mw_error_nomem();
	return output->write(content->reports, content->count, &options, stream);
}

/* Render into one of the files and close it. */
static struct mw_error *write_file(struct mw_outputs *outputs, size_t number, const struct content *content)
{
	struct mw_outfile *taken = outputs->files[number];
	struct mw_error *err;

	if (!taken)
		return NULL;
	outputs->files[number] = NULL;
	show_writing(outputs, taken,
		     content->diffs || content->heap_diff ? "writing the comparison" : "writing the report");
	err = render(outputs, mw_output_get(number), mw_outfile_stream(taken), content);
	if (err) {
		mw_outfile_abort(taken);
		return err;
	}
	return mw_outfile_commit(taken);
}

static struct mw_error *write_all_files(struct mw_outputs *outputs, const struct content *content)
{
	struct mw_error *err = NULL;

	/* Each of the reports is tried, also where another fails. */
	for (size_t i = 0; mw_output_get(i) && !(err && content->diffs); i++)
		err = mw_error_first(err, write_file(outputs, i, content));
	if (outputs->progress)
		mw_progress_clear(outputs->progress);
	return err;
}

struct mw_error *mw_outputs_write_diffs(struct mw_outputs *outputs, const struct mw_diff *const *diffs, size_t count)
{
	const struct content content = {.diffs = diffs, .count = count};

	return write_all_files(outputs, &content);
}

struct mw_error *mw_outputs_write_heap(struct mw_outputs *outputs, const struct mw_heap_report *heap)
{
	const struct content content = {.heap = heap};

	for (size_t i = 0; mw_output_get(i); i++)
		if (outputs->files[i] && !mw_output_get(i)->write_heap)
			return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
							     "a look at a heap can't be written by --%s",
							     mw_output_get(i)->name),
					     "Leave it out: memwatch heap --help lists what it can be written as");
	return write_all_files(outputs, &content);
}

struct mw_error *mw_outputs_write_heap_diff(struct mw_outputs *outputs, const struct mw_heap_diff *diff)
{
	const struct content content = {.heap_diff = diff};

	return write_all_files(outputs, &content);
}

struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs)
{
	struct mw_partials partials = {{NULL}};

	for (size_t i = 0; mw_output_get(i); i++) {
		const struct mw_outfile *file = outputs->files[i];

		partials.paths[i] = file && file->place.has_temp ? file->partial : NULL;
	}
	for (size_t i = 0; i < MW_EXPORTS_MAX; i++) {
		const struct mw_outfile *file = outputs->exports[i];

		partials.paths[MW_OUTPUTS_MAX + i] = file && file->place.has_temp ? file->partial : NULL;
	}
	return partials;
}

struct mw_error *mw_outputs_write_export(struct mw_outputs *outputs, size_t number, const struct mw_export *export)
{
	struct mw_outfile *taken = outputs->exports[number];
	struct mw_error *err;

	if (!taken)
		return NULL;
	outputs->exports[number] = NULL;
	show_writing(outputs, taken, "writing the export");
	err = outputs->wishes->items[number].format->write(export, mw_outfile_stream(taken));
	if (err) {
		mw_outfile_abort(taken);
		return err;
	}
	return mw_outfile_commit(taken);
}

void mw_outputs_close(struct mw_outputs *outputs)
{
	for (size_t i = 0; mw_output_get(i); i++) {
		mw_outfile_abort(outputs->files[i]);
		outputs->files[i] = NULL;
	}
	for (size_t i = 0; i < MW_EXPORTS_MAX; i++) {
		mw_outfile_abort(outputs->exports[i]);
		outputs->exports[i] = NULL;
	}
	free(outputs->root);
	outputs->options.root = outputs->root = NULL;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

struct mw_error *mw_reports_init(struct mw_reports *reports, const struct mw_reports_wish *wish, size_t count)
{
	*reports = (struct mw_reports){
		.wish = *wish,
		.count = count,
		.interval = {.to_ns = UINT64_MAX},
		.watched = calloc(count + 1, sizeof(struct mw_watched *)),
		.items = calloc(count + 1, sizeof(struct mw_report *)),
		.timelines = calloc(count + 1, sizeof(struct mw_timeline *)),
	};
	return reports->watched && reports->items && reports->timelines ? NULL : mw_error_nomem();
}

void mw_reports_deinit(struct mw_reports *reports)
{
	mw_views_destroy(reports->views);
	mw_exports_peak_destroy(reports->peak);
	for (size_t i = 0; reports->timelines && i < reports->count; i++)
		mw_timeline_destroy(reports->timelines[i]);
	for (size_t i = 0; reports->items && i < reports->count; i++)
		mw_report_destroy(reports->items[i]);
	free(reports->watched);
	free(reports->items);
	free(reports->timelines);
	*reports = (struct mw_reports){.count = 0};
}

struct mw_error *mw_reports_collect(const struct mw_reports *reports, struct mw_watched *watched, bool known,
				    uint64_t from_ns, uint64_t to_ns)
{
	const struct mw_collector_options options = {
		.question = reports->wish.question,
		.timeline = reports->wish.timelines,
		.samples = reports->wish.samples || (reports->wish.exports && reports->wish.exports->count),
		.filter = reports->wish.exports ? reports->wish.exports->filter : NULL,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.metadata = known ? &watched->metadata : NULL,
	};

	return options.question || options.timeline || options.samples ? mw_watched_collect(watched, &options) : NULL;
}

struct mw_error *mw_reports_make(struct mw_reports *reports, size_t process, struct mw_watched *watched)
{
	mw_progress_phase(reports->wish.progress, "making the report");
	reports->watched[process] = watched;
	reports->interval.progress = mw_progress_symbols;
	reports->interval.context = reports->wish.progress;
	MW_TRY(mw_watched_report(watched, &reports->interval, &reports->items[process]));
	if (!watched->timeline)
		return NULL;
	mw_progress_phase(reports->wish.progress, "making the report's timeline");
	/* Where there is no memory for that there is a report all the same, and no timeline. */
	mw_error_destroy(mw_watched_timeline(watched, &reports->interval, &reports->timelines[process]));
	return NULL;
}

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	mw_collector_watch(&mw_replay_watched(context, process)->collector, track);
}

/* Where the interval will end, 0: not known. */
static uint64_t end_of(const struct mw_replay *replay, const struct mw_replay_interval *interval)
{
	uint64_t length = mw_replay_length(replay);

	if (mw_replay_state(replay)->cut)
		return 0;
	return interval->to_ns < length ? interval->to_ns : length;
}

struct mw_error *mw_reports_read(struct mw_reports *reports, const struct mw_reports_wish *wish,
				 struct mw_replay *replay, struct mw_replay_interval *interval)
{
	size_t count = mw_replay_count(replay);

	MW_TRY(mw_reports_init(reports, wish, count));
	reports->interval.from_ns = interval->from_ns;
	reports->interval.to_ns = interval->to_ns;
	interval->begin = on_begin;
	interval->context = replay;
	for (size_t i = 0; i < count; i++)
		MW_TRY(mw_reports_collect(reports, mw_replay_watched(replay, i), true, interval->from_ns,
					  end_of(replay, interval)));
	MW_TRY(mw_replay_run(replay, interval));
	for (size_t i = 0; i < count; i++)
		MW_TRY(mw_reports_make(reports, i, mw_replay_watched(replay, i)));
	return NULL;
}

struct mw_error *mw_reports_replay(struct mw_reports *reports, const struct mw_reports_wish *wish,
				   struct mw_replay *replay, struct mw_replay_interval *interval)
{
	struct mw_exports_peak *peak = NULL;
	struct mw_error *err;

	MW_TRY(mw_exports_peak_find(wish, replay, interval, &peak));
	err = mw_reports_read(reports, wish, replay, interval);
	reports->peak = peak;
	reports->replay = mw_exports_read_again(wish->exports) ? replay : NULL;
	return err;
}

bool mw_pids_have(const struct mw_pids *pids, pid_t pid, const char *comm)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid)
			return true;
	for (size_t i = 0; i < pids->name_count; i++)
		if (comm && strcmp(pids->names[i], comm) == 0)
			return true;
	return !pids->count && !pids->name_count;
}

struct mw_error *mw_reports_keep(struct mw_reports *reports, const struct mw_pids *pids)
{
	size_t kept = 0;

	if (!pids->count && !pids->name_count)
		return NULL;
	for (size_t i = 0; i < reports->count; i++) {
		if (mw_pids_have(pids, reports->items[i]->target.pid, reports->items[i]->target.comm)) {
			reports->watched[kept] = reports->watched[i];
			reports->items[kept] = reports->items[i];
			reports->timelines[kept++] = reports->timelines[i];
		} else {
			mw_report_destroy(reports->items[i]);
			mw_timeline_destroy(reports->timelines[i]);
		}
	}
	reports->count = kept;
	return kept ? NULL
		    : mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--pid: the recording has no such process"),
				    "Without --pid memwatch report shows all that it has");
}

static struct mw_error *make_views(struct mw_reports *reports)
{
	MW_FREE struct mw_view_process *processes = NULL;

	if (!reports->wish.question)
		return NULL;
	processes = calloc(reports->count + 1, sizeof(*processes));
	if (!processes)
		return mw_error_nomem();
	for (size_t i = 0; i < reports->count; i++)
		mw_watched_view(reports->watched[i], &reports->interval, reports->items[i], &processes[i]);
	return mw_views_create(reports->wish.question, processes, reports->count, &reports->views);
}

struct mw_error *mw_reports_write(struct mw_reports *reports, struct mw_outputs *outputs)
{
	const struct content content = {.reports = (const struct mw_report *const *)reports->items,
					.count = reports->count};
	MW_FREE const struct mw_views **views = calloc(reports->count + 1, sizeof(struct mw_views *));
	struct mw_error *err;

	if (!views)
		return mw_error_nomem();
	MW_TRY(make_views(reports));
	views[0] = reports->views;
	outputs->options.views = reports->views ? (const struct mw_views *const *)views : NULL;
	outputs->options.timelines = (const struct mw_timeline *const *)reports->timelines;
	outputs->progress = reports->wish.progress;
	mw_progress_clear(reports->wish.progress);
	err = write_all_files(outputs, &content);
	outputs->options.views = NULL;
	outputs->options.timelines = NULL;
	if (outputs->wishes)
		err = mw_error_first(err, mw_exports_write(reports, outputs));
	return err;
}

struct mw_error *mw_reports_write_kept(int fd, const struct mw_reports_wish *wish, struct mw_outputs *outputs)
{
	struct mw_replay_interval interval = {.to_ns = MW_REPLAY_END, .judged = true};
	struct mw_reports reports = {.count = 0};
	struct mw_replay *replay = NULL;
	struct mw_error *err;

	err = mw_replay_open(mw_path("/proc/self/fd/%d", fd).text, mw_progress_share, wish->progress, &replay);
	if (!err)
		err = mw_reports_replay(&reports, wish, replay, &interval);
	if (!err)
		err = mw_reports_write(&reports, outputs);
	mw_progress_clear(wish->progress);
	mw_reports_deinit(&reports);
	mw_replay_close(replay);
	return err;
}
