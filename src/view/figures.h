/* SPDX-License-Identifier: MIT */
/* figures.h: an engine's figures by name, as a recording keeps them. */
#ifndef MW_VIEW_FIGURES_H
#define MW_VIEW_FIGURES_H

#include "store/store.h"

#include <memwatch/engine.h>

#define MW_FIGURES_MAX 32

/* All of them, into room for MW_FIGURES_MAX; names are static. Returns how many. */
size_t mw_figures_list(const struct mw_engine_stats *stats, struct mw_stored_figure *out);
/* Set the one of that name; one that is not known is let be (a newer memwatch wrote it). */
void mw_figures_set(struct mw_engine_stats *stats, const struct mw_stored_figure *figure);

#endif
