/* SPDX-License-Identifier: MIT */
/*
 * kernel_words.h: words that the kernel keeps for a process and gives back to it. A program may hold a block by such a word
 * and by nothing else:
 *
 *      epoll_ctl()                  data, known by /proc/PID/fdinfo
 *      timer_create()               sigev_value, known by /proc/PID/timers
 *      sigaltstack()                the stack, known by asking each thread
 *      write()                      to a pipe of which the process has both ends: what is in it, of which tee() gives a copy;
 *                                   to a Unix socket of its own (socketpair()): what can be peeked at
 *      io_uring_enter(), io_submit()  user_data and iocb of requests under way: not known
 */
#ifndef MW_HEAP_KERNEL_WORDS_H
#define MW_HEAP_KERNEL_WORDS_H

#include "heap/image.h"

#include <memwatch/error.h>

/* A pipe, or Unix socket, that may be the process's own, by the end that it reads. */
struct mw_kernel_pipe {
	uint64_t device, inode;
	int descriptor;
	bool reads, writes, socket;
};

/* Zero-initialise. */
struct mw_kernel_words {
	struct mw_image_kernel_word *items;
	size_t count, capacity;
	struct mw_kernel_pipe *pipes;
	size_t pipe_count, pipe_capacity;
	bool piped;    /* there are bytes in … */
	int queue[2];  /* … this pipe of memwatch's own */
	bool requests; /* it has an io_uring, mapped or not */
};

/* Append those there are now, each that is there already again. What is gone meanwhile has none. Errors: MEMORY; the
 * descriptors can't be listed (SYSTEM). */
struct mw_error *mw_kernel_words_read(pid_t pid, struct mw_kernel_words *words) MW_MUST_CHECK;
/* Append where the threads' alternate signal stacks are, which takes a stop of *stood_ns. *complete: all could be asked.
 * Errors: as of mw_altstacks_read(). */
struct mw_error *mw_kernel_words_add_signal_stacks(pid_t pid, struct mw_kernel_words *words, bool *complete,
						   uint64_t *stood_ns) MW_MUST_CHECK;
/*
 * Words in pipes and sockets: find those of which the process has both ends, before it stands; have what is in them copied while it
 * stands, into a pipe of memwatch's own, which takes some microseconds each; append the words, at any address, once it runs again.
 * False: there was more than could be copied.
 */
struct mw_error *mw_kernel_words_find_pipes(pid_t pid, struct mw_kernel_words *words) MW_MUST_CHECK;
bool mw_kernel_words_copy_pipes(pid_t pid, struct mw_kernel_words *words);
struct mw_error *mw_kernel_words_add_pipes(struct mw_kernel_words *words) MW_MUST_CHECK;
void mw_kernel_words_deinit(struct mw_kernel_words *words);

/* The first mapping by which the process hands requests to the kernel whose words are not known; NULL: there is none. */
const struct mw_image_mapping *mw_kernel_words_unknown(const struct mw_image *image);

#endif
