// SPDX-License-Identifier: MIT
/* peak.c: see peak.h. */
#include "view/peak.h"

#define FEW 32 /* events that are fed at once where none of them can be the peak */

static uint64_t outstanding(const struct mw_track *track)
{
	struct mw_track_totals heap, vm;

	mw_track_totals(track, MW_KIND_HEAP, &heap);
	mw_track_totals(track, MW_KIND_VM, &vm);
	return heap.impacting.bytes + vm.impacting.bytes;
}

/* So many bytes more at most will be outstanding after any of the events. */
static uint64_t growth_of(const struct mw_event *events, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		switch (events[i].type) {
		case MW_EVENT_ALLOC:
		case MW_EVENT_REALLOC_END:
		case MW_EVENT_MAP:
		case MW_EVENT_REMAP_END:
			if (__builtin_add_overflow(sum, events[i].size, &sum))
				return UINT64_MAX;
			break;
		case MW_EVENT_REALLOC_FAIL:
		case MW_EVENT_UNMAP_FAIL:
		case MW_EVENT_REMAP_FAIL:
			return UINT64_MAX; /* what is back then was counted as gone */
		default:
			break;
		}
	}
	return sum;
}

/* Feed a few events; look after each only where one of them may be the peak. */
static struct mw_error *feed_few(struct mw_peak *peak, const struct mw_track *track, const struct mw_event_sink *sink,
				 const struct mw_event *events, size_t count)
{
	uint64_t growth = growth_of(events, count), now = outstanding(track);

	if (now <= peak->bytes && growth <= peak->bytes - now)
		return sink->events(sink->context, events, count);
	for (size_t i = 0; i < count; i++) {
		MW_TRY(sink->event(sink->context, &events[i]));
		now = outstanding(track);
		if (now > peak->bytes) {
			peak->bytes = now;
			peak->at_ns = events[i].time_ns;
		}
	}
	return NULL;
}

struct mw_error *mw_peak_feed(struct mw_peak *peak, const struct mw_track *track, const struct mw_event_sink *sink,
			      const struct mw_event *events, size_t count)
{
	for (size_t i = 0; i < count; i += FEW)
		MW_TRY(feed_few(peak, track, sink, events + i, count - i < FEW ? count - i : FEW));
	return NULL;
}
