/* SPDX-License-Identifier: MIT */
/* outputs.h: where the reports of a recording go and in which forms. */
#ifndef MW_SESSION_OUTPUTS_H
#define MW_SESSION_OUTPUTS_H

#include "session/options.h"
#include "session/outfile.h"
#include "session/progress.h"

#include <memwatch/view.h>

struct mw_outputs {
	struct mw_outfile *text; /* NULL: not wanted */
	struct mw_outfile *json;
	struct mw_outfile *html;
	size_t top;
	const struct mw_views *const *views;        /* what else was asked of each report; NULL: nothing */
	const struct mw_timeline *const *timelines; /* of each report, for html; NULL: none */
	struct mw_progress *progress;               /* that writing is shown by; NULL: it is not */
};

/* Do two of them go to one place? Errors: USAGE. */
struct mw_error *mw_outputs_check(const struct mw_session_options *options) MW_MUST_CHECK;
/* Open all that the options ask for. Errors: SYSTEM; what is open by then is for mw_outputs_close(). */
struct mw_error *mw_outputs_open(struct mw_outputs *outputs, const struct mw_session_options *options) MW_MUST_CHECK;
/* Write all and close. Each is tried, also where another fails; the first error is returned. */
struct mw_error *mw_outputs_write(struct mw_outputs *outputs, const struct mw_report *const *reports,
				  size_t count) MW_MUST_CHECK;
/* The files to be unlinked should memwatch end now. */
struct mw_partials mw_outputs_partials(const struct mw_outputs *outputs);
/* Leave nothing of what was not written; fine after mw_outputs_write. */
void mw_outputs_close(struct mw_outputs *outputs);

#endif
