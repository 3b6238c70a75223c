// SPDX-License-Identifier: MIT
/* figures.c: see figures.h. */
#include "view/figures.h"

#include <stddef.h>
#include <string.h>

#define FIGURE(name)                                                                                                   \
	{                                                                                                              \
#name, offsetof(struct mw_engine_stats, name)                                                          \
	}

static const struct {
	const char *name;
	size_t offset;
} figures[] = {
	FIGURE(stops),        FIGURE(longest_stop_ns),   FIGURE(stopped_ns),   FIGURE(stood_ns),
	FIGURE(attach_ns),    FIGURE(detach_ns),         FIGURE(lost_events),  FIGURE(broken_stacks),
	FIGURE(returns_site), FIGURE(returns_exchanged), FIGURE(lost_stacks),  FIGURE(walks),
	FIGURE(slow_walks),   FIGURE(waited_ns),         FIGURE(compared),     FIGURE(differing),
	FIGURE(own_resident), FIGURE(children_cleaned),  FIGURE(limit_memory), FIGURE(limit_stopped),
};

#define COUNT (sizeof(figures) / sizeof(figures[0]))

_Static_assert(COUNT <= MW_FIGURES_MAX, "they have room");
/* Whoever adds a figure adds it above: left_behind is a text. */
_Static_assert(sizeof(struct mw_engine_stats) == COUNT * sizeof(uint64_t) + sizeof(const char *), "all of them");

size_t mw_figures_list(const struct mw_engine_stats *stats, struct mw_stored_figure *out)
{
	for (size_t i = 0; i < COUNT; i++) {
		out[i].name = figures[i].name;
		memcpy(&out[i].value, (const char *)stats + figures[i].offset, sizeof(out[i].value));
	}
	return COUNT;
}

void mw_figures_set(struct mw_engine_stats *stats, const struct mw_stored_figure *figure)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(figures[i].name, figure->name) == 0)
			memcpy((char *)stats + figures[i].offset, &figure->value, sizeof(figure->value));
}
