// SPDX-License-Identifier: MIT
/* memo.c: walks that are known already (mw_unwinder_memo in unwind.h). */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

#define SETS  1024u /* power of two */
#define WAYS  4u
#define READS 768u /* a walk that reads more words is not kept */

struct memo_read {
	mw_addr addr;
	uint64_t value;
};

struct memo_entry {
	uint64_t serial; /* 0: empty */
	mw_addr pc, sp;
	uint32_t capacity, count, read_count, registers_used;
	enum mw_stack_cut cut;
	uint64_t gpr[MW_REG_COUNT]; /* those of registers_used */
	struct memo_read *reads;
	struct mw_unwound_frame *frames;
};

struct memo {
	struct mw_unwinder base;
	struct mw_unwinder *inner;
	uint8_t sp;
	uint64_t serials;
	uint32_t victim;
	const struct mw_memory_view *memory; /* of the walk under way */
	struct memo_read reads[READS];
	uint32_t read_count;
	bool too_many;
	struct memo_entry *sets[SETS]; /* of WAYS each; NULL: nothing was kept there */
};

static void forget(struct memo_entry *entry)
{
	free(entry->reads);
	free(entry->frames);
	memset(entry, 0, sizeof(*entry));
}

static bool recording_read(void *context, mw_addr addr, void *out, size_t size)
{
	struct memo *memo = context;
	struct memo_read *read;
	bool got = memo->memory->read(memo->memory->context, addr, out, size);

	/* A failed read is an input as well, one that can't be compared: such a walk is not kept. */
	if (!got || size != sizeof(uint64_t) || memo->read_count == READS) {
		memo->too_many = true;
		return got;
	}
	read = &memo->reads[memo->read_count++];
	read->addr = addr;
	memcpy(&read->value, out, size);
	return true;
}

static bool recording_ends(void *context, mw_addr addr)
{
	struct memo *memo = context;

	/* What is asked so can't be compared either. */
	memo->too_many = true;
	return memo->memory->ends && memo->memory->ends(memo->memory->context, addr);
}

static bool still_true(const struct memo_entry *entry, const struct mw_regs *regs, const struct mw_memory_view *memory)
{
	for (uint32_t mask = entry->registers_used; mask; mask &= mask - 1) {
		unsigned reg = (unsigned)__builtin_ctz(mask);

		if (regs->gpr[reg] != entry->gpr[reg])
			return false;
	}
	for (uint32_t i = 0; i < entry->read_count; i++) {
		uint64_t now;

		if (!memory->read(memory->context, entry->reads[i].addr, &now, sizeof(now)) ||
		    now != entry->reads[i].value)
			return false;
	}
	return true;
}

static uint32_t set_of(mw_addr pc, mw_addr sp)
{
	uint64_t hash = (pc * 0x9e3779b97f4a7c15u) ^ (sp * 0xc2b2ae3d27d4eb4fu);

	return (uint32_t)(hash >> 40) & (SETS - 1);
}

static void keep(struct memo *memo, struct memo_entry *entry, const struct mw_regs *regs,
		 const struct mw_unwound_frame *frames, uint32_t capacity, uint32_t count, enum mw_stack_cut cut)
{
	forget(entry);
	if (memo->too_many)
		return;
	entry->reads = malloc((memo->read_count + 1) * sizeof(*entry->reads));
	entry->frames = malloc((count + 1) * sizeof(*entry->frames));
	if (!entry->reads || !entry->frames) {
		forget(entry);
		return;
	}
	memcpy(entry->reads, memo->reads, memo->read_count * sizeof(*entry->reads));
	memcpy(entry->frames, frames, count * sizeof(*entry->frames));
	memcpy(entry->gpr, regs->gpr, sizeof(entry->gpr));
	entry->registers_used = memo->inner->registers_used & ((1u << MW_REG_COUNT) - 1);
	entry->read_count = memo->read_count;
	entry->pc = regs->pc;
	entry->sp = regs->gpr[memo->sp];
	entry->capacity = capacity;
	entry->count = count;
	entry->cut = cut;
	entry->serial = ++memo->serials;
}

/* The set that a walk from there is kept in; NULL: there is no memory for it. */
static struct memo_entry *set_at(struct memo *memo, mw_addr pc, mw_addr sp)
{
	struct memo_entry **set = &memo->sets[set_of(pc, sp)];

	if (!*set)
		*set = calloc(WAYS, sizeof(**set));
	return *set;
}

static void walk_inner(struct memo *memo, const struct mw_regs *regs, const struct mw_memory_view *memory,
		       struct mw_unwound_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	memo->inner->ops->walk(memo->inner, regs, memory, frames, capacity, count, cut);
	memo->base.registers_used = memo->inner->registers_used;
	memo->base.dead_end = memo->inner->dead_end;
	memo->base.serial = 0;
}

static void memo_walk(struct mw_unwinder *unwinder, const struct mw_regs *regs, const struct mw_memory_view *memory,
		      struct mw_unwound_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	struct memo *memo = (struct memo *)unwinder;
	mw_addr sp = regs->gpr[memo->sp];
	struct memo_entry *set = set_at(memo, regs->pc, sp);
	struct memo_entry *entry = NULL;
	struct mw_memory_view recorder = {.context = memo, .read = recording_read, .ends = recording_ends};

	if (!set) {
		walk_inner(memo, regs, memory, frames, capacity, count, cut);
		return;
	}
	for (uint32_t way = 0; way < WAYS; way++) {
		if (set[way].serial && set[way].pc == regs->pc && set[way].sp == sp && set[way].capacity == capacity &&
		    still_true(&set[way], regs, memory)) {
			memcpy(frames, set[way].frames, set[way].count * sizeof(*frames));
			*count = set[way].count;
			*cut = set[way].cut;
			unwinder->registers_used = set[way].registers_used;
			unwinder->serial = set[way].serial;
			unwinder->dead_end = 0;
			return;
		}
		if (!entry && !set[way].serial)
			entry = &set[way];
	}
	if (!entry)
		entry = &set[memo->victim++ % WAYS];
	memo->memory = memory;
	memo->read_count = 0;
	memo->too_many = false;
	walk_inner(memo, regs, &recorder, frames, capacity, count, cut);
	keep(memo, entry, regs, frames, capacity, *count, *cut);
	unwinder->serial = entry->serial;
}

static bool memo_begins(struct mw_unwinder *unwinder, mw_addr pc, mw_addr inner)
{
	struct memo *memo = (struct memo *)unwinder;

	return memo->inner->ops->begins && memo->inner->ops->begins(memo->inner, pc, inner);
}

static void forget_all(struct memo *memo)
{
	for (uint32_t i = 0; i < SETS; i++) {
		for (uint32_t way = 0; memo->sets[i] && way < WAYS; way++)
			forget(&memo->sets[i][way]);
		free(memo->sets[i]);
		memo->sets[i] = NULL;
	}
}

static void memo_flush(struct mw_unwinder *unwinder)
{
	struct memo *memo = (struct memo *)unwinder;

	forget_all(memo);
	memo->inner->ops->flush(memo->inner);
}

static void memo_destroy(struct mw_unwinder *unwinder)
{
	struct memo *memo = (struct memo *)unwinder;

	forget_all(memo);
	mw_unwinder_destroy(memo->inner);
	free(memo);
}

struct mw_error *mw_unwinder_memo(struct mw_unwinder *inner, const struct mw_arch *arch, struct mw_unwinder **out)
{
	static const struct mw_unwinder_ops ops = {
		.name = "memo", .walk = memo_walk, .begins = memo_begins, .flush = memo_flush, .destroy = memo_destroy};
	struct memo *memo = calloc(1, sizeof(*memo));

	if (!memo) {
		mw_unwinder_destroy(inner);
		return mw_error_nomem();
	}
	memo->base.ops = &ops;
	memo->inner = inner;
	memo->sp = arch->dwarf_sp;
	*out = &memo->base;
	return NULL;
}
