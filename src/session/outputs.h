/* SPDX-License-Identifier: MIT */
/*
 * outputs.h: from watched processes to what is written of them (their reports, views and timelines), in which formats,
 * and where to.
 *
 * A file (mw_outfile) is known to be writable before anything is recorded, there whole at the end or not at all.
 * A regular file is written without a name (or under a temporary one in the same directory) with
 * mode 0600 and gets its name when it is complete; what stood there before stays untouched until
 * then. A device or FIFO is written directly, as is what /dev/stdout and /dev/fd/N lead to; "-" is standard output.
 * Where links are followed and where not: base/place.h.
 */
#ifndef MW_SESSION_OUTPUTS_H
#define MW_SESSION_OUTPUTS_H

#include "session/options.h"
#include "session/terminal.h"
#include "view/replay.h"
#include "view/watched.h"

#include <memwatch/error.h>
#include <memwatch/output.h>

#include <stdbool.h>
#include <stdio.h>

struct mw_outfile;

/* Open for `name`. Errors say what stands in the way: SYSTEM. On failure nothing has changed. */
struct mw_error *mw_outfile_open(const char *name, struct mw_outfile **out) MW_MUST_CHECK;

/* The stream to write to; good until commit or abort. Write errors are kept for commit to tell. */
FILE *mw_outfile_stream(struct mw_outfile *file);

/* Everything is written: make it last, give it its name and free `file`, also on failure, which leaves nothing. */
struct mw_error *mw_outfile_commit(struct mw_outfile *file) MW_MUST_CHECK;

#define MW_PARTIALS_MAX (MW_OUTPUTS_MAX + MW_EXPORTS_MAX + 1) /* a recording is the last */

/* Of all files that are being written; NULL where there is none. */
struct mw_partials {
	const char *paths[MW_PARTIALS_MAX];
};

/* Close, leave nothing and free; NULL is fine. */
void mw_outfile_abort(struct mw_outfile *file);

struct mw_outputs {
	struct mw_outfile *files[MW_OUTPUTS_MAX]; /* by format; NULL: not wanted */
	const struct mw_export_wishes *wishes;    /* NULL: no exports; borrowed of the options … */
	struct mw_outfile *exports[MW_EXPORTS_MAX];
	struct mw_output_options options; /* what of the reports is shown; borrowed */
	char *root;                       /* options.root */
	struct mw_progress *progress;     /* that writing is shown by; NULL: it is not */
};

/* Is a format asked for that shows timelines? */
bool mw_outputs_want_timelines(const struct mw_session_options *options);
/* Do two of them go to one place? Errors: USAGE. Would one replace a file that is not of its kind, unless that is forced?
 * Errors: SYSTEM. */
struct mw_error *mw_outputs_check(const struct mw_session_options *options) MW_MUST_CHECK;
/* Would one replace that recording? `what` it is: "the recording itself". Errors: USAGE. */
struct mw_error *mw_outputs_check_recording(const struct mw_session_options *options, const char *recording,
					    const char *what) MW_MUST_CHECK;
/* Open all that the options ask for. Errors: SYSTEM; what is open by then is for mw_outputs_close(). */
struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options) MW_MUST_CHECK;
/* Write comparisons and close, up to the first error. */
struct mw_error *mw_outputs_write_diffs(struct mw_outputs *outputs, const struct mw_diff *const *diffs,
					size_t count) MW_MUST_CHECK;
/* Write a look at a heap and close. Each output is tried; the first error is returned. */
struct mw_error *mw_outputs_write_heap(struct mw_outputs *outputs, const struct mw_heap_report *heap) MW_MUST_CHECK;
/* Likewise a comparison of two. */
struct mw_error *mw_outputs_write_heap_diff(struct mw_outputs *outputs, const struct mw_heap_diff *diff) MW_MUST_CHECK;
/* Write an export, of that number among those that are wished for, and close. Errors: SYSTEM, those of the format. */
struct mw_error *mw_outputs_write_export(struct mw_outputs *outputs, size_t number,
					 const struct mw_export *export) MW_MUST_CHECK;
/* The files to be unlinked should memwatch end now. */
struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs);
/* Leave nothing of what was not written; fine after mw_outputs_write. */
void mw_outputs_close(struct mw_outputs *outputs);

/* What is asked for. All is borrowed. */
struct mw_reports_wish {
	const struct mw_view_question *question; /* NULL: the reports alone */
	bool timelines;
	const struct mw_export_wishes *exports; /* NULL, or without any: none */
	const struct mw_pids *pids;             /* the processes that are kept later on; NULL: all */
	bool samples;                           /* what exports are made of, though none is asked for yet */
	struct mw_progress *progress;
};

struct mw_reports {
	struct mw_reports_wish wish;
	size_t count;
	struct mw_watched_interval interval;
	struct mw_watched **watched;    /* by process, those that are reported on already; borrowed */
	struct mw_report **items;       /* … */
	struct mw_timeline **timelines; /* NULL: that one could not be made */
	struct mw_views *views;         /* of all; the first report has them */
	struct mw_exports_peak *peak;   /* NULL: no export has asked for it */
	struct mw_replay *replay;       /* by which events can be read again; NULL: by none. Borrowed */
};

/* Zeroed ones get their memory, for so many processes. Errors: MEMORY; deinit in any case. */
struct mw_error *mw_reports_init(struct mw_reports *reports, const struct mw_reports_wish *wish,
				 size_t count) MW_MUST_CHECK;
void mw_reports_deinit(struct mw_reports *reports);
/* Have a process collect what is asked for of an interval that is yet to begin. `known`: its metadata is all there; else
 * its window has not begun. `to_ns` 0: where it ends is not known. Errors: MEMORY. */
struct mw_error *mw_reports_collect(const struct mw_reports *reports, struct mw_watched *watched, bool known,
				    uint64_t from_ns, uint64_t to_ns) MW_MUST_CHECK;
/* The report on that one: the interval is over. Errors: MEMORY. */
struct mw_error *mw_reports_make(struct mw_reports *reports, size_t process, struct mw_watched *watched) MW_MUST_CHECK;
/* Read a recording over an interval, and make the reports of its processes: init, collect and make for all of them. Errors:
 * those of mw_replay_run(); deinit in any case. */
struct mw_error *mw_reports_read(struct mw_reports *reports, const struct mw_reports_wish *wish,
				 struct mw_replay *replay, struct mw_replay_interval *interval) MW_MUST_CHECK;
/* The same, and before that, where an export asks for it, what was outstanding at the peak. Errors: those of
 * mw_exports_peak_find(), too. */
struct mw_error *mw_reports_replay(struct mw_reports *reports, const struct mw_reports_wish *wish,
				   struct mw_replay *replay, struct mw_replay_interval *interval) MW_MUST_CHECK;
/* Of a recording that a descriptor reads: its reports, and what of the outputs is not written yet. Errors: those of reading,
 * and of mw_reports_write(). */
struct mw_error *mw_reports_write_kept(int fd, const struct mw_reports_wish *wish,
				       struct mw_outputs *outputs) MW_MUST_CHECK;
/* Is that one of these processes? None: all are. */
bool mw_pids_have(const struct mw_pids *pids, pid_t pid, const char *comm);
/* Keep those of these processes; none: all. Errors: USAGE: there are none. */
struct mw_error *mw_reports_keep(struct mw_reports *reports, const struct mw_pids *pids) MW_MUST_CHECK;
/* When all are made: write all that there is, and close. Each output is tried, also where another fails; the first
 * error is returned. Errors: those of the views and the outputs. */
struct mw_error *mw_reports_write(struct mw_reports *reports, struct mw_outputs *outputs) MW_MUST_CHECK;

#endif
