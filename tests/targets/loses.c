/* SPDX-License-Identifier: MIT */
/*
 * loses: blocks that are lost, in several ways, and others that are held, each kind by one function.
 */
#include "target.h"

#include <string.h>

#define EACH 200

struct link {
	struct link *next;
	char rest[56];
};

static void *held[EACH];
static char *inside[EACH];
static struct link *list;
static __thread void *own[8];

static KEEP void drop(void)
{
	void *block = malloc(333);

	OPAQUE(block);
	memset(block, 1, 333);
}

/* One of the two is definitely lost, and the other hangs off it. */
static KEEP void drop_pair(void)
{
	struct link *first = calloc(1, 72), *second = calloc(1, 72);

	OPAQUE(first);
	OPAQUE(second);
	first->next = second;
}

/* Whichever is taken as the first. */
static KEEP void drop_cycle(void)
{
	struct link *first = calloc(1, 88), *second = calloc(1, 88);

	OPAQUE(first);
	OPAQUE(second);
	first->next = second;
	second->next = first;
}

static KEEP void *hold(void)
{
	void *block = malloc(400);

	OPAQUE(block);
	memset(block, 1, 400);
	return block;
}

static KEEP char *point_inside(void)
{
	char *block = calloc(1, 500);

	OPAQUE(block);
	return block + 100;
}

static KEEP void prepend(void)
{
	struct link *link = calloc(1, sizeof(*link));

	OPAQUE(link);
	link->next = list;
	list = link;
}

static KEEP void *keep_own(void)
{
	void *block = malloc(600);

	OPAQUE(block);
	memset(block, 1, 600);
	return block;
}

/* What calls have left on the stack. */
static KEEP void wipe(void)
{
	char room[16384], *at = room;

	memset(room, 0, sizeof(room));
	OPAQUE(at);
}

int main(void)
{
	target_ready();
	for (int i = 0; i < EACH; i++) {
		drop();
		drop_pair();
		drop_cycle();
		held[i] = hold();
		inside[i] = point_inside();
		prepend();
	}
	for (size_t i = 0; i < 8; i++)
		own[i] = keep_own();
	OPAQUE(own[0]);
	/* The last ones may be in a register. */
	drop();
	drop_pair();
	drop_cycle();
	(void)hold();
	(void)point_inside();
	wipe();
	target_say("each", EACH);
	target_done();
	return held[0] && inside[0] && list && own[0] ? 0 : 1;
}
