// SPDX-License-Identifier: MIT
/* pymalloc.c: see pymalloc.h. */
#include "alloc/pymalloc.h"

#include "alloc/tables.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "symbol/frames.h"

#include <memwatch/arch.h>
#include <stdlib.h>
#include <string.h>

#define DATA_MAX (UINT64_C(64) << 20) /* bytes of a module's data that are looked through */
#define WORD     sizeof(uint64_t)
#define DOMAIN   6u /* words: the letter, the context, the functions */
#define FIRST    2u /* … before the functions */
#define PADDING  15 /* the longest instruction */
/* CPython itself takes a function's address in so many places at most: where it sets the pointers up, and asks whether
 * they are set so. */
#define PLACES 5

static const struct mw_entry_point entries[] = {
	MW_ROW("_PyObject_Malloc", "PyObject_Malloc", MW_ROLE_MALLOC, MW_NO_ARG, MW_NO_ARG, 1, false),
	MW_ROW("_PyObject_Calloc", "PyObject_Calloc", MW_ROLE_CALLOC, MW_NO_ARG, 1, 2, false),
	MW_ROW("_PyObject_Realloc", "PyObject_Realloc", MW_ROLE_REALLOC, 1, MW_NO_ARG, 2, false),
	MW_ROW("_PyObject_Free", "PyObject_Free", MW_ROLE_FREE, 1, MW_NO_ARG, MW_NO_ARG, false),
	MW_ROW_END,
};

const struct mw_family mw_family_pymalloc = {
	.name = "pymalloc",
	.kind = MW_KIND_HEAP,
	.entries = entries,
};

/* --- is it CPython? ----------------------------------------------------------------------------------------------- */

bool mw_pymalloc_may_be_in(struct mw_elf *elf)
{
	struct mw_named_symbol runtime = {.name = "_PyRuntime"};

	return mw_error_none(mw_elf_find_named(elf, &runtime, 1)) && runtime.vaddr;
}

/* --- the functions ------------------------------------------------------------------------------------------------ */

/* A module as it lies in the process. */
struct search {
	const struct mw_elf *elf;
	const struct mw_arch *arch;
	struct mw_frame_table functions;
	mw_addr bias;
	bool (*read)(void *context, mw_addr addr, void *out, size_t size);
	void *context;
	struct mw_pymalloc *out;
};

static bool is_code(const struct search *search, uint64_t word)
{
	MW_EACH(segment, search->elf->segments, search->elf->segment_count)
		if (segment->exec && word - search->bias - segment->vaddr < segment->memory_size)
			return true;
	return false;
}

/* `words` of a domain: its letter, no context, and four functions. */
static bool is_domain(const struct search *search, const uint64_t *words, char letter)
{
	bool is = words[0] == (uint64_t)letter && words[1] == 0;

	for (size_t i = 0; is && i < MW_PYMALLOC_FUNCTIONS; i++)
		is = is_code(search, words[FIRST + i]);
	return is;
}

/* Where a jump to the function, or a nop before it, at `vaddr` leads to; 0: neither stands there. */
static uint64_t leads_to(const struct search *search, uint64_t vaddr)
{
	const uint8_t *bytes = mw_elf_span(search->elf, vaddr, PADDING);

	return bytes ? search->arch->leads_to(bytes, PADDING, vaddr) : 0;
}

/* The function that is entered at `vaddr`. */
static bool find_function(const struct search *search, uint64_t vaddr, struct mw_found_entry *out)
{
	uint64_t start, end, target = leads_to(search, vaddr);

	if (!mw_frame_table_find(&search->functions, vaddr, &start, &end) || start != vaddr) {
		/* A memwatch that was killed has left it so. */
		if (!target || !mw_frame_table_find(&search->functions, target, &start, &end) || start != target)
			return false;
	}
	out->vaddr = start;
	out->size = end - start;
	return true;
}

/* --- other entries ------------------------------------------------------------------------------------------------ */

static uint64_t find_jump(const struct search *search, uint64_t function)
{
	const struct mw_code_wanted wanted = {.target_start = function, .target_end = function + 1};

	MW_EACH(segment, search->elf->segments, search->elf->segment_count) {
		size_t size = 0, at = 0;
		const uint8_t *bytes = segment->exec ? mw_elf_bytes(search->elf, segment->vaddr, &size) : NULL;

		while (bytes &&
		       (at = search->arch->search(bytes, size, segment->vaddr, at, MW_CODE_BRANCHES, &wanted)) < size) {
			if (leads_to(search, segment->vaddr + at - 1) == function)
				return segment->vaddr + at - 1;
			at++;
		}
	}
	return 0;
}

static uint64_t find_other(const struct search *search, uint64_t function)
{
	for (uint64_t before = 1; before <= PADDING; before++)
		if (leads_to(search, function - before) == function)
			return function - before;
	return find_jump(search, function);
}

/* Is the address taken more often than by CPython itself: is a pointer compared with it? */
static bool is_inlined(const struct search *search, uint64_t function)
{
	const struct mw_code_wanted wanted = {.data = function};
	const uint32_t absolute = (uint32_t)function;
	size_t places = 0;

	MW_EACH(segment, search->elf->segments, search->elf->segment_count) {
		size_t size = 0, at = 0;
		const uint8_t *found, *bytes = segment->exec ? mw_elf_bytes(search->elf, segment->vaddr, &size) : NULL;

		if (!bytes)
			continue;
		for (; (at = search->arch->search(bytes, size, segment->vaddr, at, MW_CODE_TAKES_DATA, &wanted)) < size;
		     at++)
			places++;
		for (found = bytes; search->elf->is_executable && (found = memmem(found, size - (size_t)(found - bytes),
										  &absolute, sizeof(absolute)));
		     found++)
			places++;
	}
	return places > PLACES;
}

static void find_others(const struct search *search)
{
	struct mw_pymalloc *out = search->out;

	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS; i++) {
		out->others[i] = find_other(search, out->functions[i].vaddr);
		if (!out->others[i] && is_inlined(search, out->functions[i].vaddr))
			out->missing =
				"its functions are inlined where they are called, and there is no other way into "
				"one of them";
	}
}

/* --- where they are pointed to ------------------------------------------------------------------------------------ */

static void note_pointers(const struct search *search, mw_addr start, const uint64_t *words, size_t count)
{
	struct mw_pymalloc *out = search->out;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; words[i] && j < MW_PYMALLOC_FUNCTIONS; j++) {
			uint64_t vaddr = words[i] - search->bias;

			if ((vaddr != out->functions[j].vaddr && (!out->others[j] || vaddr != out->others[j])) ||
			    out->pointer_count == MW_PYMALLOC_POINTERS)
				continue;
			out->pointers[out->pointer_count].addr = start + i * WORD;
			out->pointers[out->pointer_count++].function = (uint8_t)j;
		}
}

/* The three domains stand at `words`. */
static bool take_functions(struct search *search, const uint64_t *words)
{
	const uint64_t *raw = words + FIRST, *mem = raw + DOMAIN, *object = mem + DOMAIN;
	struct mw_pymalloc *out = search->out;

	if (memcmp(mem, object, MW_PYMALLOC_FUNCTIONS * WORD) != 0) {
		out->missing = "this build keeps objects by mimalloc (it is a free-threaded one)";
		return true;
	}
	/* Built without pymalloc: each object is a block of malloc's. */
	if (memcmp(raw, mem, MW_PYMALLOC_FUNCTIONS * WORD) == 0)
		return false;
	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS; i++) {
		out->functions[i] = (struct mw_found_entry){.family = &mw_family_pymalloc, .entry = &entries[i]};
		if (!find_function(search, mem[i] - search->bias, &out->functions[i]))
			return false;
	}
	find_others(search);
	return true;
}

static bool search_words(struct search *search, mw_addr start, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i + (size_t)3 * DOMAIN <= count; i++)
		if (is_domain(search, words + i, 'r') && is_domain(search, words + i + DOMAIN, 'm') &&
		    is_domain(search, words + i + (size_t)2 * DOMAIN, 'o') && take_functions(search, words + i)) {
			if (!search->out->missing)
				note_pointers(search, start, words, count);
			return true;
		}
	return false;
}

/* They are all in one segment. */
static struct mw_error *search_segment(struct search *search, const struct mw_elf_segment *segment, bool *found)
{
	mw_addr start = (search->bias + segment->vaddr + WORD - 1) & ~(mw_addr)(WORD - 1);
	uint64_t size = segment->file_size < DATA_MAX ? segment->file_size : DATA_MAX;
	MW_FREE uint64_t *words = NULL;

	if (!segment->write || size < (uint64_t)4 * DOMAIN * WORD)
		return NULL;
	size = (size - WORD) & ~(uint64_t)(WORD - 1);
	words = malloc(size);
	if (!words)
		return mw_error_nomem();
	if (search->read(search->context, start, words, size))
		*found = search_words(search, start, words, size / WORD);
	return NULL;
}

struct mw_error *mw_pymalloc_find(struct mw_elf *elf, mw_addr bias,
				  bool (*read)(void *context, mw_addr addr, void *out, size_t size), void *context,
				  struct mw_pymalloc *out, bool *found)
{
	struct search search = {.elf = elf,
				.arch = mw_arch_find(elf->machine),
				.bias = bias,
				.read = read,
				.context = context,
				.out = out};
	struct mw_error *err = NULL;

	*found = false;
	*out = (struct mw_pymalloc){.missing = NULL};
	if (!search.arch || !mw_pymalloc_may_be_in(elf))
		return NULL;
	MW_TRY(mw_frame_table_init(&search.functions, elf));
	for (size_t i = 0; !err && !*found && i < elf->segment_count; i++)
		err = search_segment(&search, &elf->segments[i], found);
	mw_frame_table_deinit(&search.functions);
	return err;
}
