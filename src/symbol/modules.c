// SPDX-License-Identifier: MIT
/* modules.c: the table of all files with code that a process has or had mapped. */
#include "symbol/modules.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/shared_list.h"
#include "base/vector.h"
#include "proc/peek.h"
#include "proc/root.h"
#include "symbol/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_COMPARED 4096

enum match {
	MATCH_DIFFERENT, /* the memory holds something else */
	MATCH_LIKE,      /* the headers agree; nothing more could be compared */
	MATCH_SAME,      /* headers and build-id agree */
	MATCH_UNKNOWN,   /* the memory can't be read */
};

static bool holds_offset(const struct mw_elf_segment *segment, uint64_t offset)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t end = segment->offset + segment->file_size;

	/* The loader maps whole pages, so a mapping may begin before its segment. */
	return segment->file_size && offset >= (segment->offset & ~page) && offset <= ((end - 1) | page);
}

static uint64_t bias_by(const struct mw_elf_segment *segment, const struct mw_mapping *mapping)
{
	return mapping->start - mapping->offset - (segment->vaddr - segment->offset);
}

/*
 * The bias that a mapping of the image's file gives it: the segment that holds the mapping's file offset (an executable
 * one is preferred where pages are shared by two) tells the address wanted. False where no segment does.
 */
static bool bias_of(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t *bias)
{
	const struct mw_elf_segment *found = NULL;

	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (!holds_offset(segment, mapping->offset) || (found && found->exec >= segment->exec))
			continue;
		found = segment;
	}
	if (!found)
		return false;
	*bias = bias_by(found, mapping);
	return true;
}

/* Can the mapping belong to the load with this bias? */
static bool fits(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t bias)
{
	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (holds_offset(segment, mapping->offset) && bias_by(segment, mapping) == bias)
			return true;
	}
	return false;
}

/* Compare a range of the file with memory, where a read-only segment has it. */
static enum match compare(const struct mw_elf *elf, pid_t tid, uint64_t bias, uint64_t offset, uint64_t size)
{
	uint8_t memory[MAX_COMPARED];
	const uint8_t *bytes;

	if (size > sizeof(memory))
		size = sizeof(memory);
	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (segment->write || offset < segment->offset || offset - segment->offset >= segment->file_size)
			continue;
		if (size > segment->file_size - (offset - segment->offset))
			size = segment->file_size - (offset - segment->offset);
		bytes = mw_elf_file_bytes(elf, offset, size);
		if (!bytes || !mw_peek(tid, bias + segment->vaddr + (offset - segment->offset), memory, size))
			return MATCH_UNKNOWN;
		return memcmp(bytes, memory, size) == 0 ? MATCH_LIKE : MATCH_DIFFERENT;
	}
	return MATCH_UNKNOWN;
}

/* Compare headers and build-id with what a process has in memory. It may run meanwhile. */
static enum match match_memory(const struct mw_elf *elf, pid_t tid, uint64_t bias)
{
	const uint8_t *raw = mw_elf_file_bytes(elf, 0, sizeof(Elf64_Ehdr));
	enum match result;
	Elf64_Ehdr header;

	if (!raw)
		return MATCH_UNKNOWN;
	memcpy(&header, raw, sizeof(header));
	result = compare(elf, tid, bias, 0, sizeof(header));
	if (result == MATCH_LIKE)
		result = compare(elf, tid, bias, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr));
	if (result != MATCH_LIKE || !elf->build_id_note.size)
		return result;
	/* Two builds may have the same headers; the build-id tells them apart. */
	result = compare(elf, tid, bias, elf->build_id_note.offset, elf->build_id_note.size);
	if (result == MATCH_LIKE)
		return MATCH_SAME;
	return result == MATCH_DIFFERENT ? result : MATCH_LIKE;
}

/* --- the file behind a mapping --------------------------------------------------------------------------- */

#define MAX_VDSO ((uint64_t)1 << 20)

/* Why a module has no image; `text` is malloc'ed. */
static struct mw_error *say(struct mw_module *module, char *text)
{
	module->why = text;
	return text ? NULL : mw_error_nomem();
}

/* An error becomes the reason why there is no image; lack of memory stays an error. NULL is none. */
static struct mw_error *say_error(struct mw_module *module, struct mw_error *err)
{
	char *text;

	if (!err || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	text = strdup(mw_error_text(err));
	mw_error_destroy(err);
	return say(module, text);
}

/*
 * Is what was found under the name the file that is mapped? Device and inode are the best witness, as a
 * mapped file's inode is not given to another. On overlayfs and btrfs /proc and stat disagree on the
 * device, and a reinstalled file is the same under another inode: then memory tells.
 */
static bool is_mapped_file(pid_t tid, const struct mw_mapping *mapping, const struct stat *st, const struct mw_elf *elf)
{
	bool same_inode = st->st_ino == mapping->inode;
	uint64_t bias;

	if (same_inode && major(st->st_dev) == mapping->major && minor(st->st_dev) == mapping->minor)
		return true;
	if (!elf || !bias_of(elf, mapping, &bias))
		return false;
	switch (match_memory(elf, tid, bias)) {
	case MATCH_SAME:
		return true;
	case MATCH_LIKE:
	case MATCH_UNKNOWN:
		return same_inode;
	case MATCH_DIFFERENT:
		break;
	}
	return false;
}

/*
 * The image that another process's module, or another module, has of the file that `st` is of. The times of a file that
 * was written over are those of its last change, but for what is changed through a mapping, or within a tick of the
 * clock: so the process's memory must not speak against it. NULL where there is none.
 */
static struct mw_elf *find_shared(pid_t tid, const struct mw_mapping *mapping, const struct stat *st)
{
	struct mw_elf *elf = mw_elf_find_shared(st);
	uint64_t bias;

	/* Another process may have the symbols that were not found for that one. */
	if (elf && !mw_elf_lacks_symbols(elf) && is_mapped_file(tid, mapping, st, elf) &&
	    !(bias_of(elf, mapping, &bias) && match_memory(elf, tid, bias) == MATCH_DIFFERENT))
		return elf;
	mw_elf_unref(elf);
	return NULL;
}

/* What the name led to. */
struct attempt {
	struct mw_elf *elf;   /* the mapped file's image */
	struct mw_error *err; /* the mapped file is no ELF file */
	int errnum;           /* the name could not be opened; 0: it leads to another file */
};

static struct attempt open_by_name(pid_t tid, const struct mw_mapping *mapping, const char *path)
{
	MW_CLOSE int fd = mw_root_open(tid, path);
	struct attempt attempt = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		attempt.errnum = errno;
		return attempt;
	}
	attempt.elf = find_shared(tid, mapping, &st);
	if (attempt.elf)
		return attempt;
	attempt.err = mw_elf_open(fd, path, &attempt.elf);
	if (is_mapped_file(tid, mapping, &st, attempt.elf))
		return attempt;
	/* What is wrong with some other file does not matter. */
	mw_elf_unref(attempt.elf);
	mw_error_destroy(attempt.err);
	return (struct attempt){0};
}

static int open_by_mapping(pid_t tid, const struct mw_mapping *mapping)
{
	return mw_root_open_link(mw_path("/proc/%d/map_files/%llx-%llx", (int)tid, (unsigned long long)mapping->start,
					 (unsigned long long)mapping->end)
					 .text);
}

/* The program's own file is to be had without a capability, whatever has become of its name. */
static int open_program(pid_t tid, const struct mw_mapping *mapping)
{
	int fd = mw_root_open_link(mw_path("/proc/%d/exe", (int)tid).text);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && is_mapped_file(tid, mapping, &st, NULL))
		return fd;
	close(fd);
	return -1;
}

static struct mw_error *explain(struct mw_module *module, int by_name, int by_mapping)
{
	const char *first = "its file was replaced";
	char *text = NULL;
	int length;

	if (by_name == EMFILE || by_name == ENFILE || by_mapping == EMFILE || by_mapping == ENFILE)
		return say(module, strdup("its file cannot be opened: too many open files (raise ulimit -n)"));
	if (by_name == ENOENT || by_name == ENOTDIR)
		first = "its file was deleted";
	else if (by_name == ENXIO)
		first = "its name leads to something that is not a file";
	else if (by_name)
		first = "its file cannot be opened by name";
	if (by_mapping == EPERM || by_mapping == EACCES)
		length = asprintf(&text, "%s%s%s and map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", first,
				  by_name && by_name != ENOENT ? ": " : "",
				  by_name && by_name != ENOENT ? strerror(by_name) : "");
	else
		length = asprintf(&text, "%s, and its mapping cannot be opened: %s", first, strerror(by_mapping));
	return say(module, length < 0 ? NULL : text);
}

static struct mw_error *open_file(pid_t tid, const struct mw_mapping *mapping, struct mw_module *module)
{
	struct attempt attempt = open_by_name(tid, mapping, module->path);
	MW_CLOSE int fd = -1;
	struct stat st;

	module->elf = attempt.elf;
	if (attempt.elf || attempt.err)
		return say_error(module, attempt.err);
	fd = open_by_mapping(tid, mapping);
	if (fd < 0) {
		int errnum = errno;

		fd = open_program(tid, mapping);
		if (fd < 0)
			return explain(module, attempt.errnum, errnum);
	}
	/* This is the mapped file by definition. */
	if (fstat(fd, &st) == 0)
		module->elf = find_shared(tid, mapping, &st);
	if (module->elf)
		return NULL;
	return say_error(module, mw_elf_open(fd, module->path, &module->elf));
}

/* The vdso, from memory. */
static struct mw_error *open_vdso(pid_t tid, const struct mw_mapping *mapping, struct mw_module *module)
{
	uint64_t size = mapping->end - mapping->start;
	MW_FREE uint8_t *bytes = NULL;

	if (size > MAX_VDSO)
		return say(module, strdup("it is too large"));
	bytes = malloc(size);
	if (!bytes)
		return mw_error_nomem();
	if (!mw_peek(tid, mapping->start, bytes, size))
		return say_error(module, mw_error_create(MW_ERROR_SYSTEM, errno, "its memory cannot be read"));
	return say_error(module, mw_elf_open_memory(bytes, size, mapping->path, &module->elf));
}

/* --- the table ------------------------------------------------------------------------------------------- */

/* What one refresh works with. */
struct pass {
	struct mw_modules *modules;
	const struct mw_maps *maps;
	pid_t tid;
	char *prefix;              /* mw_root_prefix */
	struct mw_module **owners; /* one a mapping; NULL: belongs to no module */
	struct mw_module *last;    /* neighbours mostly have one owner */
};

struct mw_error *mw_modules_create(struct mw_modules **out)
{
	struct mw_modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return mw_error_nomem();
	*out = modules;
	return NULL;
}

static void free_module(struct mw_module *module)
{
	if (!module)
		return;
	mw_elf_unref(module->elf);
	mw_named_frames_destroy(module->named);
	free(module->path);
	free(module->why);
	free(module);
}

void mw_modules_destroy(struct mw_modules *modules)
{
	if (!modules)
		return;
	for (uint32_t i = 0; i < mw_modules_count(modules); i++)
		free_module(mw_modules_get(modules, i));
	mw_shared_list_deinit(&modules->items);
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

	MW_EACH(mapping, maps->items, maps->count) {
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
static bool owns(const struct mw_module *module, const struct mw_mapping *mapping)
{
	if (module->gone || !same_file(module, mapping))
		return false;
	if (is_vdso(mapping))
		return module->start == mapping->start;
	return !module->elf || fits(module->elf, mapping, module->bias);
}

static struct mw_module *find_owner(struct pass *pass, const struct mw_mapping *mapping)
{
	struct mw_modules *modules = pass->modules;

	if (pass->last && owns(pass->last, mapping))
		return pass->last;
	for (uint32_t i = 0; i < mw_modules_count(modules); i++)
		if (owns(mw_modules_get(modules, i), mapping))
			return mw_modules_get(modules, i);
	return NULL;
}

/* The image of an earlier load of the same file: dlopen and dlclose in a loop must not cost a descriptor each. */
static struct mw_elf *share_image(struct pass *pass, const struct mw_mapping *mapping)
{
	for (uint32_t i = mw_modules_count(pass->modules); i-- > 0;) {
		const struct mw_module *module = mw_modules_get(pass->modules, i);
		uint64_t bias;

		if (!module->elf || !mapping->inode || !same_file(module, mapping))
			continue;
		/* The file may have been written over since. */
		if (bias_of(module->elf, mapping, &bias) &&
		    match_memory(module->elf, pass->tid, bias) == MATCH_DIFFERENT)
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
		MW_TRY(open_vdso(pass->tid, mapping, module));
	else
		module->elf = share_image(pass, mapping);
	if (!module->elf && !module->why) {
		MW_TRY(open_file(pass->tid, mapping, module));
		if (module->elf && !module->elf->is_shared) {
			MW_TRY(mw_elf_find_symbols(module->elf, pass->tid, module->path));
			mw_elf_share(module->elf);
		}
	}
	if (module->elf && !module->elf->is_64) {
		mw_elf_unref(module->elf);
		module->elf = NULL;
		return say(module, strdup("it is a 32-bit file"));
	}
	if (module->elf)
		*is_load = bias_of(module->elf, mapping, &module->bias);
	return NULL;
}

static struct mw_error *append(struct mw_modules *modules, struct mw_module *module)
{
	module->number = mw_shared_list_count(&modules->items);
	return mw_shared_list_add(&modules->items, module) ? NULL : mw_error_nomem();
}

/* *out is NULL where the mapping is no load of its file. */
static struct mw_error *add_module(struct pass *pass, const struct mw_mapping *mapping, struct mw_module **out)
{
	struct mw_module *module = calloc(1, sizeof(*module));
	struct mw_error *err;
	bool is_load = false;

	if (!module)
		return mw_error_nomem();
	module->path = strdup(mw_root_strip(mapping->path, pass->prefix));
	module->inode = mapping->inode;
	module->major = mapping->major;
	module->minor = mapping->minor;
	module->start = mapping->start;
	module->end = mapping->end;
	err = module->path ? open_image(pass, mapping, module, &is_load) : mw_error_nomem();
	if (!err && is_load)
		err = append(pass->modules, module);
	if (err || !is_load) {
		free_module(module);
		module = NULL;
	}
	if (!err)
		*out = module;
	return err;
}

/* Executable mappings make modules, or find theirs. */
static struct mw_error *claim_code(struct pass *pass)
{
	for (size_t i = 0; i < pass->maps->count; i++) {
		const struct mw_mapping *mapping = &pass->maps->items[i];
		struct mw_module *owner;

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
		struct mw_module *owner;

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
static void commit(struct pass *pass, struct mw_module_range *ranges, size_t *removed)
{
	struct mw_modules *modules = pass->modules;
	size_t count = 0, gone = 0;

	for (uint32_t i = 0; i < mw_modules_count(modules); i++) {
		struct mw_module *module = mw_modules_get(modules, i);

		if (module->gone)
			continue;
		if (module->seen) {
			module->start = UINT64_MAX;
			module->end = 0;
		} else {
			module->gone = true;
			gone++;
		}
	}
	for (size_t i = 0; i < pass->maps->count; i++) {
		const struct mw_mapping *mapping = &pass->maps->items[i];
		struct mw_module *module = pass->owners[i];

		if (!module)
			continue;
		if (mapping->start < module->start)
			module->start = mapping->start;
		if (mapping->end > module->end)
			module->end = mapping->end;
		module->deleted = mapping->deleted;
		ranges[count++] = (struct mw_module_range){mapping->start, mapping->end, module};
	}
	free(modules->ranges);
	modules->ranges = ranges;
	modules->range_count = count;
	*removed = gone;
}

static struct mw_error *take_in(struct pass *pass, size_t *removed)
{
	struct mw_module_range *ranges;

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
	uint32_t before = mw_modules_count(modules);
	size_t gone = 0;
	struct mw_error *err = NULL;

	if (!modules->valid || signature != modules->signature) {
		for (uint32_t i = 0; i < before; i++)
			mw_modules_get(modules, i)->seen = false;
		pass.prefix = mw_root_prefix(tid);
		pass.owners = calloc(maps->count + 1, sizeof(*pass.owners));
		err = pass.prefix && pass.owners ? take_in(&pass, &gone) : mw_error_nomem();
		free(pass.prefix);
		free(pass.owners);
	}
	if (err) {
		/* Nothing refers to what was added before the failure. */
		while (mw_modules_count(modules) > before)
			free_module(mw_shared_list_pop(&modules->items));
		return err;
	}
	modules->signature = signature;
	modules->valid = true;
	if (added)
		*added = mw_modules_count(modules) - before;
	if (removed)
		*removed = gone;
	return NULL;
}

struct mw_module *mw_modules_find(const struct mw_modules *modules, mw_addr addr)
{
	size_t before = mw_vector_up_to(modules->ranges, modules->range_count, sizeof(*modules->ranges),
					offsetof(struct mw_module_range, start), addr);

	return before && addr < modules->ranges[before - 1].end ? modules->ranges[before - 1].module : NULL;
}

struct mw_error *mw_modules_add(struct mw_modules *modules, const char *path, uint64_t bias, struct mw_elf *elf)
{
	struct mw_module *module = calloc(1, sizeof(*module));
	struct mw_error *err = NULL;

	if (module)
		module->path = strdup(path ? path : "");
	if (!module || !module->path) {
		free(module);
		mw_elf_unref(elf);
		return mw_error_nomem();
	}
	module->bias = bias;
	module->elf = elf;
	module->gone = true;
	err = append(modules, module);
	if (err)
		free_module(module);
	return err;
}

struct mw_error *mw_modules_add_named(struct mw_modules *modules, const char *path, struct mw_named_frames **named,
				      uint32_t *number)
{
	struct mw_named_frames *frames;
	struct mw_error *err;

	MW_TRY(mw_named_frames_create(&frames));
	*number = mw_modules_count(modules);
	err = mw_modules_add(modules, path, 0, NULL);
	if (err) {
		mw_named_frames_destroy(frames);
		return err;
	}
	mw_modules_get(modules, *number)->named = *named = frames;
	return NULL;
}
