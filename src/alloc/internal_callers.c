// SPDX-License-Identifier: MIT
/*
 * internal_callers.c: where glibc frees what the program has freed already.
 *
 * A free puts small blocks into the thread's cache. When the thread ends, tcache_thread_shutdown (part of
 * __malloc_arena_thread_freeres, where it mostly is inlined) hands each to __libc_free again, and then the cache
 * itself, which no hooked function has allocated. It is found
 *  1. by name, where .symtab is there;
 *  2. by the message that it alone refers to (glibc 2.32 and later);
 *  3. by what it does: it sets a flag in thread-local storage and calls free, and is the one function that does
 *     (glibc 2.26 to 2.31; checked to be one, else there is no answer).
 */
#include "alloc/eh_index.h"
#include "alloc/x86_code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE     "tcache_thread_shutdown(): unaligned tcache chunk detected"
#define RANGE_LIMIT 8

static const char *const names[] = {"tcache_thread_shutdown", "tcache_thread_freeres", "__malloc_arena_thread_freeres",
				    "arena_thread_freeres", NULL};

struct ranges {
	struct mw_code_range items[RANGE_LIMIT];
	size_t count;
};

/* Addresses of free, and what the symbols say of the functions looked for. */
struct known {
	uint64_t frees[4];
	size_t free_count;
	struct ranges named;
};

static void add_range(struct ranges *ranges, struct mw_code_range range)
{
	for (size_t i = 0; i < ranges->count; i++)
		if (ranges->items[i].start == range.start)
			return;
	if (ranges->count < RANGE_LIMIT)
		ranges->items[ranges->count++] = range;
}

static void add_free(struct known *known, uint64_t vaddr)
{
	for (size_t i = 0; i < known->free_count; i++)
		if (known->frees[i] == vaddr)
			return;
	if (known->free_count < sizeof(known->frees) / sizeof(known->frees[0]))
		known->frees[known->free_count++] = vaddr;
}

static bool visit(void *context, const struct mw_elf_symbol *symbol)
{
	struct known *known = context;

	if (!symbol->function)
		return true;
	if (strcmp(symbol->name, "free") == 0 || strcmp(symbol->name, "__libc_free") == 0)
		add_free(known, symbol->vaddr);
	for (const char *const *name = names; *name; name++) {
		size_t length = strlen(*name);

		/* NAME itself or a clone of it: NAME.part.0 */
		if (strncmp(symbol->name, *name, length) == 0 &&
		    (symbol->name[length] == '\0' || symbol->name[length] == '.') && symbol->size &&
		    symbol->size <= UINT64_MAX - symbol->vaddr)
			add_range(&known->named, (struct mw_code_range){symbol->vaddr, symbol->vaddr + symbol->size});
	}
	return true;
}

/* Where the message stands, or 0. */
static uint64_t find_message(const struct mw_elf *elf)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(elf, &segments);

	for (size_t i = 0; i < count; i++) {
		size_t available = 0;
		const uint8_t *bytes = mw_elf_bytes(elf, segments[i].vaddr, &available);
		const uint8_t *found = bytes ? memmem(bytes, available, MESSAGE, sizeof(MESSAGE)) : NULL;

		if (found)
			return segments[i].vaddr + (uint64_t)(found - bytes);
	}
	return 0;
}

/* A search through all code: `suits` looks at the bytes around a place quickly, `take` reads the function there with
 * care and keeps it in `found` where it is the right one. */
struct scan {
	const struct mw_elf *elf;
	const struct mw_eh_index *index;
	const struct known *known;
	struct mw_x86_wanted wanted;
	struct ranges found;
	bool (*suits)(const struct scan *scan, const uint8_t *at, uint64_t vaddr);
	bool (*take)(const struct mw_x86_seen *seen);
};

/* Bytes before and behind a place that suits() may look at. */
#define SCAN_BEFORE 3
#define SCAN_BEHIND 4

static void consider(struct scan *scan, uint64_t vaddr)
{
	struct mw_code_range range;
	struct mw_x86_seen seen;

	if (mw_eh_index_find(scan->index, vaddr, &range) && mw_x86_inspect(scan->elf, range, &scan->wanted, &seen) &&
	    scan->take(&seen))
		add_range(&scan->found, range);
}

static void scan_code(struct scan *scan)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(scan->elf, &segments);

	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint8_t *bytes;

		if (!segments[i].exec)
			continue;
		bytes = mw_elf_bytes(scan->elf, segments[i].vaddr, &size);
		if (!bytes || size < SCAN_BEFORE + SCAN_BEHIND)
			continue;
		for (size_t at = SCAN_BEFORE; at <= size - SCAN_BEHIND; at++)
			if (scan->suits(scan, bytes + at, segments[i].vaddr + at))
				consider(scan, segments[i].vaddr + at);
	}
}

/* Where the 32-bit displacement at `at`, the end of its instruction, leads to. */
static uint64_t displaced(const uint8_t *at, uint64_t vaddr)
{
	int32_t displacement;

	memcpy(&displacement, at, sizeof(displacement));
	return vaddr + sizeof(displacement) + (uint64_t)(int64_t)displacement;
}

static bool suits_message(const struct scan *scan, const uint8_t *at, uint64_t vaddr)
{
	/* lea displacement(%rip), %reg: REX.W 8d 00reg101 */
	return (at[-1] & 0xc7) == 0x05 && at[-2] == 0x8d && (at[-3] & 0xfb) == 0x48 &&
	       displaced(at, vaddr) == scan->wanted.data;
}

static bool takes_message(const struct mw_x86_seen *seen)
{
	return seen->data;
}

static bool suits_branch(const struct scan *scan, const uint8_t *at, uint64_t vaddr)
{
	uint64_t target;

	if (at[-1] != 0xe9 && !(at[-2] == 0x0f && (at[-1] & 0xf0) == 0x80)) /* jmp, jcc */
		return false;
	target = displaced(at, vaddr);
	return target >= scan->wanted.target.start && target < scan->wanted.target.end;
}

static bool takes_branch(const struct mw_x86_seen *seen)
{
	return seen->branches && seen->calls;
}

static bool suits_flag(const struct scan *scan, const uint8_t *at, uint64_t vaddr)
{
	(void)scan;
	(void)vaddr;
	/* movb $imm, %fs:…: 64 [41] c6 */
	return at[0] == 0xc6 && (at[-1] == 0x64 || (at[-1] == 0x41 && at[-2] == 0x64));
}

static bool takes_flag(const struct mw_x86_seen *seen)
{
	return seen->tls_flags && seen->calls;
}

static struct scan scan_of(const struct mw_eh_index *index, const struct known *known)
{
	struct scan scan = {.elf = index->elf, .index = index, .known = known};

	scan.wanted.callees = known->frees;
	scan.wanted.callee_count = known->free_count;
	return scan;
}

/* The hot part of a function whose cold part `cold` is: it branches there and calls free. */
static void find_hot(const struct mw_eh_index *index, const struct known *known, struct mw_code_range cold,
		     struct ranges *ranges)
{
	struct scan scan = scan_of(index, known);

	scan.wanted.target = cold;
	scan.suits = suits_branch;
	scan.take = takes_branch;
	scan_code(&scan);
	for (size_t i = 0; i < scan.found.count; i++)
		if (scan.found.items[i].start != cold.start)
			add_range(ranges, scan.found.items[i]);
}

static void find_by_message(const struct mw_eh_index *index, const struct known *known, uint64_t message,
			    struct ranges *ranges)
{
	struct scan scan = scan_of(index, known);

	scan.wanted.data = message;
	scan.suits = suits_message;
	scan.take = takes_message;
	scan_code(&scan);
	for (size_t i = 0; i < scan.found.count; i++) {
		struct mw_x86_seen seen;

		if (mw_x86_inspect(scan.elf, scan.found.items[i], &scan.wanted, &seen) && seen.calls)
			add_range(ranges, scan.found.items[i]);
		else
			find_hot(index, known, scan.found.items[i], ranges);
	}
}

static void find_by_structure(const struct mw_eh_index *index, const struct known *known, struct ranges *ranges)
{
	struct scan scan = scan_of(index, known);

	scan.suits = suits_flag;
	scan.take = takes_flag;
	scan_code(&scan);
	if (scan.found.count == 1)
		add_range(ranges, scan.found.items[0]);
}

static void find_in_code(const struct mw_elf *elf, const struct known *known, struct ranges *ranges)
{
	struct mw_eh_index index;
	uint64_t message;

	if (mw_elf_machine(elf) != EM_X86_64 || !mw_eh_index_init(&index, elf))
		return;
	message = find_message(elf);
	if (message)
		find_by_message(&index, known, message, ranges);
	if (!ranges->count)
		find_by_structure(&index, known, ranges);
}

struct mw_error *mw_alloc_internal_callers(struct mw_elf *elf, struct mw_code_range **ranges, size_t *count)
{
	struct known known = {0};
	struct ranges found = {0};
	struct mw_code_range *result;

	if (mw_alloc_is_glibc(elf)) {
		MW_TRY(mw_elf_each_symbol(elf, visit, &known));
		found = known.named;
		if (!found.count)
			find_in_code(elf, &known, &found);
	}
	result = calloc(found.count + 1, sizeof(*result));
	if (!result)
		return mw_error_nomem();
	memcpy(result, found.items, found.count * sizeof(*result));
	*ranges = result;
	*count = found.count;
	return NULL;
}
