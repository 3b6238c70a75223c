// SPDX-License-Identifier: MIT
/* process_setup.c: descriptors, limits and signals of memwatch's own process, and its crashes (process_setup.h). */
#include "session/process_setup.h"

#include "base/clock.h"
#include "symbol/symbolizer.h"

#include <memwatch/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

/* timeout(1) and terminals may send a signal twice: what comes within this time counts as one. */
#define SAME_SIGNAL_NS 300000000ULL
/* Open files that a small process is watched with; each of its libraries may be one more. */
#define LEAST_FILES 32

static sigset_t found_mask;
static struct rlimit found_files;
static bool prepared;
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t signalled; /* somebody has asked for the end */
static volatile sig_atomic_t hurried;   /* … and then for it to be at once */
static volatile sig_atomic_t reporting;
static volatile sig_atomic_t screen;  /* the terminal shows a table */
static volatile sig_atomic_t refused; /* to be suspended, while it does */
/* Copies: their owner may free them while a signal comes. */
static char partial_files[MW_PARTIALS_MAX][PATH_MAX];
static uint64_t first_signal_ns;

/* Times of marks that were asked for, not yet taken: written by the handler at `marks_asked`, read up to it. */
static uint64_t mark_times[MW_PROCESS_SETUP_MARKS];
static volatile sig_atomic_t marks_asked;
static int marks_taken;

void mw_process_setup_guard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		/* The wrong direction on purpose: writing to a closed output must fail, not vanish. */
		int flags = fd == 0 ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags | O_CLOEXEC) != fd)
			_exit(1);
	}
}

void mw_process_setup_unlink_partials(void)
{
	for (size_t i = 0; i < MW_PARTIALS_MAX; i++)
		if (*partial_files[i])
			unlink(partial_files[i]);
}

static void on_signal(int number)
{
	static const char text[] = "\nmemwatch: interrupted before the report was written\n";

	if (!interrupted)
		interrupted = MW_STOP_INTERRUPT;
	if (!signalled) {
		first_signal_ns = mw_clock_ns();
		signalled = 1;
		hurried = number == SIGQUIT;
		return;
	}
	if (mw_clock_ns() - first_signal_ns < SAME_SIGNAL_NS)
		return;
	hurried = 1;
	if (!reporting)
		return;
	mw_process_setup_unlink_partials();
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* ^Z: while memwatch is stopped, the process is paused. */
static void on_suspend(int number)
{
	static const char text[] =
		"\nmemwatch: not suspended: the process would be paused meanwhile; Ctrl-C ends the window\n";

	(void)number;
	if (screen) {
		refused = 1;
		return;
	}
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

static void on_mark(int number)
{
	(void)number;
	/* More at once than there is room for are as one. */
	if (marks_asked - marks_taken < MW_PROCESS_SETUP_MARKS) {
		mark_times[marks_asked % MW_PROCESS_SETUP_MARKS] = mw_clock_ns();
		marks_asked++;
	}
}

bool mw_process_setup_take_mark(uint64_t *at_ns)
{
	sigset_t marks, before;
	bool any;

	sigemptyset(&marks);
	sigaddset(&marks, SIGUSR1);
	sigprocmask(SIG_BLOCK, &marks, &before);
	any = marks_taken < marks_asked;
	if (any)
		*at_ns = mark_times[marks_taken++ % MW_PROCESS_SETUP_MARKS];
	sigprocmask(SIG_SETMASK, &before, NULL);
	return any;
}

static const struct {
	void (*handler)(int);
	int number;
	bool unless_ignored; /* it stays ignored where it was */
} watched[] = {
	{on_signal, SIGINT, false}, {on_signal, SIGTERM, false}, {on_signal, SIGHUP, true}, {on_signal, SIGQUIT, false},
	{SIG_IGN, SIGPIPE, false},  {SIG_IGN, SIGXFSZ, false},   {on_mark, SIGUSR1, false}, {on_suspend, SIGTSTP, true},
	{SIG_IGN, SIGTTIN, false},  {SIG_IGN, SIGTTOU, false},
};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

static struct sigaction found_actions[WATCHED];

static void prepare_signals(void)
{
	sigset_t all;

	sigemptyset(&all);
	for (size_t i = 0; i < WATCHED; i++)
		sigaddset(&all, watched[i].number);
	sigprocmask(SIG_SETMASK, NULL, &found_mask);
	for (size_t i = 0; i < WATCHED; i++) {
		struct sigaction action = {.sa_handler = watched[i].handler};

		/* One at a time: a handler that is interrupted by another would count wrongly. */
		if (action.sa_handler == on_signal)
			action.sa_mask = all;
		else if (action.sa_handler != SIG_IGN)
			action.sa_flags = SA_RESTART;
		sigaction(watched[i].number, NULL, &found_actions[i]);
		if (!watched[i].unless_ignored || found_actions[i].sa_handler != SIG_IGN)
			sigaction(watched[i].number, &action, NULL);
	}
}

void mw_process_setup_ignore_write_signals(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

void mw_process_setup_prepare(void)
{
	struct rlimit raised;

	prepare_signals();
	if (getrlimit(RLIMIT_NOFILE, &found_files) == 0) {
		raised = found_files;
		raised.rlim_cur = raised.rlim_max;
		setrlimit(RLIMIT_NOFILE, &raised);
	}
	prepared = true;
}

struct mw_error *mw_process_setup_check_files(void)
{
	struct rlimit files;
	struct mw_error *err;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= LEAST_FILES)
		return NULL;
	err = mw_error_create(MW_ERROR_SYSTEM, EMFILE, "memwatch may open only %llu files, and needs more",
			      (unsigned long long)files.rlim_cur);
	return mw_error_hint(err, "Raise the limit: ulimit -n 1024");
}

const volatile sig_atomic_t *mw_process_setup_interrupted(void)
{
	return &interrupted;
}

void mw_process_setup_limit_reached(void)
{
	if (!interrupted)
		interrupted = MW_STOP_LIMIT;
}

bool mw_process_setup_end_asked(void)
{
	return signalled;
}

void mw_process_setup_screen(bool shown)
{
	screen = shown;
}

bool mw_process_setup_refused_suspension(void)
{
	bool was = refused;

	refused = 0;
	return was;
}

bool mw_process_setup_hurried(void)
{
	return hurried;
}

void mw_process_setup_reported(void)
{
	reporting = 0;
}

/* Nothing is stopped for memwatch any more. */
static void allow_suspending(void)
{
	for (size_t i = 0; i < WATCHED; i++)
		if (watched[i].number == SIGTSTP || watched[i].number == SIGTTIN || watched[i].number == SIGTTOU)
			sigaction(watched[i].number, &found_actions[i], NULL);
}

void mw_process_setup_partials(const struct mw_partials *partials)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < MW_PARTIALS_MAX; i++)
		snprintf(partial_files[i], sizeof(partial_files[i]), "%s",
			 partials && partials->paths[i] ? partials->paths[i] : "");
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void mw_process_setup_reporting(const struct mw_partials *partials)
{
	mw_process_setup_partials(partials);
	allow_suspending();
	reporting = 1;
}

void mw_process_setup_restore(void)
{
	if (!prepared)
		return;
	if (found_files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &found_files);
	for (size_t i = 0; i < WATCHED; i++)
		sigaction(watched[i].number, &found_actions[i], NULL);
	sigprocmask(SIG_SETMASK, &found_mask, NULL);
}

/* --- crashes ------------------------------------------------------------------------------------------------------- */

#define STACK_SIZE   65536
#define NULL_PAGES   65536 /* what is reached by way of a null pointer lies below */
#define RANGES       16
#define SIGNAL_COUNT (sizeof(fatal) / sizeof(fatal[0]))

static const struct {
	int number;
	const char *name;
} fatal[] = {
	{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
};

static void (*on_crash)(int number);
static struct sigaction found[SIGNAL_COUNT]; /* a sanitizer's, where there is one */
static struct {
	uintptr_t start, end;
} ranges[RANGES]; /* code of libraries that read symbols */
static size_t range_count;
static sigjmp_buf way_out;
static pid_t trying; /* the thread that may go that way, or 0 */

struct mw_error *mw_process_setup_thread(pthread_t *thread, void *(*run)(void *context), void *context)
{
	sigset_t foreign, before;
	int errnum;

	sigfillset(&foreign);
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		sigdelset(&foreign, fatal[i].number);
	pthread_sigmask(SIG_SETMASK, &foreign, &before);
	errnum = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errnum ? mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread") : NULL;
}

const char *mw_crash_name(int number)
{
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		if (fatal[i].number == number)
			return fatal[i].name;
	return "a signal";
}

static bool in_ranges(uintptr_t pc)
{
	for (size_t i = 0; i < range_count; i++)
		if (pc - ranges[i].start < ranges[i].end - ranges[i].start)
			return true;
	return false;
}

/* An allocator that has crashed would never be whole again, nor one whose lock is held. */
static bool may_go_on(int number, const siginfo_t *info, uintptr_t pc)
{
	if (number != SIGSEGV && number != SIGBUS && number != SIGFPE)
		return false;
	if (info->si_code <= 0) /* somebody has sent it */
		return false;
	return in_ranges(pc) || (number == SIGSEGV && (uintptr_t)info->si_addr < NULL_PAGES);
}

static uintptr_t pc_of(const void *context)
{
#ifdef REG_RIP
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	(void)context;
	return 0;
#endif
}

static void handle(int number, siginfo_t *info, void *context)
{
	if (trying && trying == gettid() && may_go_on(number, info, pc_of(context)))
		siglongjmp(way_out, 1);
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		if (fatal[i].number == number && (found[i].sa_flags & SA_SIGINFO))
			found[i].sa_sigaction(number, info, context);
	on_crash(number);
	_exit(1);
}

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	static const char *const names[] = {"/libdw", "/libelf"};

	(void)size, (void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!info->dlpi_name || !strstr(info->dlpi_name, names[i]))
			continue;
		for (size_t j = 0; j < info->dlpi_phnum && range_count < RANGES; j++) {
			const ElfW(Phdr) *header = &info->dlpi_phdr[j];

			if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
				continue;
			ranges[range_count].start = info->dlpi_addr + header->p_vaddr;
			ranges[range_count].end = ranges[range_count].start + header->p_memsz;
			range_count++;
		}
	}
	return 0;
}

void mw_crash_catch(void (*crashed)(int number))
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = STACK_SIZE}, before = {.ss_flags = SS_DISABLE};

	on_crash = crashed;
	dl_iterate_phdr(note_library, NULL);
	/* Where it is the stack that is used up. A sanitizer has seen to that. */
	if (sigaltstack(NULL, &before) == 0 && (before.ss_flags & SS_DISABLE)) {
		stack.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stack.ss_sp != MAP_FAILED)
			sigaltstack(&stack, NULL);
	}
	action.sa_sigaction = handle;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		sigaction(fatal[i].number, &action, &found[i]);
}

static __attribute__((noreturn)) void no_memory(void)
{
	if (trying == gettid())
		siglongjmp(way_out, 1);
	abort();
}

/* What libraries call where one of their assertions does not hold: it is no fault of the allocator's. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function); // NOLINT
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)  // NOLINT
{
	if (trying == gettid())
		siglongjmp(way_out, 1);
	fprintf(stderr, "memwatch: %s:%u: %s: assertion '%s' does not hold\n", file, line, function, assertion);
	abort();
}

/*
 * Ask what reads symbols by libraries that are not ours, which may crash in the midst of it: by a null pointer, or in
 * their code, or where they found no memory. Other crashes are crashes. Not nested.
 */
static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	struct mw_guarded_symbols *guarded = context;

	mw_symbol_no_memory = no_memory;
	if (!guarded->crashed) {
		if (sigsetjmp(way_out, 1) == 0) {
			struct mw_error *err;

			trying = gettid();
			err = mw_symbolizer_resolve(guarded->symbolizer, module, addr, true, frames, count);
			trying = 0;
			return err;
		}
		trying = 0;
		guarded->crashed = true;
	}
	*frames = &guarded->unknown;
	*count = 1;
	return NULL;
}

struct mw_error *mw_guarded_symbols_init(struct mw_guarded_symbols *guarded, const struct mw_modules *modules)
{
	*guarded = (struct mw_guarded_symbols){.crashed = false};
	return mw_symbolizer_create(modules, &guarded->symbolizer);
}

void mw_guarded_symbols_deinit(struct mw_guarded_symbols *guarded)
{
	if (!guarded->crashed)
		mw_symbolizer_destroy(guarded->symbolizer);
}

struct mw_view_symbols mw_guarded_symbols_of(struct mw_guarded_symbols *guarded)
{
	return (struct mw_view_symbols){.context = guarded, .resolve = resolve};
}
