/* SPDX-License-Identifier: MIT */
/*
 * progress.h: one line on standard error that is written over and over, and gone at the end. Only
 * where that is a terminal; otherwise all of this does nothing.
 */
#ifndef MW_CLI_PROGRESS_H
#define MW_CLI_PROGRESS_H

#include <memwatch/types.h>

struct mw_progress {
	bool shown;
	unsigned width;
	size_t length;    /* of what stands there now */
	uint64_t next_ns; /* not before this time */
	/* What stood there last of a window, for what has come since. */
	uint64_t last_ns, last_events, last_stood_ns;
};

/* What is to be seen of a running window. */
struct mw_progress_window {
	uint64_t time_ns, duration_ns; /* duration 0: no end */
	struct mw_amount impacting;
	uint64_t events;   /* allocations and frees seen */
	uint64_t rss;      /* bytes */
	uint64_t stood_ns; /* how long the processes have stood still, together */
	size_t processes;
};

void mw_progress_init(struct mw_progress *progress, bool wanted);
void mw_progress_window(struct mw_progress *progress, const struct mw_progress_window *window);
/* "reading symbols … done/total"; drawn a few times a second at most. */
void mw_progress_symbols(struct mw_progress *progress, size_t done, size_t total);
/* "reading events ... 12 %", likewise. */
void mw_progress_share(struct mw_progress *progress, const char *phase, uint64_t done, uint64_t total);
void mw_progress_clear(struct mw_progress *progress);

#endif
