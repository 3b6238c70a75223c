/* SPDX-License-Identifier: MIT */
/*
 * arch.h: all that the rest of memwatch asks of an instruction set.
 *
 * An architecture is a const vtable of pure functions over bytes and register sets: none knows a
 * pid, none performs a system call, so each builds and is tested on every host. Adding one: a
 * directory under arch/, its row in mw_arch_find(), a converter for the kernel's register layout
 * in the target module, and its byte-table tests under tests/arch/.
 */
#ifndef MEMWATCH_ARCH_H
#define MEMWATCH_ARCH_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_INSN_MAX          16 /* longest instruction of any architecture, rounded up */
#define MW_OOL_MAX           32 /* longest out-of-line copy including the jump back */
#define MW_SIGNAL_RETURN_MAX 16 /* longest such code that is looked at */
#define MW_KEPT_BELOW        19 /* words below a kept program counter that tell of the alternate stack */
#define MW_REG_COUNT         16 /* general registers, in DWARF numbering of the architecture */

/* A thread's general registers. gpr[] is in DWARF order (x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8…r15). */
struct mw_regs {
	uint64_t gpr[MW_REG_COUNT];
	uint64_t pc;
	uint64_t flags;
	uint64_t syscall;        /* the system call that the thread is in, or -1 (x86-64: orig_rax) */
	uint64_t thread_pointer; /* fs base */
};

/* How a displaced instruction is to be carried out while a breakpoint stands on its first byte. */
enum mw_insn_how {
	MW_INSN_EMULATE,     /* mw_arch.emulate does it on a register set */
	MW_INSN_OUT_OF_LINE, /* a relocated copy is run elsewhere and jumps back */
	MW_INSN_REFUSE,      /* neither: `why` says why */
};

/* What an emulation needs from memory beside registers: nothing, one word of the thread's own stack, or data. */
enum mw_insn_memory {
	MW_MEMORY_NONE,
	MW_MEMORY_POP,  /* reads the word at the stack pointer */
	MW_MEMORY_PUSH, /* writes the word below the stack pointer */
	MW_MEMORY_LOAD, /* reads the word at stack pointer + displacement (or rbp): own stack only */
	MW_MEMORY_DATA, /* reads `width` bytes at an address that the instruction tells relative to its own */
};

struct mw_insn_plan {
	enum mw_insn_how how;
	/* EMULATE and OUT_OF_LINE may both be possible; these say so. */
	bool can_emulate;
	bool can_relocate;
	enum mw_insn_memory memory;
	uint8_t length;
	uint8_t bytes[MW_INSN_MAX]; /* the original instruction */
	mw_addr pc;                 /* where it stands */
	const char *why;            /* static text, for REFUSE and for what can't be relocated */
	/* Architecture's own: opcode class and operands for emulate(), displacement for relocate(). */
	uint32_t op;
	uint8_t dst, src, cond;
	uint8_t width; /* of the operands in bytes */
	int64_t imm;
	uint8_t disp_offset; /* offset in bytes[] of a pc-relative 32-bit displacement, 0: none */
	mw_addr target;      /* of a branch, or of the pc-relative operand */
};

/*
 * How a function gives control back from some place in it, as its own instructions tell: where the return address lies
 * and which registers it takes back from the stack before.
 */
struct mw_way_out {
	mw_addr return_at; /* address of the word with the return address */
	mw_addr sp;        /* the stack pointer after the return */
	uint32_t restored; /* bit n: register n is taken from restored_at[n] */
	mw_addr restored_at[MW_REG_COUNT];
};

/* What is known of the function that holds some code. */
struct mw_code_function {
	mw_addr start; /* 0: unknown */
	mw_addr end;   /* it ends there at the latest; 0: unknown */
	bool exact;    /* it begins at `start` and ends at `end`; else another may begin between `start` and the code */
	bool alone; /* … and contains no other function's code: the code before a call tells what the frame is there */
};

enum mw_code_fp {
	MW_CODE_FP_SAME,  /* the frame pointer is the caller's */
	MW_CODE_FP_SAVED, /* … which lies at CFA + fp_at */
	MW_CODE_FP_LOST,
};

/* A function's frame at one of its calls. The return address is the word below the CFA. */
struct mw_code_frame {
	bool outermost; /* nothing has called the function: the rest means nothing */
	bool unknown;   /* no row can describe the frame: the rest means nothing */
	bool by_fp;     /* CFA = frame pointer + cfa, else stack pointer + cfa */
	int32_t cfa;
	enum mw_code_fp fp;
	int32_t fp_at;
};

/* What a function's code is looked through for. */
struct mw_code_wanted {
	mw_addr data;           /* an address that is taken, 0: none */
	const mw_addr *callees; /* functions that are called, or jumped to as a last act */
	size_t callee_count;
	mw_addr target_start, target_end; /* code that is branched to; empty: none */
};

/* How often each was seen. */
struct mw_code_seen {
	unsigned data, calls, branches;
	unsigned flags; /* a byte of the thread's own storage is set to 1 */
};

#define MW_DETOUR_MAX      32 /* most bytes of a function that are displaced for a jump */
#define MW_DETOUR_INSNS    8
#define MW_TRAMPOLINE_SIZE 192 /* room for a trampoline */

/*
 * A function whose first instructions are to be replaced by a jump.
 *
 *      before                      after                       trampoline
 *      f:    endbr64               f:    endbr64               p:    (makes room for the call's frame, jumps to the
 *      f+4:  push rbp              f+4:  jmp p                       common entry)
 *      f+5:  mov rsp, rbp          f+9:  …                     o:    push rbp; mov rsp, rbp; … as relocated
 *      f+8:  sub $8, rsp                                             jmp f+12
 *      f+12: …
 */
struct mw_detour {
	const char *why; /* NULL, or why the function can't be detoured: static text */
	mw_addr at;      /* where the jump is to stand */
	uint8_t jump;    /* length of the jump: so many bytes at `at` are overwritten */
	uint8_t length;  /* whole instructions that are displaced: at least so many */
	uint8_t count;   /* of them; a function may end among them, padding behind it belongs to no instruction */
	bool ends;       /* the last of them leaves, or calls and is returned to in its place: no sigframe is needed */
	uint8_t offset[MW_DETOUR_INSNS]; /* of each, from `at` */
	uint8_t bytes[MW_DETOUR_MAX];    /* what is displaced */
};

/* A trampoline as it was written for one address. */
struct mw_trampoline {
	uint8_t bytes[MW_TRAMPOLINE_SIZE];
	uint8_t size;
	uint8_t original; /* offset of the relocated instructions: the function as it was begins there */
	/*
	 * Offset of each displaced instruction's copy: a pc on one of these and a pc on that instruction are the same
	 * state. A call's copy and that of a branch far away are two instructions; with a pc between, or on the jump
	 * back, a thread is one step away from the program's own code.
	 */
	uint8_t copied[MW_DETOUR_INSNS];
};

/* What every trampoline needs to know beside its function. */
struct mw_trampoline_frame {
	mw_addr entry;       /* the common code that it jumps to */
	uint32_t hook;       /* number that it leaves in the lowest 4 bytes of the frame */
	uint32_t frame_size; /* bytes below the return address that it makes room for */
};

enum mw_code_deed {
	MW_CODE_TAKES_DATA, /* wanted->data */
	MW_CODE_BRANCHES,   /* to wanted->target_start … */
	MW_CODE_SETS_FLAG,  /* any byte of the thread's own storage, to anything */
};

enum {
	MW_ACTION_JUMP = 5, /* bytes, see action_jump */
	MW_ACTION_TRAMPOLINE = 32,
};

struct mw_arch {
	const char *name;     /* "x86_64" */
	uint16_t elf_machine; /* EM_X86_64 */
	uint8_t breakpoint[4];
	uint8_t breakpoint_length;
	uint8_t breakpoint_advance; /* pc after the breakpoint minus its address */
	uint8_t dwarf_sp;           /* DWARF number of the stack pointer */
	uint8_t dwarf_fp;

	/* Integer argument `index` (0…5) at a function's first instruction; `stack` for none there. */
	uint64_t (*argument)(const struct mw_regs *regs, unsigned index);
	/* The integer result at a function's return. */
	uint64_t (*result)(const struct mw_regs *regs);
	/* At a function's first instruction: leave it, to its return address `ret`, with an integer result. */
	void (*leave)(struct mw_regs *regs, mw_addr ret, uint64_t result);
	/*
	 * Decode the instruction at `pc` from `size` bytes (at least MW_INSN_MAX where there are so
	 * many) and say how it can be carried out. Prefers emulation where that needs no memory, then
	 * out of line. Always fills `plan`; undecodable bytes are REFUSE.
	 */
	void (*plan)(const uint8_t *bytes, size_t size, mw_addr pc, struct mw_insn_plan *plan);
	/*
	 * Do what the instruction does, pc included. `word` is the memory word read for POP, LOAD and DATA,
	 * or receives the one to be written to the new stack pointer for PUSH. Undefined flags of
	 * the instruction are left as hardware commonly leaves them. Only for plan->can_emulate.
	 */
	void (*emulate)(const struct mw_insn_plan *plan, struct mw_regs *regs, uint64_t *word);
	/* Where `emulate` will read (POP, LOAD, DATA) or write (PUSH) its word. */
	mw_addr (*memory_address)(const struct mw_insn_plan *plan, const struct mw_regs *regs);
	/*
	 * Write the instruction's out-of-line copy for address `dest` with a jump back behind it.
	 * `*copy_length` is the length of the copied instruction alone (a pc at dest + *copy_length
	 * has executed it), `*length` that of all. Fails where dest is too far from what the
	 * instruction refers to.
	 */
	struct mw_error *(*relocate)(const struct mw_insn_plan *plan, mw_addr dest, uint8_t out[MW_OOL_MAX],
				     size_t *copy_length, size_t *length)MW_MUST_CHECK;
	/*
	 * Follow the code from `pc` (`bytes` stand at `base` and hold it and what surrounds it) to returns, calls taken
	 * as made, and note up to `capacity` different ways out. Returns how many; 0 where no return can be reached:
	 * what comes after `pc` is the last that the function does. `*blind`: there is a path that can't be followed
	 * (behind an indirect jump, or where the stack pointer becomes what the code does not say), so there may be
	 * more ways. Such a jump from a frame that has been taken down is a way out as well. Whether there is any, and
	 * that, the code alone tells, whatever the registers are.
	 */
	size_t (*ways_out)(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, const struct mw_regs *regs,
			   struct mw_way_out *ways, size_t capacity, bool *blind);
	/*
	 * How a frame whose return address is `pc` leads to its caller, as the function's own instructions tell. The
	 * bytes hold the function, in `known` or found by its prologue, and what surrounds it. False where that is not
	 * certain.
	 */
	bool (*frame_at)(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc,
			 const struct mw_code_function *known, struct mw_code_frame *out);
	/* The next place, `from` or behind, that looks like a call of the function at *target: where to look on; `size`
	 * where there is none. Quick, and knows not where instructions begin. */
	size_t (*call_target)(const uint8_t *bytes, size_t size, mw_addr base, size_t from, mw_addr *target);
	/* Where code at `pc` goes on that does nothing else: a nop's end, a jump's target. 0: it is neither. */
	mw_addr (*leads_to)(const uint8_t *bytes, size_t size, mw_addr pc);
	/* Is this the code that a signal handler returns to, the kernel's return to what the signal interrupted? */
	bool (*is_signal_return)(const uint8_t *bytes, size_t size);
	/*
	 * Can word `i`, at address `at`, of `count` words of memory be the program counter of what a signal's frame, or
	 * a context that was made of one, keeps of the registers? Where words around it are not there, it can.
	 */
	bool (*is_kept_pc)(mw_addr at, const uint64_t *words, size_t count, size_t i);
	/* … and is it where that was put aside? A copy leads to what lies beside the original. */
	bool (*is_kept_in_place)(mw_addr at, const uint64_t *words, size_t count, size_t i);
	/* Has the kernel put it there, or is it a copy of what it has? `i` > 0. */
	bool (*is_interrupted_pc)(const uint64_t *words, size_t count, size_t i);
	/* The alternate stack that was the thread's, as is kept with the program counter in the MW_KEPT_BELOW words
	 * below it. False: handlers may be left there, as the next signal will not be handled on it. */
	bool (*kept_altstack)(const uint64_t below[MW_KEPT_BELOW], mw_addr *start, uint64_t *size);
	/* Does a call instruction end right before `bytes + size` (bytes that precede a return address)? */
	bool (*is_call_before)(const uint8_t *bytes, size_t size);
	/* Read a whole function, `size` bytes that stand at `base`. False where they aren't code from end to end. */
	bool (*inspect)(const uint8_t *bytes, size_t size, mw_addr base, const struct mw_code_wanted *wanted,
			struct mw_code_seen *seen);
	/*
	 * The offset, `from` or behind, of the next place in the bytes that looks like an instruction that does `deed`,
	 * which may be a little way into it; `size` where there is none. Quick, and knows not where instructions begin:
	 * inspect() of the function there has the last word.
	 */
	size_t (*search)(const uint8_t *bytes, size_t size, mw_addr base, size_t from, enum mw_code_deed deed,
			 const struct mw_code_wanted *wanted);
	/*
	 * The next place, `from` or behind, where a system call sets the thread's signal mask to a set at a fixed
	 * address, `*set`: the 32-bit displacement that leads there, from its own end, is at offset `*operand`. Returns
	 * where to look on; `size` where there is none.
	 */
	size_t (*mask_set)(const uint8_t *bytes, size_t size, mw_addr base, size_t from, size_t *operand, mw_addr *set);
	/* The same where the set of all signals, but for some of the C library's own, is a constant in the code: it is
	 * the eight bytes from offset `*operand` on, least first. */
	size_t (*mask_constant)(const uint8_t *bytes, size_t size, size_t from, size_t *operand);
	/*
	 * The next place, `from` or behind, where a signal's action is set by a system call: its instruction is at
	 * offset `*insn`. Returns where to look on; `size` where there is none.
	 */
	size_t (*action_call)(const uint8_t *bytes, size_t size, size_t from, size_t *insn);
	/*
	 * Have the system call at `insn` made by the code at `act`, which is given where to go on in the first spare
	 * register: `jump` takes the place of the MW_ACTION_JUMP bytes before it, `before`, and leads to `trampoline`.
	 * False where those are not what they must be, or it is too far.
	 */
	bool (*action_jump)(const uint8_t before[MW_ACTION_JUMP], mw_addr insn, mw_addr trampoline_at, mw_addr act,
			    uint8_t jump[MW_ACTION_JUMP], uint8_t trampoline[MW_ACTION_TRAMPOLINE]);
	/* Put two words where neither a function of three arguments looks on its entry nor a system call leaves
	 * anything. */
	void (*spare)(struct mw_regs *regs, uint64_t first, uint64_t second);
	/*
	 * Can the function at `pc` have its first instructions displaced by a jump? `bytes` stand at `base` and hold
	 * the function (`function_size` bytes, 0: unknown) and what surrounds it: a branch from there into what would
	 * be overwritten is a reason against it. Always fills `detour`.
	 */
	void (*detour)(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, uint64_t function_size,
		       struct mw_detour *detour);
	/* Write the trampoline for `dest`. Every register and flag is left as it was. Fails where dest is too far from what a
	 * displaced instruction refers to, or from the function. */
	struct mw_error *(*trampoline)(const struct mw_detour *detour, const struct mw_trampoline_frame *frame,
				       mw_addr dest, struct mw_trampoline *trampoline)MW_MUST_CHECK;
	/* The detour->jump bytes that are to stand at detour->at. */
	struct mw_error *(*detour_jump)(const struct mw_detour *detour, mw_addr trampoline, uint8_t *out)MW_MUST_CHECK;
	uint64_t
		trampoline_reach; /* how far a trampoline may lie from its function and from what that refers to, bytes */
};

/* The vtable for an ELF machine number, or NULL. */
const struct mw_arch *mw_arch_find(uint16_t elf_machine);

#endif
