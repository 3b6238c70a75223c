// SPDX-License-Identifier: MIT
/* elf_symbols.c: the symbols of an image, from its sections or from what the loader uses. */
#include "symbol/elf_private.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The static symbol table names versions too ("memcpy@@GLIBC_2.14"); we keep the name alone. */
struct plain_name {
	const char *source; /* in the string table; the key */
	char name[];
};

struct table {
	struct mw_elf_range symbols, strings;
	bool dynamic;
};

static int compare_names(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t)((const struct plain_name *)a)->source;
	uintptr_t right = (uintptr_t)((const struct plain_name *)b)->source;

	return (left > right) - (left < right);
}

static const char *add_plain_name(struct mw_elf *elf, const char *name, size_t length)
{
	struct plain_name *fresh = malloc(sizeof(*fresh) + length + 1);
	struct plain_name **node;

	if (!fresh)
		return NULL;
	fresh->source = name;
	memcpy(fresh->name, name, length);
	fresh->name[length] = '\0';
	node = tsearch(fresh, &elf->plain_names, compare_names);
	if (!node) {
		free(fresh);
		return NULL;
	}
	if (*node != fresh)
		free(fresh);
	return (*node)->name;
}

/* The name without "@VERSION". NULL without memory. */
static const char *plain_name(struct mw_elf *elf, const char *name)
{
	const char *at = strchr(name, '@');
	const char *plain;

	if (!at || at == name)
		return name;
	(void)pthread_mutex_lock(&elf->bytes.lock);
	plain = add_plain_name(elf, name, (size_t)(at - name));
	(void)pthread_mutex_unlock(&elf->bytes.lock);
	return plain;
}

static bool is_defined(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON)
		return false;
	return symbol->st_value != 0 && type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

typedef bool (*visitor)(void *context, const struct mw_elf_symbol *symbol);

/* *more: what the visitor said last. */
static struct mw_error *visit_table(struct mw_elf *elf, const struct table *table, visitor visit, void *context,
				    bool *more)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, table->symbols.offset, table->symbols.size);
	const uint8_t *strings = mw_elf_file_bytes(elf, table->strings.offset, table->strings.size);

	if (!bytes || !strings)
		return NULL;
	for (uint64_t at = 0; *more && table->symbols.size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		struct mw_elf_symbol symbol;
		Elf64_Sym raw;
		unsigned type;

		memcpy(&raw, bytes + at, sizeof(raw));
		if (!is_defined(&raw))
			continue;
		symbol.name = mw_elf_string_in(strings, table->strings.size, raw.st_name);
		if (!symbol.name || !*symbol.name)
			continue;
		if (!table->dynamic) {
			symbol.name = plain_name(elf, symbol.name);
			if (!symbol.name)
				return mw_error_nomem();
		}
		type = ELF64_ST_TYPE(raw.st_info);
		symbol.vaddr = raw.st_value;
		symbol.size = raw.st_size;
		symbol.dynamic = table->dynamic;
		symbol.ifunc = type == STT_GNU_IFUNC;
		symbol.function = type == STT_FUNC || symbol.ifunc;
		symbol.local = ELF64_ST_BIND(raw.st_info) == STB_LOCAL;
		*more = visit(context, &symbol);
	}
	return NULL;
}

static bool read_word(const struct mw_elf *elf, uint64_t offset, uint64_t size, uint64_t index, uint32_t *out)
{
	const uint8_t *bytes;

	if (index >= size / 4)
		return false;
	bytes = mw_elf_file_bytes(elf, offset + index * 4, 4);
	if (!bytes)
		return false;
	memcpy(out, bytes, sizeof(*out));
	return true;
}

/* DT_HASH: nbucket, nchain, … where nchain is the number of symbols. */
static uint64_t count_by_hash(const struct mw_elf *elf)
{
	uint64_t offset, available;
	uint32_t chains;

	if (!elf->hash || !mw_elf_offset_of(elf, elf->hash, &offset, &available) ||
	    !read_word(elf, offset, available, 1, &chains))
		return 0;
	return chains;
}

/*
 * DT_GNU_HASH does not say how many symbols there are: the chain that begins last is followed to its end.
 *     nbuckets, first symbol, bloom words, shift | bloom: 8 bytes each | buckets: 4 each | chains: 4 each
 */
static uint64_t count_by_gnu_hash(const struct mw_elf *elf)
{
	uint64_t offset, available, buckets, chains, last = 0;
	uint32_t head[4];

	if (!elf->gnu_hash || !mw_elf_offset_of(elf, elf->gnu_hash, &offset, &available))
		return 0;
	for (uint64_t i = 0; i < 4; i++)
		if (!read_word(elf, offset, available, i, &head[i]))
			return 0;
	buckets = 4 + (uint64_t)head[2] * 2;
	chains = buckets + head[0];
	for (uint64_t i = buckets; i < chains; i++) {
		uint32_t start;

		if (!read_word(elf, offset, available, i, &start))
			return 0;
		if (start > last)
			last = start;
	}
	if (last < head[1])
		return head[1];
	for (;; last++) {
		uint32_t hash;

		if (!read_word(elf, offset, available, chains + (last - head[1]), &hash))
			return 0;
		/* The lowest bit marks a chain's end. */
		if (hash & 1)
			return last + 1;
	}
}

/* The table that the loader uses. */
static bool find_loader_table(const struct mw_elf *elf, struct table *out)
{
	uint64_t offset, available;
	uint64_t count = count_by_hash(elf);

	if (!count)
		count = count_by_gnu_hash(elf);
	if (!count || !elf->dynamic_symbols || !mw_elf_offset_of(elf, elf->dynamic_symbols, &offset, &available))
		return false;
	if (count > available / sizeof(Elf64_Sym))
		count = available / sizeof(Elf64_Sym);
	out->symbols = (struct mw_elf_range){offset, count * sizeof(Elf64_Sym)};
	out->strings = elf->dynamic_strings;
	out->dynamic = true;
	return true;
}

static bool find_section_table(const struct mw_elf *elf, uint32_t type, struct table *out)
{
	Elf64_Shdr header, strings;

	for (uint64_t i = 1; mw_elf_section_header(elf, i, &header, NULL); i++) {
		if (header.sh_type != type || header.sh_entsize != sizeof(Elf64_Sym) ||
		    !mw_elf_section_header(elf, header.sh_link, &strings, NULL) || strings.sh_type != SHT_STRTAB)
			continue;
		out->symbols = mw_elf_section_range(elf, &header);
		out->strings = mw_elf_section_range(elf, &strings);
		out->dynamic = type == SHT_DYNSYM;
		if (out->symbols.size && out->strings.size)
			return true;
	}
	return false;
}

struct mw_error *mw_elf_each_symbol(struct mw_elf *elf, visitor visit, void *context)
{
	struct table table;
	bool more = true;

	if (find_section_table(elf, SHT_DYNSYM, &table) || find_loader_table(elf, &table))
		MW_TRY(visit_table(elf, &table, visit, context, &more));
	if (more && find_section_table(elf, SHT_SYMTAB, &table))
		MW_TRY(visit_table(elf, &table, visit, context, &more));
	if (more && elf->companion && find_section_table(elf->companion, SHT_SYMTAB, &table))
		MW_TRY(visit_table(elf->companion, &table, visit, context, &more));
	return NULL;
}

/* --- V8's embedded blob --------------------------------------------------------------------------------- */

/* v8_Default_embedded_blob_code_ and, a word of 32 bits, v8_Default_embedded_blob_code_size_: the second word of the
 * names is the variant that was built. */
#define PREFIX "v8_"
#define CODE   "_embedded_blob_code_"
#define SIZE   "_embedded_blob_code_size_"

struct blob {
	uint64_t code, size; /* vaddr of either; 0: not seen */
};

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t wanted = strlen(end);

	return length > wanted && strcmp(name + length - wanted, end) == 0;
}

static bool see_blob(void *context, const struct mw_elf_symbol *symbol)
{
	struct blob *blob = context;
	size_t length;

	if (strncmp(symbol->name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return true;
	length = strlen(symbol->name);
	if (ends_with(symbol->name, length, CODE))
		blob->code = symbol->vaddr;
	else if (ends_with(symbol->name, length, SIZE))
		blob->size = symbol->vaddr;
	return !blob->code || !blob->size;
}

/* The end of the executable segment that holds `vaddr`; 0: none does. */
static uint64_t segment_end(const struct mw_elf *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &elf->segments[i];

		if (segment->exec && vaddr - segment->vaddr < segment->memory_size)
			return segment->vaddr + segment->memory_size;
	}
	return 0;
}

struct mw_error *mw_generated_code_find(struct mw_elf *elf, struct mw_generated_code *out)
{
	struct blob blob = {.code = 0};
	uint64_t end;
	uint32_t size;

	MW_TRY(mw_elf_each_symbol(elf, see_blob, &blob));
	*out = (struct mw_generated_code){0, 0};
	end = segment_end(elf, blob.code);
	if (blob.code && blob.size && mw_elf_read(elf, blob.size, &size, sizeof(size)) && end > blob.code &&
	    size <= end - blob.code)
		*out = (struct mw_generated_code){blob.code, blob.code + size};
	return NULL;
}
