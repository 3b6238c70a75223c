/* SPDX-License-Identifier: MIT */
/*
 * elf_bytes.h: the bytes of a file, loaded piece by piece when they are first asked for.
 *
 *     base ┌──────────┬──────────┬──────────┬─────┐ base + size
 *          │ loaded   │ untouched│ loaded   │     │   one private anonymous mapping
 *          └──────────┴──────────┴──────────┴─────┘   as large as the file was
 *            CHUNK bytes each, read with pread
 *
 * A mapping of the file itself would raise SIGBUS when the file shrinks; a copy of the whole file
 * wastes memory on what nobody reads. A piece once loaded never changes, so what has been checked
 * stays true. Any thread may ask.
 */
#ifndef MW_SYMBOL_ELF_BYTES_H
#define MW_SYMBOL_ELF_BYTES_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <pthread.h>

struct mw_elf_bytes {
	uint8_t *base;
	uint64_t size;
	int fd;                  /* -1: all bytes are there */
	_Atomic uint8_t *loaded; /* one flag a chunk */
	uint64_t resident;       /* loaded so far; under the lock */
	pthread_mutex_t lock;
};

/* Takes over `fd` on success. Errors: DATA where it is no regular file or too large, SYSTEM, MEMORY. */
struct mw_error *mw_elf_bytes_open(struct mw_elf_bytes *bytes, int fd, const char *name) MW_MUST_CHECK;
/* Copies. Errors: MEMORY. */
struct mw_error *mw_elf_bytes_copy(struct mw_elf_bytes *bytes, const void *from, size_t size) MW_MUST_CHECK;
void mw_elf_bytes_deinit(struct mw_elf_bytes *bytes);

/* `size` bytes at a file offset, good as long as the object; NULL where the file has not (or no longer) so many. */
const uint8_t *mw_elf_bytes_get(struct mw_elf_bytes *bytes, uint64_t offset, uint64_t size);

#endif
