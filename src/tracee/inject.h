/* SPDX-License-Identifier: MIT */
/*
 * inject.h: memory that is put into a target: by system calls that one of its own threads performs, standing in a
 * ptrace stop.
 */
#ifndef MW_TRACEE_INJECT_H
#define MW_TRACEE_INJECT_H

#include "proc/maps.h"
#include "tracee/tracee.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/syscall.h>
#include <sys/types.h>

#define MW_INJECT_TRAP_HINT   "Use --engine trap, which takes 4 MiB of address space in the process"
#define MW_INJECT_UNSAFE_HINT "Use --engine trap --unsafe, which puts nothing but breakpoints into the process"

/* The target's code that leads back from a call: restorer or gadget. */
struct mw_way_code {
	mw_addr restorer; /* performs rt_sigreturn; or 0 */
	mw_addr gadget;   /* takes the number of a system call from the stack and returns; or 0 */
	mw_addr insn;     /* a system call instruction and a return */
};

/* Memory that only one thread writes. low == high: there is none. */
struct mw_room {
	mw_addr low, high;
	bool zero; /* all of it is, whether it is in memory yet or not */
};

/* By whom and how system calls are performed. */
struct mw_inject {
	pid_t tid; /* a thread of the target in a ptrace stop that can perform a system call */
	/* The instruction in its code, and what leads back; where nothing does, a memwatch that is killed during a call
	 * takes the thread with it. */
	struct mw_way_code code;
	struct mw_room room; /* for the frame that it gets back by, and for what calls are given; none: no sigframe */
};

/*
 * Get ready: look for the instruction in code that `maps` tells of (vdso or libc: bytes in executable file mappings),
 * for memory that is the thread's own, and whether the thread is under seccomp. Errors: UNSUPPORTED where there is no
 * such instruction or the filter can't be suspended (it takes CAP_SYS_ADMIN), with the reason; GONE, SYSTEM.
 */
struct mw_error *mw_inject_init(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps) MW_MUST_CHECK;
/* The same in two parts: the code, for which the thread need not stand; and the rest, by any thread that stands. `maps` may
 * be older than that. */
struct mw_error *mw_inject_find_code(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps) MW_MUST_CHECK;
struct mw_error *mw_inject_by(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps) MW_MUST_CHECK;
/* The same by another thread: only its memory is looked for. */
void mw_inject_use(struct mw_inject *inject, pid_t tid, const struct mw_maps *maps);
/* Has the thread memory of its own for it? */
static inline bool mw_inject_has_room(pid_t tid, const struct mw_maps *maps)
{
	struct mw_inject inject;

	mw_inject_use(&inject, tid, maps);
	return inject.room.high > inject.room.low;
}

/*
 * Find `size` bytes on the own stack of a thread that is in a ptrace stop; `maps` are the process's. False where there
 * are none, or it is not known which stack is its own. What killed memwatches have left there is made zero, if the
 * thread runs there.
 */
bool mw_own_stack_room(pid_t tid, const struct mw_maps *maps, size_t size, struct mw_room *out);
/*
 * The bounds of a thread's stack as its control block tells them: `block` are the words of it from the thread pointer
 * on. False where it tells of none. Pure.
 */
bool mw_own_stack_bounds(mw_addr thread_pointer, const uint64_t *block, size_t count, mw_addr *low, mw_addr *high);

/* Does a thread that performs a call get back to its work by itself if memwatch is killed? */
static inline bool mw_inject_leads_back(const struct mw_inject *inject)
{
	return (inject->code.restorer || inject->code.gadget) && inject->room.high > inject->room.low;
}
/* What it means where it does not, for who may not take that risk. Never NULL. */
struct mw_error *mw_inject_no_sigframe(const struct mw_inject *inject, pid_t pid) MW_MUST_CHECK;

/* One system call, with the thread's filter suspended; *result is what the kernel returned, negative errno on failure.
 */
struct mw_error *mw_inject_call(const struct mw_inject *inject, long number, const uint64_t arguments[6],
				int64_t *result) MW_MUST_CHECK;

/*
 * … one that is given the address of `bytes` (MW_SCRATCH_MAX at most) as argument number `which`. They stand in the
 * thread's room meanwhile, and are what the call has made of them afterwards.
 */
struct mw_error *mw_inject_call_with(const struct mw_inject *inject, long number, const uint64_t arguments[6],
				     unsigned which, void *bytes, size_t size, int64_t *result) MW_MUST_CHECK;

#define MW_COPY_NAME "memwatch copy" /* of a forked process, as prctl(PR_SET_NAME) has it */

/*
 * Have the thread fork its process (tracee/copy.h): *copy is that as memwatch sees it, 0 where none was made, and *result
 * what the thread got. The calling thread traces it; its first stop is still to be waited for. It has exit signal 0 and
 * the table of descriptors in common with the process. Let run it names itself and ends. `meanwhile` is called while the
 * kernel is at it. *copy and *result also where
 * there was an error after that. Errors: UNSUPPORTED where the thread would not get back by itself, those of
 * mw_inject_call.
 */
struct mw_error *mw_inject_fork(const struct mw_inject *inject, void (*meanwhile)(void *context), void *context,
				pid_t *copy, int64_t *result) MW_MUST_CHECK;

/*
 * A free range of `size` bytes (whole pages) such that every address in it lies within `reach` of every one in [low,
 * high), with a free page on either side, and as far from all that is mapped as can be: beside that a program may
 * have unmapped something that it will map again, over whatever is there by then (MAP_FIXED). Room for the heap (1 GiB)
 * and the main stack (128 MiB) to grow is kept where there is another place; else as much of it as can be, of the
 * stack's 16 MiB at least. Never below 1 MiB (vm.mmap_min_addr is 64 KiB as a rule). False where there is none. Pure.
 */
bool mw_inject_find_gap(const struct mw_maps *maps, mw_addr low, mw_addr high, uint64_t reach, uint64_t size,
			mw_addr *out);

/* Anonymous private memory at exactly `addr` (MAP_FIXED_NOREPLACE; a kernel without it that maps elsewhere is an error,
 * undone), or anywhere for 0. Errors: SYSTEM with the target's errno and what it can mean (RLIMIT_AS, RLIMIT_DATA). */
struct mw_error *mw_inject_map(const struct mw_inject *inject, mw_addr addr, uint64_t size, int protection,
			       mw_addr *out) MW_MUST_CHECK;
/* A call that gives 0. Errors: as above; `what` names the operation: "protect memory of". */
struct mw_error *mw_inject_simple(const struct mw_inject *inject, long number, mw_addr addr, uint64_t size,
				  uint64_t third, const char *what) MW_MUST_CHECK;

MW_MUST_CHECK static inline struct mw_error *mw_inject_protect(const struct mw_inject *inject, mw_addr addr,
							       uint64_t size, int protection)
{
	return mw_inject_simple(inject, SYS_mprotect, addr, size, (uint64_t)protection, "protect memory of");
}

MW_MUST_CHECK static inline struct mw_error *mw_inject_unmap(const struct mw_inject *inject, mw_addr addr,
							     uint64_t size)
{
	return mw_inject_simple(inject, SYS_munmap, addr, size, 0, "unmap memory of");
}

MW_MUST_CHECK static inline struct mw_error *mw_inject_advise(const struct mw_inject *inject, mw_addr addr,
							      uint64_t size, int advice)
{
	return mw_inject_simple(inject, SYS_madvise, addr, size, (uint64_t)advice, "advise on memory of");
}

/*
 * May `size` bytes be mapped into the process of `tid` without taking address space that it may come to need: does what
 * it has had at any time fit into RLIMIT_AS beside them? Errors: UNSUPPORTED where it does not.
 */
struct mw_error *mw_inject_check_limit(pid_t tid, uint64_t size) MW_MUST_CHECK;

/* Memory that a target and memwatch share. */
struct mw_shared_memory {
	void *here; /* mapped in memwatch */
	mw_addr there;
	uint64_t size;
	int fd;                 /* memwatch's */
	uint64_t device, inode; /* as /proc/PID/maps shows them: makedev(major, minor) */
};

/*
 * Make it: a memfd (named "memwatch", locked by flock() for as long as memwatch lives) that the target makes, maps
 * shared and closes, and that memwatch opens through /proc/PID/fd and sizes. No descriptor stays in the target, and
 * nothing of the target's limits (RLIMIT_FSIZE) is run into with a signal. The target has it at `hint`, if that is free
 * and not 0. Errors: SYSTEM with the target's errno and its meaning; what was made is undone.
 */
struct mw_error *mw_shared_memory_create(const struct mw_inject *inject, mw_addr hint, uint64_t size,
					 struct mw_shared_memory *out) MW_MUST_CHECK;
/* Does the target lock all that it maps? Then it takes a few calls more. */
bool mw_shared_memory_locks(pid_t tid);
/* Have the pages [offset, offset + size) now, in memwatch's account, so that the target never has to. */
struct mw_error *mw_shared_memory_fill(struct mw_shared_memory *memory, uint64_t offset, uint64_t size) MW_MUST_CHECK;
/* Write there by way of the file: the pages that it takes are no part of memwatch's own memory. */
struct mw_error *mw_shared_memory_write(struct mw_shared_memory *memory, uint64_t offset, const void *bytes,
					size_t size) MW_MUST_CHECK;
/* memwatch's side only. */
void mw_shared_memory_close(struct mw_shared_memory *memory);
/* In a forked copy of memwatch: from now on it has a copy of the first `kept` bytes of its own, and zeros behind them, and
 * holds neither the memory nor its lock. False: there is no memory for that. */
bool mw_shared_memory_leave(struct mw_shared_memory *memory, size_t kept) MW_MUST_CHECK;

/* --- how a call is made, and what a killed memwatch leaves of one (syscall.c) ---------------------------------------- */

#define MW_SIGFRAME_FIRST 16u  /* bytes of what is popped */
#define MW_SCRATCH_HEAD   32u  /* bytes of the mark */
#define MW_SCRATCH_MAX    672u /* bytes that a call is given */
#define MW_SCRATCH_SIZE   (MW_SCRATCH_HEAD + MW_SCRATCH_MAX)
#define MW_ROOM_MAX       (MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX + 64u + MW_SCRATCH_SIZE)

/*
 * A memwatch that was killed may have left a thread amid such a call. Let it perform that and return to its own work;
 * it executes nothing of that. The thread must be in the stop of an interrupt (or a group stop), and is in one
 * afterwards. Nothing is done where it is not amid a call. Errors: GONE, SYSTEM.
 */
struct mw_error *mw_remote_syscall_finish(pid_t tid) MW_MUST_CHECK;

/* Resume a thread to where it next enters or leaves a system call. Errors: GONE, SYSTEM. */
struct mw_error *mw_remote_syscall_next(pid_t tid) MW_MUST_CHECK;

/* How large a room the frame and the scratch of a thread in a ptrace stop take, as it is now; 0: it can't be known. */
size_t mw_sigframe_room(pid_t tid);
/* Are these the registers of a thread that performs a call, or returns from one by its frame? */
bool mw_sigframe_is_at(pid_t tid, const struct mw_regs *regs);
/* The first frame or scratch that a killed memwatch has left from `from` on, where nothing but zeros lies in between.
 */
bool mw_sigframe_find_remains(pid_t tid, mw_addr from, mw_addr limit, mw_addr *start, size_t *size);

/* Bytes for a call to read or write, in a thread's room. */
struct mw_scratch {
	mw_addr at; /* of the bytes */
	uint8_t before[MW_SCRATCH_SIZE];
};

/* Put up to MW_SCRATCH_MAX bytes there. Errors: DATA, GONE. */
struct mw_error *mw_scratch_put(pid_t tid, const struct mw_room *room, const void *bytes, size_t size,
				struct mw_scratch *out) MW_MUST_CHECK;

#endif
