/* SPDX-License-Identifier: MIT */
/*
 * registers [ROUNDS]: an allocator that writes down every register as it finds them, called with patterns in all of
 * them. What is between the caller and the allocator must change nothing on the way in but the stack pointer, and
 * nothing on the way out that the ABI has a caller rely on.
 *
 * Its functions are mimalloc's by name, begin with instructions relative to their own place, and allocate from static
 * memory.
 */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, FLAGS, SP, GENERAL };

/* What the assembly below knows by its offsets. */
struct registers {
	uint64_t general[GENERAL];
	uint32_t mxcsr, control;
	uint8_t vector[16][16];
};

_Static_assert(sizeof(struct registers) == 17 * 8 + 8 + 256, "as the assembly has it");

#define FLAG_BITS 0x8d5u /* carry, parity, adjust, zero, sign, overflow */
#define DIRECTION 0x400u

extern HIDDEN struct registers registers_before, registers_seen, registers_after;
struct registers registers_before, registers_seen, registers_after;
extern HIDDEN char registers_memory[1 << 20];
char registers_memory[1 << 20] __attribute__((aligned(64)));
extern HIDDEN uint64_t registers_top;
uint64_t registers_top;

void *mi_malloc(size_t size);
void *mi_calloc(size_t count, size_t size);
void *mi_realloc(void *block, size_t size);
void mi_free(void *block);
/* Call with all registers as in registers_before; registers_after is what they are then. */
HIDDEN void registers_call(void *function);

__asm__(".macro store where\n"
	"	mov %rax, \\where+0(%rip)\n"
	"	mov %rbx, \\where+8(%rip)\n"
	"	mov %rcx, \\where+16(%rip)\n"
	"	mov %rdx, \\where+24(%rip)\n"
	"	mov %rsi, \\where+32(%rip)\n"
	"	mov %rdi, \\where+40(%rip)\n"
	"	mov %rbp, \\where+48(%rip)\n"
	"	mov %r8, \\where+56(%rip)\n"
	"	mov %r9, \\where+64(%rip)\n"
	"	mov %r10, \\where+72(%rip)\n"
	"	mov %r11, \\where+80(%rip)\n"
	"	mov %r12, \\where+88(%rip)\n"
	"	mov %r13, \\where+96(%rip)\n"
	"	mov %r14, \\where+104(%rip)\n"
	"	mov %r15, \\where+112(%rip)\n"
	"	mov %rsp, \\where+128(%rip)\n"
	"	pushfq\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	popq \\where+120(%rip)\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	stmxcsr \\where+136(%rip)\n"
	"	fnstcw \\where+140(%rip)\n"
	"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, \\where+144+16*\\n(%rip)\n"
	"	.endr\n"
	".endm\n"
	".macro load where\n"
	"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups \\where+144+16*\\n(%rip), %xmm\\n\n"
	"	.endr\n"
	"	fldcw \\where+140(%rip)\n"
	"	ldmxcsr \\where+136(%rip)\n"
	"	pushq \\where+120(%rip)\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	popfq\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov \\where+0(%rip), %rax\n"
	"	mov \\where+8(%rip), %rbx\n"
	"	mov \\where+16(%rip), %rcx\n"
	"	mov \\where+24(%rip), %rdx\n"
	"	mov \\where+32(%rip), %rsi\n"
	"	mov \\where+40(%rip), %rdi\n"
	"	mov \\where+48(%rip), %rbp\n"
	"	mov \\where+56(%rip), %r8\n"
	"	mov \\where+64(%rip), %r9\n"
	"	mov \\where+72(%rip), %r10\n"
	"	mov \\where+80(%rip), %r11\n"
	"	mov \\where+88(%rip), %r12\n"
	"	mov \\where+96(%rip), %r13\n"
	"	mov \\where+104(%rip), %r14\n"
	"	mov \\where+112(%rip), %r15\n"
	".endm\n"
	/* An allocator: everything that a function may change is changed. rdx is what rdi was, turned over. */
	".macro allocator name\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"	.balign 16\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	store registers_seen\n"
	"	mov %rdi, %rdx\n"
	"	not %rdx\n"
	"	mov registers_top(%rip), %rcx\n"
	"	addq $64, registers_top(%rip)\n"
	"	and $0xfffff, %ecx\n"
	"	lea registers_memory(%rip), %rax\n"
	"	add %rcx, %rax\n"
	"	.irp r, rcx,rsi,rdi,r8,r9,r10,r11\n"
	"	mov $0x5a5a5a5a, %\\r\n"
	"	.endr\n"
	"	pcmpeqd %xmm7, %xmm7\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size \\name, . - \\name\n"
	".endm\n"
	"	.text\n"
	"	allocator mi_malloc\n"
	"	allocator mi_calloc\n"
	"	allocator mi_realloc\n"
	"	.globl mi_free\n"
	"	.type mi_free, @function\n"
	"	.balign 16\n"
	"mi_free:\n"
	"	.cfi_startproc\n"
	"	store registers_seen\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mi_free, . - mi_free\n"
	"	.globl registers_call\n"
	"	.hidden registers_call\n"
	"	.type registers_call, @function\n"
	"registers_call:\n"
	"	.cfi_startproc\n"
	"	.irp r, rbx,rbp,r12,r13,r14,r15\n"
	"	push %\\r\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.endr\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	load registers_before\n"
	"	call *(%rsp)\n"
	"	store registers_after\n"
	"	cld\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.irp r, r15,r14,r13,r12,rbp,rbx\n"
	"	pop %\\r\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.endr\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size registers_call, . - registers_call\n");

static uint64_t state = 1, flags_changed, scratch_changed;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void expect(bool good, const char *what)
{
	if (!good)
		target_fail(what);
}

static void check_entry(void)
{
	static const char *const names[] = {
		"rax at entry",
		"rbx at entry",
		"rcx at entry",
		"rdx at entry",
		"rsi at entry",
		"rdi at entry",
		"rbp at entry",
		"r8 at entry",
		"r9 at entry",
		"r10 at entry",
		"",
		"r12 at entry",
		"r13 at entry",
		"r14 at entry",
		"r15 at entry",
	};
	const uint64_t *before = registers_before.general, *seen = registers_seen.general;

	for (int i = RAX; i <= R15; i++)
		if (i != R11)
			expect(before[i] == seen[i], names[i]);
	expect(seen[SP] % 16 == 8, "the stack's alignment at entry");
	expect(!(seen[FLAGS] & DIRECTION), "the direction flag at entry");
	expect(registers_before.mxcsr == registers_seen.mxcsr, "mxcsr at entry");
	expect(registers_before.control == registers_seen.control, "the x87 control word at entry");
	expect(memcmp(registers_before.vector, registers_seen.vector, sizeof(registers_seen.vector)) == 0,
	       "vector registers at entry");
	/* Nobody may rely on these across a call; they are told. */
	flags_changed += ((before[FLAGS] ^ seen[FLAGS]) & FLAG_BITS) != 0;
	scratch_changed += before[R11] != seen[R11];
}

static void check_return(uint64_t sp, bool gives)
{
	static const int kept[] = {RBX, RBP, R12, R13, R14, R15};
	const uint64_t *after = registers_after.general;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		expect(registers_before.general[kept[i]] == after[kept[i]], "a register that calls keep, at return");
	expect(after[SP] == sp, "the stack pointer at return");
	expect(!(after[FLAGS] & DIRECTION), "the direction flag at return");
	expect(registers_before.mxcsr == registers_after.mxcsr, "mxcsr at return");
	expect(registers_before.control == registers_after.control, "the x87 control word at return");
	if (gives) {
		expect(after[RAX] == (uintptr_t)registers_memory + (registers_top - 64) % sizeof(registers_memory),
		       "the result");
		expect(after[RDX] == ~registers_before.general[RDI], "the result's second half");
		expect(registers_after.vector[7][3] == 0xff, "a vector register at return");
	}
}

static void fill(uint64_t rdi, uint64_t rsi)
{
	for (int i = RAX; i <= R15; i++)
		registers_before.general[i] = draw();
	registers_before.general[RDI] = rdi;
	registers_before.general[RSI] = rsi;
	registers_before.general[FLAGS] = 0x202 | (draw() & FLAG_BITS);
	registers_before.mxcsr = 0x1f80 | (uint32_t)(draw() & 0x603f); /* rounding, exceptions seen */
	registers_before.control = 0x37f & ~(uint32_t)(draw() & 0x300);
	for (size_t i = 0; i < sizeof(registers_before.vector); i++)
		((uint8_t *)registers_before.vector)[i] = (uint8_t)(draw() >> 20);
}

static KEEP uint64_t registers_do(void *function, uint64_t rdi, uint64_t rsi, bool gives)
{
	static uint64_t sp;

	fill(rdi, rsi);
	registers_call(function);
	check_entry();
	if (!sp)
		sp = registers_after.general[SP];
	check_return(sp, gives);
	return registers_after.general[RAX];
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 3000;
	union {
		void *(*allocate)(size_t);
		void *(*allocate_many)(size_t, size_t);
		void *(*change)(void *, size_t);
		void (*release)(void *);
		void *pointer;
	} malloc_at = {.allocate = mi_malloc}, calloc_at = {.allocate_many = mi_calloc},
	  realloc_at = {.change = mi_realloc}, free_at = {.release = mi_free};

	target_ready();
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t block = registers_do(malloc_at.pointer, 40, draw(), true);
		uint64_t other = registers_do(calloc_at.pointer, 3, 7, true);

		registers_do(free_at.pointer, other, draw(), false);
		other = registers_do(realloc_at.pointer, block, 50, true);
		if (i % 10)
			registers_do(free_at.pointer, other, draw(), false);
	}
	target_say("api.mi_malloc.count", rounds);
	target_say("api.mi_malloc.bytes", rounds * 40);
	target_say("api.mi_calloc.count", rounds);
	target_say("api.mi_calloc.bytes", rounds * 21);
	target_say("api.mi_realloc.count", rounds);
	target_say("api.mi_realloc.bytes", rounds * 50);
	target_say("heap.impacting.count", (rounds + 9) / 10);
	target_say("heap.impacting.bytes", (rounds + 9) / 10 * 50);
	target_say("flags_changed", flags_changed);
	target_say("r11_changed", scratch_changed);
	target_done();
	return 0;
}
