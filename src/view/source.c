// SPDX-License-Identifier: MIT
/* source.c: modules and symbols of a process that was just watched (source.h). */
#include "view/source.h"

#include "alloc/families.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *mw_view_modules_of(const struct mw_modules *modules, struct mw_view_module **out, size_t *count)
{
	size_t total = mw_modules_count(modules);
	struct mw_view_module *found = calloc(total + 1, sizeof(*found));

	if (!found)
		return mw_error_nomem();
	for (size_t i = 0; i < total; i++) {
		const struct mw_module *module = mw_modules_get(modules, (uint32_t)i);

		if (!module || !module->path)
			continue;
		found[i] = (struct mw_view_module){
			.path = module->path,
			.start = module->start,
			.end = module->end,
			.base = module->elf ? module->bias : module->start,
			.suspect = mw_alloc_classify(module->path, module->elf) == MW_MODULE_OTHER,
			.has_file = module->elf != NULL,
		};
		if (module->elf) {
			found[i].build_id = module->elf->build_id;
			found[i].build_id_size = module->elf->build_id_size;
		}
	}
	*out = found;
	*count = total;
	return NULL;
}

bool mw_view_is_generated(const struct mw_view_module *module)
{
	static const char *const places[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV"};

	if (module->has_file || !module->path)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(module->path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	return mw_symbolizer_resolve(context, module, addr, true, frames, count);
}

struct mw_view_symbols mw_view_symbols_of(struct mw_symbolizer *symbolizer)
{
	return (struct mw_view_symbols){.context = symbolizer, .resolve = resolve};
}
