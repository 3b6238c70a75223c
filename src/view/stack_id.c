// SPDX-License-Identifier: MIT
/* stack_id.c: hashing of stacks, see stack_id.h for what and why. */
#include "view/stack_id.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { KEY_BUILD_ID = 1, KEY_NAME = 2, KEY_CODE_NAME = 3, KEY_CODE_REGION = 4 };

struct module_key {
	uint64_t key, base;
	bool known, generated;
};

struct mw_stack_ids {
	XXH64_state_t *state, *names; /* scratch */
	struct mw_view_code code;
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

struct mw_error *mw_stack_ids_create(const struct mw_view_module *modules, size_t count,
				     const struct mw_view_code *code, struct mw_stack_ids **out)
{
	struct mw_stack_ids *ids = calloc(1, sizeof(*ids) + count * sizeof(ids->keys[0]));

	if (!ids)
		return mw_error_nomem();
	ids->state = XXH64_createState();
	ids->names = XXH64_createState();
	if (!ids->state || !ids->names) {
		mw_stack_ids_destroy(ids);
		return mw_error_nomem();
	}
	ids->code = *code;
	ids->count = count;
	for (size_t i = 0; i < count; i++) {
		ids->keys[i].known = modules[i].path != NULL;
		ids->keys[i].generated = mw_view_is_generated(&modules[i]);
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
	XXH64_freeState(ids->names);
	free(ids);
}

/* What a frame counts as: the key of where its code is, and an offset there. `module`: NULL where it is in none. */
static struct mw_error *frame_key(const struct mw_stack_ids *ids, const struct module_key *module,
				  const struct mw_raw_frame *frame, uint64_t *key, uint64_t *offset)
{
	const struct mw_code_region *region;
	const char *name;

	if (module && !module->generated) {
		*key = module->key;
		*offset = frame->addr - module->base;
		return NULL;
	}
	*offset = 0;
	MW_TRY(mw_view_code_name(&ids->code, frame, &name));
	if (name) {
		*key = hash_tagged(ids->names, KEY_CODE_NAME, name, strlen(name));
	} else if (module) {
		*key = module->key;
	} else {
		region = mw_code_regions_find(ids->code.regions, frame->addr);
		*key = hash_tagged(ids->names, KEY_CODE_REGION, "", 0);
		*offset = region ? (uint64_t)(region - ids->code.regions->items) : UINT64_MAX;
	}
	return NULL;
}

struct mw_error *mw_stack_id(const struct mw_stack_ids *ids, enum mw_kind kind, const char *api,
			     const struct mw_raw_frame *frames, size_t count, uint64_t *id)
{
	unsigned char kind_byte = (unsigned char)kind;
	const char *name = api ? api : "";

	XXH64_reset(ids->state, 0);
	XXH64_update(ids->state, &kind_byte, 1);
	XXH64_update(ids->state, name, strlen(name) + 1);
	for (size_t i = 0; i < count; i++) {
		const struct module_key *module = NULL;
		uint64_t pair[2];

		if (frames[i].module < ids->count && ids->keys[frames[i].module].known)
			module = &ids->keys[frames[i].module];
		MW_TRY(frame_key(ids, module, &frames[i], &pair[0], &pair[1]));
		pair[0] = htole64(pair[0]);
		pair[1] = htole64(pair[1]);
		XXH64_update(ids->state, pair, sizeof(pair));
	}
	*id = XXH64_digest(ids->state);
	return NULL;
}
