/* SPDX-License-Identifier: MIT */
/*
 * board.h: between threads that want a document of a window that runs, and memwatch's first thread, which alone can have
 * it made. Documents are asked for by number.
 */
#ifndef MW_SERVE_BOARD_H
#define MW_SERVE_BOARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_BOARD_DOCUMENTS 12
#define MW_BOARD_WAITING   8 /* threads; further ones are sent away at once */

/* What was made for those who waited; each of them frees its own. */
struct mw_board_answer {
	char *bytes; /* malloc'ed; the reason where `failed`; NULL: the window is over, too many wait, or there is no
			* memory */
	size_t size;
	bool failed;
};

struct mw_board {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
	size_t waiting; /* for any of them */
	struct mw_board_entry {
		uint64_t wanted, begun, made;  /* tickets: asked for last, being made, made last */
		struct mw_board_answer answer; /* the last; kept as long as somebody waits */
		size_t waiting;
	} entries[MW_BOARD_DOCUMENTS];
};

void mw_board_init(struct mw_board *board);
void mw_board_deinit(struct mw_board *board);

/* Have that document made, and wait for it: of no earlier moment than now. From any thread but the first. */
struct mw_board_answer mw_board_ask(struct mw_board *board, size_t document);

/* The next one that somebody waits for; false: none. It is taken to be made from now on. */
bool mw_board_next(struct mw_board *board, size_t *document);
/* It is made. Takes `answer`. */
void mw_board_answer(struct mw_board *board, size_t document, struct mw_board_answer answer);
/* Nothing is made any more: whoever waits is sent away. */
void mw_board_close(struct mw_board *board);

#endif
