// SPDX-License-Identifier: MIT
/*
 * symbolizer_index.c: which symbol an address belongs to (symbolizer_index.h).
 *
 * libdwfl goes through the table in its order, globals first, and locals only where no global with a size holds the
 * address. One that begins nearer to the address is taken for the one that it had, and so is one of a stronger binding
 * wherever it begins; of those that begin together the shorter one unless its binding is weaker. So the order of the
 * table counts, and those that hold the address are gone through in that order here. A symbol without a size is an
 * assembler's label, and is taken only where nothing with a size ends behind it: such an address is libdwfl's to judge.
 */
#include "symbol/symbolizer_index.h"

#include "base/vector.h"

#include <stdlib.h>

#define MOST   (1 << 21) /* symbols */
#define AROUND 32u       /* symbols that hold an address */

static uint32_t strength_of(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	case STB_LOCAL:
		return 1;
	default:
		return 0;
	}
}

static bool is_of_interest(const char *name, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	return name && name[0] && symbol->st_shndx != SHN_UNDEF && type != STT_SECTION && type != STT_FILE &&
	       type != STT_TLS;
}

static int by_start(const void *a, const void *b)
{
	const struct mw_indexed_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* False: there is one that can't be known of here. */
static bool collect(struct mw_symbol_index *index, Dwfl_Module *module, int count)
{
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &start, NULL, NULL, NULL);

		if (!is_of_interest(name, &symbol))
			continue;
		if (symbol.st_size > UINT64_MAX - start)
			return false;
		index->items[index->count++] = (struct mw_indexed_symbol){.start = start,
									  .end = start + symbol.st_size,
									  .number = (uint32_t)i,
									  .strength = strength_of(&symbol)};
	}
	return true;
}

bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module)
{
	int count = dwfl_module_getsymtab(module), first_global = dwfl_module_getsymtab_first_global(module);
	uint64_t reach = 0;

	if (count < 1 || count > MOST || first_global < 0)
		return false;
	*index = (struct mw_symbol_index){.first_global = (uint32_t)first_global};
	index->items = malloc((size_t)count * sizeof(*index->items));
	if (!index->items)
		return false;
	if (!collect(index, module, count)) {
		mw_symbol_index_deinit(index);
		return false;
	}
	qsort(index->items, index->count, sizeof(*index->items), by_start);
	for (size_t i = 0; i < index->count; i++) {
		reach = index->items[i].end > reach ? index->items[i].end : reach;
		index->items[i].reach = reach;
	}
	return true;
}

void mw_symbol_index_deinit(struct mw_symbol_index *index)
{
	free(index->items);
	*index = (struct mw_symbol_index){0};
}

/* How many begin at or before the address. */
static size_t count_before(const struct mw_symbol_index *index, uint64_t address)
{
	return mw_vector_up_to(index->items, index->count, sizeof(*index->items),
			       offsetof(struct mw_indexed_symbol, start), address);
}

/* Symbols that hold an address, in the table's order. */
struct around {
	const struct mw_indexed_symbol *symbols[AROUND];
	size_t count;
};

/* False: there are too many. */
static bool look_around(const struct mw_symbol_index *index, size_t before, uint64_t address, struct around *around)
{
	around->count = 0;
	for (size_t i = before; i > 0 && index->items[i - 1].reach > address; i--) {
		const struct mw_indexed_symbol *symbol = &index->items[i - 1];
		size_t at = around->count;

		if (symbol->end <= address)
			continue;
		if (at == AROUND)
			return false;
		for (; at > 0 && around->symbols[at - 1]->number > symbol->number; at--)
			around->symbols[at] = around->symbols[at - 1];
		around->symbols[at] = symbol;
		around->count++;
	}
	return true;
}

static bool is_better(const struct mw_indexed_symbol *symbol, const struct mw_indexed_symbol *best)
{
	if (!best || best->start < symbol->start || best->strength < symbol->strength)
		return true;
	return best->start == symbol->start && best->end > symbol->end && best->strength == symbol->strength;
}

/* The best of those that are global, or of the others; NULL: there is none. */
static const struct mw_indexed_symbol *best_of(const struct mw_symbol_index *index, const struct around *around,
					       bool global)
{
	const struct mw_indexed_symbol *best = NULL;

	for (size_t i = 0; i < around->count; i++)
		if ((around->symbols[i]->number >= index->first_global) == global &&
		    is_better(around->symbols[i], best))
			best = around->symbols[i];
	return best;
}

/* Does a symbol without a size stand right there? */
static bool is_labelled(const struct mw_symbol_index *index, size_t before, uint64_t address)
{
	for (size_t i = before; i > 0 && index->items[i - 1].start == address; i--)
		if (index->items[i - 1].end == address)
			return true;
	return false;
}

enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_indexed_symbol **symbol)
{
	size_t before = count_before(index, address);
	struct around around;

	if (!look_around(index, before, address, &around))
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, true);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* A label keeps libdwfl from looking at locals. */
	if (is_labelled(index, before, address))
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, false);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* A label behind all that has a size? */
	return before > 0 && index->items[before - 1].start >= index->items[before - 1].reach ? MW_INDEX_ASK
											      : MW_INDEX_NOTHING;
}
