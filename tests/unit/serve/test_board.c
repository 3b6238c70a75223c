// SPDX-License-Identifier: MIT
/* test_board.c: documents that threads ask for, and that one makes. */
#include "serve/board.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ASKERS 3

struct asker {
	struct mw_board *board;
	size_t document;
	struct mw_board_answer answer;
	pthread_t thread;
};

static void *ask(void *context)
{
	struct asker *asker = context;

	asker->answer = mw_board_ask(asker->board, asker->document);
	return NULL;
}

static void begin(struct asker *asker, struct mw_board *board, size_t document)
{
	*asker = (struct asker){.board = board, .document = document};
	assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void await(struct mw_board *board, size_t document, size_t waiting)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	size_t count;

	do {
		nanosleep(&moment, NULL);
		pthread_mutex_lock(&board->lock);
		count = board->entries[document].waiting;
		pthread_mutex_unlock(&board->lock);
	} while (count != waiting);
}

static void answer(struct mw_board *board, size_t document, const char *text)
{
	const struct mw_board_answer made = {.bytes = strdup(text), .size = strlen(text)};

	mw_board_answer(board, document, made);
}

/* They got that; NULL: nothing. */
static void end(struct asker *asker, const char *text)
{
	assert_int_equal(pthread_join(asker->thread, NULL), 0);
	if (!text) {
		assert_null(asker->answer.bytes);
		assert_true(asker->answer.failed);
		return;
	}
	assert_false(asker->answer.failed);
	assert_int_equal(asker->answer.size, strlen(text));
	assert_string_equal(asker->answer.bytes, text);
	free(asker->answer.bytes);
}

static void test_several_get_one(void **state)
{
	struct mw_board board;
	struct asker askers[ASKERS];
	size_t document = 0;

	(void)state;
	mw_board_init(&board);
	assert_false(mw_board_next(&board, &document));
	for (size_t i = 0; i < ASKERS; i++)
		begin(&askers[i], &board, 2);
	await(&board, 2, ASKERS);
	assert_true(mw_board_next(&board, &document));
	assert_int_equal(document, 2);
	assert_false(mw_board_next(&board, &document));
	answer(&board, 2, "all");
	for (size_t i = 0; i < ASKERS; i++)
		end(&askers[i], "all");
	assert_null(board.entries[2].answer.bytes);
	mw_board_deinit(&board);
}

/* Who asks while one is made wants a later moment than that shows. */
static void test_one_that_comes_meanwhile(void **state)
{
	struct mw_board board;
	struct asker early, late;
	size_t document = 0;

	(void)state;
	mw_board_init(&board);
	begin(&early, &board, 1);
	await(&board, 1, 1);
	assert_true(mw_board_next(&board, &document));
	begin(&late, &board, 1);
	await(&board, 1, 2);
	answer(&board, 1, "early");
	end(&early, "early");
	assert_true(mw_board_next(&board, &document));
	assert_int_equal(document, 1);
	answer(&board, 1, "late");
	end(&late, "late");
	mw_board_deinit(&board);
}

static void test_closed(void **state)
{
	struct mw_board board;
	struct asker asker;

	(void)state;
	mw_board_init(&board);
	begin(&asker, &board, 0);
	await(&board, 0, 1);
	mw_board_close(&board);
	end(&asker, NULL);
	begin(&asker, &board, 3);
	end(&asker, NULL);
	mw_board_deinit(&board);
}

UNIT_GROUP(board)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_get_one),
		cmocka_unit_test(test_one_that_comes_meanwhile),
		cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
