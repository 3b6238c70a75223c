// SPDX-License-Identifier: MIT
/* symbolizer.c: modules opened when they are first asked about, and what has been found out about addresses. */
#include "symbol/symbolizer.h"

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
	struct mw_frame_list list; /* empty: this slot of the table is free */
};

struct mw_symbolizer {
	const struct mw_modules *modules;
	const struct mw_perf_map *names; /* of code in no file; NULL: none */
	struct slot {
		bool tried;
		struct mw_debug *debug; /* NULL: tried in vain */
	} * slots;                      /* by module number */
	size_t slot_count;
	struct answer *answers; /* open addressing, a power of two, at most half full */
	size_t answer_count, answer_capacity;
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
	for (size_t i = 0; i < symbolizer->answer_capacity; i++)
		mw_frame_list_deinit(&symbolizer->answers[i].list);
	free(symbolizer->slots);
	free(symbolizer->answers);
	free(symbolizer);
}

void mw_symbolizer_set_names(struct mw_symbolizer *symbolizer, const struct mw_perf_map *names)
{
	symbolizer->names = names;
}

static uint64_t hash(uint32_t number, mw_addr addr, bool is_return)
{
	uint64_t value = addr * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xc2b2ae3d27d4eb4f) + is_return;

	return value ^ (value >> 29);
}

/* The slot of the table that holds the answer, or the free one where it belongs. The table has a free slot. */
static struct answer *find_answer(struct answer *answers, size_t capacity, uint32_t number, mw_addr addr,
				  bool is_return)
{
	for (uint64_t at = hash(number, addr, is_return);; at++) {
		struct answer *answer = &answers[at & (capacity - 1)];

		if (!answer->list.count ||
		    (answer->addr == addr && answer->number == number && answer->is_return == is_return))
			return answer;
	}
}

static bool reserve_answer(struct mw_symbolizer *symbolizer)
{
	size_t capacity = symbolizer->answer_capacity ? 2 * symbolizer->answer_capacity : 256;
	struct answer *answers;

	if (2 * (symbolizer->answer_count + 1) <= symbolizer->answer_capacity)
		return true;
	answers = calloc(capacity, sizeof(*answers));
	if (!answers)
		return false;
	for (size_t i = 0; i < symbolizer->answer_capacity; i++) {
		const struct answer *old = &symbolizer->answers[i];

		if (old->list.count)
			*find_answer(answers, capacity, old->number, old->addr, old->is_return) = *old;
	}
	free(symbolizer->answers);
	symbolizer->answers = answers;
	symbolizer->answer_capacity = capacity;
	return true;
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

/* A frame from the symbol alone, or from nothing. `vaddr` is the address whose offset is told. */
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
	struct answer *answer;

	if (!reserve_answer(symbolizer))
		return mw_error_nomem();
	answer = find_answer(symbolizer->answers, symbolizer->answer_capacity, number, addr, is_return);
	if (!answer->list.count) {
		struct mw_frame_list list = {0};

		if (!resolve(symbolizer, number, addr, is_return, &list)) {
			mw_frame_list_deinit(&list);
			return mw_error_nomem();
		}
		*answer = (struct answer){addr, number, is_return, list};
		symbolizer->answer_count++;
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
