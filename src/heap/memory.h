/* SPDX-License-Identifier: MIT */
/*
 * memory.h: how the bytes of a process's image are read: from a copy of it, from the process itself, from files.
 *
 *      page                                              read from
 *      in memory or swap, of a mapping that was copied   the copy
 *      … of another                                      the process, as it is now
 *      neither, of private memory of no file             zeros
 *      neither, of a file                                that file
 *      of a device                                       nowhere
 *
 * So no page comes to be in memory by being read, but those that are in swap: of these only so many are read as leave the
 * machine room.
 */
#ifndef MW_HEAP_MEMORY_H
#define MW_HEAP_MEMORY_H

#include "heap/image.h"

#include <pthread.h>
#include <stdatomic.h>

struct mw_memory {
	const struct mw_image *image; /* its mappings and runs */
	const bool *copied;           /* of each mapping */
	pid_t pid;
	int copy_fd, process_fd;   /* of /proc/PID/mem; -1: can't be read */
	atomic_int_least64_t swap; /* bytes of swapped pages that may yet be read */
	pthread_mutex_t lock;      /* of: */
	int file;                  /* the mapped file that was read last; -1: none, or it can't be */
	size_t file_of;            /* whose mapping's */
};

/* process_fd and copied are set by the caller. */
void mw_memory_init(struct mw_memory *memory, const struct mw_image *image, pid_t pid);
/* Bytes of swapped pages that may yet be read. */
uint64_t mw_memory_swap_allowed(const struct mw_memory *memory);
/* Closes process_fd as well. */
void mw_memory_deinit(struct mw_memory *memory);
/* There is a copy to be read, or no more (0). */
void mw_memory_set_copy(struct mw_memory *memory, pid_t copy);
/* image.h's read_some. */
size_t mw_memory_read_some(void *memory, mw_addr addr, void *out, size_t size);

#endif
