/* SPDX-License-Identifier: MIT */
/*
 * progress.h: one line on standard error that is written over and over, and gone at the end. Only
 * where that is a terminal; otherwise all of this does nothing.
 *
 * Writing never waits: to a terminal that takes nothing (^S, a line that hangs) nothing is written. So it may be done
 * by who serves a process's stops.
 */
#ifndef MW_SESSION_PROGRESS_H
#define MW_SESSION_PROGRESS_H

#include <memwatch/types.h>

#include <pthread.h>

struct mw_progress {
	bool shown;
	unsigned width;
	int fd; /* of the terminal, that does not block; -1: its own is standard error's */
	/* What stood there last of a window, for what has come since. */
	uint64_t last_ns, last_events, last_stood_ns;

	pthread_mutex_t lock; /* of all that follows */
	size_t length;        /* of what stands there now */
	uint64_t next_ns;     /* not before this time */
	const char *phase;    /* that goes on, static text; NULL: none */
	uint64_t since_ns;    /* when it began */
	uint64_t done, total; /* total 0: nobody knows how far it is */
	bool counted;         /* they are things, not shares */
	bool ticking, ended;  /* there is a thread; it is to end */
	pthread_t thread;     /* that shows that time goes by while a phase has nothing to say */
	pthread_cond_t wake;
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

/* Not to be moved from then on. */
void mw_progress_init(struct mw_progress *progress, bool wanted);
void mw_progress_deinit(struct mw_progress *progress);
void mw_progress_window(struct mw_progress *progress, const struct mw_progress_window *window);

/* Phases, only while nothing is attached: a thread shows their seconds until mw_progress_clear(). `phase` is static
 * text. */
/* "writing the report ... 3 s" */
void mw_progress_phase(struct mw_progress *progress, const char *phase);
/* "reading symbols ... 12/345"; drawn a few times a second at most. */
void mw_progress_symbols(struct mw_progress *progress, size_t done, size_t total);
/* "reading events ... 12 %", likewise. */
void mw_progress_share(struct mw_progress *progress, const char *phase, uint64_t done, uint64_t total);
/* Nothing stands there any more, and no thread writes. Before anything else is written to a terminal. */
void mw_progress_clear(struct mw_progress *progress);

#endif
