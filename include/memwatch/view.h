/* SPDX-License-Identifier: MIT */
/*
 * view.h: the neutral report: what a view found, before anything is said about how it looks.
 *
 * A report owns all its strings and arrays (mw_report_destroy frees them). Text is UTF-8 as the
 * target had it: an output escapes what its format needs escaped. NULL is "unknown". Times are
 * seconds since the window's start, sizes bytes.
 */
#ifndef MEMWATCH_VIEW_H
#define MEMWATCH_VIEW_H

#include <memwatch/engine.h>
#include <memwatch/heap.h>
#include <memwatch/types.h>

/* What a stack ends at, where that is not the start of a thread. */
enum mw_stack_end {
	MW_STACK_END_NONE,
	MW_STACK_END_COROUTINE, /* the first frame of a context that the program switches to */
	MW_STACK_END_GENERATED, /* code that was made at run time; its callers are not known: cut */
	MW_STACK_END_ERLANG,    /* an Erlang process */
	MW_STACK_END_GO,        /* Go's runtime, which calls C on another stack than Go's */
};

/* Its name; NULL for MW_STACK_END_NONE. */
const char *mw_stack_end_name(enum mw_stack_end end);

/* Of the code of a frame. */
enum mw_language {
	MW_LANGUAGE_NATIVE,
	MW_LANGUAGE_PYTHON,
	MW_LANGUAGE_JAVA,
	MW_LANGUAGE_JAVASCRIPT,
	MW_LANGUAGE_GO,
	MW_LANGUAGE_COUNT
};

/* For reports; "?" for a number that is none of them. Static text. */
const char *mw_language_name(enum mw_language language);

/* Is it code that a runtime runs, which has frames of its own beside the runtime's? */
static inline bool mw_language_is_script(enum mw_language language)
{
	return language != MW_LANGUAGE_NATIVE && language != MW_LANGUAGE_GO;
}

/* Which frames of a stack are shown. */
enum mw_frames {
	MW_FRAMES_DEFAULT, /* own; all where everything is shown */
	MW_FRAMES_ALL,
	MW_FRAMES_OWN,    /* runs of an interpreter's are one */
	MW_FRAMES_SCRIPT, /* those of scripts alone; of a stack that has none, as own */
};

/* "all", …; "?" for a number that is none of them. Static text. */
const char *mw_frames_name(enum mw_frames frames);

struct mw_report_frame {
	const char *function; /* demangled */
	const char *module;   /* path as the target sees it; NULL for code in no file */
	uint64_t offset;      /* from the function's start, or the module's where function is NULL */
	mw_addr address;
	const char *file;
	uint32_t line; /* 0: unknown */
	bool inlined;
	/* Code that no file holds and nobody names: the frame is of a whole region, which `function` describes (NULL:
	 * it is not known), and `address` is where that begins. */
	bool generated;
	/* Where it is a script's, the frame is an interpreter's: `module` stands for the language, and offset and address
	 * say nothing. */
	enum mw_language language;
	bool interprets; /* native code of the interpreter, or of its installation, on a stack with frames of a script */
};

static inline bool mw_report_has_script(const struct mw_report_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (mw_language_is_script(frames[i].language))
			return true;
	return false;
}

/* How many frames from the first on are shown as one, as an interpreter's; 0: the first is shown as it is. */
static inline size_t mw_report_interpreter(enum mw_frames shown, const struct mw_report_frame *frames, size_t count)
{
	size_t run = 0;

	while (shown != MW_FRAMES_ALL && run < count && frames[run].interprets)
		run++;
	return run;
}

struct mw_report_peak {
	uint64_t count, bytes;
	double at;
};

struct mw_report_thread {
	pid_t tid;
	const char *name;
	struct mw_amount size, impacting, transient;
	struct mw_spreads spreads; /* of these, where blocks are sampled */
};

/* What becomes of what a stack allocates. */
enum mw_growth_verdict {
	MW_GROWTH_TOO_SHORT,
	MW_GROWTH_ONE_OFF,
	MW_GROWTH_CHURN,
	MW_GROWTH_PLATEAU,
	MW_GROWTH_STEADY_STATE,
	/* From here on it grows. */
	MW_GROWTH_STEADY,
	MW_GROWTH_STEPWISE,
	MW_GROWTH_ACCELERATING,
	MW_GROWTH_CONTAINER,
};

/* "steady growth", …: static text. */
const char *mw_growth_name(enum mw_growth_verdict verdict);

/* A verdict and the figures that it rests on (of a stack with impacting blocks). */
struct mw_report_growth {
	bool known;
	enum mw_growth_verdict verdict;
	bool certain;                  /* false: what was seen leaves another explanation open (src/view/verdict.h) */
	double bytes_per_second;       /* of the line through what was outstanding over the window … */
	double steadiness;             /* … and how near it lies to that line, 0 to 1 (R squared) */
	double floor_start, floor_end; /* bytes: the least outstanding in the first and in the last eighth */
	/* Nearly all that settled (src/view/growth.h) was allocated by then. Where nothing did: the interval's end if
	 * there is steady growth, else its begin. */
	double growing_until;
	double freed_share;            /* of its blocks, 0 to 1: freed inside the interval */
	double oldest_age, newest_age; /* seconds, of the impacting blocks */
	double settle_age;             /* seconds: blocks that get freed are freed by then; 0: hardly any is */
	struct mw_amount settled;      /* impacting blocks older than that */
	bool storage;                  /* of a container: replaced by larger ones */
};

/* What a look at the heap at the window's end has found of impacting blocks (memwatch/heap.h). */
struct mw_report_leaks {
	struct mw_amount amounts[MW_REACH_COUNT];
	const char **holder; /* how the first of those that are held is held, root first */
	size_t holder_count;
};

/* Definitely and indirectly lost. */
static inline struct mw_amount mw_report_lost(const struct mw_report_leaks *leaks)
{
	struct mw_amount lost = leaks ? leaks->amounts[MW_REACH_DEFINITE] : (struct mw_amount){0};

	if (leaks)
		mw_amount_add(&lost, leaks->amounts[MW_REACH_INDIRECT]);
	return lost;
}

/* Blocks that a pool on top of malloc took (src/alloc/pools.h), by those who use it. All texts are there, perhaps empty. */
struct mw_report_pool {
	const char *name; /* "PostgreSQL's memory contexts" */
	const char *hint; /* where no user is known: why, and what tells more; NULL: one is */
	struct mw_report_pool_user {
		const char *name,
			*path; /* as "ExecutorState", and what it is part of: "TopMemoryContext > PortalContext" */
		const char *example; /* what one of that name is for */
		struct mw_amount blocks;
	} * users; /* most bytes first */
	size_t user_count;
	struct mw_amount looked, others; /* blocks that were read; … whose user is not known, or one of too many */
};

struct mw_report_stack {
	char id[17];
	enum mw_kind kind;
	const char *api;
	enum mw_stack_cut cut;
	enum mw_stack_end end;
	struct mw_report_frame *frames;
	size_t frame_count;
	size_t charged; /* the frame of the line that it is charged to (src/view/suspects.h); 0 without frames */
	struct mw_amount size, impacting, transient, aofi;
	struct mw_amount settled_later; /* of impacting: freed within the settling time, after the window */
	uint64_t aofi_unknown;          /* of aofi.count, those whose size is unknown (0 in aofi.bytes) */
	struct mw_amount aofo;          /* as in mw_report_totals */
	struct mw_report_peak peak;
	struct mw_spreads spreads; /* of all these, where blocks are sampled */
	uint64_t lifetime_min_ns, lifetime_median_ns, lifetime_p99_ns, lifetime_max_ns;
	double oldest, newest;            /* when the oldest and the newest impacting block was allocated */
	struct mw_report_thread *threads; /* with impacting blocks of this stack; only tid, name, impacting */
	size_t thread_count;
	const char *suspect; /* the module it is charged to; NULL where every frame is runtime */
	struct mw_report_growth growth;
	const struct mw_report_leaks *leaks; /* NULL: not looked for, or has no blocks that it could be known of */
	const struct mw_report_pool *pool;   /* that its impacting blocks are of; NULL: of none */
	uint32_t group;                      /* src/view's business */
	bool has_lifetime;                   /* any block freed: lifetimes are of the transient ones */
	bool has_ages;                       /* any block impacting */
	uint64_t resident; /* vm: of the impacting bytes, at the window's end; MW_SIZE_UNKNOWN: not known */
};

/* The line that a stack is charged to, as suspects are; NULL: it has no frames. */
static inline const struct mw_report_frame *mw_report_line(const struct mw_report_stack *stack)
{
	return stack->charged < stack->frame_count ? &stack->frames[stack->charged] : NULL;
}

/* Stacks with one line of the user's own code in common, and verdicts that mean alike (src/view/suspects.h). */
struct mw_report_suspect {
	const struct mw_report_frame *frame; /* that line; NULL: stacks without frames */
	enum mw_growth_verdict verdict;
	bool certain;
	bool runtime_heap;       /* a runtime keeps its objects in these blocks */
	uint64_t bytes, blocks;  /* not freed */
	uint64_t freed;          /* blocks of the same stacks that were */
	double bytes_per_hour;   /* at the rate of the window; 0 where it does not grow */
	double seconds_to_limit; /* until at that rate target.limit is reached; below 0: it never is, or not known */
	size_t *stacks;          /* in mw_report.stacks, most bytes first */
	size_t stack_count;
	const char *sentence;              /* what the verdict means, and what is open */
	struct mw_amount settled_later;    /* as in mw_report_stack */
	struct mw_spreads spreads;         /* likewise; `bytes` and `blocks` are impacting, `freed` are transient */
	double low, high;                  /* where blocks are sampled: limits of `bytes`, at 95 % */
	struct mw_amount lost;             /* of them, that nothing leads to, or only lost ones (mw_report_leaks) */
	const struct mw_report_pool *pool; /* that blocks of it are of; NULL: of none */
};

/* A child of the process that was alive at the window's end. */
struct mw_report_child {
	pid_t pid;
	const char *comm;
	bool watched;
};

/* What the report does not show of a process whose runtime keeps objects by itself. */
struct mw_report_runtime {
	const char *name; /* "python", … */
	const char *heap; /* what it keeps in anonymous mappings; NULL: nothing */
	const char *text;
	bool has_growth; /* are these mappings known? */
	uint64_t growth; /* … what their part of the RSS grew by in the window, bytes */
	uint64_t blocks; /* … and what blocks that were not freed explain of it */
};

/* Modules in the stacks of suspects whose functions have no names, and how these are had. */
struct mw_report_nameless {
	const char **modules;
	size_t module_count;
	/* Of those that packages put there: `begin`, the arguments, `end`. NULL: no command is known, or there are none. */
	const char *sudo, *begin, *end;
	const char **arguments;
	size_t argument_count;
};

/* By how much the process's RSS grew in the interval, and by what. In bytes. */
struct mw_report_rss {
	bool known;       /* else there is no sample at both ends, or it did not grow */
	bool unexplained; /* much of the growth is none of the blocks that were not freed */
	uint64_t growth;
	uint64_t blocks; /* what these explain of it */
	/* The remainder by what it is resident in: what the address space's kinds grew by, without these blocks. */
	bool has_kinds;
	uint64_t kinds[MW_REGION_KIND_COUNT];
};

/* By what the process's memory became more or less from a look at its heap at the window's start to one at its end. */
struct mw_report_change {
	uint64_t before, after;             /* RSS */
	int64_t sums[MW_HEAP_CHANGE_COUNT]; /* by kind; together the change of RSS, exactly, and so the parts */
	struct mw_heap_change *parts;       /* the largest first, whatever their signs */
	size_t part_count;
};

struct mw_report_module {
	const char *module; /* NULL: charged to none */
	struct mw_amount size, impacting, transient;
	struct mw_spreads spreads;
};

struct mw_report_totals {
	struct mw_amount size, impacting, transient, aofi;
	struct mw_amount aofo;          /* of blocks that are known: allocated in the window, before the interval */
	struct mw_amount settled_later; /* as in mw_report_stack */
	uint64_t aofi_unknown;
	struct mw_report_peak peak;
	struct mw_spreads spreads;
};

/* A sampling interval. */
struct mw_report_sampled {
	uint64_t bytes;
	double from;     /* when the first block was recorded with it; below 0: none was */
	uint64_t blocks; /* recorded with it, inside the interval that the report is of */
};

/* How heap blocks are sampled: all amounts that have heap blocks in them are estimates then (docs/SAMPLING.md). */
struct mw_report_sampling {
	uint64_t interval; /* the largest; 0: every block is recorded */
	struct mw_report_sampled *intervals;
	size_t count;
	uint64_t exact;  /* blocks that were recorded as all others were, before sampling began */
	uint64_t unseen; /* bytes: a stack that has more is seen with a probability of 95 % or more */
	double from;     /* seconds into the window: before that every block was recorded */
	const char *why; /* … blocks are sampled since then, and how every block is recorded; NULL: it was asked for */
};

struct mw_report_sample {
	double at;
	uint64_t rss, pss, vsize; /* pss: MW_SIZE_UNKNOWN where not read */
	uint64_t heap_impacting, vm_impacting;
	uint64_t arena_used, arena_free, arena_size; /* of glibc; MW_SIZE_UNKNOWN where not read */
};

/* A moment that somebody has marked. */
struct mw_report_mark {
	uint32_t number; /* from 1 */
	uint64_t time_ns;
	const char *name;
};

/* Regions of a kind. */
struct mw_report_region {
	uint64_t count, reserved;
	uint64_t resident; /* MW_SIZE_UNKNOWN: not known of one of them */
};

/* An address space at a moment. */
struct mw_report_moment {
	bool known; /* else all is unknown */
	struct mw_report_region kinds[MW_REGION_KIND_COUNT];
	/* Of glibc's arenas; MW_SIZE_UNKNOWN: not told, or no glibc. used + free = size. */
	uint64_t arena_used, arena_free, arena_size;
};

/* Memory that was mapped inside the window, and no hook saw it. */
struct mw_report_unattributed {
	mw_addr address;
	uint64_t bytes, resident; /* resident: MW_SIZE_UNKNOWN where not known */
	enum mw_region_kind kind;
	const char *path; /* "" for none */
};

/* Bytes as a runtime tells them; 0: it does not. */
struct mw_report_use {
	uint64_t committed, used;
};

/* Anonymous mappings of one name: what a runtime has them for, or whoever made them (PR_SET_VMA). */
struct mw_report_named {
	const char *name;
	struct mw_report_region start, end;
	struct mw_report_use use_at_start, use_at_end;
	uint64_t blocks; /* what of the end's `resident` are blocks that were not freed */
};

struct mw_report_space {
	struct mw_report_moment start, end;          /* of the window */
	bool has_unattributed;                       /* else it can't be known what is unattributed */
	struct mw_report_unattributed *unattributed; /* most bytes first */
	size_t unattributed_count;
	struct mw_report_named *named; /* by name: parts of MW_REGION_ANONYMOUS */
	size_t named_count;
};

struct mw_report_hook {
	const char *function, *module, *role, *refused;
	mw_addr address;
	bool missed; /* refused, though its calls were to be recorded: they were not seen */
};

struct mw_report {
	struct {
		pid_t pid;
		const char *comm, *exe;
		const char **command;
		size_t command_count;
		bool launched; /* by memwatch: nothing is from before the window … */
		bool attached; /* … or it ran already; neither: not known */
		bool has_exit_status;
		int exit_status; /* exit code, or 128 + signal as shells have it */
		int exit_signal; /* 0: none */
		struct mw_memory_limit limit;
		struct mw_report_child *children; /* NULL: not known */
		size_t child_count;
	} target;
	struct {
		int64_t started_realtime_ns;
		double seconds, from, to;
		enum mw_window_end ended;
	} window;
	struct {
		const char *name, *reason;
		struct mw_report_hook *hooks;
		size_t hook_count;
		struct mw_engine_stats stats;
	} engine;
	struct {
		uint64_t events, stacks;
		const char *cut; /* why the recording goes no further, or NULL: it is whole, or there is none */
		size_t hooks;    /* entry points whose calls were not seen (engine.hooks) */
	} lost;
	struct mw_report_sampling sampling;
	struct mw_report_totals totals[MW_KIND_COUNT];
	struct mw_report_leaks *leaks;   /* of all stacks, without a holder; NULL: not looked for */
	struct mw_report_change *change; /* of the whole window; NULL: there were no looks at both ends */
	bool tracked[MW_KIND_COUNT];     /* false: this kind was not recorded */
	struct mw_report_sample *memory;
	size_t memory_count;
	struct mw_report_mark *marks; /* inside the interval */
	size_t mark_count;
	struct mw_report_module *modules; /* most impacting bytes first */
	size_t module_count;
	struct mw_report_thread *threads; /* most impacting bytes first */
	size_t thread_count;
	struct mw_report_stack *stacks; /* most impacting bytes first, then most size bytes */
	size_t stack_count;
	struct mw_report_suspect *suspects; /* what grows first, what comes and goes left out */
	size_t suspect_count;
	struct mw_report_runtime *runtimes;
	size_t runtime_count;
	const char *frames_missing; /* why frames of an interpreter are, a sentence; NULL: they are not */
	struct mw_report_nameless nameless;
	struct mw_report_rss rss;
	struct mw_report_space *space; /* NULL: not looked at */
	void *arena;                   /* owns everything above; src/view's business */
};

/* Was nothing lost? */
static inline bool mw_report_is_complete(const struct mw_report *report)
{
	return !report->lost.events && !report->lost.stacks && !report->lost.hooks && !report->lost.cut;
}

/* Are amounts of that kind estimates? */
static inline bool mw_report_is_sampled(const struct mw_report *report, enum mw_kind kind)
{
	return report->sampling.interval && kind == MW_KIND_HEAP;
}

/* Is it known which blocks of that kind were freed that were there before the interval? Where blocks are sampled it is only of
 * those that were allocated in the window. */
static inline bool mw_report_knows_older(const struct mw_report *report, enum mw_kind kind)
{
	return !mw_report_is_sampled(report, kind) || report->window.from > 0;
}

/* Of the time from the begin of the attach to the end of the detach, the share in which at least one of the process's
 * threads were stopped for memwatch: 0 to 1. */
static inline double mw_report_stopped_share(const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;
	double time = report->window.seconds * 1e9 + (double)stats->attach_ns + (double)stats->detach_ns;

	return time > 0 ? (double)stats->stood_ns / time : 0;
}
void mw_report_destroy(struct mw_report *report);

#endif
