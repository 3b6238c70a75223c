// SPDX-License-Identifier: MIT
#include "rig.h"

#include <stdlib.h>
#include <string.h>

struct rig rig;
struct mw_stub_saved rig_saved;
struct mw_stub_context mw_stub_context;
const char mw_stub_returned[64] __attribute__((aligned(64))) = {0};

static __thread struct rig_thread *own;

uint64_t fake_ticks(void)
{
	void (*hook)(void) = rig.on_ticks;

	if (hook && rig.on_ticks_after-- == 0) {
		rig.on_ticks = NULL;
		hook();
	}
	return __atomic_add_fetch(&rig.ticks, 10, __ATOMIC_RELAXED);
}

void fake_pause(void)
{
	__atomic_add_fetch(&rig.pauses, 1, __ATOMIC_RELAXED);
	if (rig.on_pause)
		rig.on_pause();
}

uint64_t fake_thread_pointer(void)
{
	return rig_tp(own ? own : rig.thread);
}

struct rig_thread *rig_thread_new(uint32_t tid)
{
	struct rig_thread *thread = aligned_alloc(64, sizeof(*thread));

	memset(thread, 0, sizeof(*thread));
	thread->tid_word[1] = tid;
	return thread;
}

void rig_thread_free(struct rig_thread *thread)
{
	free(thread);
}

void rig_be(struct rig_thread *thread)
{
	own = thread;
}

static void add_hook(uint32_t number, uint8_t role, uint8_t flags, uint8_t pointer, uint8_t count, uint8_t argument)
{
	mw_stub_context.hooks[number] = (struct mw_stub_hook){.original = 0xabc000 + number,
							      .role = role,
							      .flags = flags,
							      .pointer = pointer,
							      .count = count,
							      .argument = argument};
}

static void add_hooks(void)
{
	const uint8_t no = MW_STUB_NO_ARG, heap = MW_STUB_IS_HEAP;

	add_hook(HOOK_MALLOC, STUB_ROLE_MALLOC, heap, no, no, 0);
	add_hook(HOOK_CALLOC, STUB_ROLE_CALLOC, heap, no, 0, 1);
	add_hook(HOOK_REALLOC, STUB_ROLE_REALLOC, heap, 0, no, 1);
	add_hook(HOOK_REALLOCARRAY, STUB_ROLE_REALLOCARRAY, heap, 0, 1, 2);
	add_hook(HOOK_FREE, STUB_ROLE_FREE, heap, 0, no, no);
	add_hook(HOOK_MEMALIGN, STUB_ROLE_POSIX_MEMALIGN, heap, 0, no, 2);
	add_hook(HOOK_RESIZE, STUB_ROLE_RESIZE, heap, 0, no, 1);
	add_hook(HOOK_MMAP, STUB_ROLE_MMAP, 0, no, no, 1);
	add_hook(HOOK_MUNMAP, STUB_ROLE_MUNMAP, 0, no, no, 1);
	add_hook(HOOK_MREMAP, STUB_ROLE_MREMAP, 0, no, no, 1);
	add_hook(HOOK_BRK, STUB_ROLE_BRK, 0, no, no, no);
	add_hook(HOOK_SBRK, STUB_ROLE_SBRK, 0, no, no, no);
	add_hook(HOOK_STRDUP, STUB_ROLE_MALLOC, heap, no, no, no);
	add_hook(HOOK_LOADER, MW_STUB_LOADER, 0, no, no, no);
	add_hook(HOOK_EXIT, MW_STUB_EXIT, 0, no, no, no);
	add_hook(HOOK_SILENT, STUB_ROLE_MALLOC, heap | MW_STUB_UNTRACKED, no, no, 0);
}

static void add_code(void)
{
	const enum mw_row_fp same = MW_ROW_FP_SAME, saved = MW_ROW_FP_SAVED;
	const struct {
		uint32_t start;
		uint64_t row;
	} code[] = {
		{CODE_SP, mw_row(MW_ROW_SP, 16, same, 0)},
		{CODE_END, mw_row(MW_ROW_END, 0, same, 0)},
		{CODE_SIGNAL, mw_row(MW_ROW_SIGNAL, 0, same, 0)},
		{CODE_SLOW, mw_row(MW_ROW_SLOW, 0, same, 0)},
		{CODE_FOREIGN, mw_row(MW_ROW_FOREIGN, 0, same, 0)},
		{CODE_FP, mw_row(MW_ROW_FP, 16, saved, -16)},
		{CODE_DEREF, mw_row(MW_ROW_FP_DEREF, -8, saved, 0)},
		{CODE_SAVED, mw_row(MW_ROW_SP, 32, saved, -16)},
		{CODE_LOST, mw_row(MW_ROW_SP, 16, MW_ROW_FP_LOST, 0)},
		{CODE_UP, mw_row(MW_ROW_SP, -16, same, 0)},
		{CODE_CALLED, mw_row_generated()},
		{CODE_ASK, mw_row(MW_ROW_ASK, 0, MW_ROW_FP_LOST, 0)},
		{CODE_READ, mw_row(MW_ROW_INTERPRETED, 0, saved, 0)},
		{CODE_DEOPT, mw_row(MW_ROW_DEOPTIMIZED, 32, saved, 8)},
	};

	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		shared_code(&rig.shared, code[i].start, code[i].start + 0x1000, code[i].row);
}

int rig_setup_with(const struct shared_plan *plan)
{
	memset(&rig, 0, sizeof(rig));
	memset(&mw_stub_context, 0, sizeof(mw_stub_context));
	shared_create(&rig.shared, plan);
	rig.guard = 1;
	rig.ticks = 1000;
	rig.thread = rig_thread_new(4711);
	mw_stub_context.guard = (uint64_t)(uintptr_t)&rig.guard;
	mw_stub_context.shared = (uint64_t)(uintptr_t)rig.shared.control;
	mw_stub_context.cookie = UINT64_C(0xfeedfacecafebeef);
	mw_stub_context.tid_offset = offsetof(struct rig_thread, tid_word[1]);
	mw_stub_context.filter = mw_stub_context.shared + rig.shared.filter;
	mw_stub_context.hook_count = MW_STUB_MAX_HOOKS;
	rig.shared.control->heartbeat = 1000;
	add_hooks();
	add_code();
	/* As at attach. */
	struct mw_ring_slot *slot = shared_slot(&rig.shared, mw_ring_slot_first(rig_tp(rig.thread), plan->slots));

	slot->owner = rig_tp(rig.thread);
	slot->tid = 4711;
	slot->regions[0].low = (uint64_t)(uintptr_t)rig.thread->stack | MW_RING_REGION_OWN;
	slot->regions[0].high = (uint64_t)(uintptr_t)&rig.thread->stack[STACK_WORDS];
	return 0;
}

int rig_setup(void **state)
{
	const struct shared_plan plan = SHARED_DEFAULT;

	(void)state;
	return rig_setup_with(&plan);
}

int rig_teardown(void **state)
{
	(void)state;
	rig_thread_free(rig.thread);
	shared_destroy(&rig.shared);
	return 0;
}

struct mw_stub_call *rig_frames(unsigned at, const uint64_t *pcs, unsigned count)
{
	uint64_t *words = &rig.thread->stack[at];

	for (unsigned i = 0; i < count; i++)
		words[9 + 2 * i] = pcs[i];
	return (struct mw_stub_call *)(void *)words;
}

struct mw_stub_call *rig_stack(unsigned at, unsigned count)
{
	uint64_t pcs[256];

	for (unsigned i = 0; i < count; i++)
		pcs[i] = CODE_SP + 0x10 + i;
	pcs[count] = CODE_END + 1;
	return rig_frames(at, pcs, count + 1);
}

unsigned rig_enter(struct mw_stub_call *call, uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct mw_stub_saved saved = {.gpr[5] = a, .gpr[4] = b, .gpr[1] = c, .gpr[2] = d};
	unsigned answer;

	for (unsigned i = 10; i < 16; i++)
		saved.gpr[i] = 0xf00 + i;
	saved.gpr[CPU_FP] = rig_saved.gpr[CPU_FP];
	call->hook = hook;
	answer = mw_stub_enter(&saved, call);
	assert_int_equal(call->original, 0xabc000 + hook);
	return answer;
}

struct mw_stub_call *rig_call(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct mw_stub_call *call = rig_stack(STACK_WORDS - 200, 3);

	assert_int_equal(rig_enter(call, hook, a, b, c, d), MW_STUB_WRAP);
	return call;
}

struct mw_ring_slot *rig_slot(void)
{
	struct mw_ring_slot *slot = shared_slot_of(&rig.shared, rig_tp(rig.thread));

	assert_non_null(slot);
	return slot;
}

struct shared_record *rig_record(void)
{
	static struct shared_record record;

	return shared_next(&rig.shared, rig_slot(), &record) ? &record : NULL;
}

struct shared_record *rig_event(void)
{
	struct shared_record *record;

	do
		record = rig_record();
	while (record && (record->type == MW_RING_THREAD || record->type == MW_RING_STACK));
	return record;
}

void rig_expect(uint32_t type, uint64_t addr, uint64_t size)
{
	struct shared_record *record = rig_event();

	assert_non_null(record);
	assert_int_equal(record->type, type);
	assert_int_equal(record->addr, addr);
	assert_int_equal(record->size, size);
}

void rig_expect_none(void)
{
	assert_null(rig_event());
	assert_int_equal(rig_slot()->inside, 0);
	assert_int_equal(rig_slot()->pending >> 48, 0);
}
