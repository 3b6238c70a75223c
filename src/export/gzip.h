/* SPDX-License-Identifier: MIT */
/* gzip.h: what is written in gzip, with a comment in its header by which memwatch knows its own files. */
#ifndef MW_EXPORT_GZIP_H
#define MW_EXPORT_GZIP_H

#include <memwatch/error.h>

#include <stdio.h>
#include <zlib.h>

/* mw_export_gzip_deinit() frees, also after an error. */
struct mw_export_gzip {
	z_stream stream;
	gz_header header;
	FILE *out;
	bool failed;
};

/* `comment` is static text; `level` is zlib's. Errors: MEMORY. */
struct mw_error *mw_export_gzip_init(struct mw_export_gzip *gzip, FILE *out, const char *comment,
				     int level) MW_MUST_CHECK;
void mw_export_gzip_put(struct mw_export_gzip *gzip, const void *bytes, size_t size);
/* All is put. Errors: MEMORY, also where it was wanting before; those of writing stay in the stream. */
struct mw_error *mw_export_gzip_finish(struct mw_export_gzip *gzip) MW_MUST_CHECK;
void mw_export_gzip_deinit(struct mw_export_gzip *gzip);

/* Does a file that begins so have that comment? */
bool mw_export_gzip_is_own(const char *head, size_t size, const char *comment);

#endif
