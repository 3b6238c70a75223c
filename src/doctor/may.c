// SPDX-License-Identifier: MIT
/* may.c: see may.h. */
#include "doctor/may.h"

#include "doctor/paragraph.h"
#include "proc/file.h"
#include "tracee/preflight.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	struct mw_paragraph item;
	va_list args;

	fputs("  - ", list->out);
	mw_paragraph_begin(&item, list->out, list->width, 4, 4);
	va_start(args, format);
	mw_paragraph_vprintf(&item, format, args);
	va_end(args);
	mw_paragraph_end(&item);
	list->count++;
}

static bool has(const struct mw_doctor *doctor, unsigned capability)
{
	return doctor->own.capabilities >> capability & 1;
}

/* By what right it may be attached to. */
static void add_attach(const struct mw_doctor *doctor, struct list *may, struct list *may_not)
{
	int scope = mw_ptrace_scope();
	const char *hint;

	if (doctor->refused) {
		hint = mw_error_hint_text(doctor->refused);
		add(may_not, "%s: %s%s%s",
		    mw_error_kind(doctor->refused) == MW_ERROR_DENIED ? "attach to it, which is refused" : "watch it",
		    mw_error_text(doctor->refused), hint ? ". " : "", hint ? hint : "");
		return;
	}
	if (has(doctor, CAP_SYS_PTRACE))
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
	const char *hint;

	if (strcmp(mw_doctor_engine(doctor), "trap") != 0 || !doctor->no_trap) {
		add(may, "be killed at any time: the process keeps running");
		return;
	}
	hint = mw_error_hint_text(doctor->no_trap);
	add(may_not, "be killed without harm to it: %s%s%s", mw_error_text(doctor->no_trap), hint ? ". " : "",
	    hint ? hint : "");
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
	char *path = NULL, *word;

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
	free(word);
	free(path);
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

void mw_doctor_print_may(FILE *out, const struct mw_doctor *doctor)
{
	struct list may, may_not;

	begin(&may, doctor->width);
	begin(&may_not, doctor->width);
	if (may.out && may_not.out) {
		add_attach(doctor, &may, &may_not);
		if (mw_doctor_has_inside(doctor)) {
			add_engine(doctor, &may, &may_not);
			add_survival(doctor, &may, &may_not);
			add_stale(doctor, &may);
			add_seccomp(doctor, &may, &may_not);
		}
		add_capabilities(doctor, &may, &may_not);
	}
	print(out, &may, "memwatch may");
	print(out, &may_not, "memwatch may not");
}
