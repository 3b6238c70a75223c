// SPDX-License-Identifier: MIT
/* snapshot.c: the copied stack top (snapshot.h). */
#include "unwind/snapshot.h"

#include "base/vector.h"
#include "tracee/tracee.h"

#include <string.h>

#define GROWTH 4096u

void mw_snapshot_take(struct mw_snapshot *snapshot, pid_t tid, mw_addr base, size_t size)
{
	if (size > MW_SNAPSHOT_CAPACITY)
		size = MW_SNAPSHOT_CAPACITY;
	snapshot->tid = tid;
	snapshot->base = base;
	snapshot->highest = base;
	snapshot->override_count = 0;
	snapshot->size = mw_remote_read(tid, base, snapshot->bytes, size);
}

void mw_snapshot_override(struct mw_snapshot *snapshot, mw_addr addr, uint64_t shown, uint64_t value)
{
	if (snapshot->override_count == MW_SNAPSHOT_OVERRIDES)
		return;
	snapshot->overrides[snapshot->override_count++] =
		(struct mw_snapshot_override){.addr = addr, .shown = shown, .value = value};
}

/* Only whole words at the overridden address matter: return addresses are read as such. */
static void apply_overrides(const struct mw_snapshot *snapshot, mw_addr addr, void *out, size_t size)
{
	MW_EACH(override, snapshot->overrides, snapshot->override_count) {
		uint64_t word;

		if (override->addr < addr || override->addr - addr > size ||
		    size - (override->addr - addr) < sizeof(word))
			continue;
		memcpy(&word, (char *)out + (override->addr - addr), sizeof(word));
		if (word == override->shown)
			memcpy((char *)out + (override->addr - addr), &override->value, sizeof(word));
	}
}

static void lengthen(struct mw_snapshot *snapshot, mw_addr end)
{
	size_t wanted = (size_t)(end - snapshot->base) + GROWTH;

	if (wanted > MW_SNAPSHOT_CAPACITY)
		wanted = MW_SNAPSHOT_CAPACITY;
	snapshot->size += mw_remote_read(snapshot->tid, snapshot->base + snapshot->size,
					 snapshot->bytes + snapshot->size, wanted - snapshot->size);
}

static bool snapshot_read(void *context, mw_addr addr, void *out, size_t size)
{
	struct mw_snapshot *snapshot = context;
	mw_addr end = addr + size;

	if (end < addr)
		return false;
	if (addr >= snapshot->base && end - snapshot->base <= MW_SNAPSHOT_CAPACITY) {
		if (end - snapshot->base > snapshot->size)
			lengthen(snapshot, end);
		if (end - snapshot->base <= snapshot->size) {
			if (end > snapshot->highest)
				snapshot->highest = end;
			memcpy(out, snapshot->bytes + (addr - snapshot->base), size);
			if (snapshot->override_count)
				apply_overrides(snapshot, addr, out, size);
			return true;
		}
	}
	if (mw_remote_read(snapshot->tid, addr, out, size) != size)
		return false;
	apply_overrides(snapshot, addr, out, size);
	return true;
}

static bool snapshot_ends(void *context, mw_addr addr)
{
	const struct mw_snapshot *snapshot = context;

	return mw_peek_ends(snapshot->tid, addr);
}

struct mw_memory_view mw_snapshot_view(struct mw_snapshot *snapshot)
{
	return (struct mw_memory_view){.context = snapshot, .read = snapshot_read, .ends = snapshot_ends};
}
