/* SPDX-License-Identifier: MIT */
/* image_of.h: the memory of a process that a test has stopped, as an image. Of its threads, pc and sp alone are read. */
#ifndef MW_TESTS_HEAP_IMAGE_OF_H
#define MW_TESTS_HEAP_IMAGE_OF_H

#include "base/vector.h"
#include "heap/image.h"
#include "proc/maps.h"
#include "proc/peek.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

struct image_of {
	struct mw_image image;
	struct mw_maps maps;
	struct mw_image_mapping *mappings;
	struct mw_image_run *runs;
	size_t run_count, run_capacity;
	struct mw_image_thread *threads;
	size_t thread_count, thread_capacity;
};

static inline size_t image_of_read(void *context, mw_addr addr, void *out, size_t size)
{
	const struct image_of *of = context;

	return mw_peek_some(of->image.pid, addr, out, size);
}

static inline void image_of_add_page(struct image_of *of, mw_addr addr, uint64_t entry)
{
	enum mw_page_state state = entry >> 62 & 1 ? MW_PAGE_SWAPPED : MW_PAGE_RESIDENT;
	struct mw_image_run *last = of->run_count ? &of->runs[of->run_count - 1] : NULL;

	if (!(entry >> 62))
		return;
	if (last && last->state == state && last->start + last->pages * UINT64_C(4096) == addr) {
		last->pages++;
		return;
	}
	assert_true(MW_VECTOR_ROOM(of->runs, of->run_count, of->run_capacity));
	of->runs[of->run_count++] = (struct mw_image_run){addr, 1, state};
}

static inline void image_of_see_pages(struct image_of *of, int pagemap, mw_addr start, mw_addr end)
{
	uint64_t entries[512];

	for (mw_addr at = start; at < end; at += sizeof(entries) / 8 * 4096) {
		size_t count = (end - at) / 4096 < 512 ? (size_t)((end - at) / 4096) : 512;
		ssize_t got = pread(pagemap, entries, count * 8, (off_t)(at / 4096 * 8));

		for (size_t i = 0; got > 0 && i < (size_t)got / 8; i++)
			image_of_add_page(of, at + i * 4096, entries[i]);
	}
}

/* "NUMBER ARGUMENT… SP PC", "-1 SP PC" outside of a system call. */
static inline void image_of_see_thread(struct image_of *of, pid_t pid, const char *name)
{
	unsigned long long words[9];
	char path[64], text[256] = "";
	struct mw_image_thread thread = {.tid = atoi(name)};
	FILE *file;
	int count;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)thread.tid);
	file = fopen(path, "re");
	if (!file)
		return;
	(void)!fgets(text, sizeof(text), file);
	(void)fclose(file);
	count = sscanf(text, "%lli %llx %llx %llx %llx %llx %llx %llx %llx", (long long *)&words[0], &words[1],
		       &words[2], &words[3], &words[4], &words[5], &words[6], &words[7], &words[8]);
	if (count != 3 && count != 9)
		return;
	thread.sp = words[count - 2];
	thread.pc = words[count - 1];
	assert_true(MW_VECTOR_ROOM(of->threads, of->thread_count, of->thread_capacity));
	of->threads[of->thread_count++] = thread;
}

static inline void image_of_see_threads(struct image_of *of, pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	assert_non_null(directory);
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			image_of_see_thread(of, pid, entry->d_name);
	(void)closedir(directory);
}

/* Of a process that does not change meanwhile; image_of_end() frees. It stays as it is. */
static inline void image_of_begin(struct image_of *of, pid_t pid)
{
	char path[64];
	int pagemap;

	memset(of, 0, sizeof(*of));
	assert_null(mw_maps_read(pid, &of->maps));
	of->mappings = calloc(of->maps.count + 1, sizeof(*of->mappings));
	assert_non_null(of->mappings);
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(pagemap >= 0);
	for (size_t i = 0; i < of->maps.count; i++) {
		const struct mw_mapping *mapping = &of->maps.items[i];

		of->mappings[i] = (struct mw_image_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.offset = mapping->offset,
			.inode = mapping->inode,
			.read = mapping->read,
			.write = mapping->write,
			.exec = mapping->exec,
			.shared = mapping->shared,
			.path = mapping->path,
			.resident = MW_SIZE_UNKNOWN,
			.swapped = MW_SIZE_UNKNOWN,
		};
		if (mapping->end >> 47 == 0)
			image_of_see_pages(of, pagemap, mapping->start, mapping->end);
	}
	close(pagemap);
	image_of_see_threads(of, pid);
	of->image = (struct mw_image){
		.read_some = image_of_read,
		.context = of,
		.pid = pid,
		.mappings = of->mappings,
		.mapping_count = of->maps.count,
		.runs = of->runs,
		.run_count = of->run_count,
		.threads = of->threads,
		.thread_count = of->thread_count,
		.consistent = true,
	};
}

static inline void image_of_end(struct image_of *of)
{
	mw_maps_deinit(&of->maps);
	free(of->mappings);
	free(of->runs);
	free(of->threads);
}

#endif
