// SPDX-License-Identifier: MIT
/* error.c: the error object (include/memwatch/error.h), and memory kept for when there is none (reserve.h). */
#include <memwatch/error.h>

#include "base/reserve.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic(void *) reserve;
static atomic_size_t reserve_size;

void mw_reserve_keep(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	mw_reserve_release();
	atomic_store(&reserve_size, bytes);
	atomic_store(&reserve, memory);
}

void mw_reserve_release(void)
{
	void *memory = atomic_exchange(&reserve, NULL);

	if (memory)
		munmap(memory, atomic_load(&reserve_size));
}

struct mw_error {
	enum mw_error_kind kind;
	int errnum;
	char *text;
	char *hint;
};

static char nomem_text[] = "memwatch is out of memory";
static struct mw_error nomem = {MW_ERROR_MEMORY, 0, nomem_text, NULL};
/* Whether a thread has ended decides what is done next: that is reported without memory as well. */
static struct mw_error nomem_gone = {MW_ERROR_GONE, 0, nomem_text, NULL};

static bool is_static(const struct mw_error *err)
{
	return err == &nomem || err == &nomem_gone;
}

static struct mw_error *poor(enum mw_error_kind kind)
{
	mw_reserve_release();
	return kind == MW_ERROR_GONE ? &nomem_gone : &nomem;
}

struct mw_error *mw_error_nomem(void)
{
	return poor(MW_ERROR_MEMORY);
}

static MW_PRINTF(1, 0) char *format_text(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	return text;
}

struct mw_error *mw_error_create(enum mw_error_kind kind, int errnum, const char *format, ...)
{
	struct mw_error *err = calloc(1, sizeof(*err));
	va_list args;
	char *text;

	if (!err)
		return poor(kind);
	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (text && errnum) {
		char *longer = NULL;

		if (asprintf(&longer, "%s: %s", text, strerror(errnum)) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	if (!text) {
		free(err);
		return poor(kind);
	}
	err->kind = kind;
	err->errnum = errnum;
	err->text = text;
	return err;
}

struct mw_error *mw_error_hint(struct mw_error *err, const char *format, ...)
{
	va_list args;
	char *text;

	if (!err || is_static(err))
		return err;
	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (text) {
		free(err->hint);
		err->hint = text;
	}
	return err;
}

struct mw_error *mw_error_prefix(struct mw_error *err, const char *format, ...)
{
	va_list args;
	char *prefix;
	char *text = NULL;

	if (!err || is_static(err))
		return err;
	va_start(args, format);
	prefix = format_text(format, args);
	va_end(args);
	if (prefix && asprintf(&text, "%s: %s", prefix, err->text) >= 0) {
		free(err->text);
		err->text = text;
	}
	free(prefix);
	return err;
}

void mw_error_destroy(struct mw_error *err)
{
	if (!err || is_static(err))
		return;
	free(err->text);
	free(err->hint);
	free(err);
}

struct mw_error *mw_error_unless_gone(struct mw_error *err)
{
	if (!err || err->kind != MW_ERROR_GONE)
		return err;
	mw_error_destroy(err);
	return NULL;
}

struct mw_error *mw_error_first(struct mw_error *first, struct mw_error *second)
{
	if (!first || (second && first->errnum == EPIPE)) {
		mw_error_destroy(first);
		return second;
	}
	mw_error_destroy(second);
	return first;
}

void mw_error_keep_first(struct mw_error **first, struct mw_error *err)
{
	*first = mw_error_first(*first, mw_error_unless_gone(err));
}

struct mw_error *mw_error_worse(struct mw_error *err, struct mw_error *cleanup)
{
	return mw_error_first(mw_error_unless_gone(cleanup), err);
}

enum mw_error_kind mw_error_kind(const struct mw_error *err)
{
	return err->kind;
}

int mw_error_errno(const struct mw_error *err)
{
	return err->errnum;
}

const char *mw_error_text(const struct mw_error *err)
{
	return err->text;
}

const char *mw_error_hint_text(const struct mw_error *err)
{
	return err->hint;
}
