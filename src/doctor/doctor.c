// SPDX-License-Identifier: MIT
/* doctor.c: whether and how a process can be watched (doctor.h). */
#include "doctor/doctor.h"

#include "base/cleanup.h"
#include "doctor/look.h"
#include "engine/stale.h"
#include "output/line.h"
#include "proc/file.h"
#include "session/outputs.h"
#include "session/terminal.h"
#include "tracee/preflight.h"
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what is found out -------------------------------------------------------------------------------------------- */

#define WIDTH     80u /* where standard output is no terminal */
#define WIDTH_MIN 40u
#define WIDTH_MAX 100u /* longer lines are hard to read */

static bool read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct mw_doctor *doctor = context;

	if (mw_remote_read(doctor->live, addr, out, size) != size)
		return false;
	mw_stale_hide(&doctor->jump.stale, addr, out, size);
	return true;
}

static bool is_go(const struct mw_doctor *doctor)
{
	for (uint32_t i = 0; i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);

		if (module->elf && mw_elf_is_go(module->elf))
			return true;
	}
	return false;
}

/* What would make a recording fail, or NULL. */
static struct mw_error *check_hooks(const struct mw_doctor *doctor)
{
	struct mw_error *err;

	if (doctor->options->track_heap && !mw_hooks_usable(&doctor->hooks, MW_KIND_HEAP)) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d has no allocator that memwatch can hook",
				      (int)doctor->pid);
		if (is_go(doctor))
			return mw_error_hint(err, "It is a Go program. " MW_ALLOC_GO_HINT);
		return mw_error_hint(err, "Functions such as malloc are found by name: a stripped static program has "
					  "none, use one that was not stripped; mmap and brk alone: --track vm");
	}
	if (!doctor->options->track_heap && !mw_hooks_usable(&doctor->hooks, MW_KIND_VM))
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "process %d has no mmap that memwatch can hook", (int)doctor->pid),
				     "Functions are found by name: use a program that was not stripped");
	return NULL;
}

static struct mw_error *look_inside(struct mw_doctor *doctor)
{
	const struct mw_memory_view memory = {.context = doctor, .read = read_memory};
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	const struct mw_session_options *options = doctor->options;
	const struct mw_engine_options engine = {
		.track_heap = options->track_heap, .track_vm = options->track_vm, .depth = 1};
	size_t others;

	MW_TRY(mw_maps_read(doctor->live, &doctor->maps));
	MW_TRY(mw_modules_create(&doctor->modules));
	MW_TRY(mw_modules_refresh(doctor->modules, doctor->live, &doctor->maps, NULL, NULL));
	MW_TRY(mw_jump_examine(doctor->pid, &engine, &doctor->jump));
	MW_TRY(mw_seccomp_policy_count(doctor->pid, &doctor->seccomp_filtered, &others));
	if (!options->unsafe)
		doctor->no_trap = mw_seccomp_policy_preflight("trap", doctor->pid, true);
	MW_TRY(mw_hooks_find(&doctor->hooks, doctor->modules, 0, arch, &memory, true, options->track_vm));
	MW_TRY(mw_symbolizer_create(doctor->modules, &doctor->symbolizer));
	return check_hooks(doctor);
}

static unsigned choose_width(void)
{
	unsigned width = mw_terminal_width(STDOUT_FILENO);

	if (!width)
		return WIDTH;
	if (width < WIDTH_MIN)
		return WIDTH_MIN;
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

/* `out` is zero-initialised and to be deinited, also after an error: there is no such process. */
static struct mw_error *look_at(pid_t pid, const struct mw_session_options *options, struct mw_doctor *out)
{
	struct mw_error *err;

	out->pid = pid;
	out->live = mw_live_thread(pid);
	out->options = options;
	out->width = choose_width();
	out->refused = mw_preflight(pid);
	if (!out->refused)
		out->refused = mw_preflight_sharing(pid);
	err = mw_status_read(pid, &out->status);
	if (err && out->refused) {
		/* That says more. */
		mw_error_destroy(err);
		err = out->refused;
		out->refused = NULL;
	}
	MW_TRY(err);
	MW_TRY(mw_status_read(getpid(), &out->own));
	if (!out->refused)
		out->lacking = look_inside(out);
	return NULL;
}

static void deinit(struct mw_doctor *doctor)
{
	mw_error_destroy(doctor->refused);
	mw_error_destroy(doctor->no_trap);
	mw_error_destroy(doctor->lacking);
	mw_jump_examination_deinit(&doctor->jump);
	mw_hooks_deinit(&doctor->hooks);
	mw_symbolizer_destroy(doctor->symbolizer);
	mw_modules_destroy(doctor->modules);
	mw_maps_deinit(&doctor->maps);
}

/* "jump" or "trap": which engine would be taken, or was asked for. */
static const char *engine_of(const struct mw_doctor *doctor)
{
	if (strcmp(doctor->options->engine, "auto") != 0)
		return doctor->options->engine;
	return doctor->jump.verdict ? "trap" : "jump";
}

/* Why it can't be watched, or NULL. The doctor's. */
static struct mw_error **verdict_of(struct mw_doctor *doctor)
{
	static struct mw_error *nothing;

	if (doctor->refused)
		return &doctor->refused;
	if (doctor->lacking)
		return &doctor->lacking;
	if (strcmp(doctor->options->engine, "jump") == 0)
		return &doctor->jump.verdict;
	if (strcmp(engine_of(doctor), "trap") == 0)
		return &doctor->no_trap;
	return &nothing;
}

/* --- what memwatch may do to it here, and what it may not ------------------------------------------------------- */

/* A list in the making: its items are printed when the others' have been found, too. */
struct list {
	FILE *out;
	unsigned width;
	size_t count;
	char *text;
	size_t size;
};

static void MW_PRINTF(2, 3) add(struct list *list, const char *format, ...)
{
	va_list args;

	fputs("  - ", list->out);
	va_start(args, format);
	mw_paragraph_write(list->out, list->width, 4, format, args);
	va_end(args);
	list->count++;
}

/* What can't be done, and why. */
static void add_error(struct list *list, const char *what, const struct mw_error *err)
{
	const char *hint = mw_error_hint_text(err);

	add(list, "%s: %s%s%s", what, mw_error_text(err), hint ? ". " : "", hint ? hint : "");
}

static bool has(const struct mw_doctor *doctor, unsigned capability)
{
	return doctor->own.capabilities >> capability & 1;
}

/* By what right it may be attached to. */
static void add_attach(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	int scope = mw_ptrace_scope();

	if (doctor->refused)
		add_error(may_not,
			  mw_error_kind(doctor->refused) == MW_ERROR_DENIED ? "attach to it, which is refused"
									    : "watch it",
			  doctor->refused);
	else if (has(doctor, CAP_SYS_PTRACE))
		add(may, "attach to it: memwatch %s CAP_SYS_PTRACE%s", geteuid() == 0 ? "runs as root, with" : "has",
		    scope ? ", which overrides ptrace_scope" : "");
	else if (scope)
		add(may, "attach to it: the process is of the same user, and has been launched by memwatch");
	else
		add(may, "attach to it: the process is of the same user, and no ptrace_scope forbids it");
}

static void add_stale(const struct mw_doctor *doctor, struct list *may)
{
	if (doctor->jump.stale.found)
		add(may,
		    "remove what a killed memwatch left in it: the next \"memwatch -p %d\" does, "
		    "and so does \"memwatch doctor -p %d --clean\"",
		    (int)doctor->pid, (int)doctor->pid);
}

/* Whether its threads are stopped at each call. */
static void add_engine(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	const struct mw_error *verdict = doctor->jump.verdict;

	if (!verdict)
		add(may,
		    "record inside it (engine jump%s): its threads are stopped only when memwatch attaches and "
		    "detaches, for milliseconds",
		    doctor->seccomp_filtered ? ", if its seccomp filters permit that" : "");
	else
		add(may_not,
		    "record inside it without stopping its threads (engine jump): %s. Engine trap stops a thread at "
		    "each call: keep the window short if it allocates much",
		    mw_error_text(verdict));
}

/* Would the process live on if memwatch is killed? */
static void add_survival(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	if (strcmp(engine_of(doctor), "trap") != 0 || !doctor->no_trap)
		add(may, "be killed at any time: the process keeps running");
	else
		add_error(may_not, "be killed without harm to it", doctor->no_trap);
}

static void add_seccomp(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	if (!doctor->seccomp_filtered)
		return;
	if (mw_preflight_may_suspend_seccomp())
		add(may, "read and suspend its seccomp filters: what they permit is looked at when memwatch attaches, "
			 "before it changes anything");
	else if (has(doctor, CAP_SYS_ADMIN))
		add(may_not,
		    "read its seccomp filters, as memwatch is under one itself: run it outside of its container");
	else
		add(may_not, "read its seccomp filters, and know what they permit: it takes CAP_SYS_ADMIN");
}

static const struct {
	unsigned number;
	const char *name, *gives;
} capabilities[] = {
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "watch processes of other users, and protected ones"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
	 "read and suspend seccomp filters, and read files that were deleted or replaced"},
	{CAP_SYS_NICE, "CAP_SYS_NICE",
	 "run on time on a busy machine, and share the CPU of the thread it serves (engine trap)"},
};

#define CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))

/* How to give memwatch what it lacks. */
static void add_remedy(const struct mw_doctor *doctor, struct list *may_not)
{
	MW_FREE char *path = NULL, *word = NULL;

	if (geteuid() == 0) {
		add(may_not, "have these as root of a container: start it with --cap-add=SYS_PTRACE and the like, or "
			     "run memwatch outside of it");
		return;
	}
	if (has(doctor, CAP_SYS_PTRACE)) {
		add(may_not, "have these as this user: run \"sudo memwatch ...\"");
		return;
	}
	mw_error_destroy(mw_proc_link_read(&path, "/proc/self/exe"));
	word = path ? mw_shell_word(path) : NULL;
	add(may_not,
	    "have these as this user: run \"sudo memwatch ...\", or give the first of them to all who may run it: "
	    "setcap cap_sys_ptrace+ep %s",
	    word ? word : "memwatch");
}

static void add_capabilities(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	size_t missing = 0;

	for (size_t i = 0; i < CAPABILITIES; i++) {
		if (has(doctor, capabilities[i].number)) {
			add(may, "%s (%s)", capabilities[i].gives, capabilities[i].name);
			continue;
		}
		add(may_not, "%s: it takes %s", capabilities[i].gives, capabilities[i].name);
		missing++;
	}
	if (missing)
		add_remedy(doctor, may_not);
}

static void add_heap(const struct mw_doctor *doctor, struct list *may_not)
{
	struct mw_error *err = mw_preflight_heap(doctor->pid);

	if (err)
		add_error(may_not, "find lost blocks (memwatch heap, --leaks)", err);
	mw_error_destroy(err);
}

static void begin(struct list *list, unsigned width)
{
	*list = (struct list){.width = width};
	list->out = open_memstream(&list->text, &list->size);
}

static void print(FILE *out, struct list *list, const char *title)
{
	if (list->out && fclose(list->out) == 0)
		fprintf(out, "\n%s\n%s", title, list->count ? list->text : "  - nothing\n");
	free(list->text);
}

/* In two lists. */
static void print_may(FILE *out, const struct mw_doctor *doctor)
{
	struct list may, may_not;

	begin(&may, doctor->width);
	begin(&may_not, doctor->width);
	if (may.out && may_not.out) {
		add_attach(doctor, &may, &may_not);
		if (doctor->lacking)
			add_error(&may_not, "watch it", doctor->lacking);
		if (mw_doctor_has_inside(doctor)) {
			if (!doctor->lacking) {
				add_engine(doctor, &may, &may_not);
				add_survival(doctor, &may, &may_not);
			}
			add_stale(doctor, &may);
			add_heap(doctor, &may_not);
			add_seccomp(doctor, &may, &may_not);
		}
		add_capabilities(doctor, &may, &may_not);
	}
	print(out, &may, "memwatch may");
	print(out, &may_not, "memwatch may not");
}

/* --- which functions would be hooked, and how ------------------------------------------------------------------- */

#define INDENT 4u
#define NAMED  4   /* of those that would not be hooked, in the answer */
#define CELL   25u /* columns of an entry: its address and most names */

/* One of two lists: those that are hooked, and those that are not. */
struct table {
	FILE *out;
	const struct mw_doctor *doctor;
	bool refused;
};

/* Heap functions are looked at in any case, to know what they call. */
static bool asked_for(const struct mw_doctor *doctor, const struct mw_hook_info *hook)
{
	return hook->kind == MW_KIND_HEAP ? doctor->options->track_heap : doctor->options->track_vm;
}

/* What is to be said of one beside the engine: why it is not hooked, or why not by a jump; NULL: nothing. */
static const char *reason_of(const struct mw_doctor *doctor, size_t number)
{
	const struct mw_hook_info *hook = &doctor->hooks.items[number].info;

	if (hook->refused)
		return hook->refused;
	return number < doctor->jump.count ? doctor->jump.refused[number] : NULL;
}

static bool belongs(const struct table *table, size_t number)
{
	const struct mw_hook_info *hook = &table->doctor->hooks.items[number].info;

	return asked_for(table->doctor, hook) && !hook->refused == !table->refused;
}

static bool same_text(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/* In the same paragraph: of one module, and of the same reason. */
static bool same_group(const struct table *table, size_t one, size_t other)
{
	return belongs(table, other) &&
	       table->doctor->hooks.items[one].module == table->doctor->hooks.items[other].module &&
	       same_text(reason_of(table->doctor, one), reason_of(table->doctor, other));
}

static void print_title(const struct table *table, size_t first, size_t count, uint64_t bias)
{
	const char *engine = engine_of(table->doctor), *why = reason_of(table->doctor, first);
	struct mw_paragraph title;

	fputs("  ", table->out);
	mw_paragraph_begin(&title, table->out, table->doctor->width, 2, INDENT);
	mw_paragraph_word(&title, table->doctor->hooks.items[first].info.module);
	if (bias)
		mw_paragraph_printf(&title, "at %" PRIx64 ": %zu", (uint64_t)bias, count);
	else
		mw_paragraph_printf(&title, ": %zu", count);
	if (table->refused)
		mw_paragraph_printf(&title, "not, as %s", why);
	else if (why)
		mw_paragraph_printf(&title, "by a breakpoint only, as %s", why);
	else
		mw_paragraph_text(&title, strcmp(engine, "jump") == 0 ? "by a jump" : "by a breakpoint");
	mw_paragraph_end(&title);
}

/* In a row of entries. */
struct cursor {
	unsigned at, next; /* where it is, and where the next entry begins */
};

/* Its offset in the module, and its name. A name that is longer takes the room of two or three. */
static void print_entry(const struct table *table, const struct mw_hook_info *hook, uint64_t bias,
			struct cursor *cursor)
{
	struct mw_line line = {0};
	unsigned columns;

	mw_line_printf(&line, "%8" PRIx64 " ", hook->address - bias);
	mw_line_name(&line, hook->function);
	columns = (unsigned)mw_line_columns(&line, 0);
	if (cursor->next && INDENT - 2 + cursor->next + columns > table->doctor->width) {
		fputc('\n', table->out);
		*cursor = (struct cursor){0};
	}
	fprintf(table->out, "%*s%s", (int)(cursor->next ? cursor->next - cursor->at : INDENT - 2), "",
		line.data ? line.data : "");
	cursor->at = cursor->next + columns;
	cursor->next += (columns / CELL + 1) * CELL;
	mw_line_deinit(&line);
}

static void print_group(const struct table *table, size_t first)
{
	const struct mw_hooks *hooks = &table->doctor->hooks;
	const struct mw_module *module = mw_modules_get(table->doctor->modules, hooks->items[first].module);
	size_t count = 0;
	struct cursor cursor = {0};

	for (size_t i = first; i < hooks->count; i++)
		count += same_group(table, first, i);
	print_title(table, first, count, module->bias);
	for (size_t i = first; i < hooks->count; i++)
		if (same_group(table, first, i))
			print_entry(table, &hooks->items[i].info, module->bias, &cursor);
	if (cursor.next)
		fputc('\n', table->out);
}

static size_t count_table(const struct table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->doctor->hooks.count; i++)
		count += belongs(table, i);
	return count;
}

static void print_table(const struct table *table)
{
	for (size_t i = 0; i < table->doctor->hooks.count; i++) {
		bool first = belongs(table, i);

		for (size_t j = 0; j < i && first; j++)
			first = !same_group(table, i, j);
		if (first)
			print_group(table, i);
	}
}

/* How many would be hooked. */
static size_t count_hooks(const struct mw_doctor *doctor)
{
	const struct table hooked = {.doctor = doctor};

	return count_table(&hooked);
}

/* What a report would lack: a line with the first few that would not be hooked; nothing where all would. */
static void print_missed(FILE *out, const struct mw_doctor *doctor)
{
	const struct table table = {.out = out, .doctor = doctor, .refused = true};
	size_t count = count_table(&table), named = 0;

	if (!count)
		return;
	fprintf(out, "Its report would be incomplete: no call would be seen of");
	for (size_t i = 0; i < doctor->hooks.count && named < NAMED; i++) {
		if (!belongs(&table, i))
			continue;
		fprintf(out, named++ ? ", " : " ");
		mw_message_put(out, doctor->hooks.items[i].info.function);
	}
	if (count > named)
		fprintf(out, " and %zu more", count - named);
	fprintf(out, " (at the end: why).\n");
}

/* By module, in columns; those that would not be, by reason. */
static void print_hooks(FILE *out, const struct mw_doctor *doctor)
{
	struct table table = {.out = out, .doctor = doctor};
	size_t count = count_table(&table);

	fprintf(out, "\nWould be hooked: %zu function%s%s\n", count, count == 1 ? "" : "s",
		count ? ", here by their offsets in the file" : "");
	print_table(&table);
	table.refused = true;
	count = count_table(&table);
	if (count)
		fprintf(out, "\nWould not be hooked: %zu\n", count);
	print_table(&table);
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

/* --clean */
static struct mw_error *remove_remains(pid_t pid)
{
	struct mw_stale stale;
	struct mw_outfile *file = NULL;
	char left[160];
	bool found;
	FILE *out;

	MW_TRY(mw_preflight(pid));
	MW_TRY(mw_stale_look(pid, &stale));
	found = stale.found;
	mw_stale_deinit(&stale);
	MW_TRY(mw_stale_remove(pid, left, sizeof(left)));
	if (*left)
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "process %d: %s", (int)pid, left),
				     "The process is unharmed; try again later");
	MW_TRY(mw_outfile_open("-", &file));
	out = mw_outfile_stream(file);
	if (found)
		fprintf(out, "Process %d: what a killed memwatch left is removed.\n", (int)pid);
	else
		fprintf(out, "Process %d: no memwatch left anything in it.\n", (int)pid);
	return mw_outfile_commit(file);
}

/* The answer, which is what most want to know: it stands first. */
static void print_answer(FILE *out, struct mw_doctor *doctor)
{
	const char *engine = engine_of(doctor);
	bool by_engine = !doctor->refused && !doctor->lacking && strcmp(doctor->options->engine, "auto") != 0;

	fprintf(out, "Process %d (", (int)doctor->pid);
	mw_message_put(out, doctor->status.name);
	if (!*verdict_of(doctor))
		fprintf(out, ") can be watched: %zu functions, by engine %s.\n", count_hooks(doctor), engine);
	else
		fprintf(out, ") can't be watched%s%s.\n", by_engine ? " by engine " : "", by_engine ? engine : "");
}

/* Everything, in the order in which it is asked for. */
static void print_all(FILE *out, struct mw_doctor *doctor)
{
	const char *can = *verdict_of(doctor) ? "can't" : "can";

	print_answer(out, doctor);
	if (!*verdict_of(doctor))
		print_missed(out, doctor);
	fputc('\n', out);
	mw_doctor_facts(out, doctor);
	print_may(out, doctor);
	if (mw_doctor_has_inside(doctor)) {
		print_hooks(out, doctor);
		mw_doctor_print_debug(out, doctor);
	}
	fprintf(out, "\nProcess %d %s be watched.\n", (int)doctor->pid, can);
}

struct mw_error *mw_doctor_run(const struct mw_session_options *options, bool clean)
{
	struct mw_doctor doctor = {.pid = 0};
	struct mw_error **verdict, *err;
	struct mw_outfile *file = NULL;

	if (clean)
		return remove_remains(options->pids.items[0]);
	MW_TRY(mw_outfile_open("-", &file));
	err = look_at(options->pids.items[0], options, &doctor);
	if (err) {
		mw_outfile_abort(file);
		deinit(&doctor);
		return err;
	}
	print_all(mw_outfile_stream(file), &doctor);
	err = mw_outfile_commit(file);
	verdict = verdict_of(&doctor);
	if (*verdict) {
		mw_error_destroy(err);
		err = *verdict;
		*verdict = NULL;
	}
	deinit(&doctor);
	return err;
}
