/* SPDX-License-Identifier: MIT */
/*
 * feed.h: what a live table shows, handed over from the thread that serves the engine to those of the screen.
 *
 * What is known of the process stands in the model that the session's emitter feeds (view/watched.h), and belongs to
 * the engine's thread. That leaves a shot about once a second: the model's sums of all stacks and threads, copied as
 * they are. It never waits for the others but for a lock that is held for some copying of pointers. Where there are so
 * many stacks that copying takes long, shots are rarer. What shots speak of by number (stacks, modules, threads) stands
 * in a registry that only grows.
 */
#ifndef MW_TOP_FEED_H
#define MW_TOP_FEED_H

#include "session/session.h"
#include "view/figures.h"

#include <stdatomic.h>

/* A stack, by the tracker's number. */
struct mw_top_stack {
	enum mw_kind kind;
	enum mw_stack_cut cut;
	const char *api; /* NULL: not known */
	uint32_t module; /* that it is charged to, as report does; MW_MODULE_NONE: none */
	uint32_t as;     /* it is shown as part of another: the number of that + 1; 0: by itself (same.h) */
	uint32_t frame_count;
	struct mw_raw_frame frames[];
};

struct mw_top_thread {
	pid_t tid;
	const char *name; /* the tracker's */
};

/* What is known by now: a part of the model (view/watched.h) that other threads can look at while that changes. Stacks
 * belong to the feed, and all strings to the model; neither changes. */
struct mw_top_registry {
	const struct mw_top_stack **stacks;
	struct mw_view_module *modules;
	struct mw_top_thread *threads;
	size_t stack_count, stack_capacity, module_count, module_capacity, thread_count, thread_capacity;
};

/* Sums of a moment. */
struct mw_top_shot {
	uint64_t time_ns; /* since the window's start */
	uint64_t zero_ns; /* what is counted was allocated since; 0: the window's start */
	uint32_t zeros;   /* how often that was set anew */
	struct mw_amount heap, vm;
	uint64_t events, stood_ns, lost, rss;
	bool has_stood;
	char not_hooked[160]; /* names of functions whose calls are not seen, the first few; "": all are */
	uint32_t stack_count, thread_count;
	struct mw_track_sum *stacks, *threads;
	unsigned holders; /* the screen's business */
};
void mw_top_shot_destroy(struct mw_top_shot *shot);

/* A moment up to which the recording can be copied, and what is to be recorded of its end. */
struct mw_top_moment {
	uint64_t number; /* mw_store_moment() */
	bool whole;      /* the window is over: its end has been emitted */
	struct mw_stored_end end;
	struct mw_stored_figure figures[MW_FIGURES_MAX];
	bool has_sample;
	struct mw_stored_sample sample;
};

struct mw_top_feed;

/* The session must be prepared, and outlive the feed. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_top_feed_create(struct mw_session *session, struct mw_top_feed **out) MW_MUST_CHECK;
void mw_top_feed_destroy(struct mw_top_feed *feed);

/* --- for the engine's thread ------------------------------------------------------------------------------- */

/* The window has begun; a sample was taken; it is over, and its end has been recorded if all went well. */
void mw_top_feed_begin(struct mw_top_feed *feed);
void mw_top_feed_sample(struct mw_top_feed *feed, uint64_t time_ns);
void mw_top_feed_end(struct mw_top_feed *feed, bool well);

/* --- for the others ---------------------------------------------------------------------------------------- */

enum mw_top_phase {
	MW_TOP_STARTING,
	MW_TOP_WATCHING,
	MW_TOP_OVER,
};
enum mw_top_phase mw_top_feed_phase(const struct mw_top_feed *feed);
/* The newest shot, which is the caller's then; NULL: none since the last. */
struct mw_top_shot *mw_top_feed_take(struct mw_top_feed *feed);
/* Bring a registry up to date. False without memory: some is missing. */
bool mw_top_feed_follow(struct mw_top_feed *feed, struct mw_top_registry *registry);
void mw_top_registry_deinit(struct mw_top_registry *registry);
/* Let all be counted from now on: with the next shot. */
void mw_top_feed_zero(struct mw_top_feed *feed);
/* Ask for a moment to copy the recording up to; then ask until it is there. */
void mw_top_feed_want_moment(struct mw_top_feed *feed);
bool mw_top_feed_moment(struct mw_top_feed *feed, struct mw_top_moment *out);
/* Which engine watches; NULL: not known yet. */
const char *mw_top_feed_engine(const struct mw_top_feed *feed);
/* Make the descriptor readable: something else has changed. */
void mw_top_feed_poke(struct mw_top_feed *feed);
/* Readable where there is a shot, or the phase has changed; read 8 bytes from it then. */
int mw_top_feed_descriptor(const struct mw_top_feed *feed);
/* How the window ended; only once it is over. NULL: not known. */
const struct mw_window_info *mw_top_feed_window(const struct mw_top_feed *feed);

#endif
