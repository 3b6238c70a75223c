// SPDX-License-Identifier: MIT
/*
 * inflate.c: compressed sections (inflate.h), one by one or all of a file's that are compressed by zstd, in a copy of
 * the file with these uncompressed behind its end.
 *
 *     ┌─────┬───────────┬────────┬─────────┐
 *     │ ELF │ .text …   │ zstd   │ headers │             the file
 *     └─────┴───────────┴────────┴─────────┘
 *     ┌─────┬───────────┬────────┬─────────┬─────────────┐
 *     │ ELF │ .text …   │ (hole) │ changed │ .debug_info │ the copy
 *     └─────┴───────────┴────────┴─────────┴─────────────┘
 */
#include "symbol/inflate.h"

#include "base/io.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define MAX_SECTIONS ((uint64_t)1 << 16)
#define MAX_PACKED   256 /* sections */
#define BLOCK        ((uint64_t)64 << 10)
/* A file is made by anybody: what a few bytes claim to become is not believed. */
#define MAX_RATIO   ((uint64_t)1 << 10)
#define MAX_TOTAL   ((uint64_t)4 << 30)
#define MAX_SECTION ((uint64_t)256 << 20) /* of one that is held in memory */

struct copy {
	int fd, out;
	uint64_t size, end; /* of the file, and of the copy so far */
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	uint64_t count;
	Elf64_Shdr *packed[MAX_PACKED]; /* those that are to be uncompressed */
	size_t packed_count;
	const char *obstacle;
};

static bool read_at(int fd, uint64_t offset, void *buffer, uint64_t size)
{
	return mw_read_at(fd, buffer, size, offset) == (ssize_t)size;
}

/* Can a section of `size` bytes become what it says? */
static bool is_credible(const Elf64_Chdr *compression, uint64_t size)
{
	return compression->ch_size && compression->ch_size / MAX_RATIO <= size;
}

/* Does it become exactly `size` bytes? */
static bool expand(uint32_t type, void *to, uint64_t size, const void *from, uint64_t packed)
{
	uLongf got = size;

	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, size, from, packed) == size; /* an error is a larger number */
	return type == ELFCOMPRESS_ZLIB && uncompress(to, &got, from, packed) == Z_OK && got == size;
}

/* --- one section --------------------------------------------------------------------------------------- */

uint8_t *mw_inflate_section(const uint8_t *section, uint64_t size, uint64_t *inflated)
{
	Elf64_Chdr compression;
	uint8_t *to;

	if (size < sizeof(compression))
		return NULL;
	memcpy(&compression, section, sizeof(compression));
	if (!is_credible(&compression, size) || compression.ch_size > MAX_SECTION)
		return NULL;
	to = malloc(compression.ch_size);
	if (!to || !expand(compression.ch_type, to, compression.ch_size, section + sizeof(compression),
			   size - sizeof(compression))) {
		free(to);
		return NULL;
	}
	*inflated = compression.ch_size;
	return to;
}

/* --- what there is ------------------------------------------------------------------------------------- */

static bool read_headers(struct copy *copy)
{
	Elf64_Ehdr *header = &copy->header;
	Elf64_Shdr first;
	struct stat st;

	if (fstat(copy->fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_at(copy->fd, 0, header, sizeof(*header)))
		return false;
	copy->size = copy->end = (uint64_t)st.st_size;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shoff)
		return false;
	copy->count = header->e_shnum;
	if (!copy->count && read_at(copy->fd, header->e_shoff, &first, sizeof(first)))
		copy->count = first.sh_size;
	if (!copy->count || copy->count > MAX_SECTIONS)
		return false;
	copy->sections = calloc(copy->count, sizeof(*copy->sections));
	return copy->sections &&
	       read_at(copy->fd, header->e_shoff, copy->sections, copy->count * sizeof(*copy->sections));
}

/* Note the sections that are compressed by zstd. True: there are some. */
static bool select_sections(struct copy *copy)
{
	for (uint64_t i = 1; i < copy->count; i++) {
		Elf64_Shdr *section = &copy->sections[i];
		Elf64_Chdr compression;

		if (!(section->sh_flags & SHF_COMPRESSED) || section->sh_flags & SHF_ALLOC ||
		    section->sh_type == SHT_NOBITS || section->sh_size < sizeof(compression) ||
		    section->sh_offset > copy->size || section->sh_size > copy->size - section->sh_offset ||
		    !read_at(copy->fd, section->sh_offset, &compression, sizeof(compression)))
			continue;
		if (compression.ch_type == ELFCOMPRESS_ZSTD && copy->packed_count < MAX_PACKED)
			copy->packed[copy->packed_count++] = section;
		else if (compression.ch_type != ELFCOMPRESS_ZSTD && compression.ch_type != ELFCOMPRESS_ZLIB)
			copy->obstacle = "are compressed in a way that is not known (neither zlib nor zstd)";
	}
	return copy->packed_count > 0;
}

/* --- the copy ------------------------------------------------------------------------------------------ */

/* Does a section that is not copied hold all of a block? */
static bool is_packed(const struct copy *copy, uint64_t offset, uint64_t size)
{
	for (size_t i = 0; i < copy->packed_count; i++)
		if (offset >= copy->packed[i]->sh_offset &&
		    offset + size <= copy->packed[i]->sh_offset + copy->packed[i]->sh_size)
			return true;
	return false;
}

static bool copy_rest(const struct copy *copy)
{
	uint8_t *block = malloc(BLOCK);
	bool good = block;

	for (uint64_t at = 0; good && at < copy->size; at += BLOCK) {
		uint64_t size = copy->size - at < BLOCK ? copy->size - at : BLOCK;

		if (!is_packed(copy, at, size))
			good = read_at(copy->fd, at, block, size) && mw_write_at(copy->out, block, size, at);
	}
	free(block);
	return good;
}

static bool decompress(const struct copy *copy, const Elf64_Shdr *section, uint64_t offset, uint64_t size)
{
	uint64_t packed = section->sh_size - sizeof(Elf64_Chdr);
	uint8_t *from = malloc(packed ? packed : 1);
	void *to = MAP_FAILED;
	bool good = false;

	if (from && read_at(copy->fd, section->sh_offset + sizeof(Elf64_Chdr), from, packed) &&
	    ftruncate(copy->out, (off_t)(offset + size)) == 0)
		to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy->out, (off_t)offset);
	if (to != MAP_FAILED) {
		good = expand(ELFCOMPRESS_ZSTD, to, size, from, packed);
		(void)munmap(to, size);
	}
	free(from);
	return good;
}

static bool inflate_section(struct copy *copy, Elf64_Shdr *section)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1, offset = (copy->end + page) & ~page;
	Elf64_Chdr compression;

	if (!read_at(copy->fd, section->sh_offset, &compression, sizeof(compression)))
		return false;
	if (!is_credible(&compression, section->sh_size) || compression.ch_size > MAX_TOTAL ||
	    offset - copy->size > MAX_TOTAL - compression.ch_size ||
	    !decompress(copy, section, offset, compression.ch_size))
		return false;
	section->sh_offset = offset;
	section->sh_size = compression.ch_size;
	section->sh_addralign = compression.ch_addralign;
	section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	copy->end = offset + compression.ch_size;
	return true;
}

static bool make(struct copy *copy)
{
	if (copy->size > MAX_TOTAL)
		return false;
	copy->out = memfd_create("memwatch-debug", MFD_CLOEXEC);
	if (copy->out < 0 || ftruncate(copy->out, (off_t)copy->size) < 0 || !copy_rest(copy))
		return false;
	for (size_t i = 0; i < copy->packed_count; i++)
		if (!inflate_section(copy, copy->packed[i]))
			return false;
	return mw_write_at(copy->out, copy->sections, copy->count * sizeof(*copy->sections), copy->header.e_shoff);
}

int mw_inflate_file(int fd, const char **obstacle)
{
	struct copy copy = {.fd = fd, .out = -1};

	if (read_headers(&copy) && select_sections(&copy) && !make(&copy)) {
		copy.obstacle = "are compressed by zstd, and damaged or too large";
		if (copy.out >= 0)
			close(copy.out);
		copy.out = -1;
	}
	free(copy.sections);
	if (obstacle && copy.obstacle)
		*obstacle = copy.obstacle;
	return copy.out;
}
