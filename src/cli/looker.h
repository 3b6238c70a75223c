/* SPDX-License-Identifier: MIT */
/* looker.h: what the views of one process of a recording need beside its report: its blocks, as they are read. */
#ifndef MW_CLI_LOOKER_H
#define MW_CLI_LOOKER_H

#include "view/cube.h"
#include "view/facts.h"
#include "view/heaps.h"
#include "view/views.h"

struct mw_looker {
	struct mw_cells *cells;
	struct mw_blocklist *blocks;
	struct mw_cube *cube;
	struct mw_heaps *heaps;
	uint32_t *stack_of, *thread_of; /* for mw_summary_input */
	struct mw_view_thread *threads;
	size_t thread_count;
	const char **heap_names;
	size_t heap_count;
	struct mw_space_moment moments[2]; /* mw_looker_end() */
};

/* For a question about an interval that ends there; all is borrowed, and must outlive the looker. Errors: MEMORY.
 * Zero-initialise. */
struct mw_error *mw_looker_init(struct mw_looker *looker, const struct mw_view_question *question,
				const struct mw_facts *facts, uint64_t to_ns) MW_MUST_CHECK;
/* … and there is to be a timeline of an interval that begins and ends there; to_ns 0: its end is not known. Errors:
 * MEMORY. */
struct mw_error *mw_looker_draw(struct mw_looker *looker, uint64_t from_ns, uint64_t to_ns) MW_MUST_CHECK;
void mw_looker_deinit(struct mw_looker *looker);
/* The interval begins: blocks are taken note of from now on. */
void mw_looker_watch(struct mw_looker *looker, struct mw_track *track);
/* It has ended. Errors: MEMORY. */
struct mw_error *mw_looker_finish(struct mw_looker *looker, const struct mw_track *track) MW_MUST_CHECK;
/* What mw_looker_draw() was for, once the report is made; of an interval that has ended there. Errors: MEMORY. */
struct mw_error *mw_looker_timeline(struct mw_looker *looker, uint64_t to_ns, size_t stack_count,
				    struct mw_timeline **out) MW_MUST_CHECK;
/* For mw_views_create(), once the report is made; borrows from the looker. */
void mw_looker_process(const struct mw_looker *looker, const struct mw_report *report, size_t stack_count,
		       struct mw_view_process *out);
/* What was resident at the interval's end, if that is the window's: for mw_view_process.end. */
const struct mw_space_moment *mw_looker_end(struct mw_looker *looker, const struct mw_facts *facts, uint64_t to_ns);

#endif
