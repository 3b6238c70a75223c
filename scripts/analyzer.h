/* SPDX-License-Identifier: MIT */
/*
 * analyzer.h: what scripts/lint tells clang's analyzer about errors, since it sees one file at a time: a made error is
 * never NULL, and hint and prefix keep NULL NULL and an error an error. Part of no build.
 */
#pragma clang diagnostic ignored "-Wshadow"
#pragma clang diagnostic ignored "-Wgnu-statement-expression"

#include <memwatch/error.h>

static inline struct mw_error *mw_analyzer_made(struct mw_error *err)
{
	if (!err)
		__builtin_unreachable();
	return err;
}

#define MW_ANALYZER_KEPT(err, call)                                                                                    \
	({                                                                                                             \
		struct mw_error *mw_given_ = (err);                                                                    \
		struct mw_error *mw_kept_ = call;                                                                      \
		if (!mw_given_ != !mw_kept_)                                                                           \
			__builtin_unreachable();                                                                       \
		mw_kept_;                                                                                              \
	})

#define mw_error_create(...)      mw_analyzer_made(mw_error_create(__VA_ARGS__))
#define mw_error_nomem()          mw_analyzer_made(mw_error_nomem())
#define mw_error_hint(err, ...)   MW_ANALYZER_KEPT(err, mw_error_hint(mw_given_, __VA_ARGS__))
#define mw_error_prefix(err, ...) MW_ANALYZER_KEPT(err, mw_error_prefix(mw_given_, __VA_ARGS__))
