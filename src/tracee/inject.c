// SPDX-License-Identifier: MIT
/* inject.c: system calls in a target that give it memory (inject.h). */
#include "tracee/inject.h"

#include "proc/status.h"
#include "tracee/inject_error.h"
#include "tracee/remote.h"
#include "tracee/seccomp_policy.h"
#include "tracee/sigframe.h"
#include "tracee/syscall.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define CHUNK         65536u
#define MOST_CODE     (256u << 20) /* of code is looked through for a system call instruction */
#define MOST_RESTORER (16u << 20)
#define PAGE          4096u
#define BELOW         512u /* bytes: more than any red zone */
#define LEAST         (UINT64_C(1) << 20)
#define MOST          (UINT64_C(1) << 47) /* nothing is mapped above without asking for it */
#define HEAP_ROOM     (UINT64_C(1) << 30)
#define STACK_ROOM    (UINT64_C(128) << 20)
#define STACK_LEAST   (UINT64_C(16) << 20)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Where the code first stands in [start, end); 0 where nowhere. `*budget` bytes are read at most. */
static mw_addr find_code(pid_t tid, mw_addr start, mw_addr end, const uint8_t *code, size_t length, uint8_t *chunk,
			 size_t *budget)
{
	while (*budget > 0 && start < end) {
		size_t size = end - start < CHUNK ? (size_t)(end - start) : CHUNK;
		size_t got = mw_remote_read(tid, start, chunk, size);
		const uint8_t *at = memmem(chunk, got, code, length);

		if (at)
			return start + (mw_addr)(at - chunk);
		*budget -= got < *budget ? got : *budget;
		if (got < size || got < length || got == end - start)
			return 0;
		/* One may stand across the border. */
		start += got - (length - 1);
	}
	return 0;
}

/* The vdso's, which nobody patches, or that of any library. */
static struct mw_error *choose_insn(struct mw_inject *inject, const struct mw_maps *maps)
{
	uint8_t *chunk = malloc(CHUNK);
	size_t budget = MOST_CODE, length;
	const uint8_t *code = mw_regs_syscall_insn(&length);

	if (!chunk)
		return mw_error_nomem();
	inject->code.insn = 0;
	for (unsigned pass = 0; pass < 2 && !inject->code.insn; pass++) {
		for (size_t i = 0; i < maps->count && !inject->code.insn; i++) {
			const struct mw_mapping *mapping = &maps->items[i];
			bool wanted = pass == 0 ? strcmp(mapping->path, "[vdso]") == 0 : mapping->inode != 0;

			if (wanted && mapping->read && mapping->exec)
				inject->code.insn = find_code(inject->tid, mapping->start, mapping->end, code, length,
							      chunk, &budget);
		}
	}
	free(chunk);
	if (inject->code.insn)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					     "there is no system call instruction in the code of thread %d",
					     (int)inject->tid),
			     MW_INJECT_UNSAFE_HINT);
}

/* Code of the C library, or of a program that may have it inside. */
static bool may_restore(const struct mw_mapping *mapping, bool library)
{
	const char *slash = strrchr(mapping->path, '/'), *name = slash ? slash + 1 : mapping->path;

	if (!mapping->read || !mapping->exec || !mapping->inode)
		return false;
	return !library || strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
	       strncmp(name, "ld-musl", 7) == 0;
}

/* Code that leads back, beside an instruction that it fits to. */
static mw_addr find_way(struct mw_inject *inject, const struct mw_maps *maps, const uint8_t *wanted, size_t size)
{
	size_t budget = MOST_RESTORER, call_size;
	const uint8_t *call = mw_regs_syscall_return(&call_size);
	uint8_t *chunk = malloc(CHUNK);
	mw_addr insn = 0, found = 0;

	for (unsigned pass = 0; chunk && pass < 2 && !found; pass++)
		for (size_t i = 0; i < maps->count && !found; i++) {
			const struct mw_mapping *mapping = &maps->items[i];

			if (!may_restore(mapping, pass == 0))
				continue;
			insn = find_code(inject->tid, mapping->start, mapping->end, call, call_size, chunk, &budget);
			found = insn ? find_code(inject->tid, mapping->start, mapping->end, wanted, size, chunk,
						 &budget)
				     : 0;
		}
	free(chunk);
	if (found)
		inject->code.insn = insn;
	return found;
}

static void choose_sigframe(struct mw_inject *inject, const struct mw_maps *maps)
{
	size_t size;
	const uint8_t *wanted = mw_regs_restorer(&size);

	inject->code.restorer = find_way(inject, maps, wanted, size);
	if (inject->code.restorer)
		return;
	wanted = mw_regs_sigreturn_gadget(&size);
	inject->code.gadget = find_way(inject, maps, wanted, size);
}

bool mw_inject_leads_back(const struct mw_inject *inject)
{
	return (inject->code.restorer || inject->code.gadget) && inject->room.high > inject->room.low;
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

struct mw_error *mw_inject_init(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps)
{
	struct mw_inject ready = {.tid = tid};
	struct mw_status status;

	MW_TRY(mw_status_read(tid, &status));
	MW_TRY(choose_insn(&ready, maps));
	/* Where returns are checked against a shadow stack, there is no sigframe that is none of the program's own. */
	if (!status.shadow_stack)
		choose_sigframe(&ready, maps);
	if (status.seccomp > 0)
		MW_TRY(try_seccomp(&ready));
	mw_inject_use(&ready, tid, maps);
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

bool mw_inject_has_room(pid_t tid, const struct mw_maps *maps)
{
	size_t size = mw_sigframe_room(tid);
	struct mw_room room;

	return size && mw_own_stack_room(tid, maps, size, &room);
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

struct mw_error *mw_inject_call(const struct mw_inject *inject, long number, const uint64_t arguments[6],
				int64_t *result)
{
	struct mw_error *err, *after = NULL;
	struct mw_status status;
	bool suspended = false;
	uint8_t now[16];
	size_t length;
	const uint8_t *code =
		mw_inject_leads_back(inject) ? mw_regs_syscall_return(&length) : mw_regs_syscall_insn(&length);

	/* It may have been patched or unmapped since. */
	MW_TRY(mw_remote_read_all(inject->tid, inject->code.insn, now, length));
	if (memcmp(now, code, length) != 0)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "the system call instruction at 0x%llx is gone",
				       (unsigned long long)inject->code.insn);
	/* It may have come under one since. */
	MW_TRY(mw_status_read(inject->tid, &status));
	if (status.seccomp > 0)
		MW_TRY(suspend_seccomp(inject->tid, number, &suspended));
	err = mw_remote_syscall(inject->tid, &inject->code, &inject->room, number, arguments, result);
	if (suspended)
		after = mw_tracee_suspend_seccomp(inject->tid, false);
	if (err) {
		mw_error_destroy(after);
		return err;
	}
	return after;
}

/* Memory for the bytes of a call where none is known to be the thread's own: what is far below its stack pointer. */
static void room_below(pid_t tid, struct mw_room *room)
{
	struct mw_tracee_regs regs;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);

	if (!err) {
		room->high = (regs.general.gpr[mw_arch_find(mw_target_machine())->dwarf_sp] - BELOW) & ~(mw_addr)15;
		room->low = room->high - MW_SCRATCH_SIZE;
	}
	mw_error_destroy(err);
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
	return mw_error_first(err, mw_scratch_take_up(inject->tid, &scratch));
}

/* A call that gives 0, or fails with a meaning. */
static struct mw_error *call_simple(const struct mw_inject *inject, long number, mw_addr addr, uint64_t size,
				    uint64_t third, const char *what)
{
	const uint64_t arguments[6] = {addr, size, third};
	int64_t result;

	MW_TRY(mw_inject_call(inject, number, arguments, &result));
	return result < 0 ? mw_inject_error(inject->tid, (int)-result, size, what) : NULL;
}

struct mw_error *mw_inject_protect(const struct mw_inject *inject, mw_addr addr, uint64_t size, int protection)
{
	return call_simple(inject, SYS_mprotect, addr, size, (uint64_t)protection, "protect memory of");
}

struct mw_error *mw_inject_unmap(const struct mw_inject *inject, mw_addr addr, uint64_t size)
{
	return call_simple(inject, SYS_munmap, addr, size, 0, "unmap memory of");
}

struct mw_error *mw_inject_advise(const struct mw_inject *inject, mw_addr addr, uint64_t size, int advice)
{
	return call_simple(inject, SYS_madvise, addr, size, (uint64_t)advice, "advise on memory of");
}

struct mw_error *mw_inject_map(const struct mw_inject *inject, mw_addr addr, uint64_t size, int protection,
			       mw_addr *out)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED_NOREPLACE : 0);
	const uint64_t arguments[6] = {addr, size, (uint64_t)protection, (uint64_t)flags, UINT64_MAX, 0};
	int64_t result;

	MW_TRY(mw_inject_call(inject, SYS_mmap, arguments, &result));
	if (result < 0 && result >= -4095)
		return mw_inject_error(inject->tid, (int)-result, size, "map memory into");
	if (addr && (mw_addr)result != addr) {
		/* Before Linux 4.17 it is but a hint. */
		mw_error_destroy(mw_inject_unmap(inject, (mw_addr)result, size));
		return mw_inject_error(inject->tid, EEXIST, size, "map memory into");
	}
	*out = (mw_addr)result;
	return NULL;
}

/* Where in a gap there may be something, and the best place so far. */
struct search {
	mw_addr first, last; /* where there may be a byte */
	uint64_t size;
	bool found;
	mw_addr best;
	uint64_t distance; /* of it from the nearer end of its gap */
};

/* As far from either end as can be. */
static void try_gap(struct search *search, mw_addr start, mw_addr end)
{
	mw_addr least, most, at;
	uint64_t distance;

	start = (start + PAGE - 1) & ~(mw_addr)(PAGE - 1);
	end &= ~(mw_addr)(PAGE - 1);
	if (end < start || end - start < search->size)
		return;
	least = search->first > start ? (search->first + PAGE - 1) & ~(mw_addr)(PAGE - 1) : start;
	most = search->last < end - 1 ? (search->last + 1) & ~(mw_addr)(PAGE - 1) : end;
	if (most < least || most - least < search->size)
		return;
	most -= search->size;
	at = start + ((end - search->size - start) / 2 & ~(mw_addr)(PAGE - 1));
	at = at < least ? least : at > most ? most : at;
	distance = at - start < end - search->size - at ? at - start : end - search->size - at;
	if (search->found && distance <= search->distance)
		return;
	search->found = true;
	search->best = at;
	search->distance = distance;
}

/* Where the heap ends, or will begin: after the program's own mappings, which come first. 0: nobody knows. */
static mw_addr heap_end(const struct mw_maps *maps)
{
	const char *program = NULL;
	mw_addr end = 0;

	for (size_t i = 0; i < maps->count; i++)
		if (strcmp(maps->items[i].path, "[heap]") == 0)
			return maps->items[i].end;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (mapping->inode && !program)
			program = mapping->path;
		if (program && (strcmp(mapping->path, program) == 0 || (mapping->start == end && !mapping->inode)))
			end = mapping->end;
		else if (end)
			break;
	}
	return end;
}

static void try_all(struct search *search, const struct mw_maps *maps, uint64_t heap_room, uint64_t stack_room)
{
	const struct mw_mapping *last = NULL;
	mw_addr heap = heap_end(maps);
	mw_addr start = LEAST;

	for (size_t i = 0; i <= maps->count; i++) {
		const struct mw_mapping *next = i < maps->count ? &maps->items[i] : NULL;
		mw_addr end = next && next->start < MOST ? next->start : MOST;
		uint64_t above = last ? PAGE : 0, below = PAGE;

		if (last && last->end == heap)
			above = heap_room;
		if (next && strcmp(next->path, "[stack]") == 0)
			below = stack_room;
		if (end > start && end - start >= above && end - start - above >= below)
			try_gap(search, start + above, end - below);
		if (next && next->end > start)
			start = next->end;
		if (start >= MOST)
			break;
		last = next;
	}
}

bool mw_inject_find_gap(const struct mw_maps *maps, mw_addr low, mw_addr high, uint64_t reach, uint64_t size,
			mw_addr *out)
{
	struct search search = {.size = size};

	if (high <= low || size == 0 || size % PAGE != 0)
		return false;
	search.first = high - 1 > reach ? high - 1 - reach : 0;
	search.last = low > UINT64_MAX - reach ? UINT64_MAX : low + reach;
	try_all(&search, maps, HEAP_ROOM, STACK_ROOM);
	/* What the heap needs is not known: the less is taken of it the better. */
	for (uint64_t room = HEAP_ROOM / 2; !search.found && room >= PAGE; room /= 2)
		try_all(&search, maps, room, room > STACK_LEAST ? STACK_LEAST * 2 : STACK_LEAST);
	if (search.found)
		*out = search.best;
	return search.found;
}
