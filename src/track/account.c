// SPDX-License-Identifier: MIT
/* account.c: counting by kind, stack and thread (account.h). */
#include "track/account.h"

#include "track/state.h"

struct mw_error *mw_account_stack(struct mw_track *track, enum mw_kind kind, uint32_t stack, uint32_t *out)
{
	if (stack == MW_STACK_NONE) {
		struct mw_raw_stack none = {NULL, 0, MW_STACK_BROKEN, UINT32_MAX, kind};

		return mw_stack_table_intern(&track->stacks, &none, out);
	}
	*out = stack;
	return NULL;
}

/* Bytes of a stack are about to change. Those of kinds are followed with every moment (track.c). */
static inline struct mw_error *follow(struct mw_track *track, struct mw_tally *stack)
{
	return mw_series_follow(&stack->series, &track->clock, stack->impacting.bytes);
}

struct mw_error *mw_account_add(struct mw_track *track, const struct mw_account *account, uint64_t bytes,
				uint64_t time_ns)
{
	struct mw_tally *total = &track->totals[account->kind];
	struct mw_tally *stack = &mw_stack_table_at(&track->stacks, account->stack)->tally;
	struct mw_error *err = follow(track, stack);

	mw_tally_add(total, bytes, time_ns);
	mw_tally_add(stack, bytes, time_ns);
	if (account->kind != MW_KIND_VM_INTERNAL) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, account->thread);

		thread->impacting.count++;
		thread->impacting.bytes += bytes;
	}
	return err;
}

static bool is_older(const struct mw_account *account)
{
	return __builtin_expect((account->thread & MW_THREAD_OLDER) != 0, 0);
}

static struct mw_error *release(struct mw_track *track, const struct mw_account *account, uint64_t count,
				uint64_t bytes)
{
	struct mw_tally *total = &track->totals[account->kind];
	struct mw_tally *stack = &mw_stack_table_at(&track->stacks, account->stack)->tally;
	struct mw_error *err;

	if (is_older(account)) {
		mw_amount_release(&total->aofo, &total->aofi, count, bytes);
		mw_amount_release(&stack->aofo, &stack->aofi, count, bytes);
		return NULL;
	}
	err = follow(track, stack);
	mw_amount_release(&total->impacting, &total->transient, count, bytes);
	mw_amount_release(&stack->impacting, &stack->transient, count, bytes);
	if (account->kind != MW_KIND_VM_INTERNAL) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, account->thread);

		mw_amount_release(&thread->impacting, &thread->transient, count, bytes);
	}
	return err;
}

struct mw_error *mw_account_shrink(struct mw_track *track, const struct mw_account *account, uint64_t bytes)
{
	return release(track, account, 0, bytes);
}

struct mw_error *mw_account_end(struct mw_track *track, const struct mw_account *account, uint64_t bytes,
				uint64_t born_ns, uint64_t died_ns)
{
	struct mw_stack_record *stack = mw_stack_table_at(&track->stacks, account->stack);
	struct mw_error *err = release(track, account, 1, bytes);

	if (is_older(account))
		return err;
	return mw_track_first_error(err,
				    mw_histogram_add(&stack->lifetimes, died_ns > born_ns ? died_ns - born_ns : 0, 1));
}

struct mw_error *mw_account_aofi(struct mw_track *track, enum mw_kind kind, uint32_t stack, uint64_t bytes)
{
	MW_TRY(mw_account_stack(track, kind, stack, &stack));
	mw_tally_aofi(&track->totals[kind], bytes);
	mw_tally_aofi(&mw_stack_table_at(&track->stacks, stack)->tally, bytes);
	return NULL;
}
