// SPDX-License-Identifier: MIT
/* classes.c: names of classes and variables (classes.h). */
#include "heap/classes.h"

#include "alloc/pools.h"
#include "base/map.h"
#include "base/path.h"
#include "base/vector.h"
#include "symbol/demangle.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 4096u /* of a mangled name */
#define RUNTIME        "N10__cxxabiv1"

/* A symbol of data. */
struct variable {
	uint64_t vaddr, size;
	char *mangled;
	char *name; /* demangled when it is first asked for */
};

/* Those of a module, by address. */
struct variables {
	bool read;
	struct variable *items;
	size_t count, capacity;
	bool no_memory;
};

struct mw_classes {
	const struct mw_image *image;
	const struct mw_modules *modules;
	struct mw_map names;         /* words to names; `none` where a word is no vtable's */
	struct variables *variables; /* by module */
	size_t variables_count;
	struct variables thread_variables; /* of the program itself */
	char **texts;                      /* all names of classes */
	size_t text_count, text_capacity;
	const struct mw_pool *pool; /* that the process has; NULL: none */
	struct mw_pool_memory pool_memory;
	struct mw_pools *pools;
	struct mw_map pool_names; /* by users */
};

static char none[] = "";

static size_t read_pool(void *classes, mw_addr addr, void *out, size_t size)
{
	return mw_image_read_some(((const struct mw_classes *)classes)->image, addr, out, size);
}

static bool is_constant(void *classes, mw_addr addr)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(((const struct mw_classes *)classes)->image, addr);

	return mapping && mapping->inode && mapping->read && !mapping->write && !mapping->shared;
}

static struct mw_error *find_pool(struct mw_classes *classes)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(classes->modules, &i));)
		for (const struct mw_pool *pool = mw_pool_rows; pool->name && !classes->pool; pool++)
			if (pool->module &&
			    strncmp(mw_path_name(module->path), pool->module, strlen(pool->module)) == 0)
				classes->pool = pool;
	classes->pool_memory = (struct mw_pool_memory){read_pool, is_constant, classes};
	return classes->pool ? mw_pools_create(&classes->pool_memory, &classes->pools) : NULL;
}

struct mw_error *mw_classes_create(const struct mw_image *image, const struct mw_modules *modules,
				   struct mw_classes **out)
{
	struct mw_classes *classes = calloc(1, sizeof(*classes));

	if (!classes)
		return mw_error_nomem();
	classes->image = image;
	classes->modules = modules;
	*out = classes;
	return find_pool(classes);
}

static void deinit_variables(const struct variables *table)
{
	MW_EACH(variable, table->items, table->count) {
		free(variable->mangled);
		free(variable->name);
	}
	free(table->items);
}

void mw_classes_destroy(struct mw_classes *classes)
{
	if (!classes)
		return;
	MW_EACH(table, classes->variables, classes->variables_count)
		deinit_variables(table);
	deinit_variables(&classes->thread_variables);
	free(classes->variables);
	MW_EACH(text, classes->texts, classes->text_count)
		free(*text);
	free(classes->texts);
	mw_map_deinit(&classes->names);
	mw_map_deinit(&classes->pool_names);
	mw_pools_destroy(classes->pools);
	free(classes);
}

/* --- variables ------------------------------------------------------------------------------------------------------ */

static bool add_variable(void *context, const struct mw_elf_symbol *symbol)
{
	struct variables *table = context;
	struct variable *variable;

	if (!symbol->size)
		return true;
	table->no_memory = !MW_VECTOR_ROOM(table->items, table->count, table->capacity);
	if (table->no_memory)
		return false;
	variable = &table->items[table->count++];
	*variable = (struct variable){.vaddr = symbol->vaddr, .size = symbol->size};
	variable->mangled = strdup(symbol->name);
	table->no_memory = !variable->mangled;
	return !table->no_memory;
}

static bool see_symbol(void *context, const struct mw_elf_symbol *symbol)
{
	return !symbol->object || add_variable(context, symbol);
}

static int by_address(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static struct mw_error *read_variables(struct variables *table, struct mw_error *err)
{
	table->read = true;
	MW_TRY(err);
	if (table->no_memory)
		return mw_error_nomem();
	if (table->items)
		qsort(table->items, table->count, sizeof(*table->items), by_address);
	return NULL;
}

/* The variables of a module, read when they are first asked for. */
static struct mw_error *variables_of(struct mw_classes *classes, const struct mw_module *module, struct variables **out)
{
	struct variables *table = MW_VECTOR_AT(classes->variables, classes->variables_count, module->number);

	if (!table)
		return mw_error_nomem();
	*out = table;
	if (table->read || !module->elf)
		return NULL;
	return read_variables(table, mw_elf_each_symbol(module->elf, see_symbol, table));
}

/* The module whose data an address lies in: zeroed data (.bss) goes on behind the file's, in memory of no file. */
static const struct mw_module *module_of(const struct mw_classes *classes, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(classes->modules, addr);
	const struct mw_image_mapping *mapping = module ? NULL : mw_image_mapping_of(classes->image, addr);

	return mapping && addr < mapping->bss_end ? mw_modules_find(classes->modules, mapping->start - 1) : module;
}

static void find_in(const struct variables *table, uint64_t addr, struct variable **out, uint64_t *offset)
{
	size_t count;

	*out = NULL;
	if (!table->items)
		return;
	count = mw_vector_up_to(table->items, table->count, sizeof(*table->items), offsetof(struct variable, vaddr),
				addr);
	/* Several may begin at one address, and the last of them may be the shortest. */
	for (size_t i = count; i-- && table->items[i].vaddr == table->items[count - 1].vaddr;) {
		if (addr - table->items[i].vaddr >= table->items[i].size)
			continue;
		*out = &table->items[i];
		*offset = addr - table->items[i].vaddr;
	}
}

static struct mw_error *find_variable(struct mw_classes *classes, mw_addr addr, struct variable **out, uint64_t *offset)
{
	const struct mw_module *module = module_of(classes, addr);
	struct variables *table = NULL;

	*out = NULL;
	if (!module || !module->elf)
		return NULL;
	MW_TRY(variables_of(classes, module, &table));
	if (table)
		find_in(table, addr - module->bias, out, offset);
	return NULL;
}

const char *mw_classes_file(const struct mw_classes *classes, mw_addr addr)
{
	const struct mw_module *module = module_of(classes, addr);

	return module ? module->path : NULL;
}

static struct mw_error *describe(struct variable *variable, uint64_t offset, uint32_t module, struct mw_variable *out)
{
	*out = (struct mw_variable){0};
	if (!variable)
		return NULL;
	if (!variable->name)
		variable->name = mw_demangle(variable->mangled);
	if (!variable->name)
		return mw_error_nomem();
	*out = (struct mw_variable){variable->name, offset, variable->size, module};
	return NULL;
}

struct mw_error *mw_classes_variable(struct mw_classes *classes, mw_addr addr, struct mw_variable *out)
{
	const struct mw_module *module = module_of(classes, addr);
	struct variable *variable;
	uint64_t offset = 0;

	MW_TRY(find_variable(classes, addr, &variable, &offset));
	return describe(variable, offset, module ? module->number : 0, out);
}

/* The program's variables are the first block of the thread's vector of them: the second word of its control block. */
struct mw_error *mw_classes_thread_variable(struct mw_classes *classes, mw_addr thread_pointer, mw_addr addr,
					    struct mw_variable *out)
{
	struct variables *table = &classes->thread_variables;
	const struct mw_module *program = mw_modules_get(classes->modules, 0);
	struct variable *variable = NULL;
	mw_addr vector, block;
	uint64_t offset = 0;

	*out = (struct mw_variable){0};
	if (!program || !program->elf || program->elf->soname ||
	    !mw_image_read(classes->image, thread_pointer + sizeof(vector), &vector, sizeof(vector)) ||
	    !mw_image_read(classes->image, vector + 2 * sizeof(vector), &block, sizeof(block)))
		return NULL;
	if (!table->read)
		MW_TRY(read_variables(table, mw_elf_each_thread_variable(program->elf, add_variable, table)));
	if (block <= addr && addr < thread_pointer)
		find_in(table, addr - block, &variable, &offset);
	return describe(variable, offset, program->number, out);
}

/* --- classes -------------------------------------------------------------------------------------------------------- */

static bool read_word(const struct mw_classes *classes, mw_addr addr, uint64_t *out)
{
	return addr % sizeof(*out) == 0 && mw_modules_find(classes->modules, addr) &&
	       mw_image_read(classes->image, addr, out, sizeof(*out));
}

/* The mangled name that a type_info at `info` has, or NULL; to be freed. */
static char *name_of_type(const struct mw_classes *classes, mw_addr info)
{
	char text[NAME_MAX_BYTES];
	const char *name = text;
	mw_addr at;
	size_t got;

	if (!read_word(classes, info + sizeof(uint64_t), &at) || !mw_modules_find(classes->modules, at))
		return NULL;
	got = mw_image_read_some(classes->image, at, text, sizeof(text));
	if (!got || !memchr(text, '\0', got))
		return NULL;
	name += *name == '*'; /* a name that is compared by its address */
	if (!*name)
		return NULL;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.' && *c != '$')
			return NULL;
	return strdup(name);
}

/* Is there a type_info at `info`: an object of a class of the C++ runtime's? */
static bool is_type(const struct mw_classes *classes, mw_addr info)
{
	uint64_t table, of_table;
	bool is = false;
	char *name;

	if (!read_word(classes, info, &table) || !read_word(classes, table - sizeof(uint64_t), &of_table))
		return false;
	name = name_of_type(classes, of_table);
	if (name)
		is = strncmp(name, RUNTIME, strlen(RUNTIME)) == 0;
	free(name);
	return is;
}

/* "typeinfo name for shop::Session" */
static char *demangle_type(const char *mangled)
{
	static const char prefix[] = "typeinfo name for ";
	char symbol[NAME_MAX_BYTES + 8];
	char *text;

	snprintf(symbol, sizeof(symbol), "_ZTS%s", mangled);
	text = mw_demangle(symbol);
	if (text && strncmp(text, prefix, strlen(prefix)) == 0)
		memmove(text, text + strlen(prefix), strlen(text + strlen(prefix)) + 1);
	return text;
}

/* The first argument of a template, which begins at `text`: how long it is. */
static size_t argument_length(const char *text)
{
	unsigned depth = 0;
	size_t i;

	for (i = 0; text[i]; i++) {
		if (text[i] == '<' || text[i] == '(')
			depth++;
		else if (depth && (text[i] == '>' || text[i] == ')'))
			depth--;
		else if (!depth && (text[i] == ',' || text[i] == '>'))
			break;
	}
	return i;
}

/* What shared_ptr puts beside or around an object is named by what it holds. */
static char *shorten(char *name)
{
	static const struct {
		const char *prefix;
		bool beside; /* the object is elsewhere */
	} control_blocks[] = {
		{"std::_Sp_counted_ptr_inplace<", false},  {"std::_Sp_counted_ptr<", true},
		{"std::_Sp_counted_deleter<", true},       {"std::__1::__shared_ptr_emplace<", false},
		{"std::__1::__shared_ptr_pointer<", true},
	};

	for (size_t i = 0; i < sizeof(control_blocks) / sizeof(*control_blocks); i++) {
		const char *argument = name + strlen(control_blocks[i].prefix);
		size_t length;
		char *text;

		if (strncmp(name, control_blocks[i].prefix, strlen(control_blocks[i].prefix)) != 0)
			continue;
		length = argument_length(argument);
		while (length && (argument[length - 1] == '*' || argument[length - 1] == ' '))
			length--;
		if (asprintf(&text, "%s%.*s%s", control_blocks[i].beside ? "control block of shared_ptr<" : "",
			     (int)length, argument, control_blocks[i].beside ? ">" : " (make_shared)") < 0)
			text = NULL;
		free(name);
		return text;
	}
	return name;
}

/* By the symbol of the vtable whose functions begin at `word`; NULL: it has none. */
static struct mw_error *by_symbol(struct mw_classes *classes, mw_addr word, char **out)
{
	static const char prefix[] = "vtable for ";
	struct variable *variable;
	uint64_t offset;
	char *text;

	*out = NULL;
	MW_TRY(find_variable(classes, word - 2 * sizeof(uint64_t), &variable, &offset));
	if (!variable || offset || strncmp(variable->mangled, "_ZTV", 4) != 0)
		return NULL;
	text = mw_demangle(variable->mangled);
	if (!text)
		return mw_error_nomem();
	if (strncmp(text, prefix, strlen(prefix)) == 0)
		memmove(text, text + strlen(prefix), strlen(text + strlen(prefix)) + 1);
	*out = text;
	return NULL;
}

/* *out is NULL where the word is not the address of a vtable's functions. */
static struct mw_error *find_class(struct mw_classes *classes, mw_addr word, char **out)
{
	uint64_t top, info;
	char *mangled, *name;

	*out = NULL;
	if (word < 2 * sizeof(uint64_t) || !read_word(classes, word - 2 * sizeof(uint64_t), &top) || top ||
	    !read_word(classes, word - sizeof(uint64_t), &info))
		return NULL;
	if (!info) {
		MW_TRY(by_symbol(classes, word, &name));
	} else {
		mangled = is_type(classes, info) ? name_of_type(classes, info) : NULL;
		if (!mangled)
			return NULL;
		name = demangle_type(mangled);
		free(mangled);
		if (!name)
			return mw_error_nomem();
	}
	if (!name)
		return NULL;
	*out = shorten(name);
	return *out ? NULL : mw_error_nomem();
}

/* Keep a name; one that is there already is taken instead. */
static struct mw_error *keep(struct mw_classes *classes, char *name, char **out)
{
	MW_EACH(text, classes->texts, classes->text_count) {
		if (strcmp(*text, name) != 0)
			continue;
		free(name);
		*out = *text;
		return NULL;
	}
	if (!MW_VECTOR_ROOM(classes->texts, classes->text_count, classes->text_capacity)) {
		free(name);
		return mw_error_nomem();
	}
	classes->texts[classes->text_count++] = name;
	*out = name;
	return NULL;
}

struct mw_error *mw_classes_of(struct mw_classes *classes, uint64_t word, const char **out)
{
	char *name;

	*out = NULL;
	if (word % sizeof(uint64_t) || !mw_modules_find(classes->modules, word))
		return NULL;
	name = mw_map_get(&classes->names, word);
	if (!name) {
		MW_TRY(find_class(classes, word, &name));
		if (name)
			MW_TRY(keep(classes, name, &name));
		else
			name = none;
		MW_TRY(mw_map_set(&classes->names, word, name));
	}
	*out = name == none ? NULL : name;
	return NULL;
}

struct mw_error *mw_classes_of_block(struct mw_classes *classes, mw_addr block, uint64_t size, uint64_t word,
				     const char **out)
{
	const struct mw_pool_user *user;
	char *name;

	MW_TRY(mw_classes_of(classes, word, out));
	if (*out || !classes->pool)
		return NULL;
	/* An allocator gives more than it was asked for. */
	user = mw_pool_user_of(classes->pool, classes->pools, block, size, size / 4 + 32);
	if (!user)
		return NULL;
	name = mw_map_get(&classes->pool_names, (uintptr_t)user);
	if (!name) {
		if (asprintf(&name, "%s %s%s%s", classes->pool->one, user->name, user->part_of ? " in " : "",
			     user->part_of ? user->part_of->name : "") < 0)
			return mw_error_nomem();
		MW_TRY(keep(classes, name, &name));
		MW_TRY(mw_map_set(&classes->pool_names, (uintptr_t)user, name));
	}
	*out = name;
	return NULL;
}
