/* SPDX-License-Identifier: MIT */
/*
 * elf_image.h: an ELF file (or one that lies in a target's memory, as the vdso does) opened for
 * reading: its segments, build-id, symbols and unwind sections.
 *
 * Everything in it is hostile: each offset and length is checked against the file's size.
 */
#ifndef MW_SYMBOL_ELF_IMAGE_H
#define MW_SYMBOL_ELF_IMAGE_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <elf.h>
#include <pthread.h>
#include <sys/types.h>
#include <time.h>

struct stat;

/*
 * The bytes of a file, loaded piece by piece when they are first asked for.
 *
 *     base ┌──────────┬──────────┬──────────┬─────┐ base + size
 *          │ loaded   │ untouched│ loaded   │     │   one private anonymous mapping
 *          └──────────┴──────────┴──────────┴─────┘   as large as the file was
 *
 * A mapping of the file itself would raise SIGBUS when the file shrinks; a copy of the whole file
 * wastes memory on what nobody reads. A piece once loaded never changes, so what has been checked
 * stays true. Any thread may ask.
 */
struct mw_elf_bytes {
	uint8_t *base;
	uint64_t size;
	int fd;       /* -1: all bytes are there */
	dev_t device; /* … else which file it is, and as of when */
	ino_t inode;
	struct timespec modified, changed;
	_Atomic uint8_t *loaded; /* one flag a piece */
	uint64_t resident;       /* loaded so far; under the lock */
	pthread_mutex_t lock;
};

/* A range of the file. size 0: not there. */
struct mw_elf_range {
	uint64_t offset, size;
};

struct mw_elf_segment {
	uint64_t vaddr, memory_size, offset, file_size;
	bool read, write, exec;
};

struct mw_elf_section {
	uint64_t vaddr; /* 0 where not loaded */
	uint64_t offset, size;
	bool present, compressed;
};

/* Reference counted; to be changed by elf_*.c only. */
struct mw_elf {
	char *name; /* as it was opened */
	uint16_t type, machine;
	bool is_64;
	bool is_executable;                       /* ET_EXEC: its addresses are absolute */
	bool is_static;                           /* no PT_INTERP and no DT_NEEDED */
	struct mw_elf_segment *segments;          /* PT_LOADs, in the order of the file */
	size_t segment_count;                     /* … how many */
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* PT_GNU_EH_FRAME: vaddr and size, which is 0 where there is none */
	char *soname;                             /* or NULL */
	uint8_t build_id[64];
	size_t build_id_size;              /* 0: none */
	struct mw_elf_range build_id_note; /* its bytes in the file */
	struct mw_elf *companion;          /* the file with the symbols of a stripped static program, or NULL */
	struct mw_elf_bytes bytes;         /* the descriptor is a duplicate; -1 for an image from memory */

	/* For elf_*.c alone. */
	_Atomic unsigned references;
	struct mw_elf_range *notes; /* PT_NOTEs */
	size_t note_count;
	uint64_t sections; /* file offset of the section headers */
	uint64_t section_count;
	struct mw_elf_range section_names;
	struct mw_elf_range dynamic, dynamic_strings;
	uint64_t dynamic_symbols, hash, gnu_hash; /* vaddr, 0: none */
	bool is_shared;
	struct mw_elf *next_shared;
	struct mw_elf_fact *facts;
};

/* Open from a descriptor, of which the image keeps a duplicate. */
struct mw_error *mw_elf_open(int fd, const char *name, struct mw_elf **out) MW_MUST_CHECK;
/* From bytes (copied). */
struct mw_error *mw_elf_open_memory(const void *bytes, size_t size, const char *name,
				    struct mw_elf **out) MW_MUST_CHECK;
static inline struct mw_elf *mw_elf_ref(struct mw_elf *elf)
{
	if (elf)
		elf->references++;
	return elf;
}
void mw_elf_unref(struct mw_elf *elf); /* NULL is fine */

/* --- one image for all processes that have the file (elf_shared.c; any thread) ---------------------------- */

/*
 * A new reference to an image that is open of this file, or NULL. The file is the same where device, inode, size and
 * the times of its last changes are: what was replaced, or written over, is another one. An image that nobody has a
 * reference to is closed.
 */
struct mw_elf *mw_elf_find_shared(const struct stat *st);
/* From now on the image is found, and does not change: its companion has been looked for. One from memory stays its
 * owner's. */
void mw_elf_share(struct mw_elf *elf);
/* For mw_elf_unref() alone: one reference less. Was it the last one? */
bool mw_elf_let_go(struct mw_elf *elf);

/* Something that is worked out of an image, and nothing else, and kept with it. */
struct mw_elf_fact_kind {
	/* `*out` is not NULL. Other facts may be asked for. */
	struct mw_error *(*make)(struct mw_elf *elf, const void *context, void **out);
	void (*destroy)(void *fact);
};

/* The fact of that kind and key, which is made where there is none yet. It belongs to the image, and is good as long as
 * that. `context` is for `make`, and says no more than the key. Errors: those of `make`, which are not kept; MEMORY. */
struct mw_error *mw_elf_fact(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2],
			     const void *context, const void **out) MW_MUST_CHECK;
/* A function or variable that is looked for by its name, and where that is; vaddr 0: there is none. */
struct mw_named_symbol {
	const char *name; /* static text */
	uint64_t vaddr, size;
};
/* Find these in a file: once, whoever asks (mw_elf_fact). Errors: MEMORY; those of reading its symbols. */
struct mw_error *mw_elf_find_named(struct mw_elf *elf, struct mw_named_symbol *named, size_t count) MW_MUST_CHECK;
/* Destroy a fact, if there is one. Nobody uses it any more. */
void mw_elf_forget(struct mw_elf *elf, const struct mw_elf_fact_kind *kind, const uint64_t key[2]);
/* For mw_elf_unref() alone. */
void mw_elf_forget_all(struct mw_elf *elf);

/* Bytes of code in the file. */
static inline uint64_t mw_elf_code_size(const struct mw_elf *elf)
{
	uint64_t size = 0;

	for (size_t i = 0; i < elf->segment_count; i++)
		size += elf->segments[i].exec ? elf->segments[i].file_size : 0;
	return size;
}

bool mw_elf_has_symbols(const struct mw_elf *elf); /* a .symtab, or a companion */
/* Has Go's linker made it? Its runtime maps memory by system calls of its own and allocates from that: there is no
 * function to hook. Also where it is stripped. */
bool mw_elf_is_go(const struct mw_elf *elf);
/* One section header, and its name or NULL (`name` may be NULL); false beyond the last. */
bool mw_elf_section_header(const struct mw_elf *elf, uint64_t index, Elf64_Shdr *out, const char **name);
struct mw_elf_section mw_elf_section(const struct mw_elf *elf, const char *name);
/* Copy bytes of a read-only (not writable) loaded segment by virtual address, as the file has them.
 * False where they lie in no such segment. */
bool mw_elf_read(const struct mw_elf *elf, uint64_t vaddr, void *out, size_t size);
/* A pointer to such bytes that is good as long as the image, or NULL; *available: how many follow. */
const uint8_t *mw_elf_bytes(const struct mw_elf *elf, uint64_t vaddr, size_t *available);
/* The same for exactly `size` bytes, or NULL. Loads no more than these (mw_elf_bytes loads its segment to the end,
 * which for the text of a large program is much). */
const uint8_t *mw_elf_span(const struct mw_elf *elf, uint64_t vaddr, size_t size);
/* `size` bytes at a file offset, good as long as the image; NULL where the file has not (or no longer) so many. */
const uint8_t *mw_elf_file_bytes(const struct mw_elf *elf, uint64_t offset, size_t size);

struct mw_elf_symbol {
	const char *name; /* without a version; good during the visit */
	uint64_t vaddr, size;
	bool dynamic; /* from .dynsym, else from .symtab, its own or the companion's */
	bool ifunc;
	bool function;
	bool object; /* a variable, but not one of a thread's own */
	bool local;
};

/* Call `visit` for each defined symbol of .dynsym and .symtab (global, weak and local) until it returns false. */
struct mw_error *mw_elf_each_symbol(struct mw_elf *elf,
				    bool (*visit)(void *context, const struct mw_elf_symbol *symbol),
				    void *context) MW_MUST_CHECK;

/* The same for variables of a thread's own: `vaddr` is the offset in the module's block of them. */
struct mw_error *mw_elf_each_thread_variable(struct mw_elf *elf,
					     bool (*visit)(void *context, const struct mw_elf_symbol *symbol),
					     void *context) MW_MUST_CHECK;

/* --- files elsewhere that belong to a module (elf_find.c) ------------------------------------------------- */

/*
 * Find the companion of a stripped static program: the symbols that strip has left of it elsewhere. In this order:
 * .gnu_debugdata (a small ELF file, packed by xz, in the program itself), the debug file of its build-id under
 * /usr/lib/debug, the one that .gnu_debuglink names (beside the program, in .debug beside it, or under
 * /usr/lib/debug). Files are looked for in the process's root and in memwatch's own.
 *
 * Code is patched at the addresses that these symbols tell. So a file is taken only if its build-id is the program's
 * or, where one of them has none, the checksum in .gnu_debuglink is the file's; and if all sections of code lie where
 * the program has them.
 *
 * Does nothing where `elf` is no static program, or has symbols of its own. `path`: as the process `tid` sees it.
 * Errors: MEMORY; that there are none is no error.
 */
struct mw_error *mw_elf_find_symbols(struct mw_elf *elf, pid_t tid, const char *path) MW_MUST_CHECK;
/* Is it such a program, and has none yet? */
bool mw_elf_lacks_symbols(const struct mw_elf *elf);

/*
 * The file of a module that a recording names, on this machine, which may be another one. What has the same build-id is
 * the same file, or its debug information; nothing else is taken for it. In each directory, in their order, these are
 * tried, then the path as it is:
 *   DIRECTORY/PATH  DIRECTORY/NAME  DIRECTORY/NAME.debug  DIRECTORY/.build-id/xx/yyyy[.debug]
 * *out is NULL where there is none. Errors: MEMORY.
 */
struct mw_error *mw_find_file(const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *const *directories, size_t count, struct mw_elf **out) MW_MUST_CHECK;

#endif
