// SPDX-License-Identifier: MIT
/* families.c: the list of families, and which of their entry points a module defines. */
#include "alloc/families.h"

#include "alloc/tables.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Where an address has names of several families the first one here names it. */
const struct mw_family *const mw_families[] = {
	&mw_family_libc, &mw_family_cxx, &mw_family_jemalloc, &mw_family_tcmalloc, &mw_family_mimalloc,
	&mw_family_vm,   NULL,
};

/* A row of a table, and its place among all rows. */
struct row {
	const struct mw_family *family;
	const struct mw_entry_point *entry;
	size_t place;
};

/* A definition of a row that was seen in the module. */
struct match {
	struct row row;
	uint64_t vaddr, size;
	bool dynamic;
};

struct search {
	struct row *rows; /* by symbol name */
	size_t row_count;
	struct match *matches;
	size_t count, capacity;
	bool no_memory;
	bool is_static;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->entry->symbol, ((const struct row *)b)->entry->symbol);
}

/* Table order; of one name's definitions the dynamic one first. */
static int compare_places(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->row.place != y->row.place)
		return x->row.place < y->row.place ? -1 : 1;
	if (x->dynamic != y->dynamic)
		return x->dynamic ? -1 : 1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return 0;
}

static bool is_skipped(const struct mw_family *family, const char *soname)
{
	if (!soname || !family->skip_sonames)
		return false;
	for (const char *const *prefix = family->skip_sonames; *prefix; prefix++)
		if (strncmp(soname, *prefix, strlen(*prefix)) == 0)
			return true;
	return false;
}

/* The rows that count in a module of that soname, sorted by name. NULL without memory. */
static struct row *sorted_rows(const char *soname, size_t *count)
{
	size_t total = 0, used = 0, place = 0;
	struct row *rows;

	for (const struct mw_family *const *family = mw_families; *family; family++)
		for (const struct mw_entry_point *entry = (*family)->entries; entry->symbol; entry++)
			total++;
	rows = calloc(total + 1, sizeof(*rows));
	if (!rows)
		return NULL;
	for (const struct mw_family *const *family = mw_families; *family; family++) {
		bool skip = is_skipped(*family, soname);

		for (const struct mw_entry_point *entry = (*family)->entries; entry->symbol; entry++, place++)
			if (!skip)
				rows[used++] = (struct row){*family, entry, place};
	}
	qsort(rows, used, sizeof(*rows), compare_names);
	*count = used;
	return rows;
}

static bool add_match(struct search *search, const struct row *row, const struct mw_elf_symbol *symbol)
{
	if (!MW_VECTOR_ROOM(search->matches, search->count, search->capacity)) {
		search->no_memory = true;
		return false;
	}
	search->matches[search->count++] = (struct match){*row, symbol->vaddr, symbol->size, symbol->dynamic};
	return true;
}

/* A static program's linker makes hidden functions of the C library local. Their reserved names tell them from others.
 */
static bool made_local(const struct search *search, const struct mw_elf_symbol *symbol)
{
	return search->is_static && strncmp(symbol->name, "__libc_", 7) == 0;
}

static bool visit(void *context, const struct mw_elf_symbol *symbol)
{
	struct search *search = context;
	struct mw_entry_point wanted = {.symbol = symbol->name};
	struct row key = {.entry = &wanted};
	const struct row *row;

	/* A static function that happens to have such a name is no entry point, and an IFUNC's address is that of its
	 * resolver. */
	if ((symbol->local && !made_local(search, symbol)) || symbol->ifunc || !symbol->function || !symbol->vaddr)
		return true;
	row = bsearch(&key, search->rows, search->row_count, sizeof(*search->rows), compare_names);
	return row ? add_match(search, row, symbol) : true;
}

/* Matches in table order, the first of each address. */
static struct mw_found_entry *distinct(struct match *matches, size_t count, size_t *found_count)
{
	struct mw_found_entry *found = calloc(count + 1, sizeof(*found));
	size_t used = 0;

	if (!found)
		return NULL;
	if (count)
		qsort(matches, count, sizeof(*matches), compare_places);
	for (size_t i = 0; i < count; i++) {
		size_t known = 0;

		while (known < used && found[known].vaddr != matches[i].vaddr)
			known++;
		if (known == used)
			found[used++] = (struct mw_found_entry){matches[i].row.family, matches[i].row.entry,
								matches[i].vaddr, matches[i].size};
		else if (!found[known].size)
			found[known].size = matches[i].size;
	}
	*found_count = used;
	return found;
}

struct mw_error *mw_alloc_find(struct mw_elf *elf, struct mw_found_entry **found, size_t *count)
{
	struct search search = {.is_static = elf->is_static};
	struct mw_error *err;
	struct mw_found_entry *result = NULL;
	size_t result_count = 0;

	search.rows = sorted_rows(elf->soname, &search.row_count);
	if (!search.rows)
		return mw_error_nomem();
	err = mw_elf_each_symbol(elf, visit, &search);
	if (!err && search.no_memory)
		err = mw_error_nomem();
	if (!err) {
		result = distinct(search.matches, search.count, &result_count);
		if (!result)
			err = mw_error_nomem();
	}
	free(search.rows);
	free(search.matches);
	if (err)
		return err;
	*found = result;
	*count = result_count;
	return NULL;
}
