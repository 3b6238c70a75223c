/* SPDX-License-Identifier: MIT */
/*
 * table.h: neutral tables, call trees and lists of blocks: what a view found where more was asked than the report.
 *
 * All is owned by one struct mw_views, but for the stacks of reports that rows point to: a report must live as long as
 * the views of it. Text is UTF-8 as the target had it, NULL is "unknown". Trees lie flat, in preorder: what belongs
 * under a row follows it, with a greater level. So nothing that reads them has to call itself.
 */
#ifndef MEMWATCH_TABLE_H
#define MEMWATCH_TABLE_H

#include <memwatch/types.h>
#include <memwatch/view.h>

/* What the blocks may be sorted into, in any order. */
enum mw_column {
	MW_COLUMN_PROCESS,
	MW_COLUMN_KIND,
	MW_COLUMN_HEAP,
	MW_COLUMN_TYPE,
	MW_COLUMN_THREAD,
	MW_COLUMN_MODULE,
	MW_COLUMN_FUNCTION,
	MW_COLUMN_STACK,
	MW_COLUMN_SIZE,
	MW_COLUMN_API,
	MW_COLUMN_LINE,     /* that a suspect is charged to (src/view/suspects.h) */
	MW_COLUMN_LANGUAGE, /* that it is written in */
	MW_COLUMN_COUNT
};

/* What became of a block, as the interval sees it. */
enum mw_fate {
	MW_FATE_IMPACTING, /* allocated inside, not freed (AIFO) */
	MW_FATE_TRANSIENT, /* allocated inside, freed inside (AIFI) */
	MW_FATE_AOFI,      /* allocated before, freed inside */
	MW_FATE_AOFO,      /* allocated before, not freed */
	MW_FATE_COUNT,
	MW_FATE_ALL = MW_FATE_COUNT, /* where one is to be chosen: none in particular */
};

/* Largest first; what is equal then, by impacting bytes, then by size, then by name. */
enum mw_sort {
	MW_SORT_IMPACTING,
	MW_SORT_SIZE,      /* bytes */
	MW_SORT_COUNT,     /* blocks of the chosen fate */
	MW_SORT_TRANSIENT, /* bytes */
	MW_SORT_PEAK,
	MW_SORT_LIFETIME, /* median; rows and blocks without one are last */
	MW_SORT_AOFI,     /* bytes */
	MW_SORT_NUMBER
};

/* Names as options, filters and JSON have them; "?" for a number that is none of them. Static text. */
const char *mw_column_name(enum mw_column column);
const char *mw_fate_name(enum mw_fate fate);
/* The name of what people call not-freed, freed, older or older-kept; any other word as it is. */
const char *mw_plain_type(const char *word);
const char *mw_sort_name(enum mw_sort sort);
const char *mw_kind_name(enum mw_kind kind);

/* What is known of a set of blocks. */
struct mw_sums {
	struct mw_amount fates[MW_FATE_COUNT];
	struct mw_spread spreads[MW_FATE_COUNT]; /* of these, where blocks are sampled */
	uint64_t aofi_unknown;                   /* of AOFI's count, those of unknown size */
	/* Of the transient ones. */
	bool has_lifetime;
	uint64_t lifetime_min_ns, lifetime_median_ns, lifetime_max_ns;
	/* Impacting bytes at their most. Only a whole stack has a peak that is known; else this is the sum of the peaks
	 * of all its stacks, which the true one can't exceed. */
	uint64_t peak_bytes;
	bool peak_exact;
};

/* All that was allocated inside. */
static inline struct mw_amount mw_sums_size(const struct mw_sums *sums)
{
	return (struct mw_amount){
		sums->fates[MW_FATE_IMPACTING].count + sums->fates[MW_FATE_TRANSIENT].count,
		sums->fates[MW_FATE_IMPACTING].bytes + sums->fates[MW_FATE_TRANSIENT].bytes,
	};
}

/* The amount of one fate; for MW_FATE_ALL the size. */
static inline struct mw_amount mw_sums_of(const struct mw_sums *sums, enum mw_fate fate)
{
	return fate < MW_FATE_ALL ? sums->fates[fate] : mw_sums_size(sums);
}

static inline struct mw_spread mw_sums_spread(const struct mw_sums *sums, enum mw_fate fate)
{
	struct mw_spread size = sums->spreads[MW_FATE_IMPACTING];

	mw_spread_add(&size, sums->spreads[MW_FATE_TRANSIENT]);
	return fate < MW_FATE_ALL ? sums->spreads[fate] : size;
}

#define MW_TABLE_ROOT SIZE_MAX /* the parent of a row of level 0 */

struct mw_table_row {
	uint32_t level;     /* its column is by[level] of the table */
	size_t parent;      /* index of the row it belongs under, or MW_TABLE_ROOT */
	uint64_t folded;    /* not 0: it stands for so many rows that are not shown; it has no value */
	const char *text;   /* thread, process: the name; NULL also where all frames are runtime */
	const char *module; /* a row of MW_COLUMN_FUNCTION: where it is */
	uint64_t
		number; /* pid, tid, bytes of one block, enum mw_kind, enum mw_fate; MW_SIZE_UNKNOWN: unknown or none */
	const struct mw_report_stack *stack; /* a row of MW_COLUMN_STACK: where known */
	const struct mw_report_frame *frame; /* a row of MW_COLUMN_LINE; NULL: stacks without frames */
	struct mw_sums sums;
};

/* Rows of one level under one parent sum up to it, those of level 0 to the total. */
struct mw_table {
	enum mw_column by[MW_COLUMN_COUNT];
	size_t by_count;
	struct mw_table_row *rows;
	size_t row_count;
	struct mw_sums total;
};

enum mw_tree_direction {
	MW_TREE_NONE,
	MW_TREE_DOWN, /* from the thread's start: outermost frames first */
	MW_TREE_UP,   /* from the allocator: innermost frames first */
};

/* A function, as it was called along the nodes above it (MW_TREE_UP: as it called them). No lifetimes. */
struct mw_tree_node {
	uint32_t level;
	size_t parent;
	/* Not 0: it stands for so many nodes that are not shown, nor is what they called; 1: for the one it names. */
	uint64_t folded;
	/* NULL: a frame. Else the reason why stacks end here before the thread's start. */
	const char *cut;
	const char *function, *module;
	uint64_t offset;     /* where the function is unknown: in the module, or the address */
	struct mw_sums sums; /* of all stacks that go through here */
	struct mw_sums self; /* of those that end here; the rest is in the nodes below */
};

struct mw_tree {
	enum mw_tree_direction direction;
	struct mw_tree_node *nodes;
	size_t node_count;
	struct mw_sums total;
	struct mw_sums self; /* blocks of no stack */
};

/* A block. Times since the window's start; MW_SIZE_UNKNOWN: unknown or none. */
struct mw_block_row {
	mw_addr addr;    /* of a mapping: of what there was last of it, or is */
	uint64_t bytes;  /* that were asked for */
	uint64_t others; /* that it stands for, where blocks are sampled */
	uint64_t left;   /* of a mapping, that are there at the interval's end: parts may have gone before; else 0 */
	enum mw_kind kind;
	enum mw_fate fate;
	pid_t pid;
	const char *heap;
	pid_t tid; /* 0: unknown */
	const char *thread;
	const struct mw_report_stack *stack; /* NULL: unknown */
	uint64_t born_ns, died_ns, lifetime_ns;
	uint64_t
		resident; /* bytes, of what is mapped at the window's end; MW_SIZE_UNKNOWN: not known, or no vm block */
};

struct mw_block_list {
	bool by_age; /* longest lifetime first; else largest first */
	struct mw_block_row *rows;
	size_t row_count;
	uint64_t count; /* blocks that might have been listed */
};

struct mw_views {
	enum mw_fate type; /* which amounts rows are shown for: those without any are folded */
	enum mw_sort sort;
	const char *filter; /* as it was given, or NULL */
	bool sampled;       /* amounts are estimates */
	bool knows_older;   /* as mw_report_knows_older() says; else of older blocks it knows some at best */
	/* NULL: not asked for. */
	const struct mw_table *groups;
	const struct mw_tree *tree;
	const struct mw_block_list *blocks;
	void *arena; /* owns everything; src/view's business */
};

void mw_views_destroy(struct mw_views *views);

#endif
