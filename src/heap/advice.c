// SPDX-License-Identifier: MIT
/*
 * advice.c: sentences (advice.h). Each has a threshold, so that nobody is sent after what does not matter: a share of the
 * process's memory, and an amount.
 */
#include "heap/advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES (UINT64_C(1) << 20) /* less is not worth a sentence … */
#define LEAST_SHARE 20u                 /* … nor is one part in so many of the process's memory */
#define MANY_ARENAS 4u

static bool matters(const struct mw_heap_report *report, uint64_t bytes)
{
	return bytes != MW_SIZE_UNKNOWN && bytes >= LEAST_BYTES && bytes >= report->rss / LEAST_SHARE;
}

static MW_PRINTF(2, 3) struct mw_error *say(struct mw_heap_report *report, const char *format, ...)
{
	char **advice = reallocarray(report->advice, report->advice_count + 1, sizeof(*advice));
	va_list arguments;
	char *text;
	int length;

	if (!advice)
		return mw_error_nomem();
	report->advice = advice;
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return mw_error_nomem();
	advice[report->advice_count++] = text;
	return NULL;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static struct mw_error *advise_glibc(struct mw_heap_report *report, const struct mw_heap_figures *glibc)
{
	if (matters(report, glibc->trimmable))
		MW_TRY(say(report, "malloc_trim(0) would return %.1f MiB to the system", mib(glibc->trimmable)));
	if (matters(report, glibc->retained) && glibc->arenas > MANY_ARENAS)
		MW_TRY(say(report,
			   "%.1f MiB are free in %zu arenas: fewer arenas share what is free "
			   "(MALLOC_ARENA_MAX=2 in the environment, or mallopt(M_ARENA_MAX, 2))",
			   mib(glibc->retained), glibc->arenas));
	if (matters(report, glibc->cached))
		MW_TRY(say(
			report,
			"%.1f MiB are in threads' caches (GLIBC_TUNABLES=glibc.malloc.tcache_count=0 turns them off)",
			mib(glibc->cached)));
	return NULL;
}

struct mw_error *mw_advise(struct mw_heap_report *report)
{
	for (size_t i = 0; i < report->allocator_count; i++) {
		const struct mw_heap_figures *figures = &report->allocators[i];

		if (matters(report, figures->pinned))
			MW_TRY(say(report,
				   "%.1f MiB of %s are free on %" PRIu64
				   " pages that a few live blocks pin: that is reused for "
				   "blocks that fit, but can't be returned to the system",
				   mib(figures->pinned), figures->name, figures->pinned_pages));
		if (strcmp(figures->name, "glibc") == 0)
			MW_TRY(advise_glibc(report, figures));
		else if (matters(report, figures->retained))
			MW_TRY(say(report, "%.1f MiB are free, and kept by %s for reuse", mib(figures->retained),
				   figures->name));
	}
	return NULL;
}
