// SPDX-License-Identifier: MIT
/* x86_64.c: the x86-64 vtable: calling convention, what a signal's frame keeps, what code looks like (memwatch/arch.h). */
#include "arch/x86_64/x86_64.h"

#include "arch/x86_64/decode.h"

#include <elf.h>
#include <string.h>

/* --- what a signal's frame keeps --------------------------------------------------------------------------- */

/*
 * Registers as a signal's frame keeps them, or a context that was made of one, told from words that merely lie about.
 * The kernel's struct sigcontext, by words from the program counter on:
 *
 *     -1 stack pointer | 0 program counter | 1 flags | 2 cs, gs, fs, ss: 16 bits each | 3 error code | 4 trap number |
 *     5 mask | 6 cr2 | 7 pointer to what the coprocessor holds
 *
 * getcontext() of a C library fills in the pointer, which leads into the context itself, and nothing of what lies
 * between.
 */
enum { SP = -1, FLAGS = 1, SEGMENTS = 2, CR2 = 6, COPROCESSOR = 7 };

#define FLAGS_SET      UINT64_C(0x202)       /* bit 1 always is, and interrupts are on */
#define FLAGS_CLEAR    (~UINT64_C(0x3d7fd7)) /* reserved ones, and virtual 8086 mode */
#define CODE_SEGMENT   UINT64_C(0x33)        /* of programs of 64 bits; nothing is kept in gs and fs */
#define SEGMENTS_KNOWN UINT64_C(0x0000ffffffffffff)
#define ADDRESSES      (UINT64_C(1) << 56) /* those of programs are less */
#define ON_STACK       UINT32_C(1)         /* SS_ONSTACK of sigaltstack(2): the only flag of one that stays */
#define ALTSTACK_MOST  (UINT64_C(1) << 30) /* bytes: a larger one is something else */
#define IN_FRAME       4096u /* from the program counter in a signal's frame to the coprocessor's state, at most */
#define INTO_GLIBC     256u /* bytes from the program counter in a glibc's ucontext_t to its room for the coprocessor */

static bool is_address(uint64_t word)
{
	return word >= 4096 && word < ADDRESSES;
}

/* None of what only the kernel fills in was. */
static bool is_blank(const uint64_t *word)
{
	for (int i = FLAGS; i <= CR2; i++)
		if (word[i])
			return false;
	return true;
}

static bool is_kernels(const uint64_t *word)
{
	return (word[FLAGS] & FLAGS_SET) == FLAGS_SET && !(word[FLAGS] & FLAGS_CLEAR) &&
	       (word[SEGMENTS] & SEGMENTS_KNOWN) == CODE_SEGMENT;
}

static bool is_interrupted_pc(const uint64_t *words, size_t count, size_t i)
{
	return count - i > SEGMENTS && is_kernels(&words[i]) && is_address(words[i]) && is_address(words[i - 1]);
}

static bool is_kept_pc(mw_addr at, const uint64_t *words, size_t count, size_t i)
{
	const uint64_t *word = &words[i];

	/* What can't be seen may be anything. */
	if (i > 0 && !is_address(word[SP]))
		return false;
	if (count - i <= COPROCESSOR)
		return true;
	if (is_kernels(word))
		return true;
	if (word[COPROCESSOR] == at + INTO_GLIBC)
		return true;
	return is_blank(word) && is_address(word[COPROCESSOR]) && word[COPROCESSOR] % 8 == 0;
}

/* The coprocessor's state follows: in a ucontext_t of glibc's, or behind the signal's information, aligned. */
static bool is_kept_in_place(mw_addr at, const uint64_t *words, size_t count, size_t i)
{
	return count - i <= COPROCESSOR || words[i + COPROCESSOR] - at < IN_FRAME;
}

/* Of a ucontext_t, uc_stack comes right before the 16 general registers that the program counter follows. */
static bool kept_altstack(const uint64_t below[MW_KEPT_BELOW], mw_addr *start, uint64_t *size)
{
	const uint64_t *stack = &below[MW_KEPT_BELOW - 19];

	*start = stack[0];
	*size = stack[2];
	/* In a frame that is partly overwritten there may be anything; without a stack (SS_DISABLE) there is nothing.
	 */
	return !((uint32_t)stack[1] & ~ON_STACK) && is_address(*start) && *size > 0 && *size <= ALTSTACK_MOST;
}

/* --- the calling convention -------------------------------------------------------------------------------- */

static uint64_t argument(const struct mw_regs *regs, unsigned index)
{
	static const uint8_t order[] = {MW_X86_RDI, MW_X86_RSI, MW_X86_RDX, MW_X86_RCX, MW_X86_R8, MW_X86_R8 + 1};

	return index < sizeof(order) ? regs->gpr[order[index]] : 0;
}

static uint64_t result(const struct mw_regs *regs)
{
	return regs->gpr[MW_X86_RAX];
}

static void leave(struct mw_regs *regs, mw_addr ret, uint64_t value)
{
	regs->gpr[MW_X86_RAX] = value;
	regs->gpr[MW_X86_RSP] += 8;
	regs->pc = ret;
}

static void spare(struct mw_regs *regs, uint64_t first, uint64_t second)
{
	regs->gpr[MW_X86_RCX] = first;
	regs->gpr[MW_X86_R8 + 3] = second; /* r11 */
}

/* --- what stands around a return address ---------------------------------------------------------------- */

#define CALL_SHORTEST 2 /* call rax */
#define CALL_LONGEST  7 /* call [rax + rax + disp32] */

/* The length of the instruction `ff /2` that starts at `code`, without prefixes; 0 where it is another. */
static size_t indirect_call_length(const uint8_t *code, size_t size)
{
	uint8_t mod, rm;
	size_t length = 2;

	if (size < 2 || code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return 0;
	mod = code[1] >> 6;
	rm = code[1] & 7;
	if (mod == 3)
		return length;
	if (rm == 4) {
		if (size < 3)
			return 0;
		length++;
		if (mod == 0 && (code[2] & 7) == 5)
			length += 4;
	} else if (mod == 0 && rm == 5) {
		length += 4;
	}
	if (mod == 1)
		length += 1;
	else if (mod == 2)
		length += 4;
	return length;
}

/* Prefixes (REX, bnd, notrack) may stand before what is found here: they change nothing of its length. */
static bool is_call_before(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size;

	if (size >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t length = CALL_SHORTEST; length <= CALL_LONGEST && length <= size; length++) {
		if (indirect_call_length(end - length, length) == length)
			return true;
	}
	return false;
}

/* mov $15,%rax (in 7 bytes or in 5); syscall: rt_sigreturn, in every C library. */
static bool is_signal_return(const uint8_t *bytes, size_t size)
{
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return (size >= sizeof(wide) && memcmp(bytes, wide, sizeof(wide)) == 0) ||
	       (size >= sizeof(narrow) && memcmp(bytes, narrow, sizeof(narrow)) == 0);
}

static size_t call_target(const uint8_t *bytes, size_t size, mw_addr base, size_t from, mw_addr *target)
{
	for (size_t at = from; at + 5 <= size; at++) {
		int64_t displacement;

		if (bytes[at] != 0xe8)
			continue;
		displacement = mw_x86_displacement(bytes + at + 1);
		if (displacement == 0) /* to have the pc on the stack */
			continue;
		*target = base + at + 5 + (uint64_t)displacement;
		return at + 1;
	}
	return size;
}

static mw_addr leads_to(const uint8_t *bytes, size_t size, mw_addr pc)
{
	struct mw_x86_insn insn;

	if (!mw_x86_decode(bytes, size, pc, &insn))
		return 0;
	if (insn.id == X86_INS_NOP)
		return pc + insn.length;
	return insn.id == X86_INS_JMP && insn.x86.operands[0].type == X86_OP_IMM ? (mw_addr)insn.x86.operands[0].imm
										 : 0;
}

/* --- what a function's code does, and a quick look for code that may do it ------------------------------------ */

static void look_at_branch(mw_addr target, const struct mw_code_wanted *wanted, struct mw_code_seen *seen)
{
	for (size_t i = 0; i < wanted->callee_count; i++)
		if (target == wanted->callees[i]) {
			seen->calls++;
			break;
		}
	if (target >= wanted->target_start && target < wanted->target_end)
		seen->branches++;
}

static void look_at(const struct mw_x86_insn *insn, mw_addr next, const struct mw_code_wanted *wanted,
		    struct mw_code_seen *seen)
{
	const cs_x86_op *first = &insn->x86.operands[0], *second = &insn->x86.operands[1];

	if (insn->x86.op_count == 1 && first->type == X86_OP_IMM &&
	    (mw_x86_in_group(insn, X86_GRP_JUMP) || mw_x86_in_group(insn, X86_GRP_CALL)))
		look_at_branch((mw_addr)first->imm, wanted, seen);
	if (insn->x86.op_count != 2)
		return;
	if (insn->id == X86_INS_LEA && wanted->data && second->mem.base == X86_REG_RIP &&
	    next + (uint64_t)second->mem.disp == wanted->data)
		seen->data++;
	if (insn->id == X86_INS_MOV && first->type == X86_OP_MEM && first->size == 1 &&
	    first->mem.segment == X86_REG_FS && second->type == X86_OP_IMM && second->imm == 1)
		seen->flags++;
}

static bool inspect(const uint8_t *bytes, size_t size, mw_addr base, const struct mw_code_wanted *wanted,
		    struct mw_code_seen *seen)
{
	size_t at = 0;

	*seen = (struct mw_code_seen){0};
	while (at < size) {
		struct mw_x86_insn insn;

		if (!mw_x86_decode(bytes + at, size - at, base + at, &insn))
			return false;
		at += insn.length;
		look_at(&insn, base + at, wanted, seen);
	}
	return true;
}

/* Bytes before and behind a place that the looks_like functions read. */
#define BEFORE 3
#define BEHIND 4

/* Where the 32-bit displacement at `at`, the end of its instruction, leads to. */
static mw_addr displaced(const uint8_t *at, mw_addr addr)
{
	return addr + sizeof(int32_t) + (uint64_t)mw_x86_displacement(at);
}

static bool looks_like_data(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	/* lea displacement(%rip), %reg: REX.W 8d 00reg101 */
	return (at[-1] & 0xc7) == 0x05 && at[-2] == 0x8d && (at[-3] & 0xfb) == 0x48 &&
	       displaced(at, addr) == wanted->data;
}

static bool looks_like_branch(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	mw_addr target;

	if (at[-1] != 0xe9 && !(at[-2] == 0x0f && (at[-1] & 0xf0) == 0x80)) /* jmp, jcc */
		return false;
	target = displaced(at, addr);
	return target >= wanted->target_start && target < wanted->target_end;
}

static bool looks_like_flag(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted)
{
	(void)addr;
	(void)wanted;
	/* movb $imm, %fs:…: 64 [41] c6 */
	return at[0] == 0xc6 && (at[-1] == 0x64 || (at[-1] == 0x41 && at[-2] == 0x64));
}

static size_t search(const uint8_t *bytes, size_t size, mw_addr base, size_t from, enum mw_code_deed deed,
		     const struct mw_code_wanted *wanted)
{
	static bool (*const looks_like[])(const uint8_t *at, mw_addr addr, const struct mw_code_wanted *wanted) = {
		[MW_CODE_TAKES_DATA] = looks_like_data,
		[MW_CODE_BRANCHES] = looks_like_branch,
		[MW_CODE_SETS_FLAG] = looks_like_flag,
	};

	if (size < BEFORE + BEHIND)
		return size;
	for (size_t at = from < BEFORE ? BEFORE : from; at <= size - BEHIND; at++)
		if (looks_like[deed](bytes + at, base + at, wanted))
			return at;
	return size;
}

/* --- where code sets its signal mask ------------------------------------------------------------------------ */

/*
 * To a constant in memory, or to one that it has in itself:
 *
 *      lea  set(%rip), %rsi                movabs $set, %rax           stored where %rsi points to
 *      mov  $14, %eax                      mov  $14, %eax              rt_sigprocmask
 *      syscall                             syscall
 *
 * The first two lines in any order, with others between.
 */
#define AROUND      64 /* bytes */
#define CONSTANT    2  /* bytes before the constant of movabs */
#define LIBRARY_OWN (UINT64_C(7) << 31)

static const uint8_t set_mask[] = {0xb8, 0x0e, 0x00, 0x00, 0x00};

/* The next place, `from` or behind, that loads the number and has a system call, *syscall, soon behind it; or NULL. */
static const uint8_t *find_set_mask(const uint8_t *bytes, size_t size, size_t from, const uint8_t **syscall)
{
	static const uint8_t insn[] = {0x0f, 0x05};

	while (from < size) {
		const uint8_t *at = memmem(bytes + from, size - from, set_mask, sizeof(set_mask));

		if (!at)
			break;
		from = (size_t)(at - bytes) + sizeof(set_mask);
		*syscall = memmem(bytes + from, size - from < AROUND ? size - from : AROUND, insn, sizeof(insn));
		if (*syscall)
			return at;
	}
	return NULL;
}

static size_t mask_set(const uint8_t *bytes, size_t size, mw_addr base, size_t from, size_t *operand, mw_addr *set)
{
	static const uint8_t load[] = {0x48, 0x8d, 0x35};
	const uint8_t *at, *syscall;

	while ((at = find_set_mask(bytes, size, from, &syscall))) {
		const uint8_t *begin = at - bytes > AROUND ? at - AROUND : bytes, *lea, *found = NULL;

		from = (size_t)(at - bytes) + sizeof(set_mask);
		/* The nearest before the call is the one. */
		for (; (lea = memmem(begin, (size_t)(syscall - begin), load, sizeof(load))); begin = lea + 1)
			found = lea;
		if (!found || (size_t)(syscall - found) < sizeof(load) + sizeof(int32_t))
			continue;
		*operand = (size_t)(found - bytes) + sizeof(load);
		*set = displaced(bytes + *operand, base + *operand);
		return from;
	}
	return size;
}

/* A constant that holds all signals but those that the C library keeps for itself, at the last of its loads. */
static const uint8_t *last_load(const uint8_t *begin, const uint8_t *end)
{
	const uint8_t *found = NULL;
	uint64_t set;

	for (const uint8_t *at = begin; end - at >= (ptrdiff_t)(CONSTANT + sizeof(set)); at++) {
		if ((at[0] != 0x48 && at[0] != 0x49) || at[1] < 0xb8 || at[1] > 0xbf)
			continue;
		memcpy(&set, at + CONSTANT, sizeof(set));
		if ((set | LIBRARY_OWN) == UINT64_MAX)
			found = at;
	}
	return found;
}

static size_t mask_constant(const uint8_t *bytes, size_t size, size_t from, size_t *operand)
{
	const uint8_t *at, *syscall;

	while ((at = find_set_mask(bytes, size, from, &syscall))) {
		const uint8_t *found = last_load(at - bytes > AROUND ? at - AROUND : bytes, at);

		from = (size_t)(at - bytes) + sizeof(set_mask);
		if (!found)
			continue;
		*operand = (size_t)(found - bytes) + CONSTANT;
		return from;
	}
	return size;
}

/* --- where code sets a signal's action -------------------------------------------------------------------- */

/*
 *      mov  $13, %eax      or push $13; pop %rax: rt_sigaction
 *      …                   the arguments, no branches
 *      syscall
 *
 * … and how it is made elsewhere, where nothing stands between. A thread that stands before the syscall may make it.
 *
 *      before                  after                   trampoline
 *      mov  $13, %eax          jmp  trampoline         mov  $13, %eax
 *      syscall                 syscall                 lea  next(%rip), %rcx
 *  next:                    next:                      jmp  act
 */
#define MOST 10 /* instructions between */

#define NUMBER 13

static const uint8_t move[] = {0xb8, NUMBER, 0x00, 0x00, 0x00};
static const uint8_t push[] = {0x6a, NUMBER, 0x58};

/* Behind the instructions that load the number, one byte of which is at `at`; 0: there are none. */
static size_t behind_number(const uint8_t *bytes, size_t size, size_t at)
{
	if (at == 0)
		return 0;
	at--;
	if (size - at >= sizeof(move) && memcmp(bytes + at, move, sizeof(move)) == 0)
		return at + sizeof(move);
	return size - at >= sizeof(push) && memcmp(bytes + at, push, sizeof(push)) == 0 ? at + sizeof(push) : 0;
}

static bool is_branch(const struct mw_x86_insn *insn)
{
	return mw_x86_in_group(insn, X86_GRP_JUMP) || mw_x86_in_group(insn, X86_GRP_CALL) ||
	       mw_x86_in_group(insn, X86_GRP_RET) || mw_x86_in_group(insn, X86_GRP_INT);
}

/* The system call behind `at`, or 0. */
static size_t find_call(const uint8_t *bytes, size_t size, size_t at)
{
	struct mw_x86_insn next;

	for (unsigned i = 0; i < MOST && at < size; i++, at += next.length) {
		if (!mw_x86_decode(bytes + at, size - at, at, &next))
			return 0;
		if (next.id == X86_INS_SYSCALL)
			return at;
		if (is_branch(&next))
			return 0;
	}
	return 0;
}

static size_t action_call(const uint8_t *bytes, size_t size, size_t from, size_t *insn)
{
	const uint8_t *number;

	for (; from < size && (number = memchr(bytes + from, NUMBER, size - from)); from++) {
		size_t behind, call;

		from = (size_t)(number - bytes);
		behind = behind_number(bytes, size, from);
		call = behind ? find_call(bytes, size, behind) : 0;
		if (!call)
			continue;
		*insn = call;
		return call + 1;
	}
	return size;
}

static bool put_distance(uint8_t *to, mw_addr target, mw_addr end)
{
	int64_t far = (int64_t)(target - end);
	int32_t distance = (int32_t)far;

	memcpy(to, &distance, sizeof(distance));
	return far == distance;
}

static bool action_jump(const uint8_t before[MW_ACTION_JUMP], mw_addr insn, mw_addr trampoline_at, mw_addr act,
			uint8_t jump[MW_ACTION_JUMP], uint8_t trampoline[MW_ACTION_TRAMPOLINE])
{
	uint8_t *at = trampoline + sizeof(move);

	if (memcmp(before, move, sizeof(move)) != 0)
		return false;
	jump[0] = 0xe9;
	memset(trampoline, 0xcc, MW_ACTION_TRAMPOLINE);
	memcpy(trampoline, move, sizeof(move));
	memcpy(at, "\x48\x8d\x0d", 3);
	at[7] = 0xe9;
	return put_distance(jump + 1, trampoline_at, insn) &&
	       put_distance(at + 3, insn + 2, trampoline_at + sizeof(move) + 7) &&
	       put_distance(at + 8, act, trampoline_at + sizeof(move) + 12);
}

/* --------------------------------------------------------------------------------------------------------- */

/* What 32 bits of displacement reach from anywhere in a trampoline, and from anywhere in the instructions it is made
 * for. */
#define TRAMPOLINE_REACH ((UINT64_C(1) << 31) - 4096)

const struct mw_arch mw_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.breakpoint = {0xcc},
	.breakpoint_length = 1,
	.breakpoint_advance = 1,
	.dwarf_sp = MW_X86_RSP,
	.dwarf_fp = MW_X86_RBP,
	.argument = argument,
	.result = result,
	.leave = leave,
	.plan = mw_x86_plan,
	.emulate = mw_x86_emulate,
	.memory_address = mw_x86_memory_address,
	.relocate = mw_x86_relocate,
	.ways_out = mw_x86_ways_out,
	.frame_at = mw_x86_frame_at,
	.call_target = call_target,
	.leads_to = leads_to,
	.is_signal_return = is_signal_return,
	.is_kept_pc = is_kept_pc,
	.is_kept_in_place = is_kept_in_place,
	.is_interrupted_pc = is_interrupted_pc,
	.kept_altstack = kept_altstack,
	.is_call_before = is_call_before,
	.inspect = inspect,
	.mask_set = mask_set,
	.mask_constant = mask_constant,
	.action_call = action_call,
	.action_jump = action_jump,
	.spare = spare,
	.search = search,
	.detour = mw_x86_detour,
	.trampoline = mw_x86_trampoline,
	.detour_jump = mw_x86_detour_jump,
	.trampoline_reach = TRAMPOLINE_REACH,
};
