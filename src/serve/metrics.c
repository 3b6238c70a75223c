// SPDX-License-Identifier: MIT
/* metrics.c: see metrics.h. */
#include "serve/metrics.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mw_metrics_process {
	pid_t pid;
	char comm[17];
	bool over;
	struct mw_track_totals totals[2]; /* by kind: heap, vm */
	struct mw_stored_sample newest;
	struct mw_engine_stats stats;
	uint64_t interval;
};

void mw_metrics_init(struct mw_metrics *metrics)
{
	*metrics = (struct mw_metrics){.count = 0};
	pthread_mutex_init(&metrics->lock, NULL);
}

void mw_metrics_deinit(struct mw_metrics *metrics)
{
	pthread_mutex_destroy(&metrics->lock);
	free(metrics->items);
}

static bool has_room(struct mw_metrics *metrics, size_t count)
{
	struct mw_metrics_process *items;

	if (count <= metrics->capacity)
		return true;
	items = realloc(metrics->items, count * sizeof(*items));
	if (!items)
		return false;
	metrics->items = items;
	metrics->capacity = count;
	return true;
}

static void take(struct mw_metrics_process *process, const struct mw_session *session, size_t i)
{
	const struct mw_recorder *recorder = &session->recorders[i];

	*process = (struct mw_metrics_process){.pid = recorder->pid, .newest = recorder->newest};
	process->over = mw_session_window(session, i)->over;
	process->interval = recorder->budget.interval ? recorder->budget.interval : session->options->sample_interval;
	(void)snprintf(process->comm, sizeof(process->comm), "%s", recorder->comm ? recorder->comm : "");
	for (enum mw_kind kind = MW_KIND_HEAP; kind <= MW_KIND_VM; kind++)
		mw_track_totals(recorder->watched->track, kind, &process->totals[kind]);
	(void)mw_recorder_stats(recorder, &process->stats);
}

/* Has the process become another program, which has figures of its own? There is one series a process. */
static bool is_followed(const struct mw_session *session, size_t i)
{
	for (size_t j = i + 1; j < session->count; j++)
		if (session->recorders[j].pid == session->recorders[i].pid)
			return true;
	return false;
}

void mw_metrics_update(struct mw_metrics *metrics, const struct mw_session *session)
{
	pthread_mutex_lock(&metrics->lock);
	if (has_room(metrics, session->count)) {
		metrics->count = 0;
		for (size_t i = 0; i < session->count; i++)
			if (!is_followed(session, i))
				take(&metrics->items[metrics->count++], session, i);
		metrics->own_cpu_s = (double)mw_clock_ns_of(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	}
	pthread_mutex_unlock(&metrics->lock);
}

/* --- text ------------------------------------------------------------------------------------------------------------- */

/* The value of a label: any bytes that are no UTF-8 become '?'. */
static void put_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '\\' || byte == '"')
			fprintf(out, "\\%c", byte);
		else if (byte == '\n')
			fputs("\\n", out);
		else
			fputc(byte < 0x20 || byte >= 0x7f ? '?' : byte, out);
	}
}

static void put_labels(FILE *out, const struct mw_metrics_process *process, const char *kind)
{
	fprintf(out, "{pid=\"%d\",comm=\"", (int)process->pid);
	put_value(out, process->comm);
	fputc('"', out);
	if (kind)
		fprintf(out, ",kind=\"%s\"", kind);
	fputs("} ", out);
}

/* Figures of a kind of memory. */
static uint64_t outstanding_bytes(const struct mw_track_totals *totals)
{
	return totals->impacting.bytes;
}

static uint64_t outstanding_blocks(const struct mw_track_totals *totals)
{
	return totals->impacting.count;
}

static uint64_t allocated_bytes(const struct mw_track_totals *totals)
{
	return totals->size.bytes;
}

static uint64_t allocations(const struct mw_track_totals *totals)
{
	return totals->size.count;
}

static uint64_t frees(const struct mw_track_totals *totals)
{
	return totals->transient.count + totals->aofi.count;
}

static const struct by_kind {
	const char *name, *type, *help;
	uint64_t (*of)(const struct mw_track_totals *totals);
} by_kind[] = {
	{"memwatch_outstanding_bytes", "gauge", "Allocated since the window's start and not freed.", outstanding_bytes},
	{"memwatch_outstanding_blocks", "gauge", "Blocks allocated since the window's start and not freed.",
	 outstanding_blocks},
	{"memwatch_allocated_bytes_total", "counter", "Allocated since the window's start.", allocated_bytes},
	{"memwatch_allocations_total", "counter", "Blocks allocated since the window's start.", allocations},
	{"memwatch_frees_total", "counter", "Blocks freed since the window's start.", frees},
};

/* Figures of a process; false: not known. */
static bool resident(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->newest.rss;
	return true;
}

static bool window_seconds(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->newest.time_ns / 1e9;
	return true;
}

static bool is_watched(const struct mw_metrics_process *process, double *out)
{
	*out = !process->over;
	return true;
}

static bool lost(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->stats.lost_events;
	return true;
}

static bool waited(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->stats.waited_ns / 1e9;
	return true;
}

static bool stood(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->stats.stood_ns / 1e9;
	return true;
}

static bool interval(const struct mw_metrics_process *process, double *out)
{
	*out = (double)process->interval;
	return process->interval != 0;
}

static const struct by_process {
	const char *name, *type, *help;
	bool (*of)(const struct mw_metrics_process *process, double *out);
} by_process[] = {
	{"memwatch_process_resident_bytes", "gauge", "The process's resident set, without memwatch's own in it.",
	 resident},
	{"memwatch_process_watched", "gauge", "1 while the process's window goes on.", is_watched},
	{"memwatch_window_seconds", "gauge", "Since the window's start, at the last sample.", window_seconds},
	{"memwatch_sampling_interval_bytes", "gauge", "One heap block in so many bytes is recorded, on average.",
	 interval},
	{"memwatch_lost_events_total", "counter", "Events that were missed.", lost},
	{"memwatch_waited_seconds_total", "counter", "How long threads waited for memwatch, together.", waited},
	{"memwatch_stopped_seconds_total", "counter", "How long the process was stopped.", stood},
};

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_by_kind(FILE *out, const struct mw_metrics *metrics, const struct by_kind *row)
{
	put_head(out, row->name, row->type, row->help);
	for (size_t i = 0; i < metrics->count; i++)
		for (enum mw_kind kind = MW_KIND_HEAP; kind <= MW_KIND_VM; kind++) {
			fputs(row->name, out);
			put_labels(out, &metrics->items[i], mw_kind_name(kind));
			fprintf(out, "%" PRIu64 "\n", row->of(&metrics->items[i].totals[kind]));
		}
}

static void put_by_process(FILE *out, const struct mw_metrics *metrics, const struct by_process *row)
{
	double value;

	put_head(out, row->name, row->type, row->help);
	for (size_t i = 0; i < metrics->count; i++) {
		if (!row->of(&metrics->items[i], &value))
			continue;
		fputs(row->name, out);
		put_labels(out, &metrics->items[i], NULL);
		fprintf(out, "%.17g\n", value);
	}
}

char *mw_metrics_render(struct mw_metrics *metrics, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out)
		return NULL;
	pthread_mutex_lock(&metrics->lock);
	for (size_t i = 0; i < sizeof(by_kind) / sizeof(by_kind[0]); i++)
		put_by_kind(out, metrics, &by_kind[i]);
	for (size_t i = 0; i < sizeof(by_process) / sizeof(by_process[0]); i++)
		put_by_process(out, metrics, &by_process[i]);
	put_head(out, "memwatch_cpu_seconds_total", "counter", "CPU time of memwatch itself.");
	fprintf(out, "memwatch_cpu_seconds_total %.9f\n", metrics->own_cpu_s);
	pthread_mutex_unlock(&metrics->lock);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
