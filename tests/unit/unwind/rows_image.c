// SPDX-License-Identifier: MIT
/* rows_image.c: small files made up of nothing but frame descriptions (rows_image.h). */
#include "rows_image.h"

#include <dwarf.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab\0.go.buildinfo";

#define NAMES_AT    0x400
#define SECTIONS_AT 0x600

void image_init(struct image *image)
{
	memset(image, 0, sizeof(*image));
	image->type = ET_DYN;
	image->eh = (struct image_section){.bytes = image->bytes + IMAGE_EH, .vaddr = IMAGE_EH, .room = 0x2000};
	image->debug = (struct image_section){.bytes = image->bytes + IMAGE_DEBUG, .room = 0x2000, .debug = true};
}

void image_put(struct image_section *section, uint64_t value, size_t size)
{
	assert_true(size <= section->room - section->size);
	memcpy(section->bytes + section->size, &value, size);
	section->size += size;
}

static void put_bytes(struct image_section *section, const void *bytes, size_t size)
{
	assert_true(size <= section->room - section->size);
	memcpy(section->bytes + section->size, bytes, size);
	section->size += size;
}

/* Begin a record; returns where its length is to stand. */
static size_t begin(struct image_section *section)
{
	if (section->wide)
		image_put(section, UINT32_MAX, 4);
	image_put(section, 0, section->wide ? 8 : 4);
	return section->size;
}

static void end(struct image_section *section, size_t body)
{
	size_t length = section->wide ? 8 : 4;
	uint64_t size;

	while (section->size % 8)
		image_put(section, DW_CFA_nop, 1);
	size = section->size - body;
	memcpy(section->bytes + body - length, &size, length);
}

void image_cie(struct image_section *section, const char *letters, const uint8_t *program, size_t size)
{
	size_t body;

	section->cie = section->size;
	body = begin(section);
	image_put(section, section->debug ? UINT64_MAX : 0, section->wide ? 8 : 4);
	image_put(section, section->debug ? 4 : 1, 1);
	put_bytes(section, letters, strlen(letters) + 1);
	if (section->debug) {
		image_put(section, 8, 1); /* bytes of an address */
		image_put(section, 0, 1); /* … and of a segment */
	}
	image_put(section, 1, 1);    /* code alignment */
	image_put(section, 0x78, 1); /* data alignment: -8 */
	image_put(section, 16, 1);   /* return address register */
	section->augmented = *letters;
	if (section->augmented) {
		image_put(section, strchr(letters, 'R') ? 1 : 0, 1);
		if (strchr(letters, 'R'))
			image_put(section, DW_EH_PE_pcrel | DW_EH_PE_sdata8, 1);
	}
	put_bytes(section, program, size);
	end(section, body);
}

void image_describe(struct image_section *section, uint64_t start, uint64_t length, const uint8_t *program, size_t size)
{
	size_t body = begin(section);

	image_put(section, section->debug ? section->cie : body - section->cie, section->wide ? 8 : 4);
	image_put(section, section->augmented ? start - section->vaddr - section->size : start, 8);
	image_put(section, length, 8);
	if (section->augmented)
		image_put(section, 0, 1);
	put_bytes(section, program, size);
	end(section, body);
}

void image_compress(struct image *image, uint32_t type)
{
	struct image_section *section = &image->debug;
	Elf64_Chdr header = {.ch_type = type, .ch_size = section->size, .ch_addralign = 8};
	uint8_t packed[0x2000];
	uLongf size = sizeof(packed);

	if (type == IMAGE_ZSTD)
		size = ZSTD_compress(packed, size, section->bytes, section->size, 3);
	else
		assert_int_equal(compress(packed, &size, section->bytes, section->size), Z_OK);
	assert_true(size <= sizeof(packed));
	section->size = 0;
	put_bytes(section, &header, sizeof(header));
	put_bytes(section, packed, size);
	image->compressed = true;
}

struct mw_elf *image_open(struct image *image)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = image->type,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shoff = SECTIONS_AT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = image->go ? 5 : 4,
		.e_shstrndx = 3,
	};
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = IMAGE_SIZE, .p_memsz = IMAGE_SIZE},
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = IMAGE_CODE, .p_memsz = IMAGE_CODE_SIZE},
	};
	const Elf64_Shdr sections[] = {
		{.sh_type = SHT_NULL},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC,
		 .sh_addr = IMAGE_EH,
		 .sh_offset = IMAGE_EH,
		 .sh_size = image->eh.size},
		{.sh_name = 11,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = image->compressed ? SHF_COMPRESSED : 0,
		 .sh_offset = IMAGE_DEBUG,
		 .sh_size = image->debug.size},
		{.sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof(names)},
		{.sh_name = 34, .sh_type = SHT_PROGBITS, .sh_offset = NAMES_AT, .sh_size = sizeof(names)},
	};
	struct mw_elf *elf = NULL;

	memcpy(image->bytes, &header, sizeof(header));
	memcpy(image->bytes + sizeof(header), segments, sizeof(segments));
	memcpy(image->bytes + NAMES_AT, names, sizeof(names));
	memcpy(image->bytes + SECTIONS_AT, sections, sizeof(sections));
	assert_null(mw_elf_open_memory(image->bytes, IMAGE_SIZE, "made up", &elf));
	return elf;
}
