/* SPDX-License-Identifier: MIT */
/* exports.h: from reports and the cells of their processes to exports (memwatch/export.h). */
#ifndef MW_SESSION_EXPORTS_H
#define MW_SESSION_EXPORTS_H

#include "session/outputs.h"

/* What was outstanding at the peak of a process, by stack and thread. */
struct mw_exports_peak;

/* Is there a format that can't do what the filter asks for? Errors: USAGE. */
struct mw_error *mw_exports_check(const struct mw_export_wishes *wishes) MW_MUST_CHECK;
/* Is there a format for which events are read again? */
bool mw_exports_read_again(const struct mw_export_wishes *wishes);
/* If it shows the peak, read the recording up to that in the interval; NULL where not. Errors: DATA: there are several
 * processes; those of mw_replay_run(). */
struct mw_error *mw_exports_peak_find(const struct mw_reports_wish *wish, struct mw_replay *replay,
				      const struct mw_replay_interval *interval,
				      struct mw_exports_peak **out) MW_MUST_CHECK;
void mw_exports_peak_destroy(struct mw_exports_peak *peak);

/* When all reports are made: write all exports, but for those that show the peak where it has not been looked for, and
 * those that have the events where there is no reading them again. Each is tried; the first error is returned. */
struct mw_error *mw_exports_write(struct mw_reports *reports, struct mw_outputs *outputs) MW_MUST_CHECK;
/* Write one of process number `process` (SIZE_MAX: of all), of reports that were made with wish.samples. Errors: MEMORY,
 * those of the format. */
struct mw_error *mw_exports_render(struct mw_reports *reports, const struct mw_export_format *format,
				   enum mw_export_measure measure, size_t process, FILE *stream) MW_MUST_CHECK;

#endif
