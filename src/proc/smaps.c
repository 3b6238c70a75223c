// SPDX-License-Identifier: MIT
/* smaps.c: how much of each mapping is in memory (smaps.h). */
#include "proc/smaps.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "proc/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "START-END perms …": fields begin with capitals. */
static bool is_mapping(const char *line, mw_addr *start, mw_addr *end)
{
	char *behind;

	if (*line >= 'A' && *line <= 'Z')
		return false;
	*start = strtoull(line, &behind, 16);
	if (behind == line || *behind != '-')
		return false;
	*end = strtoull(behind + 1, &behind, 16);
	return *behind == ' ' && *end > *start;
}

static bool has_flag(const char *line, const char *end, const char *flag)
{
	for (const char *at = line; at + 2 <= end; at++)
		if (at[-1] == ' ' && memcmp(at, flag, 2) == 0)
			return true;
	return false;
}

static void take_flags(const char *line, const char *end, struct mw_smap *out)
{
	if (has_flag(line, end, "io") || has_flag(line, end, "pf"))
		out->flags |= MW_VM_DEVICE;
	if (has_flag(line, end, "wf"))
		out->flags |= MW_VM_CLEARED;
}

static void take_field(const char *line, const char *end, struct mw_smap *out)
{
	const struct {
		const char *name;
		uint64_t *sum;
	} fields[] = {
		{"Rss:", &out->resident}, {"Shared_Hugetlb:", &out->resident}, {"Private_Hugetlb:", &out->resident},
		{"Swap:", &out->swapped}, {"Anonymous:", &out->anonymous},     {"AnonHugePages:", &out->huge},
	};

	if (strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0)
		take_flags(line + strlen("VmFlags:"), end, out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t length = strlen(fields[i].name);

		if (strncmp(line, fields[i].name, length) == 0)
			*fields[i].sum += strtoull(line + length, NULL, 10) * 1024;
	}
}

struct mw_error *mw_smaps_parse(const char *text, struct mw_smaps *out)
{
	MW_CLEANUP(mw_smaps_deinit) struct mw_smaps smaps = {0};
	size_t capacity = 0;

	while (*text) {
		const char *end = strchrnul(text, '\n');
		struct mw_smap map = {0};

		if (is_mapping(text, &map.start, &map.end)) {
			/* Of a process that runs one that grows may come twice. */
			while (smaps.count && map.start < smaps.items[smaps.count - 1].end)
				smaps.count--;
			if (!MW_VECTOR_ROOM(smaps.items, smaps.count, capacity))
				return mw_error_nomem();
			smaps.items[smaps.count++] = map;
		} else if (smaps.count) {
			take_field(text, end, &smaps.items[smaps.count - 1]);
		}
		text = end + (*end == '\n');
	}
	*out = smaps;
	smaps = (struct mw_smaps){0};
	return NULL;
}

struct mw_error *mw_smaps_read(pid_t pid, struct mw_smaps *out)
{
	MW_FREE char *text = NULL;

	MW_TRY(mw_proc_file_read(&text, NULL, "/proc/%d/smaps", (int)pid));
	return mw_smaps_parse(text, out);
}

void mw_smaps_deinit(struct mw_smaps *smaps)
{
	free(smaps->items);
	*smaps = (struct mw_smaps){0};
}

const struct mw_smap *mw_smaps_find(const struct mw_smaps *smaps, mw_addr addr)
{
	size_t count = mw_vector_up_to(smaps->items, smaps->count, sizeof(*smaps->items),
				       offsetof(struct mw_smap, start), addr);

	return count && addr < smaps->items[count - 1].end ? &smaps->items[count - 1] : NULL;
}
