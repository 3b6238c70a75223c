// SPDX-License-Identifier: MIT
/* symbolizer.c: modules opened when they are first asked about, and what has been found out about addresses. */
#include "symbol/symbolizer.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vector.h"
#include "proc/perf_map.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer_debug.h"

#include <stdlib.h>
#include <string.h>

/* What is known of one address. */
struct answer {
	mw_addr addr;
	uint32_t number;
	bool is_return;
	struct mw_frame_list list;
};

struct mw_symbolizer {
	const struct mw_modules *modules;
	const struct mw_perf_map *names; /* of code in no file; NULL: none */
	struct slot {
		bool tried;
		struct mw_debug *debug; /* NULL: tried in vain */
	} * slots;                      /* by module number */
	size_t slot_count;
	struct answer *answers;
	size_t answer_capacity;
	struct mw_index index; /* of the answers */
};

struct mw_error *mw_symbolizer_create(const struct mw_modules *modules, struct mw_symbolizer **out)
{
	struct mw_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return mw_error_nomem();
	symbolizer->modules = modules;
	*out = symbolizer;
	return NULL;
}

void mw_symbolizer_destroy(struct mw_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->slot_count; i++)
		mw_debug_close(symbolizer->slots[i].debug);
	for (uint32_t i = 0; i < symbolizer->index.count; i++)
		mw_frame_list_deinit(&symbolizer->answers[i].list);
	free(symbolizer->slots);
	free(symbolizer->answers);
	mw_index_deinit(&symbolizer->index);
	free(symbolizer);
}

void mw_symbolizer_set_names(struct mw_symbolizer *symbolizer, const struct mw_perf_map *names)
{
	symbolizer->names = names;
}

static uint32_t hash_of(const void *answers, uint32_t number)
{
	const struct answer *answer = &((const struct answer *)answers)[number];

	return (uint32_t)mw_hash_mix(mw_hash_add(answer->addr, (uint64_t)answer->number << 1 | answer->is_return));
}

static struct answer *find_answer(const struct mw_symbolizer *symbolizer, const struct answer *wanted)
{
	uint32_t hash = hash_of(wanted, 0), number;

	MW_INDEX_EACH(&symbolizer->index, hash, number) {
		struct answer *answer = &symbolizer->answers[number];

		if (answer->addr == wanted->addr && answer->number == wanted->number &&
		    answer->is_return == wanted->is_return)
			return answer;
	}
	return NULL;
}

static const struct mw_module *module_of(const struct mw_symbolizer *symbolizer, uint32_t number)
{
	return number < mw_modules_count(symbolizer->modules) ? mw_modules_get(symbolizer->modules, number) : NULL;
}

/* `*debug` becomes NULL where nothing can be had of the module. False without memory. */
static bool open_module(struct mw_symbolizer *symbolizer, uint32_t number, struct mw_debug **debug)
{
	const struct mw_module *module = module_of(symbolizer, number);

	*debug = NULL;
	if (!module || !module->elf)
		return true;
	if (number >= symbolizer->slot_count) {
		size_t count = mw_modules_count(symbolizer->modules);
		struct slot *slots = reallocarray(symbolizer->slots, count, sizeof(*slots));

		if (!slots)
			return false;
		for (size_t i = symbolizer->slot_count; i < count; i++)
			slots[i] = (struct slot){0};
		symbolizer->slots = slots;
		symbolizer->slot_count = count;
	}
	if (!symbolizer->slots[number].tried) {
		symbolizer->slots[number].debug = mw_debug_open(module->elf, module->path);
		symbolizer->slots[number].tried = true;
	}
	*debug = symbolizer->slots[number].debug;
	return true;
}

/* A frame from the symbol alone, or from nothing. `vaddr` is the address whose offset is reported. */
static bool add_symbol(const struct mw_debug_symbol *symbol, uint64_t vaddr, struct mw_frame_list *list)
{
	char *name;

	if (!symbol)
		return mw_frame_list_add(list, NULL, NULL, 0, vaddr, false);
	name = mw_demangle(symbol->name);
	return name && mw_frame_list_add(list, name, NULL, 0, vaddr - symbol->start, false);
}

/* Code in no file that the program has named. `*found` where it has. */
static bool add_named(const struct mw_symbolizer *symbolizer, mw_addr addr, bool is_return, struct mw_frame_list *list,
		      bool *found)
{
	const struct mw_perf_name *named =
		symbolizer->names ? mw_perf_map_find(symbolizer->names, is_return && addr ? addr - 1 : addr) : NULL;
	char *name;

	*found = named != NULL;
	if (!named)
		return true;
	name = strdup(named->name);
	return name && mw_frame_list_add(list, name, NULL, 0, addr - named->from, false);
}

static bool resolve(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr, bool is_return,
		    struct mw_frame_list *list)
{
	const struct mw_module *module = module_of(symbolizer, number);
	uint64_t vaddr = module ? addr - module->bias : addr;
	/* A call may be the last instruction of its function, or of its line. */
	uint64_t code = is_return && vaddr ? vaddr - 1 : vaddr;
	struct mw_debug_symbol symbol;
	struct mw_debug *debug;
	bool has_symbol, found = false;

	if ((!module || !module->elf) && !add_named(symbolizer, addr, is_return, list, &found))
		return false;
	if (found)
		return true;
	if (!open_module(symbolizer, number, &debug))
		return false;
	if (!debug)
		return add_symbol(NULL, vaddr, list);
	has_symbol = mw_debug_symbol(debug, code, &symbol);
	if (!mw_debug_frames(debug, code, vaddr, has_symbol ? &symbol : NULL, list, &found))
		return false;
	return found || add_symbol(has_symbol ? &symbol : NULL, vaddr, list);
}

struct mw_error *mw_symbolizer_resolve(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr, bool is_return,
				       const struct mw_symbol_frame **frames, size_t *count)
{
	struct answer wanted = {addr, number, is_return, {0}};
	struct answer *answer = find_answer(symbolizer, &wanted);

	if (!answer) {
		if (!mw_index_reserve(&symbolizer->index, hash_of, symbolizer->answers) ||
		    !MW_VECTOR_ROOM(symbolizer->answers, symbolizer->index.count, symbolizer->answer_capacity))
			return mw_error_nomem();
		if (!resolve(symbolizer, number, addr, is_return, &wanted.list)) {
			mw_frame_list_deinit(&wanted.list);
			return mw_error_nomem();
		}
		answer = &symbolizer->answers[mw_index_put(&symbolizer->index, hash_of(&wanted, 0))];
		*answer = wanted;
	}
	*frames = answer->list.items;
	*count = answer->list.count;
	return NULL;
}

const char *mw_symbolizer_source(struct mw_symbolizer *symbolizer, uint32_t number)
{
	struct mw_debug *debug;

	if (!open_module(symbolizer, number, &debug) || !debug)
		return "none";
	return mw_debug_source(debug);
}

const char *mw_symbolizer_obstacle(struct mw_symbolizer *symbolizer, uint32_t number)
{
	struct mw_debug *debug;

	return open_module(symbolizer, number, &debug) && debug ? mw_debug_obstacle(debug) : NULL;
}
