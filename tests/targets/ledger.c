/* SPDX-License-Identifier: MIT */
/* ledger.c: what a target should be told to have allocated; see target.h. */
#include "target.h"

#include <malloc.h>
#include <string.h>

#define BLOCKS 16384 /* power of two, at least twice the blocks a target ever has */
#define APIS   24

struct amount {
	uint64_t count, bytes;
};

static struct {
	const void *block;
	size_t size;
	bool live, inside;
} blocks[BLOCKS];

static struct {
	const char *name;
	struct amount size;
} apis[APIS];

static struct amount size, transient, aofi;
static bool window_open;

static void add(struct amount *amount, uint64_t bytes)
{
	amount->count++;
	amount->bytes += bytes;
}

static size_t slot_of(const void *block)
{
	size_t at = ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> 50;

	for (size_t i = 0; i < BLOCKS; i++, at = (at + 1) % BLOCKS) {
		if (blocks[at].block == block || !blocks[at].block)
			return at;
	}
	target_fail("the ledger is full");
}

static size_t usable_size(const void *block)
{
	/* malloc_usable_size only reads. */
	union {
		const void *constant;
		void *plain;
	} cast = {block};
	return malloc_usable_size(cast.plain);
}

void ledger_open(void)
{
	window_open = true;
}

void ledger_alloc(const char *api, const void *block, size_t bytes)
{
	size_t at;

	if (!block)
		return;
	at = slot_of(block);
	if (blocks[at].live)
		target_fail("a live block was handed out again");
	blocks[at].block = block;
	blocks[at].size = window_open ? bytes : usable_size(block);
	blocks[at].live = true;
	blocks[at].inside = window_open;
	if (!window_open)
		return;
	add(&size, bytes);
	for (size_t i = 0; i < APIS; i++) {
		if (apis[i].name && strcmp(apis[i].name, api) != 0)
			continue;
		apis[i].name = api;
		add(&apis[i].size, bytes);
		return;
	}
}

void ledger_free(const void *block)
{
	size_t at;

	if (!block)
		return;
	at = slot_of(block);
	if (!blocks[at].live)
		target_fail("a dead block was freed");
	blocks[at].live = false;
	if (window_open)
		add(blocks[at].inside ? &transient : &aofi, blocks[at].size);
}

void ledger_realloc(const char *api, uintptr_t old, const void *block, size_t bytes)
{
	if (old && !block && bytes != 0)
		return;
	ledger_free((const void *)old);
	ledger_alloc(api, block, bytes);
}

static void say(const char *first, const char *second, const char *what, uint64_t value)
{
	char key[100] = "";

	strncat(key, first, 30);
	strncat(key, second, 30);
	strncat(key, what, 30);
	target_say(key, value);
}

void ledger_say(void)
{
	struct amount impacting = {0, 0};

	for (size_t i = 0; i < BLOCKS; i++) {
		if (blocks[i].live && blocks[i].inside)
			add(&impacting, blocks[i].size);
	}
	const struct {
		const char *name;
		struct amount amount;
	} rows[] = {{"size", size}, {"impacting", impacting}, {"transient", transient}, {"aofi", aofi}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		say("heap.", rows[i].name, ".count", rows[i].amount.count);
		say("heap.", rows[i].name, ".bytes", rows[i].amount.bytes);
	}
	for (size_t i = 0; i < APIS && apis[i].name; i++) {
		say("api.", apis[i].name, ".count", apis[i].size.count);
		say("api.", apis[i].name, ".bytes", apis[i].size.bytes);
	}
}
