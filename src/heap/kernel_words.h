/* SPDX-License-Identifier: MIT */
/*
 * kernel_words.h: words that the kernel keeps for a process and gives back to it. A program may hold a block by such a word
 * and by nothing else:
 *
 *      epoll_ctl()                  data, known by /proc/PID/fdinfo
 *      timer_create()               sigev_value, known by /proc/PID/timers
 *      sigaltstack()                the stack, known by asking each thread
 *      io_uring_enter(), io_submit()  user_data and iocb of requests under way: not known
 */
#ifndef MW_HEAP_KERNEL_WORDS_H
#define MW_HEAP_KERNEL_WORDS_H

#include "heap/image.h"

#include <memwatch/error.h>

/* Zero-initialise. */
struct mw_kernel_words {
	struct mw_image_kernel_word *items;
	size_t count, capacity;
};

/* Append those there are now, each that is there already again. What is gone meanwhile has none. Errors: MEMORY; the
 * descriptors can't be listed (SYSTEM). */
struct mw_error *mw_kernel_words_read(pid_t pid, struct mw_kernel_words *words) MW_MUST_CHECK;
/* Append where the threads' alternate signal stacks are, which takes a stop of *stood_ns. *complete: all could be asked.
 * Errors: as of mw_altstacks_read(). */
struct mw_error *mw_kernel_words_add_signal_stacks(pid_t pid, struct mw_kernel_words *words, bool *complete,
						   uint64_t *stood_ns) MW_MUST_CHECK;
void mw_kernel_words_deinit(struct mw_kernel_words *words);

/* The first mapping by which the process hands requests to the kernel whose words are not known; NULL: there is none. */
const struct mw_image_mapping *mw_kernel_words_unknown(const struct mw_image *image);

#endif
