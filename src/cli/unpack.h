/* SPDX-License-Identifier: MIT */
/* unpack.h: bytes that gzip, LZ4 or Zstandard have packed, piece by piece, and with bounds: nobody need trust them. */
#ifndef MW_CLI_UNPACK_H
#define MW_CLI_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

struct mw_unpack;

/* Of a file that its name's end says to be packed (.gz, .lz4, .zst); NULL for others, and without memory. */
struct mw_unpack *mw_unpack_create(const char *name);
void mw_unpack_destroy(struct mw_unpack *unpack); /* NULL is fine */
/* Does a name say that a file is packed, in whatever way? */
bool mw_unpack_is_packed(const char *name);

/*
 * Take `*taken` bytes at most from `packed`, and give `*given` at most into `out`; then these say how many it were.
 * Several that were packed one by one and stand one behind the other are one. False where the bytes are broken, or
 * would need more than 32 MiB of memory: nothing more can be had then.
 */
bool mw_unpack(struct mw_unpack *unpack, const void *packed, size_t *taken, void *out, size_t *given);
/* Do the bytes that were taken end where what was packed ends? */
bool mw_unpack_is_whole(const struct mw_unpack *unpack);

#endif
