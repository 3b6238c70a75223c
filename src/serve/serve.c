// SPDX-License-Identifier: MIT
/* serve.c: see serve.h. */
#include "serve/serve.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/file.h"
#include "serve/board.h"
#include "serve/listen.h"
#include "serve/metrics.h"
#include "serve/push.h"
#include "session/exports.h"
#include "session/snapshot.h"

#include <memwatch/export.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_DOCUMENT SIZE_MAX
#define MOST_NS     UINT64_C(600000000000) /* a report that takes longer is taken to hang */

struct mw_serve {
	struct mw_session *session;
	struct mw_listen *listen; /* NULL: not asked for */
	struct mw_push *push;     /* likewise */
	struct mw_board board;
	struct mw_metrics metrics;
	struct mw_snapshot snapshot; /* that is being made … */
	size_t document;             /* … for the board; NO_DOCUMENT: to be sent */
	uint64_t begun_ns;           /* … since then */
	uint64_t push_due_ns;
	bool pushed;      /* the last one was to be sent: now others have their turn */
	uint64_t from_ns; /* when the windows began, ns since the epoch; 0: they have not */
};

/* --- documents -------------------------------------------------------------------------------------------------------- */

/* In the order of their numbers: the profiles, and from OUTPUTS on the formats of reports. */
static const struct profile {
	const char *path;
	enum mw_export_measure measure; /* that is shown first */
} profiles[] = {
	{"/debug/pprof/heap", MW_EXPORT_INUSE_SPACE},
	{"/debug/pprof/allocs", MW_EXPORT_ALLOC_SPACE},
};

#define OUTPUTS (sizeof(profiles) / sizeof(profiles[0]))

_Static_assert(OUTPUTS + MW_OUTPUTS_MAX <= MW_BOARD_DOCUMENTS, "the board has room for all");

/* The number of what is at that path. */
static bool find_document(const char *path, size_t *out)
{
	static const char prefix[] = "/report.";

	for (size_t i = 0; i < OUTPUTS; i++)
		if (strcmp(path, profiles[i].path) == 0) {
			*out = i;
			return true;
		}
	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return false;
	for (size_t i = 0; mw_output_get(i); i++)
		if (strcmp(path + strlen(prefix), mw_output_get(i)->name) == 0) {
			*out = OUTPUTS + i;
			return true;
		}
	return false;
}

static struct mw_error *write_report(const struct mw_reports *reports, const struct mw_output *output, FILE *stream)
{
	const struct mw_output_options options = {
		.top = 10,
		.timelines = (const struct mw_timeline *const *)reports->timelines,
	};

	return output->write((const struct mw_report *const *)reports->items, reports->count, &options, stream);
}

/* In the copy. `context` is the document's number. */
static struct mw_error *write_document(void *context, struct mw_reports *reports, FILE *stream)
{
	size_t number = *(const size_t *)context;

	if (number < OUTPUTS)
		return mw_exports_render(reports, &mw_export_pprof, profiles[number].measure, SIZE_MAX, stream);
	return write_report(reports, mw_output_get(number - OUTPUTS), stream);
}

/* --- fetched ---------------------------------------------------------------------------------------------------------- */

static struct mw_listen_answer give_metrics(struct mw_serve *serve)
{
	struct mw_listen_answer answer = {.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8"};

	answer.bytes = mw_metrics_render(&serve->metrics, &answer.size);
	if (!answer.bytes)
		answer.status = 503;
	return answer;
}

/* In a thread of the server's. */
static struct mw_listen_answer get(void *context, const char *path)
{
	struct mw_serve *serve = context;
	struct mw_listen_answer answer = {.status = 0};
	struct mw_board_answer made;
	size_t number;

	if (strcmp(path, "/metrics") == 0)
		return give_metrics(serve);
	if (!find_document(path, &number))
		return answer;
	made = mw_board_ask(&serve->board, number);
	answer = (struct mw_listen_answer){.status = 200, .bytes = made.bytes, .size = made.size};
	answer.type = number < OUTPUTS ? "application/octet-stream" : mw_output_get(number - OUTPUTS)->media;
	if (!made.bytes || made.failed) {
		answer.status = 503;
		answer.type = "text/plain; charset=utf-8";
	}
	if (!made.bytes) {
		answer.bytes = strdup("the window is over, or too many wait already\n");
		answer.size = answer.bytes ? strlen(answer.bytes) : 0;
	}
	return answer;
}

/* --- sent ------------------------------------------------------------------------------------------------------------- */

/* The cgroup's path, of the last line: with version 2 it is the only one. */
static void set_cgroup(struct mw_labels *labels, pid_t pid, struct mw_error **err)
{
	MW_FREE char *text = NULL;
	char *path = NULL;
	size_t size;

	if (*err || !mw_error_none(mw_proc_file_read(&text, &size, "/proc/%d/cgroup", (int)pid)))
		return;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		path = strchr(line, '/');
	if (path)
		*err = mw_labels_set(labels, "cgroup", path);
}

static void set_build_id(struct mw_labels *labels, const struct mw_watched *watched, struct mw_error **err)
{
	const struct mw_metadata *metadata = &watched->metadata;
	char text[64] = "";

	for (size_t i = 0; i < metadata->module_count && metadata->target.exe; i++) {
		const struct mw_view_module *module = &metadata->modules[i];

		if (!module->path || strcmp(module->path, metadata->target.exe) != 0)
			continue;
		for (size_t j = 0; j < module->build_id_size && 2 * j + 2 < sizeof(text); j++)
			snprintf(text + 2 * j, 3, "%02x", module->build_id[j]);
	}
	if (*text && !*err)
		*err = mw_labels_set(labels, "build_id", text);
}

/* What says whose profile it is, then what the user says. */
static struct mw_error *labels_of(const struct mw_serve *serve, size_t process, struct mw_labels *labels)
{
	const struct mw_session_options *options = serve->session->options;
	const struct mw_recorder *recorder = &serve->session->recorders[process];
	struct mw_error *err;
	char text[256] = "";

	(void)gethostname(text, sizeof(text) - 1);
	err = mw_labels_set(labels, "host", text);
	if (!err)
		err = mw_labels_set(labels, "comm", recorder->comm ? recorder->comm : "");
	(void)snprintf(text, sizeof(text), "%d", (int)recorder->pid);
	if (!err)
		err = mw_labels_set(labels, "pid", text);
	set_cgroup(labels, recorder->pid, &err);
	set_build_id(labels, recorder->watched, &err);
	for (size_t i = 0; i < options->label_count && !err; i++) {
		const char *equals = strchr(options->labels[i], '=');
		MW_FREE char *name = strndup(options->labels[i], (size_t)(equals - options->labels[i]));

		err = name ? mw_labels_set(labels, name, equals + 1) : mw_error_nomem();
	}
	return err;
}

/* One profile a process, each behind its size. */
static struct mw_error *write_profiles(void *context, struct mw_reports *reports, FILE *stream)
{
	(void)context;
	for (size_t i = 0; i < reports->count; i++) {
		MW_FREE char *bytes = NULL;
		size_t size = 0;
		FILE *one = open_memstream(&bytes, &size);
		struct mw_error *err;

		if (!one)
			return mw_error_nomem();
		err = mw_exports_render(reports, &mw_export_pprof, MW_EXPORT_INUSE_SPACE, i, one);
		if (fclose(one) && !err)
			err = mw_error_nomem();
		MW_TRY(err);
		fwrite(&size, sizeof(size), 1, stream);
		fwrite(bytes, 1, size, stream);
	}
	return NULL;
}

static struct mw_error *send_one(struct mw_serve *serve, size_t process, const char *bytes, size_t size)
{
	struct mw_labels labels = {.count = 0};
	char *copy = malloc(size);
	struct mw_error *err = copy ? labels_of(serve, process, &labels) : mw_error_nomem();

	if (err) {
		free(copy);
		mw_labels_deinit(&labels);
		return err;
	}
	memcpy(copy, bytes, size);
	mw_push_add(serve->push, copy, size, &labels, serve->from_ns, (uint64_t)mw_clock_realtime_ns());
	return NULL;
}

/* What write_profiles() has written. */
static struct mw_error *send_profiles(struct mw_serve *serve, const char *bytes, size_t size)
{
	size_t at = 0, length;

	for (size_t i = 0; i < serve->session->count && size - at >= sizeof(length); i++) {
		memcpy(&length, bytes + at, sizeof(length));
		at += sizeof(length);
		if (length > size - at)
			break;
		MW_TRY(send_one(serve, i, bytes + at, length));
		at += length;
	}
	return NULL;
}

/* --- breaks of the engine ----------------------------------------------------------------------------------------------- */

static void put_failure(struct mw_serve *serve, struct mw_error *err)
{
	struct mw_board_answer answer = {.failed = true};

	if (serve->document == NO_DOCUMENT) {
		fprintf(stderr, "memwatch: no profile is sent this time: %s\n", mw_error_text(err));
	} else {
		answer.bytes = strdup(mw_error_text(err));
		answer.size = answer.bytes ? strlen(answer.bytes) : 0;
		mw_board_answer(&serve->board, serve->document, answer);
	}
	mw_error_destroy(err);
}

static void take_snapshot(struct mw_serve *serve)
{
	char *bytes = NULL;
	size_t size = 0;
	bool made;
	struct mw_error *err = mw_snapshot_look(&serve->snapshot, &made, &bytes, &size);

	if (!err && !made && mw_clock_ns() - serve->begun_ns < MOST_NS)
		return;
	if (!err && !made) {
		mw_snapshot_end(&serve->snapshot);
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "the report could not be made: it took too long");
	}
	if (serve->document == NO_DOCUMENT)
		serve->push_due_ns = mw_clock_ns() + serve->session->options->push_every_ns;
	if (!err && serve->document == NO_DOCUMENT) {
		err = send_profiles(serve, bytes, size);
		free(bytes);
	} else if (!err) {
		mw_board_answer(&serve->board, serve->document, (struct mw_board_answer){bytes, size, false});
	}
	if (err)
		put_failure(serve, err);
}

static struct mw_error *begin_profiles(struct mw_serve *serve)
{
	serve->document = NO_DOCUMENT;
	serve->pushed = true;
	return mw_snapshot_begin(serve->session, write_profiles, NULL, &serve->snapshot);
}

static void begin_snapshot(struct mw_serve *serve)
{
	bool due = serve->push && serve->session->options->push_every_ns && mw_clock_ns() >= serve->push_due_ns;
	struct mw_error *err = NULL;

	serve->begun_ns = mw_clock_ns();
	if (due && !serve->pushed) {
		err = begin_profiles(serve);
	} else if (serve->listen && mw_board_next(&serve->board, &serve->document)) {
		serve->pushed = false;
		err = mw_snapshot_begin(serve->session, write_document, &serve->document, &serve->snapshot);
	} else if (due) {
		err = begin_profiles(serve);
	}
	if (err)
		put_failure(serve, err);
}

static void on_turn(void *context)
{
	struct mw_serve *serve = context;

	if (serve->snapshot.pid)
		take_snapshot(serve);
	if (!serve->snapshot.pid)
		begin_snapshot(serve);
}

/* Whoever waits does so for nothing. */
static void on_ending(void *context)
{
	struct mw_serve *serve = context;

	mw_snapshot_end(&serve->snapshot);
	mw_board_close(&serve->board);
}

static void on_sampled(void *context, size_t process, uint64_t time_ns)
{
	struct mw_serve *serve = context;

	(void)process, (void)time_ns;
	mw_metrics_update(&serve->metrics, serve->session);
}

static void on_begun(void *context)
{
	struct mw_serve *serve = context;

	serve->from_ns = (uint64_t)mw_clock_realtime_ns();
	serve->push_due_ns = mw_clock_ns() + serve->session->options->push_every_ns;
	mw_metrics_update(&serve->metrics, serve->session);
}

/* --- begin and end ---------------------------------------------------------------------------------------------------- */

static struct mw_error *start(struct mw_serve *serve, const struct mw_session_options *options)
{
	if (options->push)
		MW_TRY(mw_push_create(options->push, &serve->push));
	if (!options->listen)
		return NULL;
	MW_TRY(mw_listen_open(options->listen, options->listen_token, &serve->listen));
	MW_TRY(mw_listen_start(serve->listen, get, serve));
	if (!options->quiet)
		fprintf(stderr, "memwatch: listening at %s\n", mw_listen_place(serve->listen));
	return NULL;
}

struct mw_error *mw_serve_create(struct mw_session *session, struct mw_serve **out)
{
	struct mw_serve *serve = calloc(1, sizeof(*serve));
	struct mw_error *err;

	if (!serve)
		return mw_error_nomem();
	serve->session = session;
	serve->snapshot = MW_SNAPSHOT_NONE;
	mw_board_init(&serve->board);
	mw_metrics_init(&serve->metrics);
	err = start(serve, session->options);
	if (err)
		return mw_error_first(err, mw_serve_destroy(serve));
	session->begun = on_begun;
	session->sampled = on_sampled;
	session->turn = on_turn;
	session->ending = on_ending;
	session->context = serve;
	*out = serve;
	return NULL;
}

struct mw_error *mw_serve_finish(struct mw_serve *serve)
{
	MW_FREE char *bytes = NULL;
	size_t size = 0;
	FILE *stream;
	struct mw_error *err;

	if (!serve->push)
		return NULL;
	stream = open_memstream(&bytes, &size);
	if (!stream)
		return mw_error_nomem();
	err = write_profiles(NULL, &serve->session->reports, stream);
	if (fclose(stream) && !err)
		err = mw_error_nomem();
	return err ? err : send_profiles(serve, bytes, size);
}

struct mw_error *mw_serve_destroy(struct mw_serve *serve)
{
	bool all;

	if (!serve)
		return NULL;
	mw_snapshot_end(&serve->snapshot);
	/* Nobody who waits is to hold up the server's end. */
	mw_board_close(&serve->board);
	mw_listen_close(serve->listen);
	all = mw_push_end(serve->push);
	mw_board_deinit(&serve->board);
	mw_metrics_deinit(&serve->metrics);
	free(serve);
	return all ? NULL : mw_error_create(MW_ERROR_SYSTEM, 0, "not all profiles were sent");
}
