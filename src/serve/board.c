// SPDX-License-Identifier: MIT
/* board.c: see board.h. */
#include "serve/board.h"

#include <stdlib.h>
#include <string.h>

void mw_board_init(struct mw_board *board)
{
	*board = (struct mw_board){.closed = false};
	pthread_mutex_init(&board->lock, NULL);
	pthread_cond_init(&board->changed, NULL);
}

void mw_board_deinit(struct mw_board *board)
{
	for (size_t i = 0; i < MW_BOARD_DOCUMENTS; i++)
		free(board->entries[i].answer.bytes);
	pthread_cond_destroy(&board->changed);
	pthread_mutex_destroy(&board->lock);
}

static struct mw_board_answer copy_of(const struct mw_board_answer *answer)
{
	struct mw_board_answer copy = {.failed = true};

	if (!answer->bytes)
		return copy;
	copy.bytes = malloc(answer->size + 1);
	if (!copy.bytes)
		return copy;
	memcpy(copy.bytes, answer->bytes, answer->size);
	copy.bytes[answer->size] = '\0';
	copy.size = answer->size;
	copy.failed = answer->failed;
	return copy;
}

struct mw_board_answer mw_board_ask(struct mw_board *board, size_t document)
{
	struct mw_board_entry *entry = &board->entries[document];
	struct mw_board_answer answer = {.failed = true};
	uint64_t ticket;

	pthread_mutex_lock(&board->lock);
	if (board->waiting == MW_BOARD_WAITING) {
		pthread_mutex_unlock(&board->lock);
		return answer;
	}
	board->waiting++;
	/* One that is being made shows an earlier moment. */
	ticket = entry->begun + 1;
	entry->wanted = ticket;
	entry->waiting++;
	while (entry->made < ticket && !board->closed)
		pthread_cond_wait(&board->changed, &board->lock);
	if (entry->made >= ticket)
		answer = copy_of(&entry->answer);
	board->waiting--;
	if (--entry->waiting == 0) {
		free(entry->answer.bytes);
		entry->answer = (struct mw_board_answer){.failed = true};
	}
	pthread_mutex_unlock(&board->lock);
	return answer;
}

bool mw_board_next(struct mw_board *board, size_t *document)
{
	bool found = false;

	pthread_mutex_lock(&board->lock);
	for (size_t i = 0; i < MW_BOARD_DOCUMENTS && !found; i++) {
		struct mw_board_entry *entry = &board->entries[i];

		if (entry->wanted <= entry->begun)
			continue;
		found = true;
		entry->begun++;
		*document = i;
	}
	pthread_mutex_unlock(&board->lock);
	return found;
}

void mw_board_answer(struct mw_board *board, size_t document, struct mw_board_answer answer)
{
	struct mw_board_entry *entry = &board->entries[document];

	pthread_mutex_lock(&board->lock);
	free(entry->answer.bytes);
	entry->answer = answer;
	entry->made = entry->begun;
	pthread_cond_broadcast(&board->changed);
	pthread_mutex_unlock(&board->lock);
}

void mw_board_close(struct mw_board *board)
{
	pthread_mutex_lock(&board->lock);
	board->closed = true;
	pthread_cond_broadcast(&board->changed);
	pthread_mutex_unlock(&board->lock);
}
