/* SPDX-License-Identifier: MIT */
/*
 * elf_image.h: an ELF file (or one that lies in a target's memory, as the vdso does) opened for
 * reading: its segments, build-id, symbols and unwind sections.
 *
 * Everything in it is hostile: each offset and length is checked against the file's size. The
 * file's bytes are copied or mapped privately; a file that shrinks under us must not raise SIGBUS
 * in memwatch (read with pread into memory where that can't be excluded).
 */
#ifndef MW_SYMBOL_ELF_IMAGE_H
#define MW_SYMBOL_ELF_IMAGE_H

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_elf_segment {
	uint64_t vaddr, memory_size, offset, file_size;
	bool read, write, exec;
};

struct mw_elf_section {
	uint64_t vaddr; /* 0 where not loaded */
	uint64_t offset, size;
	bool present, compressed;
};

struct mw_elf; /* opaque, reference counted */

/* Open from a descriptor (kept open by the image through a duplicate; needed for symbols later). */
struct mw_error *mw_elf_open(int fd, const char *name, struct mw_elf **out) MW_MUST_CHECK;
/* From bytes (copied). */
struct mw_error *mw_elf_open_memory(const void *bytes, size_t size, const char *name,
				    struct mw_elf **out) MW_MUST_CHECK;
struct mw_elf *mw_elf_ref(struct mw_elf *elf);
void mw_elf_unref(struct mw_elf *elf); /* NULL is fine */

const char *mw_elf_name(const struct mw_elf *elf); /* as it was opened */
int mw_elf_fd(const struct mw_elf *elf);           /* -1 for an image from memory */
uint16_t mw_elf_machine(const struct mw_elf *elf);
bool mw_elf_is_64(const struct mw_elf *elf);
bool mw_elf_is_executable(const struct mw_elf *elf); /* ET_EXEC: its addresses are absolute */
bool mw_elf_is_static(const struct mw_elf *elf);     /* no PT_INTERP and no DT_NEEDED */
/* The file that has the symbols of a stripped static program (elf_companion.h), or NULL. */
const struct mw_elf *mw_elf_companion(const struct mw_elf *elf);
bool mw_elf_has_symbols(const struct mw_elf *elf); /* a .symtab, or such a file */
/* Has Go's linker made it? Its runtime maps memory by system calls of its own and allocates from that: there is no
 * function to hook. Also where it is stripped. */
bool mw_elf_is_go(const struct mw_elf *elf);
const char *mw_elf_soname(const struct mw_elf *elf); /* or NULL */
/* Build-id bytes; size 0 where there is none. */
const uint8_t *mw_elf_build_id(const struct mw_elf *elf, size_t *size);
size_t mw_elf_segments(const struct mw_elf *elf, const struct mw_elf_segment **out); /* PT_LOADs */
struct mw_elf_section mw_elf_section(const struct mw_elf *elf, const char *name);
/* PT_GNU_EH_FRAME: vaddr and size; false where there is none. */
bool mw_elf_eh_frame_hdr(const struct mw_elf *elf, uint64_t *vaddr, uint64_t *size);
/* Copy bytes of a read-only (not writable) loaded segment by virtual address, as the file has them.
 * False where they lie in no such segment. */
bool mw_elf_read(const struct mw_elf *elf, uint64_t vaddr, void *out, size_t size);
/* A pointer to such bytes that is good as long as the image, or NULL; *available: how many follow. */
const uint8_t *mw_elf_bytes(const struct mw_elf *elf, uint64_t vaddr, size_t *available);
/* The same for exactly `size` bytes, or NULL. Loads no more than these (mw_elf_bytes loads its segment to the end,
 * which for the text of a large program is much). */
const uint8_t *mw_elf_span(const struct mw_elf *elf, uint64_t vaddr, size_t size);
/* A pointer to the file's bytes at a file offset (for sections that are not loaded). */
const uint8_t *mw_elf_file_bytes(const struct mw_elf *elf, uint64_t offset, size_t size);

struct mw_elf_symbol {
	const char *name; /* without a version; good as long as the image */
	uint64_t vaddr, size;
	bool dynamic; /* from .dynsym, else from .symtab, its own or that of elf_companion.h */
	bool ifunc;
	bool function;
	bool local;
};

/* Call `visit` for each defined symbol of .dynsym and .symtab (global, weak and local) until it returns false. */
struct mw_error *mw_elf_each_symbol(struct mw_elf *elf,
				    bool (*visit)(void *context, const struct mw_elf_symbol *symbol),
				    void *context) MW_MUST_CHECK;

#endif
