/* SPDX-License-Identifier: MIT */
/* dlopens LIBRARY OWN: loads, uses and unloads libraries inside the window; OWN has an allocator of its own. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static KEEP void use(const char *path, int flags)
{
	void *library = dlopen(path, RTLD_NOW | flags);
	library_function leak, pair;

	if (!library)
		target_fail(dlerror());
	leak = library_find(library, "plugin_leak");
	pair = library_find(library, "plugin_pair");
	for (int i = 0; i < 25; i++) {
		leak();
		pair();
	}
	dlclose(library);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		target_fail("usage: dlopens LIBRARY OWN");
	target_ready();
	for (int round = 0; round < 3; round++)
		use(argv[1], RTLD_LOCAL);
	target_say("plugin_leak.57.impacting.count", 75);
	target_say("plugin_pair.57.transient.count", 75);
	use(argv[2], RTLD_LOCAL | RTLD_DEEPBIND);
	target_say("plugin_leak.58.impacting.count", 25);
	target_say("plugin_pair.59.transient.count", 25);
	target_done();
	/* What was loaded may be loaded again when nobody looks on. */
	use(argv[1], RTLD_LOCAL);
	use(argv[2], RTLD_LOCAL | RTLD_DEEPBIND);
	return 0;
}
