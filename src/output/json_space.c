// SPDX-License-Identifier: MIT
/* json_space.c: the address space, and by what the RSS grew (json.h). */
#include "output/json.h"

static const char *const kind_names[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "heap",           [MW_REGION_ARENA] = "arena",         [MW_REGION_STACK] = "stack",
	[MW_REGION_ANONYMOUS] = "anonymous", [MW_REGION_FILE_TEXT] = "file_text", [MW_REGION_FILE_DATA] = "file_data",
	[MW_REGION_SHARED] = "shared",       [MW_REGION_OWN] = "memwatch",        [MW_REGION_SPECIAL] = "special",
};

static json_t *region_value(const struct mw_report_region *region)
{
	return MW_OBJECT(MW_OF(region, reserved), MW_OF(region, resident), MW_OF(region, count));
}

static json_t *moment_value(const struct mw_report_moment *moment)
{
	json_t *object = moment->known ? json_object() : json_null();

	for (unsigned kind = 0; object && moment->known && kind < MW_REGION_KIND_COUNT; kind++)
		mw_json_set(&object, kind_names[kind], region_value(&moment->kinds[kind]));
	return object;
}

static json_t *arenas_value(const struct mw_report_moment *moment)
{
	if (!moment->known || moment->arena_size == MW_SIZE_UNKNOWN)
		return json_null();
	return MW_OBJECT(MW_KEY("used", moment->arena_used), MW_KEY("free", moment->arena_free),
			 MW_KEY("size", moment->arena_size));
}

static json_t *unattributed_value(const struct mw_report_unattributed *item)
{
	return MW_OBJECT(MW_OF(item, address), MW_OF(item, bytes), MW_OF(item, resident),
			 MW_KEY("kind", kind_names[item->kind]),
			 MW_KEY("path", item->path && *item->path ? item->path : NULL));
}

static json_t *bytes_or_null(uint64_t bytes)
{
	return bytes ? MW_VALUE(bytes) : json_null();
}

static json_t *named_moment_value(const struct mw_report_region *region, const struct mw_report_use *use)
{
	json_t *value = region_value(region);

	mw_json_set(&value, "committed", bytes_or_null(use->committed));
	mw_json_set(&value, "used", bytes_or_null(use->used));
	return value;
}

static json_t *named_value(const struct mw_report_named *named)
{
	return MW_OBJECT(MW_OF(named, name), MW_KEY("start", named_moment_value(&named->start, &named->use_at_start)),
			 MW_KEY("end", named_moment_value(&named->end, &named->use_at_end)), MW_OF(named, blocks));
}

json_t *mw_json_space(const struct mw_report_space *space)
{
	json_t *value;

	if (!space)
		return json_null();
	value = MW_OBJECT(MW_KEY("start", moment_value(&space->start)), MW_KEY("end", moment_value(&space->end)),
			  MW_KEY("arenas", MW_OBJECT(MW_KEY("start", arenas_value(&space->start)),
						     MW_KEY("end", arenas_value(&space->end)))),
			  MW_KEY("unattributed", space->has_unattributed
							 ? MW_ARRAY(i, space->unattributed_count,
								    unattributed_value(&space->unattributed[i]))
							 : json_null()));
	if (space->named_count)
		mw_json_set(&value, "named", MW_ARRAY(i, space->named_count, named_value(&space->named[i])));
	return value;
}

json_t *mw_json_rss(const struct mw_report_rss *rss)
{
	json_t *kinds;

	if (!rss->known)
		return json_null();
	kinds = rss->has_kinds ? json_object() : json_null();
	for (unsigned kind = 0; rss->has_kinds && kinds && kind < MW_REGION_KIND_COUNT; kind++)
		mw_json_set(&kinds, kind_names[kind], MW_VALUE(rss->kinds[kind]));
	return MW_OBJECT(MW_KEY("bytes", rss->growth), MW_OF(rss, blocks), MW_OF(rss, unexplained),
			 MW_KEY("other", kinds));
}
