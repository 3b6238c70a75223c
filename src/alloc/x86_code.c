// SPDX-License-Identifier: MIT
/* x86_code.c: one pass over a function with capstone. */
#include "alloc/x86_code.h"

#include <capstone/capstone.h>

/* Functions longer than this are none that anybody asks about. */
#define FUNCTION_LIMIT (64U << 10)

static bool is_branch(const cs_insn *insn)
{
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == CS_GRP_JUMP || insn->detail->groups[i] == CS_GRP_CALL)
			return true;
	return false;
}

static void look_at_branch(uint64_t target, const struct mw_x86_wanted *wanted, struct mw_x86_seen *seen)
{
	for (size_t i = 0; i < wanted->callee_count; i++)
		if (target == wanted->callees[i]) {
			seen->calls++;
			break;
		}
	if (target >= wanted->target.start && target < wanted->target.end)
		seen->branches++;
}

static void look_at(const cs_insn *insn, const struct mw_x86_wanted *wanted, struct mw_x86_seen *seen)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *first = &x86->operands[0], *second = &x86->operands[1];

	if (x86->op_count == 1 && first->type == X86_OP_IMM && is_branch(insn))
		look_at_branch((uint64_t)first->imm, wanted, seen);
	if (x86->op_count != 2)
		return;
	if (insn->id == X86_INS_LEA && wanted->data && second->mem.base == X86_REG_RIP &&
	    insn->address + insn->size + (uint64_t)second->mem.disp == wanted->data)
		seen->data++;
	if (insn->id == X86_INS_MOV && first->type == X86_OP_MEM && first->size == 1 &&
	    first->mem.segment == X86_REG_FS && second->type == X86_OP_IMM && second->imm == 1)
		seen->tls_flags++;
}

bool mw_x86_inspect(const struct mw_elf *elf, struct mw_code_range range, const struct mw_x86_wanted *wanted,
		    struct mw_x86_seen *seen)
{
	size_t available = 0, left;
	const uint8_t *bytes = mw_elf_bytes(elf, range.start, &available);
	uint64_t address = range.start;
	csh handle;
	cs_insn *insn;

	*seen = (struct mw_x86_seen){0};
	if (!bytes || range.end <= range.start || range.end - range.start > FUNCTION_LIMIT ||
	    range.end - range.start > available)
		return false;
	left = (size_t)(range.end - range.start);
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	while (insn && left && cs_disasm_iter(handle, &bytes, &left, &address, insn))
		look_at(insn, wanted, seen);
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return insn && !left;
}
