// SPDX-License-Identifier: MIT
/* survey.c: what there is in a process to be watched, and what of it is to be hooked (survey.h). */
#include "engine/survey.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vector.h"
#include "proc/maps.h"
#include "tracee/tracee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char unreadable[] = "its code can't be read";

/*
 * What stands at the entry now must be what the file has there: anything else was written by somebody (a debugger's
 * breakpoint, another tool's jump), and to plant on top of it would break the one or the other.
 */
static const char *check_entry(struct mw_hook *hook, const struct mw_module *module, uint64_t vaddr,
			       const struct mw_arch *arch, const struct mw_memory_view *memory)
{
	uint8_t now[MW_INSN_MAX], file[MW_INSN_MAX];
	size_t size = sizeof(now);

	while (size > 0 && !memory->read(memory->context, hook->info.address, now, size))
		size--;
	if (size == 0)
		return unreadable;
	arch->plan(now, size, hook->info.address, &hook->plan);
	if (mw_elf_read(module->elf, vaddr, file, size) &&
	    memcmp(now, file, hook->plan.length ? hook->plan.length : 1)) {
		hook->foreign = true;
		if (memcmp(now, arch->breakpoint, arch->breakpoint_length) == 0)
			return "a breakpoint of another tool stands there";
		return "another tool has patched it";
	}
	if (hook->plan.how == MW_INSN_REFUSE)
		return hook->plan.why ? hook->plan.why : "its first instruction can't be displaced";
	return NULL;
}

static struct mw_error *add_entry(struct mw_hooks *hooks, const struct mw_module *module,
				  const struct mw_found_entry *found, const struct mw_arch *arch,
				  const struct mw_memory_view *memory)
{
	struct mw_hook *hook;

	if (!MW_VECTOR_ROOM(hooks->items, hooks->count, hooks->capacity))
		return mw_error_nomem();
	hook = &hooks->items[hooks->count];
	*hook = (struct mw_hook){
		.info = {.function = found->entry->name ? found->entry->name : found->entry->symbol,
			 .module = module->path,
			 .address = found->vaddr + module->bias,
			 .role = found->entry->role,
			 .kind = found->family->kind},
		.family = found->family,
		.entry = found->entry,
		.module = module->number,
		.size = found->size,
		.glibc = found->family != &mw_family_pymalloc && mw_alloc_is_glibc(module->elf),
	};
	hook->info.refused = check_entry(hook, module, found->vaddr, arch, memory);
	hooks->count++;
	return NULL;
}

struct mw_error *mw_hooks_find(struct mw_hooks *hooks, const struct mw_modules *modules, uint32_t first,
			       const struct mw_arch *arch, const struct mw_memory_view *memory, bool heap, bool vm)
{
	const struct mw_module *module;

	while ((module = mw_modules_next(modules, &first))) {
		MW_FREE struct mw_found_entry *found = NULL;
		size_t count = 0;

		/* A file that is invalid defines nothing. */
		MW_TRY(mw_error_if_memory(mw_alloc_find(module->elf, &found, &count)));
		MW_EACH(entry, found, count)
			if (entry->family->kind == MW_KIND_HEAP ? heap : vm)
				MW_TRY(add_entry(hooks, module, entry, arch, memory));
	}
	return NULL;
}

void mw_hooks_recheck(struct mw_hooks *hooks, const struct mw_modules *modules, const struct mw_arch *arch,
		      const struct mw_memory_view *memory)
{
	MW_EACH_MUTABLE(hook, hooks->items, hooks->count) {
		const struct mw_module *module = mw_modules_get(modules, hook->module);

		if (!hook->foreign && hook->info.refused != unreadable)
			continue;
		hook->foreign = false;
		/* What was unmapped before it could be read, as by an exec during the survey, was not called since. */
		if (!module->gone)
			hook->info.refused = check_entry(hook, module, hook->info.address - module->bias, arch, memory);
		else if (hook->info.refused == unreadable)
			hook->info.refused = NULL;
	}
}

size_t mw_hooks_usable(const struct mw_hooks *hooks, enum mw_kind kind)
{
	size_t usable = 0;

	MW_EACH(hook, hooks->items, hooks->count)
		usable += hook->info.kind == kind && !hook->info.refused;
	return usable;
}

void mw_hooks_deinit(struct mw_hooks *hooks)
{
	free(hooks->items);
	memset(hooks, 0, sizeof(*hooks));
}

struct mw_error *mw_survey_init(struct mw_survey *survey, const struct mw_arch *arch, pid_t pid,
				const struct mw_engine_options *options)
{
	*survey = (struct mw_survey){.arch = arch,
				     .pid = pid,
				     .track_heap = options->track_heap,
				     .track_vm = options->track_vm,
				     .python_objects = options->python_objects && options->track_heap};
	MW_TRY(mw_modules_create(&survey->modules));
	MW_TRY(mw_script_create(survey->modules, &survey->script));
	MW_TRY(mw_java_init(&survey->java, pid, survey->modules));
	MW_TRY(mw_v8_create(survey->modules, &survey->v8));
	/* What will be changed in there has to be put back, whoever it is by then. */
	mw_peek_hold(pid);
	return NULL;
}

void mw_survey_deinit(struct mw_survey *survey)
{
	if (survey->modules)
		mw_peek_let_go(survey->pid);
	mw_hooks_deinit(&survey->hooks);
	mw_script_destroy(survey->script);
	mw_java_deinit(&survey->java);
	mw_v8_destroy(survey->v8);
	mw_modules_destroy(survey->modules);
	free(survey->module_class);
	free(survey->internal.items);
	free(survey->infos);
	*survey = (struct mw_survey){0};
}

struct mw_error *mw_survey_refresh(struct mw_survey *survey, pid_t tid, size_t *added, size_t *removed)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_error *err = mw_maps_read(tid, &maps);

	mw_peek_reopen(survey->pid);
	return err ? err : mw_modules_refresh(survey->modules, tid, &maps, added, removed);
}

static struct mw_error *find_exceptions(struct mw_survey *survey, const struct mw_module *module)
{
	struct mw_named_symbol found = {.name = "__cxa_allocate_exception"};
	mw_addr start;

	MW_TRY(mw_error_if_memory(mw_elf_find_named(module->elf, &found, 1)));
	start = found.vaddr + module->bias;
	if (found.size > 0 && survey->exception_count < MW_SURVEY_RUNTIMES)
		survey->exceptions[survey->exception_count++] = (struct mw_code_range){start, start + found.size};
	return NULL;
}

/* Note what kinds of modules came, glibc's own callers of free, and who allocates exceptions. */
static struct mw_error *classify(struct mw_survey *survey, uint32_t count)
{
	uint8_t *classes = realloc(survey->module_class, count ? count : 1);

	if (!classes)
		return mw_error_nomem();
	survey->module_class = classes;
	for (uint32_t i = survey->modules_seen; i < count; i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		classes[i] = (uint8_t)mw_alloc_classify(module->path, module->elf);
		if (!module->elf)
			continue;
		MW_TRY(find_exceptions(survey, module));
		if (survey->internal.items || !mw_alloc_is_glibc(module->elf))
			continue;
		MW_TRY(mw_alloc_internal_callers(module->elf, &survey->internal.items, &survey->internal.count));
		survey->internal.module = i;
	}
	return NULL;
}

static bool read_process(void *context, mw_addr addr, void *out, size_t size)
{
	const pid_t *tid = context;

	return mw_remote_read(*tid, addr, out, size) == size;
}

/* --- Python's objects --------------------------------------------------------------------------------------------- */

static struct mw_error *hook_objects(struct mw_survey *survey, const struct mw_module *module,
				     const struct mw_memory_view *memory)
{
	struct mw_pymalloc *pymalloc = &survey->pymalloc;

	survey->has_pymalloc = true;
	survey->pymalloc_module = module->number;
	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS && !pymalloc->missing; i++) {
		MW_TRY(add_entry(&survey->hooks, module, &pymalloc->functions[i], survey->arch, memory));
		pymalloc->missing = survey->hooks.items[survey->hooks.count - 1].info.refused;
	}
	return NULL;
}

/* Before the loader has relocated it there is nothing to be found: it is looked for again. */
static struct mw_error *find_objects(struct mw_survey *survey, const struct mw_memory_view *memory)
{
	const struct mw_module *module;

	if (survey->has_pymalloc && mw_modules_get(survey->modules, survey->pymalloc_module)->gone)
		survey->has_pymalloc = false;
	for (uint32_t i = 0;
	     survey->python_objects && !survey->has_pymalloc && (module = mw_modules_next(survey->modules, &i));) {
		bool found;

		MW_TRY(mw_pymalloc_find(module->elf, module->bias, memory->read, memory->context, &survey->pymalloc,
					&found));
		if (found)
			MW_TRY(hook_objects(survey, module, memory));
	}
	return NULL;
}

/* Where its module lies; false: there are no hooks of it. */
static bool is_hooked(const struct mw_survey *survey, mw_addr *bias)
{
	const struct mw_module *module =
		survey->has_pymalloc ? mw_modules_get(survey->modules, survey->pymalloc_module) : NULL;

	if (!module || module->gone || survey->pymalloc.missing)
		return false;
	*bias = module->bias;
	return true;
}

/* A pointer to a function that has another entry: where it leads to now, and the two entries. */
struct pointer {
	mw_addr addr;
	uint64_t now, own, other;
};

static bool look_at_pointer(const struct mw_pymalloc *pymalloc, size_t number, mw_addr bias, pid_t tid,
			    struct pointer *out)
{
	size_t function = pymalloc->pointers[number].function;

	*out = (struct pointer){.addr = pymalloc->pointers[number].addr,
				.own = bias + pymalloc->functions[function].vaddr,
				.other = bias + pymalloc->others[function]};
	return pymalloc->others[function] &&
	       mw_remote_read(tid, out->addr, &out->now, sizeof(out->now)) == sizeof(out->now);
}

bool mw_survey_pointers_astray(const struct mw_survey *survey, pid_t tid)
{
	mw_addr bias;
	bool hooked = is_hooked(survey, &bias), astray = false;
	struct pointer pointer;

	for (size_t i = 0; hooked && i < survey->pymalloc.pointer_count; i++)
		astray |= look_at_pointer(&survey->pymalloc, i, bias, tid, &pointer) && pointer.now == pointer.own;
	return astray;
}

static bool is_noted(const struct mw_journal *journal, mw_addr addr)
{
	MW_EACH(patch, journal->items, journal->count)
		if (patch->addr == addr && patch->standing)
			return true;
	return false;
}

/* Those that lead to the other entry and are not in the journal: a killed memwatch has left them so. */
static struct mw_error *adopt_pointers(const struct mw_pymalloc *pymalloc, mw_addr bias, pid_t tid,
				       struct mw_journal *journal)
{
	struct pointer pointer;

	for (size_t i = 0; i < pymalloc->pointer_count; i++)
		if (look_at_pointer(pymalloc, i, bias, tid, &pointer) && pointer.now == pointer.other &&
		    !is_noted(journal, pointer.addr))
			MW_TRY(mw_journal_adopt_word(journal, pointer.addr, pointer.own, pointer.other));
	return NULL;
}

struct mw_error *mw_survey_lead_pointers(const struct mw_survey *survey, pid_t tid, struct mw_journal *journal)
{
	const struct mw_pymalloc *pymalloc = &survey->pymalloc;
	struct pointer pointer;
	mw_addr bias;

	if (!is_hooked(survey, &bias))
		return NULL;
	MW_TRY(adopt_pointers(pymalloc, bias, tid, journal));
	for (size_t i = 0; i < pymalloc->pointer_count; i++)
		if (look_at_pointer(pymalloc, i, bias, tid, &pointer) && pointer.now == pointer.own)
			MW_TRY(mw_journal_plant_word(journal, tid, pointer.addr, pointer.other));
	return NULL;
}

struct mw_error *mw_survey_adopt_pointers(pid_t tid, struct mw_journal *journal)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_modules *modules = NULL;
	const struct mw_module *module;
	struct mw_error *err;

	MW_TRY(mw_maps_read(tid, &maps));
	MW_TRY(mw_modules_create(&modules));
	err = mw_modules_refresh(modules, tid, &maps, NULL, NULL);
	for (uint32_t i = 0; !err && (module = mw_modules_next(modules, &i));) {
		struct mw_pymalloc pymalloc;
		bool found = false;

		err = mw_pymalloc_find(module->elf, module->bias, read_process, &tid, &pymalloc, &found);
		if (!err && found && !pymalloc.missing)
			err = adopt_pointers(&pymalloc, module->bias, tid, journal);
	}
	mw_modules_destroy(modules);
	return err;
}

struct mw_error *mw_survey_take_in(struct mw_survey *survey, pid_t tid)
{
	const struct mw_memory_view memory = {.context = &tid, .read = read_process};
	uint32_t count = (uint32_t)mw_modules_count(survey->modules);

	mw_hooks_recheck(&survey->hooks, survey->modules, survey->arch, &memory);
	if (count == survey->modules_seen)
		return find_objects(survey, &memory);
	MW_TRY(classify(survey, count));
	MW_TRY(mw_hooks_find(&survey->hooks, survey->modules, survey->modules_seen, survey->arch, &memory, true,
			     survey->track_vm));
	survey->modules_seen = count;
	MW_TRY(find_objects(survey, &memory));
	MW_TRY(mw_hotspot_take_in(survey->java.hotspot, tid));
	MW_TRY(mw_v8_take_in(survey->v8, tid));
	return mw_script_take_in(survey->script, tid);
}

/* A list of the modules' paths, for people. */
static char *searched(const struct mw_survey *survey)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	for (uint32_t i = 0; i < mw_modules_count(survey->modules); i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		fprintf(stream, "%s%s%s%s", i ? ", " : "", module->path, module->why ? ": " : "",
			module->why ? module->why : "");
	}
	fclose(stream);
	return text;
}

/* Modules that need others; the vdso and the loader are none. */
static size_t count_dynamic(const struct mw_survey *survey)
{
	size_t count = 0;

	for (uint32_t i = 0; i < mw_modules_count(survey->modules); i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		count += module->elf && !module->elf->is_static;
	}
	return count;
}

static bool only_stripped_static(const struct mw_survey *survey)
{
	for (uint32_t i = 0; i < mw_modules_count(survey->modules) && count_dynamic(survey) == 0; i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		if (module->elf && module->elf->is_static && strcmp(module->path, "[vdso]") != 0 &&
		    !mw_elf_has_symbols(module->elf))
			return true;
	}
	return false;
}

/* A Go program that C code is no part of. */
static bool is_go(const struct mw_survey *survey)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(survey->modules, &i));)
		if (mw_elf_is_go(module->elf))
			return true;
	return false;
}

static struct mw_error *no_allocator(const struct mw_survey *survey, enum mw_kind kind)
{
	MW_FREE char *list = searched(survey);
	struct mw_error *err = mw_error_create(
		MW_ERROR_UNSUPPORTED, 0, "no %s that could be watched was found in process %d (searched: %s)",
		kind == MW_KIND_HEAP ? "allocator" : "mmap function", survey->pid, list ? list : "?");

	MW_EACH(hook, survey->hooks.items, survey->hooks.count)
		if (hook->info.kind == kind && hook->info.refused)
			return mw_error_hint(err, "%s in %s is there, but %s; see \"memwatch doctor -p %d\"",
					     hook->info.function, hook->info.module, hook->info.refused, survey->pid);
	if (is_go(survey))
		return mw_error_hint(err, "It is a Go program. " MW_ALLOC_GO_HINT);
	if (only_stripped_static(survey))
		return mw_error_hint(err, "It is a static program without a symbol table (.symtab), and no debug file "
					  "that is surely its own was found (by its build-id in "
					  "/usr/lib/debug/.build-id, or by its .gnu_debuglink): install that, or run a "
					  "build of it that is not stripped");
	/* A program alone that needs libraries. */
	if (count_dynamic(survey) == 1)
		return mw_error_hint(err,
				     "It has just been started and its libraries are not mapped yet: attach again");
	return mw_error_hint(err, "An allocator is found by the names of its functions in .dynsym or .symtab");
}

/* A module that defines only a free is no allocator that could be watched. */
static bool any_allocates(const struct mw_survey *survey)
{
	MW_EACH(hook, survey->hooks.items, survey->hooks.count)
		if (hook->info.kind == MW_KIND_HEAP && !hook->info.refused && hook->info.role != MW_ROLE_FREE)
			return true;
	return false;
}

/* With an entry point left out that somebody else has changed, what was allocated and what was freed would not match.
 */
static struct mw_error *check_foreign(const struct mw_survey *survey)
{
	MW_EACH(hook, survey->hooks.items, survey->hooks.count) {
		struct mw_error *err;

		if (!hook->foreign || !(hook->info.kind == MW_KIND_HEAP ? survey->track_heap : survey->track_vm))
			continue;
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s of %s in process %d can't be hooked: %s",
				      hook->info.function, hook->info.module, survey->pid, hook->info.refused);
		return mw_error_hint(err, "End the tool that did it (a debugger, heaptrack, another memwatch); if it "
					  "has left that behind, "
					  "only a restart of the process helps");
	}
	return NULL;
}

struct mw_error *mw_survey_check(const struct mw_survey *survey)
{
	MW_TRY(check_foreign(survey));
	if (survey->has_pymalloc && survey->pymalloc.missing)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "Python's objects in process %d can't be recorded: %s",
						     survey->pid, survey->pymalloc.missing),
				     "Leave out --python-objects");
	if (survey->track_heap && !any_allocates(survey))
		return no_allocator(survey, MW_KIND_HEAP);
	if (!survey->track_heap && survey->track_vm && mw_hooks_usable(&survey->hooks, MW_KIND_VM) == 0)
		return no_allocator(survey, MW_KIND_VM);
	return NULL;
}

struct mw_error *mw_survey_unchanged(const struct mw_survey *survey, pid_t tid, const char *function, mw_addr addr,
				     const uint8_t *bytes, size_t size)
{
	uint8_t now[MW_DETOUR_MAX];

	MW_TRY(mw_remote_read_all(tid, addr, now, size));
	if (memcmp(now, bytes, size) == 0)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_DENIED, 0, "another tool has just changed the code of %s in process %d",
				function, survey->pid),
		"Another memwatch or a debugger is attaching at the same time: wait until it has detached");
}

static bool maps_memory(enum mw_role role)
{
	return role == MW_ROLE_MMAP || role == MW_ROLE_MREMAP || role == MW_ROLE_BRK || role == MW_ROLE_SBRK;
}

bool mw_survey_is_mapping(const struct mw_survey *survey, mw_addr pc)
{
	MW_EACH(hook, survey->hooks.items, survey->hooks.count)
		if (pc > hook->info.address && pc - hook->info.address < hook->size && maps_memory(hook->info.role))
			return true;
	return false;
}

mw_addr mw_survey_heap_end(const struct mw_maps *maps)
{
	mw_addr end = 0;

	MW_EACH(mapping, maps->items, maps->count)
		if (strcmp(mapping->path, "[heap]") == 0)
			end = mapping->end;
	return end;
}

size_t mw_survey_infos(struct mw_survey *survey, const struct mw_hook_info **out)
{
	*out = NULL;
	if (survey->hooks.count == 0)
		return 0;
	free(survey->infos);
	survey->infos = calloc(survey->hooks.count, sizeof(*survey->infos));
	if (!survey->infos)
		return 0;
	for (size_t i = 0; i < survey->hooks.count; i++)
		survey->infos[i] = survey->hooks.items[i].info;
	*out = survey->infos;
	return survey->hooks.count;
}
