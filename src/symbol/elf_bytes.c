// SPDX-License-Identifier: MIT
/* elf_bytes.c: the bytes of a file, loaded when they are first asked for. */
#include "symbol/elf_bytes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK    ((uint64_t)64 << 10)
#define MAX_SIZE ((uint64_t)64 << 30)
/* A sparse file costs its maker nothing, and us every byte that we load. */
#define MAX_RESIDENT ((uint64_t)4 << 30)

static struct mw_error *reserve(uint64_t size, uint8_t **base)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return mw_error_nomem();
	*base = at;
	return NULL;
}

struct mw_error *mw_elf_bytes_open(struct mw_elf_bytes *bytes, int fd, const char *name)
{
	struct mw_error *err;
	_Atomic uint8_t *loaded;
	uint8_t *base = NULL;
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st) < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot stat %s", name);
	if (!S_ISREG(st.st_mode))
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not a regular file", name);
	size = (uint64_t)st.st_size;
	if (size == 0 || size > MAX_SIZE)
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file (%llu bytes)", name,
				       (unsigned long long)size);
	loaded = calloc(size / CHUNK + 1, sizeof(*loaded));
	if (!loaded)
		return mw_error_nomem();
	err = reserve(size, &base);
	if (err) {
		free((void *)loaded);
		return err;
	}
	*bytes = (struct mw_elf_bytes){.base = base, .size = size, .fd = fd, .loaded = loaded};
	(void)pthread_mutex_init(&bytes->lock, NULL);
	return NULL;
}

struct mw_error *mw_elf_bytes_copy(struct mw_elf_bytes *bytes, const void *from, size_t size)
{
	uint8_t *base = NULL;

	MW_TRY(reserve(size, &base));
	memcpy(base, from, size);
	*bytes = (struct mw_elf_bytes){.base = base, .size = size, .fd = -1};
	(void)pthread_mutex_init(&bytes->lock, NULL);
	return NULL;
}

void mw_elf_bytes_deinit(struct mw_elf_bytes *bytes)
{
	if (!bytes->base)
		return;
	(void)munmap(bytes->base, bytes->size);
	(void)pthread_mutex_destroy(&bytes->lock);
	free((void *)bytes->loaded);
	if (bytes->fd >= 0)
		close(bytes->fd);
	bytes->base = NULL;
}

static bool load_chunk(struct mw_elf_bytes *bytes, uint64_t chunk)
{
	uint64_t at = chunk * CHUNK;
	uint64_t end = bytes->size - at < CHUNK ? bytes->size : at + CHUNK;

	if (bytes->resident + (end - at) > MAX_RESIDENT)
		return false;
	while (at < end) {
		ssize_t got = pread(bytes->fd, bytes->base + at, end - at, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (uint64_t)got;
	}
	bytes->resident += CHUNK;
	return true;
}

static bool load(struct mw_elf_bytes *bytes, uint64_t first, uint64_t last)
{
	bool good = true;

	(void)pthread_mutex_lock(&bytes->lock);
	for (uint64_t chunk = first; chunk <= last && good; chunk++) {
		if (atomic_load_explicit(&bytes->loaded[chunk], memory_order_relaxed))
			continue;
		good = load_chunk(bytes, chunk);
		if (good)
			atomic_store_explicit(&bytes->loaded[chunk], 1, memory_order_release);
	}
	(void)pthread_mutex_unlock(&bytes->lock);
	return good;
}

const uint8_t *mw_elf_bytes_get(struct mw_elf_bytes *bytes, uint64_t offset, uint64_t size)
{
	uint64_t first, last;

	if (offset > bytes->size || size > bytes->size - offset)
		return NULL;
	if (bytes->loaded && size) {
		first = offset / CHUNK;
		last = (offset + size - 1) / CHUNK;
		for (uint64_t chunk = first; chunk <= last; chunk++) {
			if (atomic_load_explicit(&bytes->loaded[chunk], memory_order_acquire))
				continue;
			if (!load(bytes, chunk, last))
				return NULL;
			break;
		}
	}
	return bytes->base + offset;
}
