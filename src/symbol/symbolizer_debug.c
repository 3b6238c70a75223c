// SPDX-License-Identifier: MIT
/* symbolizer_debug.c: a session of libdwfl with one module, reported where its file says that it lies. */
#include "symbol/symbolizer_debug.h"
#include "symbol/no_memory.h"

#include "symbol/inflate.h"
#include "symbol/quiet_open.h"
#include "symbol/symbolizer_dwarf.h"
#include "symbol/symbolizer_index.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FEW 8u /* questions for symbols: for no more it does not pay to make an index */

struct mw_debug {
	const struct mw_elf *elf;
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias; /* libdwfl's address = vaddr + bias */
	bool sought;    /* debug information has been looked for */
	bool has_dwarf;
	bool is_embedded;      /* … stands in the file itself */
	Dwarf_Addr dwarf_bias; /* libdwfl's address = DWARF's + dwarf_bias */
	struct mw_units units;
	struct mw_symbol_index index; /* empty until it is made, or where it can't be */
	uint32_t asked;               /* questions for symbols */
	const char *obstacle;         /* why a file's debug information can't be read; NULL: it can */
};

/* libdwfl wants it writable. */
static char debuginfo_path[] = "+:.debug:/usr/lib/debug";
static char *debuginfo_path_pointer = debuginfo_path;

void (*__attribute__((noreturn)) mw_symbol_no_memory)(void);

/* Takes over `fd` (may be negative); what is compressed by zstd in the file is uncompressed behind the descriptor
 * returned. */
static int inflated(int fd, const char **obstacle)
{
	int copy = fd >= 0 ? mw_inflate_file(fd, obstacle) : -1;

	if (copy < 0)
		return fd;
	close(fd);
	return copy;
}

/* The file that a static program's symbols come from, which may lie in another root; -1: there is none. */
static int companion_fd(const struct mw_elf *elf, char **path)
{
	const struct mw_elf *companion = mw_elf_companion(elf);
	int fd = companion && mw_elf_fd(companion) >= 0 ? fcntl(mw_elf_fd(companion), F_DUPFD_CLOEXEC, 0) : -1;

	if (fd >= 0)
		*path = strdup(mw_elf_name(companion));
	return fd;
}

/*
 * libdwfl keeps the file open whose build-id it has compared, so that must be uncompressed from the start; of one
 * without it compares the checksum, which is that of the file as it is.
 */
static int find_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word checksum, char **path)
{
	struct mw_debug *debug = *user;
	const unsigned char *build_id;
	GElf_Addr address;
	bool plain = dwfl_module_build_id(module, &build_id, &address) <= 0;
	int fd;

	if (plain)
		mw_quiet_open_plain_begin();
	fd = dwfl_standard_find_debuginfo(module, user, name, base, file, link, checksum, path);
	if (plain)
		mw_quiet_open_plain_end();
	/* A link without a checksum names what several debug files share (dwz): the companion is another file. */
	if (fd < 0 && debug && (checksum || !link))
		fd = companion_fd(debug->elf, path);
	return inflated(fd, debug ? &debug->obstacle : NULL);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path_pointer,
};

/* All bytes of an image from memory: what its headers speak of, or at least its segments. */
static const uint8_t *image_bytes(const struct mw_elf *elf, size_t *size)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(elf, &segments), end = sizeof(Elf64_Ehdr);
	const uint8_t *bytes = mw_elf_file_bytes(elf, 0, sizeof(Elf64_Ehdr));
	Elf64_Ehdr header;

	if (!bytes)
		return NULL;
	memcpy(&header, bytes, sizeof(header));
	for (size_t i = 0; i < count; i++)
		if (segments[i].file_size <= SIZE_MAX - segments[i].offset &&
		    segments[i].offset + segments[i].file_size > end)
			end = segments[i].offset + segments[i].file_size;
	if (header.e_shoff < SIZE_MAX / 2) {
		size_t with = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;

		if (with > end && (bytes = mw_elf_file_bytes(elf, 0, with))) {
			*size = with;
			return bytes;
		}
	}
	*size = end;
	return mw_elf_file_bytes(elf, 0, end);
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written <= 0)
			return false;
		bytes += written;
		size -= (size_t)written;
	}
	return true;
}

/* A descriptor of our own for the image, or -1. libdw reads files only, so what comes from memory becomes one. */
static int image_fd(const struct mw_elf *elf)
{
	const uint8_t *bytes;
	size_t size;
	int fd;

	if (mw_elf_fd(elf) >= 0)
		return fcntl(mw_elf_fd(elf), F_DUPFD_CLOEXEC, 0);
	bytes = image_bytes(elf, &size);
	fd = bytes ? memfd_create("memwatch-image", MFD_CLOEXEC) : -1;
	if (fd >= 0 && !write_all(fd, bytes, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool report(struct mw_debug *debug, const struct mw_elf *elf, const char *path)
{
	int fd = inflated(image_fd(elf), &debug->obstacle);
	void **user;

	if (fd < 0)
		return false;
	dwfl_report_begin(debug->dwfl);
	debug->module = dwfl_report_elf(debug->dwfl, path, path, fd, 0, true);
	if (!debug->module)
		close(fd); /* consumed on success only */
	dwfl_report_end(debug->dwfl, NULL, NULL);
	if (debug->module && dwfl_module_info(debug->module, &user, NULL, NULL, NULL, NULL, NULL, NULL))
		*user = debug;
	return debug->module && dwfl_module_getelf(debug->module, &debug->bias);
}

struct mw_debug *mw_debug_open(const struct mw_elf *elf, const char *path)
{
	struct mw_debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return NULL;
	debug->elf = elf;
	debug->dwfl = dwfl_begin(&callbacks);
	if (!debug->dwfl || !report(debug, elf, path)) {
		mw_debug_close(debug);
		return NULL;
	}
	debug->is_embedded = mw_elf_section(elf, ".debug_info").present || mw_elf_section(elf, ".zdebug_info").present;
	return debug;
}

void mw_debug_close(struct mw_debug *debug)
{
	if (!debug)
		return;
	mw_units_deinit(&debug->units);
	mw_symbol_index_deinit(&debug->index);
	if (debug->dwfl)
		dwfl_end(debug->dwfl);
	free(debug);
}

/* Look for debug information, once. False without memory. */
static bool seek(struct mw_debug *debug)
{
	Dwarf *dwarf;
	bool good;

	if (debug->sought)
		return true;
	mw_quiet_open_begin();
	dwarf = dwfl_module_getdwarf(debug->module, &debug->dwarf_bias);
	if (dwarf && mw_symbol_no_memory)
		dwarf_new_oom_handler(dwarf, mw_symbol_no_memory);
	good = !dwarf || mw_units_init(&debug->units, dwarf);
	mw_quiet_open_end();
	if (!good)
		return false;
	debug->has_dwarf = debug->units.unit_count > 0;
	debug->sought = true;
	return true;
}

/* As dwfl_module_addrinfo. */
static const char *look_up(struct mw_debug *debug, GElf_Addr address, GElf_Off *offset, GElf_Sym *sym)
{
	const struct mw_indexed_symbol *found;
	GElf_Addr start;
	const char *name;

	if (debug->asked < FEW && ++debug->asked == FEW)
		(void)mw_symbol_index_init(&debug->index, debug->module);
	if (debug->index.items) {
		switch (mw_symbol_index_find(&debug->index, address, &found)) {
		case MW_INDEX_NOTHING:
			return NULL;
		case MW_INDEX_FOUND:
			name = dwfl_module_getsym_info(debug->module, (int)found->number, sym, &start, NULL, NULL,
						       NULL);
			*offset = address - start;
			return name;
		default:
			break;
		}
	}
	return dwfl_module_addrinfo(debug->module, address, offset, sym, NULL, NULL, NULL);
}

bool mw_debug_symbol(struct mw_debug *debug, uint64_t vaddr, struct mw_debug_symbol *symbol)
{
	GElf_Off offset;
	GElf_Sym sym;
	const char *name;

	mw_quiet_open_begin();
	name = look_up(debug, vaddr + debug->bias, &offset, &sym);
	mw_quiet_open_end();
	if (!name || !*name || offset > vaddr)
		return false;
	if (sym.st_size && offset >= sym.st_size)
		return false;
	*symbol = (struct mw_debug_symbol){name, vaddr - offset};
	return true;
}

bool mw_debug_frames(struct mw_debug *debug, uint64_t vaddr, uint64_t offset_from, const struct mw_debug_symbol *symbol,
		     struct mw_frame_list *list, bool *found)
{
	struct mw_dwarf_query query = {0};
	bool known, good;

	if (!seek(debug))
		return false;
	query.address = vaddr + debug->bias - debug->dwarf_bias;
	query.units = &debug->units;
	query.unit = mw_units_find(&debug->units, query.address);
	if (!query.unit) {
		*found = false;
		return true;
	}
	query.past = offset_from - vaddr;
	if (symbol) {
		query.symbol = symbol->name;
		query.has_offset = true;
		query.offset = offset_from - symbol->start;
	}
	mw_quiet_open_begin();
	good = mw_dwarf_frames(&query, list, &known);
	mw_quiet_open_end();
	if (!good)
		return false;
	*found = known;
	return true;
}

const char *mw_debug_obstacle(struct mw_debug *debug)
{
	return seek(debug) && !debug->has_dwarf ? debug->obstacle : NULL;
}

const char *mw_debug_source(struct mw_debug *debug)
{
	const char *main_file = NULL, *debug_file = NULL;
	int symbols;

	if (seek(debug) && debug->has_dwarf) {
		dwfl_module_info(debug->module, NULL, NULL, NULL, NULL, NULL, &main_file, &debug_file);
		if (debug->is_embedded)
			return "embedded";
		/* Files that come through debuginfod have a descriptor and no name. */
		return debug_file ? debug_file : "debuginfod";
	}
	mw_quiet_open_begin();
	symbols = dwfl_module_getsymtab(debug->module);
	mw_quiet_open_end();
	return symbols > 1 ? "only symbols" : "none";
}
