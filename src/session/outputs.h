/* SPDX-License-Identifier: MIT */
/* outputs.h: where reports and comparisons go, and in which formats. */
#ifndef MW_SESSION_OUTPUTS_H
#define MW_SESSION_OUTPUTS_H

#include "session/options.h"
#include "session/outfile.h"
#include "session/progress.h"

#include <memwatch/output.h>

struct mw_outputs {
	struct mw_outfile *files[MW_OUTPUTS_MAX]; /* by format; NULL: not wanted */
	struct mw_output_options options;         /* what of the reports is shown; borrowed */
	struct mw_progress *progress;             /* that writing is shown by; NULL: it is not */
};

/* Is a format asked for that shows timelines? */
bool mw_outputs_want_timelines(const struct mw_session_options *options);
/* Do two of them go to one place? Errors: USAGE. */
struct mw_error *mw_outputs_check(const struct mw_session_options *options) MW_MUST_CHECK;
/* Would one replace that recording? `what` it is: "the recording itself". Errors: USAGE. */
struct mw_error *mw_outputs_check_recording(const struct mw_session_options *options, const char *recording,
					    const char *what) MW_MUST_CHECK;
/* Open all that the options ask for. Errors: SYSTEM; what is open by then is for mw_outputs_close(). */
struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options) MW_MUST_CHECK;
/* Write all and close. Each is tried, also where another fails; the first error is returned. */
struct mw_error *mw_outputs_write(struct mw_outputs *outputs, const struct mw_report *const *reports,
				  size_t count) MW_MUST_CHECK;
/* Likewise comparisons, up to the first error. */
struct mw_error *mw_outputs_write_diffs(struct mw_outputs *outputs, const struct mw_diff *const *diffs, size_t count,
					const struct mw_diff_output_options *options) MW_MUST_CHECK;
/* The files to be unlinked should memwatch end now. */
struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs);
/* Leave nothing of what was not written; fine after mw_outputs_write. */
void mw_outputs_close(struct mw_outputs *outputs);

#endif
