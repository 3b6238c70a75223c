/* SPDX-License-Identifier: MIT */
/*
 * diff.h: the neutral comparison of two snapshots: what grew between them, before anything is said about how it looks.
 *
 * A snapshot is all that a recording knows to be outstanding at a moment, of one process: what was allocated since its
 * window began, and not freed. Two snapshots of one window, or of two commands that were launched, stand on one base, and
 * are compared as they are. Those of two windows are not: what the first has left is nothing to the second. Of these it is
 * compared how fast each left blocks behind. A comparison owns all its
 * strings and arrays (mw_diff_destroy frees them). Text is UTF-8 as the target had it; NULL is "unknown".
 */
#ifndef MEMWATCH_DIFF_H
#define MEMWATCH_DIFF_H

#include <memwatch/error.h>
#include <memwatch/heap.h>
#include <memwatch/view.h>

/* The two sides of a comparison. */
enum mw_diff_side { MW_DIFF_OLD, MW_DIFF_NEW, MW_DIFF_SIDES };

enum mw_diff_basis {
	MW_DIFF_OUTSTANDING, /* amounts */
	MW_DIFF_RATES,       /* amounts per time; both snapshots are later than their windows' beginnings */
};

/* From the old side to the new one. */
enum mw_diff_change {
	MW_DIFF_SAME, /* rates: about, by no more than a quarter, or than chance makes likely */
	MW_DIFF_MORE,
	MW_DIFF_LESS,
};

/* Is it one program? */
enum mw_diff_program {
	MW_DIFF_PROGRAM_ONE,     /* or there is no telling */
	MW_DIFF_PROGRAM_MOVED,   /* one build at different paths */
	MW_DIFF_PROGRAM_REBUILT, /* different builds, at one path or two */
	MW_DIFF_PROGRAM_OTHER,   /* of different paths, and the builds of both are not known */
};

/* What a snapshot is of. */
struct mw_diff_snapshot {
	const char *file;   /* the recording's name */
	const char *moment; /* "start", "end", "mark 2 (deployed)"; NULL: no more than its time */
	pid_t pid;
	const char *comm, *exe;
	int64_t started_realtime_ns; /* CLOCK_REALTIME at the window's start; 0: unknown */
	double at;                   /* seconds since then, which is also how long blocks could be left behind */
	bool launched;               /* the window began with the process */
	const char *build_id; /* of `exe`, in hexadecimal digits; NULL: not known. Not for mw_diff_create() to take */
	/* The largest interval that heap blocks were sampled with; 0: they were not. Not for mw_diff_create() to take. */
	uint64_t sampled;
	bool tracked[MW_KIND_COUNT]; /* kinds that were recorded */
	bool cut;                    /* the recording breaks off */
	uint64_t lost_events, lost_stacks;
	size_t not_hooked; /* entry points whose calls were not seen */
};

/* How far off amounts of both sides may be that are estimates, and the change between them; zeros where they are exact. */
struct mw_diff_spread {
	struct mw_spread held[MW_DIFF_SIDES], change;
	uint64_t only[MW_DIFF_SIDES]; /* recorded blocks that stand for what only that side holds */
};

struct mw_diff_stack {
	char id[17];
	enum mw_kind kind;
	const char *api;        /* the entry point … */
	const char *api_module; /* … and where it lies */
	enum mw_stack_cut cut;
	enum mw_stack_end end;
	struct mw_report_frame *frames; /* from the newer snapshot where they are known, else from the older */
	size_t frame_count;
	struct mw_amount held[MW_DIFF_SIDES];
	struct mw_diff_spread spread;
	enum mw_diff_change change;
	/* Sampling alone makes such a change of bytes likely: no more than two standard errors. What was only allocated between
	 * two moments of one window, or only freed, did change. */
	bool noise;
};

struct mw_diff {
	enum mw_diff_basis basis;
	bool one_reading; /* two moments of one recording */
	enum mw_diff_program program;
	struct mw_diff_snapshot snapshots[MW_DIFF_SIDES];
	/* Was this kind recorded on both sides, and asked for? Nothing is said of others. */
	bool compared[MW_KIND_COUNT];
	struct mw_amount totals[MW_KIND_COUNT][MW_DIFF_SIDES]; /* of all stacks of the kind */
	struct mw_diff_spread spreads[MW_KIND_COUNT];
	enum mw_diff_change change; /* … of all that was compared */
	bool noise;
	/* All that one side or both hold: the largest growth of bytes first, then of count, then by id. Where rates are
	 * compared: those that have become faster first, by how much; then the same ones, the fastest first; then the
	 * slower ones. */
	struct mw_diff_stack *stacks;
	size_t stack_count;
	/* Modules of the same path whose builds differ: stacks through them don't match. */
	const char **rebuilt;
	size_t rebuilt_count;
	void *arena; /* owns everything above; src/view's business */
};

void mw_diff_destroy(struct mw_diff *diff);

/* Are heap blocks sampled on either side? */
static inline bool mw_diff_is_sampled(const struct mw_diff *diff, enum mw_kind kind)
{
	return kind == MW_KIND_HEAP && (diff->snapshots[MW_DIFF_OLD].sampled || diff->snapshots[MW_DIFF_NEW].sampled);
}

/* How many of an amount are left behind in an hour; at least 0 s have passed. */
static inline uint64_t mw_diff_hourly(uint64_t amount, double seconds)
{
	double hourly = seconds > 0 ? (double)amount * 3600 / seconds : 0;

	return hourly < 9e18 ? (uint64_t)(hourly + 0.5) : UINT64_C(9000000000000000000);
}

/* --- two looks at heaps (memwatch/heap.h) ----------------------------------------------------------------------------- */

/* Are both of one process? Its growth has a rate only then. */
enum mw_heap_diff_process {
	MW_HEAP_DIFF_ONE,
	MW_HEAP_DIFF_OTHER,  /* of another pid, or one that has been given to another process since */
	MW_HEAP_DIFF_BOOT,   /* the system was started anew in between, or it is another one */
	MW_HEAP_DIFF_UNKNOWN /* of one pid; there is no telling */
};

/* A line of the account. */
struct mw_heap_diff_line {
	const char *name, *detail;
	uint64_t held[MW_DIFF_SIDES], swapped[MW_DIFF_SIDES];
};

/* Blocks that are alike, whatever their verdicts. */
struct mw_heap_diff_group {
	const char *class_name; /* as in mw_heap_group, and so the next three */
	uint64_t size;
	const char *allocator, *arena;
	struct mw_amount held[MW_DIFF_SIDES];
	struct mw_amount lost[MW_DIFF_SIDES]; /* of these, definitely and indirectly lost ones */
	const char *const *holder; /* how one of those that are reachable is held, as the newer look has it */
	size_t holder_count;       /* 0: not known */
};

/* What a holder retains. */
struct mw_heap_diff_holder {
	const char **path; /* root first, itself last */
	size_t depth;      /* names in it */
	struct mw_amount retained[MW_DIFF_SIDES];
};

struct mw_heap_diff {
	const char *files[MW_DIFF_SIDES];                  /* the looks' names; borrowed, as are … */
	const struct mw_heap_report *looks[MW_DIFF_SIDES]; /* … the looks */
	enum mw_heap_diff_process process;
	enum mw_diff_program program;
	double seconds; /* from one look to the other; of one process more than 0 */
	unsigned by;    /* enum mw_heap_by: what blocks are grouped by in both; groups have no more */
	/* Of each list the largest growth of bytes comes first, and the largest decrease last. */
	struct mw_heap_diff_line *lines;
	size_t line_count;
	struct mw_heap_diff_group *groups;
	size_t group_count;
	struct mw_heap_diff_holder *holders; /* where both looks have them */
	size_t holder_count;
	void *arena; /* owns the lists; src/view's business */
};

void mw_heap_diff_destroy(struct mw_heap_diff *diff);

/* How many bytes or blocks more there are after a day of such growth; *known is false where it has no rate. */
static inline double mw_heap_diff_daily(const struct mw_heap_diff *diff, uint64_t from, uint64_t to, bool *known)
{
	double change = to >= from ? (double)(to - from) : -(double)(from - to);

	*known = diff->process == MW_HEAP_DIFF_ONE && diff->seconds > 0;
	return *known ? change * 86400 / diff->seconds : 0;
}

#endif
