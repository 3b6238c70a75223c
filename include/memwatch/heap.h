/* SPDX-License-Identifier: MIT */
/*
 * heap.h: what a look at the whole heap of a process has found, for outputs to render.
 *
 * Owned by whoever made it (mw_heap_report_destroy()). Texts from the process may be any bytes.
 */
#ifndef MEMWATCH_HEAP_H
#define MEMWATCH_HEAP_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_HEAP_SAMPLES       8 /* addresses kept of a group */
#define MW_HEAP_HOLDER_LEVELS 8 /* of the tree of holders */

/* Whether a process can still get at a block: memcheck's verdicts. */
enum mw_reach {
	MW_REACH_DEFINITE,  /* definitely lost: nothing leads to it */
	MW_REACH_INDIRECT,  /* indirectly lost: only lost blocks do */
	MW_REACH_POSSIBLE,  /* possibly lost: only by way of a pointer into the middle of a block */
	MW_REACH_REACHABLE, /* still reachable */
	MW_REACH_COUNT
};

/* "definitely lost" … */
const char *mw_reach_name(enum mw_reach reach);

/* By what blocks are grouped, beside their verdict. */
enum mw_heap_by {
	MW_HEAP_BY_CLASS = 1u << 0,
	MW_HEAP_BY_SIZE = 1u << 1,
	MW_HEAP_BY_ARENA = 1u << 2, /* and allocator */
};

/* A line of the account: bytes of the process's memory that are for one thing. */
struct mw_heap_line {
	const char *name; /* static: "live blocks", "free, kept by the allocator", "stacks" */
	char *detail;     /* "glibc 2.36", "main"; may be "" */
	uint64_t bytes, swapped;
	/* What a runtime has reserved for it, what of that can be accessed, and what holds something as it counts; 0: it does
	 * not say. */
	uint64_t reserved, committed, used;
};

struct mw_heap_figures {
	const char *name;            /* static: "glibc" */
	char *version;               /* "" where it is not known */
	char *module;                /* path, or NULL */
	bool walked;                 /* all its blocks are known */
	char *why;                   /* … or why not */
	struct mw_amount live, free; /* usable bytes; free: segments that can be handed out */
	uint64_t retained;           /* resident bytes of what is free */
	uint64_t trimmable;          /* bytes that the allocator would give back if it were asked to; MW_SIZE_UNKNOWN */
	uint64_t cached;             /* bytes in threads' caches, of what is free */
	uint64_t skipped;            /* bytes that could not be walked */
	uint64_t pinned_pages, pinned; /* resident pages more than half of which is free, and those free bytes */
	size_t arenas;
};

/* What a sample block holds. */
struct mw_heap_content {
	mw_addr at;
	uint64_t size;
	unsigned char *bytes; /* the first of them */
	size_t byte_count;
	/* What stands in it, by offset: "pointer to global shop::sessions", "string \"abc\"", "all zero". */
	struct mw_heap_note {
		uint64_t offset;
		char *text;
	} * notes;
	size_t note_count;
};

/* Blocks that are alike. */
struct mw_heap_group {
	char *class_name;      /* C++ class of the objects, or NULL */
	uint64_t size;         /* usable bytes of each; MW_SIZE_UNKNOWN: various */
	const char *allocator; /* static; NULL: various */
	char *arena;           /* NULL: various */
	enum mw_reach verdict; /* MW_REACH_COUNT where reachability was not looked for */
	struct mw_amount blocks;
	char **holder; /* root first; NULL: none known */
	size_t holder_count;
	mw_addr samples[MW_HEAP_SAMPLES];
	size_t sample_count;
	struct mw_heap_content *contents; /* of the first samples; where they were asked for */
	size_t content_count;
};

/* Who retains memory: a root, or blocks that are alike and are held by the same. */
struct mw_heap_holder {
	char *name;
	uint32_t depth; /* 0: a root. What it dominates follows, with a depth of one more, the largest first */
	struct mw_amount retained; /* what would be lost with it, itself included */
	struct mw_amount own;      /* of that, blocks that are it */
};

/* Memory that was passed over: taken as roots. */
struct mw_heap_gap {
	mw_addr start;
	uint64_t bytes;
	const char *why; /* static */
};

struct mw_heap_report {
	int32_t pid;
	char comm[17];
	char *exe;      /* or NULL */
	char *build_id; /* of its file, hexadecimal digits; or NULL */
	/* These and the pid tell a process from any other: the run of the system, and clock ticks from its boot to the
	 * process's start; "" and 0: not known. */
	char boot_id[37];
	uint64_t start_ticks;
	int64_t started_realtime_ns; /* of the look */
	unsigned by;                 /* enum mw_heap_by */
	bool forked;                 /* a copy was read; else the process as it ran */
	uint32_t passes;   /* how often it was read: blocks of a running process are lost if each pass says so */
	char *why;         /* why no copy was read; NULL */
	uint64_t pause_ns; /* how long it stood, in all its stops */
	double seconds;    /* the whole look */
	uint64_t scanned;  /* bytes looked through for pointers */
	uint64_t
		unread; /* bytes that may hold pointers and could not be read: then nothing is called lost for certain */
	uint64_t rss, swapped;
	uint64_t page_tables;       /* bytes, beside the account; MW_SIZE_UNKNOWN */
	struct mw_heap_line *lines; /* the largest first; their bytes sum to rss */
	size_t line_count;
	struct mw_heap_figures *allocators;
	size_t allocator_count;
	struct mw_amount leaks[MW_REACH_COUNT]; /* by verdict */
	struct mw_heap_group *groups;           /* lost ones first, then the largest first */
	size_t group_count;
	struct mw_heap_gap *gaps;
	size_t gap_count;
	struct mw_heap_holder *holders; /* the largest first; NULL where they were not asked for */
	size_t holder_count;
	char **advice; /* sentences: what the figures say, and what to do about it */
	size_t advice_count;
	char **texts; /* what is called static here, of a look that was read from a recording */
	size_t text_count;
};

/* By what a process's memory became more or less from one look to another. */
enum mw_heap_change_kind {
	MW_HEAP_CHANGE_BLOCKS,    /* blocks that were allocated in between, and not freed */
	MW_HEAP_CHANGE_FREED,     /* blocks that were there before, and have been freed */
	MW_HEAP_CHANGE_ALLOCATOR, /* free memory that allocators keep, and their bookkeeping */
	MW_HEAP_CHANGE_MAPPINGS,  /* memory of no allocator */
	MW_HEAP_CHANGE_REST,
	MW_HEAP_CHANGE_COUNT
};

/* "blocks", "older_freed" … */
const char *mw_heap_change_name(enum mw_heap_change_kind kind);

struct mw_heap_change {
	enum mw_heap_change_kind kind;
	const char *name, *detail; /* as in an account's line */
	uint64_t stack;            /* who made it: its id in reports; 0: not known */
	int64_t bytes;             /* resident */
};

void mw_heap_report_destroy(struct mw_heap_report *report);

#endif
