/* SPDX-License-Identifier: MIT */
/*
 * remains.h: is what a control block and an image say of themselves possible? Pure: of bytes and a list of mappings
 * (stale.h).
 */
#ifndef MW_ENGINE_JUMP_REMAINS_H
#define MW_ENGINE_JUMP_REMAINS_H

#include "proc/maps.h"
#include "stub/stub.h"

#include <memwatch/error.h>
#include <string.h>

/* Is it memory that memwatch and a process share, from its beginning? */
static inline bool jump_remains_is_shared(const struct mw_mapping *mapping)
{
	return mapping->shared && mapping->offset == 0 && mapping->inode &&
	       strcmp(mapping->path, "/memfd:memwatch") == 0;
}

/* Can it be ours? `pages`: it is whole pages, few enough, in private memory. */
bool jump_remains_owned(const struct mw_maps *maps, const struct mw_ring_owned *owned);
/* Is it an image, `size` bytes of it at hand, of this version? `*other`: it is one of another. */
bool jump_remains_is_image(const uint8_t *bytes, uint64_t size, bool *other);
/* Its context. For what is an image. */
static inline const struct mw_stub_context *jump_remains_context(const uint8_t *bytes)
{
	const struct mw_stub_header *header = (const struct mw_stub_header *)(const void *)bytes;

	return (const struct mw_stub_context *)(const void *)(bytes + header->context);
}

/* Geometry of the slots: where they are and how many; false where they don't fit into `size` bytes. */
bool jump_remains_slots(const struct mw_ring_control *control, uint64_t size, uint64_t *offset, uint32_t *count);
/* Does the text of /proc/locks tell of a lock on the file? */
bool jump_remains_locked(const char *locks, uint32_t major, uint32_t minor, uint64_t inode);
/* Does the text of /proc/PID/smaps say that a fork leaves the mapping at `start` empty? */
bool jump_remains_wiped_by_fork(const char *smaps, mw_addr start);

#endif
