/* SPDX-License-Identifier: MIT */
/*
 * library_replaced LIBRARY IDLE [ROUNDS]: works with a library's functions (libplugin_leak.so), and has another loaded
 * that it never calls: files that may be deleted, replaced or cut short meanwhile.
 */
#include "library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		target_fail(dlerror());
	return library;
}

static KEEP void upgraded_leak(void)
{
	void *block = malloc(51);

	OPAQUE(block);
}

static KEEP void upgraded_pair(size_t size)
{
	unsigned char *block = malloc(size);

	memset(block, 0x51, size);
	OPAQUE(block);
	if (block[size - 1] != 0x51)
		target_fail("a block lost what was written there");
	free(block);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 200;
	library_function leak, pair;
	void *library;

	if (argc < 3)
		target_fail("usage: library_replaced LIBRARY IDLE [ROUNDS]");
	library = load(argv[1]);
	leak = library_find(library, "plugin_leak");
	pair = library_find(library, "plugin_pair");
	load(argv[2]);
	target_ready();
	for (size_t i = 0; i < rounds; i++) {
		upgraded_leak();
		upgraded_pair(1 + i);
		leak();
		pair();
	}
	target_say("upgraded_leak.impacting.count", rounds);
	target_say("upgraded_leak.impacting.bytes", rounds * 51);
	target_say("upgraded_pair.transient.count", rounds);
	target_say("plugin_leak.impacting.count", rounds);
	target_say("plugin_leak.impacting.bytes", rounds * 57);
	target_say("plugin_pair.transient.count", rounds);
	target_say("heap.size.count", rounds * 4);
	target_done();
	_exit(0); /* what libraries have to do at the end may not be there any more */
}
