/* SPDX-License-Identifier: MIT */
/*
 * error.h: how a function says that it failed.
 *
 * A fallible function returns `struct mw_error *`: NULL is success, anything else is owned by
 * the caller, who hands it on, prints it or frees it. The text says what failed, on what, and
 * why; the hint says what the user can do. Out-parameters are untouched on failure.
 */
#ifndef MEMWATCH_ERROR_H
#define MEMWATCH_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define MW_MUST_CHECK   __attribute__((warn_unused_result))
#define MW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define MW_COLD         __attribute__((cold)) /* seldom called: what leads there is kept out of the way */

enum mw_error_kind {
	MW_ERROR_SYSTEM,      /* a system call failed; errno says why */
	MW_ERROR_USAGE,       /* the user asked for something invalid (exit status 2) */
	MW_ERROR_GONE,        /* the process or thread has ended */
	MW_ERROR_DENIED,      /* not permitted */
	MW_ERROR_UNSUPPORTED, /* the target is of a kind that memwatch cannot watch */
	MW_ERROR_DATA,        /* bytes from outside (ELF, /proc, memory) are invalid */
	MW_ERROR_MEMORY,      /* memwatch itself is out of memory */
	MW_ERROR_FOUND,       /* nothing failed, but what the user calls a failure holds (exit status 3) */
};

struct mw_error;

/*
 * Make an error. `errnum` is an errno value or 0; where it is not 0, ": strerror" is appended
 * to the text. Never returns NULL: without memory it returns a static error of kind MEMORY (GONE for GONE) that says
 * so.
 */
struct mw_error *mw_error_create(enum mw_error_kind kind, int errnum, const char *format, ...)
	MW_PRINTF(3, 4) MW_MUST_CHECK MW_COLD;

/* The static out-of-memory error. Freeing it does nothing. */
struct mw_error *mw_error_nomem(void) MW_MUST_CHECK MW_COLD;

/* Say what the user can do about it (replaces an earlier hint). Returns `err`; NULL stays NULL. */
struct mw_error *mw_error_hint(struct mw_error *err, const char *format, ...) MW_PRINTF(2, 3) MW_MUST_CHECK;

/* UNSUPPORTED, with what the user can do about it. */
#define MW_REFUSE(hint, ...) mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0, __VA_ARGS__), "%s", hint)

/* Put "prefix: " before the text. Returns `err`; NULL stays NULL. */
struct mw_error *mw_error_prefix(struct mw_error *err, const char *format, ...) MW_PRINTF(2, 3) MW_MUST_CHECK;

/* Free an error; NULL is fine. */
void mw_error_destroy(struct mw_error *err);

/* Was there none? One that there was is destroyed: for who has no use for the reason. */
static inline bool mw_error_none(struct mw_error *err)
{
	if (!err)
		return true;
	mw_error_destroy(err);
	return false;
}

/* NULL for an error that only says that something is gone (GONE), which is destroyed; any other as it is. */
struct mw_error *mw_error_unless_gone(struct mw_error *err) MW_MUST_CHECK;

/* The first of two errors, either NULL; the other is destroyed. That a reader has ended (EPIPE) comes last. */
struct mw_error *mw_error_first(struct mw_error *first, struct mw_error *second) MW_MUST_CHECK;

/* Keep an error where there is none yet, unless it only says that something is gone; else it is destroyed. */
void mw_error_keep_first(struct mw_error **first, struct mw_error *err);

/* Of what failed and of what then could not be cleaned up, either NULL, the one to tell: what could not be cleaned up,
 * unless it is gone anyway (GONE). The other is destroyed. */
struct mw_error *mw_error_worse(struct mw_error *err, struct mw_error *cleanup) MW_MUST_CHECK;

enum mw_error_kind mw_error_kind(const struct mw_error *err);

/* Want of memory (MEMORY) as it is; NULL for any other error, which is destroyed: for who can do without what failed. */
MW_MUST_CHECK static inline struct mw_error *mw_error_if_memory(struct mw_error *err)
{
	if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	return NULL;
}

int mw_error_errno(const struct mw_error *err);
/* Text without the hint; owned by the error. */
const char *mw_error_text(const struct mw_error *err);
/* The hint, or NULL; owned by the error. */
const char *mw_error_hint_text(const struct mw_error *err);

/* Hand an error on to the caller. */
#define MW_TRY(expression)                                                                                             \
	do {                                                                                                           \
		struct mw_error *mw_try_error_ = (expression);                                                         \
		if (__builtin_expect(!!mw_try_error_, 0))                                                              \
			return mw_try_error_;                                                                          \
	} while (0)

#endif
