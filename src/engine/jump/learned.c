// SPDX-License-Identifier: MIT
/*
 * learned.c: code that nothing describes, and where all walks end (jump.h, memwatch/ring.h).
 *
 * Such a walk takes the slow road each time, to be told the same: where a thread begins in code without frame
 * descriptions, or C is called by code that changes stacks in its own way. What memwatch's walk finds there once, the
 * recorder's finds by itself from then on. A target can't make this more than MW_RING_LEARNED words, nor tell anything
 * that its files' code does not.
 */
#include "engine/jump/jump.h"

static uint64_t *published(const struct jump_process *process)
{
	return (uint64_t *)(void *)(process->shared.base + process->shared.geometry.learned);
}

static void new_generation(struct jump_process *process)
{
	__atomic_add_fetch(&jump_control(&process->shared)->generation, 1, __ATOMIC_RELEASE);
}

static bool is_known(const struct jump_process *process, mw_addr pc)
{
	for (uint32_t i = 0; i < process->learned_count; i++)
		if ((process->learned[i].word & ~MW_RING_LEARNED_LOST) == pc)
			return true;
	return false;
}

void jump_learn(struct jump_process *process, mw_addr pc, bool lost)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, pc - 1);
	struct jump_learned learned = {.word = pc | (lost ? MW_RING_LEARNED_LOST : 0)};

	if (!module || pc & MW_RING_LEARNED_LOST || process->learned_count == MW_RING_LEARNED || is_known(process, pc))
		return;
	learned.module = module->number;
	__atomic_store_n(&published(process)[process->learned_count], learned.word, __ATOMIC_RELAXED);
	process->learned[process->learned_count++] = learned;
	__atomic_store_n(&jump_control(&process->shared)->learned_count, process->learned_count, __ATOMIC_RELEASE);
	new_generation(process);
}

void jump_learned_tidy(struct jump_process *process)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < process->learned_count; i++)
		if (!mw_modules_get(process->survey.modules, process->learned[i].module)->gone)
			process->learned[kept++] = process->learned[i];
	if (kept == process->learned_count)
		return;
	process->learned_count = kept;
	/* Each word by itself is true, or of code that is no more. */
	for (uint32_t i = 0; i < kept; i++)
		__atomic_store_n(&published(process)[i], process->learned[i].word, __ATOMIC_RELAXED);
	__atomic_store_n(&jump_control(&process->shared)->learned_count, kept, __ATOMIC_RELEASE);
}
