// SPDX-License-Identifier: MIT
/* space_arenas.c: what of a process's regions may hold glibc's arenas (space_arenas.h). */
#include "session/space_arenas.h"

#include "base/vector.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "proc/touched.h"

#include <stdlib.h>
#include <string.h>

struct spans {
	struct mw_glibc_span *items;
	size_t count, capacity;
};

/* What there is to read. */
struct memory {
	struct mw_touched touched;
	struct spans data;
};

static struct mw_error *add_span(struct spans *spans, const struct mw_region *region)
{
	if (!MW_VECTOR_ROOM(spans->items, spans->count, spans->capacity))
		return mw_error_nomem();
	spans->items[spans->count++] = (struct mw_glibc_span){region->start, region->end};
	return NULL;
}

static bool is_libc(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0;
}

/* The writable data of libc, or of a program that it is linked into. */
static struct mw_error *find_data(pid_t tid, const struct mw_regions *regions, struct spans *data)
{
	char *exe = NULL;
	struct mw_error *err = NULL;

	for (size_t i = 0; i < regions->count; i++)
		if (regions->items[i].kind == MW_REGION_FILE_DATA && regions->items[i].write &&
		    is_libc(regions->items[i].path))
			MW_TRY(add_span(data, &regions->items[i]));
	if (data->count)
		return NULL;
	mw_error_destroy(mw_exe_read(tid, &exe));
	for (size_t i = 0; exe && i < regions->count && !err; i++)
		if (regions->items[i].kind == MW_REGION_FILE_DATA && regions->items[i].write &&
		    strcmp(regions->items[i].path, exe) == 0)
			err = add_span(data, &regions->items[i]);
	free(exe);
	return err;
}

static struct mw_error *find_anonymous(const struct mw_regions *regions, struct spans *anonymous)
{
	for (size_t i = 0; i < regions->count; i++)
		if (regions->items[i].kind == MW_REGION_ANONYMOUS && regions->items[i].write)
			MW_TRY(add_span(anonymous, &regions->items[i]));
	return NULL;
}

/* The kernel may tell it in several mappings. */
static struct mw_glibc_span heap_of(const struct mw_regions *regions)
{
	struct mw_glibc_span heap = {0};

	for (size_t i = 0; i < regions->count; i++) {
		if (regions->items[i].kind != MW_REGION_HEAP)
			continue;
		if (!heap.end)
			heap.start = regions->items[i].start;
		heap.end = regions->items[i].end;
	}
	return heap;
}

/* A file's data has its file's bytes where it was not touched. */
static size_t read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct memory *memory = context;

	for (size_t i = 0; i < memory->data.count; i++)
		if (addr >= memory->data.items[i].start && addr < memory->data.items[i].end)
			return mw_peek_some(memory->touched.tid, addr, out, size);
	return mw_touched_read(&memory->touched, addr, out, size);
}

struct mw_error *mw_space_find_arenas(pid_t tid, const struct mw_regions *regions, uint64_t deadline_ns,
				      struct mw_glibc_arenas *out)
{
	struct memory memory = {0};
	struct mw_glibc_process process = {.read = read_memory, .context = &memory, .heap = heap_of(regions)};
	struct spans anonymous = {0};
	struct mw_error *err = find_data(tid, regions, &memory.data);

	if (!err)
		err = find_anonymous(regions, &anonymous);
	mw_touched_init(&memory.touched, tid);
	process.data = memory.data.items;
	process.data_count = memory.data.count;
	process.anonymous = anonymous.items;
	process.anonymous_count = anonymous.count;
	if (!err)
		err = mw_glibc_arenas_find(&process, out);
	if (!err) {
		err = mw_glibc_arenas_walk(&process, deadline_ns, out);
		if (err)
			mw_glibc_arenas_deinit(out);
	}
	mw_touched_deinit(&memory.touched);
	free(memory.data.items);
	free(anonymous.items);
	return err;
}
