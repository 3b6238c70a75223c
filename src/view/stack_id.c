// SPDX-License-Identifier: MIT
/* stack_id.c: hashing of stacks, see stack_id.h for what and why. */
#include "view/stack_id.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { KEY_BUILD_ID = 1, KEY_NAME = 2 };

struct module_key {
	uint64_t key, base;
	bool known;
};

struct mw_stack_ids {
	XXH64_state_t *state; /* scratch */
	size_t count;
	struct module_key keys[];
};

static uint64_t hash_tagged(XXH64_state_t *state, unsigned char tag, const void *bytes, size_t size)
{
	XXH64_reset(state, 0);
	XXH64_update(state, &tag, 1);
	XXH64_update(state, bytes, size);
	return XXH64_digest(state);
}

static uint64_t module_key(XXH64_state_t *state, const struct mw_view_module *module)
{
	const char *name = module->path, *slash;

	if (module->build_id && module->build_id_size)
		return hash_tagged(state, KEY_BUILD_ID, module->build_id, module->build_id_size);
	slash = strrchr(name, '/');
	if (slash)
		name = slash + 1;
	return hash_tagged(state, KEY_NAME, name, strlen(name));
}

struct mw_error *mw_stack_ids_create(const struct mw_view_module *modules, size_t count, struct mw_stack_ids **out)
{
	struct mw_stack_ids *ids = calloc(1, sizeof(*ids) + count * sizeof(ids->keys[0]));

	if (!ids)
		return mw_error_nomem();
	ids->state = XXH64_createState();
	if (!ids->state) {
		free(ids);
		return mw_error_nomem();
	}
	ids->count = count;
	for (size_t i = 0; i < count; i++) {
		ids->keys[i].known = modules[i].path != NULL;
		ids->keys[i].base = modules[i].base;
		ids->keys[i].key = modules[i].path ? module_key(ids->state, &modules[i]) : 0;
	}
	*out = ids;
	return NULL;
}

void mw_stack_ids_destroy(struct mw_stack_ids *ids)
{
	if (!ids)
		return;
	XXH64_freeState(ids->state);
	free(ids);
}

uint64_t mw_stack_id(const struct mw_stack_ids *ids, enum mw_kind kind, const char *api,
		     const struct mw_raw_frame *frames, size_t count)
{
	unsigned char kind_byte = (unsigned char)kind;
	const char *name = api ? api : "";

	XXH64_reset(ids->state, 0);
	XXH64_update(ids->state, &kind_byte, 1);
	XXH64_update(ids->state, name, strlen(name) + 1);
	for (size_t i = 0; i < count; i++) {
		uint64_t pair[2] = {0, htole64(frames[i].addr)};

		if (frames[i].module < ids->count && ids->keys[frames[i].module].known) {
			const struct module_key *key = &ids->keys[frames[i].module];

			pair[0] = htole64(key->key);
			pair[1] = htole64(frames[i].addr - key->base);
		}
		XXH64_update(ids->state, pair, sizeof(pair));
	}
	return XXH64_digest(ids->state);
}
