// SPDX-License-Identifier: MIT
/* json_space.c: how much of the process is what, as JSON. */
#include "output/json.h"

static const char *const kind_names[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "heap",           [MW_REGION_ARENA] = "arena",         [MW_REGION_STACK] = "stack",
	[MW_REGION_ANONYMOUS] = "anonymous", [MW_REGION_FILE_TEXT] = "file_text", [MW_REGION_FILE_DATA] = "file_data",
	[MW_REGION_SHARED] = "shared",       [MW_REGION_OWN] = "memwatch",        [MW_REGION_SPECIAL] = "special",
};

static json_t *moment_value(const struct mw_report_moment *moment)
{
	json_t *object;

	if (!moment->known)
		return json_null();
	object = json_object();
	for (unsigned kind = 0; object && kind < MW_REGION_KIND_COUNT; kind++) {
		const struct mw_report_region *region = &moment->kinds[kind];
		json_t *value = json_pack("{s:o, s:o, s:o}", "reserved", mw_json_number(region->reserved), "resident",
					  mw_json_number(region->resident), "count", mw_json_number(region->count));

		if (json_object_set_new(object, kind_names[kind], value) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *arenas_value(const struct mw_report_moment *moment)
{
	if (!moment->known || moment->arena_size == MW_SIZE_UNKNOWN)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "used", mw_json_number(moment->arena_used), "free",
			 mw_json_number(moment->arena_free), "size", mw_json_number(moment->arena_size));
}

static json_t *unattributed_value(const struct mw_report_space *space)
{
	json_t *array = space->has_unattributed ? json_array() : json_null();

	for (size_t i = 0; json_is_array(array) && i < space->unattributed_count; i++) {
		const struct mw_report_unattributed *item = &space->unattributed[i];
		json_t *value = json_pack("{s:o, s:o, s:o, s:s, s:o}", "address", mw_json_number(item->address),
					  "bytes", mw_json_number(item->bytes), "resident",
					  mw_json_number(item->resident), "kind", kind_names[item->kind], "path",
					  item->path && *item->path ? mw_json_text(item->path) : json_null());

		if (json_array_append_new(array, value) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

json_t *mw_json_space(const struct mw_report_space *space)
{
	if (!space)
		return json_null();
	return json_pack("{s:o, s:o, s:{s:o, s:o}, s:o}", "start", moment_value(&space->start), "end",
			 moment_value(&space->end), "arenas", "start", arenas_value(&space->start), "end",
			 arenas_value(&space->end), "unattributed", unattributed_value(space));
}
