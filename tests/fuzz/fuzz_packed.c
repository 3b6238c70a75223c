// SPDX-License-Identifier: MIT
/*
 * fuzz_packed: libFuzzer's bytes as an ELF file with packed parts: debug sections that are compressed by zstd, and the
 * symbols of a static program in .gnu_debugdata or in another file. What is unpacked is an ELF file of limited size,
 * and symbols are of the same code.
 */
#include "fuzz.h"

#include "symbol/elf_image.h"
#include "symbol/inflate.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile uint64_t sum;

static bool take_symbol(void *context, const struct mw_elf_symbol *symbol)
{
	size_t *count = context;

	sum += strlen(symbol->name) + symbol->vaddr;
	return ++*count < 4096;
}

static void inflate(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), copy;
	const char *obstacle = NULL;
	struct stat st;

	insist(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	copy = mw_inflate_file(fd, &obstacle);
	if (copy >= 0) {
		insist(fstat(copy, &st) == 0 && st.st_size > (off_t)size);
		close(copy);
	}
	insist(!obstacle || *obstacle);
	close(fd);
}

static void find_symbols(const uint8_t *bytes, size_t size)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err = mw_elf_open_memory(bytes, size, "fuzz", &elf);
	const struct mw_elf *companion;
	size_t count = 0;

	if (!err)
		err = mw_elf_find_symbols(elf, getpid(), "/nowhere/fuzz");
	if (!err) {
		companion = elf->companion;
		insist(!companion || companion->machine == elf->machine);
		err = mw_elf_each_symbol(elf, take_symbol, &count);
	}
	mw_error_destroy(err);
	mw_elf_unref(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (!size)
		return 0;
	inflate(bytes, size);
	find_symbols(bytes, size);
	return 0;
}
