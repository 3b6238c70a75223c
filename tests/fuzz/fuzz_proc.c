// SPDX-License-Identifier: MIT
/*
 * fuzz_proc: libFuzzer's bytes as files of /proc: names of programs, threads and files in them are the target's. The
 * first byte chooses the reader, and each file that it asks for is the rest.
 */
#include "fuzz.h"

#include "proc/file.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/regions.h"
#include "proc/smaps.h"
#include "proc/status.h"

#include <stdarg.h>
#include <unistd.h>

static struct fuzz_input file;
static volatile uint64_t sum;

/* In place of the real one. */
struct mw_error *mw_proc_file_read(char **bytes, size_t *size, const char *format, ...)
{
	char *copy = malloc(file.left + 1);

	(void)format;
	insist(copy != NULL);
	if (file.left)
		memcpy(copy, file.at, file.left);
	copy[file.left] = '\0';
	*bytes = copy;
	if (size)
		*size = file.left;
	return NULL;
}

struct mw_error *mw_proc_file_read_small(char *bytes, size_t capacity, size_t *size, const char *format, ...)
{
	size_t used = file.left < capacity - 1 ? file.left : capacity - 1;

	(void)format;
	if (used)
		memcpy(bytes, file.at, used);
	bytes[used] = '\0';
	if (size)
		*size = used;
	return NULL;
}

struct mw_error *mw_proc_error(int errnum, const char *what, const char *path)
{
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "%s %s", what, path);
}

struct mw_error *mw_proc_link_read(char **out, const char *path)
{
	(void)path;
	*out = strdup("/");
	return NULL;
}

static void check_maps(const struct mw_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		insist(mapping->start < mapping->end && (!i || maps->items[i - 1].end <= mapping->start));
		insist(mw_maps_find(maps, mapping->start) == mapping &&
		       mw_maps_find(maps, mapping->end - 1) == mapping);
		sum += strlen(mapping->path);
	}
}

static void read_maps(bool torn)
{
	struct mw_maps maps = {.count = 0};
	struct mw_error *err = mw_maps_parse((const char *)file.at, file.left, torn, &maps);

	if (!err)
		check_maps(&maps);
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}

/* The same text, where fields follow upon mappings. */
static void read_smaps(void)
{
	struct mw_smaps smaps = {.count = 0};
	char *text = strndup((const char *)file.at, file.left);
	struct mw_error *err = text ? mw_smaps_parse(text, &smaps) : NULL;

	for (size_t i = 0; !err && i < smaps.count; i++) {
		const struct mw_smap *map = &smaps.items[i];

		insist(map->start < map->end && (!i || smaps.items[i - 1].end <= map->start));
		insist(mw_smaps_find(&smaps, map->start) == map && mw_smaps_find(&smaps, map->end - 1) == map);
	}
	mw_error_destroy(err);
	mw_smaps_deinit(&smaps);
	free(text);
}

static void read_regions(void)
{
	struct mw_region_mark marks[] = {
		{.start = 0x1000, .end = 0x3000, .kind = MW_REGION_OWN, .path = "ours"},
		{.start = 0x2000, .end = 0x500000, .kind = MW_REGION_KIND_COUNT, .path = NULL},
	};
	struct mw_maps maps = {.count = 0};
	struct mw_regions regions = {.count = 0};
	struct mw_error *err = mw_maps_parse((const char *)file.at, file.left, true, &maps);

	if (!err)
		err = mw_regions_of(&maps, getpid(), &regions);
	if (!err)
		err = mw_regions_mark(&regions, marks, sizeof(marks) / sizeof(marks[0]));
	for (size_t i = 0; !err && i < regions.count; i++) {
		insist(regions.items[i].start < regions.items[i].end && regions.items[i].kind < MW_REGION_KIND_COUNT);
		sum += strlen(regions.items[i].path);
	}
	mw_error_destroy(err);
	mw_regions_deinit(&regions);
	mw_maps_deinit(&maps);
}

static void read_status(void)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(1, &status);

	if (!err)
		insist(strlen(status.name) <= 16 && status.tgid > 0);
	mw_error_destroy(err);
}

static void read_tasks(void)
{
	size_t count = 0;
	pid_t *pids = NULL;
	char name[17];
	struct mw_error *err = mw_children_read(1, 1, &pids, &count);

	for (size_t i = 0; !err && i < count; i++)
		insist(pids[i] > 0);
	mw_error_destroy(err);
	free(pids);
	mw_comm_read(1, 1, name);
	insist(strlen(name) <= 16);
	insist(mw_task_cpu(1, 1) >= -1);
}

static void read_command(void)
{
	char **argv = NULL;
	size_t count = 0;
	struct mw_error *err = mw_command_read(1, &argv, &count);

	for (size_t i = 0; !err && i < count; i++) {
		sum += strlen(argv[i]);
		free(argv[i]);
	}
	mw_error_destroy(err);
	free(argv);
}

static void read_memory(void)
{
	uint64_t rss = 0, pss = 0, vsize = 0;
	struct mw_error *err = mw_memory_read(1, true, &rss, &pss, &vsize);

	sum += err ? 0 : rss + pss + vsize;
	mw_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	file = (struct fuzz_input){bytes, size};
	switch (fuzz_take(&file, 1) % 7) {
	case 0:
		read_maps(false);
		break;
	case 1:
		read_maps(true);
		read_smaps();
		break;
	case 2:
		read_regions();
		break;
	case 3:
		read_status();
		break;
	case 4:
		read_tasks();
		break;
	case 5:
		read_command();
		break;
	default:
		read_memory();
	}
	/* Text of /proc has a NUL behind it. */
	if (size && bytes[size - 1] == '\0')
		sum += mw_stat_field((const char *)bytes, size - 1, MW_STAT_START, &value) ? value : 0;
	return 0;
}
