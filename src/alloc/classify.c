// SPDX-License-Identifier: MIT
/* classify.c: what kind of code a module holds, by its name and its symbols. */
#include "alloc/families.h"

#include <string.h>

/* A library that has an allocator's own interface and more text than this does other things beside (an engine with
 * jemalloc linked in): its callers are to be charged. */
#define ALLOCATOR_TEXT_MAX (UINT64_C(2) << 20)

static const char *const runtime_names[] = {
	"ld-linux",   "ld-musl-",      "ld-2.",         "ld.so",        "ld64.so",      "libc.so",      "libc-2.",
	"libc.musl-", "libpthread.so", "libpthread-2.", "libdl.so",     "libdl-2.",     "librt.so",     "librt-2.",
	"libm.so",    "libm-2.",       "libmvec.so",    "libmvec-2.",   "libresolv.so", "libresolv-2.", "libutil.so",
	"libutil-2.", "libanl.so",     "libanl-2.",     "libstdc++.so", "libc++.so",    "libc++abi.so", "libgcc_s.so",
	"libgcc_s-",  "libsupc++.so",  "libunwind.so",  "libunwind-",   "libatomic.so", "[vdso]",       NULL,
};

static const char *const allocator_names[] = {
	"libjemalloc",  "libtcmalloc",       "libmimalloc", "libhoard",          "libsnmalloc",
	"libscudo",     "libclang_rt.scudo", "librpmalloc", "libc_malloc_debug", "libltalloc",
	"libnedmalloc", "libtbbmalloc",      NULL,
};

/* Interfaces that only an allocator offers. */
static const char *const allocator_markers[] = {
	"mallctl",
	"je_mallctl",
	"MallocExtension_GetStats",
	"_ZN15MallocExtension8instanceEv",
	"_ZN8tcmalloc15MallocExtension8GetStatsB5cxx11Ev",
	"mi_version",
	NULL,
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has_prefix(const char *name, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return false;
}

static enum mw_module_class class_of_name(const char *name)
{
	if (has_prefix(name, allocator_names))
		return MW_MODULE_ALLOCATOR;
	if (has_prefix(name, runtime_names))
		return MW_MODULE_RUNTIME;
	return MW_MODULE_OTHER;
}

static bool see_marker(void *context, const struct mw_elf_symbol *symbol)
{
	bool *seen = context;

	if (!symbol->dynamic || symbol->local)
		return true;
	for (const char *const *marker = allocator_markers; *marker; marker++)
		if (strcmp(symbol->name, *marker) == 0)
			*seen = true;
	return !*seen;
}

static uint64_t text_size(const struct mw_elf *elf)
{
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;
	uint64_t text = 0;

	for (size_t i = 0; i < count; i++)
		if (segments[i].exec && segments[i].file_size <= UINT64_MAX - text)
			text += segments[i].file_size;
	return text;
}

static bool is_allocator_library(const char *name, struct mw_elf *elf)
{
	bool seen = false;
	struct mw_error *err;

	if (elf->is_executable || mw_elf_section(elf, ".interp").present)
		return false;
	if (!elf->soname && !strstr(name, ".so"))
		return false;
	if (text_size(elf) > ALLOCATOR_TEXT_MAX)
		return false;
	err = mw_elf_each_symbol(elf, see_marker, &seen);
	mw_error_destroy(err); /* what can't be read says nothing */
	return seen;
}

enum mw_module_class mw_alloc_classify(const char *path, struct mw_elf *elf)
{
	const char *name = base_name(path ? path : "");
	enum mw_module_class found = class_of_name(name);

	if (found != MW_MODULE_OTHER || !elf)
		return found;
	if (elf->soname)
		found = class_of_name(elf->soname);
	if (found == MW_MODULE_OTHER && is_allocator_library(name, elf))
		found = MW_MODULE_ALLOCATOR;
	return found;
}

/* What tells glibc's malloc from one that takes its place. */
struct glibc_signs {
	uint64_t malloc, libc_malloc, free, libc_free;
	bool version;    /* gnu_get_libc_version in .dynsym */
	bool int_malloc; /* glibc's local workers */
	bool int_free;
};

static bool see_glibc(void *context, const struct mw_elf_symbol *symbol)
{
	struct glibc_signs *signs = context;
	const char *name = symbol->name;

	if (!symbol->function)
		return true;
	if (strcmp(name, "_int_malloc") == 0)
		signs->int_malloc = true;
	else if (strncmp(name, "_int_free", strlen("_int_free")) == 0)
		signs->int_free = true;
	if (symbol->local)
		return true;
	if (strcmp(name, "malloc") == 0)
		signs->malloc = symbol->vaddr;
	else if (strcmp(name, "free") == 0)
		signs->free = symbol->vaddr;
	else if (strcmp(name, "__libc_malloc") == 0)
		signs->libc_malloc = symbol->vaddr;
	else if (strcmp(name, "__libc_free") == 0)
		signs->libc_free = symbol->vaddr;
	else if (symbol->dynamic && strcmp(name, "gnu_get_libc_version") == 0)
		signs->version = true;
	return true;
}

bool mw_alloc_is_glibc(struct mw_elf *elf)
{
	struct glibc_signs signs = {0};
	struct mw_error *err = mw_elf_each_symbol(elf, see_glibc, &signs);
	bool own_names;

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	/* Both names lead to one function unless an allocator linked into the program has taken malloc over. */
	own_names = signs.malloc && signs.malloc == signs.libc_malloc && signs.free && signs.free == signs.libc_free;
	if (!own_names)
		return false;
	/* The library says who it is. A static program shows glibc's workers, which tcmalloc and mimalloc, though
	 * they define __libc_malloc too, don't have. */
	return signs.version || (signs.int_malloc && signs.int_free);
}
