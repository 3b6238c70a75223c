/* SPDX-License-Identifier: MIT */
/*
 * names.h: the names of a live table's stacks, found apart from the thread that serves the engine: with modules and
 * symbols of its own, from the process's mappings.
 *
 * Reading debug information takes its time: whoever shows names asks for what there is (mw_top_names_get()), from any
 * thread, and never waits. All else is for one thread at a time.
 */
#ifndef MW_TOP_NAMES_H
#define MW_TOP_NAMES_H

#include "top/feed.h"

struct mw_top_line {
	const char *module; /* base name; NULL: code in no file */
	const char *function, *file;
	uint32_t line;   /* 0: unknown */
	uint64_t offset; /* from the function's start, or the module's */
	bool inlined;
};

/* What is known of a stack; does not change any more. */
struct mw_top_named {
	char id[17];
	size_t charged; /* the line that it is charged to */
	size_t line_count;
	struct mw_top_line lines[];
};

struct mw_top_names;

/* The feed must outlive it. Errors: MEMORY. */
struct mw_error *mw_top_names_create(struct mw_top_feed *feed, pid_t pid, struct mw_top_names **out) MW_MUST_CHECK;
void mw_top_names_destroy(struct mw_top_names *names);

/* NULL: not known yet. From any thread. */
const struct mw_top_named *mw_top_names_get(struct mw_top_names *names, uint32_t stack);
/* Find out about a stack. Takes as long as it takes. Errors: MEMORY. */
struct mw_error *mw_top_names_find(struct mw_top_names *names, uint32_t stack) MW_MUST_CHECK;
/* Emit the names of all stacks to a recording. `go_on` (may be NULL) is asked now and then, false ends it. Errors: MEMORY.
 */
struct mw_error *mw_top_names_emit(struct mw_top_names *names, struct mw_store_writer *writer,
				   bool (*go_on)(void *context, uint64_t done, uint64_t total),
				   void *context) MW_MUST_CHECK;

#endif
