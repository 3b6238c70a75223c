// SPDX-License-Identifier: MIT
/* inject.c: a thread that is to perform system calls: by which code, and on which memory of its own (inject.h). */
#include "tracee/inject.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK         65536u
#define MOST_CODE     (256u << 20) /* of code is looked through for a system call instruction */
#define MOST_RESTORER (16u << 20)
#define PAGE          4096u
#define BLOCK_WORDS   320u                 /* of a control block: glibc's struct pthread takes 290 */
#define BLOCK_MOST    UINT64_C(16384)      /* bytes from the thread pointer to the end of glibc's stack */
#define TLS_MOST      (UINT64_C(64) << 20) /* … from musl's stack to the thread pointer */
#define STACK_MOST    (UINT64_C(1) << 40)
#define LOOKED_AT     (UINT64_C(64) << 20) /* bytes of a stack from its high end */
#define BELOW         2048u                /* bytes below the stack pointer that are left alone */
#define ENTRIES       512u                 /* of pagemap, at a time */
#define IN_MEMORY     (UINT64_C(3) << 62)  /* of an entry: present, or in swap */
#define IN_SWAP       (UINT64_C(1) << 62)
#define MOST_REMAINS  64u /* of killed memwatches that are cleared at a time */

/*
 * The unused end of a thread's own stack.
 *
 * A thread's stack pointer says nothing about it: it may lead into a goroutine's stack of 2 KiB, an alternate signal
 * stack or a coroutine's, with somebody else's objects right below. What is known to be the thread's own is the stack
 * that the thread library has given it, or the kernel to the first thread of a process:
 *
 *      glibc       struct pthread (at the thread pointer) holds stackblock, stackblock_size, guardsize
 *      musl        struct pthread holds map_base, map_size, stack (its top), stack_size
 *      kernel      [stack] of /proc/PID/maps
 *
 *      low         guard                         inaccessible
 *                  never used, or all zero       the room is at the end of this
 *                  used
 *      sp          … if the thread runs there    (else it runs on another stack, and this one waits)
 *      high        thread pointer, or the end of the mapping
 *
 * Where no end of it is unused, the room is below the stack pointer if that is in there. Where there is none either,
 * the first thread's stack grows by as much, as it does when the program calls deeper.
 */

/* A stack that is looked through from its low end. */
struct look {
	pid_t tid;
	int pagemap; /* -1: there is none */
	mw_addr low, high;
	bool clears; /* nothing below `high` is in use, so what killed memwatches have left may be made zero */
};

static bool is_glibc(mw_addr thread_pointer, const uint64_t *word, mw_addr *low, mw_addr *high)
{
	uint64_t start = word[0], size = word[1], guard = word[2];

	if (start == 0 || start > thread_pointer || size > STACK_MOST || size <= thread_pointer - start ||
	    size - (thread_pointer - start) > BLOCK_MOST || guard % PAGE != 0 || guard >= thread_pointer - start)
		return false;
	*low = start + guard;
	*high = thread_pointer;
	return true;
}

static bool is_musl(mw_addr thread_pointer, const uint64_t *word, mw_addr *low, mw_addr *high)
{
	uint64_t map = word[0], map_size = word[1], top = word[2], size = word[3];

	if (map == 0 || map % PAGE != 0 || map > thread_pointer || map_size > STACK_MOST ||
	    map_size <= thread_pointer - map || top > thread_pointer || thread_pointer - top > TLS_MOST || top <= map ||
	    size == 0 || size > top - map)
		return false;
	*low = top - size;
	*high = top;
	return true;
}

bool mw_own_stack_bounds(mw_addr thread_pointer, const uint64_t *block, size_t count, mw_addr *low, mw_addr *high)
{
	for (size_t i = 0; i + 4 <= count; i++)
		if (is_glibc(thread_pointer, &block[i], low, high) || is_musl(thread_pointer, &block[i], low, high))
			return true;
	return false;
}

/* What was never touched of others may hold something. */
static bool may_hold_stack(const struct mw_mapping *mapping)
{
	return mapping && mapping->read && mapping->write && !mapping->shared && !mapping->inode;
}

/* As the thread library has it. */
static bool library_stack(pid_t tid, const struct mw_regs *regs, const struct mw_maps *maps, struct look *look)
{
	uint64_t block[BLOCK_WORDS];
	const struct mw_mapping *mapping;
	size_t got;

	/* The block may end before that, and behind it there may be memory that nobody has touched yet. */
	got = mw_touched_peek(tid, regs->thread_pointer, block, sizeof(block)) / sizeof(block[0]);
	if (!mw_own_stack_bounds(regs->thread_pointer, block, got, &look->low, &look->high))
		return false;
	mapping = mw_maps_find(maps, look->high - 1);
	if (!may_hold_stack(mapping))
		return false;
	/* A runtime may have guards of its own above that (Java). */
	if (mapping->start > look->low)
		look->low = mapping->start;
	return true;
}

static const struct mw_mapping *find_first_stack(const struct mw_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strcmp(maps->items[i].path, "[stack]") == 0)
			return &maps->items[i];
	return NULL;
}

/* The first thread's, whatever it runs on now; or that of a vforked child, which runs on its maker's. */
static bool first_stack(pid_t tid, mw_addr sp, const struct mw_maps *maps, struct look *look)
{
	const struct mw_mapping *mapping = find_first_stack(maps);
	struct mw_status status;

	if (!may_hold_stack(mapping))
		return false;
	look->low = mapping->start;
	look->high = mapping->end;
	return (sp >= mapping->start && sp < mapping->end) ||
	       (mw_error_none(mw_status_read(tid, &status)) && status.tgid == tid);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Is a page unused: never touched, or all zero? */
static bool is_unused(const struct look *look, mw_addr page, uint64_t entry)
{
	uint8_t bytes[PAGE];

	if (!(entry & IN_MEMORY))
		return true;
	return !(entry & IN_SWAP) && mw_remote_read(look->tid, page, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       is_zero(bytes, sizeof(bytes));
}

/* Where what is unused from `page` on ends. */
static mw_addr unused_end(const struct look *look, mw_addr page)
{
	uint64_t entries[ENTRIES];

	while (page < look->high) {
		uint64_t left = (look->high - page) / PAGE;
		size_t wanted = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got = pread(look->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page / PAGE * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]))
			return page;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, page += PAGE)
			if (!is_unused(look, page, entries[i]))
				return page;
	}
	return page;
}

/* Make what a killed memwatch has left in the used page at `page` zero. False: there is nothing of that kind. */
static bool clear_remains(const struct look *look, mw_addr page)
{
	static const uint8_t zero[PAGE];
	mw_addr start;
	size_t size;

	if (!mw_sigframe_find_remains(look->tid, page, look->high, &start, &size) || start < page ||
	    start - page >= PAGE || size > look->high - start)
		return false;
	for (size_t done = 0, piece; done < size; done += piece) {
		piece = size - done < PAGE ? size - done : PAGE;
		if (!mw_error_none(mw_remote_write(look->tid, start + done, zero, piece)))
			return false;
	}
	return true;
}

/* The end of the stack that has never been used, up to look->high; its last bytes are nearest to what is. */
static bool unused_room(struct look *look, size_t size, struct mw_room *out)
{
	mw_addr start = (look->low + PAGE - 1) & ~(mw_addr)(PAGE - 1), end = start;

	/* What is not there yet may have to be provided by a stopped thread. */
	if (mw_peek_is_careful())
		return false;
	look->pagemap = open(mw_path("/proc/%d/pagemap", (int)look->tid).text, O_RDONLY | O_CLOEXEC);
	if (look->pagemap < 0)
		return false;
	for (unsigned i = 0; i < MOST_REMAINS && end < look->high; i++) {
		end = unused_end(look, end);
		if (end >= look->high || !look->clears || !clear_remains(look, end))
			break;
	}
	close(look->pagemap);
	if (end < start || end - start < size)
		return false;
	*out = (struct mw_room){.low = end - size, .high = end, .zero = true};
	return true;
}

/* As the maps have it. `*grows`: it is a stack that the kernel makes longer. */
static bool find_room(pid_t tid, const struct mw_maps *maps, size_t size, struct mw_room *out, bool *grows)
{
	struct look look = {.tid = tid};
	struct mw_tracee_regs regs;
	mw_addr sp;
	bool runs_there;

	*grows = false;
	if (!mw_error_none(mw_tracee_get_regs(tid, &regs)))
		return false;
	sp = regs.general.gpr[mw_machine.sp];
	if (!library_stack(tid, &regs.general, maps, &look)) {
		if (!first_stack(tid, sp, maps, &look))
			return false;
		*grows = true;
	}
	runs_there = sp > look.low && sp <= look.high;
	if (runs_there)
		look.high = sp > BELOW ? sp - BELOW : 0;
	/* Else the frames that wait there may lie on the upper part of what was left. */
	look.clears = runs_there;
	if (look.high > look.low && look.high - look.low > LOOKED_AT)
		look.low = look.high - LOOKED_AT;
	look.high &= ~(mw_addr)(PAGE - 1);
	if (look.high > look.low && unused_room(&look, size, out))
		return true;
	if (!runs_there || sp - look.low < BELOW + size)
		return false;
	*out = (struct mw_room){.low = sp - BELOW - size, .high = sp - BELOW};
	return true;
}

/* Touch what lies below the first thread's stack, as a deeper call would: the kernel makes it longer where it may. What
 * is left alone below the stack pointer may reach into it. */
static bool grow(pid_t tid, const struct mw_maps *maps, size_t size)
{
	static const uint64_t zero;
	const size_t more = size + BELOW + PAGE;
	const struct mw_mapping *mapping = find_first_stack(maps);

	return mapping && mapping->start > more + PAGE &&
	       mw_error_none(mw_remote_poke(tid, (mapping->start - more) & ~(mw_addr)(PAGE - 1), &zero, sizeof(zero)));
}

bool mw_own_stack_room(pid_t tid, const struct mw_maps *maps, size_t size, struct mw_room *out)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps now = {0};
	bool grows;

	if (find_room(tid, maps, size, out, &grows))
		return true;
	/* It may have grown since. */
	if (!grows || mw_peek_is_careful() || !mw_error_none(mw_maps_read(tid, &now)))
		return false;
	if (find_room(tid, &now, size, out, &grows))
		return true;
	if (grow(tid, &now, size)) {
		mw_maps_deinit(&now);
		if (!mw_error_none(mw_maps_read(tid, &now)))
			return false;
	}
	return find_room(tid, &now, size, out, &grows);
}

/* Where the code first stands in a mapping; 0 where nowhere. `*budget` bytes are read at most. */
static mw_addr find_code(pid_t tid, const struct mw_mapping *mapping, const struct mw_machine_code *code,
			 uint8_t *chunk, size_t *budget)
{
	mw_addr start = mapping->start, end = mapping->end;

	while (*budget > 0 && start < end) {
		size_t size = end - start < CHUNK ? (size_t)(end - start) : CHUNK;
		size_t got = mw_remote_read(tid, start, chunk, size);
		const uint8_t *at = memmem(chunk, got, code->bytes, code->size);

		if (at)
			return start + (mw_addr)(at - chunk);
		*budget -= got < *budget ? got : *budget;
		if (got < size || got < code->size || got == end - start)
			return 0;
		/* One may stand across the border. */
		start += got - (code->size - 1u);
	}
	return 0;
}

enum place {
	IN_VDSO, /* which nobody patches */
	IN_LIBC,
	IN_FILE, /* a program may have the C library inside */
};

static bool is_place(const struct mw_mapping *mapping, enum place place)
{
	const char *name = mw_path_name(mapping->path);

	if (!mapping->read || !mapping->exec || (place != IN_VDSO && !mapping->inode))
		return false;
	if (place == IN_VDSO)
		return strcmp(mapping->path, "[vdso]") == 0;
	return place == IN_FILE || strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
	       strncmp(name, "ld-musl", 7) == 0;
}

/*
 * Choose the system call instruction, in a place of the kind `best` or in any file; beside it there is to be code of the
 * kind `way`, if any: where, is put into *way_at. `budget` bytes are read at most. False: there is none.
 */
static bool choose_insn(struct mw_inject *inject, const struct mw_maps *maps, enum place best,
			const struct mw_machine_code *code, const struct mw_machine_code *way, size_t budget,
			uint8_t *chunk, mw_addr *way_at)
{
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < maps->count; i++) {
			const struct mw_mapping *mapping = &maps->items[i];
			mw_addr insn;

			if (!is_place(mapping, pass == 0 ? best : IN_FILE))
				continue;
			insn = find_code(inject->tid, mapping, code, chunk, &budget);
			if (insn && way)
				*way_at = find_code(inject->tid, mapping, way, chunk, &budget);
			if (!insn || (way && !*way_at))
				continue;
			inject->code.insn = insn;
			return true;
		}
	return false;
}

struct mw_error *mw_inject_no_sigframe(const struct mw_inject *inject, pid_t pid)
{
	if (inject->code.restorer || inject->code.gadget)
		return mw_error_hint(
			mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					"no thread of process %d that can perform a system call has a stack "
					"of its own with room for a frame, by which it gets back to its "
					"work if memwatch is killed meanwhile",
					(int)pid),
			"Try again in a moment; or accept that risk with --unsafe");
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					     "the code of process %d has no sigreturn gadget: a thread could not "
					     "resume if memwatch is killed during an injected system call",
					     (int)pid),
			     "Accept that risk with --unsafe");
}

/* Can its filter be suspended? Tried here, so that nothing has been done where it can't. */
static struct mw_error *try_seccomp(const struct mw_inject *inject)
{
	struct mw_error *err = mw_tracee_suspend_seccomp(inject->tid, true);
	int errnum;

	if (!err)
		return mw_tracee_suspend_seccomp(inject->tid, false);
	if (mw_error_kind(err) == MW_ERROR_GONE)
		return err;
	errnum = mw_error_errno(err);
	mw_error_destroy(err);
	if (errnum == EPERM && mw_seccomp_shared(inject->tid))
		return NULL;
	if (errnum == EPERM)
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				      "thread %d is under a seccomp filter, which memwatch can suspend only with "
				      "CAP_SYS_ADMIN, and when under no filter itself",
				      (int)inject->tid);
	else
		err = mw_error_create(MW_ERROR_UNSUPPORTED, errnum,
				      "thread %d is under a seccomp filter, which this kernel can't suspend",
				      (int)inject->tid);
	return mw_error_hint(
		err, "Watch it as root from outside of its container, or start the container with --security-opt "
		     "seccomp=unconfined; or use --engine trap, which needs no memory in the process");
}

struct mw_error *mw_inject_find_code(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps)
{
	MW_FREE uint8_t *chunk = malloc(CHUNK);
	struct mw_inject ready = {.tid = tid};
	struct mw_status status;

	if (!chunk)
		return mw_error_nomem();
	MW_TRY(mw_status_read(tid, &status));
	if (!choose_insn(&ready, maps, IN_VDSO, &mw_machine.syscall_insn, NULL, MOST_CODE, chunk, NULL))
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "there is no system call instruction in the code of thread %d",
						     (int)tid),
				     MW_INJECT_UNSAFE_HINT);
	/* Where returns are checked against a shadow stack, there is no sigframe that is none of the program's own. */
	if (!status.shadow_stack && !choose_insn(&ready, maps, IN_LIBC, &mw_machine.syscall_return,
						 &mw_machine.restorer, MOST_RESTORER, chunk, &ready.code.restorer))
		(void)choose_insn(&ready, maps, IN_LIBC, &mw_machine.syscall_return, &mw_machine.sigreturn_gadget,
				  MOST_RESTORER, chunk, &ready.code.gadget);
	*inject = ready;
	return NULL;
}

struct mw_error *mw_inject_by(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps)
{
	struct mw_inject ready = {.tid = tid, .code = inject->code};
	struct mw_status status;

	MW_TRY(mw_status_read(tid, &status));
	if (status.seccomp > 0)
		MW_TRY(try_seccomp(&ready));
	mw_inject_use(&ready, tid, maps);
	*inject = ready;
	return NULL;
}

struct mw_error *mw_inject_init(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps)
{
	struct mw_inject ready;

	MW_TRY(mw_inject_find_code(&ready, tid, maps));
	MW_TRY(mw_inject_by(&ready, tid, maps));
	*inject = ready;
	return NULL;
}

void mw_inject_use(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps)
{
	size_t size = mw_sigframe_room(tid);

	inject->tid = tid;
	inject->room = (struct mw_room){.low = 0};
	if (size)
		(void)mw_own_stack_room(tid, maps, size, &inject->room);
}
