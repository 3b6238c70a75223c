/* SPDX-License-Identifier: MIT */
/* html_pack.h: a stream whose text comes out of another as base64 of a zlib stream (RFC 1950), without line ends. */
#ifndef MW_OUTPUT_HTML_PACK_H
#define MW_OUTPUT_HTML_PACK_H

#include <memwatch/error.h>

#include <stdio.h>

struct mw_html_pack;

/* Begin; `out` stays the caller's. Write errors of `out` stay in it. Errors: MEMORY. */
struct mw_error *mw_html_pack_begin(FILE *out, struct mw_html_pack **pack) MW_MUST_CHECK;
/* Where to write to, until the end. */
FILE *mw_html_pack_stream(struct mw_html_pack *pack);
/* Write what is held, and free. NULL is fine. */
void mw_html_pack_end(struct mw_html_pack *pack);

#endif
