// SPDX-License-Identifier: MIT
/* rows.c: frame descriptions, each run step by step, compiled to rows (rows.h). */
#include "unwind/rows.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vector.h"
#include "symbol/frames.h"
#include "unwind/go_rows.h"

#include <memwatch/ring.h>

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define OPERAND_MASK 0x3f /* of instructions that have their first operand in the lower bits */
/* Bytes of a CIE's program; real ones have about five. Descriptions are short, and many may have long CIEs in turn. */
#define INITIAL_LIMIT 128
/* No frame is that large: numbers stay far from overflow. */
#define OFFSET_LIMIT (INT64_C(1) << 40)
#define MAX_STATES   8 /* DW_CFA_remember_state in each other; compilers need one */

#define ROW_NONE mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0)
#define ROW_SLOW mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0)

enum cfa {
	CFA_UNSET,
	CFA_REGISTER, /* register + offset */
	CFA_DEREF,    /* word at register + offset */
	CFA_OTHER,
};

enum how {
	RULE_UNSPECIFIED,
	RULE_SAME,
	RULE_UNDEFINED,
	RULE_AT_CFA, /* saved at CFA + n */
	RULE_IS_CFA, /* is CFA + n */
	RULE_AT_SP,  /* saved at stack pointer + n */
	RULE_AT_FP,  /* saved at frame pointer + n */
	RULE_OTHERWISE,
};

struct rule {
	enum how how;
	int64_t n;
};

/* What is known at one place of a function. */
struct rules {
	enum cfa cfa;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct rule fp, sp, return_address;
};

/* A program being run. */
struct run {
	const struct mw_arch *arch;
	const struct mw_frame_cie *cie;
	const struct rules *initial; /* NULL: it is these that are being made */
	struct mw_cursor program;
	uint64_t pc;
	struct rules rules;
	struct rules remembered[MAX_STATES];
	unsigned depth;
};

/* --- running a description's program ---------------------------------------------------------------------- */

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
static struct rule *rule_of(struct run *run, struct rules *rules, uint64_t number)
{
	if (number == run->cie->return_register)
		return &rules->return_address;
	if (number == run->arch->dwarf_sp)
		return &rules->sp;
	return number == run->arch->dwarf_fp ? &rules->fp : NULL;
}

static void set_rule(struct run *run, uint64_t number, enum how how, int64_t n)
{
	struct rule *rule = rule_of(run, &run->rules, number);

	if (rule)
		*rule = (struct rule){how, n};
}

/* A register that is saved, or has its value, some way from the CFA. */
static bool set_from_cfa(struct run *run, uint64_t number, enum how how, int64_t factor)
{
	int64_t n;

	if (!set_offset(&n, factor, run->cie->data_align))
		return false;
	set_rule(run, number, how, n);
	return true;
}

static bool restore(struct run *run, uint64_t number)
{
	struct rule *rule = rule_of(run, &run->rules, number);

	if (!run->initial) /* there is nothing yet to go back to */
		return false;
	if (rule) {
		struct rules initial = *run->initial;

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
static struct simple take_expression(struct run *run)
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

static void set_expression(struct run *run, bool is_value)
{
	uint64_t number = mw_cursor_uleb(&run->program);
	struct simple simple = take_expression(run);
	enum how how = RULE_OTHERWISE;

	if (simple.is && !simple.deref && !is_value && simple.number == run->arch->dwarf_fp)
		how = RULE_AT_FP;
	if (simple.is && !simple.deref && !is_value && simple.number == run->arch->dwarf_sp)
		how = RULE_AT_SP;
	set_rule(run, number, how, simple.offset);
}

static bool set_cfa(struct run *run, uint64_t number, int64_t factor, int64_t align)
{
	run->rules.cfa = CFA_REGISTER;
	run->rules.cfa_register = number;
	return set_offset(&run->rules.cfa_offset, factor, align);
}

/* Instructions with a register. */
static bool run_register(struct run *run, uint8_t op)
{
	struct mw_cursor *program = &run->program;
	uint64_t number = mw_cursor_uleb(program);

	switch (op) {
	case DW_CFA_offset_extended:
		return set_from_cfa(run, number, RULE_AT_CFA, take_unsigned(program));
	case DW_CFA_offset_extended_sf:
		return set_from_cfa(run, number, RULE_AT_CFA, mw_cursor_sleb(program));
	case DW_CFA_GNU_negative_offset_extended:
		return set_from_cfa(run, number, RULE_AT_CFA, -take_unsigned(program));
	case DW_CFA_val_offset:
		return set_from_cfa(run, number, RULE_IS_CFA, take_unsigned(program));
	case DW_CFA_val_offset_sf:
		return set_from_cfa(run, number, RULE_IS_CFA, mw_cursor_sleb(program));
	case DW_CFA_restore_extended:
		return restore(run, number);
	case DW_CFA_same_value:
		set_rule(run, number, RULE_SAME, 0);
		return true;
	case DW_CFA_undefined:
		set_rule(run, number, RULE_UNDEFINED, 0);
		return true;
	case DW_CFA_register:
		(void)mw_cursor_uleb(program);
		set_rule(run, number, RULE_OTHERWISE, 0);
		return true;
	default:
		return false;
	}
}

static bool run_cfa(struct run *run, uint8_t op)
{
	struct mw_cursor *program = &run->program;
	struct rules *rules = &run->rules;
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
		return rules->cfa == CFA_REGISTER && set_cfa(run, mw_cursor_uleb(program), rules->cfa_offset, 1);
	case DW_CFA_def_cfa_offset:
		return rules->cfa == CFA_REGISTER && set_cfa(run, rules->cfa_register, take_unsigned(program), 1);
	case DW_CFA_def_cfa_offset_sf:
		return rules->cfa == CFA_REGISTER &&
		       set_cfa(run, rules->cfa_register, mw_cursor_sleb(program), run->cie->data_align);
	case DW_CFA_def_cfa_expression:
		simple = take_expression(run);
		rules->cfa = simple.is && simple.deref ? CFA_DEREF : CFA_OTHER;
		rules->cfa_register = simple.number;
		rules->cfa_offset = simple.offset;
		return true;
	default:
		return run_register(run, op);
	}
}

/* All instructions but those that are one byte with their operand, or move on. */
static bool run_other(struct run *run, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_GNU_args_size: /* of the caller's arguments; matters to landing pads only */
		(void)mw_cursor_uleb(&run->program);
		return true;
	case DW_CFA_remember_state:
		if (!run->initial || run->depth == MAX_STATES)
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
	default:
		return run_cfa(run, op);
	}
}

/* Where an instruction moves on to. False where it does not move. */
static bool take_location(struct run *run, uint8_t op, uint64_t *to)
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
static bool run_on(struct run *run, uint64_t *to)
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
					: set_from_cfa(run, operand, RULE_AT_CFA, take_unsigned(program));
		else
			sense = run_other(run, op);
		if (!sense || !program->ok)
			return false;
	}
	*to = UINT64_MAX;
	return true;
}

/* Where a saved register lies from the CFA, if that is known for good. */
static bool place_from_cfa(const struct rule *rule, enum mw_row_kind kind, int64_t cfa_offset, int64_t *at)
{
	bool is = rule->how == RULE_AT_CFA;

	*at = rule->n;
	if ((rule->how == RULE_AT_SP && kind == MW_ROW_SP) || (rule->how == RULE_AT_FP && kind == MW_ROW_FP)) {
		*at -= cfa_offset;
		is = true;
	}
	return is;
}

/* What becomes of the frame pointer. Where it can't be said it counts as lost, which is never wrong. */
static enum mw_row_fp frame_pointer(const struct rules *rules, enum mw_row_kind kind, int16_t *fp_at)
{
	const struct rule *rule = &rules->fp;
	int64_t at = rule->n;

	if (rule->how == RULE_UNSPECIFIED || rule->how == RULE_SAME)
		return MW_ROW_FP_SAME;
	if (kind == MW_ROW_FP_DEREF ? rule->how != RULE_AT_FP : !place_from_cfa(rule, kind, rules->cfa_offset, &at))
		return MW_ROW_FP_LOST;
	if (at != (int16_t)at)
		return MW_ROW_FP_LOST;
	*fp_at = (int16_t)at;
	return MW_ROW_FP_SAVED;
}

static uint64_t row_of(const struct run *run)
{
	const struct rules *rules = &run->rules;
	enum mw_row_kind kind = MW_ROW_SLOW;
	int16_t fp_at = 0;
	enum mw_row_fp fp;
	int64_t at;

	if (rules->return_address.how == RULE_UNDEFINED)
		return mw_row(MW_ROW_END, 0, MW_ROW_FP_SAME, 0);
	if (rules->cfa == CFA_REGISTER && rules->cfa_register == run->arch->dwarf_sp)
		kind = MW_ROW_SP;
	else if (rules->cfa == CFA_REGISTER && rules->cfa_register == run->arch->dwarf_fp)
		kind = MW_ROW_FP;
	else if (rules->cfa == CFA_DEREF && rules->cfa_register == run->arch->dwarf_fp)
		kind = MW_ROW_FP_DEREF;
	if (kind == MW_ROW_SLOW || rules->cfa_offset != (int32_t)rules->cfa_offset)
		return ROW_SLOW;
	if (!place_from_cfa(&rules->return_address, kind, rules->cfa_offset, &at) || at != -(int64_t)sizeof(uint64_t))
		return ROW_SLOW;
	/* The caller's stack pointer is the CFA. */
	if (rules->sp.how != RULE_UNSPECIFIED && !(rules->sp.how == RULE_IS_CFA && rules->sp.n == 0))
		return ROW_SLOW;
	fp = frame_pointer(rules, kind, &fp_at);
	return mw_row(kind, (int32_t)rules->cfa_offset, fp, fp_at);
}

/* The rules that descriptions with that CIE begin with. False where they make no sense, or can't be said in rows. */
static bool begin_rules(const struct mw_frame_cie *cie, const struct mw_arch *arch, struct rules *initial)
{
	struct run run = {.arch = arch, .cie = cie, .program = cie->program};
	uint64_t to;

	if (cie->signal || cie->strange || cie->program.left > INITIAL_LIMIT ||
	    cie->return_register == arch->dwarf_sp || cie->return_register == arch->dwarf_fp || !run_on(&run, &to))
		return false;
	*initial = run.rules;
	return true;
}

static void start_run(struct run *run, const struct mw_frame_cie *cie, const struct mw_arch *arch,
		      const struct rules *initial, const struct mw_frame_description *description)
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

/* The row from where the last one ended (at first, the description's beginning) to *end, which is UINT64_MAX for the
 * last. False where the program is invalid. */
static bool step_run(struct run *run, uint64_t *row, uint64_t *end)
{
	if (!run_on(run, end))
		return false;
	*row = row_of(run);
	run->pc = *end;
	return true;
}

/* --- rows ------------------------------------------------------------------------------------------------ */

static uint32_t hash_of_row(const void *rows, uint32_t index)
{
	return (uint32_t)mw_hash_mix(((const uint64_t *)rows)[index]);
}

struct mw_error *mw_row_dictionary_add(struct mw_row_dictionary *dictionary, uint64_t row, uint32_t *index)
{
	uint32_t hash = hash_of_row(&row, 0), found;

	MW_INDEX_EACH(&dictionary->index, hash, found) {
		if (dictionary->rows[found] == row) {
			*index = found;
			return NULL;
		}
	}
	if (!mw_index_reserve(&dictionary->index, hash_of_row, dictionary->rows) ||
	    !MW_VECTOR_ROOM(dictionary->rows, dictionary->index.count, dictionary->capacity))
		return mw_error_nomem();
	*index = mw_index_put(&dictionary->index, hash);
	dictionary->rows[*index] = row;
	return NULL;
}

void mw_row_dictionary_deinit(struct mw_row_dictionary *dictionary)
{
	free(dictionary->rows);
	mw_index_deinit(&dictionary->index);
	*dictionary = (struct mw_row_dictionary){0};
}

/* Rows being made of one section's descriptions. */
struct maker {
	const struct mw_frame_bytes *bytes;
	const struct mw_arch *arch;
	struct mw_row_dictionary *dictionary;
	struct mw_rows rows;
	size_t capacity;
	uint64_t end; /* of the code that there are rows for */

	/* The description that rows were made of last. */
	struct mw_described last;
	struct mw_frame_cie last_cie;
	struct mw_cursor last_program;

	struct mw_frame_cie cie; /* of the description at hand */
	uint64_t initial_of;     /* where the CIE begins that `initial` and `initial_good` are of; UINT64_MAX: none */
	struct rules initial;
	bool initial_good;
	struct run run;
};

/* From vaddr on it is this row. Equal ones that follow each other are one. */
static struct mw_error *push(struct maker *maker, uint64_t vaddr, uint32_t row)
{
	struct mw_rows *rows = &maker->rows;

	if (rows->count && rows->items[rows->count - 1].row == row)
		return NULL;
	if (!MW_VECTOR_ROOM(rows->items, rows->count, maker->capacity))
		return mw_error_nomem();
	rows->items[rows->count++] = (struct mw_ring_row){(uint32_t)(vaddr - rows->base), row};
	return NULL;
}

static struct mw_error *push_row(struct maker *maker, uint64_t vaddr, uint64_t row)
{
	uint32_t index = 0;

	MW_TRY(mw_row_dictionary_add(maker->dictionary, row, &index));
	return push(maker, vaddr, index);
}

/* Take back all that was said of `from` and what follows, and say that rows can't tell. */
static struct mw_error *make_slow(struct maker *maker, uint64_t from, uint64_t end)
{
	struct mw_rows *rows = &maker->rows;

	while (rows->count && rows->items[rows->count - 1].pc >= from - rows->base)
		rows->count--;
	if (end > maker->end)
		maker->end = end;
	rows->slow++;
	return push_row(maker, from, ROW_SLOW);
}

/* The rules that the CIE at hand begins with, or NULL. They are made once for the descriptions in a row that share it.
 */
static const struct rules *initial_rules(struct maker *maker)
{
	if (maker->initial_of != maker->cie.vaddr) {
		maker->initial_of = maker->cie.vaddr;
		maker->initial_good = begin_rules(&maker->cie, maker->arch, &maker->initial);
	}
	return maker->initial_good ? &maker->initial : NULL;
}

static struct mw_error *run_program(struct maker *maker, const struct mw_described *described,
				    const struct mw_frame_description *description)
{
	const struct rules *initial = initial_rules(maker);
	uint64_t at = described->start, row, next;
	bool slow = false;

	maker->end = described->end;
	if (!initial && maker->cie.signal)
		return push_row(maker, at, mw_row(MW_ROW_SIGNAL, 0, MW_ROW_FP_SAME, 0));
	if (!initial)
		return make_slow(maker, at, maker->end);
	start_run(&maker->run, &maker->cie, maker->arch, initial, description);
	for (; at < described->end; at = next) {
		if (!step_run(&maker->run, &row, &next))
			return make_slow(maker, described->start, maker->end);
		slow = slow || mw_row_kind(row) == MW_ROW_SLOW;
		MW_TRY(push_row(maker, at, row));
	}
	maker->rows.slow += slow;
	return NULL;
}

/* The same once more, as linkers leave it that have folded equal functions into one. */
static bool is_last_again(const struct maker *maker, const struct mw_described *described,
			  const struct mw_frame_description *description)
{
	return described->start == maker->last.start && described->end == maker->last.end &&
	       maker->cie.vaddr == maker->last_cie.vaddr && description->program.left == maker->last_program.left &&
	       memcmp(description->program.at, maker->last_program.at, maker->last_program.left) == 0;
}

static struct mw_error *make_function(struct maker *maker, const struct mw_described *described)
{
	struct mw_frame_description description;

	if (!mw_frame_describe(maker->bytes, described->record, &maker->cie, &description))
		return NULL; /* it could be read when it was listed */
	if (maker->rows.functions && is_last_again(maker, described, &description))
		return NULL;
	maker->last = *described;
	maker->last_cie = maker->cie;
	maker->last_program = description.program;
	/* Two descriptions of the same code: which of them is true can't be known. */
	maker->rows.functions++;
	if (described->start < maker->end)
		return make_slow(maker, described->start, described->end);
	if (maker->rows.count && described->start > maker->end)
		MW_TRY(push_row(maker, maker->end, ROW_NONE));
	return run_program(maker, described, &description);
}

/* Rows of all that is listed of a section. *rows has a base; on failure it has what there is by then. */
static struct mw_error *make_rows(const struct mw_described_list *list, const struct mw_arch *arch,
				  struct mw_row_dictionary *dictionary, struct mw_rows *rows)
{
	struct maker maker = {
		.bytes = &list->bytes,
		.arch = arch,
		.dictionary = dictionary,
		.rows = *rows,
		.initial_of = UINT64_MAX,
	};
	struct mw_error *err = NULL;

	for (size_t i = 0; i < list->count && !err; i++)
		err = make_function(&maker, &list->items[i]);
	if (!err && maker.rows.count)
		err = push_row(&maker, maker.end, ROW_NONE);
	*rows = maker.rows;
	return err;
}

/* Rows of `rows`, and of `more` where these have MW_ROW_NONE. Both have the same base. */
static struct mw_error *merge(struct mw_rows *rows, const struct mw_rows *more, uint32_t none)
{
	struct maker maker = {.rows.base = rows->base};
	uint32_t row[2] = {none, none};
	size_t i = 0, j = 0;
	struct mw_error *err = NULL;

	while (!err && (i < rows->count || j < more->count)) {
		uint32_t pc = UINT32_MAX;

		if (i < rows->count)
			pc = rows->items[i].pc;
		if (j < more->count && more->items[j].pc < pc)
			pc = more->items[j].pc;
		if (i < rows->count && rows->items[i].pc == pc)
			row[0] = rows->items[i++].row;
		if (j < more->count && more->items[j].pc == pc)
			row[1] = more->items[j++].row;
		err = push(&maker, rows->base + pc, row[0] != none ? row[0] : row[1]);
	}
	if (err) {
		mw_rows_deinit(&maker.rows);
		return err;
	}
	free(rows->items);
	rows->items = maker.rows.items;
	rows->count = maker.rows.count;
	rows->functions += more->functions;
	rows->slow += more->slow;
	return NULL;
}

/* Leave out what ends where 32 bits from `base` don't reach. */
static void cut_list(struct mw_described_list *list, uint64_t base)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].end - base <= UINT32_MAX)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* Take out what there are rows for already. */
static void drop_known(struct mw_described_list *list, const struct mw_rows *rows,
		       const struct mw_row_dictionary *dictionary)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (mw_row_kind(mw_rows_find(rows, dictionary, list->items[i].start)) == MW_ROW_NONE ||
		    mw_row_kind(mw_rows_find(rows, dictionary, list->items[i].end - 1)) == MW_ROW_NONE)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* `go`: NULL, or the table of a Go program, of which nothing has a .debug_frame that is true. */
static struct mw_error *make_all(struct mw_described_code *code, const struct mw_go_table *go,
				 const struct mw_arch *arch, struct mw_row_dictionary *dictionary, struct mw_rows *rows)
{
	struct mw_described_list *eh = &code->eh, *debug = &code->debug;
	struct mw_rows more = {0};
	struct mw_error *err;
	uint32_t none;

	rows->base = eh->count ? eh->items[0].start : UINT64_MAX;
	if (debug->count && debug->items[0].start < rows->base)
		rows->base = debug->items[0].start;
	if (go && go->text < rows->base)
		rows->base = go->text;
	more.base = rows->base;
	cut_list(eh, rows->base);
	cut_list(debug, rows->base);
	MW_TRY(mw_row_dictionary_add(dictionary, ROW_NONE, &none));
	MW_TRY(make_rows(eh, arch, dictionary, rows));
	drop_known(debug, rows, dictionary);
	if (go)
		err = mw_go_rows(go, dictionary, &more);
	else if (debug->count)
		err = make_rows(debug, arch, dictionary, &more);
	else
		return NULL;
	if (!err)
		err = merge(rows, &more, none);
	mw_rows_deinit(&more);
	return err;
}

struct mw_error *mw_rows_compile(const struct mw_elf *elf, enum mw_rows_of of, const struct mw_arch *arch,
				 struct mw_row_dictionary *dictionary, struct mw_rows *out)
{
	MW_CLEANUP(mw_described_deinit) struct mw_described_code code;
	struct mw_rows rows = {0};
	struct mw_go_table go;
	bool is_go = mw_go_table_init(&go, elf);
	struct mw_error *err = mw_described_init(&code, elf, of == MW_ROWS_OF_DEBUG_FRAME);

	if (!err && (code.eh.count || code.debug.count || is_go))
		err = make_all(&code, is_go ? &go : NULL, arch, dictionary, &rows);
	if (err)
		mw_rows_deinit(&rows);
	else
		*out = rows;
	return err;
}

/* Bytes of what is listed, each once. */
static uint64_t described_bytes(const struct mw_described_list *list)
{
	uint64_t bytes = 0, end = 0;

	MW_EACH(item, list->items, list->count) {
		uint64_t from = item->start > end ? item->start : end;

		if (item->end <= from)
			continue;
		bytes += item->end - from;
		end = item->end;
	}
	return bytes;
}

struct mw_error *mw_rows_undescribed(const struct mw_elf *elf, uint64_t *code, uint64_t *undescribed)
{
	MW_CLEANUP(mw_described_deinit) struct mw_described_code lists;
	uint64_t described, by_debug;
	struct mw_go_table go;

	MW_TRY(mw_described_init(&lists, elf, false));
	*code = mw_elf_code_size(elf);
	/* A file has one or the other for most of its code. */
	described = described_bytes(&lists.eh);
	by_debug = described_bytes(&lists.debug);
	if (by_debug > described)
		described = by_debug;
	if (mw_go_table_init(&go, elf))
		described += mw_go_code_size(&go);
	*undescribed = *code > described ? *code - described : 0;
	return NULL;
}

void mw_rows_deinit(struct mw_rows *rows)
{
	free(rows->items);
	*rows = (struct mw_rows){0};
}

uint64_t mw_rows_find(const struct mw_rows *rows, const struct mw_row_dictionary *dictionary, uint64_t vaddr)
{
	size_t low = 0, high = rows->count;

	if (vaddr < rows->base || vaddr - rows->base > UINT32_MAX)
		return ROW_NONE;
	while (low < high) { /* the first row that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (rows->items[middle].pc <= vaddr - rows->base)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? dictionary->rows[rows->items[low - 1].row] : ROW_NONE;
}
