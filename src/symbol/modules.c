// SPDX-License-Identifier: MIT
/* modules.c: the table of all files with code that a process has or had mapped. */
#include "symbol/modules.h"

#include "base/hash.h"
#include "base/vector.h"
#include "proc/root.h"
#include "symbol/elf_match.h"
#include "symbol/module_file.h"

#include <stdlib.h>
#include <string.h>

struct entry {
	struct mw_module module; /* first: an entry is its module */
	bool seen;               /* in the maps that are being taken in */
};

struct range {
	mw_addr start, end;
	struct mw_module *module;
};

struct mw_modules {
	struct entry **items;
	size_t count, capacity;
	struct range *ranges; /* what is mapped now, in address order */
	size_t range_count;
	uint64_t signature; /* of the maps that were last taken in */
	bool valid;
};

/* What one refresh works with. */
struct pass {
	struct mw_modules *modules;
	const struct mw_maps *maps;
	pid_t tid;
	char *prefix;          /* mw_root_prefix */
	struct entry **owners; /* one a mapping; NULL: belongs to no module */
	struct entry *last;    /* neighbours mostly have one owner */
};

struct mw_error *mw_modules_create(struct mw_modules **out)
{
	struct mw_modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return mw_error_nomem();
	*out = modules;
	return NULL;
}

static void free_entry(struct entry *entry)
{
	if (!entry)
		return;
	mw_elf_unref(entry->module.elf);
	free(entry->module.path);
	free(entry->module.why);
	free(entry);
}

void mw_modules_destroy(struct mw_modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->count; i++)
		free_entry(modules->items[i]);
	free(modules->items);
	free(modules->ranges);
	free(modules);
}

static bool is_vdso(const struct mw_mapping *mapping)
{
	return !mapping->inode && strcmp(mapping->path, "[vdso]") == 0;
}

static bool is_file(const struct mw_mapping *mapping)
{
	return mapping->inode && mapping->path[0] == '/';
}

/* Heaps grow and stacks come and go; only mapped files (and the vdso) matter here. */
static uint64_t sign(const struct mw_maps *maps)
{
	uint64_t hash = 1;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (!is_file(mapping) && !is_vdso(mapping))
			continue;
		hash = mw_hash_add(hash, mapping->start);
		hash = mw_hash_add(hash, mapping->end);
		hash = mw_hash_add(hash, mapping->offset);
		hash = mw_hash_add(hash, mapping->inode);
		hash = mw_hash_add(hash, (uint64_t)mapping->major << 32 | mapping->minor);
		hash = mw_hash_add(hash, (uint64_t)mapping->exec << 1 | (uint64_t)mapping->deleted);
	}
	return hash;
}

static bool same_file(const struct mw_module *module, const struct mw_mapping *mapping)
{
	return module->inode == mapping->inode && module->major == mapping->major && module->minor == mapping->minor;
}

/*
 * Does a mapping belong to this module? While an image is open its inode is not given to another file.
 * Without an image loads can't be distinguished, and all mappings of the file make one module.
 */
static bool owns(const struct entry *entry, const struct mw_mapping *mapping)
{
	const struct mw_module *module = &entry->module;

	if (module->gone || !same_file(module, mapping))
		return false;
	if (is_vdso(mapping))
		return module->start == mapping->start;
	return !module->elf || mw_elf_fits(module->elf, mapping, module->bias);
}

static struct entry *find_owner(struct pass *pass, const struct mw_mapping *mapping)
{
	struct mw_modules *modules = pass->modules;

	if (pass->last && owns(pass->last, mapping))
		return pass->last;
	for (size_t i = 0; i < modules->count; i++)
		if (owns(modules->items[i], mapping))
			return modules->items[i];
	return NULL;
}

/* The image of an earlier load of the same file: dlopen and dlclose in a loop must not cost a descriptor each. */
static struct mw_elf *share_image(struct pass *pass, const struct mw_mapping *mapping)
{
	for (size_t i = pass->modules->count; i-- > 0;) {
		const struct mw_module *module = &pass->modules->items[i]->module;
		uint64_t bias;

		if (!module->elf || !mapping->inode || !same_file(module, mapping))
			continue;
		/* The file may have been written over since. */
		if (mw_elf_bias(module->elf, mapping, &bias) &&
		    mw_elf_match(module->elf, pass->tid, bias) == MW_ELF_DIFFERENT)
			return NULL;
		return mw_elf_ref(module->elf);
	}
	return NULL;
}

/* *is_load: false where the mapping shows the file's bytes, but not as a loader maps them. */
static struct mw_error *open_image(struct pass *pass, const struct mw_mapping *mapping, struct mw_module *module,
				   bool *is_load)
{
	*is_load = true;
	module->bias = mapping->start - mapping->offset;
	if (is_vdso(mapping))
		MW_TRY(mw_module_vdso_open(pass->tid, mapping, &module->elf, &module->why));
	else
		module->elf = share_image(pass, mapping);
	if (!module->elf && !module->why)
		MW_TRY(mw_module_file_open(pass->tid, mapping, module->path, &module->elf, &module->why));
	if (module->elf && !mw_elf_is_64(module->elf)) {
		mw_elf_unref(module->elf);
		module->elf = NULL;
		module->why = strdup("it is a 32-bit file");
		return module->why ? NULL : mw_error_nomem();
	}
	if (module->elf)
		*is_load = mw_elf_bias(module->elf, mapping, &module->bias);
	return NULL;
}

static struct mw_error *append(struct mw_modules *modules, struct entry *entry)
{
	if (!MW_VECTOR_ROOM(modules->items, modules->count, modules->capacity))
		return mw_error_nomem();
	entry->module.number = (uint32_t)modules->count;
	modules->items[modules->count++] = entry;
	return NULL;
}

/* *out is NULL where the mapping is no load of its file. */
static struct mw_error *add_module(struct pass *pass, const struct mw_mapping *mapping, struct entry **out)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct mw_error *err;
	bool is_load = false;

	if (!entry)
		return mw_error_nomem();
	entry->module.path = strdup(mw_root_strip(mapping->path, pass->prefix));
	entry->module.inode = mapping->inode;
	entry->module.major = mapping->major;
	entry->module.minor = mapping->minor;
	entry->module.start = mapping->start;
	entry->module.end = mapping->end;
	err = entry->module.path ? open_image(pass, mapping, &entry->module, &is_load) : mw_error_nomem();
	if (!err && is_load)
		err = append(pass->modules, entry);
	if (err || !is_load) {
		free_entry(entry);
		entry = NULL;
	}
	if (!err)
		*out = entry;
	return err;
}

/* Executable mappings make modules, or find theirs. */
static struct mw_error *claim_code(struct pass *pass)
{
	for (size_t i = 0; i < pass->maps->count; i++) {
		const struct mw_mapping *mapping = &pass->maps->items[i];
		struct entry *owner;

		if (!mapping->exec || (!is_file(mapping) && !is_vdso(mapping)))
			continue;
		owner = find_owner(pass, mapping);
		if (!owner)
			MW_TRY(add_module(pass, mapping, &owner));
		if (!owner)
			continue;
		owner->seen = true;
		pass->owners[i] = owner;
		pass->last = owner;
	}
	return NULL;
}

/* Other mappings of the same load. A file mapped for reading fits no load's bias and is left alone. */
static void claim_data(struct pass *pass)
{
	for (size_t i = 0; i < pass->maps->count; i++) {
		const struct mw_mapping *mapping = &pass->maps->items[i];
		struct entry *owner;

		if (pass->owners[i] || !is_file(mapping))
			continue;
		owner = find_owner(pass, mapping);
		if (!owner || !owner->seen)
			continue;
		pass->owners[i] = owner;
		pass->last = owner;
	}
}

static size_t count_owned(const struct pass *pass)
{
	size_t count = 0;

	for (size_t i = 0; i < pass->maps->count; i++)
		count += pass->owners[i] != NULL;
	return count;
}

/* Nothing can fail from here on. */
static void commit(struct pass *pass, struct range *ranges, size_t *removed)
{
	struct mw_modules *modules = pass->modules;
	size_t count = 0, gone = 0;

	for (size_t i = 0; i < modules->count; i++) {
		struct entry *entry = modules->items[i];

		if (entry->module.gone)
			continue;
		if (entry->seen) {
			entry->module.start = UINT64_MAX;
			entry->module.end = 0;
		} else {
			entry->module.gone = true;
			gone++;
		}
	}
	for (size_t i = 0; i < pass->maps->count; i++) {
		const struct mw_mapping *mapping = &pass->maps->items[i];
		struct mw_module *module = pass->owners[i] ? &pass->owners[i]->module : NULL;

		if (!module)
			continue;
		if (mapping->start < module->start)
			module->start = mapping->start;
		if (mapping->end > module->end)
			module->end = mapping->end;
		module->deleted = mapping->deleted;
		ranges[count++] = (struct range){mapping->start, mapping->end, module};
	}
	free(modules->ranges);
	modules->ranges = ranges;
	modules->range_count = count;
	*removed = gone;
}

static struct mw_error *take_in(struct pass *pass, size_t *removed)
{
	struct range *ranges;

	MW_TRY(claim_code(pass));
	claim_data(pass);
	ranges = calloc(count_owned(pass) + 1, sizeof(*ranges));
	if (!ranges)
		return mw_error_nomem();
	commit(pass, ranges, removed);
	return NULL;
}

struct mw_error *mw_modules_refresh(struct mw_modules *modules, pid_t tid, const struct mw_maps *maps, size_t *added,
				    size_t *removed)
{
	struct pass pass = {.modules = modules, .maps = maps, .tid = tid};
	uint64_t signature = sign(maps);
	size_t before = modules->count, gone = 0;
	struct mw_error *err = NULL;

	if (!modules->valid || signature != modules->signature) {
		for (size_t i = 0; i < before; i++)
			modules->items[i]->seen = false;
		pass.prefix = mw_root_prefix(tid);
		pass.owners = calloc(maps->count + 1, sizeof(*pass.owners));
		err = pass.prefix && pass.owners ? take_in(&pass, &gone) : mw_error_nomem();
		free(pass.prefix);
		free(pass.owners);
	}
	if (err) {
		/* Nothing refers to what was added before the failure. */
		while (modules->count > before)
			free_entry(modules->items[--modules->count]);
		return err;
	}
	modules->signature = signature;
	modules->valid = true;
	if (added)
		*added = modules->count - before;
	if (removed)
		*removed = gone;
	return NULL;
}

size_t mw_modules_count(const struct mw_modules *modules)
{
	return modules->count;
}

struct mw_module *mw_modules_get(const struct mw_modules *modules, uint32_t number)
{
	return number < modules->count ? &modules->items[number]->module : NULL;
}

struct mw_module *mw_modules_find(const struct mw_modules *modules, mw_addr addr)
{
	size_t low = 0, high = modules->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct range *range = &modules->ranges[middle];

		if (addr < range->start)
			high = middle;
		else if (addr >= range->end)
			low = middle + 1;
		else
			return range->module;
	}
	return NULL;
}

struct mw_error *mw_modules_add(struct mw_modules *modules, const char *path, uint64_t bias, struct mw_elf *elf)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct mw_error *err = NULL;

	if (entry)
		entry->module.path = strdup(path ? path : "");
	if (!entry || !entry->module.path) {
		free(entry);
		mw_elf_unref(elf);
		return mw_error_nomem();
	}
	entry->module.bias = bias;
	entry->module.elf = elf;
	entry->module.gone = true;
	err = append(modules, entry);
	if (err)
		free_entry(entry);
	return err;
}
