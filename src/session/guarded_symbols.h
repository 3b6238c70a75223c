/* SPDX-License-Identifier: MIT */
/* guarded_symbols.h: symbols whose reading may crash, in libraries that are not ours: the report goes without them
 * then. */
#ifndef MW_SESSION_GUARDED_SYMBOLS_H
#define MW_SESSION_GUARDED_SYMBOLS_H

#include "view/source.h"

struct mw_guarded_symbols {
	struct mw_view_symbols inner;
	bool crashed;                   /* nothing that `inner` works on may be touched any more, not even to free it */
	struct mw_symbol_frame unknown; /* what is known of an address then */
};

/* The answers of `inner`, which is copied, as long as it gives any. `careful` must outlive them. */
struct mw_view_symbols mw_guarded_symbols_of(struct mw_guarded_symbols *guarded, const struct mw_view_symbols *inner);

#endif
