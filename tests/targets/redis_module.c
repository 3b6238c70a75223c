/* SPDX-License-Identifier: MIT */
/*
 * redis_module: a module of redis-server that leaks. "mwleak.drop N SIZE" allocates N blocks and keeps no pointer to them,
 * "mwleak.keep N SIZE" keeps one to each. Of redis's interface it declares what it uses, as Debian has no header of it.
 */
#include "target.h"

#include <stddef.h>

#define KEPT 1000

typedef int command(void *context, void **words, int count);

static int (*get_api)(const char *, void *);
static void *(*allocate)(size_t);
static int (*string_to_number)(const void *, long long *);
static int (*reply_number)(void *, long long);
static void *kept[KEPT];

KEEP static int allocate_blocks(void *context, void **words, int count, void **keep)
{
	long long blocks, size;

	if (count != 3 || string_to_number(words[1], &blocks) || string_to_number(words[2], &size) || blocks > KEPT)
		return 1;
	for (long long i = 0; i < blocks; i++) {
		void *block = allocate((size_t)size);

		OPAQUE(block);
		if (keep)
			keep[i] = block;
	}
	return reply_number(context, blocks);
}

static int drop(void *context, void **words, int count)
{
	return allocate_blocks(context, words, count, NULL);
}

static int hold(void *context, void **words, int count)
{
	return allocate_blocks(context, words, count, kept);
}

int RedisModule_OnLoad(void *context);

int RedisModule_OnLoad(void *context)
{
	int (*create)(void *, const char *, command *, const char *, int, int, int);
	void (*set_attributes)(void *, const char *, int, int);

	/* The context begins with the function that gives the others. */
	get_api = *(int (**)(const char *, void *))context;
	if (get_api("RedisModule_SetModuleAttribs", &set_attributes) || get_api("RedisModule_CreateCommand", &create) ||
	    get_api("RedisModule_Alloc", &allocate) || get_api("RedisModule_StringToLongLong", &string_to_number) ||
	    get_api("RedisModule_ReplyWithLongLong", &reply_number))
		return 1;
	set_attributes(context, "mwleak", 1, 1);
	return create(context, "mwleak.drop", drop, "", 0, 0, 0) || create(context, "mwleak.keep", hold, "", 0, 0, 0);
}
