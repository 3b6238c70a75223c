/* SPDX-License-Identifier: MIT */
/*
 * html.h: the report as one page that needs nothing else (html/FORMAT.md).
 *
 * The page is html/dist/report.html, which is part of the program. Nothing of what a process or a recording says stands
 * in it other than packed.
 */
#ifndef MW_OUTPUT_HTML_H
#define MW_OUTPUT_HTML_H

#include <memwatch/error.h>

#include <stdio.h>

/* A stream whose text comes out of `out` as base64 of a zlib stream (RFC 1950), without line ends. Closing it writes what
 * it holds; write errors of `out`, which stays the caller's, stay in that. Errors: MEMORY. */
struct mw_error *mw_html_pack(FILE *out, FILE **stream) MW_MUST_CHECK;

#endif
