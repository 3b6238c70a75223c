// SPDX-License-Identifier: MIT
/* elf_image.c: an ELF image: its bytes, headers, segments, sections and symbols. */
#include "symbol/elf_image.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK    ((uint64_t)64 << 10)
#define MAX_SIZE ((uint64_t)64 << 30)
/* A sparse file costs its maker nothing, and us every byte that we load. */
#define MAX_RESIDENT ((uint64_t)4 << 30)
#define MAX_SECTIONS ((uint64_t)1 << 20)
#define MAX_STRING   ((uint64_t)1 << 20)
#define MAX_SEGMENTS 4096

/* --- bytes of the file ---------------------------------------------------------------------------------- */

static struct mw_error *reserve(uint64_t size, uint8_t **base)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return mw_error_nomem();
	*base = at;
	return NULL;
}

static struct mw_error *bytes_open(struct mw_elf_bytes *bytes, int fd, const char *name)
{
	MW_CLOSE int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	MW_FREE _Atomic uint8_t *loaded = NULL;
	uint8_t *base = NULL;
	struct stat st;
	uint64_t size;

	if (own < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot keep %s open", name);
	if (fstat(own, &st) < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot stat %s", name);
	if (!S_ISREG(st.st_mode))
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not a regular file", name);
	size = (uint64_t)st.st_size;
	if (size == 0 || size > MAX_SIZE)
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file (%llu bytes)", name,
				       (unsigned long long)size);
	loaded = calloc(size / CHUNK + 1, sizeof(*loaded));
	if (!loaded)
		return mw_error_nomem();
	MW_TRY(reserve(size, &base));
	*bytes = (struct mw_elf_bytes){.base = base,
				       .size = size,
				       .fd = own,
				       .device = st.st_dev,
				       .inode = st.st_ino,
				       .modified = st.st_mtim,
				       .changed = st.st_ctim,
				       .loaded = MW_TAKE(loaded)};
	own = -1;
	(void)pthread_mutex_init(&bytes->lock, NULL);
	return NULL;
}

static struct mw_error *bytes_copy(struct mw_elf_bytes *bytes, const void *from, size_t size)
{
	uint8_t *base = NULL;

	MW_TRY(reserve(size, &base));
	memcpy(base, from, size);
	*bytes = (struct mw_elf_bytes){.base = base, .size = size, .fd = -1};
	(void)pthread_mutex_init(&bytes->lock, NULL);
	return NULL;
}

static void bytes_deinit(struct mw_elf_bytes *bytes)
{
	if (!bytes->base)
		return;
	(void)munmap(bytes->base, bytes->size);
	(void)pthread_mutex_destroy(&bytes->lock);
	free((void *)bytes->loaded);
	if (bytes->fd >= 0)
		close(bytes->fd);
	bytes->base = NULL;
}

static bool load_chunk(struct mw_elf_bytes *bytes, uint64_t chunk)
{
	uint64_t at = chunk * CHUNK;
	uint64_t end = bytes->size - at < CHUNK ? bytes->size : at + CHUNK;

	if (bytes->resident + (end - at) > MAX_RESIDENT)
		return false;
	if (mw_read_at(bytes->fd, bytes->base + at, end - at, at) != (ssize_t)(end - at))
		return false;
	bytes->resident += CHUNK;
	return true;
}

static bool load(struct mw_elf_bytes *bytes, uint64_t first, uint64_t last)
{
	bool good = true;

	(void)pthread_mutex_lock(&bytes->lock);
	for (uint64_t chunk = first; chunk <= last && good; chunk++) {
		if (atomic_load_explicit(&bytes->loaded[chunk], memory_order_relaxed))
			continue;
		good = load_chunk(bytes, chunk);
		if (good)
			atomic_store_explicit(&bytes->loaded[chunk], 1, memory_order_release);
	}
	(void)pthread_mutex_unlock(&bytes->lock);
	return good;
}

const uint8_t *mw_elf_file_bytes(const struct mw_elf *elf, uint64_t offset, size_t size)
{
	/* The image may be const: loading does not change what it says. */
	struct mw_elf_bytes *bytes = (struct mw_elf_bytes *)&elf->bytes;

	if (offset > bytes->size || size > bytes->size - offset)
		return NULL;
	if (bytes->loaded && size) {
		uint64_t last = (offset + size - 1) / CHUNK;

		for (uint64_t chunk = offset / CHUNK; chunk <= last; chunk++) {
			if (atomic_load_explicit(&bytes->loaded[chunk], memory_order_acquire))
				continue;
			if (!load(bytes, chunk, last))
				return NULL;
			break;
		}
	}
	return bytes->base + offset;
}

/* --- sections, build-id, dynamic section ---------------------------------------------------------------- */

static bool holds(const struct mw_elf_segment *segment, uint64_t vaddr)
{
	return vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->file_size;
}

/* Where a virtual address stands in the file, and how many bytes of its segment follow. Any segment. */
static bool offset_of(const struct mw_elf *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available)
{
	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (!holds(segment, vaddr))
			continue;
		*offset = segment->offset + (vaddr - segment->vaddr);
		*available = segment->file_size - (vaddr - segment->vaddr);
		return true;
	}
	return false;
}

/* The string at `index` of a string table, or NULL where it does not end inside. */
static const char *string_in(const uint8_t *table, uint64_t size, uint64_t index)
{
	uint64_t rest;

	if (index >= size)
		return NULL;
	rest = size - index;
	if (!memchr(table + index, '\0', rest < MAX_STRING ? rest : MAX_STRING))
		return NULL;
	return (const char *)table + index;
}

static const char *string_of(const struct mw_elf *elf, struct mw_elf_range table, uint64_t index)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, table.offset, table.size);

	return bytes ? string_in(bytes, table.size, index) : NULL;
}

bool mw_elf_section_header(const struct mw_elf *elf, uint64_t index, Elf64_Shdr *out, const char **name)
{
	const uint8_t *bytes;

	if (index >= elf->section_count)
		return false;
	bytes = mw_elf_file_bytes(elf, elf->sections + index * sizeof(*out), sizeof(*out));
	if (!bytes)
		return false;
	memcpy(out, bytes, sizeof(*out));
	if (name)
		*name = string_of(elf, elf->section_names, out->sh_name);
	return true;
}

/* The range of a section in the file; size 0 where it has no bytes or lies outside. */
static struct mw_elf_range section_range(const struct mw_elf *elf, const Elf64_Shdr *header)
{
	struct mw_elf_range range = {header->sh_offset, header->sh_size};

	if (header->sh_type == SHT_NOBITS || header->sh_type == SHT_NULL || header->sh_offset > elf->bytes.size ||
	    header->sh_size > elf->bytes.size - header->sh_offset)
		range = (struct mw_elf_range){0, 0};
	return range;
}

static void init_sections(struct mw_elf *elf, const Elf64_Ehdr *header)
{
	uint64_t room, names = header->e_shstrndx;
	Elf64_Shdr first, table;

	if (!header->e_shoff || header->e_shoff >= elf->bytes.size || header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	room = (elf->bytes.size - header->e_shoff) / sizeof(Elf64_Shdr);
	elf->sections = header->e_shoff;
	elf->section_count = room ? 1 : 0;
	if (!mw_elf_section_header(elf, 0, &first, NULL))
		return;
	/* Numbers too large for the ELF header stand in the first section header. */
	elf->section_count = header->e_shnum ? header->e_shnum : first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (elf->section_count > room || elf->section_count > MAX_SECTIONS) {
		elf->section_count = 0;
		return;
	}
	if (mw_elf_section_header(elf, names, &table, NULL))
		elf->section_names = section_range(elf, &table);
}

struct mw_elf_section mw_elf_section(const struct mw_elf *elf, const char *name)
{
	struct mw_elf_section found = {0};
	Elf64_Shdr header;
	const char *own;

	for (uint64_t i = 1; mw_elf_section_header(elf, i, &header, &own); i++) {
		struct mw_elf_range range;

		if (!own || strcmp(own, name) != 0)
			continue;
		range = section_range(elf, &header);
		if (!range.size)
			continue;
		found.vaddr = header.sh_flags & SHF_ALLOC ? header.sh_addr : 0;
		found.offset = range.offset;
		found.size = range.size;
		found.compressed = (header.sh_flags & SHF_COMPRESSED) != 0 || strncmp(name, ".zdebug", 7) == 0;
		found.present = true;
		break;
	}
	return found;
}

bool mw_elf_is_go(const struct mw_elf *elf)
{
	return mw_elf_section(elf, ".note.go.buildid").present || mw_elf_section(elf, ".go.buildinfo").present ||
	       mw_elf_section(elf, ".gopclntab").present;
}

/* Search notes for the build-id. Names and descriptions are padded to 4 bytes (also where p_align says 8,
 * which only property notes use, and those have sizes that fit both). */
static bool find_build_id(struct mw_elf *elf, struct mw_elf_range range)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, range.offset, range.size);
	uint64_t at = 0;

	if (!bytes)
		return false;
	while (range.size - at >= sizeof(Elf64_Nhdr)) {
		uint64_t name, description, next;
		Elf64_Nhdr note;

		memcpy(&note, bytes + at, sizeof(note));
		name = at + sizeof(note);
		description = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
		next = description + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (description > range.size || note.n_descsz > range.size - description)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= sizeof(elf->build_id)) {
			memcpy(elf->build_id, bytes + description, note.n_descsz);
			elf->build_id_size = note.n_descsz;
			elf->build_id_note = (struct mw_elf_range){range.offset + description, note.n_descsz};
			return true;
		}
		if (next > range.size)
			return false;
		at = next;
	}
	return false;
}

static void init_build_id(struct mw_elf *elf)
{
	struct mw_elf_section section;

	for (size_t i = 0; i < elf->note_count; i++)
		if (find_build_id(elf, elf->notes[i]))
			return;
	section = mw_elf_section(elf, ".note.gnu.build-id");
	if (section.present)
		(void)find_build_id(elf, (struct mw_elf_range){section.offset, section.size});
}

static void take_dynamic_strings(struct mw_elf *elf, uint64_t vaddr, uint64_t size)
{
	uint64_t offset, available;

	if (!offset_of(elf, vaddr, &offset, &available))
		return;
	elf->dynamic_strings = (struct mw_elf_range){offset, size < available ? size : available};
}

static void init_dynamic(struct mw_elf *elf)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, elf->dynamic.offset, elf->dynamic.size);
	uint64_t strings = 0, strings_size = 0, soname = 0;
	const char *name;

	if (!bytes)
		return;
	for (uint64_t at = 0; elf->dynamic.size - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_NEEDED)
			elf->is_static = false;
		else if (entry.d_tag == DT_SONAME)
			soname = entry.d_un.d_val;
		else if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			strings_size = entry.d_un.d_val;
		else if (entry.d_tag == DT_SYMTAB)
			elf->dynamic_symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_HASH)
			elf->hash = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			elf->gnu_hash = entry.d_un.d_ptr;
	}
	take_dynamic_strings(elf, strings, strings_size);
	name = soname ? string_of(elf, elf->dynamic_strings, soname) : NULL;
	if (name && *name)
		elf->soname = strdup(name);
}

/* --- the image ------------------------------------------------------------------------------------------ */

static struct mw_error *not_elf(const struct mw_elf *elf, const char *why)
{
	return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file that can be read: %s", elf->name, why);
}

/* How many program headers there are: the header's field, or a section header's where that is too small. */
static uint64_t count_program_headers(const struct mw_elf *elf, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	if (header->e_phnum != PN_XNUM || !mw_elf_section_header(elf, 0, &first, NULL))
		return header->e_phnum;
	return first.sh_info;
}

/* The part of a range that the file has. */
static struct mw_elf_range clamp(const struct mw_elf *elf, uint64_t offset, uint64_t size)
{
	struct mw_elf_range range = {offset, size};

	if (offset >= elf->bytes.size)
		range.size = 0;
	else if (size > elf->bytes.size - offset)
		range.size = elf->bytes.size - offset;
	return range;
}

static void take_load(struct mw_elf *elf, const Elf64_Phdr *header)
{
	struct mw_elf_segment *segment = &elf->segments[elf->segment_count];
	struct mw_elf_range range = clamp(elf, header->p_offset, header->p_filesz);
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
		elf->is_static = false;
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
	bytes = mw_elf_file_bytes(elf, header->e_phoff, count * sizeof(Elf64_Phdr));
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
	const uint8_t *ident = mw_elf_file_bytes(elf, 0, sizeof(Elf32_Ehdr));
	const uint8_t *whole;
	Elf64_Ehdr header;

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return not_elf(elf, "it does not begin with an ELF header");
	if (ident[EI_DATA] != ELFDATA2LSB)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s is not little-endian", elf->name);
	/* Up to e_machine both classes look the same. */
	memcpy(&elf->type, ident + offsetof(Elf64_Ehdr, e_type), sizeof(elf->type));
	memcpy(&elf->machine, ident + offsetof(Elf64_Ehdr, e_machine), sizeof(elf->machine));
	elf->is_executable = elf->type == ET_EXEC;
	if (ident[EI_CLASS] == ELFCLASS32)
		return NULL;
	whole = mw_elf_file_bytes(elf, 0, sizeof(header));
	if (ident[EI_CLASS] != ELFCLASS64 || !whole)
		return not_elf(elf, "its header is invalid");
	memcpy(&header, whole, sizeof(header));
	elf->is_64 = true;
	init_sections(elf, &header);
	MW_TRY(read_program_headers(elf, &header));
	init_dynamic(elf);
	init_build_id(elf);
	return NULL;
}

void mw_elf_unref(struct mw_elf *elf)
{
	if (!elf || !mw_elf_let_go(elf))
		return;
	mw_elf_forget_all(elf);
	mw_elf_unref(elf->companion);
	bytes_deinit(&elf->bytes);
	free(elf->segments);
	free(elf->notes);
	free(elf->soname);
	free(elf->name);
	free(elf);
}

static void drop(struct mw_elf **elf)
{
	mw_elf_unref(*elf);
}

static struct mw_error *create(const char *name, struct mw_elf **out)
{
	struct mw_elf *elf = *out = calloc(1, sizeof(*elf));

	if (!elf)
		return mw_error_nomem();
	atomic_init(&elf->references, 1);
	elf->bytes.fd = -1;
	elf->is_static = true;
	elf->name = strdup(name);
	return elf->name ? NULL : mw_error_nomem();
}

struct mw_error *mw_elf_open(int fd, const char *name, struct mw_elf **out)
{
	MW_CLEANUP(drop) struct mw_elf *elf = NULL;

	MW_TRY(create(name, &elf));
	MW_TRY(bytes_open(&elf->bytes, fd, name));
	MW_TRY(read_headers(elf));
	*out = MW_TAKE(elf);
	return NULL;
}

struct mw_error *mw_elf_open_memory(const void *bytes, size_t size, const char *name, struct mw_elf **out)
{
	MW_CLEANUP(drop) struct mw_elf *elf = NULL;

	if (size == 0)
		return mw_error_create(MW_ERROR_DATA, 0, "%s is not an ELF file: it is empty", name);
	MW_TRY(create(name, &elf));
	MW_TRY(bytes_copy(&elf->bytes, bytes, size));
	MW_TRY(read_headers(elf));
	*out = MW_TAKE(elf);
	return NULL;
}

bool mw_elf_has_symbols(const struct mw_elf *elf)
{
	return elf->companion || mw_elf_section(elf, ".symtab").present;
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
	uint64_t into = segment ? vaddr - segment->vaddr : 0;

	if (!segment || size > segment->file_size - into)
		return NULL;
	return mw_elf_file_bytes(elf, segment->offset + into, size);
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
	size_t size = segment ? segment->file_size - (vaddr - segment->vaddr) : 0;
	const uint8_t *bytes = segment ? mw_elf_span(elf, vaddr, size) : NULL;

	if (bytes)
		*available = size;
	return bytes;
}

/* --- symbols, from the sections or from what the loader uses ---------------------------------------------- */

struct table {
	struct mw_elf_range symbols, strings;
	bool dynamic;
};

/* The name without "@VERSION", which .symtab has too ("memcpy@@GLIBC_2.14"): in `plain` where it has one. NULL without
 * memory. */
static const char *plain_name(const char *name, char **plain, size_t *room)
{
	size_t length = strcspn(name, "@");

	if (!length || !name[length])
		return name;
	if (!MW_VECTOR_ROOM(*plain, length, *room))
		return NULL;
	memcpy(*plain, name, length);
	(*plain)[length] = '\0';
	return *plain;
}

/* The value of a thread's own variable is no address, but an offset, which may be 0. */
static bool is_wanted(const Elf64_Sym *symbol, bool of_threads)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON)
		return false;
	if (of_threads)
		return type == STT_TLS;
	return symbol->st_value != 0 && type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

typedef bool (*visitor)(void *context, const struct mw_elf_symbol *symbol);

/* *more: what the visitor said last. */
static struct mw_error *visit_table(struct mw_elf *elf, const struct table *table, bool of_threads, visitor visit,
				    void *context, bool *more)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, table->symbols.offset, table->symbols.size);
	const uint8_t *strings = mw_elf_file_bytes(elf, table->strings.offset, table->strings.size);
	MW_FREE char *plain = NULL;
	size_t room = 0;

	if (!bytes || !strings)
		return NULL;
	for (uint64_t at = 0; *more && table->symbols.size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		struct mw_elf_symbol symbol;
		Elf64_Sym raw;
		unsigned type;

		memcpy(&raw, bytes + at, sizeof(raw));
		if (!is_wanted(&raw, of_threads))
			continue;
		symbol.name = string_in(strings, table->strings.size, raw.st_name);
		if (!symbol.name || !*symbol.name)
			continue;
		if (!table->dynamic) {
			symbol.name = plain_name(symbol.name, &plain, &room);
			if (!symbol.name)
				return mw_error_nomem();
		}
		type = ELF64_ST_TYPE(raw.st_info);
		symbol.vaddr = raw.st_value;
		symbol.size = raw.st_size;
		symbol.dynamic = table->dynamic;
		symbol.ifunc = type == STT_GNU_IFUNC;
		symbol.function = type == STT_FUNC || symbol.ifunc;
		symbol.object = type == STT_OBJECT;
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

	if (!elf->hash || !offset_of(elf, elf->hash, &offset, &available) ||
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

	if (!elf->gnu_hash || !offset_of(elf, elf->gnu_hash, &offset, &available))
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
	if (!count || !elf->dynamic_symbols || !offset_of(elf, elf->dynamic_symbols, &offset, &available))
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
		out->symbols = section_range(elf, &header);
		out->strings = section_range(elf, &strings);
		out->dynamic = type == SHT_DYNSYM;
		if (out->symbols.size && out->strings.size)
			return true;
	}
	return false;
}

static struct mw_error *visit_all(struct mw_elf *elf, bool of_threads, visitor visit, void *context)
{
	struct table table;
	bool more = true;

	if (find_section_table(elf, SHT_DYNSYM, &table) || find_loader_table(elf, &table))
		MW_TRY(visit_table(elf, &table, of_threads, visit, context, &more));
	if (more && find_section_table(elf, SHT_SYMTAB, &table))
		MW_TRY(visit_table(elf, &table, of_threads, visit, context, &more));
	if (more && elf->companion && find_section_table(elf->companion, SHT_SYMTAB, &table))
		MW_TRY(visit_table(elf->companion, &table, of_threads, visit, context, &more));
	return NULL;
}

struct mw_error *mw_elf_each_symbol(struct mw_elf *elf, visitor visit, void *context)
{
	return visit_all(elf, false, visit, context);
}

struct mw_error *mw_elf_each_thread_variable(struct mw_elf *elf, visitor visit, void *context)
{
	return visit_all(elf, true, visit, context);
}
