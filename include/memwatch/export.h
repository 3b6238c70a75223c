/* SPDX-License-Identifier: MIT */
/*
 * export.h: a form in which other programs read what memwatch has found.
 *
 * An export is made of the same cells as the views and the report, so its sums are theirs. To add a format: a file in
 * src/export/, its row in the table of src/export/export.c and in docs/EXPORTS.md. Options, help and documents come from
 * that row.
 */
#ifndef MEMWATCH_EXPORT_H
#define MEMWATCH_EXPORT_H

#include <memwatch/error.h>
#include <memwatch/table.h>
#include <memwatch/view.h>

#include <stdio.h>

#define MW_EXPORTS_MAX 16 /* files that can be asked for at once */

/* What a format is given where it has room for one figure. */
enum mw_export_measure {
	MW_EXPORT_INUSE_SPACE, /* bytes that were allocated in the interval and not freed … */
	MW_EXPORT_INUSE_OBJECTS,
	MW_EXPORT_ALLOC_SPACE, /* … and all that were allocated */
	MW_EXPORT_ALLOC_OBJECTS,
	MW_EXPORT_MEASURES
};

/* "inuse_space", …; static text. */
const char *mw_export_measure_name(enum mw_export_measure measure);

/* Blocks that one thread allocated by one stack. */
struct mw_export_sample {
	const struct mw_report_stack *stack; /* NULL: unknown */
	pid_t tid;                           /* 0: unknown */
	const char *thread;                  /* NULL: it has no name */
	enum mw_kind kind;
	struct mw_sums sums;      /* without peak and lifetimes; estimates where blocks are sampled */
	double lived_ns;          /* how long those lived in the interval that were allocated in it, together */
	struct mw_amount at_peak; /* what of them was outstanding at the process's peak */
};

/* A file with code that the process had mapped. */
struct mw_export_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none */
	mw_addr start, end;
};

/* A block came, or it or a piece of it went. */
struct mw_export_event {
	uint64_t time_ns;                    /* since the window's start; not less than that of the event before */
	const struct mw_report_stack *stack; /* that allocated it; NULL: unknown */
	uint64_t bytes;                      /* that came, or that went … */
	bool part;                           /* … of a block that came with more */
	uint64_t blocks;                     /* that it stands for: more than one where blocks are sampled */
	bool gone;
};

typedef void mw_export_take(void *context, const struct mw_export_event *event);

struct mw_export_process {
	const struct mw_report *report;
	const struct mw_export_module *modules;
	size_t module_count;
	const struct mw_export_sample *samples; /* in the order of the report's stacks */
	size_t sample_count;
	double peak_at; /* seconds since the window's start; below 0: the format has not asked for the peak */
	/* Call `take` for each event of these blocks in the interval; NULL: the format has not asked for events. Errors:
	 * those of reading them. */
	struct mw_error *(*read_events)(void *events, mw_export_take *take, void *context)MW_MUST_CHECK;
	void *events;
};

/* All is borrowed. */
struct mw_export {
	const struct mw_export_process *processes;
	size_t count;
	enum mw_export_measure measure;
	enum mw_frames frames; /* that are shown; default: all */
};

struct mw_export_format {
	const char *name;   /* as in --to NAME */
	const char *what;   /* "a pprof profile": what a file of it is */
	const char *about;  /* for --help, 42 characters: what it is, or which programs open it */
	bool binary;        /* not for terminals */
	const char *suffix; /* without which at the end of a file's name programs do not open it; NULL: with any */
	bool peak;          /* it shows the peak: events have to be read twice; of one process only */
	bool events;        /* it has the events: they have to be read a second time; of one process only */
	/* Does a file that begins so hold an export that memwatch wrote in it? */
	bool (*is_own)(const char *head, size_t size);
	/* Write; the caller flushes and closes. Write errors stay in the stream (ferror). Errors: MEMORY, DATA: it can't hold
	 * that, those of read_events(). */
	struct mw_error *(*write)(const struct mw_export *export, FILE *stream)MW_MUST_CHECK;
};

/* Those there are, each in a file of its own. */
extern const struct mw_export_format mw_export_pprof, mw_export_collapsed, mw_export_speedscope, mw_export_callgrind,
	mw_export_dhat, mw_export_sqlite, mw_export_heaptrack;

/* In the order in which they are listed; NULL past the last. */
const struct mw_export_format *mw_export_get(size_t number);

#endif
