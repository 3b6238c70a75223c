// SPDX-License-Identifier: MIT
/* elf_find.c: files elsewhere that belong to a module (elf_image.h). */
#include "symbol/elf_image.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/root.h"

#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DIRECTORY    "/usr/lib/debug"
#define MAX_PACKED   ((uint64_t)64 << 20)  /* .gnu_debugdata */
#define MAX_UNPACKED ((uint64_t)256 << 20) /* and what it may become, or xz may take for it */
#define MAX_CHECKED  ((uint64_t)2 << 30)   /* of a file whose checksum is to be made */
#define MAX_CODE     64                    /* sections */
#define BUILD_ID_MAX sizeof(((struct mw_elf *)0)->build_id)
#define BLOCK        ((size_t)64 << 10)

struct search {
	struct mw_elf *elf;
	pid_t tid;
	const char *link; /* what .gnu_debuglink says; NULL: nothing */
	uint32_t checksum;
};

/* --- does it belong to the program? -------------------------------------------------------------------- */

/* Has `other` a section of the same name, address and size? Its bytes may be left out (SHT_NOBITS). */
static bool has_section(const struct mw_elf *other, const char *name, const Elf64_Shdr *wanted)
{
	Elf64_Shdr section;
	const char *own;

	for (uint64_t i = 1; mw_elf_section_header(other, i, &section, &own); i++)
		if (own && strcmp(own, name) == 0 && section.sh_flags & SHF_ALLOC)
			return section.sh_addr == wanted->sh_addr && section.sh_size == wanted->sh_size;
	return false;
}

/* Are they symbols of the same code? */
static bool fits(const struct mw_elf *elf, const struct mw_elf *other)
{
	Elf64_Shdr section;
	const char *name;
	size_t count = 0;

	if (!other->is_64 || other->machine != elf->machine || other->type != elf->type ||
	    !mw_elf_section(other, ".symtab").present)
		return false;
	for (uint64_t i = 1; mw_elf_section_header(elf, i, &section, &name); i++) {
		if (!(section.sh_flags & SHF_ALLOC) || !(section.sh_flags & SHF_EXECINSTR))
			continue;
		if (!name || ++count > MAX_CODE || !has_section(other, name, &section))
			return false;
	}
	return count > 0;
}

static bool same_build_id(const struct mw_elf *elf, const struct mw_elf *other)
{
	return elf->build_id_size && elf->build_id_size == other->build_id_size &&
	       memcmp(elf->build_id, other->build_id, elf->build_id_size) == 0;
}

/* The checksum that .gnu_debuglink has of the whole file. */
static bool has_checksum(int fd, uint32_t wanted)
{
	MW_FREE unsigned char *block = malloc(BLOCK);
	uLong checksum = crc32(0, NULL, 0);
	ssize_t got = -1;
	uint64_t at = 0;

	while (block && at < MAX_CHECKED && (got = mw_read_at(fd, block, BLOCK, at)) > 0) {
		checksum = crc32(checksum, block, (uInt)got);
		at += (uint64_t)got;
	}
	return got == 0 && checksum == wanted;
}

static bool belongs(const struct search *search, const struct mw_elf *other)
{
	const struct mw_elf *elf = search->elf;

	if (!fits(elf, other))
		return false;
	if (elf->build_id_size && other->build_id_size)
		return same_build_id(elf, other);
	return search->link && has_checksum(other->bytes.fd, search->checksum);
}

/* --- where it may be ----------------------------------------------------------------------------------- */

static struct mw_error *try_path(const struct search *search, const char *path)
{
	const pid_t roots[] = {search->tid, getpid()};

	for (size_t i = 0; i < 2 && !search->elf->companion; i++) {
		MW_CLOSE int fd = mw_root_open(roots[i], path);
		struct mw_elf *other = NULL;

		if (fd < 0)
			continue;
		MW_TRY(mw_error_if_memory(mw_elf_open(fd, path, &other)));
		if (other && belongs(search, other))
			search->elf->companion = other;
		else
			mw_elf_unref(other);
	}
	return NULL;
}

/* "xx/yyyy…" of a build-id. */
static void name_build_id(const uint8_t *build_id, size_t size, char out[2 * BUILD_ID_MAX + 2])
{
	for (size_t i = 0, at = 0; i < size; i++) {
		at += (size_t)snprintf(out + at, 3, "%02x", build_id[i]);
		if (i == 0)
			out[at++] = '/';
	}
}

static struct mw_error *try_build_id(const struct search *search)
{
	char name[2 * BUILD_ID_MAX + 2], path[sizeof(DIRECTORY "/.build-id/.debug") + sizeof(name)];

	if (search->elf->build_id_size < 2)
		return NULL;
	name_build_id(search->elf->build_id, search->elf->build_id_size, name);
	(void)snprintf(path, sizeof(path), DIRECTORY "/.build-id/%s.debug", name);
	return try_path(search, path);
}

static struct mw_error *try_link(const struct search *search, const char *program)
{
	const char *slash = strrchr(program, '/');
	int length = slash ? (int)(slash - program) : 0;
	const char *const ways[][2] = {{"", ""}, {"", "/.debug"}, {DIRECTORY, ""}};

	if (!search->link || strlen(program) >= PATH_MAX)
		return NULL;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !search->elf->companion; i++) {
		char path[2 * PATH_MAX];

		if (snprintf(path, sizeof(path), "%s%.*s%s/%s", ways[i][0], length, program, ways[i][1], search->link) <
		    PATH_MAX)
			MW_TRY(try_path(search, path));
	}
	return NULL;
}

/* .gnu_debuglink: a file's name, zeros up to a multiple of four, and its checksum. */
static void read_link(struct search *search)
{
	struct mw_elf_section section = mw_elf_section(search->elf, ".gnu_debuglink");
	const uint8_t *bytes = section.present && section.size <= PATH_MAX
				       ? mw_elf_file_bytes(search->elf, section.offset, section.size)
				       : NULL;
	const char *name = bytes && memchr(bytes, '\0', section.size) ? (const char *)bytes : NULL;
	uint64_t at = name ? (strlen(name) + 1 + 3) & ~UINT64_C(3) : 0;

	if (!name || !*name || strchr(name, '/') || at + sizeof(search->checksum) > section.size)
		return;
	memcpy(&search->checksum, bytes + at, sizeof(search->checksum));
	search->link = name;
}

/* --- what lies in the program itself ------------------------------------------------------------------- */

/* Unpack all of `from`; NULL where that is no xz file, or a too large one. */
static uint8_t *unpack(const uint8_t *from, size_t size, size_t *unpacked)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t capacity = 4 * size;
	uint8_t *to = malloc(capacity);
	lzma_ret state = to ? lzma_stream_decoder(&stream, MAX_UNPACKED, 0) : LZMA_MEM_ERROR;

	stream.next_in = from;
	stream.avail_in = size;
	stream.next_out = to;
	stream.avail_out = capacity;
	while (state == LZMA_OK && (state = lzma_code(&stream, LZMA_FINISH)) == LZMA_OK && !stream.avail_out) {
		uint8_t *larger = 2 * capacity <= MAX_UNPACKED ? realloc(to, 2 * capacity) : NULL;

		if (!larger)
			break;
		to = larger;
		stream.next_out = to + capacity;
		stream.avail_out = capacity;
		capacity *= 2;
	}
	*unpacked = (size_t)stream.total_out;
	lzma_end(&stream);
	if (state == LZMA_STREAM_END && *unpacked)
		return to;
	free(to);
	return NULL;
}

static struct mw_error *try_embedded(struct mw_elf *elf)
{
	struct mw_elf_section section = mw_elf_section(elf, ".gnu_debugdata");
	const uint8_t *packed = section.present && section.size <= MAX_PACKED
					? mw_elf_file_bytes(elf, section.offset, section.size)
					: NULL;
	struct mw_elf *other = NULL;
	size_t size = 0;
	MW_FREE uint8_t *bytes = packed ? unpack(packed, section.size, &size) : NULL;

	if (!bytes)
		return NULL;
	MW_TRY(mw_error_if_memory(mw_elf_open_memory(bytes, size, ".gnu_debugdata", &other)));
	if (other && fits(elf, other) && (!other->build_id_size || same_build_id(elf, other)))
		elf->companion = other;
	else
		mw_elf_unref(other);
	return NULL;
}

bool mw_elf_lacks_symbols(const struct mw_elf *elf)
{
	/* Libraries, and loaders, have the symbols that are needed in .dynsym. */
	return elf->is_64 && elf->is_static && !elf->soname && !mw_elf_has_symbols(elf);
}

struct mw_error *mw_elf_find_symbols(struct mw_elf *elf, pid_t tid, const char *path)
{
	struct search search = {.elf = elf, .tid = tid};

	if (!mw_elf_lacks_symbols(elf))
		return NULL;
	MW_TRY(try_embedded(elf));
	if (elf->companion)
		return NULL;
	read_link(&search);
	MW_TRY(try_build_id(&search));
	return elf->companion ? NULL : try_link(&search, path);
}

/* --- the file of a module that a recording names --------------------------------------------------------- */

struct sought {
	const uint8_t *build_id;
	size_t size;
};

/* Open what is there if it is the one; *out stays NULL where it is not. */
static struct mw_error *try_file(const struct sought *sought, const char *path, struct mw_elf **out)
{
	MW_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct mw_elf *elf = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	elf = mw_elf_find_shared(&st);
	if (!elf)
		MW_TRY(mw_error_if_memory(mw_elf_open(fd, path, &elf)));
	if (elf && elf->build_id_size == sought->size && memcmp(elf->build_id, sought->build_id, sought->size) == 0)
		mw_elf_share(*out = elf);
	else
		mw_elf_unref(elf);
	return NULL;
}

static struct mw_error *try_directory(const struct sought *sought, const char *directory, const char *path,
				      struct mw_elf **out)
{
	char build_id[2 * BUILD_ID_MAX + 2] = "", name[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const struct {
		const char *middle, *name, *end;
	} ways[] = {
		{*path == '/' ? "" : "/", path, ""},
		{"/", base, ""},
		{"/", base, ".debug"},
		{"/.build-id/", build_id, ""},
		{"/.build-id/", build_id, ".debug"},
	};

	name_build_id(sought->build_id, sought->size, build_id);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !*out; i++)
		if ((size_t)snprintf(name, sizeof(name), "%s%s%s%s", directory, ways[i].middle, ways[i].name,
				     ways[i].end) < sizeof(name))
			MW_TRY(try_file(sought, name, out));
	return NULL;
}

struct mw_error *mw_find_file(const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *const *directories, size_t count, struct mw_elf **out)
{
	const struct sought sought = {.build_id = build_id, .size = build_id_size};
	struct mw_elf *found = NULL;

	if (path && build_id_size >= 2 && build_id_size <= BUILD_ID_MAX) {
		for (size_t i = 0; i < count && !found; i++)
			MW_TRY(try_directory(&sought, directories[i], path, &found));
		if (!found)
			MW_TRY(try_file(&sought, path, &found));
	}
	*out = found;
	return NULL;
}
