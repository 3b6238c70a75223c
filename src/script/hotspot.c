// SPDX-License-Identifier: MIT
/* hotspot.c: which virtual machine a process has (hotspot.h). */
#include "script/hotspot.h"

#include "base/path.h"
#include "script/hotspot_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mw_error *mw_hotspot_create(struct mw_modules *modules, struct mw_hotspot **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return mw_error_nomem();
	(*out)->modules = modules;
	return NULL;
}

void mw_hotspot_destroy(struct mw_hotspot *hotspot)
{
	if (!hotspot)
		return;
	hotspot_answers_deinit(&hotspot->answers);
	hotspot_watches_deinit(hotspot);
	free(hotspot);
}

bool mw_hotspot_is_there(const struct mw_hotspot *hotspot)
{
	return hotspot && hotspot->is_there;
}

bool mw_hotspot_is_awaited(const struct mw_hotspot *hotspot)
{
	return hotspot->has_layout && !hotspot->is_there;
}

uint32_t mw_hotspot_module(const struct mw_hotspot *hotspot)
{
	return hotspot->module;
}

#define TRIES 64 /* to read tables that are not there */

static void refuse(struct mw_hotspot *hotspot)
{
	unsigned version = hotspot->layout.version;
	const char *how = version > HOTSPOT_NEWEST   ? "is newer than this memwatch knows"
			  : version < HOTSPOT_OLDEST ? "is older than this memwatch knows"
						     : "does not say where its fields are";

	if (*hotspot->modules->frames_missing)
		return;
	if (version)
		(void)snprintf(hotspot->modules->frames_missing, sizeof(hotspot->modules->frames_missing),
			       "HotSpot %u %s: Java frames are missing", version, how);
	else
		(void)snprintf(hotspot->modules->frames_missing, sizeof(hotspot->modules->frames_missing),
			       "The version of HotSpot is not known: Java frames are missing");
}

/* A file that exports the tables; the last one of those that came. */
static struct mw_error *look_at(struct mw_hotspot *hotspot, uint32_t number)
{
	const struct mw_module *module = mw_modules_get(hotspot->modules, number);
	struct hotspot_file file;
	bool has;

	/* Of other files not all symbols are looked through for this. */
	if (!module->elf || module->gone || module->elf->machine != EM_X86_64 ||
	    strcmp(mw_path_name(module->path), "libjvm.so") != 0)
		return NULL;
	MW_TRY(hotspot_find_exports(module->elf, &file, &has));
	if (has) {
		hotspot->file = file;
		hotspot->bias = module->bias;
		hotspot->tries = TRIES;
	}
	return NULL;
}

/* The dynamic linker may not have come to the tables yet, or not to all of them. */
static struct mw_error *try_file(struct mw_hotspot *hotspot, pid_t tid)
{
	bool complete = hotspot_read_layout(&hotspot->file, hotspot->bias, tid, &hotspot->layout);
	unsigned version = hotspot->layout.version;
	bool other = version && (version < HOTSPOT_OLDEST || version > HOTSPOT_NEWEST);

	hotspot->tries = other ? 0 : hotspot->tries - 1;
	if (!complete || other) {
		if (!hotspot->tries)
			refuse(hotspot);
		return NULL;
	}
	MW_TRY(mw_modules_add_named(hotspot->modules, MW_NAMED_FRAMES_JAVA, &hotspot->named, &hotspot->module));
	hotspot->has_layout = true;
	return NULL;
}

struct mw_error *mw_hotspot_take_in(struct mw_hotspot *hotspot, pid_t tid)
{
	for (; !hotspot->has_layout && hotspot->seen < mw_modules_count(hotspot->modules); hotspot->seen++)
		MW_TRY(look_at(hotspot, hotspot->seen));
	if (!hotspot->has_layout && hotspot->tries)
		MW_TRY(try_file(hotspot, tid));
	if (hotspot->has_layout && !hotspot->is_there)
		hotspot->is_there = hotspot_take_heaps(hotspot, tid);
	return NULL;
}
