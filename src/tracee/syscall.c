// SPDX-License-Identifier: MIT
/*
 * syscall.c: a system call in a target (inject.h).
 *
 *     stop (any)      save registers and mask, lay a sigframe, point the pc at a syscall instruction, block all signals
 *                     but SIGSYS: the kernel would drop its action to kill by it, where it is blocked and comes of the
 *                     call
 *     PTRACE_SYSCALL  to the call's entry
 *     PTRACE_SYSCALL  to its exit: the result
 *     interrupt, CONT to an interrupt's stop: the only one from which the kernel restarts a call that was
 *                     interrupted before all this
 *     restore         the mask, then the registers, then what the sigframe lies on: whenever memwatch is killed, what
 *                     there is leads back to the thread's own work
 */
#include "tracee/inject.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/seccomp_policy.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK                   UINT64_C(0x6b636162796177f3)
#define SELF                   UINT64_C(0x8f1bbcdc7a3e60d5) /* … beside it, with the address of the mark */
#define MARK_WORDS             4u
#define AROUND_PC              16u
#define MAX_STOPS              64
#define FINISH_STOPS           4     /* entry and exit of the call, entry and exit of rt_sigreturn */
#define YIELDS                 1000u /* a stop comes within microseconds, as a rule */
#define NAP_US                 100
#define BIT(signal)            (UINT64_C(1) << ((signal)-1))
#define FROZEN_NS              UINT64_C(2000000000)
#define STOP_NS                UINT64_C(2000000000)
#define GET_RSEQ_CONFIGURATION 0x420f
#define BELOW                  512u /* bytes: more than any red zone */

/*
 * How a thread that performs a system call for us gets back to its own work where nobody puts its registers
 * back: memwatch can be killed (SIGKILL) at any moment, and what it has stopped runs on from where it stands.
 *
 *      room.high               memory that only this thread writes (inject.c), or that memwatch has mapped
 *      scratch                 bytes that a call is to be given, such as a name
 *      frame                   as the kernel lays one for a signal: all registers, the signal mask
 *      [pc → syscall; ret]     returns into the frame's restorer (rt_sigreturn), which puts all of it back
 *      room.low
 *
 * Nothing is written below the thread's own stack pointer, which may lead into a stack of 2 KiB with other objects
 * right below it.
 *
 * A program that has no restorer, as it handles no signals, has other code that does: it returns to what pops a number
 * and returns, with that of rt_sigreturn, and from there to the system call instruction once more.
 *
 * What stood in the room is put back when all goes well. Frame and scratch carry a mark, their own address and their
 * bounds: what a killed memwatch has left of them can be found, and a thread that is still returning by its sigframe be
 * seen.
 */

/* What stood where the frame is. size 0: there is none. */
struct sigframe {
	mw_addr sp; /* the stack pointer that leads into it */
	size_t size;
	uint8_t before[MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX];
};

_Static_assert(MW_SCRATCH_HEAD == MARK_WORDS * sizeof(uint64_t), "the mark");

/* The mark of `size` bytes at `start`; it is to stand at `at`. */
static void put_mark(uint8_t *out, mw_addr at, mw_addr start, size_t size)
{
	const uint64_t words[MARK_WORDS] = {MARK, SELF ^ at, start, size};

	memcpy(out, words, sizeof(words));
}

static bool is_mark(const uint64_t *word, mw_addr at)
{
	return word[0] == MARK && word[1] == (SELF ^ at) && word[2] <= at && word[3] <= MW_ROOM_MAX &&
	       at + MARK_WORDS * sizeof(*word) - word[2] <= word[3];
}

/* The words below the frame; returns their size. */
static size_t put_first(const struct mw_way_code *code, uint8_t *out)
{
	const uint64_t words[] = {code->gadget, SYS_rt_sigreturn};

	_Static_assert(sizeof(words) == MW_SIGFRAME_FIRST, "what is popped");
	if (code->restorer)
		return 0;
	memcpy(out, words, sizeof(words));
	return sizeof(words);
}

/* The frame and what is popped before it, as it is to stand at *at; returns its size, 0 where there can be none. */
static size_t make_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, const struct mw_way_code *code,
			 mw_addr below, uint8_t *out, mw_addr *at)
{
	const size_t first = put_first(code, out), spare = mw_machine.frame_spare;
	size_t size = mw_regs_signal_frame(tid, regs, mask, code->restorer ? code->restorer : code->insn, below,
					   out + first, at);

	if (size == 0)
		return 0;
	put_mark(out + first + spare, *at + spare, *at - first, first + size);
	*at -= first;
	return first + size;
}

/* What stands there; where nothing ever was it is not to be made resident by looking at it. */
static bool read_before(pid_t tid, const struct mw_room *room, mw_addr at, uint8_t *out, size_t size)
{
	if (room->zero)
		memset(out, 0, size);
	return room->zero || mw_remote_read(tid, at, out, size) == size;
}

/* Put back what stood there. */
static void sigframe_take_up(pid_t tid, const struct sigframe *way)
{
	if (way->size)
		mw_error_destroy(mw_remote_write(tid, way->sp, way->before, way->size));
}

/* Lay a frame with the registers and the mask given into `room`. `out->size` is 0 where it can't be done (no such code,
 * no room): then it is to go without. Errors: none but GONE. */
static struct mw_error *sigframe_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask,
				     const struct mw_way_code *code, const struct mw_room *room, struct sigframe *out)
{
	MW_FREE uint8_t *frame = malloc(sizeof(out->before));
	struct mw_error *err = NULL;
	mw_addr at = 0;
	size_t size = 0;

	out->size = 0;
	if (frame && (code->restorer || code->gadget) && room->high - room->low > MW_SCRATCH_SIZE)
		size = make_frame(tid, regs, mask, code, room->high - MW_SCRATCH_SIZE, frame, &at);
	if (size && at >= room->low && at < room->high && read_before(tid, room, at, out->before, size)) {
		out->sp = at;
		out->size = size;
		/* Not by force: where the program may not write is no stack. */
		err = mw_remote_write(tid, at, frame, size);
	}
	if (!err)
		return NULL;
	sigframe_take_up(tid, out);
	out->size = 0;
	if (mw_error_kind(err) == MW_ERROR_GONE)
		return err;
	mw_error_destroy(err);
	return NULL;
}

size_t mw_sigframe_room(pid_t tid)
{
	const struct mw_way_code code = {.gadget = 1};
	const mw_addr below = MW_ROOM_MAX * 2;
	MW_FREE uint8_t *frame = malloc(MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX);
	struct mw_tracee_regs regs;
	mw_addr at = 0;

	if (!mw_error_none(mw_tracee_get_regs(tid, &regs)) || !frame ||
	    !make_frame(tid, &regs, 0, &code, below, frame, &at))
		return 0;
	return (size_t)(below - at) + MW_SCRATCH_SIZE + 64;
}

static struct mw_error *scratch_take_up(pid_t tid, const struct mw_scratch *scratch)
{
	return mw_remote_write(tid, scratch->at - MW_SCRATCH_HEAD, scratch->before, sizeof(scratch->before));
}

struct mw_error *mw_scratch_put(pid_t tid, const struct mw_room *room, const void *bytes, size_t size,
				struct mw_scratch *out)
{
	const mw_addr start = room->high - MW_SCRATCH_SIZE;
	uint8_t block[MW_SCRATCH_SIZE] = {0};
	struct mw_error *err;

	if (room->high - room->low < MW_SCRATCH_SIZE || size > MW_SCRATCH_MAX ||
	    !read_before(tid, room, start, out->before, sizeof(out->before)))
		return mw_error_create(MW_ERROR_DATA, 0,
				       "thread %d has no stack of its own for the arguments of an injected system call",
				       (int)tid);
	put_mark(block, start, start, sizeof(block));
	memcpy(block + MW_SCRATCH_HEAD, bytes, size);
	out->at = start + MW_SCRATCH_HEAD;
	err = mw_remote_write(tid, start, block, sizeof(block));
	return err ? mw_error_first(err, scratch_take_up(tid, out)) : NULL;
}

/* Does the pc stand in such code, or behind its first instruction? */
static bool is_way_code(pid_t tid, mw_addr pc)
{
	const struct mw_machine_code *const codes[] = {&mw_machine.syscall_return, &mw_machine.restorer,
						       &mw_machine.sigreturn_gadget};
	uint8_t bytes[2 * AROUND_PC];

	if (mw_remote_read(tid, pc - AROUND_PC, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		for (size_t into = 0; into < codes[i]->size; into++)
			if (memcmp(bytes + AROUND_PC - into, codes[i]->bytes, codes[i]->size) == 0)
				return true;
	return false;
}

bool mw_sigframe_is_at(pid_t tid, const struct mw_regs *regs)
{
	const mw_addr sp = regs->gpr[mw_machine.sp];
	/* The stack pointer is in the frame's first bytes, or in what is popped, which lies right before it. */
	const mw_addr frame = (sp + MW_SIGFRAME_FIRST) & ~(mw_addr)(mw_machine.frame_align - 1);
	const mw_addr at = frame + mw_machine.frame_spare;
	uint64_t word[MARK_WORDS];

	/* The code first: hardly any thread is there, and what lies above others' stacks may never have been touched.
	 */
	return is_way_code(tid, regs->pc) && mw_touched_peek(tid, at, word, sizeof(word)) == sizeof(word) &&
	       is_mark(word, at) && sp - word[2] < MW_SIGFRAME_FIRST + 2 * sizeof(mw_addr);
}

bool mw_sigframe_find_remains(pid_t tid, mw_addr from, mw_addr limit, mw_addr *start, size_t *size)
{
	const size_t most = MW_ROOM_MAX / sizeof(uint64_t);
	MW_FREE uint64_t *words = malloc(most * sizeof(*words));
	size_t count = 0;

	from &= ~(mw_addr)(sizeof(*words) - 1);
	if (words && limit > from)
		count = mw_touched_peek(tid, from, words,
					limit - from < MW_ROOM_MAX ? (size_t)(limit - from) : most * sizeof(*words)) /
			sizeof(*words);
	for (size_t i = 0; i + MARK_WORDS <= count; i++)
		if (is_mark(&words[i], from + i * sizeof(*words))) {
			*start = words[i + 2];
			*size = (size_t)words[i + 3];
			return true;
		}
	return false;
}

struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

/* struct rseq: cpu_id_start and cpu_id of 32 bits each come first. */
#define SEQUENCE 8

struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

/*
 * A thread that is stopped inside a restartable sequence is to begin it anew: the kernel sees to that when it goes on,
 * unless it finds it elsewhere then, as one that performs a system call for us. So `regs`, which are to be put back
 * later, are led to the sequence's abort handler here. Nothing else is changed; before Linux 5.13 nothing at all.
 */
static void rseq_abort(pid_t tid, struct mw_tracee_regs *regs)
{
	struct rseq_configuration known = {.pointer = 0};
	struct sequence sequence;
	uint32_t signature;
	uint64_t at = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof(known), &known) < (long)sizeof(known) ||
	    !known.pointer)
		return;
	if (mw_remote_read(tid, known.pointer + SEQUENCE, &at, sizeof(at)) != sizeof(at) || !at)
		return;
	if (mw_remote_read(tid, at, &sequence, sizeof(sequence)) != sizeof(sequence) || sequence.version != 0)
		return;
	if (regs->general.pc - sequence.start >= sequence.length)
		return;
	/* What the kernel would end the program for is left to it. */
	if (mw_remote_read(tid, sequence.abort - sizeof(signature), &signature, sizeof(signature)) ==
		    sizeof(signature) &&
	    signature == known.signature)
		regs->general.pc = sequence.abort;
}

static struct mw_error *wait_failed(pid_t tid)
{
	return mw_error_create(errno == ESRCH ? MW_ERROR_GONE : MW_ERROR_SYSTEM, errno, "cannot wait for thread %d",
			       tid);
}

static bool is_dead(pid_t tid, char *state)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	bool dead = err ? mw_error_kind(err) == MW_ERROR_GONE : mw_state_is_end(status.state);

	*state = err ? '\0' : status.state;
	mw_error_destroy(err);
	return dead;
}

/* It sleeps on its way: none of our calls waits for anything, so somebody keeps it from running. */
static struct mw_error *stop_frozen(pid_t tid)
{
	uint64_t begin = mw_clock_ns();
	int status;

	MW_TRY(mw_tracee_interrupt(tid));
	while (mw_clock_ns() - begin < STOP_NS) {
		pid_t got = mw_tracee_wait_stop(tid, &status, WNOHANG);

		if (got == tid)
			break;
		if (got < 0 && errno != EINTR)
			return wait_failed(tid);
		usleep(NAP_US);
	}
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d makes no progress", tid),
			     "Is its control group frozen (docker pause, systemctl freeze)? Thaw it first");
}

/*
 * Wait for the thread's next stop. A first thread that was killed tells of its end only when all others have been
 * waited for, which is not done here: it is dead when /proc says so.
 */
static struct mw_error *await(pid_t tid, int *status)
{
	uint64_t asleep_since = 0;

	for (unsigned i = 0;; i++) {
		pid_t got = mw_tracee_wait_stop(tid, status, WNOHANG);
		char state;

		if (got == tid)
			return NULL;
		if (got < 0 && errno != EINTR)
			return wait_failed(tid);
		if (i < YIELDS) {
			sched_yield();
			continue;
		}
		usleep(NAP_US);
		if (is_dead(tid, &state))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (state != 'S')
			asleep_since = 0;
		else if (!asleep_since)
			asleep_since = mw_clock_ns();
		else if (mw_clock_ns() - asleep_since > FROZEN_NS)
			return stop_frozen(tid);
	}
}

static bool at_syscall(int status)
{
	return status >> 16 == 0 && WSTOPSIG(status) == (SIGTRAP | MW_SYSCALL_STOP);
}

static bool at_interrupt(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* What is to come of a call, and what came of it. */
struct outcome {
	/* What is to be done while the call is being made, which may take long; NULL: nothing. */
	void (*meanwhile)(void *context);
	void *context;
	bool guarded; /* not to be made without a frame by which the thread gets back by itself */
	int64_t result;
	pid_t child; /* as in put_off, also where the call failed after that */
};

/* Signals that came while a call was made: the only ones that can. They are sent again when all is done: nothing blocks
 * them, so before that they would come each time. And the process that the call has made. */
struct put_off {
	bool stop;
	siginfo_t sys;           /* si_signo 0: none */
	pid_t child;             /* 0: none */
	struct outcome *outcome; /* of a call that is being made; NULL: none is */
};

/* Once. */
static void do_meanwhile(struct outcome *outcome)
{
	void (*meanwhile)(void *context) = outcome ? outcome->meanwhile : NULL;

	if (!meanwhile)
		return;
	outcome->meanwhile = NULL;
	meanwhile(outcome->context);
}

/* As memwatch sees it: what the call returns is its id where the process lives. */
static void note_child(pid_t tid, struct put_off *put_off)
{
	unsigned long child;

	if (mw_error_none(mw_tracee_event_message(tid, &child)))
		put_off->child = (pid_t)child;
}

/* One that was sent, not of the call's making? Then it is put off. */
static bool is_sent(pid_t tid, int signal, struct put_off *put_off)
{
	siginfo_t info = {.si_code = 0};

	if (signal == SIGSTOP) {
		put_off->stop = true;
		return true;
	}
	mw_error_destroy(mw_tracee_siginfo(tid, &info));
	if (signal != SIGSYS || info.si_signo != SIGSYS || info.si_code > 0)
		return false;
	put_off->sys = info;
	mw_tracee_take_signal(tid);
	return true;
}

/* Resume by `request` until a stop that `wanted` accepts. */
static struct mw_error *resume_until(pid_t tid, int request, bool (*wanted)(int status), struct put_off *put_off)
{
	for (int i = 0; i < MAX_STOPS; i++) {
		int status;

		/* Anew each time: another stop takes an interrupt along that came before it. */
		if (wanted == at_interrupt)
			MW_TRY(mw_tracee_interrupt(tid));
		MW_TRY(mw_tracee_request(request, tid, 0, NULL, "resume"));
		do_meanwhile(put_off->outcome);
		MW_TRY(await(tid, &status));
		if (!WIFSTOPPED(status))
			return mw_error_create(MW_ERROR_GONE, 0, "thread %d has ended", tid);
		if (wanted(status))
			return NULL;
		if (status >> 16 == PTRACE_EVENT_CLONE || status >> 16 == PTRACE_EVENT_FORK)
			note_child(tid, put_off);
		if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP && !is_sent(tid, WSTOPSIG(status), put_off)) {
			/* A fault of the injected call, which is no signal of the program's: not to be gone on with. */
			mw_tracee_take_signal(tid);
			break;
		}
	}
	return mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not reach a system call", tid);
}

/* Of Linux 6.4 on (PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG): which calls the program has handed to it as SIGSYS. */
#define GET_DISPATCH_CONFIG 0x4211

struct dispatch_config {
	uint64_t on, selector, offset, size;
};

/*
 * All is blocked; where the kernel can't tell what becomes of the call, all but a SIGSYS that it may make. Errors:
 * UNSUPPORTED where the call would not be made, or one is pending, which is the program's own.
 */
static struct mw_error *mask_for_call(pid_t tid, mw_addr insn, uint64_t mask, uint64_t *out)
{
	struct dispatch_config config = {.on = 0};
	struct mw_status status;

	*out = UINT64_MAX;
	if (ptrace((enum __ptrace_request)GET_DISPATCH_CONFIG, tid, sizeof(config), &config) == 0) {
		if (config.on && insn + mw_machine.syscall_insn.size - config.offset >= config.size)
			return mw_error_create(
				MW_ERROR_UNSUPPORTED, 0,
				"thread %d uses syscall user dispatch: no system call can be injected into it", tid);
		return NULL;
	}
	MW_TRY(mw_status_read(tid, &status));
	if ((status.sig_pending | status.shared_pending) & BIT(SIGSYS))
		return mw_error_hint(
			mw_error_create(MW_ERROR_UNSUPPORTED, 0, "thread %d has a pending SIGSYS to handle first", tid),
			"Try again in a moment");
	*out = mask | ~BIT(SIGSYS);
	return NULL;
}

static struct mw_error *go_through(pid_t tid, struct mw_tracee_regs *regs, uint64_t mask, struct outcome *out,
				   struct put_off *put_off)
{
	MW_TRY(mask_for_call(tid, regs->general.pc, mask, &mask));
	MW_TRY(mw_tracee_set_regs(tid, regs));
	MW_TRY(mw_tracee_set_sigmask(tid, mask));
	MW_TRY(mw_fault("call.begin"));
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	put_off->outcome = out;
	MW_TRY(resume_until(tid, PTRACE_SYSCALL, at_syscall, put_off));
	MW_TRY(mw_tracee_get_regs(tid, regs));
	out->result = (int64_t)regs->general.gpr[mw_machine.result];
	MW_TRY(mw_fault("call.result"));
	return resume_until(tid, PTRACE_CONT, at_interrupt, put_off);
}

/* A SIGCONT that is still to come came after any SIGSTOP: a SIGSTOP takes it away. */
static bool is_continued(const struct mw_status *status)
{
	return (status->sig_pending | status->shared_pending) & BIT(SIGCONT);
}

static void send_again(pid_t tid, struct put_off *put_off)
{
	struct mw_status status;

	if ((!put_off->stop && !put_off->sys.si_signo) || !mw_error_none(mw_status_read(tid, &status)))
		return;
	if (put_off->stop && !is_continued(&status))
		syscall(SYS_tkill, tid, SIGSTOP);
	if (put_off->sys.si_signo)
		mw_tracee_requeue(status.tgid, tid, &put_off->sys);
}

static struct mw_error *perform(pid_t tid, struct mw_tracee_regs *regs, uint64_t mask, struct outcome *out)
{
	struct put_off put_off = {.stop = false, .sys = {.si_signo = 0}};
	struct mw_error *err = go_through(tid, regs, mask, out, &put_off);

	out->child = put_off.child;
	send_again(tid, &put_off);
	return err;
}

static struct mw_error *cannot_get_back(pid_t tid)
{
	return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "thread %d can't get back from an injected call by itself",
			       (int)tid);
}

/*
 * Make thread `tid` perform a system call with the instruction `code->insn` (of its own). Afterwards it is in the stop
 * of an interrupt, with the registers and the signal mask that it had, a system call that it was in still to be restarted.
 * With `code` that leads back and `room` for a frame the thread gets back to its own work by itself should memwatch be
 * killed meanwhile. Not for a thread under seccomp, whose filter may kill it for the call.
 */
static struct mw_error *perform_and_restore(pid_t tid, const struct mw_way_code *code, const struct mw_room *room,
					    long number, const uint64_t arguments[6], struct sigframe *way,
					    struct outcome *out)
{
	struct mw_tracee_regs before, regs;
	struct mw_error *err;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(tid, &mask));
	MW_TRY(mw_tracee_get_regs(tid, &before));
	rseq_abort(tid, &before);
	MW_TRY(sigframe_lay(tid, &before, mask, code, room, way));
	if (out->guarded && !way->size)
		return cannot_get_back(tid);
	regs = before;
	mw_regs_set_syscall(&regs, code->insn, number, arguments);
	if (way->size)
		regs.general.gpr[mw_machine.sp] = way->sp;
	err = perform(tid, &regs, mask, out);
	err = mw_error_first(err, mw_tracee_set_sigmask(tid, mask));
	err = mw_error_first(err, mw_tracee_set_regs(tid, &before));
	sigframe_take_up(tid, way);
	return err;
}

struct mw_error *mw_remote_syscall_finish(pid_t tid)
{
	struct put_off put_off = {.stop = false, .sys = {.si_signo = 0}};
	struct mw_tracee_regs regs;
	struct mw_error *err = NULL;
	unsigned stops = 0;

	for (; !err && stops <= FINISH_STOPS; stops++) {
		err = mw_tracee_get_regs(tid, &regs);
		if (err || !mw_sigframe_is_at(tid, &regs.general))
			break;
		err = resume_until(tid, PTRACE_SYSCALL, at_syscall, &put_off);
	}
	if (!err && stops > FINISH_STOPS)
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "thread %d does not return from an injected system call",
				      tid);
	if (!err && stops > 0)
		err = resume_until(tid, PTRACE_CONT, at_interrupt, &put_off);
	send_again(tid, &put_off);
	return err;
}

/* Not needed where the thread shares memwatch's own filters, and these permit the call. */
static struct mw_error *suspend_seccomp(pid_t tid, long number, bool *suspended)
{
	struct mw_error *err = mw_tracee_suspend_seccomp(tid, true);

	*suspended = !err;
	if (err && mw_error_errno(err) == EPERM && mw_seccomp_shared_may(tid, number)) {
		mw_error_destroy(err);
		return NULL;
	}
	return err;
}

static struct mw_error *call(const struct mw_inject *inject, long number, const uint64_t arguments[6],
			     struct outcome *out)
{
	struct mw_error *err;
	struct mw_status status;
	bool suspended = false;
	uint8_t now[16];
	/* Not of the heap: what was done must be taken back where memwatch has no memory left. */
	struct sigframe way = {.size = 0};
	const struct mw_machine_code *code =
		mw_inject_leads_back(inject) ? &mw_machine.syscall_return : &mw_machine.syscall_insn;

	/* It may have been patched or unmapped since. */
	MW_TRY(mw_remote_read_all(inject->tid, inject->code.insn, now, code->size));
	if (memcmp(now, code->bytes, code->size) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "the system call instruction at 0x%llx is gone",
				       (unsigned long long)inject->code.insn);
	/* It may have come under one since. */
	MW_TRY(mw_status_read(inject->tid, &status));
	if (status.seccomp > 0)
		MW_TRY(suspend_seccomp(inject->tid, number, &suspended));
	err = perform_and_restore(inject->tid, &inject->code, &inject->room, number, arguments, &way, out);
	if (suspended)
		err = mw_error_first(err, mw_tracee_suspend_seccomp(inject->tid, false));
	return err;
}

struct mw_error *mw_inject_call(const struct mw_inject *inject, long number, const uint64_t arguments[6],
				int64_t *result)
{
	struct outcome outcome = {.result = 0};

	MW_TRY(call(inject, number, arguments, &outcome));
	*result = outcome.result;
	return NULL;
}

/* Memory for the bytes of a call where none is known to be the thread's own: what is far below its stack pointer. */
static void room_below(pid_t tid, struct mw_room *room)
{
	struct mw_tracee_regs regs;

	if (mw_error_none(mw_tracee_get_regs(tid, &regs))) {
		room->high = (regs.general.gpr[mw_machine.sp] - BELOW) & ~(mw_addr)15;
		room->low = room->high - MW_SCRATCH_SIZE;
	}
}

struct mw_error *mw_inject_call_with(const struct mw_inject *inject, long number, const uint64_t arguments[6],
				     unsigned which, void *bytes, size_t size, int64_t *result)
{
	struct mw_room room = inject->room;
	struct mw_scratch scratch;
	uint64_t with[6];
	struct mw_error *err;

	if (room.high == room.low)
		room_below(inject->tid, &room);
	MW_TRY(mw_scratch_put(inject->tid, &room, bytes, size, &scratch));
	memcpy(with, arguments, sizeof(with));
	with[which] = scratch.at;
	err = mw_inject_call(inject, number, with, result);
	if (!err)
		err = mw_remote_read_all(inject->tid, scratch.at, bytes, size);
	return mw_error_first(err, scratch_take_up(inject->tid, &scratch));
}

/*
 * What a forked copy returns to if it is ever let run, on the way that leads back from a call: by one frame to naming
 * itself, and from there by another to its end. It lies in the room, as bytes for a call do.
 *
 *      scratch     words that are popped, frame      prctl(PR_SET_NAME, name)
 *                  words that are popped, frame      exit_group(0)
 *                  name
 */
#define LINK_SIZE (MW_SIGFRAME_FIRST + MW_CALL_FRAME_SIZE)

_Static_assert(2 * LINK_SIZE + sizeof(MW_COPY_NAME) <= MW_SCRATCH_MAX, "room for the whole chain");

/* One link, as it is to stand at `at`; returns its size. */
static size_t put_link(const struct mw_way_code *code, long number, const uint64_t arguments[6], mw_addr sp,
		       uint8_t *out)
{
	size_t first = put_first(code, out);

	return first + mw_regs_call_frame(number, arguments, code->insn, sp,
					  code->restorer ? code->restorer : code->insn, out + first);
}

static void put_chain(const struct mw_way_code *code, mw_addr at, uint8_t *out)
{
	const mw_addr name = at + 2 * LINK_SIZE;
	size_t size = put_link(code, SYS_prctl, (const uint64_t[6]){PR_SET_NAME, name}, at + LINK_SIZE, out);

	memset(out + size, 0, LINK_SIZE - size);
	(void)put_link(code, SYS_exit_group, (const uint64_t[6]){0}, at + LINK_SIZE, out + LINK_SIZE);
	memcpy(out + 2 * LINK_SIZE, MW_COPY_NAME, sizeof(MW_COPY_NAME));
}

struct mw_error *mw_inject_fork(const struct mw_inject *inject, void (*meanwhile)(void *context), void *context,
				pid_t *copy, int64_t *result)
{
	const mw_addr at = inject->room.high - MW_SCRATCH_SIZE + MW_SCRATCH_HEAD;
	/* No SIGCHLD, and not for a plain wait(). The table of descriptors is the process's own: what it closes is closed. */
	const uint64_t arguments[6] = {CLONE_FILES, at};
	uint8_t chain[2 * LINK_SIZE + sizeof(MW_COPY_NAME)] = {0};
	struct outcome outcome = {.meanwhile = meanwhile, .context = context, .guarded = true};
	struct mw_scratch scratch;
	struct mw_error *err;

	*copy = 0;
	if (!mw_inject_leads_back(inject))
		return cannot_get_back(inject->tid);
	put_chain(&inject->code, at, chain);
	MW_TRY(mw_scratch_put(inject->tid, &inject->room, chain, sizeof(chain), &scratch));
	err = call(inject, SYS_clone, arguments, &outcome);
	*copy = outcome.child;
	*result = outcome.result;
	return mw_error_first(err, scratch_take_up(inject->tid, &scratch));
}

struct mw_error *mw_remote_syscall_next(pid_t tid)
{
	struct put_off put_off = {.stop = false, .sys = {.si_signo = 0}};

	return resume_until(tid, PTRACE_SYSCALL, at_syscall, &put_off);
}
