// SPDX-License-Identifier: MIT
/* elf_match.c: does an image lie in a process's memory, and where? */
#include "symbol/elf_match.h"

#include "proc/peek.h"
#include "symbol/elf_private.h"

#include <string.h>
#include <unistd.h>

#define MAX_COMPARED 4096

static bool holds_offset(const struct mw_elf_segment *segment, uint64_t offset)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t end = segment->offset + segment->file_size;

	/* The loader maps whole pages, so a mapping may begin before its segment. */
	return segment->file_size && offset >= (segment->offset & ~page) && offset <= ((end - 1) | page);
}

static uint64_t bias_by(const struct mw_elf_segment *segment, const struct mw_mapping *mapping)
{
	return mapping->start - mapping->offset - (segment->vaddr - segment->offset);
}

bool mw_elf_bias(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t *bias)
{
	const struct mw_elf_segment *found = NULL;

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &elf->segments[i];

		if (!holds_offset(segment, mapping->offset) || (found && found->exec >= segment->exec))
			continue;
		found = segment;
	}
	if (!found)
		return false;
	*bias = bias_by(found, mapping);
	return true;
}

bool mw_elf_fits(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t bias)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &elf->segments[i];

		if (holds_offset(segment, mapping->offset) && bias_by(segment, mapping) == bias)
			return true;
	}
	return false;
}

/* Compare a range of the file with memory, where a read-only segment has it. */
static enum mw_elf_match compare(const struct mw_elf *elf, pid_t tid, uint64_t bias, uint64_t offset, uint64_t size)
{
	uint8_t memory[MAX_COMPARED];
	const uint8_t *bytes;

	if (size > sizeof(memory))
		size = sizeof(memory);
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &elf->segments[i];

		if (segment->write || offset < segment->offset || offset - segment->offset >= segment->file_size)
			continue;
		if (size > segment->file_size - (offset - segment->offset))
			size = segment->file_size - (offset - segment->offset);
		bytes = mw_elf_range_bytes(elf, offset, size);
		if (!bytes || !mw_peek(tid, bias + segment->vaddr + (offset - segment->offset), memory, size))
			return MW_ELF_UNKNOWN;
		return memcmp(bytes, memory, size) == 0 ? MW_ELF_LIKE : MW_ELF_DIFFERENT;
	}
	return MW_ELF_UNKNOWN;
}

enum mw_elf_match mw_elf_match(const struct mw_elf *elf, pid_t tid, uint64_t bias)
{
	const uint8_t *raw = mw_elf_range_bytes(elf, 0, sizeof(Elf64_Ehdr));
	enum mw_elf_match result;
	Elf64_Ehdr header;

	if (!raw)
		return MW_ELF_UNKNOWN;
	memcpy(&header, raw, sizeof(header));
	result = compare(elf, tid, bias, 0, sizeof(header));
	if (result == MW_ELF_LIKE)
		result = compare(elf, tid, bias, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr));
	if (result != MW_ELF_LIKE || !elf->build_id_note.size)
		return result;
	/* Two builds may have the same headers; the build-id tells them apart. */
	result = compare(elf, tid, bias, elf->build_id_note.offset, elf->build_id_note.size);
	if (result == MW_ELF_LIKE)
		return MW_ELF_SAME;
	return result == MW_ELF_DIFFERENT ? result : MW_ELF_LIKE;
}
