// SPDX-License-Identifier: MIT
/* fuzz_perfmap: libFuzzer's bytes as a perf map: what comes of it is in order, and in it. */
#include "fuzz.h"

#include "proc/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct mw_perf_map map;
	char *text = malloc(size + 1);

	insist(text != NULL);
	memcpy(text, bytes, size);
	text[size] = '\0';
	insist(!mw_perf_map_parse(text, size, &map));
	for (size_t i = 0; i < map.count; i++) {
		const struct mw_perf_name *name = &map.items[i];

		insist(name->start < name->end && name->from <= name->start && *name->name);
		insist(!i || map.items[i - 1].end <= name->start);
		insist(strlen(name->name) <= size && mw_perf_map_find(&map, name->start) == name &&
		       mw_perf_map_find(&map, name->end - 1) == name);
	}
	mw_perf_map_deinit(&map);
	return 0;
}
