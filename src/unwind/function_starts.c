// SPDX-License-Identifier: MIT
/* function_starts.c: where a module's functions begin and end (function_starts.h). */
#include "unwind/function_starts.h"

#include "base/vector.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SCANNED_CODE (UINT64_C(8) << 20) /* bytes of code that are looked through for calls */

static bool add(struct mw_function_starts *starts, uint64_t vaddr, uint64_t size, bool part)
{
	if (!MW_VECTOR_ROOM(starts->items, starts->count, starts->capacity))
		return false;
	starts->items[starts->count++] = (struct mw_function_start){vaddr, size, part};
	return true;
}

/* gcc and clang name what they put aside of a function "f.cold" or "f.cold.1". */
static bool is_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (cold[5] == '\0' || cold[5] == '.');
}

static bool see_function(void *context, const struct mw_elf_symbol *symbol)
{
	struct mw_function_starts *starts = context;

	if (!symbol->function)
		return true;
	if (strcmp(symbol->name, "exit") == 0)
		starts->exit = symbol->vaddr;
	return add(starts, symbol->vaddr, symbol->size, is_part(symbol->name));
}

/* Where the program begins is often no function by its symbol, and nothing calls it. */
static void add_entry(struct mw_function_starts *starts, const struct mw_elf *elf)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, offsetof(Elf64_Ehdr, e_entry), sizeof(Elf64_Addr));
	Elf64_Addr entry = 0;

	if (bytes)
		memcpy(&entry, bytes, sizeof(entry));
	if (entry)
		(void)add(starts, entry, 0, false);
}

static void scan_segment(struct mw_function_starts *starts, const struct mw_elf *elf, const struct mw_arch *arch,
			 const struct mw_elf_segment *segment)
{
	size_t size = (size_t)segment->file_size;
	const uint8_t *bytes = mw_elf_span(elf, segment->vaddr, size);
	mw_addr target;

	for (size_t at = 0; bytes && (at = arch->call_target(bytes, size, segment->vaddr, at, &target)) < size;)
		if (target - segment->vaddr < size && !add(starts, target, 0, false))
			return;
}

static void scan_calls(struct mw_function_starts *starts, const struct mw_elf *elf, const struct mw_arch *arch)
{
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;
	uint64_t code = 0;

	for (size_t i = 0; i < count; i++)
		if (segments[i].exec && segments[i].file_size <= SCANNED_CODE)
			code += segments[i].file_size;
		else if (segments[i].exec)
			return;
	for (size_t i = 0; i < count && code <= SCANNED_CODE; i++)
		if (segments[i].exec)
			scan_segment(starts, elf, arch, &segments[i]);
}

/* Of those at one place the largest, parts of others last: they are named so by somebody who knows. */
static int compare(const void *a, const void *b)
{
	const struct mw_function_start *left = a, *right = b;

	if (left->vaddr != right->vaddr)
		return left->vaddr < right->vaddr ? -1 : 1;
	if (left->part != right->part)
		return left->part ? -1 : 1;
	return (left->size < right->size) - (left->size > right->size);
}

void mw_function_starts_init(struct mw_function_starts *starts, struct mw_elf *elf, const struct mw_arch *arch)
{
	size_t kept = 0;

	*starts = (struct mw_function_starts){0};
	mw_error_destroy(mw_elf_each_symbol(elf, see_function, starts));
	add_entry(starts, elf);
	scan_calls(starts, elf, arch);
	if (starts->count)
		qsort(starts->items, starts->count, sizeof(*starts->items), compare);
	for (size_t i = 0; i < starts->count; i++)
		if (!kept || starts->items[kept - 1].vaddr != starts->items[i].vaddr)
			starts->items[kept++] = starts->items[i];
	starts->count = kept;
}

void mw_function_starts_deinit(struct mw_function_starts *starts)
{
	free(starts->items);
	*starts = (struct mw_function_starts){0};
}

/* The index of the first that begins at `vaddr` or behind it. */
static size_t first_from(const struct mw_function_starts *starts, uint64_t vaddr)
{
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->items[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct mw_function_start *mw_function_starts_from(const struct mw_function_starts *starts, uint64_t vaddr)
{
	size_t index = first_from(starts, vaddr);

	return index < starts->count ? &starts->items[index] : NULL;
}

bool mw_function_starts_find(const struct mw_function_starts *starts, uint64_t vaddr, struct mw_code_function *out)
{
	size_t next = first_from(starts, vaddr + 1);
	const struct mw_function_start *start = next ? &starts->items[next - 1] : NULL;

	*out = (struct mw_code_function){0};
	if (next < starts->count)
		out->end = starts->items[next].vaddr;
	/* A call may lead into a function whose size is known: that is its own affair, or none. */
	for (size_t i = next, tried = 0; i-- > 0 && tried < 16; tried++)
		if (starts->items[i].size && vaddr - starts->items[i].vaddr < starts->items[i].size) {
			start = &starts->items[i];
			break;
		}
	if (!start)
		return true;
	if (start->part)
		return false;
	if (start->size && vaddr - start->vaddr < start->size) {
		*out = (struct mw_code_function){start->vaddr, start->vaddr + start->size, true};
		return true;
	}
	if (start->size == 0)
		out->start = start->vaddr;
	return true;
}
