// SPDX-License-Identifier: MIT
/* elf_shared.c: images that several processes have of one file, and what is worked out of an image once
 * (elf_image.h). */
#include "symbol/elf_image.h"

#include "base/hash.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PLACES 256u

struct mw_elf_fact {
	struct mw_elf_fact *next;
	const struct mw_elf_fact_kind *kind;
	uint64_t key[2];
	void *value;
};

/* Of the list of images, and of each image's facts and its last reference. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mw_elf *shared[PLACES]; /* no reference is held: who lets go of the last one takes it out */

/* --- images ---------------------------------------------------------------------------------------------- */

static struct mw_elf **place_of(dev_t device, ino_t inode)
{
	return &shared[mw_hash_mix(mw_hash_add(device, inode)) % PLACES];
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The image holds its file open, so that the inode is not given to another. */
static bool is_of(const struct mw_elf_bytes *bytes, const struct stat *st)
{
	return bytes->device == st->st_dev && bytes->inode == st->st_ino && bytes->size == (uint64_t)st->st_size &&
	       same_time(&bytes->modified, &st->st_mtim) && same_time(&bytes->changed, &st->st_ctim);
}

struct mw_elf *mw_elf_find_shared(const struct stat *st)
{
	struct mw_elf *elf;

	(void)pthread_mutex_lock(&lock);
	for (elf = *place_of(st->st_dev, st->st_ino); elf; elf = elf->next_shared)
		if (is_of(&elf->bytes, st))
			break;
	mw_elf_ref(elf);
	(void)pthread_mutex_unlock(&lock);
	return elf;
}

void mw_elf_share(struct mw_elf *elf)
{
	struct mw_elf **place = place_of(elf->bytes.device, elf->bytes.inode);

	if (elf->bytes.fd < 0)
		return;
	(void)pthread_mutex_lock(&lock);
	if (!elf->is_shared) {
		elf->is_shared = true;
		elf->next_shared = *place;
		*place = elf;
	}
	(void)pthread_mutex_unlock(&lock);
}

bool mw_elf_let_go(struct mw_elf *elf)
{
	bool last;

	(void)pthread_mutex_lock(&lock);
	last = --elf->references == 0;
	if (last && elf->is_shared) {
		struct mw_elf **at = place_of(elf->bytes.device, elf->bytes.inode);

		while (*at != elf)
			at = &(*at)->next_shared;
		*at = elf->next_shared;
	}
	(void)pthread_mutex_unlock(&lock);
	return last;
}

/* --- facts ----------------------------------------------------------------------------------------------- */

static struct mw_elf_fact **find_fact(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2])
{
	struct mw_elf_fact **at = &elf->facts;

	while (*at && ((*at)->kind != kind || (*at)->key[0] != key[0] || (*at)->key[1] != key[1]))
		at = &(*at)->next;
	return at;
}

static void destroy_fact(struct mw_elf_fact *fact)
{
	if (!fact)
		return;
	if (fact->value)
		fact->kind->destroy(fact->value);
	free(fact);
}

static const void *known(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2])
{
	const struct mw_elf_fact *fact;

	(void)pthread_mutex_lock(&lock);
	fact = *find_fact(elf, kind, key);
	(void)pthread_mutex_unlock(&lock);
	return fact ? fact->value : NULL;
}

/* Another thread may have been faster: then its fact is the one, and ours is left for the caller to destroy. */
static const void *keep(struct mw_elf *elf, struct mw_elf_fact **made)
{
	struct mw_elf_fact **at, *kept;

	(void)pthread_mutex_lock(&lock);
	at = find_fact(elf, (*made)->kind, (*made)->key);
	if (!*at) {
		*at = *made;
		*made = NULL;
	}
	kept = *at;
	(void)pthread_mutex_unlock(&lock);
	return kept->value;
}

struct mw_error *mw_elf_fact(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2],
			     const void *context, const void **out)
{
	const void *value = known(elf, kind, key);
	struct mw_elf_fact *fact;
	struct mw_error *err;

	if (value) {
		*out = value;
		return NULL;
	}
	fact = calloc(1, sizeof(*fact));
	if (!fact)
		return mw_error_nomem();
	fact->kind = kind;
	fact->key[0] = key[0];
	fact->key[1] = key[1];
	err = kind->make(elf, context, &fact->value);
	if (!err)
		*out = keep(elf, &fact);
	destroy_fact(fact);
	return err;
}

void mw_elf_forget(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2])
{
	struct mw_elf_fact **at, *fact;

	(void)pthread_mutex_lock(&lock);
	at = find_fact(elf, kind, key);
	fact = *at;
	if (fact)
		*at = fact->next;
	(void)pthread_mutex_unlock(&lock);
	destroy_fact(fact);
}

void mw_elf_forget_all(struct mw_elf *elf)
{
	while (elf->facts) {
		struct mw_elf_fact *fact = elf->facts;

		elf->facts = fact->next;
		destroy_fact(fact);
	}
}

/* --- symbols by name ---------------------------------------------------------------------------------------------- */

/* What is looked for, or was found. */
struct search {
	size_t count;
	struct mw_named_symbol named[];
};

static bool see(void *context, const struct mw_elf_symbol *symbol)
{
	struct search *search = context;

	if ((!symbol->function && !symbol->object) || symbol->ifunc)
		return true;
	MW_EACH_MUTABLE(named, search->named, search->count)
		if (strcmp(symbol->name, named->name) == 0) {
			named->vaddr = symbol->vaddr;
			named->size = symbol->size;
		}
	return true;
}

/* The names that are asked for, as text of the program: they stay. */
struct names {
	const struct mw_named_symbol *named;
	size_t count;
};

static struct mw_error *search_names(struct mw_elf *elf, const void *context, void **out)
{
	const struct names *names = context;
	struct search *search = calloc(1, sizeof(*search) + names->count * sizeof(search->named[0]));
	struct mw_error *err;

	if (!search)
		return mw_error_nomem();
	search->count = names->count;
	for (size_t i = 0; i < names->count; i++)
		search->named[i].name = names->named[i].name;
	err = mw_elf_each_symbol(elf, see, search);
	if (err)
		free(search);
	else
		*out = search;
	return err;
}

static uint64_t hash_names(const struct mw_named_symbol *named, size_t count)
{
	uint64_t hash = count;

	for (size_t i = 0; i < count; i++)
		for (const char *at = named[i].name; *at; at++)
			hash = mw_hash_add(hash, i << 8 | (uint8_t)*at);
	return hash;
}

struct mw_error *mw_elf_find_named(struct mw_elf *elf, struct mw_named_symbol *named, size_t count)
{
	static const struct mw_elf_fact_kind kind = {search_names, free};
	const struct names names = {named, count};
	const uint64_t key[2] = {hash_names(named, count), count};
	const struct search *search;
	const void *found = NULL;

	MW_TRY(mw_elf_fact(elf, &kind, key, &names, &found));
	search = found;
	for (size_t i = 0; i < count; i++)
		named[i] = (struct mw_named_symbol){named[i].name, search->named[i].vaddr, search->named[i].size};
	return NULL;
}
