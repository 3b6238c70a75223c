/* SPDX-License-Identifier: MIT */
/* dlopen.c: libraries come and go, one with an allocator of its own. */
#include "fleet.h"

#include <dlfcn.h>

static const char *plain, *own;

static void use(const char *path, int flags)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	union {
		void *data;
		void (*code)(void);
	} pair;

	if (!library)
		fleet_wrong(dlerror());
	pair.data = dlsym(library, "plugin_pair");
	if (!pair.data)
		fleet_wrong(dlerror());
	for (int i = 0; i < 20; i++)
		pair.code();
	if (dlclose(library) != 0)
		fleet_wrong(dlerror());
}

static void plain_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 81);
	for (;;) {
		blocks_step(&blocks, 10);
		use(plain, 0);
		fleet_advance(number);
		fleet_rest(1000);
	}
}

static void own_work(unsigned number)
{
	struct blocks blocks;

	blocks_init(&blocks, number + 91);
	for (;;) {
		blocks_step(&blocks, 10);
		use(own, RTLD_DEEPBIND);
		fleet_advance(number);
		fleet_rest(3000);
	}
}

unsigned fleet_dlopen(const char *plain_library, const char *own_library)
{
	plain = plain_library;
	own = own_library;
	fleet_thread(plain_work, 0);
	fleet_thread(own_work, 1);
	return 2;
}
