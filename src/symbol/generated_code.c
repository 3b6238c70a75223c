// SPDX-License-Identifier: MIT
/* generated_code.c: V8's embedded blob, by the symbols that its assembler source defines (generated_code.h). */
#include "symbol/generated_code.h"

#include <string.h>

/* v8_Default_embedded_blob_code_ and, a word of 32 bits, v8_Default_embedded_blob_code_size_: the second word of the
 * names is the variant that was built. */
#define PREFIX "v8_"
#define CODE   "_embedded_blob_code_"
#define SIZE   "_embedded_blob_code_size_"

struct search {
	uint64_t code, size; /* vaddr of either; 0: not seen */
};

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t wanted = strlen(end);

	return length > wanted && strcmp(name + length - wanted, end) == 0;
}

static bool see(void *context, const struct mw_elf_symbol *symbol)
{
	struct search *search = context;
	size_t length;

	if (strncmp(symbol->name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return true;
	length = strlen(symbol->name);
	if (ends_with(symbol->name, length, CODE))
		search->code = symbol->vaddr;
	else if (ends_with(symbol->name, length, SIZE))
		search->size = symbol->vaddr;
	return !search->code || !search->size;
}

/* The end of the executable segment that holds `vaddr`; 0: none does. */
static uint64_t segment_end(const struct mw_elf *elf, uint64_t vaddr)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(elf, &segments);

	for (size_t i = 0; i < count; i++)
		if (segments[i].exec && vaddr - segments[i].vaddr < segments[i].memory_size)
			return segments[i].vaddr + segments[i].memory_size;
	return 0;
}

struct mw_error *mw_generated_code_find(struct mw_elf *elf, struct mw_generated_code *out)
{
	struct search search = {.code = 0};
	uint64_t end;
	uint32_t size;

	MW_TRY(mw_elf_each_symbol(elf, see, &search));
	*out = (struct mw_generated_code){0, 0};
	end = segment_end(elf, search.code);
	if (search.code && search.size && mw_elf_read(elf, search.size, &size, sizeof(size)) && end > search.code &&
	    size <= end - search.code)
		*out = (struct mw_generated_code){search.code, search.code + size};
	return NULL;
}
