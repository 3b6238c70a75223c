/* SPDX-License-Identifier: MIT */
/*
 * traps MODE: a program that lives by SIGTRAP. Each mode counts what must arrive, and ends badly if it is other.
 *
 * threads    int3s and raised SIGTRAPs of several threads at once, each with its own address, between allocations
 * changing   the action is changed before each: two handlers, SIG_IGN, and what sigaction gives back is looked at
 * once       SA_RESETHAND: the handler is gone when it has run, and is set anew
 * nested     SA_NODEFER: handlers within handlers, each allocating
 * altstack   the handler runs on an alternate stack of 8 KiB, and nowhere else
 * blocked    blocked SIGTRAPs, one's own and others' and with values, are taken by sigtimedwait and signalfd, once
 * skip       the handler moves the program counter over an instruction that must not be executed
 * step       the program single-steps itself, by its trap flag, over code that does not allocate and code that does
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  200
#define NESTED  4

static _Atomic uint64_t raised, trapped, stepped, wrong, pairs, leaks;
static __thread volatile uint64_t own_traps;
static __thread volatile uintptr_t expected_at;
static char *stack_low, *stack_high;

/* The byte behind this int3. */
#define TRAP()                                                                                                         \
	do {                                                                                                           \
		__asm__ volatile("lea 1f(%%rip), %%rax\n\tmov %%rax, %0\n\tint3\n1:"                                   \
				 : "=m"(expected_at)                                                                   \
				 :                                                                                     \
				 : "rax", "memory");                                                                   \
	} while (0)

static uintptr_t counter(void *context)
{
	return (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

static KEEP void traps_pair(void)
{
	char *block = malloc(61);

	OPAQUE(block);
	memset(block, 't', 61);
	free(block);
	atomic_fetch_add(&pairs, 1);
}

static KEEP void traps_leak(void)
{
	void *block = malloc(67);

	OPAQUE(block);
	atomic_fetch_add(&leaks, 1);
}

static void set(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	sigaddset(&action.sa_mask, SIGUSR2);
	if (sigaction(SIGTRAP, &action, NULL))
		target_fail("sigaction");
}

static void note(const siginfo_t *info, void *context)
{
	if (info->si_code == SI_KERNEL && counter(context) == expected_at)
		trapped++;
	else if (info->si_code == SI_TKILL && info->si_pid == getpid())
		raised++;
	else
		wrong++;
	own_traps++;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	note(info, context);
}

static void *trap_often(void *unused)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		traps_pair();
		TRAP();
		traps_leak();
		raise(SIGTRAP);
		if (own_traps != 2 * (i + 1))
			target_fail("a thread's trap went to another thread, or was lost");
	}
	return unused;
}

static void expect(uint64_t want_trapped, uint64_t want_raised)
{
	if (trapped != want_trapped || raised != want_raised || wrong) {
		target_say("trapped", trapped);
		target_say("raised", raised);
		target_say("wrong", wrong);
		target_fail("traps were lost, doubled or changed");
	}
}

static void threads(void)
{
	pthread_t thread[THREADS];

	set(on_trap, SA_RESTART);
	target_ready();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, trap_often, NULL))
			target_fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	expect(THREADS * ROUNDS, THREADS * ROUNDS);
}

static uint64_t second;

static void on_second(int number, siginfo_t *info, void *context)
{
	(void)number;
	note(info, context);
	second++;
}

static void changing(void)
{
	struct sigaction old, ignore;

	memset(&ignore, 0, sizeof(ignore));
	ignore.sa_handler = SIG_IGN;
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		set(on_trap, SA_RESTART);
		traps_pair();
		TRAP();
		set(on_second, SA_RESTART);
		raise(SIGTRAP);
		TRAP();
		if (sigaction(SIGTRAP, &ignore, &old) || old.sa_sigaction != on_second ||
		    (old.sa_flags & 0xff) != SA_SIGINFO || !(old.sa_flags & SA_RESTART) ||
		    sigismember(&old.sa_mask, SIGUSR2) != 1 || sigismember(&old.sa_mask, SIGUSR1) != 0)
			target_fail("the old action is not what was set");
		raise(SIGTRAP); /* ignored */
		traps_pair();
		if (sigaction(SIGTRAP, NULL, &old) || old.sa_handler != SIG_IGN)
			target_fail("SIGTRAP is not ignored");
	}
	expect(2 * ROUNDS, ROUNDS);
	if (second != 2 * ROUNDS)
		target_fail("a trap went to the other handler");
}

static void once(void)
{
	struct sigaction now;

	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		set(on_trap, (int)SA_RESETHAND);
		traps_pair();
		if (i % 2)
			TRAP();
		else
			raise(SIGTRAP);
		if (sigaction(SIGTRAP, NULL, &now) || now.sa_handler != SIG_DFL)
			target_fail("the handler was for once, and is still there");
		traps_pair();
	}
	expect(ROUNDS / 2, ROUNDS / 2);
}

static volatile sig_atomic_t depth;

static void on_nested(int number, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)number;
	note(info, context);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (sigismember(&mask, SIGTRAP) || sigismember(&mask, SIGUSR2) != 1)
		wrong++;
	traps_pair();
	if (++depth < NESTED) {
		TRAP();
		traps_leak();
	}
	depth--;
}

static void nested(void)
{
	set(on_nested, SA_NODEFER);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		TRAP();
		traps_pair();
	}
	expect(ROUNDS * NESTED, 0);
}

static void on_altstack(int number, siginfo_t *info, void *context)
{
	char here, *at = &here;
	stack_t stack;

	(void)number;
	OPAQUE(at);
	note(info, context);
	if (at < stack_low || at >= stack_high || sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_ONSTACK))
		wrong++;
	traps_pair();
}

static void altstack(void)
{
	stack_t stack = {.ss_size = 8192};

	stack_low = mmap(NULL, 3 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack_low == MAP_FAILED || mprotect(stack_low + 8192, 8192, PROT_READ | PROT_WRITE))
		target_fail("mmap");
	stack_low += 8192;
	stack_high = stack_low + 8192;
	stack.ss_sp = stack_low;
	if (sigaltstack(&stack, NULL))
		target_fail("sigaltstack");
	set(on_altstack, SA_ONSTACK);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		TRAP();
		traps_pair();
		raise(SIGTRAP);
	}
	expect(ROUNDS, ROUNDS);
}

static void blocked(void)
{
	struct timespec soon = {.tv_sec = 20}, now = {0};
	struct signalfd_siginfo told;
	siginfo_t info;
	sigset_t trap;
	int fd;

	set(on_trap, 0);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	target_ready();
	if (pthread_sigmask(SIG_BLOCK, &trap, NULL))
		target_fail("pthread_sigmask");
	fd = signalfd(-1, &trap, SFD_CLOEXEC);
	if (fd < 0)
		target_fail("signalfd");
	for (int i = 0; i < ROUNDS; i++) {
		union sigval value = {.sival_int = i};

		traps_pair();
		sigqueue(getpid(), SIGTRAP, value);
		traps_pair();
		if (sigtimedwait(&trap, &info, &soon) != SIGTRAP || info.si_code != SI_QUEUE ||
		    info.si_value.sival_int != i)
			target_fail("a queued SIGTRAP was lost or changed");
		raise(SIGTRAP);
		traps_pair();
		if (read(fd, &told, sizeof(told)) != (ssize_t)sizeof(told) || told.ssi_signo != SIGTRAP ||
		    told.ssi_code != SI_TKILL)
			target_fail("a SIGTRAP did not come by signalfd");
		if (sigtimedwait(&trap, &info, &now) != -1)
			target_fail("a SIGTRAP came twice");
	}
	close(fd);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
	expect(0, 0);
}

static void on_skip(int number, siginfo_t *info, void *context)
{
	(void)number;
	note(info, context);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void skip(void)
{
	set(on_skip, 0);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		TRAP();
		__asm__ volatile("ud2");
		traps_pair();
	}
	expect(ROUNDS, 0);
}

static void on_step(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (info->si_code == TRAP_TRACE)
		stepped++;
	else
		wrong++;
}

#define TRAP_FLAG "0x100"
/* What is between these is stepped through. */
#define STEP_ON()  __asm__ volatile("pushfq\n\torq $" TRAP_FLAG ", (%%rsp)\n\tpopfq" : : : "memory", "cc")
#define STEP_OFF() __asm__ volatile("pushfq\n\tandq $~" TRAP_FLAG ", (%%rsp)\n\tpopfq" : : : "memory", "cc")

static void step(void)
{
	uint64_t before, each = 0;

	set(on_step, 0);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		before = stepped;
		/* Five of one byte, and those that turn it off. */
		__asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $" TRAP_FLAG ", (%%rsp)\n\tpopfq\n\t"
				 "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
				 "pushfq\n\tandq $~" TRAP_FLAG ", (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
				 :
				 :
				 : "memory", "cc");
		if (i == 0)
			each = stepped - before;
		if (stepped - before != each || each < 7 || each > 9)
			target_fail("steps were lost or doubled");
		traps_pair();
	}
	for (int i = 0; i < 10; i++) {
		before = stepped;
		STEP_ON();
		traps_pair();
		STEP_OFF();
		if (stepped - before < 50)
			target_fail("it was not stepped");
	}
	if (wrong)
		target_fail("a trap was no step");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {{"threads", threads},   {"changing", changing}, {"once", once}, {"nested", nested},
	     {"altstack", altstack}, {"blocked", blocked},   {"skip", skip}, {"step", step}};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc < 2 || strcmp(argv[1], modes[i].name) != 0)
			continue;
		modes[i].run();
		target_say("traps_pair.transient.count", pairs);
		target_say("traps_pair.size.count", pairs);
		target_say("traps_leak.impacting.count", leaks);
		target_say("traps_leak.impacting.bytes", leaks * 67);
		target_say("heap.aofi.count", 0);
		target_done();
		return 0;
	}
	target_fail("usage: traps MODE");
}
