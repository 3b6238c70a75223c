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

bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module)
{
	int count = dwfl_module_getsymtab(module), first_global = dwfl_module_getsymtab_first_global(module);

	if (count < 1 || count > MOST || first_global < 0)
		return false;
	*index = (struct mw_symbol_index){.first_global = (uint32_t)first_global};
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &start, NULL, NULL, NULL);

		if (!is_of_interest(name, &symbol))
			continue;
		/* One that ends beyond all addresses can't be known of here. */
		if (symbol.st_size > UINT64_MAX - start ||
		    !mw_ranges_add(&index->symbols, start, start + symbol.st_size,
				   (uint64_t)strength_of(&symbol) << 32 | (uint32_t)i)) {
			mw_ranges_deinit(&index->symbols);
			return false;
		}
	}
	mw_ranges_sort(&index->symbols);
	return true;
}

static uint32_t number_of(const struct mw_range *symbol)
{
	return (uint32_t)symbol->value;
}

/* Symbols that hold an address, in the table's order. */
struct around {
	const struct mw_range *symbols[AROUND];
	size_t count;
};

/* False: there are too many. */
static bool look_around(const struct mw_symbol_index *index, size_t before, uint64_t address, struct around *around)
{
	const struct mw_range *symbol;

	around->count = 0;
	while ((symbol = mw_ranges_next(&index->symbols, address, &before)) != NULL) {
		size_t at = around->count;

		if (at == AROUND)
			return false;
		for (; at > 0 && number_of(around->symbols[at - 1]) > number_of(symbol); at--)
			around->symbols[at] = around->symbols[at - 1];
		around->symbols[at] = symbol;
		around->count++;
	}
	return true;
}

static bool is_better(const struct mw_range *symbol, const struct mw_range *best)
{
	if (!best || best->start < symbol->start || best->value >> 32 < symbol->value >> 32)
		return true;
	return best->start == symbol->start && best->end > symbol->end && best->value >> 32 == symbol->value >> 32;
}

/* The best of those that are global, or of the others; NULL: there is none. */
static const struct mw_range *best_of(const struct mw_symbol_index *index, const struct around *around, bool global)
{
	const struct mw_range *best = NULL;

	for (size_t i = 0; i < around->count; i++)
		if ((number_of(around->symbols[i]) >= index->first_global) == global &&
		    is_better(around->symbols[i], best))
			best = around->symbols[i];
	return best;
}

enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_range **symbol)
{
	size_t before = mw_ranges_up_to(&index->symbols, address);
	const struct mw_range *last = before ? &index->symbols.items[before - 1] : NULL;
	struct around around;

	if (!look_around(index, before, address, &around))
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, true);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* A symbol without a size right there, which comes last, keeps libdwfl from looking at locals. */
	if (last && last->start == address && last->end == address)
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, false);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* One behind all that has a size? */
	return last && last->start >= last->reach ? MW_INDEX_ASK : MW_INDEX_NOTHING;
}
