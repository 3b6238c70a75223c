/* SPDX-License-Identifier: MIT */
/*
 * terminal.h: what memwatch shows on terminals and says on standard error: one message an occasion, and meanwhile one
 * line that is written over and over, and gone at the end. That only where standard error is a terminal; otherwise all
 * of mw_progress_… does nothing.
 *
 * Writing progress never waits: to a terminal that takes nothing (^S, a line that hangs) nothing is written. So it may
 * be done by who serves a process's stops.
 */
#ifndef MW_SESSION_TERMINAL_H
#define MW_SESSION_TERMINAL_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <pthread.h>
#include <stdio.h>

/* Columns of the terminal behind a descriptor: COLUMNS, else what it says itself, else 80; 0 where it is none. */
unsigned mw_terminal_width(int fd);

/* The exit statuses of the command line (SPEC 2). */
enum mw_message_status {
	MW_STATUS_DONE = 0,   /* recorded, and every output written */
	MW_STATUS_FAILED = 1, /* not */
	MW_STATUS_USAGE = 2,  /* the command line is wrong */
	MW_STATUS_FOUND = 3,  /* as DONE, and what --fail-on names holds */
};

/* Print "memwatch: TEXT. HINT" as one line, free the error and return the exit status it stands for. NULL prints
 * nothing and is MW_STATUS_DONE. Nor is anything printed where a reader has ended (EPIPE), as head(1) does when it has
 * read enough: whoever ended it knows. */
enum mw_message_status mw_message_error(struct mw_error *err);

/* Print text that may come from a target or the user: no escape sequence of theirs gets to a terminal, and no line gets
 * a second one. UTF-8 passes. */
void mw_message_put(FILE *out, const char *text);

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
	uint64_t stood_ns; /* how long the processes were stopped, together */
	size_t processes;
};

/* Not to be moved from then on. */
void mw_progress_init(struct mw_progress *progress, bool wanted);
void mw_progress_deinit(struct mw_progress *progress);
void mw_progress_window(struct mw_progress *progress, const struct mw_progress_window *window);
/* The window is over, and frees are recorded for so long. */
void mw_progress_settling(struct mw_progress *progress, uint64_t left_ns);

/* Phases, only while nothing is attached: a thread shows their seconds until mw_progress_clear(). `phase` is static
 * text. The last two may be called back by who works: `progress` is a struct mw_progress. */
/* "writing the report ... 3 s" */
void mw_progress_phase(struct mw_progress *progress, const char *phase);
/* "reading symbols ... 12/345"; drawn a few times a second at most. */
void mw_progress_symbols(void *progress, size_t done, size_t total);
/* "reading events ... 12 %", likewise. */
void mw_progress_share(void *progress, const char *phase, uint64_t done, uint64_t total);
/* Nothing stands there any more, and no thread writes. Before anything else is written to a terminal. */
void mw_progress_clear(struct mw_progress *progress);

#endif
