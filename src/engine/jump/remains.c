// SPDX-License-Identifier: MIT
/* remains.c: is what is said of stale memwatches possible? (remains.h) */
#include "engine/jump/remains.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE      4096u
#define MOST      (UINT64_C(64) << 20) /* bytes of one piece of private memory */
#define MOST_SLOT (1u << 20)

/* Does all of [start, start + size) lie in memory of no file, private, with no right that ours does not have? `data`
 * may be executable, as all is that a program with READ_IMPLIES_EXEC (personality(2)) may read. */
static bool is_private(const struct mw_maps *maps, mw_addr start, uint64_t size, bool data)
{
	mw_addr end = start + size;

	while (start < end) {
		const struct mw_mapping *mapping = mw_maps_find(maps, start);

		if (!mapping || mapping->shared || mapping->inode || *mapping->path ||
		    (mapping->write && mapping->exec && !data))
			return false;
		start = mapping->end;
	}
	return true;
}

bool jump_remains_owned(const struct mw_maps *maps, const struct mw_ring_owned *owned)
{
	uint64_t pages = owned->start | owned->size;

	if (pages % PAGE || owned->size == 0 || owned->size > MOST || owned->start > UINT64_MAX - owned->size)
		return false;
	if (owned->kind == MW_RING_OWN_GUARD && owned->size != PAGE)
		return false;
	return owned->kind > MW_RING_OWN_NOTHING && owned->kind <= MW_RING_OWN_TRAMPOLINES &&
	       is_private(maps, owned->start, owned->size, owned->kind == MW_RING_OWN_GUARD);
}

bool jump_remains_is_image(const uint8_t *bytes, uint64_t size, bool *other)
{
	struct mw_stub_header header;

	*other = false;
	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.magic != MW_STUB_MAGIC)
		return false;
	*other = header.layout != MW_STUB_LAYOUT;
	return !*other && header.size <= size && header.context % _Alignof(struct mw_stub_context) == 0 &&
	       header.context <= header.size && header.size - header.context >= sizeof(struct mw_stub_context) &&
	       header.code_end <= header.size && header.returned < header.code_end && header.enter < header.code_end &&
	       header.find_fde < header.code_end;
}

bool jump_remains_slots(const struct mw_ring_control *control, uint64_t size, uint64_t *offset, uint32_t *count)
{
	uint64_t bytes = control->slot_count * (uint64_t)sizeof(struct mw_ring_slot);

	if (control->magic != MW_RING_MAGIC || control->slot_count > MOST_SLOT || control->slots > size ||
	    bytes > size - control->slots)
		return false;
	*offset = control->slots;
	*count = control->slot_count;
	return true;
}

/* A line is "1: FLOCK  ADVISORY  WRITE 4711 00:01:1056 0 EOF"; one that waits has "-> " before the kind. */
bool jump_remains_locked(const char *locks, uint32_t major, uint32_t minor, uint64_t inode)
{
	char wanted[64];

	(void)snprintf(wanted, sizeof(wanted), " %02x:%02x:%" PRIu64 " ", major, minor, inode);
	for (const char *line = locks; line;) {
		const char *end = strchr(line, '\n'), *at = strstr(line, wanted), *kind = strstr(line, " FLOCK ");

		if (!at)
			return false;
		if (kind && kind < at && (!end || at < end))
			return true;
		line = end ? end + 1 : NULL;
	}
	return false;
}

/* "7f…-7f… rw-p …" begins a mapping, "VmFlags: rd wr …" ends it. */
bool jump_remains_wiped_by_fork(const char *smaps, mw_addr start)
{
	char wanted[32];
	const char *at, *flags, *end;
	int length = snprintf(wanted, sizeof(wanted), "\n%08" PRIx64 "-", start);

	at = strncmp(smaps, wanted + 1, (size_t)length - 1) == 0 ? smaps : strstr(smaps, wanted);
	flags = at ? strstr(at, "\nVmFlags:") : NULL;
	if (!flags)
		return false;
	end = strchr(flags + 1, '\n');
	at = strstr(flags, " wf");
	return at && (!end || at < end);
}
