/* SPDX-License-Identifier: MIT */
/* peak.h: when most bytes of heap and vm together were outstanding. */
#ifndef MW_VIEW_PEAK_H
#define MW_VIEW_PEAK_H

#include "track/track.h"

/* The most so far, and the first moment of it: the time of the event that made it. Zero-initialise. */
struct mw_peak {
	uint64_t bytes, at_ns;
};

/* Feed events to the tracker by its sink, and look for the peak. Errors: the sink's. */
struct mw_error *mw_peak_feed(struct mw_peak *peak, const struct mw_track *track, const struct mw_event_sink *sink,
			      const struct mw_event *events, size_t count) MW_MUST_CHECK;

#endif
