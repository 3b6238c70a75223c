// SPDX-License-Identifier: MIT
/* hotspot_watch.c: memory that names of frames were made of, watched for other code and other methods (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#include "base/hash.h"
#include "base/vector.h"
#include "proc/peek.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX   256u
#define WATCHES_MAX 16384u

/* False: it can't be read. */
static bool hash_of(pid_t tid, mw_addr at, uint32_t size, uint64_t *out)
{
	uint64_t words[BYTES_MAX / sizeof(uint64_t)];
	uint64_t hash = size;

	memset(words, 0, sizeof(words));
	if (!mw_peek(tid, at, words, size))
		return false;
	for (size_t i = 0; i * sizeof(words[0]) < size; i++)
		hash = mw_hash_add(hash, words[i]);
	*out = hash;
	return true;
}

void hotspot_watch(struct mw_hotspot *hotspot, pid_t tid, mw_addr at, uint32_t size)
{
	struct hotspot_watch watch = {.at = at, .size = size < BYTES_MAX ? size : BYTES_MAX};

	if (hotspot->watch_count == WATCHES_MAX || mw_map_get(&hotspot->watched, at) ||
	    !hash_of(tid, at, watch.size, &watch.hash) ||
	    !MW_VECTOR_ROOM(hotspot->watches, hotspot->watch_count, hotspot->watch_capacity) ||
	    !mw_error_none(mw_map_set(&hotspot->watched, at, hotspot)))
		return;
	hotspot->watches[hotspot->watch_count++] = watch;
}

void hotspot_watches_deinit(struct mw_hotspot *hotspot)
{
	free(hotspot->watches);
	mw_map_deinit(&hotspot->watched);
}

bool mw_hotspot_has_changed(struct mw_hotspot *hotspot, pid_t tid)
{
	bool changed = hotspot->unnamed;

	for (size_t i = 0; i < hotspot->watch_count && !changed; i++) {
		const struct hotspot_watch *watch = &hotspot->watches[i];
		uint64_t hash;

		changed = !hash_of(tid, watch->at, watch->size, &hash) || hash != watch->hash;
	}
	if (!changed)
		return false;
	/* All is named anew. */
	hotspot->unnamed = false;
	hotspot->watch_count = 0;
	mw_map_deinit(&hotspot->watched);
	return true;
}
