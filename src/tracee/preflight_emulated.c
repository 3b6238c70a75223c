// SPDX-License-Identifier: MIT
/* preflight_emulated.c: programs whose code is translated and never run as it stands in memory (preflight.h). */
#include "tracee/preflight.h"

#include "proc/maps.h"
#include "proc/status.h"

#include <stdlib.h>
#include <string.h>

#define QEMU "qemu-"

/* What qemu's programs that emulate one process are called after "qemu-"; others (system-…, img, ga) do not. */
static const char *const qemu_machines[] = {
	"aarch64", "aarch64_be", "alpha",       "arm",     "armeb",      "cris",         "hexagon",
	"hppa",    "i386",       "loongarch64", "m68k",    "microblaze", "microblazeel", "mips",
	"mips64",  "mips64el",   "mipsel",      "mipsn32", "mipsn32el",  "nios2",        "or1k",
	"ppc",     "ppc64",      "ppc64le",     "riscv32", "riscv64",    "s390x",        "sh4",
	"sh4eb",   "sparc",      "sparc32plus", "sparc64", "x86_64",     "xtensa",       "xtensaeb",
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static const char *name_in(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A tool of valgrind's is a static program (…/libexec/valgrind/memcheck-amd64-linux) that maps and translates the
 * other. */
static bool is_valgrind(const char *exe)
{
	return ends_with(exe, "-linux") && (strstr(exe, "/valgrind/") || strstr(exe, "/.in_place/"));
}

static bool is_qemu(const char *exe)
{
	const char *name = name_in(exe);
	size_t length;

	if (strncmp(name, QEMU, strlen(QEMU)) != 0)
		return false;
	name += strlen(QEMU);
	/* qemu-arm, qemu-arm-static */
	length = ends_with(name, "-static") ? strlen(name) - strlen("-static") : strlen(name);
	for (size_t i = 0; i < sizeof(qemu_machines) / sizeof(qemu_machines[0]); i++)
		if (strlen(qemu_machines[i]) == length && strncmp(name, qemu_machines[i], length) == 0)
			return true;
	return false;
}

/* What valgrind preloads into a program that is not static. */
static bool has_preload(const struct mw_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strncmp(name_in(maps->items[i].path), "vgpreload_", strlen("vgpreload_")) == 0)
			return true;
	return false;
}

enum mw_emulator mw_emulator_of(const char *exe, const struct mw_maps *maps)
{
	if (is_valgrind(exe) || has_preload(maps))
		return MW_EMULATOR_VALGRIND;
	return is_qemu(exe) ? MW_EMULATOR_QEMU : MW_EMULATOR_NONE;
}

static struct mw_error *refuse(enum mw_emulator emulator, const char *what)
{
	if (emulator == MW_EMULATOR_VALGRIND)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "%s runs under valgrind, which translates the program's code: "
						     "memwatch cannot hook its functions",
						     what),
				     "Run the program without valgrind; or let valgrind tell: memcheck finds leaks, "
				     "massif profiles the heap");
	if (emulator == MW_EMULATOR_QEMU)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "%s runs under qemu, which translates the program's code: "
						     "memwatch cannot hook its functions",
						     what),
				     "Watch a build of the program for this machine");
	return NULL;
}

struct mw_error *mw_preflight_emulator(const char *path, const char *what)
{
	const struct mw_maps none = {0};
	char *real = realpath(path, NULL);
	struct mw_error *err = refuse(mw_emulator_of(real ? real : path, &none), what);

	free(real);
	return err;
}

struct mw_error *mw_preflight_emulated(pid_t pid, const char *what)
{
	struct mw_maps maps = {0};
	char *exe = NULL;
	enum mw_emulator emulator;

	/* What can't be read is no reason to refuse: the engine will say what is wrong. */
	mw_error_destroy(mw_exe_read(pid, &exe));
	mw_error_destroy(mw_maps_read(pid, &maps));
	emulator = mw_emulator_of(exe ? exe : "", &maps);
	mw_maps_deinit(&maps);
	free(exe);
	return refuse(emulator, what);
}

/* The program that finds the tool and becomes it; in some distributions a script stands before it. */
static bool becomes_valgrind(const char *exe)
{
	return strcmp(name_in(exe), "valgrind") == 0 || strcmp(name_in(exe), "valgrind.bin") == 0;
}

struct mw_error *mw_preflight_became(pid_t pid, const char *what)
{
	char *exe = NULL;
	bool soon;

	mw_error_destroy(mw_exe_read(pid, &exe));
	soon = exe && becomes_valgrind(exe);
	free(exe);
	return soon ? refuse(MW_EMULATOR_VALGRIND, what) : mw_preflight_emulated(pid, what);
}
