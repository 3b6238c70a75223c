// SPDX-License-Identifier: MIT
/* altstacks.c: asking each thread for its alternate signal stack (altstacks.h). */
#include "tracee/altstacks.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "proc/maps.h"
#include "proc/status.h"
#include "tracee/inject.h"
#include "tracee/quiesce.h"
#include "tracee/seccomp_policy.h"

#include <signal.h>
#include <stdlib.h>

/* What is needed to ask. */
struct asking {
	struct mw_altstacks *out;
	struct mw_maps maps;
	struct mw_inject inject;
	struct mw_seccomp_policy policy;
};

static void asking_deinit(struct asking *asking)
{
	mw_maps_deinit(&asking->maps);
	mw_seccomp_policy_deinit(&asking->policy);
}

/* One that stands. */
static struct mw_error *ask(struct asking *asking, const struct mw_quiet_thread *thread, bool *asked)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(MW_CALL_BIT(SIGALTSTACK));
	const uint64_t arguments[6] = {0};
	struct mw_altstacks *out = asking->out;
	struct mw_permit permit;
	stack_t stack = {.ss_flags = SS_DISABLE};
	int64_t result = -1;

	*asked = false;
	if (!mw_quiet_thread_can_call(thread))
		return NULL;
	MW_TRY(mw_seccomp_policy_look(&asking->policy, thread->tid, false, &permit));
	mw_inject_use(&asking->inject, thread->tid, &asking->maps);
	if (!mw_permit_suits(&permit, &need) || !mw_inject_leads_back(&asking->inject))
		return NULL;
	MW_TRY(mw_inject_call_with(&asking->inject, SYS_sigaltstack, arguments, 1, &stack, sizeof(stack), &result));
	*asked = result == 0;
	if (!*asked || (stack.ss_flags & SS_DISABLE) || !stack.ss_sp)
		return NULL;
	if (!MW_VECTOR_ROOM(out->items, out->count, out->capacity))
		return mw_error_nomem();
	out->items[out->count++] = (struct mw_altstack){thread->tid, (mw_addr)(uintptr_t)stack.ss_sp, stack.ss_size};
	return NULL;
}

static struct mw_error *ask_all(struct asking *asking, const struct mw_quiesce *quiesce)
{
	asking->out->complete = true;
	MW_EACH(thread, quiesce->threads, quiesce->count) {
		bool asked = false;
		struct mw_error *err = ask(asking, thread, &asked);

		if (!err || mw_error_kind(err) != MW_ERROR_GONE)
			asking->out->complete = asking->out->complete && asked;
		MW_TRY(mw_error_unless_gone(err));
	}
	return NULL;
}

struct mw_error *mw_altstacks_read(pid_t pid, struct mw_altstacks *out)
{
	MW_CLEANUP(asking_deinit) struct asking asking = {.out = out};
	struct mw_quiesce quiesce = {0};
	pid_t tid = mw_live_thread(pid);
	struct mw_error *err;

	mw_seccomp_prepare(pid);
	MW_TRY(mw_error_unless_gone(mw_maps_read(tid, &asking.maps)));
	MW_TRY(mw_error_unless_gone(mw_inject_find_code(&asking.inject, tid, &asking.maps)));
	err = mw_quiesce_begin(&quiesce, pid);
	if (!err)
		err = ask_all(&asking, &quiesce);
	err = mw_error_first(err, mw_quiesce_end(&quiesce));
	out->stood_ns = quiesce.stood_ns;
	mw_quiesce_deinit(&quiesce);
	return mw_error_unless_gone(err);
}

void mw_altstacks_deinit(struct mw_altstacks *altstacks)
{
	free(altstacks->items);
	*altstacks = (struct mw_altstacks){0};
}
