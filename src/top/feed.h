/* SPDX-License-Identifier: MIT */
/*
 * feed.h: what a live table shows, handed over from the thread that serves the engine to those of the screen.
 *
 * What is known of the process stands in the model that the session's emitter feeds (view/watched.h), and belongs to
 * the engine's thread. That leaves a shot about once a second: the model's sums of all stacks and threads, copied as
 * they are, which is handed over by one pointer. It never waits for the others but for the lock of that. Where there are
 * so many stacks that copying takes long, shots are rarer. For the rows that the screen shows, a shot has verdicts
 * (view/growth.h) and levels over time: all live blocks are looked through for these, and where that takes long it is not
 * done for each shot. What the stacks and modules of shots are does not change once
 * it is known.
 */
#ifndef MW_TOP_FEED_H
#define MW_TOP_FEED_H

#include "base/map.h"
#include "base/shared_list.h"
#include "proc/perf_map.h"
#include "session/session.h"
#include "view/metadata.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* The names of a stack; they do not change any more. */
struct mw_top_named {
	struct mw_report_stack stack; /* only what the framer sets */
};

/* A stack, by the tracker's number. Nothing of it changes, but that it gets its names. */
struct mw_top_stack {
	_Atomic(struct mw_top_named *) named; /* NULL: not known yet */
	enum mw_kind kind;
	enum mw_stack_cut cut;
	const char *api; /* NULL: not known */
	uint32_t module; /* that it is charged to, as report does; MW_MODULE_NONE: none */
	uint32_t as;     /* it is shown as part of another: the number of that + 1; 0: by itself (mw_top_same) */
	uint32_t frame_count;
	struct mw_raw_frame frames[];
};

/* What shots speak of by number: for all threads, which find what a shot has counted, and more. */
struct mw_top_known {
	struct mw_shared_list stacks;  /* struct mw_top_stack */
	struct mw_shared_list modules; /* struct mw_view_module, with the model's strings */
};

struct mw_top_thread {
	pid_t tid;
	const char *name; /* the tracker's */
};

#define MW_TOP_BARS    8   /* that show a level over time … */
#define MW_TOP_BAR_MAX 8   /* … and how high they are */
#define MW_TOP_COURSES 256 /* rows at a time */

/* A row: a stack, or a module (MW_MODULE_NONE: what is charged to none). */
struct mw_top_key {
	bool module;
	uint32_t key;
};

/* What became of a row's memory since the zero point. */
struct mw_top_course {
	struct mw_top_key of;
	bool judged; /* there is a verdict: of stacks only */
	bool certain;
	enum mw_growth_verdict verdict;
	uint8_t bar_count, bars[MW_TOP_BARS]; /* outstanding bytes, the highest MW_TOP_BAR_MAX */
};

/* Sums of a moment. */
struct mw_top_shot {
	uint64_t time_ns; /* since the window's start */
	uint64_t zero_ns; /* what is counted was allocated since; 0: the window's start */
	uint32_t zeros;   /* how often that was set anew */
	struct mw_amount heap, vm;
	uint64_t sampled;         /* the largest interval that heap blocks are sampled with; 0: they are not … */
	double variance;          /* … of heap.bytes */
	uint64_t sampled_from_ns; /* … only since then, as memwatch could not keep up; 0: from the beginning */
	uint64_t events, stood_ns, lost, rss;
	bool has_stood;
	bool kept;            /* what is seen goes into a recording, or a file for one */
	char not_hooked[160]; /* names of functions whose calls are not seen, the first few; "": all are */
	uint32_t stack_count, thread_count;
	struct mw_track_sum *stacks, *threads;
	struct mw_top_thread *names; /* of the threads */
	uint32_t course_count;       /* of rows that were shown; 0 where there was no time for them */
	struct mw_top_course *courses;
};
/* Zeroed, with room for so many; no courses yet. One free() frees it. NULL without memory. */
struct mw_top_shot *mw_top_shot_create(uint32_t stacks, uint32_t threads, uint32_t courses);
/* The courses of rows, for the shot, whose times are set, and which has room. `track`: the model's. Without memory there
 * are none. */
void mw_top_courses_fill(const struct mw_track *track, const struct mw_top_known *known, const struct mw_top_key *keys,
			 uint32_t count, struct mw_top_shot *shot);

/* A moment up to which the recording can be copied, and what is to be recorded of its end. */
struct mw_top_moment {
	uint64_t number; /* mw_store_moment() */
	bool whole;      /* the window is over: its end has been emitted */
	struct mw_stored_end end;
	struct mw_stored_figure figures[MW_FIGURES_MAX];
	bool has_sample;
	struct mw_stored_sample sample;
};

/*
 * Stacks that differ only in addresses of code in no file, which are shown as one: a JIT makes any number of them. Where
 * the program names its code (proc/perf_map.h) each is shown by itself, with its name. Zero-initialise.
 */
struct mw_top_same {
	struct mw_map first; /* by hash: the first of its kind, number + 1 */
	uint64_t looked_ns;
	bool named; /* the program names its code */
};
/* The first of `stacks` that is the same as one that will have the next number: its number, or that. */
uint32_t mw_top_same_find(struct mw_top_same *same, const struct mw_perf_place *place,
			  const struct mw_shared_list *stacks, const struct mw_top_stack *stack);

enum mw_top_phase {
	MW_TOP_STARTING,
	MW_TOP_WATCHING,
	MW_TOP_OVER,
};

struct mw_top_feeds;

/* Of one process. */
struct mw_top_feed {
	struct mw_top_feeds *feeds;
	size_t process; /* its number there, and in the session */
	pid_t pid;
	const char *comm;
	/* For all threads. */
	_Atomic enum mw_top_phase phase;
	/* Since it watches. */
	const char *engine, *exe;
	const struct mw_modules *files;      /* of the engine, which goes on adding to them */
	const struct mw_window_info *window; /* once it is over: how; NULL: not known */
	struct mw_top_known known;
	atomic_bool zero_wanted; /* let all be counted from now on: with the next shot */
	atomic_bool moment_wanted;
	pthread_mutex_t lock;     /* of what follows */
	struct mw_top_shot *shot; /* NULL: it has been taken */
	struct mw_top_moment moment;
	bool has_moment;
	struct mw_top_key wanted[MW_TOP_COURSES]; /* rows whose courses are */
	uint32_t wanted_count;
	/* The engine's thread's own. */
	uint64_t next_ns;    /* no shot before … */
	uint64_t courses_ns; /* … nor courses */
	struct mw_top_same same;
	uint64_t zero_ns, earlier_events, sampled_ns;
	uint32_t zeros;
};

/* Of all processes of a session. */
struct mw_top_feeds {
	struct mw_session *session;
	struct mw_top_feed *items;
	size_t count;
	int news;          /* readable where there is a shot, or the phase has changed; read 8 bytes from it then */
	uint64_t kept_max; /* bytes of the session's recording: no more are written; 0: no limit */
};

/* --- for the engine's thread ------------------------------------------------------------------------------- */

/* Zeroed but for kept_max; for a session that is prepared, whose callbacks these are now, and which must outlive them.
 * Errors: MEMORY, SYSTEM. Then there is still something to deinit. */
struct mw_error *mw_top_feeds_init(struct mw_top_feeds *feeds, struct mw_session *session) MW_MUST_CHECK;
void mw_top_feeds_deinit(struct mw_top_feeds *feeds);
/* All windows are over, and their ends have been recorded if all went well. */
void mw_top_feeds_end(struct mw_top_feeds *feeds, bool well);

/* --- for the others ---------------------------------------------------------------------------------------- */

/* The newest shot, which is the caller's then; NULL: none since the last. The courses of these rows are wanted with the
 * next ones, of the first MW_TOP_COURSES. */
struct mw_top_shot *mw_top_feed_take(struct mw_top_feed *feed, const struct mw_top_key *keys, size_t count);
/* A moment of each process to copy the recording up to, and the latest one's number. `ask`: for new ones; then until they
 * are there. */
bool mw_top_feeds_moments(struct mw_top_feeds *feeds, bool ask, struct mw_top_moment *out, uint64_t *latest);
/* Make `news` readable: something else has changed. */
static inline void mw_top_feeds_poke(const struct mw_top_feeds *feeds)
{
	const uint64_t one = 1;

	if (write(feeds->news, &one, sizeof(one)) < 0)
		return; /* it is full of news already */
}

/* "valloc, pvalloc and 3 more": functions whose calls are not seen though they are to be recorded; "": there are none.
 */
void mw_top_show_missed(const struct mw_hook_info *hooks, size_t count, bool track_heap, bool track_vm, char *out,
			size_t size);

#endif
