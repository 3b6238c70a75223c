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
 * Later ones (2.43 does) may free them by an inner function: then nobody is to be found.
 */
#include "alloc/families.h"

#include "symbol/frames.h"

#include <memwatch/arch.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE     "tcache_thread_shutdown(): unaligned tcache chunk detected"
#define RANGE_LIMIT 8

/* Functions longer than this are none that anybody asks about. */
#define FUNCTION_LIMIT (64U << 10)

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
	for (size_t i = 0; i < elf->segment_count; i++) {
		uint64_t vaddr = elf->segments[i].vaddr;
		size_t available = 0;
		const uint8_t *bytes = mw_elf_bytes(elf, vaddr, &available);
		const uint8_t *found = bytes ? memmem(bytes, available, MESSAGE, sizeof(MESSAGE)) : NULL;

		if (found)
			return vaddr + (uint64_t)(found - bytes);
	}
	return 0;
}

/* A search through all code for functions that do `deed`. */
struct scan {
	const struct mw_elf *elf;
	const struct mw_arch *arch;
	const struct mw_frame_table *functions;
	struct mw_code_wanted wanted;
	enum mw_code_deed deed;
	struct ranges found;
};

static bool inspect(const struct scan *scan, struct mw_code_range range, struct mw_code_seen *seen)
{
	const uint8_t *bytes;

	if (range.end <= range.start || range.end - range.start > FUNCTION_LIMIT)
		return false;
	bytes = mw_elf_span(scan->elf, range.start, range.end - range.start);
	return bytes && scan->arch->inspect(bytes, range.end - range.start, range.start, &scan->wanted, seen);
}

/* Is that, of a function that does the deed, what was looked for? */
static bool suits(enum mw_code_deed deed, const struct mw_code_seen *seen)
{
	if (deed == MW_CODE_TAKES_DATA)
		return seen->data;
	return seen->calls && (deed == MW_CODE_BRANCHES ? seen->branches : seen->flags);
}

static void consider(struct scan *scan, uint64_t vaddr)
{
	struct mw_code_range range;
	struct mw_code_seen seen;

	if (mw_frame_table_find(scan->functions, vaddr, &range.start, &range.end) && inspect(scan, range, &seen) &&
	    suits(scan->deed, &seen))
		add_range(&scan->found, range);
}

static void scan_segment(struct scan *scan, uint64_t vaddr)
{
	size_t size = 0, at = 0;
	const uint8_t *bytes = mw_elf_bytes(scan->elf, vaddr, &size);

	if (!bytes)
		return;
	while ((at = scan->arch->search(bytes, size, vaddr, at, scan->deed, &scan->wanted)) < size)
		consider(scan, vaddr + at++);
}

static void scan_code(struct scan *scan)
{
	for (size_t i = 0; i < scan->elf->segment_count; i++)
		if (scan->elf->segments[i].exec)
			scan_segment(scan, scan->elf->segments[i].vaddr);
}

/* The hot part of a function whose cold part `cold` is: it branches there and calls free. */
static void find_hot(struct scan scan, struct mw_code_range cold, struct ranges *ranges)
{
	scan.found.count = 0;
	scan.wanted.target_start = cold.start;
	scan.wanted.target_end = cold.end;
	scan.deed = MW_CODE_BRANCHES;
	scan_code(&scan);
	for (size_t i = 0; i < scan.found.count; i++)
		if (scan.found.items[i].start != cold.start)
			add_range(ranges, scan.found.items[i]);
}

static void find_by_message(struct scan scan, uint64_t message, struct ranges *ranges)
{
	scan.wanted.data = message;
	scan.deed = MW_CODE_TAKES_DATA;
	scan_code(&scan);
	for (size_t i = 0; i < scan.found.count; i++) {
		struct mw_code_seen seen;

		if (inspect(&scan, scan.found.items[i], &seen) && seen.calls)
			add_range(ranges, scan.found.items[i]);
		else
			find_hot(scan, scan.found.items[i], ranges);
	}
}

static void find_by_structure(struct scan scan, struct ranges *ranges)
{
	scan.deed = MW_CODE_SETS_FLAG;
	scan_code(&scan);
	if (scan.found.count == 1)
		add_range(ranges, scan.found.items[0]);
}

static struct mw_error *find_in_code(const struct mw_elf *elf, const struct known *known, struct ranges *ranges)
{
	struct mw_frame_table functions;
	struct scan scan = {.elf = elf, .arch = mw_arch_find(elf->machine), .functions = &functions};
	uint64_t message;

	if (!scan.arch)
		return NULL;
	MW_TRY(mw_frame_table_init(&functions, elf));
	scan.wanted.callees = known->frees;
	scan.wanted.callee_count = known->free_count;
	message = find_message(elf);
	if (message)
		find_by_message(scan, message, ranges);
	else
		find_by_structure(scan, ranges);
	mw_frame_table_deinit(&functions);
	return NULL;
}

static struct mw_error *make_ranges(struct mw_elf *elf, const void *context, void **out)
{
	struct ranges *found = calloc(1, sizeof(*found));
	struct known known = {0};
	struct mw_error *err;

	(void)context;
	if (!found)
		return mw_error_nomem();
	err = mw_elf_each_symbol(elf, visit, &known);
	*found = known.named;
	if (!err && !found->count)
		err = find_in_code(elf, &known, found);
	if (err)
		free(found);
	else
		*out = found;
	return err;
}

struct mw_error *mw_alloc_internal_callers(struct mw_elf *elf, struct mw_code_range **ranges, size_t *count)
{
	static const struct mw_elf_fact_kind kind = {make_ranges, free};
	static const struct ranges none;
	const uint64_t key[2] = {0};
	const void *fact = &none;
	const struct ranges *found;
	struct mw_code_range *result;

	if (mw_alloc_is_glibc(elf))
		MW_TRY(mw_elf_fact(elf, &kind, key, NULL, &fact));
	found = fact;
	result = calloc(found->count + 1, sizeof(*result));
	if (!result)
		return mw_error_nomem();
	memcpy(result, found->items, found->count * sizeof(*result));
	*ranges = result;
	*count = found->count;
	return NULL;
}
