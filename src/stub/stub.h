/* SPDX-License-Identifier: MIT */
/*
 * stub.h: the code that is put into a target, as memwatch has it: one position-independent image, and the context that
 * memwatch fills in before it writes the image there.
 *
 *   function:  jmp trampoline                     trampoline (arch.h): lea -72(%rsp),%rsp; push? … jmp *entry
 *
 *   entry (enter, find_fde): the stack is, from the stack pointer up
 *      [sp]        struct mw_stub_call: its hook is filled in, the rest is room
 *      [sp + 72]   return address of the call
 *
 *   enter   guard is not ON: to the original at once. Else the recorder says: to the original at once, or by a call
 * whose return address is `returned`; the recorder gets the result then, and the caller returned to. find_fde is the
 * entry for _Unwind_Find_FDE(pc, bases): for pc in the call at `returned` it gives the frame description of our own
 * frame, so that exceptions and backtraces pass through it.
 */
#ifndef MW_STUB_STUB_H
#define MW_STUB_STUB_H

#include <memwatch/ring.h>

#define MW_STUB_MAX_HOOKS 512
#define MW_STUB_RANGES    8
#define MW_STUB_MAGIC     UINT64_C(0x6275747368637461)
#define MW_STUB_LAYOUT    3u /* of the header and the context: another number is another memwatch's */
#define MW_STUB_CALL_SIZE 72

/* A hooked call that has not returned: on the target's stack, right below its return address. */
struct mw_stub_call {
	uint32_t hook;
	uint32_t stack;
	uint64_t original; /* where the function goes on: the displaced instructions */
	uint64_t prev;     /* the call around it, or 0: mw_ring_slot.top */
	uint64_t cookie;   /* its own address ^ context.cookie */
	uint64_t slot;     /* address of the thread's slot */
	uint64_t flags;    /* MW_RING_… of its events, MW_STUB_… */
	uint64_t size, pointer, extra;
};

_Static_assert(sizeof(struct mw_stub_call) == MW_STUB_CALL_SIZE, "as the assembly has it");

#define MW_STUB_BEGUN  0x100u  /* a BEGIN was recorded */
#define MW_STUB_SILENT 0x200u  /* nothing is to be recorded: it only is around other calls */
#define MW_STUB_HEAP   0x400u  /* of a heap function */
#define MW_STUB_FREE   0x800u  /* of one that frees */
#define MW_STUB_KNOWN  0x1000u /* the block was known to be allocated in the window */
#define MW_STUB_TAKEN  0x2000u /* at entry, while blocks are sampled: the countdown has come to its end with it */

/* What a hooked function does: as enum mw_role (memwatch/engine.h, which freestanding code can't have; a test compares
 * them), and what follows. */
enum stub_role {
	STUB_ROLE_MALLOC,
	STUB_ROLE_CALLOC,
	STUB_ROLE_REALLOC,
	STUB_ROLE_REALLOCARRAY,
	STUB_ROLE_FREE,
	STUB_ROLE_POSIX_MEMALIGN,
	STUB_ROLE_RESIZE,
	STUB_ROLE_MMAP,
	STUB_ROLE_MUNMAP,
	STUB_ROLE_MREMAP,
	STUB_ROLE_BRK,
	STUB_ROLE_SBRK,
	STUB_ROLE_COUNT
};

#define MW_STUB_LOADER   0x40u /* _dl_debug_state: wait until memwatch has looked at the modules */
#define MW_STUB_EXEC     0x42u /* execve: where it does not return, the process has become another program */
#define MW_STUB_EXIT     0x43u /* _exit: memwatch may look at the process before it ends */
#define MW_STUB_UNWINDER 0x41u /* _Unwind_Find_FDE: only find_fde's */

#define MW_STUB_NO_ARG 0xffu

#define MW_STUB_IS_HEAP   1u /* kind heap, else vm */
#define MW_STUB_UNTRACKED 2u /* hooked to tell what is called from inside only */
#define MW_STUB_GLIBC     4u /* blocks have glibc's chunk headers; internal callers are looked for */

struct mw_stub_hook {
	uint64_t original;   /* the relocated displaced instructions */
	uint64_t start, end; /* the function's code; end = start where unknown */
	uint8_t role;
	uint8_t flags;
	uint8_t pointer, count, argument; /* argument numbers as in struct mw_entry_point (argument: its size) */
	uint8_t unused[3];
	uint32_t module; /* number: code of one module has one */
	uint32_t unused32;
};

struct mw_stub_range {
	uint64_t start, end;
};

/* The guard's word. */
#define MW_STUB_GUARD_OFF      0u /* before the window; a forked child's, too */
#define MW_STUB_GUARD_ON       1u
#define MW_STUB_GUARD_CHILD    2u /* a forked child that has said so */
#define MW_STUB_GUARD_ENDING   3u /* nothing is recorded any more; calls that come back are counted out */
#define MW_STUB_GUARD_SAMPLING 5u /* heap blocks are sampled (mw_ring_control.sampling) */
/* The same, but each free is recorded: which blocks from before live is not in the filter yet. */
#define MW_STUB_GUARD_TRANSITION 9u

/* Filled in by memwatch; read-only in the target. */
struct mw_stub_context {
	uint64_t guard;  /* address of the guard's word */
	uint64_t shared; /* address of the shared memory */
	uint64_t cookie;
	uint32_t tid_offset;      /* of the thread id from the thread pointer */
	uint32_t rdfsbase;        /* 1: the instruction may be used, else the word at %fs:0 */
	uint64_t allocator_count; /* code of libraries that do nothing but allocate: their vm calls are internal */
	struct mw_stub_range allocators[MW_STUB_RANGES];
	uint64_t internal_count; /* code of glibc that frees what the program has freed already */
	struct mw_stub_range internal[MW_STUB_RANGES];
	uint64_t exception_count; /* code that allocates exceptions */
	struct mw_stub_range exceptions[MW_STUB_RANGES];
	uint64_t readable_count; /* writable private mappings at attach, sorted: where headers of blocks may be read */
	uint64_t readable;       /* address of struct mw_stub_range of them, read-only, in the code's mapping; 0 none */
	/* While blocks are sampled: the shared memory's slots and filter, and code of functions that enter by a way of
	 * their own: their vm calls are internal. */
	uint64_t slots, filter;
	uint64_t leaf_count;
	struct mw_stub_range leaves[MW_STUB_RANGES];
	uint32_t slot_mask;
	uint32_t hook_count;
	struct mw_stub_hook hooks[MW_STUB_MAX_HOOKS];
};

/* The image's first bytes. Offsets are from its start. */
struct mw_stub_header {
	uint64_t magic;
	uint32_t size; /* of the image, context included */
	uint32_t context;
	uint32_t enter;    /* entry for hooked functions */
	uint32_t returned; /* where wrapped functions return to */
	uint32_t find_fde; /* entry for _Unwind_Find_FDE */
	uint32_t fde;      /* frame description of the call at `returned` */
	uint32_t table;    /* a search table with that one entry, as in .eh_frame_hdr: offsets from the image's start */
	uint32_t code_end; /* instructions lie between sizeof(header) and this */
	/* The assembly: from `enter` to here, and the two places in it that calls of the C functions return to. A saved
	 * program counter in it, on a stack, is that of a thread that a signal has interrupted there. */
	uint32_t entries_end, entered, left;
	uint32_t layout; /* MW_STUB_LAYOUT */
	/* Entries while blocks are sampled, by where the size is, or the block that is freed: argument 0, 1, the product
	 * of both. */
	uint32_t enter_size0, enter_size1, enter_product, enter_free;
};

/* The image, `mw_stub_image_size` bytes, 64-aligned. */
extern const uint8_t mw_stub_image[];
extern const uint32_t mw_stub_image_size;
/* The other one, of memwatch/rescue.h: it begins with struct mw_rescue_header, and has at most MW_RESCUE_CODE bytes. */
extern const uint8_t mw_rescue_image[];
extern const uint32_t mw_rescue_image_size;

static inline const struct mw_stub_header *mw_stub_header(void)
{
	return (const struct mw_stub_header *)(const void *)mw_stub_image;
}

#endif
