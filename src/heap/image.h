/* SPDX-License-Identifier: MIT */
/*
 * image.h: what a process's memory was at one moment, and how it is read.
 *
 * Made by snapshot.h from a process, or by a test from bytes of its own. Whoever walks a heap or looks for pointers
 * knows nothing else of the process. All that is read may be anything: the process's heap may be corrupt.
 */
#ifndef MW_HEAP_IMAGE_H
#define MW_HEAP_IMAGE_H

#include <memwatch/arch.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_image_mapping {
	mw_addr start, end;
	uint64_t offset; /* in the file */
	uint64_t inode;  /* 0: no file */
	bool read, write, exec, shared;
	bool device;      /* memory of a device, or PFNs: never read */
	const char *path; /* "" for anonymous memory, "[heap]", "[stack]" as the kernel has it */
	/* Anonymous memory whose first part is the zeroed data (.bss) of the file mapped right before it: where that part
	 * ends. 0 for any other. The kernel may have joined that part and what the process mapped behind it. */
	mw_addr bss_end;
	uint64_t resident, swapped; /* bytes, as smaps counts them; MW_SIZE_UNKNOWN */
	uint64_t huge;              /* of `resident`, in huge pages (AnonHugePages) */
};

enum mw_page_state { MW_PAGE_RESIDENT, MW_PAGE_SWAPPED };

/* Pages of one state, next to one another. What is in no run is neither in memory nor in swap: private anonymous memory
 * there is zero, and is not to be read. */
struct mw_image_run {
	mw_addr start;
	uint32_t pages;
	enum mw_page_state state;
};

#define MW_IMAGE_REGISTERS 368

/* A thread as it stood when it was stopped. */
struct mw_image_thread {
	pid_t tid;
	char name[16];
	/* All words but 0 that its registers hold, each once: general ones, segment bases, vector registers. */
	uint64_t registers[MW_IMAGE_REGISTERS];
	size_t register_count; /* 0: they could not be read */
	mw_addr pc, sp, thread_pointer;
	struct mw_regs regs; /* the general ones; all 0 where register_count is */
};

/* A word that the kernel keeps for the process (kernel_words.h). */
struct mw_image_kernel_word {
	uint64_t word;
	enum mw_kernel_word { MW_KERNEL_EPOLL, MW_KERNEL_TIMER, MW_KERNEL_SIGNAL_STACK, MW_KERNEL_PIPE } kind;
	int of; /* the epoll set's descriptor, the thread whose alternate signal stack it is */
};

struct mw_image {
	/* Copy up to `size` bytes from `addr` on; how many there were. For any thread, several at once. */
	size_t (*read_some)(void *context, mw_addr addr, void *out, size_t size);
	void *context;
	pid_t pid; /* 0: of no process */
	/* By address. */
	const struct mw_image_mapping *mappings;
	size_t mapping_count;
	const struct mw_image_run *runs; /* by address; NULL with count 0: not known, all may be read */
	size_t run_count;
	const struct mw_image_thread *threads;
	size_t thread_count;
	const struct mw_image_kernel_word *kernel_words;
	size_t kernel_word_count;
	bool kernel_words_hidden; /* there may be more of them: nothing is certainly lost */
	bool requests_hidden;     /* as it has an io_uring, or uses aio */
	bool unreadable;          /* there is memory that can't be read: nothing is certainly lost */
	bool consistent; /* of one moment; false: the process ran while it was read, and words may have changed */
};

static inline size_t mw_image_read_some(const struct mw_image *image, mw_addr addr, void *out, size_t size)
{
	return image->read_some(image->context, addr, out, size);
}

/* All of it, else false. */
static inline bool mw_image_read(const struct mw_image *image, mw_addr addr, void *out, size_t size)
{
	return mw_image_read_some(image, addr, out, size) == size;
}

/* The mapping that holds `addr`, or NULL. */
const struct mw_image_mapping *mw_image_mapping_of(const struct mw_image *image, mw_addr addr);

/* The bytes of [start, end) that are resident, and swapped out. All of it, where pages are not known. */
struct mw_image_residence {
	uint64_t resident, swapped;
};
struct mw_image_residence mw_image_residence(const struct mw_image *image, mw_addr start, mw_addr end);

/* The first part of [start, end) that is in memory or in swap; false: there is none. */
bool mw_image_next_present(const struct mw_image *image, mw_addr start, mw_addr end, mw_addr *from, mw_addr *to);

#endif
