// SPDX-License-Identifier: MIT
/* elf_image.c: opening an ELF image; its header and segments. */
#include "symbol/elf_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 4096

const uint8_t *mw_elf_range_bytes(const struct mw_elf *elf, uint64_t offset, uint64_t size)
{
	return mw_elf_bytes_get((struct mw_elf_bytes *)&elf->bytes, offset, size);
}

static struct mw_error *not_elf(const struct mw_elf *elf, const char *why)
{
	return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file that can be read: %s", elf->name, why);
}

/* How many program headers there are: the header's field, or a section header's where that is too small. */
static uint64_t count_program_headers(const struct mw_elf *elf, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	if (header->e_phnum != PN_XNUM || !mw_elf_section_header(elf, 0, &first))
		return header->e_phnum;
	return first.sh_info;
}

/* The part of a range that the file has. */
static struct elf_range clamp(const struct mw_elf *elf, uint64_t offset, uint64_t size)
{
	struct elf_range range = {offset, size};

	if (offset >= elf->bytes.size)
		range.size = 0;
	else if (size > elf->bytes.size - offset)
		range.size = elf->bytes.size - offset;
	return range;
}

static void take_load(struct mw_elf *elf, const Elf64_Phdr *header)
{
	struct mw_elf_segment *segment = &elf->segments[elf->segment_count];
	struct elf_range range = clamp(elf, header->p_offset, header->p_filesz);
	uint64_t end;

	if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end))
		return;
	if (range.size > header->p_memsz)
		range.size = header->p_memsz;
	*segment = (struct mw_elf_segment){
		.vaddr = header->p_vaddr,
		.memory_size = header->p_memsz,
		.offset = range.offset,
		.file_size = range.size,
		.read = (header->p_flags & PF_R) != 0,
		.write = (header->p_flags & PF_W) != 0,
		.exec = (header->p_flags & PF_X) != 0,
	};
	elf->segment_count++;
}

static void take_program_header(struct mw_elf *elf, const Elf64_Phdr *header)
{
	switch (header->p_type) {
	case PT_LOAD:
		take_load(elf, header);
		break;
	case PT_NOTE:
		elf->notes[elf->note_count++] = clamp(elf, header->p_offset, header->p_filesz);
		break;
	case PT_DYNAMIC:
		elf->dynamic = clamp(elf, header->p_offset, header->p_filesz);
		break;
	case PT_INTERP:
		elf->has_interpreter = true;
		break;
	case PT_GNU_EH_FRAME:
		elf->eh_frame_hdr = header->p_vaddr;
		elf->eh_frame_hdr_size = header->p_memsz;
		break;
	default:
		break;
	}
}

static struct mw_error *read_program_headers(struct mw_elf *elf, const Elf64_Ehdr *header)
{
	uint64_t count = count_program_headers(elf, header);
	const uint8_t *bytes;

	if (count == 0)
		return NULL;
	if (header->e_phentsize != sizeof(Elf64_Phdr) || count > MAX_SEGMENTS)
		return not_elf(elf, "its program headers make no sense");
	bytes = mw_elf_range_bytes(elf, header->e_phoff, count * sizeof(Elf64_Phdr));
	if (!bytes)
		return not_elf(elf, "its program headers lie outside the file");
	elf->segments = calloc(count, sizeof(*elf->segments));
	elf->notes = calloc(count, sizeof(*elf->notes));
	if (!elf->segments || !elf->notes)
		return mw_error_nomem();
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr one;

		memcpy(&one, bytes + i * sizeof(one), sizeof(one));
		take_program_header(elf, &one);
	}
	return NULL;
}

static struct mw_error *read_headers(struct mw_elf *elf)
{
	const uint8_t *ident = mw_elf_range_bytes(elf, 0, sizeof(Elf32_Ehdr));
	const uint8_t *whole;
	Elf64_Ehdr header;

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return not_elf(elf, "it does not begin with an ELF header");
	if (ident[EI_DATA] != ELFDATA2LSB)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s is not little-endian", elf->name);
	/* Up to e_machine both classes look the same. */
	memcpy(&elf->type, ident + offsetof(Elf64_Ehdr, e_type), sizeof(elf->type));
	memcpy(&elf->machine, ident + offsetof(Elf64_Ehdr, e_machine), sizeof(elf->machine));
	if (ident[EI_CLASS] == ELFCLASS32)
		return NULL;
	whole = mw_elf_range_bytes(elf, 0, sizeof(header));
	if (ident[EI_CLASS] != ELFCLASS64 || !whole)
		return not_elf(elf, "its header is invalid");
	memcpy(&header, whole, sizeof(header));
	elf->is_64 = true;
	mw_elf_init_sections(elf, &header);
	MW_TRY(read_program_headers(elf, &header));
	mw_elf_init_dynamic(elf);
	mw_elf_init_build_id(elf);
	return NULL;
}

static struct mw_error *create(const char *name, struct mw_elf **out)
{
	struct mw_elf *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return mw_error_nomem();
	atomic_init(&elf->references, 1);
	elf->bytes.fd = -1;
	elf->name = strdup(name);
	if (!elf->name) {
		free(elf);
		return mw_error_nomem();
	}
	*out = elf;
	return NULL;
}

struct mw_error *mw_elf_open(int fd, const char *name, struct mw_elf **out)
{
	struct mw_error *err;
	struct mw_elf *elf = NULL;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot keep %s open", name);
	err = create(name, &elf);
	if (err) {
		close(own);
		return err;
	}
	err = mw_elf_bytes_open(&elf->bytes, own, name);
	if (err)
		close(own);
	else
		err = read_headers(elf);
	if (err) {
		mw_elf_unref(elf);
		return err;
	}
	*out = elf;
	return NULL;
}

struct mw_error *mw_elf_open_memory(const void *bytes, size_t size, const char *name, struct mw_elf **out)
{
	struct mw_error *err;
	struct mw_elf *elf = NULL;

	if (size == 0)
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file: it is empty", name);
	MW_TRY(create(name, &elf));
	err = mw_elf_bytes_copy(&elf->bytes, bytes, size);
	if (!err)
		err = read_headers(elf);
	if (err) {
		mw_elf_unref(elf);
		return err;
	}
	*out = elf;
	return NULL;
}

struct mw_elf *mw_elf_ref(struct mw_elf *elf)
{
	if (elf)
		atomic_fetch_add_explicit(&elf->references, 1, memory_order_relaxed);
	return elf;
}

void mw_elf_unref(struct mw_elf *elf)
{
	if (!elf || atomic_fetch_sub_explicit(&elf->references, 1, memory_order_acq_rel) != 1)
		return;
	mw_elf_unref(elf->symbols);
	mw_elf_free_names(elf);
	mw_elf_bytes_deinit(&elf->bytes);
	free(elf->segments);
	free(elf->notes);
	free(elf->soname);
	free(elf->name);
	free(elf);
}

const char *mw_elf_name(const struct mw_elf *elf)
{
	return elf->name;
}

int mw_elf_fd(const struct mw_elf *elf)
{
	return elf->bytes.fd;
}

uint16_t mw_elf_machine(const struct mw_elf *elf)
{
	return elf->machine;
}

bool mw_elf_is_64(const struct mw_elf *elf)
{
	return elf->is_64;
}

bool mw_elf_is_executable(const struct mw_elf *elf)
{
	return elf->type == ET_EXEC;
}

bool mw_elf_is_static(const struct mw_elf *elf)
{
	return !elf->has_interpreter && !elf->has_needed;
}

const struct mw_elf *mw_elf_companion(const struct mw_elf *elf)
{
	return elf->symbols;
}

bool mw_elf_has_symbols(const struct mw_elf *elf)
{
	return elf->symbols || mw_elf_section(elf, ".symtab").present;
}

const char *mw_elf_soname(const struct mw_elf *elf)
{
	return elf->soname;
}

const uint8_t *mw_elf_build_id(const struct mw_elf *elf, size_t *size)
{
	*size = elf->build_id_size;
	return elf->build_id;
}

size_t mw_elf_segments(const struct mw_elf *elf, const struct mw_elf_segment **out)
{
	*out = elf->segments;
	return elf->segment_count;
}

bool mw_elf_eh_frame_hdr(const struct mw_elf *elf, uint64_t *vaddr, uint64_t *size)
{
	if (!elf->eh_frame_hdr_size)
		return false;
	*vaddr = elf->eh_frame_hdr;
	*size = elf->eh_frame_hdr_size;
	return true;
}

static bool holds(const struct mw_elf_segment *segment, uint64_t vaddr)
{
	return vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->file_size;
}

bool mw_elf_offset_of(const struct mw_elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct mw_elf_segment *segment = &elf->segments[i];

		if (!holds(segment, vaddr))
			continue;
		*offset = segment->offset + (vaddr - segment->vaddr);
		*available = segment->file_size - (vaddr - segment->vaddr);
		return true;
	}
	return false;
}

static const struct mw_elf_segment *find_read_only(const struct mw_elf *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->segment_count; i++)
		if (!elf->segments[i].write && holds(&elf->segments[i], vaddr))
			return &elf->segments[i];
	return NULL;
}

const uint8_t *mw_elf_span(const struct mw_elf *elf, uint64_t vaddr, size_t size)
{
	const struct mw_elf_segment *segment = find_read_only(elf, vaddr);
	uint64_t into;

	if (!segment)
		return NULL;
	into = vaddr - segment->vaddr;
	if (size > segment->file_size - into)
		return NULL;
	return mw_elf_range_bytes(elf, segment->offset + into, size);
}

bool mw_elf_read(const struct mw_elf *elf, uint64_t vaddr, void *out, size_t size)
{
	const uint8_t *bytes = mw_elf_span(elf, vaddr, size);

	if (!bytes)
		return false;
	memcpy(out, bytes, size);
	return true;
}

const uint8_t *mw_elf_bytes(const struct mw_elf *elf, uint64_t vaddr, size_t *available)
{
	const struct mw_elf_segment *segment = find_read_only(elf, vaddr);
	const uint8_t *bytes;
	uint64_t into;

	if (!segment)
		return NULL;
	into = vaddr - segment->vaddr;
	bytes = mw_elf_range_bytes(elf, segment->offset + into, segment->file_size - into);
	if (bytes)
		*available = segment->file_size - into;
	return bytes;
}

const uint8_t *mw_elf_file_bytes(const struct mw_elf *elf, uint64_t offset, size_t size)
{
	return mw_elf_range_bytes(elf, offset, size);
}
