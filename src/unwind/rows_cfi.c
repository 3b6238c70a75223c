// SPDX-License-Identifier: MIT
/* rows_cfi.c: runs a frame description's program (rows_cfi.h). */
#include "unwind/rows_cfi.h"

#include <memwatch/ring.h>

#include <dwarf.h>

#define OPERAND_MASK 0x3f /* of instructions that have their first operand in the lower bits */
/* Bytes of a CIE's program; real ones have about five. Descriptions are short, and many may have long CIEs in turn. */
#define INITIAL_LIMIT 128
/* No frame is that large: numbers stay far from overflow. */
#define OFFSET_LIMIT (INT64_C(1) << 40)

static bool set_offset(int64_t *out, int64_t factor, int64_t align)
{
	int64_t value;

	if (__builtin_mul_overflow(factor, align, &value) || value > OFFSET_LIMIT || value < -OFFSET_LIMIT)
		return false;
	*out = value;
	return true;
}

/* An unsigned operand as a signed number; what does not fit is too large anyway. */
static int64_t take_unsigned(struct mw_cursor *program)
{
	uint64_t value = mw_cursor_uleb(program);

	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Where `number`'s rule is kept, or NULL: it is none that matters. */
static struct rows_rule *rule_of(struct rows_run *run, struct rows_rules *rules, uint64_t number)
{
	if (number == run->cie->return_register)
		return &rules->return_address;
	if (number == run->arch->dwarf_sp)
		return &rules->sp;
	return number == run->arch->dwarf_fp ? &rules->fp : NULL;
}

static void set_rule(struct rows_run *run, uint64_t number, enum rows_how how, int64_t n)
{
	struct rows_rule *rule = rule_of(run, &run->rules, number);

	if (rule)
		*rule = (struct rows_rule){how, n};
}

/* A register that is saved, or has its value, some way from the CFA. */
static bool set_from_cfa(struct rows_run *run, uint64_t number, enum rows_how how, int64_t factor)
{
	int64_t n;

	if (!set_offset(&n, factor, run->cie->data_align))
		return false;
	set_rule(run, number, how, n);
	return true;
}

static bool restore(struct rows_run *run, uint64_t number)
{
	struct rows_rule *rule = rule_of(run, &run->rules, number);

	if (!run->initial) /* there is nothing yet to go back to */
		return false;
	if (rule) {
		struct rows_rules initial = *run->initial;

		*rule = *rule_of(run, &initial, number);
	}
	return true;
}

/* An expression of the form register + offset, alone or with its word taken. */
struct simple {
	bool is;
	bool deref;
	uint64_t number;
	int64_t offset;
};

/* The expression that is the next operand. */
static struct simple take_expression(struct rows_run *run)
{
	uint64_t size = mw_cursor_uleb(&run->program);
	struct mw_cursor body = run->program;
	struct simple simple = {0};
	uint8_t op;

	mw_cursor_skip(&run->program, size);
	if (!run->program.ok)
		return simple;
	body.left = size;
	op = (uint8_t)mw_cursor_take(&body, 1);
	simple.number = (uint64_t)op - DW_OP_breg0;
	simple.is = op >= DW_OP_breg0 && op <= DW_OP_breg31 && set_offset(&simple.offset, mw_cursor_sleb(&body), 1);
	if (body.left)
		simple.deref = mw_cursor_take(&body, 1) == DW_OP_deref;
	if (body.left || !body.ok || (!simple.deref && body.vaddr != run->program.vaddr))
		simple.is = false;
	return simple;
}

static void set_expression(struct rows_run *run, bool is_value)
{
	uint64_t number = mw_cursor_uleb(&run->program);
	struct simple simple = take_expression(run);
	enum rows_how how = ROWS_OTHERWISE;

	if (simple.is && !simple.deref && !is_value && simple.number == run->arch->dwarf_fp)
		how = ROWS_AT_FP;
	if (simple.is && !simple.deref && !is_value && simple.number == run->arch->dwarf_sp)
		how = ROWS_AT_SP;
	set_rule(run, number, how, simple.offset);
}

static bool set_cfa(struct rows_run *run, uint64_t number, int64_t factor, int64_t align)
{
	run->rules.cfa = ROWS_CFA_REGISTER;
	run->rules.cfa_register = number;
	return set_offset(&run->rules.cfa_offset, factor, align);
}

static bool run_cfa(struct rows_run *run, uint8_t op)
{
	struct mw_cursor *program = &run->program;
	struct rows_rules *rules = &run->rules;
	struct simple simple;
	uint64_t number;

	switch (op) {
	case DW_CFA_def_cfa:
		number = mw_cursor_uleb(program);
		return set_cfa(run, number, take_unsigned(program), 1);
	case DW_CFA_def_cfa_sf:
		number = mw_cursor_uleb(program);
		return set_cfa(run, number, mw_cursor_sleb(program), run->cie->data_align);
	case DW_CFA_def_cfa_register: /* these change one half of what must be there */
		return rules->cfa == ROWS_CFA_REGISTER && set_cfa(run, mw_cursor_uleb(program), rules->cfa_offset, 1);
	case DW_CFA_def_cfa_offset:
		return rules->cfa == ROWS_CFA_REGISTER && set_cfa(run, rules->cfa_register, take_unsigned(program), 1);
	case DW_CFA_def_cfa_offset_sf:
		return rules->cfa == ROWS_CFA_REGISTER &&
		       set_cfa(run, rules->cfa_register, mw_cursor_sleb(program), run->cie->data_align);
	case DW_CFA_def_cfa_expression:
		simple = take_expression(run);
		rules->cfa = simple.is && simple.deref ? ROWS_CFA_DEREF : ROWS_CFA_OTHER;
		rules->cfa_register = simple.number;
		rules->cfa_offset = simple.offset;
		return true;
	default:
		return false;
	}
}

static bool run_register(struct rows_run *run, uint8_t op)
{
	struct mw_cursor *program = &run->program;
	uint64_t number = mw_cursor_uleb(program);

	switch (op) {
	case DW_CFA_offset_extended:
		return set_from_cfa(run, number, ROWS_AT_CFA, take_unsigned(program));
	case DW_CFA_offset_extended_sf:
		return set_from_cfa(run, number, ROWS_AT_CFA, mw_cursor_sleb(program));
	case DW_CFA_GNU_negative_offset_extended:
		return set_from_cfa(run, number, ROWS_AT_CFA, -take_unsigned(program));
	case DW_CFA_val_offset:
		return set_from_cfa(run, number, ROWS_IS_CFA, take_unsigned(program));
	case DW_CFA_val_offset_sf:
		return set_from_cfa(run, number, ROWS_IS_CFA, mw_cursor_sleb(program));
	case DW_CFA_restore_extended:
		return restore(run, number);
	case DW_CFA_same_value:
		set_rule(run, number, ROWS_SAME, 0);
		return true;
	case DW_CFA_undefined:
		set_rule(run, number, ROWS_UNDEFINED, 0);
		return true;
	case DW_CFA_register:
		(void)mw_cursor_uleb(program);
		set_rule(run, number, ROWS_OTHERWISE, 0);
		return true;
	default:
		return run_cfa(run, op);
	}
}

/* Instructions without a register. */
static bool run_other(struct rows_run *run, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_GNU_args_size: /* of the caller's arguments; matters to landing pads only */
		(void)mw_cursor_uleb(&run->program);
		return true;
	case DW_CFA_remember_state:
		if (!run->initial || run->depth == ROWS_STATES)
			return false;
		run->remembered[run->depth++] = run->rules;
		return true;
	case DW_CFA_restore_state:
		if (!run->depth)
			return false;
		run->rules = run->remembered[--run->depth];
		return true;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		set_expression(run, op == DW_CFA_val_expression);
		return true;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return run_cfa(run, op);
	default:
		return run_register(run, op);
	}
}

/* Where an instruction moves on to. False where it does not move. */
static bool take_location(struct rows_run *run, uint8_t op, uint64_t *to)
{
	uint64_t delta;

	switch (op) {
	case DW_CFA_set_loc:
		*to = mw_frame_take_pointer(&run->program, run->cie->encoding);
		return true;
	case DW_CFA_advance_loc1:
		delta = mw_cursor_take(&run->program, 1);
		break;
	case DW_CFA_advance_loc2:
		delta = mw_cursor_take(&run->program, 2);
		break;
	case DW_CFA_advance_loc4:
		delta = mw_cursor_take(&run->program, 4);
		break;
	default:
		if ((op & ~OPERAND_MASK) != DW_CFA_advance_loc)
			return false;
		delta = op & OPERAND_MASK;
		break;
	}
	if (__builtin_mul_overflow(delta, run->cie->code_align, &delta) || __builtin_add_overflow(run->pc, delta, to))
		run->program.ok = false;
	return true;
}

/* Run up to where the location moves on (*to), or to the end (UINT64_MAX). */
static bool run_on(struct rows_run *run, uint64_t *to)
{
	struct mw_cursor *program = &run->program;

	while (program->left) {
		uint8_t op = (uint8_t)mw_cursor_take(program, 1), operand = op & OPERAND_MASK;
		bool sense;

		if (take_location(run, op, to)) {
			if (!program->ok || !run->initial || *to < run->pc)
				return false;
			if (*to > run->pc)
				return true;
			continue;
		}
		if (op & DW_CFA_offset)
			sense = op & DW_CFA_advance_loc
					? restore(run, operand)
					: set_from_cfa(run, operand, ROWS_AT_CFA, take_unsigned(program));
		else
			sense = run_other(run, op);
		if (!sense || !program->ok)
			return false;
	}
	*to = UINT64_MAX;
	return true;
}

/* Where a saved register lies from the CFA, if that is known for good. */
static bool place_from_cfa(const struct rows_rule *rule, enum mw_row_kind kind, int64_t cfa_offset, int64_t *at)
{
	bool is = rule->how == ROWS_AT_CFA;

	*at = rule->n;
	if ((rule->how == ROWS_AT_SP && kind == MW_ROW_SP) || (rule->how == ROWS_AT_FP && kind == MW_ROW_FP)) {
		*at -= cfa_offset;
		is = true;
	}
	return is;
}

/* What becomes of the frame pointer. Where it can't be said it counts as lost, which is never wrong. */
static enum mw_row_fp frame_pointer(const struct rows_rules *rules, enum mw_row_kind kind, int16_t *fp_at)
{
	const struct rows_rule *rule = &rules->fp;
	int64_t at = rule->n;

	if (rule->how == ROWS_UNSPECIFIED || rule->how == ROWS_SAME)
		return MW_ROW_FP_SAME;
	if (kind == MW_ROW_FP_DEREF ? rule->how != ROWS_AT_FP : !place_from_cfa(rule, kind, rules->cfa_offset, &at))
		return MW_ROW_FP_LOST;
	if (at != (int16_t)at)
		return MW_ROW_FP_LOST;
	*fp_at = (int16_t)at;
	return MW_ROW_FP_SAVED;
}

static uint64_t row_of(const struct rows_run *run)
{
	const struct rows_rules *rules = &run->rules;
	uint64_t slow = mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0);
	enum mw_row_kind kind = MW_ROW_SLOW;
	int16_t fp_at = 0;
	enum mw_row_fp fp;
	int64_t at;

	if (rules->return_address.how == ROWS_UNDEFINED)
		return mw_row(MW_ROW_END, 0, MW_ROW_FP_SAME, 0);
	if (rules->cfa == ROWS_CFA_REGISTER && rules->cfa_register == run->arch->dwarf_sp)
		kind = MW_ROW_SP;
	else if (rules->cfa == ROWS_CFA_REGISTER && rules->cfa_register == run->arch->dwarf_fp)
		kind = MW_ROW_FP;
	else if (rules->cfa == ROWS_CFA_DEREF && rules->cfa_register == run->arch->dwarf_fp)
		kind = MW_ROW_FP_DEREF;
	if (kind == MW_ROW_SLOW || rules->cfa_offset != (int32_t)rules->cfa_offset)
		return slow;
	if (!place_from_cfa(&rules->return_address, kind, rules->cfa_offset, &at) || at != -(int64_t)sizeof(uint64_t))
		return slow;
	/* The caller's stack pointer is the CFA. */
	if (rules->sp.how != ROWS_UNSPECIFIED && !(rules->sp.how == ROWS_IS_CFA && rules->sp.n == 0))
		return slow;
	fp = frame_pointer(rules, kind, &fp_at);
	return mw_row(kind, (int32_t)rules->cfa_offset, fp, fp_at);
}

bool rows_begin(const struct mw_frame_cie *cie, const struct mw_arch *arch, struct rows_rules *initial)
{
	struct rows_run run = {.arch = arch, .cie = cie, .program = cie->program};
	uint64_t to;

	if (cie->signal || cie->strange || cie->program.left > INITIAL_LIMIT ||
	    cie->return_register == arch->dwarf_sp || cie->return_register == arch->dwarf_fp || !run_on(&run, &to))
		return false;
	*initial = run.rules;
	return true;
}

void rows_start(struct rows_run *run, const struct mw_frame_cie *cie, const struct mw_arch *arch,
		const struct rows_rules *initial, const struct mw_frame_description *description)
{
	/* What is remembered is written before it is read. */
	run->arch = arch;
	run->cie = cie;
	run->initial = initial;
	run->program = description->program;
	run->pc = description->start;
	run->rules = *initial;
	run->depth = 0;
}

bool rows_step(struct rows_run *run, uint64_t *row, uint64_t *end)
{
	if (!run_on(run, end))
		return false;
	*row = row_of(run);
	run->pc = *end;
	return true;
}
