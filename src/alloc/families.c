// SPDX-License-Identifier: MIT
/* families.c: the list of families, which of their entry points a module defines, and what kind of code it holds. */
#include "alloc/families.h"

#include "alloc/tables.h"
#include "base/path.h"
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

/* `prefixes` ends with NULL. */
static bool has_prefix(const char *name, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
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
		bool skip = soname && (*family)->skip_sonames && has_prefix(soname, (*family)->skip_sonames);

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

/* What is found out of a module's symbols is found once (mw_elf_fact); of each kind there is one fact. */
static const uint64_t the_one[2];

struct entries {
	struct mw_found_entry *items;
	size_t count;
};

static void destroy_entries(void *fact)
{
	struct entries *entries = fact;

	free(entries->items);
	free(entries);
}

static struct mw_error *search_entries(struct mw_elf *elf, struct entries *out)
{
	struct search search = {.is_static = elf->is_static};
	struct mw_error *err = NULL;

	search.rows = sorted_rows(elf->soname, &search.row_count);
	if (search.rows)
		err = mw_elf_each_symbol(elf, visit, &search);
	if (!err && search.rows && !search.no_memory)
		out->items = distinct(search.matches, search.count, &out->count);
	free(search.rows);
	free(search.matches);
	return err || out->items ? err : mw_error_nomem();
}

static struct mw_error *make_entries(struct mw_elf *elf, const void *context, void **out)
{
	struct entries *entries = calloc(1, sizeof(*entries));
	struct mw_error *err;

	(void)context;
	if (!entries)
		return mw_error_nomem();
	err = search_entries(elf, entries);
	if (err)
		destroy_entries(entries);
	else
		*out = entries;
	return err;
}

struct mw_error *mw_alloc_find(struct mw_elf *elf, struct mw_found_entry **found, size_t *count)
{
	static const struct mw_elf_fact_kind kind = {make_entries, destroy_entries};
	const struct entries *entries;
	struct mw_found_entry *copy;
	const void *fact = NULL;

	MW_TRY(mw_elf_fact(elf, &kind, the_one, NULL, &fact));
	entries = fact;
	copy = calloc(entries->count + 1, sizeof(*copy));
	if (!copy)
		return mw_error_nomem();
	memcpy(copy, entries->items, entries->count * sizeof(*copy));
	*found = copy;
	*count = entries->count;
	return NULL;
}

/* --- what kind of code a module holds, by its name and its symbols ------------------------------------------ */

/* A library that has an allocator's own interface and more text than this does other things beside (an engine with
 * jemalloc linked in): its callers are to be charged. */
#define ALLOCATOR_TEXT_MAX (UINT64_C(2) << 20)

static const char *const runtime_names[] = {
	"ld-linux",   "ld-musl-",      "ld-2.",         "ld.so",        "ld64.so",      "libc.so",      "libc-2.",
	"libc.musl-", "libpthread.so", "libpthread-2.", "libdl.so",     "libdl-2.",     "librt.so",     "librt-2.",
	"libm.so",    "libm-2.",       "libmvec.so",    "libmvec-2.",   "libresolv.so", "libresolv-2.", "libutil.so",
	"libutil-2.", "libanl.so",     "libanl-2.",     "libstdc++.so", "libc++.so",    "libc++abi.so", "libgcc_s.so",
	"libgcc_s-",  "libsupc++.so",  "libunwind.so",  "libunwind-",   "libatomic.so", "[vdso]",       NULL,
};

static const char *const allocator_names[] = {
	"libjemalloc",  "libtcmalloc",       "libmimalloc", "libhoard",          "libsnmalloc",
	"libscudo",     "libclang_rt.scudo", "librpmalloc", "libc_malloc_debug", "libltalloc",
	"libnedmalloc", "libtbbmalloc",      NULL,
};

/* A fact that is yes or no. */
static const bool yes = true, no = false;

static void destroy_answer(void *fact)
{
	(void)fact;
}

/* What can't be read says nothing. */
static bool ask(struct mw_elf *elf, const struct mw_elf_fact_kind *kind)
{
	const void *answer = &no;

	mw_error_destroy(mw_elf_fact(elf, kind, the_one, NULL, &answer));
	return *(const bool *)answer;
}

/* Interfaces that only an allocator offers. */
static const char *const allocator_markers[] = {
	"mallctl",
	"je_mallctl",
	"MallocExtension_GetStats",
	"_ZN15MallocExtension8instanceEv",
	"_ZN8tcmalloc15MallocExtension8GetStatsB5cxx11Ev",
	"mi_version",
	NULL,
};

static enum mw_module_class class_of_name(const char *name)
{
	if (has_prefix(name, allocator_names))
		return MW_MODULE_ALLOCATOR;
	if (has_prefix(name, runtime_names))
		return MW_MODULE_RUNTIME;
	return MW_MODULE_OTHER;
}

static bool see_marker(void *context, const struct mw_elf_symbol *symbol)
{
	bool *seen = context;

	if (!symbol->dynamic || symbol->local)
		return true;
	for (const char *const *marker = allocator_markers; *marker; marker++)
		if (strcmp(symbol->name, *marker) == 0)
			*seen = true;
	return !*seen;
}

static struct mw_error *find_markers(struct mw_elf *elf, const void *context, void **out)
{
	bool seen = false;

	(void)context;
	MW_TRY(mw_elf_each_symbol(elf, see_marker, &seen));
	*out = (void *)(seen ? &yes : &no);
	return NULL;
}

static bool is_allocator_library(const char *name, struct mw_elf *elf)
{
	static const struct mw_elf_fact_kind kind = {find_markers, destroy_answer};

	if (elf->is_executable || mw_elf_section(elf, ".interp").present)
		return false;
	if (!elf->soname && !strstr(name, ".so"))
		return false;
	if (mw_elf_code_size(elf) > ALLOCATOR_TEXT_MAX)
		return false;
	return ask(elf, &kind);
}

enum mw_module_class mw_alloc_classify(const char *path, struct mw_elf *elf)
{
	const char *name = mw_path_name(path ? path : "");
	enum mw_module_class found = class_of_name(name);

	if (found != MW_MODULE_OTHER || !elf)
		return found;
	if (elf->soname)
		found = class_of_name(elf->soname);
	if (found == MW_MODULE_OTHER && is_allocator_library(name, elf))
		found = MW_MODULE_ALLOCATOR;
	return found;
}

/* What tells glibc's malloc from one that takes its place. */
struct glibc_signs {
	uint64_t malloc, libc_malloc, free, libc_free;
	bool version;    /* gnu_get_libc_version in .dynsym */
	bool int_malloc; /* glibc's local workers */
	bool int_free;
};

static bool see_glibc(void *context, const struct mw_elf_symbol *symbol)
{
	struct glibc_signs *signs = context;
	const char *name = symbol->name;

	if (!symbol->function)
		return true;
	if (strcmp(name, "_int_malloc") == 0)
		signs->int_malloc = true;
	else if (strncmp(name, "_int_free", strlen("_int_free")) == 0)
		signs->int_free = true;
	if (symbol->local)
		return true;
	if (strcmp(name, "malloc") == 0)
		signs->malloc = symbol->vaddr;
	else if (strcmp(name, "free") == 0)
		signs->free = symbol->vaddr;
	else if (strcmp(name, "__libc_malloc") == 0)
		signs->libc_malloc = symbol->vaddr;
	else if (strcmp(name, "__libc_free") == 0)
		signs->libc_free = symbol->vaddr;
	else if (symbol->dynamic && strcmp(name, "gnu_get_libc_version") == 0)
		signs->version = true;
	return true;
}

static bool are_of_glibc(const struct glibc_signs *signs)
{
	/* Both names lead to one function unless an allocator linked into the program has taken malloc over. */
	if (!signs->malloc || signs->malloc != signs->libc_malloc || !signs->free || signs->free != signs->libc_free)
		return false;
	/* The library says who it is. A static program shows glibc's workers, which tcmalloc and mimalloc, though
	 * they define __libc_malloc too, don't have. */
	return signs->version || (signs->int_malloc && signs->int_free);
}

static struct mw_error *find_glibc(struct mw_elf *elf, const void *context, void **out)
{
	struct glibc_signs signs = {0};

	(void)context;
	MW_TRY(mw_elf_each_symbol(elf, see_glibc, &signs));
	*out = (void *)(are_of_glibc(&signs) ? &yes : &no);
	return NULL;
}

bool mw_alloc_is_glibc(struct mw_elf *elf)
{
	static const struct mw_elf_fact_kind kind = {find_glibc, destroy_answer};

	return ask(elf, &kind);
}
