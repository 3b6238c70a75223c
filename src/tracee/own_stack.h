/* SPDX-License-Identifier: MIT */
/*
 * own_stack.h: memory of a thread that nobody else writes to, for the frame and the arguments of an injected system
 * call.
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
#ifndef MW_TRACEE_OWN_STACK_H
#define MW_TRACEE_OWN_STACK_H

#include "proc/maps.h"
#include "tracee/tracee.h"

#include <memwatch/types.h>

/* low == high: there is none. */
struct mw_room {
	mw_addr low, high;
	bool zero; /* all of it is, whether it is in memory yet or not */
};

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

#endif
