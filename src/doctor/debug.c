// SPDX-License-Identifier: MIT
/* debug.c: of which modules names, files and lines are known, and what to do for the others (look.h). */
#include "doctor/look.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "doctor/paragraph.h"
#include "output/line.h"
#include "proc/root.h"
#include "session/terminal.h"
#include "symbol/distribution.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_MAX 64 /* bytes */

/* How much is known of a module's functions, best first. */
enum level {
	LEVEL_LINES,
	LEVEL_NAMES,    /* of all functions */
	LEVEL_EXPORTED, /* of some */
	LEVEL_NOTHING,
	LEVELS,
};

static const char *const level_texts[LEVELS] = {
	"names of functions, files and lines are known of",
	"names of functions, but neither files nor lines, of",
	"names of exported functions only (the others are shown as offsets) of",
	"nothing (functions are shown as offsets) of",
};

struct entry {
	const struct mw_module *module;
	enum level level;
	bool runtime;
	const char *source;   /* where it comes from, or why there is none */
	const char *obstacle; /* mw_symbolizer_source */
	char build_id[2 * BUILD_ID_MAX + 1];
};

struct entries {
	const struct mw_doctor *doctor;
	struct entry *items; /* the program, other modules, then those of the runtime */
	size_t count;
	bool own_root; /* of the process: another than memwatch's */
};

/* --- what is known ------------------------------------------------------------------------------------- */

static void take_build_id(const struct mw_module *module, struct entry *entry)
{
	const struct mw_elf *elf = module->elf;

	for (size_t i = 0; elf->build_id_size <= BUILD_ID_MAX && i < elf->build_id_size; i++)
		snprintf(entry->build_id + 2 * i, 3, "%02x", elf->build_id[i]);
}

static void look(const struct mw_doctor *doctor, const struct mw_module *module, struct entry *entry)
{
	entry->module = module;
	entry->runtime = mw_alloc_classify(module->path, module->elf) != MW_MODULE_OTHER;
	entry->level = LEVEL_NOTHING;
	if (!module->elf) {
		entry->source = module->why ? module->why : "can't be read";
		return;
	}
	take_build_id(module, entry);
	entry->source = mw_symbolizer_source(doctor->symbolizer, module->number, &entry->obstacle);
	if (strcmp(entry->source, "only symbols") == 0) {
		bool all = mw_elf_has_symbols(module->elf) || mw_elf_section(module->elf, ".gnu_debugdata").present;

		entry->level = all ? LEVEL_NAMES : LEVEL_EXPORTED;
		entry->source = NULL;
	} else if (strcmp(entry->source, "none") == 0) {
		entry->source = NULL;
	} else {
		entry->level = LEVEL_LINES;
	}
}

static bool is_of_interest(const struct mw_module *module)
{
	return !module->gone && strcmp(module->path, "[vdso]") != 0;
}

/* In order of interest: that of the runtime comes last. The program is the first module of the two. */
static int compare(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;

	if (one->runtime != other->runtime)
		return one->runtime ? 1 : -1;
	return one->module->number < other->module->number ? -1 : 1;
}

/* A file that is mapped twice (dlmopen, trampolines of libffi) has one line. */
static bool is_listed(const struct entries *entries, const struct entry *entry)
{
	for (size_t i = 0; i < entries->count; i++) {
		const struct entry *other = &entries->items[i];

		if (strcmp(other->module->path, entry->module->path) == 0 &&
		    other->module->deleted == entry->module->deleted && strcmp(other->build_id, entry->build_id) == 0)
			return true;
	}
	return false;
}

static bool collect(struct entries *entries, const struct mw_doctor *doctor)
{
	size_t count = mw_modules_count(doctor->modules);
	struct mw_progress progress;

	entries->doctor = doctor;
	entries->items = calloc(count + 1, sizeof(*entries->items));
	if (!entries->items)
		return false;
	mw_progress_init(&progress, true);
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);

		if (!is_of_interest(module))
			continue;
		mw_progress_symbols(&progress, i, count);
		look(doctor, module, &entries->items[entries->count]);
		if (!is_listed(entries, &entries->items[entries->count]))
			entries->count++;
	}
	mw_progress_deinit(&progress);
	qsort(entries->items, entries->count, sizeof(*entries->items), compare);
	return true;
}

/* --- printing ------------------------------------------------------------------------------------------ */

static void print_entry(FILE *out, const struct entries *entries, const struct entry *entry)
{
	char id[sizeof(entry->build_id) + 16];
	struct mw_paragraph line;

	fputs("    ", out);
	mw_paragraph_begin(&line, out, entries->doctor->width, 4, 6);
	mw_paragraph_word(&line, entry->module->path);
	if (entry->module->deleted)
		mw_paragraph_text(&line, "(deleted)");
	if (!entry->module->elf)
		mw_paragraph_printf(&line, "(%s)", entry->source);
	else if (entry->obstacle)
		mw_paragraph_printf(&line,
				    "(its debug sections %s; objcopy --decompress-debug-sections of a binutils that "
				    "reads them helps)",
				    entry->obstacle);
	else if (entry->level != LEVEL_LINES)
		mw_paragraph_text(&line, entry->runtime ? "(runtime or allocator)" : "");
	else if (strcmp(entry->source, "embedded") == 0)
		mw_paragraph_text(&line, "(in itself)");
	else
		mw_paragraph_word(&line, entry->source);
	if (entry->module->elf && entry->level != LEVEL_LINES) {
		snprintf(id, sizeof(id), *entry->build_id ? "build-id %s" : "no build-id", entry->build_id);
		mw_paragraph_word(&line, id);
	}
	mw_paragraph_end(&line);
}

static void print_level(FILE *out, const struct entries *entries, enum level level)
{
	size_t count = 0;
	struct mw_paragraph title;

	for (size_t i = 0; i < entries->count; i++)
		count += entries->items[i].level == level;
	if (!count)
		return;
	fputs("  ", out);
	mw_paragraph_begin(&title, out, entries->doctor->width, 2, 2);
	mw_paragraph_printf(&title, "%s %zu:", level_texts[level], count);
	mw_paragraph_end(&title);
	for (size_t i = 0; i < entries->count; i++)
		if (entries->items[i].level == level)
			print_entry(out, entries, &entries->items[i]);
}

static void say(FILE *out, const struct entries *entries, const char *text)
{
	struct mw_paragraph words;

	fputs("  ", out);
	mw_paragraph_begin(&words, out, entries->doctor->width, 2, 2);
	mw_paragraph_text(&words, text);
	mw_paragraph_end(&words);
}

/* --- how to get what is lacking ------------------------------------------------------------------------ */

/* Is it a file, lacks something, and lies where packages put their files (or, not `packaged`, elsewhere)? */
static bool is_lacking(const struct entry *entry, bool packaged)
{
	const char *path = entry->module->path;

	return entry->level != LEVEL_LINES && entry->module->elf && path[0] == '/' &&
	       mw_distribution_has(path) == packaged;
}

static bool any_lacking(const struct entries *entries, bool packaged)
{
	for (size_t i = 0; i < entries->count; i++)
		if (is_lacking(&entries->items[i], packaged))
			return true;
	return false;
}

static void put_modules(struct mw_paragraph *line, const struct entries *entries, bool ids)
{
	for (size_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];
		MW_FREE char *path = is_lacking(entry, true) ? mw_shell_word(entry->module->path) : NULL;

		if (path && !ids)
			mw_paragraph_word(line, path);
		else if (path && *entry->build_id)
			mw_paragraph_printf(line, "'debuginfo(build-id)=%s'", entry->build_id);
	}
}

/* In lines of its own that can be copied to a shell; below it, what it needs. */
static void print_command(FILE *out, const struct entries *entries, const struct mw_distribution *distribution)
{
	bool as_user = geteuid() != 0 && !entries->own_root;
	struct mw_paragraph line;

	if (distribution->begin) {
		fputs("    ", out);
		mw_paragraph_begin(&line, out, entries->doctor->width, 4, 4);
		line.end = " \\";
		mw_paragraph_printf(&line, "%s%s", as_user ? distribution->sudo : "", distribution->begin);
		if (distribution->takes == MW_TAKES_PID && !entries->own_root)
			mw_paragraph_printf(&line, "%d", (int)entries->doctor->pid);
		else
			put_modules(&line, entries, distribution->takes == MW_TAKES_IDS);
		fputs(distribution->end, out);
		mw_paragraph_end(&line);
	}
	if (distribution->note)
		say(out, entries, distribution->note);
}

/* `server`: one that has files of packages, or NULL. */
static void print_debuginfod(FILE *out, const struct entries *entries, const char *server)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char text[400];

	if (urls && *urls) {
		snprintf(text, sizeof(text),
			 "DEBUGINFOD_URLS is set (%.200s), and has none of these, or can't be reached.", urls);
		say(out, entries, text);
	} else if (server) {
		say(out, entries, "Without installing anything but libdebuginfod:");
		fprintf(out, "    DEBUGINFOD_URLS=%s memwatch -p %d\n", server, (int)entries->doctor->pid);
	}
}

/* Debug files lie in the root of whoever looks for them. */
static void print_root(FILE *out, const struct entries *entries, const char *name)
{
	char text[400];

	snprintf(text, sizeof(text),
		 "The process has a root directory of its own (%.100s): debug packages go there. memwatch "
		 "reads debug files of its own root only; of a recording made with --no-symbols they are found later:",
		 *name ? name : "unknown distribution");
	say(out, entries, text);
	fprintf(out, "    memwatch report FILE --symbols /proc/%d/root/usr/lib/debug\n", (int)entries->doctor->pid);
}

static void print_others(FILE *out, const struct entries *entries)
{
	say(out, entries,
	    "No package has these: build them with -g, or put their debug information where it is looked for:");
	for (size_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];
		struct mw_paragraph line;

		if (!is_lacking(entry, false))
			continue;
		fputs("    ", out);
		mw_paragraph_begin(&line, out, 0, 4, 6);
		mw_paragraph_word(&line, entry->module->path);
		if (strlen(entry->build_id) > 2)
			mw_paragraph_printf(&line, "/usr/lib/debug/.build-id/%.2s/%s.debug", entry->build_id,
					    entry->build_id + 2);
		mw_paragraph_end(&line);
	}
}

static void advise(FILE *out, const struct entries *entries)
{
	bool packaged = any_lacking(entries, true), others = any_lacking(entries, false);
	MW_CLOSE int root = mw_root_directory(entries->doctor->pid);
	char name[MW_DISTRIBUTION_NAME_MAX];
	const struct mw_distribution *distribution = mw_distribution_find(root, name);

	if (!packaged && !others)
		return;
	fputs("\nTo have names, files and lines\n", out);
	if (packaged)
		print_command(out, entries, distribution);
	print_debuginfod(out, entries, packaged ? distribution->server : NULL);
	if (others)
		print_others(out, entries);
	if (entries->own_root)
		print_root(out, entries, name);
}

/* Is it another one than memwatch's? */
static bool has_own_root(pid_t pid)
{
	struct stat ours, theirs;
	MW_CLOSE int root = mw_root_directory(pid);

	return root >= 0 && fstat(root, &theirs) == 0 && stat("/", &ours) == 0 &&
	       (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
}

void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor)
{
	struct entries entries = {.own_root = has_own_root(doctor->pid)};

	/* So that the line of progress does not write over half of one, where both go to a terminal. */
	(void)fflush(out);
	if (collect(&entries, doctor)) {
		fprintf(out, "\nDebug information of %zu modules\n", entries.count);
		for (enum level level = LEVEL_LINES; level < LEVELS; level++)
			print_level(out, &entries, level);
		advise(out, &entries);
	}
	free(entries.items);
}
