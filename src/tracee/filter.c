// SPDX-License-Identifier: MIT
/*
 * filter.c: going through a seccomp filter's program (filter.h).
 *
 * Each instruction has the state that it may be reached with: of A, X and the 16 words of memory either the value, or
 * that it is unknown. Where several ways lead to one instruction what they don't agree on is unknown. A branch on
 * something unknown is taken both ways.
 */
#include "tracee/filter.h"

#include "tracee/tracee.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORDS    (sizeof(struct seccomp_data) / sizeof(uint32_t))
#define MEMORY   BPF_MEMWORDS
#define A        MEMORY /* their places among the state's values */
#define X        (MEMORY + 1)
#define VALUES   (MEMORY + 2)
#define SHIFT    31u /* of which the machine takes so much */
#define ANYTHING 0xffu

struct value {
	uint32_t bits;
	bool known;
};

struct state {
	bool reached;
	struct value values[VALUES];
};

/* One going through. */
struct passage {
	const struct sock_filter *code;
	size_t count;
	struct value data[WORDS]; /* struct seccomp_data */
	struct state *states;
	unsigned actions;
};

static unsigned action_of(uint32_t answer)
{
	static const struct {
		uint32_t answer;
		unsigned action;
	} known[] = {
		{SECCOMP_RET_KILL_THREAD, MW_FILTER_KILL_THREAD},
		{SECCOMP_RET_TRAP, MW_FILTER_TRAP},
		{SECCOMP_RET_ERRNO, MW_FILTER_ERRNO},
		{SECCOMP_RET_USER_NOTIF, MW_FILTER_NOTIFY},
		{SECCOMP_RET_TRACE, MW_FILTER_TRACE},
		{SECCOMP_RET_LOG, MW_FILTER_LOG},
		{SECCOMP_RET_ALLOW, MW_FILTER_ALLOW},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((answer & SECCOMP_RET_ACTION_FULL) == known[i].answer)
			return known[i].action;
	return MW_FILTER_KILL_PROCESS;
}

static void put(struct value *data, size_t offset, uint64_t value, bool known)
{
	size_t low = offset / sizeof(uint32_t);
	uint32_t halves[2];

	memcpy(halves, &value, sizeof(value));
	data[low] = (struct value){.bits = halves[0], .known = known};
	data[low + 1] = (struct value){.bits = halves[1], .known = known};
}

static void put_call(struct value *data, const struct mw_filter_call *call)
{
	data[offsetof(struct seccomp_data, nr) / sizeof(uint32_t)] =
		(struct value){.bits = (uint32_t)call->number, .known = true};
	data[offsetof(struct seccomp_data, arch) / sizeof(uint32_t)] = (struct value){
		.bits = mw_target_machine() | (uint32_t)__AUDIT_ARCH_64BIT | (uint32_t)__AUDIT_ARCH_LE, .known = true};
	put(data, offsetof(struct seccomp_data, instruction_pointer), 0, false);
	for (unsigned i = 0; i < 6; i++)
		put(data, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t), call->arguments[i],
		    call->known >> i & 1);
}

/* The instruction at `to` may be reached with this state. */
static void lead_to(struct passage *passage, size_t to, const struct state *with)
{
	struct state *there;

	if (to >= passage->count) {
		passage->actions |= MW_FILTER_KILL_PROCESS;
		return;
	}
	there = &passage->states[to];
	if (!there->reached) {
		*there = *with;
		there->reached = true;
		return;
	}
	for (size_t i = 0; i < VALUES; i++)
		if (!with->values[i].known || with->values[i].bits != there->values[i].bits)
			there->values[i].known = false;
}

/* What an operation gives; *is false where it is none. A division by nothing ends the program. */
static uint32_t compute(uint16_t operation, uint32_t a, uint32_t by, bool *is)
{
	*is = true;
	switch (operation) {
	case BPF_ADD:
		return a + by;
	case BPF_SUB:
		return a - by;
	case BPF_MUL:
		return a * by;
	case BPF_DIV:
		return by ? a / by : 0;
	case BPF_AND:
		return a & by;
	case BPF_OR:
		return a | by;
	case BPF_XOR:
		return a ^ by;
	case BPF_LSH:
		return a << (by & SHIFT);
	case BPF_RSH:
		return a >> (by & SHIFT);
	case BPF_NEG:
		return 0 - a;
	default:
		*is = false;
		return 0;
	}
}

static struct value constant(uint32_t bits)
{
	return (struct value){.bits = bits, .known = true};
}

/* The operand of an operation or a comparison. */
static struct value operand_of(const struct sock_filter *insn, const struct state *state)
{
	return BPF_SRC(insn->code) == BPF_X ? state->values[X] : constant(insn->k);
}

/* Into A or X; false where there is nothing to be loaded. */
static bool load(const struct passage *passage, const struct sock_filter *insn, struct state *state)
{
	struct value *to = &state->values[BPF_CLASS(insn->code) == BPF_LD ? A : X];

	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (insn->k % sizeof(uint32_t) != 0 || insn->k / sizeof(uint32_t) >= WORDS)
			return false;
		*to = passage->data[insn->k / sizeof(uint32_t)];
		return true;
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
		*to = constant(sizeof(struct seccomp_data));
		return true;
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM:
		*to = constant(insn->k);
		return true;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
		if (insn->k >= MEMORY)
			return false;
		*to = state->values[insn->k];
		return true;
	default:
		return false;
	}
}

/* Whether a comparison is true; *known is false where it is none. */
static bool compare(uint16_t operation, uint32_t a, uint32_t with, bool *known)
{
	*known = true;
	switch (operation) {
	case BPF_JEQ:
		return a == with;
	case BPF_JGT:
		return a > with;
	case BPF_JGE:
		return a >= with;
	case BPF_JSET:
		return a & with;
	default:
		*known = false;
		return false;
	}
}

static bool jump(struct passage *passage, size_t at, const struct state *state)
{
	const struct sock_filter *insn = &passage->code[at];
	struct value operand = operand_of(insn, state);
	bool is, comparison, known = operand.known && state->values[A].known;

	if (BPF_OP(insn->code) == BPF_JA) {
		lead_to(passage, at + 1 + insn->k, state);
		return true;
	}
	is = compare(BPF_OP(insn->code), state->values[A].bits, operand.bits, &comparison);
	if (!comparison)
		return false;
	if (!known || is)
		lead_to(passage, at + 1 + insn->jt, state);
	if (!known || !is)
		lead_to(passage, at + 1 + insn->jf, state);
	return true;
}

static void answer(struct passage *passage, const struct sock_filter *insn, const struct state *state)
{
	struct value said = BPF_RVAL(insn->code) == BPF_A ? state->values[A] : constant(insn->k);

	passage->actions |= said.known ? action_of(said.bits) : ANYTHING;
}

/* What is done to the state, by all that neither jumps nor ends. False where it is no instruction. */
static bool change(struct passage *passage, const struct sock_filter *insn, struct state *state)
{
	struct value operand = operand_of(insn, state), *a = &state->values[A];
	bool is;

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
	case BPF_LDX:
		return load(passage, insn, state);
	case BPF_ST:
	case BPF_STX:
		if (insn->k >= MEMORY)
			return false;
		state->values[insn->k] = state->values[BPF_CLASS(insn->code) == BPF_ST ? A : X];
		return true;
	case BPF_ALU:
		if (BPF_OP(insn->code) == BPF_DIV && (!operand.known || operand.bits == 0))
			passage->actions |= MW_FILTER_KILL_THREAD;
		a->bits = compute(BPF_OP(insn->code), a->bits, operand.bits, &is);
		a->known &= operand.known || BPF_OP(insn->code) == BPF_NEG;
		return is;
	case BPF_MISC:
		if (BPF_MISCOP(insn->code) == BPF_TAX)
			state->values[X] = state->values[A];
		else
			state->values[A] = state->values[X];
		return BPF_MISCOP(insn->code) == BPF_TAX || BPF_MISCOP(insn->code) == BPF_TXA;
	default:
		return false;
	}
}

/* Is it sure that the program ends here, as what is divided by is nothing? */
static bool ends_by_division(const struct sock_filter *insn, const struct state *state)
{
	struct value operand = operand_of(insn, state);

	return BPF_CLASS(insn->code) == BPF_ALU && BPF_OP(insn->code) == BPF_DIV && operand.known && operand.bits == 0;
}

static void step(struct passage *passage, size_t at)
{
	const struct sock_filter *insn = &passage->code[at];
	struct state state = passage->states[at];
	bool ends, fine;

	if (BPF_CLASS(insn->code) == BPF_RET) {
		answer(passage, insn, &state);
		return;
	}
	if (BPF_CLASS(insn->code) == BPF_JMP) {
		if (!jump(passage, at, &state))
			passage->actions |= MW_FILTER_KILL_PROCESS;
		return;
	}
	ends = ends_by_division(insn, &state);
	fine = change(passage, insn, &state);
	if (!fine)
		passage->actions |= MW_FILTER_KILL_PROCESS;
	else if (!ends)
		lead_to(passage, at + 1, &state);
}

unsigned mw_filter_actions(const struct sock_filter *code, size_t count, const struct mw_filter_call *call)
{
	struct passage passage = {.code = code, .count = count};

	if (count == 0 || count > MW_FILTER_MAX)
		return MW_FILTER_KILL_PROCESS;
	passage.states = calloc(count, sizeof(*passage.states));
	if (!passage.states)
		return ANYTHING;
	put_call(passage.data, call);
	/* A and X are 0 at the beginning; what is in the memory nobody has said. */
	passage.states[0].reached = true;
	passage.states[0].values[A] = passage.states[0].values[X] = constant(0);
	for (size_t i = 0; i < count; i++)
		if (passage.states[i].reached)
			step(&passage, i);
	free(passage.states);
	return passage.actions;
}

unsigned mw_filter_both(unsigned first, unsigned second)
{
	unsigned actions = 0;

	/* The worse of the two is done: it must be able to meet one that is not worse. */
	for (unsigned action = 1; action <= MW_FILTER_ALLOW; action <<= 1) {
		unsigned no_worse = ANYTHING & ~(action - 1);

		if ((first & action && second & no_worse) || (second & action && first & no_worse))
			actions |= action;
	}
	return actions;
}
