/* SPDX-License-Identifier: MIT */
/* findings.h: what of a report counts as a failure (memwatch/output.h, struct mw_fail_on), and what is said of it. */
#ifndef MW_OUTPUT_FINDINGS_H
#define MW_OUTPUT_FINDINGS_H

#include "output/text.h"

/* Is it lost or a leak, as the text report calls them (mw_text_suspect_word())? */
bool mw_finding_leaks(const struct mw_report_suspect *suspect);
/* Is it a failure? */
bool mw_finding_fails(const struct mw_fail_on *fail_on, const struct mw_report_suspect *suspect);
/*
 * Is the growth of the process as a whole one, though no suspect is? Only where a rate is given: that of all suspects that
 * grow is above it; or the RSS rises by more from each quarter of the interval to the next, by the least sample of each (of
 * four or more). Appends which.
 */
bool mw_finding_process(const struct mw_fail_on *fail_on, const struct mw_report *report, struct mw_line *line);
/* Append to the scratch line "1.2 MiB in 300 blocks not freed in 10.0 s, 432.0 MiB an hour". */
void mw_finding_amounts(struct mw_text *text, const struct mw_report_suspect *suspect);
/* Why leaks may be missing of the report: it is not complete, or its window was ended by a limit. Appends that. False: no
 * reason. */
bool mw_finding_gaps(const struct mw_report *report, struct mw_line *line);

#endif
