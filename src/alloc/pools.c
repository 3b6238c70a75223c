// SPDX-License-Identifier: MIT
/* pools.c: see pools.h. */
#include "alloc/pools.h"

#include "base/index.h"
#include "base/map.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MOST_USERS 4096u
#define MOST_STEPS (1u << 18) /* along lists, in all */
#define WORD       sizeof(uint64_t)

struct mw_pools {
	const struct mw_pool_memory *memory;
	struct mw_index index;
	struct mw_pool_user **users; /* by number */
	size_t capacity;
	struct mw_map known;   /* users by addresses of contexts and chunks; `nobody` */
	struct mw_map parents; /* chunks' by their addresses; `nobody` */
	uint32_t magic;        /* of the process's talloc; 0: not known yet */
	uint32_t steps;
};

static struct mw_pool_user nobody;

struct mw_error *mw_pools_create(const struct mw_pool_memory *memory, struct mw_pools **out)
{
	struct mw_pools *pools = calloc(1, sizeof(*pools));

	if (!pools)
		return mw_error_nomem();
	pools->memory = memory;
	*out = pools;
	return NULL;
}

void mw_pools_destroy(struct mw_pools *pools)
{
	if (!pools)
		return;
	for (uint32_t i = 0; i < pools->index.count; i++)
		free(pools->users[i]);
	free(pools->users);
	mw_index_deinit(&pools->index);
	mw_map_deinit(&pools->known);
	mw_map_deinit(&pools->parents);
	free(pools);
}

/* --- what is read --------------------------------------------------------------------------------------------------- */

static bool read_words(const struct mw_pools *pools, mw_addr addr, uint64_t *out, size_t count)
{
	return addr && addr % WORD == 0 &&
	       pools->memory->read(pools->memory->context, addr, out, count * WORD) == count * WORD;
}

static bool is_constant(const struct mw_pools *pools, mw_addr addr)
{
	return pools->memory->is_constant(pools->memory->context, addr);
}

/* What is longer is cut. False: there is no text, or it is none that people wrote. */
static bool read_text(const struct mw_pools *pools, mw_addr addr, char out[MW_POOL_NAME_MAX])
{
	size_t got = addr ? pools->memory->read(pools->memory->context, addr, out, MW_POOL_NAME_MAX) : 0, length = 0;

	for (; length < got && out[length]; length++) {
		if (strchr("\t\n\r", out[length]))
			out[length] = ' ';
		if (out[length] < ' ' || out[length] > '~')
			return false;
	}
	if (length == MW_POOL_NAME_MAX)
		memcpy(out + --length - 3, "...", 3);
	else if (length == got)
		return false;
	out[length] = '\0';
	return length > 0;
}

/* Is that the size that malloc was asked for? */
static bool fits(uint64_t told, uint64_t size, uint64_t slack)
{
	return told <= size && size - told <= slack;
}

/* --- users ---------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const struct mw_pool_user *user)
{
	uint64_t hash = mw_hash_add(0, (uintptr_t)user->part_of);

	for (const char *c = user->name; *c; c++)
		hash = mw_hash_add(hash, (unsigned char)*c);
	return (uint32_t)mw_hash_mix(hash);
}

static uint32_t hash_of_number(const void *users, uint32_t number)
{
	return hash_of(((struct mw_pool_user *const *)users)[number]);
}

/* NULL without memory, or where there are too many. */
static struct mw_pool_user *user_of(struct mw_pools *pools, const struct mw_pool_user *part_of, const char *name)
{
	struct mw_pool_user *user = calloc(1, sizeof(*user));
	uint32_t number, hash;

	if (!user)
		return NULL;
	user->part_of = part_of;
	strncpy(user->name, name, sizeof(user->name) - 1);
	hash = hash_of(user);
	MW_INDEX_EACH(&pools->index, hash, number)
		if (pools->users[number]->part_of == part_of && strcmp(pools->users[number]->name, user->name) == 0) {
			free(user);
			return pools->users[number];
		}
	if (pools->index.count >= MOST_USERS || !mw_index_reserve(&pools->index, hash_of_number, pools->users) ||
	    !MW_VECTOR_ROOM(pools->users, pools->index.count, pools->capacity)) {
		free(user);
		return NULL;
	}
	pools->users[mw_index_put(&pools->index, hash)] = user;
	return user;
}

static const struct mw_pool_user *known(const struct mw_pools *pools, mw_addr addr)
{
	return mw_map_get(&pools->known, addr);
}

/* Without memory it is looked for again. */
static void know(struct mw_pools *pools, mw_addr addr, struct mw_pool_user *user)
{
	mw_error_destroy(mw_map_set(&pools->known, addr, user ? user : &nobody));
}

/* One of a chain of what is part of one another, the innermost first. */
struct link {
	mw_addr addr;
	char name[MW_POOL_NAME_MAX], example[MW_POOL_NAME_MAX];
};

#define LINKS 32

/* Each of them, from the outermost on, and what that is part of; NULL: of none. */
static const struct mw_pool_user *name_links(struct mw_pools *pools, const struct link *links, size_t count,
					     const struct mw_pool_user *part_of)
{
	while (count--) {
		struct mw_pool_user *user = user_of(pools, part_of, links[count].name);

		if (user && !*user->example)
			memcpy(user->example, links[count].example, sizeof(user->example));
		know(pools, links[count].addr, user);
		if (!user)
			return NULL;
		part_of = user;
	}
	return part_of;
}

/* --- PostgreSQL ----------------------------------------------------------------------------------------------------- */

/* Node tags of memory contexts: 12 to 17 have them between. */
#define TAG_LEAST  100u
#define TAG_MOST   1023u
#define HEAD_WORDS 9 /* of a context, or of a block with its first chunk */

/*
 * MemoryContextData. What follows depends on the kind of context, and on the version.
 *
 *      12   13 to 17
 *       0          0   node tag, flags
 *                  8   bytes allocated
 *       8         16   methods: a constant table of functions
 *      16         24   parent
 *      24         32   first child, sibling before, sibling behind
 *      48         56   name, a constant
 *      56         64   what it is for, or NULL
 */
struct context {
	mw_addr parent;
	struct link link;
};

static bool has_tag(uint64_t word)
{
	return (uint32_t)word >= TAG_LEAST && (uint32_t)word <= TAG_MOST;
}

static bool is_method_table(const struct mw_pools *pools, mw_addr addr)
{
	uint64_t function;

	return is_constant(pools, addr) && read_words(pools, addr, &function, 1) && is_constant(pools, function);
}

static bool read_context(const struct mw_pools *pools, mw_addr addr, struct context *out)
{
	uint64_t words[HEAD_WORDS];
	struct link *link = &out->link;
	size_t methods = 1;

	if (!read_words(pools, addr, words, HEAD_WORDS) || !has_tag(words[0]))
		return false;
	if (!is_method_table(pools, words[methods]) && !is_method_table(pools, words[++methods]))
		return false;
	if (!is_constant(pools, words[methods + 5]) || !read_text(pools, words[methods + 5], link->name))
		return false;
	link->addr = addr;
	out->parent = words[methods + 1];
	if (!read_text(pools, words[methods + 6], link->example))
		link->example[0] = '\0';
	/* All tables are of that name, as PostgreSQL's own list of contexts knows. */
	if (strcmp(link->name, "dynahash") == 0 && link->example[0]) {
		memcpy(link->name, link->example, sizeof(link->name));
		link->example[0] = '\0';
	}
	/* One that has no parent was deleted, and is kept for the next. */
	if (!out->parent && strcmp(link->name, "TopMemoryContext") != 0)
		strcpy(link->name, "(deleted, kept for the next)");
	return true;
}

static const struct mw_pool_user *context_user(struct mw_pools *pools, mw_addr addr)
{
	struct link links[LINKS];
	const struct mw_pool_user *part_of = NULL;
	struct context context = {.parent = addr};
	size_t count = 0;

	while (context.parent && !(part_of = known(pools, context.parent))) {
		if (count == LINKS || !read_context(pools, context.parent, &context)) {
			know(pools, addr, NULL);
			return NULL;
		}
		links[count++] = context.link;
	}
	return part_of == &nobody ? NULL : name_links(pools, links, count, part_of);
}

/*
 * Heads of blocks, in words: where the context stands, the block's own address (NONE: nowhere), and its end. A slab has no
 * end: its context has the size of all its blocks.
 *
 *      AllocSet                         context, before, behind, free, end
 *      Generation of 16 and 17          before, behind, context, size, counts, free, end
 *      Generation before, with a chunk  before, behind, size, counts, free, end, size, block, context
 *      Slab of 16 and 17                context, counts, …
 *      Slab before, with a chunk        before, behind, counts, block, context
 */
#define NONE UINT8_MAX

static const struct {
	uint8_t context, self, end;
} heads[] = {{0, NONE, 4}, {2, NONE, 6}, {8, 7, 5}, {0, NONE, NONE}, {4, 3, NONE}};

static bool is_slab(const struct mw_pools *pools, mw_addr context, uint64_t size, uint64_t slack)
{
	uint64_t words[2];

	return read_words(pools, context + 11 * WORD, words, 2) &&
	       (fits((uint32_t)words[0], size, slack) || fits((uint32_t)words[1], size, slack));
}

static const struct mw_pool_user *postgres_user(struct mw_pools *pools, mw_addr block, uint64_t size, uint64_t slack)
{
	uint64_t words[HEAD_WORDS];
	const struct mw_pool_user *user;

	if (size < sizeof(words) || !read_words(pools, block, words, HEAD_WORDS))
		return NULL;
	if (has_tag(words[0]) && (user = context_user(pools, block)))
		return user;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		mw_addr context = words[heads[i].context];

		if ((heads[i].self == NONE || words[heads[i].self] == block) &&
		    (heads[i].end == NONE ? is_slab(pools, context, size, slack)
					  : fits(words[heads[i].end] - block, size, slack)) &&
		    (user = context_user(pools, context)))
			return user;
	}
	return NULL;
}

/* --- talloc --------------------------------------------------------------------------------------------------------- */

/*
 * struct talloc_chunk, before what the program has; a pool's has a head of its own before that, with its size. Flags are
 * the lowest four bits of the first word, the rest of its half are the same in all chunks of the process.
 */
enum { FLAGS, NEXT, BEFORE, PARENT, CHILD, REFERENCES, DESTRUCTOR, NAME, SIZE, CHUNK_WORDS };

#define FREED      1u
#define IS_POOL    4u
#define ALL_FLAGS  15u
#define CHUNK_SIZE 96u
#define POOL_HEAD  32u
#define SHRUNK     1024u /* bytes: a chunk that is made smaller by less than that keeps its block */

static bool read_chunk(const struct mw_pools *pools, mw_addr addr, uint64_t words[CHUNK_WORDS])
{
	if (!read_words(pools, addr, words, CHUNK_WORDS) || (uint32_t)words[FLAGS] & FREED)
		return false;
	return !pools->magic || ((uint32_t)words[FLAGS] & ~ALL_FLAGS) == pools->magic;
}

/* The first of its siblings has the parent. 0: it has none, or the list is broken, or too long. */
static mw_addr first_sibling(struct mw_pools *pools, mw_addr addr, mw_addr *parent)
{
	uint64_t words[CHUNK_WORDS], before[CHUNK_WORDS];
	const struct link *told;

	*parent = 0;
	if (!read_chunk(pools, addr, words))
		return 0;
	while (words[BEFORE]) {
		told = mw_map_get(&pools->parents, addr);
		if (told) {
			*parent = (const void *)told == &nobody ? 0 : (uintptr_t)told;
			return addr;
		}
		if (++pools->steps > MOST_STEPS || !read_chunk(pools, words[BEFORE], before) || before[NEXT] != addr)
			return 0;
		addr = words[BEFORE];
		memcpy(words, before, sizeof(words));
	}
	*parent = words[PARENT];
	return addr;
}

static mw_addr parent_of(struct mw_pools *pools, mw_addr addr)
{
	uint64_t words[CHUNK_WORDS];
	mw_addr parent, first = first_sibling(pools, addr, &parent);

	/* All on the way have the same. */
	while (first && addr != first && read_chunk(pools, addr, words) && words[BEFORE]) {
		void *value = parent ? (void *)(uintptr_t)parent : &nobody; // NOLINT(performance-no-int-to-ptr)

		mw_error_destroy(mw_map_set(&pools->parents, addr, value));
		addr = words[BEFORE];
	}
	return parent;
}

static bool read_link(struct mw_pools *pools, mw_addr addr, struct link *out)
{
	uint64_t words[CHUNK_WORDS];

	*out = (struct link){.addr = addr};
	if (!read_chunk(pools, addr, words))
		return false;
	/* A string's name is itself. */
	if (words[NAME] == addr + CHUNK_SIZE) {
		strcpy(out->name, "(string)");
		return true;
	}
	return read_text(pools, words[NAME], out->name);
}

static const struct mw_pool_user *chunk_user(struct mw_pools *pools, mw_addr addr)
{
	struct link links[LINKS];
	const struct mw_pool_user *part_of = NULL;
	size_t count = 0;

	for (; addr && count < LINKS && !(part_of = known(pools, addr)); addr = parent_of(pools, addr))
		if (!read_link(pools, addr, &links[count++]))
			return NULL;
	/* Of one that has no name nothing is certain, nor of a chain that never ends. */
	return part_of == &nobody || (addr && !part_of) ? NULL : name_links(pools, links, count, part_of);
}

/* Does another chunk, if there is one, know it as its neighbour? */
static bool is_linked(struct mw_pools *pools, mw_addr addr, const uint64_t words[CHUNK_WORDS])
{
	static const struct {
		uint8_t to, back;
	} links[] = {{BEFORE, NEXT}, {NEXT, BEFORE}, {PARENT, CHILD}, {CHILD, PARENT}};
	uint64_t other[CHUNK_WORDS];
	bool any = false;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (!words[links[i].to])
			continue;
		if (!read_chunk(pools, words[links[i].to], other) || other[links[i].back] != addr ||
		    (((uint32_t)other[FLAGS] ^ (uint32_t)words[FLAGS]) & ~ALL_FLAGS))
			return false;
		any = true;
	}
	if (any)
		pools->magic = (uint32_t)words[FLAGS] & ~ALL_FLAGS;
	return true;
}

static const struct mw_pool_user *talloc_user(struct mw_pools *pools, mw_addr block, uint64_t size, uint64_t slack)
{
	uint64_t head[POOL_HEAD / WORD], words[CHUNK_WORDS];
	mw_addr chunk = block;

	if (size < CHUNK_SIZE)
		return NULL;
	if (!read_chunk(pools, chunk, words) || !fits(words[SIZE], size - CHUNK_SIZE, slack + SHRUNK)) {
		chunk = block + POOL_HEAD;
		if (size < POOL_HEAD + CHUNK_SIZE || !read_words(pools, block, head, POOL_HEAD / WORD) ||
		    !read_chunk(pools, chunk, words) || !((uint32_t)words[FLAGS] & IS_POOL) ||
		    !fits(head[2], size - POOL_HEAD - CHUNK_SIZE, slack))
			return NULL;
	}
	return (uint32_t)words[FLAGS] & ~ALL_FLAGS && is_linked(pools, chunk, words) ? chunk_user(pools, chunk) : NULL;
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct mw_pool mw_pool_rows[] = {
	{
		.name = "PostgreSQL's memory contexts",
		.one = "memory context",
		.module = "postgres",
		.functions = LIST("palloc$", "palloc0$", "palloc_", "palloc0_", "repalloc", "MemoryContextAlloc",
				  "AllocSet", "GenerationAlloc", "GenerationContextCreate", "SlabAlloc$",
				  "SlabContextCreate", "BumpAlloc", "BumpContextCreate"),
		.user = postgres_user,
		.hint = "These blocks belong to PostgreSQL's memory contexts; which ones could not be read. "
			"pg_log_backend_memory_contexts(PID) makes the server log the size of each context of a "
			"backend.",
	},
	{
		.name = "talloc's chunks",
		.one = "talloc chunk",
		.module = "libtalloc.so",
		.functions = LIST("_talloc", "__talloc", "talloc_"),
		.user = talloc_user,
		.hint = "These blocks are talloc chunks whose names could not be read. talloc_report_full() prints "
			"them.",
	},
	{
		.name = "nginx's pools",
		.functions = LIST("ngx_palloc", "ngx_pnalloc$", "ngx_pcalloc$", "ngx_pmemalign$", "ngx_create_pool$"),
		.hint = "These blocks belong to nginx's pools, which have no names: the stack shows who created the "
			"pool or asked for its next block, and others may have used it. Built with the no-pool patch, "
			"nginx takes each block from malloc.",
	},
	{
		.name = "APR's pools",
		.functions = LIST("apr_palloc$", "apr_pcalloc$", "apr_pool_create_ex$", "apr_pool_create_core_ex$",
				  "apr_pool_create_unmanaged_ex$", "apr_allocator_alloc$"),
		.hint = "These blocks belong to APR's pools, which store no names in them: the stack shows who "
			"created the pool or asked for its next block, and others may have used it. Built with "
			"--enable-pool-debug, APR takes each block from malloc.",
	},
	{
		.name = "Zend's chunks",
		.functions = LIST("_emalloc", "_ecalloc$", "_erealloc", "_safe_e", "_safe_fe", "_estrdup$",
				  "_estrndup$", "zend_mm_", "_zend_mm_"),
		.maps = true,
		.hint = "This memory belongs to PHP's own allocator (Zend): chunks of 2 MiB, or huge blocks. The stack "
			"shows who asked for it, and others may use it. Started with USE_ZEND_ALLOC=0, PHP takes each "
			"block from malloc.",
	},
	{.name = NULL},
};
