// SPDX-License-Identifier: MIT
/*
 * look.c: paragraphs, what /proc shows of a process, and of which modules names, files and lines are known, and what to
 * do for the others (look.h).
 */
#include "doctor/look.h"

#include "alloc/families.h"
#include "base/cleanup.h"
#include "output/line.h"
#include "proc/file.h"
#include "proc/program.h"
#include "proc/root.h"
#include "session/terminal.h"
#include "symbol/distribution.h"
#include "tracee/preflight.h"
#include "tracee/seccomp_policy.h"
#include "unwind/rows.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- paragraphs ---------------------------------------------------------------------------------------------------- */

/* `first`: of its line, which no space comes before. */
static void put_word(struct mw_paragraph *paragraph, const char *word, bool first)
{
	struct mw_line line = {0};
	size_t columns;

	mw_line_name(&line, word);
	columns = mw_line_columns(&line, 0);
	if (!first && paragraph->column + 1 + columns + strlen(paragraph->end) > paragraph->width) {
		fprintf(paragraph->out, "%s\n%*s", paragraph->end, (int)paragraph->indent, "");
		paragraph->column = paragraph->indent;
		first = true;
	}
	fprintf(paragraph->out, "%s%s", first ? "" : " ", line.data ? line.data : "");
	paragraph->column += (unsigned)columns + !first;
	mw_line_deinit(&line);
}

void mw_paragraph_word(struct mw_paragraph *paragraph, const char *word)
{
	put_word(paragraph, word, paragraph->column <= paragraph->indent);
}

void mw_paragraph_text(struct mw_paragraph *paragraph, const char *text)
{
	char *copy = strdup(text), *state = NULL;

	for (char *word = copy ? strtok_r(copy, " ", &state) : NULL; word; word = strtok_r(NULL, " ", &state))
		mw_paragraph_word(paragraph, word);
	free(copy);
}

static void MW_PRINTF(2, 0) put_all(struct mw_paragraph *paragraph, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	mw_paragraph_text(paragraph, text);
	free(text);
}

void mw_paragraph_printf(struct mw_paragraph *paragraph, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_all(paragraph, format, args);
	va_end(args);
}

void mw_paragraph_write(FILE *out, unsigned width, unsigned at, const char *format, va_list args)
{
	struct mw_paragraph paragraph;

	mw_paragraph_begin(&paragraph, out, width, at, at);
	put_all(&paragraph, format, args);
	mw_paragraph_end(&paragraph);
}

/* --- what /proc shows ---------------------------------------------------------------------------------------------- */

struct rows {
	FILE *out;
	const struct mw_doctor *doctor;
};

#define COLUMN      15u /* where the second one begins */
#define UNDESCRIBED (UINT64_C(16) << 10)

/* "NAME   TEXT" as one row, in as many lines as it takes. */
static void MW_PRINTF(3, 4) row(const struct rows *rows, const char *name, const char *format, ...)
{
	va_list args;

	fprintf(rows->out, "%-*s", (int)COLUMN, name);
	va_start(args, format);
	mw_paragraph_write(rows->out, rows->doctor->width, COLUMN, format, args);
	va_end(args);
}

/* Into `out`: getpwuid()'s answer lasts until the next. */
static const char *user_name(uid_t uid, char out[64])
{
	const struct passwd *entry = getpwuid(uid);

	snprintf(out, 64, "%s", entry ? entry->pw_name : "?");
	return out;
}

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep: the attach waits for it to end";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by its tracer";
	case 'Z':
		return "zombie";
	default:
		return "ended";
	}
}

static const char *scope_text(int scope)
{
	switch (scope) {
	case 0:
		return "0: any process of the same user";
	case 1:
		return "1: own children only, but for CAP_SYS_PTRACE";
	case 2:
		return "2: CAP_SYS_PTRACE only";
	default:
		return "3: nobody";
	}
}

static void print_seccomp(const struct rows *rows, pid_t pid)
{
	size_t seccomp_filtered, others;
	struct mw_error *err = mw_seccomp_policy_count(pid, &seccomp_filtered, &others);

	if (err)
		row(rows, "seccomp", "unknown");
	else if (seccomp_filtered == 0)
		row(rows, "seccomp", "none");
	else if (mw_seccomp_shared(pid))
		row(rows, "seccomp",
		    "%zu of %zu threads are under it, by filters that apply to memwatch too: it tries what they permit",
		    seccomp_filtered, seccomp_filtered + others);
	else if (!mw_preflight_may_suspend_seccomp())
		row(rows, "seccomp", "%zu of %zu threads are under it; memwatch can't know what it permits",
		    seccomp_filtered, seccomp_filtered + others);
	else
		row(rows, "seccomp",
		    "%zu of %zu threads are under it; memwatch looks at what it permits when it attaches, "
		    "before it changes anything",
		    seccomp_filtered, seccomp_filtered + others);
	mw_error_destroy(err);
}

/* "same" or "other" than memwatch's own, or "unknown" without permission. */
static const char *namespace_text(pid_t pid, const char *kind)
{
	char ours[48];
	char theirs[48];
	struct stat our_stat;
	struct stat their_stat;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kind);
	snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, kind);
	if (stat(ours, &our_stat) != 0 || stat(theirs, &their_stat) != 0)
		return "unknown";
	return our_stat.st_ino == their_stat.st_ino ? "same" : "other";
}

/* The control group, which names a container where there is one. */
static void print_cgroup(const struct rows *rows, pid_t pid)
{
	char text[4096], *line;
	size_t size;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/cgroup", (int)pid)))
		return;
	/* Version 2's line is "0::PATH", and the last one where version 1 is there too. */
	line = strstr(text, "0::");
	if (!line || (line != text && line[-1] != '\n'))
		return;
	line[strcspn(line, "\n")] = '\0';
	row(rows, "control group", "%s", line + 3);
}

static void print_tracer(const struct rows *rows, const struct mw_status *status)
{
	char name[17];

	if (!status->tracer) {
		row(rows, "traced", "no");
		return;
	}
	mw_comm_read(status->tracer, status->tracer, name);
	row(rows, "traced", "by %s (pid %d)", name, (int)status->tracer);
}

/* Has /proc something to say about the file of the program? */
static const char *exe_note(pid_t pid)
{
	static const char mark[] = " (deleted)";
	MW_FREE char *link = NULL;
	char path[32];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	mw_error_destroy(mw_proc_link_read(&link, path));
	length = link ? strlen(link) : 0;
	if (length >= sizeof(mark) && strcmp(link + length - strlen(mark), mark) == 0)
		return ", deleted or replaced since it was started";
	return "";
}

/* What a security module holds it to; nothing where there is none, or where that is nothing. */
static void print_label(const struct rows *rows, const char *name, const char *process)
{
	char text[256];
	size_t size;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%s/attr/current", process)))
		return;
	text[strcspn(text, "\n")] = '\0';
	if (*text && strcmp(text, "unconfined") != 0)
		row(rows, name, "%s (%s)", text,
		    access("/sys/fs/selinux/enforce", F_OK) == 0 ? "SELinux" : "AppArmor or another");
}

/* A container's root directory, or a chroot's. */
static void print_root(const struct rows *rows, pid_t pid)
{
	MW_CLOSE int root = mw_root_directory(pid);
	char name[MW_DISTRIBUTION_NAME_MAX];

	if (root < 0 || mw_root_is_own(root))
		return;
	(void)mw_distribution_find(root, name);
	row(rows, "root", "a directory of its own%s%s%s", *name ? " (" : "", name, *name ? ")" : "");
}

static void print_scope(const struct rows *rows)
{
	int scope = mw_ptrace_scope();

	if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0)
		row(rows, "ptrace_scope", "%s%s", scope_text(scope),
		    scope == 1 || scope == 2 ? "; root may lower it: sysctl kernel.yama.ptrace_scope=0" : "");
	else
		row(rows, "ptrace_scope", "this kernel has none");
}

static void print_engine(const struct rows *rows)
{
	const struct mw_doctor *doctor = rows->doctor;
	const struct mw_session_options *options = doctor->options;
	const struct mw_error *verdict = doctor->jump.verdict;

	if (doctor->lacking)
		row(rows, "engine", "none: there is nothing to hook, or it can't be looked at");
	else if (strcmp(options->engine, "auto") != 0)
		row(rows, "engine", "%s (%s)", options->engine, options->engine_reason);
	else if (verdict && doctor->no_trap)
		row(rows, "engine", "trap, but only with --unsafe (auto: %s)", mw_error_text(verdict));
	else if (verdict)
		row(rows, "engine", "trap (auto: %s)", mw_error_text(verdict));
	else
		row(rows, "engine", "jump (auto: nothing stands in its way%s)",
		    doctor->seccomp_filtered ? ", if its seccomp filters permit it" : "");
}

/* Or NULL. */
static const struct mw_module *find_program(const struct mw_doctor *doctor, const char *exe)
{
	for (uint32_t i = 0; exe && i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);

		if (!module->gone && strcmp(module->path, exe) == 0)
			return module;
	}
	return NULL;
}

/* Much of a file's code, and more than what linkers put between functions. */
static bool is_much(uint64_t undescribed, uint64_t code)
{
	return undescribed >= UNDESCRIBED && undescribed >= code / 4;
}

static void print_undescribed(const struct rows *rows)
{
	const struct mw_doctor *doctor = rows->doctor;

	for (uint32_t i = 0; i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);
		uint64_t code, undescribed;

		if (module->gone || !module->elf)
			continue;
		if (mw_error_none(mw_rows_undescribed(module->elf, &code, &undescribed)) && is_much(undescribed, code))
			row(rows, "unwinding",
			    "%s has %s of code without unwind information: stacks that pass through it may end there",
			    basename(module->path), mw_show_size(undescribed).text);
	}
}

static void print_inside(const struct rows *rows, const char *exe)
{
	const struct mw_doctor *doctor = rows->doctor;
	const struct mw_module *program = find_program(doctor, exe);

	if (program && program->elf)
		row(rows, "linked", "%s", program->elf->is_static ? "statically" : "with shared libraries");
	if (program && program->elf && mw_elf_is_go(program->elf))
		row(rows, "runtime",
		    "Go: its own heap is not seen, only what C code (cgo) allocates; for Go's "
		    "use " MW_ALLOC_GO_PROFILE);
	if (doctor->jump.stale.found)
		row(rows, "left behind",
		    "by a killed memwatch: %zu functions still jump to its recorder, which is inactive",
		    doctor->jump.stale.functions);
	print_engine(rows);
	print_undescribed(rows);
}

void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor)
{
	const struct rows all = {out, doctor}, *rows = &all;
	const struct mw_status *status = &doctor->status;
	pid_t pid = doctor->pid, live = doctor->live;
	char theirs[64], ours[64], number[16];
	MW_FREE char *exe = NULL;

	mw_error_destroy(mw_exe_read(live, &exe));
	row(rows, "program", "%s%s", exe ? exe : "unknown", exe ? exe_note(live) : "");
	row(rows, "user", "%s (%u); memwatch runs as %s (%u)", user_name(status->euid, theirs), (unsigned)status->euid,
	    user_name(geteuid(), ours), (unsigned)geteuid());
	row(rows, "state", "%s; %zu thread%s", live == pid ? state_text(status->state) : "its first thread has ended",
	    status->threads, status->threads == 1 ? "" : "s");
	print_tracer(rows, status);
	print_scope(rows);
	print_seccomp(rows, pid);
	if (status->no_new_privileges)
		row(rows, "no_new_privs", "set: it gains no privileges by exec, which does not affect memwatch");
	snprintf(number, sizeof(number), "%d", (int)pid);
	print_label(rows, "security", number);
	print_label(rows, "of memwatch", "self");
	row(rows, "shadow stack", "%s", status->shadow_stack ? "yes" : "no");
	if (status->ns_pid && status->ns_pid != pid)
		row(rows, "pid inside", "%d, in its own pid namespace", (int)status->ns_pid);
	row(rows, "namespaces", "pid: %s, mount: %s, user: %s", namespace_text(live, "pid"),
	    namespace_text(live, "mnt"), namespace_text(live, "user"));
	print_root(rows, live);
	print_cgroup(rows, pid);
	if (mw_doctor_has_inside(doctor))
		print_inside(rows, exe);
}

/* --- debug information --------------------------------------------------------------------------------------------- */

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

static void print_module(FILE *out, const struct entries *entries, const struct entry *entry)
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
			print_module(out, entries, &entries->items[i]);
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
		say(out, entries,
		    "Without installing anything but libdebuginfod (debuginfod-find, if memwatch is portable):");
		fprintf(out, "    DEBUGINFOD_URLS=%s memwatch -p %d\n", server, (int)entries->doctor->pid);
	}
}

/* Debug files lie in the root of whoever looks for them. */
static void print_own_root(FILE *out, const struct entries *entries, const char *name)
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

static void advise(FILE *out, const struct entries *entries, int root)
{
	bool packaged = any_lacking(entries, true), others = any_lacking(entries, false);
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
		print_own_root(out, entries, name);
}

void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor)
{
	MW_CLOSE int root = mw_root_directory(doctor->pid);
	struct entries entries = {.own_root = root >= 0 && !mw_root_is_own(root)};

	/* So that the line of progress does not write over half of one, where both go to a terminal. */
	(void)fflush(out);
	if (collect(&entries, doctor)) {
		fprintf(out, "\nDebug information of %zu modules\n", entries.count);
		for (enum level level = LEVEL_LINES; level < LEVELS; level++)
			print_level(out, &entries, level);
		advise(out, &entries, root);
	}
	free(entries.items);
}
