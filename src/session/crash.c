// SPDX-License-Identifier: MIT
/* crash.c: see crash.h. */
#include "session/crash.h"

#include "symbol/symbolizer.h"

#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

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
