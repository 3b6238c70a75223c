// SPDX-License-Identifier: MIT
/* memory.c: reading an image's bytes (memory.h). */
#include "heap/memory.h"

#include "base/path.h"
#include "proc/memory_limit.h"
#include "proc/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

/* Of what the machine has left, pages that are in swap may take a fourth. */
static int_least64_t swap_allowed(pid_t pid)
{
	struct mw_memory_limit limit;
	uint64_t room;

	mw_memory_limit_read(pid, &limit);
	room = mw_memory_limit_room(&limit) / 4;
	return room < INT64_MAX ? (int_least64_t)room : INT64_MAX;
}

void mw_memory_init(struct mw_memory *memory, const struct mw_image *image, pid_t pid)
{
	*memory = (struct mw_memory){
		.image = image, .pid = pid, .copy_fd = -1, .process_fd = -1, .file = -1, .file_of = SIZE_MAX};
	atomic_init(&memory->swap, swap_allowed(pid));
	pthread_mutex_init(&memory->lock, NULL);
}

void mw_memory_set_copy(struct mw_memory *memory, pid_t copy)
{
	if (memory->copy_fd >= 0)
		close(memory->copy_fd);
	memory->copy_fd = copy ? open(mw_path("/proc/%d/mem", (int)copy).text, O_RDONLY | O_CLOEXEC) : -1;
}

uint64_t mw_memory_swap_allowed(const struct mw_memory *memory)
{
	int_least64_t left = atomic_load(&memory->swap);

	return left > 0 ? (uint64_t)left : 0;
}

void mw_memory_deinit(struct mw_memory *memory)
{
	mw_memory_set_copy(memory, 0);
	if (memory->process_fd >= 0)
		close(memory->process_fd);
	if (memory->file >= 0)
		close(memory->file);
	pthread_mutex_destroy(&memory->lock);
}

/*
 * By the file: inaccessible memory (PROT_NONE) as well, and only that of the program that it was opened for. Not by
 * process_vm_readv(): since Linux 5.19 it makes a copy of each page that two processes share (it pins the page), so
 * that a forked copy would come to need as much memory as the process has, in the process's own cgroup.
 */
static size_t read_file(int fd, mw_addr addr, char *out, size_t size)
{
	size_t done = 0;

	while (fd >= 0 && done < size) {
		ssize_t got = pread(fd, out + done, size - done, (off_t)(addr + done));

		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	return done;
}

/* Pages that are there. */
static size_t read_present(struct mw_memory *memory, size_t mapping, mw_addr addr, char *out, size_t size)
{
	uint64_t swapped = memory->image->runs ? mw_image_residence(memory->image, addr, addr + size).swapped : 0;

	if (swapped && atomic_fetch_sub(&memory->swap, (int_least64_t)swapped) < (int_least64_t)swapped)
		return 0;
	return read_file(memory->copied[mapping] ? memory->copy_fd : memory->process_fd, addr, out, size);
}

/* The file that is mapped, if it can still be known to be that. */
static int open_mapped(const struct mw_memory *memory, const struct mw_image_mapping *mapping)
{
	struct stat file;
	int fd = mw_root_open_link(mw_path("/proc/%d/map_files/%llx-%llx", (int)memory->pid,
					   (unsigned long long)mapping->start, (unsigned long long)mapping->end)
					   .text);

	if (fd < 0 && mapping->path[0] == '/')
		fd = mw_root_open(memory->pid, mapping->path);
	if (fd >= 0 && (fstat(fd, &file) || file.st_ino != mapping->inode)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Pages of a file that the process does not have in memory. */
static size_t read_mapped(struct mw_memory *memory, size_t number, mw_addr addr, char *out, size_t size)
{
	const struct mw_image_mapping *mapping = &memory->image->mappings[number];
	uint64_t offset = mapping->offset + (addr - mapping->start), rest;
	size_t done;

	pthread_mutex_lock(&memory->lock);
	if (memory->file_of != number) {
		if (memory->file >= 0)
			close(memory->file);
		memory->file = open_mapped(memory, mapping);
		memory->file_of = number;
	}
	done = read_file(memory->file, offset, out, size);
	pthread_mutex_unlock(&memory->lock);
	/* Behind the file's end its last page is zeros. */
	rest = done ? -(offset + done) % PAGE : 0;
	if (rest > size - done)
		rest = size - done;
	memset(out + done, 0, rest);
	return done + rest;
}

static size_t read_absent(struct mw_memory *memory, size_t number, mw_addr addr, char *out, size_t size)
{
	const struct mw_image_mapping *mapping = &memory->image->mappings[number];

	if (mapping->inode)
		return read_mapped(memory, number, addr, out, size);
	/* What others have put into shared memory of no file can't be known. */
	if (mapping->shared)
		return 0;
	memset(out, 0, size);
	return size;
}

/* Within one mapping. */
static size_t read_mapping(struct mw_memory *memory, size_t number, mw_addr addr, char *out, size_t size)
{
	const mw_addr end = addr + size;
	mw_addr at = addr;

	while (at < end) {
		mw_addr from = end, to = end;
		size_t want, got;
		bool present = mw_image_next_present(memory->image, at, end, &from, &to);

		if (present && from == at) {
			want = (size_t)(to - at);
			got = read_present(memory, number, at, out + (at - addr), want);
		} else {
			want = (size_t)((present ? from : end) - at);
			got = read_absent(memory, number, at, out + (at - addr), want);
		}
		at += got;
		if (got < want)
			break;
	}
	return (size_t)(at - addr);
}

size_t mw_memory_read_some(void *context, mw_addr addr, void *out, size_t size)
{
	struct mw_memory *memory = context;
	size_t done = 0;

	if (addr + size < addr)
		return 0;
	while (done < size) {
		const struct mw_image_mapping *mapping = mw_image_mapping_of(memory->image, addr + done);
		size_t part, got;

		if (!mapping || mapping->device)
			break;
		part = mapping->end - (addr + done) < size - done ? (size_t)(mapping->end - (addr + done))
								  : size - done;
		got = read_mapping(memory, (size_t)(mapping - memory->image->mappings), addr + done, (char *)out + done,
				   part);
		done += got;
		if (got < part)
			break;
	}
	return done;
}
