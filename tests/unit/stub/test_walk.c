// SPDX-License-Identifier: MIT
/* Stacks: by rows, by the slow road, within their bounds. */
#include "rig.h"
#include "unit.h"

#include <string.h>

#define BLOCK 0x7f0000001000u
#define AT    (STACK_WORDS - 200)

static uint64_t word_at(unsigned at)
{
	return (uint64_t)(uintptr_t)&rig.thread->stack[at];
}

/* The STACK or SLOW record that a malloc from there tells. */
static struct shared_record *stack_of(struct mw_stub_call *call)
{
	struct shared_record *record;

	assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, BLOCK);
	do
		record = rig_record();
	while (record && record->type != MW_RING_STACK && record->type != MW_RING_SLOW);
	return record;
}

/* As memwatch publishes it. */
static void learn(uint64_t pc, uint64_t row)
{
	struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_cached_row *learned = (void *)((uint8_t *)control + control->learned);
	uint32_t at = mw_ring_learned_first(pc);

	while (learned[at].tag || learned[at].row)
		at = (at + 1) & (MW_RING_LEARNED - 1);
	learned[at] = (struct mw_ring_cached_row){pc ^ row, row};
}

static void rest_is_one_event(void)
{
	rig_expect(MW_RING_ALLOC, BLOCK, 1);
	rig_expect_none();
}

static void expect_frames(struct shared_record *record, uint32_t cut, const uint64_t *pcs, uint32_t count)
{
	assert_non_null(record);
	assert_int_equal(record->type, MW_RING_STACK);
	assert_int_equal(record->size, count | (uint64_t)cut << 32);
	assert_memory_equal(record->payload, pcs, count * sizeof(*pcs));
	rest_is_one_event();
}

static void expect_slow(struct shared_record *record, const struct mw_stub_call *call)
{
	const uint64_t *words = record->payload;
	uint64_t start = (uint64_t)(uintptr_t)call + MW_STUB_CALL_SIZE;

	assert_int_equal(record->type, MW_RING_SLOW);
	assert_int_equal(record->stack, record->addr);
	assert_int_equal(words[7], start + 8);
	for (unsigned i = 10; i < 16; i++)
		assert_int_equal(words[i], 0xf00 + i);
	assert_int_equal(words[5], 1);
	assert_int_equal(words[17], start);
	assert_int_equal(words[16], stub_read(start));
	assert_memory_equal(&words[18], (void *)(uintptr_t)start, record->size - sizeof(struct mw_ring_slow));
	rest_is_one_event();
}

static void test_truncated(void **state)
{
	uint64_t pcs[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		pcs[i] = CODE_SP + 0x10 + i;
	expect_frames(stack_of(rig_stack(AT, 20)), MW_RING_TRUNCATED, pcs, 8);
	/* As many as are kept, and no more there. */
	pcs[7] = CODE_END + 1;
	expect_frames(stack_of(rig_stack(AT, 7)), MW_RING_COMPLETE, pcs, 8);
}

static void test_ends(void **state)
{
	const uint64_t zero[] = {CODE_SP + 1, 0}, foreign[] = {CODE_SP + 1, CODE_FOREIGN + 7};

	(void)state;
	expect_frames(stack_of(rig_frames(AT, zero, 2)), MW_RING_COMPLETE, zero, 1);
	expect_frames(stack_of(rig_frames(AT, foreign, 2)), MW_RING_BROKEN, foreign, 2);
}

/* What rows can't say, or say what can't be. */
static void test_slow_kinds(void **state)
{
	const uint32_t kinds[] = {CODE_SLOW, CODE_SIGNAL, CODE_UP, CODE_NONE};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const uint64_t pcs[] = {CODE_SP + 1, kinds[i] + 1, CODE_END + 1};
		struct mw_stub_call *call = rig_frames(STACK_WORDS - 60, pcs, 3);

		expect_slow(stack_of(call), call);
	}
	assert_int_equal(rig_slot()->slow_walks, 4);
}

/* Where no more are allowed to take the slow road a stack ends, broken, at the frame that no row leads on from. */
static void test_slow_is_bounded(void **state)
{
	const uint64_t pcs[] = {CODE_SP + 1, CODE_SLOW + 1, CODE_END + 1};
	struct mw_ring_control *control = rig.shared.control;
	struct mw_stub_call *call;

	(void)state;
	control->slow_allowed = 2;
	for (unsigned i = 0; i < 2; i++) {
		call = rig_frames(STACK_WORDS - 60, pcs, 3);
		expect_slow(stack_of(call), call);
	}
	expect_frames(stack_of(rig_frames(STACK_WORDS - 60, pcs, 3)), MW_RING_BROKEN, pcs, 2);
	/* Once it is known it is not told again, and nothing is lost. */
	assert_null(stack_of(rig_frames(STACK_WORDS - 60, pcs, 3)));
	assert_int_equal(control->slow_taken, 2);
	assert_int_equal(rig_slot()->slow_walks, 2);
	assert_int_equal(rig_slot()->walks, 4);
	assert_int_equal(rig_slot()->lost_stacks, 0);
	/* What is learned of the code leads on from it. */
	learn(CODE_SLOW + 1, mw_row(MW_ROW_SP, 16, MW_ROW_FP_SAME, 0));
	control->learned_any = 1;
	expect_frames(stack_of(rig_frames(STACK_WORDS - 60, pcs, 3)), MW_RING_COMPLETE, pcs, 3);
	assert_int_equal(control->slow_taken, 2);
}

static void come_and_go(void)
{
	const uint64_t pcs[] = {CODE_SP + 1, CODE_SLOW + 1, CODE_END + 1};
	struct mw_stub_call *call = rig_frames(STACK_WORDS - 60, pcs, 3);

	assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, BLOCK);
}

/* … nor where memwatch has much to read before it. */
static void test_slow_needs_room(void **state)
{
	uint32_t units = rig.shared.control->ring_units;
	uint64_t taken;

	(void)state;
	come_and_go();
	while (rig_slot()->reserved - rig_slot()->drained <= units / 4)
		come_and_go();
	taken = rig_slot()->slow_walks;
	assert_int_equal(taken, rig_slot()->walks);
	come_and_go();
	assert_int_equal(rig_slot()->slow_walks, taken);
	while (rig_record())
		;
	come_and_go();
	assert_int_equal(rig_slot()->slow_walks, taken + 1);
	assert_int_equal(rig_slot()->lost_stacks, 0);
}

static void test_frame_pointer(void **state)
{
	uint64_t *stack = rig.thread->stack;
	const uint64_t pcs[] = {CODE_FP + 1, CODE_SAVED + 1, CODE_CALLED + 2, CODE_END + 1};
	struct mw_stub_call *call = (struct mw_stub_call *)(void *)&stack[AT];

	(void)state;
	/* CFA = fp + 16 */
	stack[AT + 9] = pcs[0];
	rig_saved.gpr[CPU_FP] = word_at(AT + 20);
	stack[AT + 20] = 0; /* saved: nothing good */
	stack[AT + 21] = pcs[1];
	/* … whose caller saves what is good again: CFA = sp + 32 is word AT + 26 */
	stack[AT + 24] = word_at(AT + 40);
	stack[AT + 25] = pcs[2];
	stack[AT + 40] = 0;
	stack[AT + 41] = pcs[3];
	expect_frames(stack_of(call), MW_RING_COMPLETE, pcs, 4);
	/* A frame pointer that leads out of the stack, or down, or off by a little. */
	const uint64_t bad[] = {0,
				8,
				UINT64_MAX - 7,
				word_at(STACK_WORDS) - 8,
				word_at(STACK_WORDS),
				word_at(AT),
				word_at(AT + 20) + 1,
				UINT64_C(1) << 63};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig_saved.gpr[CPU_FP] = bad[i];
		assert_int_equal(stack_of(call)->type, MW_RING_SLOW);
		rest_is_one_event();
	}
	rig_saved.gpr[CPU_FP] = 0;
}

static void test_realigned(void **state)
{
	uint64_t *stack = rig.thread->stack;
	const uint64_t pcs[] = {CODE_DEREF + 1, CODE_FP + 1, CODE_END + 1};
	struct mw_stub_call *call = (struct mw_stub_call *)(void *)&stack[AT];

	(void)state;
	stack[AT + 9] = pcs[0];
	rig_saved.gpr[CPU_FP] = word_at(AT + 20);
	stack[AT + 19] = word_at(AT + 30); /* the CFA */
	stack[AT + 20] = word_at(AT + 40); /* the caller's frame pointer */
	stack[AT + 29] = pcs[1];
	stack[AT + 41] = pcs[2];
	expect_frames(stack_of(call), MW_RING_COMPLETE, pcs, 3);
	stack[AT + 19] = word_at(STACK_WORDS) + 8;
	assert_int_equal(stack_of(call)->type, MW_RING_SLOW);
	rest_is_one_event();
	rig_saved.gpr[CPU_FP] = 0;
}

static void test_lost_frame_pointer(void **state)
{
	const uint64_t good[] = {CODE_LOST + 1, CODE_SP + 1, CODE_END + 1}, bad[] = {CODE_LOST + 1, CODE_FP + 1};

	(void)state;
	expect_frames(stack_of(rig_frames(AT, good, 3)), MW_RING_COMPLETE, good, 3);
	rig_saved.gpr[CPU_FP] = word_at(AT + 40);
	assert_int_equal(stack_of(rig_frames(AT, bad, 2))->type, MW_RING_SLOW);
	rig_saved.gpr[CPU_FP] = 0;
}

/* A stack that goes on and on: the walk ends at its upper end, and reads nothing there (the sanitizer sees). */
static void test_upper_end(void **state)
{
	struct mw_stub_call *call;

	(void)state;
	for (unsigned at = STACK_WORDS - 40; at <= STACK_WORDS - 11; at++) {
		for (unsigned i = at; i < STACK_WORDS; i++)
			rig.thread->stack[i] = CODE_SP + 5;
		call = (struct mw_stub_call *)(void *)&rig.thread->stack[at];
		stack_of(call);
		while (rig_event())
			;
	}
	/* So little of it that there can't be a caller: no stack. */
	call = (struct mw_stub_call *)(void *)&rig.thread->stack[STACK_WORDS - 10];
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_WRAP);
	assert_int_equal(call->stack, MW_RING_STACK_NONE);
	mw_stub_leave(call, BLOCK);
	assert_int_equal(rig_slot()->lost_stacks, 1);
}

static void test_compare(void **state)
{
	struct mw_stub_call *call = rig_stack(STACK_WORDS - 40, 3);
	struct shared_record *record;
	uint32_t first;

	(void)state;
	rig.shared.control->compare = 2;
	record = stack_of(call);
	assert_int_equal(record->flags, 0);
	rig_expect(MW_RING_ALLOC, BLOCK, 1);
	record = stack_of(call);
	assert_int_equal(record->type, MW_RING_STACK);
	assert_int_equal(record->flags, MW_RING_COMPARE);
	first = record->stack;
	record = rig_record();
	assert_int_equal(record->type, MW_RING_SLOW);
	assert_int_equal(record->flags, MW_RING_COMPARE);
	assert_int_equal(record->addr, first);
	expect_slow(record, call);
}

static void test_many_stacks(void **state)
{
	/* More than the cache holds: each is told under a new number, none twice at once, all right. */
	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t pcs[] = {CODE_SP + 1 + i % 333, CODE_SP + 1 + i % 7, CODE_END + 1};
		struct mw_stub_call *call = rig_frames(AT, pcs, 3);
		static uint64_t told[4096];
		struct shared_record *record;
		uint32_t stack;

		assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_WRAP);
		stack = call->stack;
		mw_stub_leave(call, BLOCK);
		while ((record = rig_record()))
			if (record->type == MW_RING_STACK) {
				assert_memory_equal(record->payload, pcs, sizeof(pcs));
				told[record->addr] = i % 333 * 7 + i % 7 + 1;
			}
		assert_int_equal(told[stack], i % 333 * 7 + i % 7 + 1);
	}
}

static void answer(void)
{
	struct mw_ring_slot *slot = rig_slot();

	if (rig.pauses % 3)
		return;
	assert_int_equal(slot->ask, MW_RING_ASK_REGION);
	slot->regions[1].low = word_at(0);
	__atomic_store_n(&slot->regions[1].high, word_at(STACK_WORDS), __ATOMIC_RELEASE);
	__atomic_store_n(&slot->answered, slot->asked, __ATOMIC_RELEASE);
}

static void answer_nothing(void)
{
	struct mw_ring_slot *slot = rig_slot();

	__atomic_store_n(&slot->answered, slot->asked, __ATOMIC_RELEASE);
}

static void expect_asked(uint32_t asked, uint64_t lost)
{
	mw_stub_leave(rig_call(HOOK_MALLOC, 1, 0, 0, 0), BLOCK);
	assert_int_equal(rig_slot()->asked, asked);
	assert_int_equal(rig_slot()->lost_stacks, lost);
	while (rig_record())
		;
}

/* Go on until it is time to ask again where nobody knew. */
static void expect_silence(uint32_t asked, uint64_t lost)
{
	while (rig_slot()->entries % 256 != 255)
		expect_asked(asked, ++lost);
}

static void test_ask(void **state)
{
	uint64_t lost;

	(void)state;
	rig_slot()->regions[0].high = 0;
	/* Nobody answers in time: who is late once is not waited for at each event. */
	expect_asked(1, 1);
	assert_int_equal(rig_slot()->ask, MW_RING_ASK_REFUSED);
	expect_asked(1, 2);
	/* memwatch does not know: it is not asked for the same each time either. */
	rig.on_pause = answer_nothing;
	rig_slot()->ask_address = 0;
	expect_asked(2, 3);
	expect_asked(2, 4);
	/* Every so often it is. */
	expect_silence(2, 4);
	lost = rig_slot()->lost_stacks;
	expect_asked(3, lost + 1);
	expect_silence(3, lost + 1);
	lost = rig_slot()->lost_stacks;
	rig.pauses = 0;
	rig.on_pause = answer;
	expect_asked(4, lost);
	assert_int_equal(rig_slot()->ask, MW_RING_ASK_NOTHING);
	expect_asked(4, lost);
	assert_int_equal(rig_slot()->slow_walks, 0);
	assert_int_equal(rig_slot()->walks, 2);
}

/* Over a signal's frame, to what was interrupted: its pc counts as one that follows a call there. */
static void test_signal_frame(void **state)
{
	uint64_t *stack = rig.thread->stack;
	const uint64_t pcs[] = {CODE_SP + 1, CODE_SIGNAL + 1},
		       expected[] = {CODE_SP + 1, CODE_SIGNAL + 2, CODE_SP + 0x56, CODE_END + 1},
		       generated[] = {CODE_SP + 1, CODE_SIGNAL + 2, CODE_CALLED + 0x56};
	struct mw_stub_call *call = rig_frames(AT, pcs, 2);
	const uint64_t bad[] = {0, word_at(AT + 60) + 1, word_at(STACK_WORDS), UINT64_MAX - 7};

	(void)state;
	stack[AT + 12 + CPU_SIGNAL_PC / 8] = CODE_SP + 0x55;
	stack[AT + 12 + CPU_SIGNAL_SP / 8] = word_at(AT + 60);
	stack[AT + 61] = CODE_END + 1;
	expect_frames(stack_of(call), MW_RING_COMPLETE, expected, 4);
	/* What is true at calls alone is not asked of what was interrupted. */
	stack[AT + 12 + CPU_SIGNAL_PC / 8] = CODE_CALLED + 0x55;
	expect_frames(stack_of(call), MW_RING_BROKEN, generated, 3);
	stack[AT + 12 + CPU_SIGNAL_PC / 8] = CODE_SP + 0x55;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		stack[AT + 12 + CPU_SIGNAL_SP / 8] = bad[i];
		assert_int_equal(stack_of(call)->type, MW_RING_SLOW);
		rest_is_one_event();
	}
}

/* A frame of HotSpot's interpreter at sp and with a frame pointer so many words above, whose caller is deoptimized. */
static struct mw_stub_call *java_frames(void)
{
	uint64_t *stack = rig.thread->stack;

	stack[AT + 9] = CODE_READ + 1;
	rig_saved.gpr[CPU_FP] = word_at(AT + 20);
	stack[AT + 12] = 0x7a7a; /* the bytecode */
	stack[AT + 17] = 0x5a5a; /* the method */
	stack[AT + 19] = word_at(AT + 24);
	stack[AT + 20] = word_at(AT + 40);
	stack[AT + 21] = CODE_DEOPT + 1;
	stack[AT + 25] = CODE_CALLED + 3; /* as it was */
	stack[AT + 26] = word_at(AT + 30);
	stack[AT + 27] = CODE_FP + 1;
	stack[AT + 31] = CODE_END + 1;
	return (struct mw_stub_call *)(void *)&stack[AT];
}

static const uint64_t java[] = {
	(CODE_READ + 1) | MW_INTERPRETED_FRAME, 0x5a5a, 0x7a7a, CODE_CALLED + 3, CODE_FP + 1, CODE_END + 1};

static void test_interpreted(void **state)
{
	struct mw_stub_call *call = java_frames();
	uint64_t *stack = rig.thread->stack, other[6];
	uint32_t asked = rig_slot()->asked;

	(void)state;
	expect_frames(stack_of(call), MW_RING_COMPLETE, java, 6);
	/* The same again is the same stack; another bytecode, and another place that was returned to, are others. */
	assert_null(stack_of(call));
	memcpy(other, java, sizeof(other));
	stack[AT + 12] = other[2] = 0x7b7b;
	expect_frames(stack_of(call), MW_RING_COMPLETE, other, 6);
	stack[AT + 25] = other[3] = CODE_CALLED + 4;
	expect_frames(stack_of(call), MW_RING_COMPLETE, other, 6);
	/* A method handle has taken an argument: the caller's frame begins behind the return address. */
	stack[AT + 19] = word_at(AT + 21);
	stack[AT + 21] = CODE_FP + 1;
	stack[AT + 41] = CODE_END + 1;
	other[3] = CODE_FP + 1;
	other[4] = CODE_END + 1;
	expect_frames(stack_of(call), MW_RING_COMPLETE, other, 5);
	assert_int_equal(rig_slot()->asked, asked);
	rig_saved.gpr[CPU_FP] = 0;
}

/* No frame is read where none can be. */
static void test_interpreted_nonsense(void **state)
{
	uint64_t *stack = rig.thread->stack;
	const uint64_t frame_pointers[] = {0,
					   8,
					   word_at(AT + 18),
					   word_at(AT + 20) + 1,
					   word_at(STACK_WORDS) - 16,
					   word_at(STACK_WORDS),
					   UINT64_MAX - 7};
	const uint64_t callers[] = {0, word_at(AT + 20), word_at(AT + 24) + 4, word_at(STACK_WORDS), UINT64_MAX - 7};

	(void)state;
	for (size_t i = 0; i < sizeof(frame_pointers) / sizeof(frame_pointers[0]); i++) {
		struct mw_stub_call *call = java_frames();

		rig_saved.gpr[CPU_FP] = frame_pointers[i];
		assert_int_equal(stack_of(call)->type, MW_RING_SLOW);
		rest_is_one_event();
	}
	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		struct mw_stub_call *call = java_frames();

		stack[AT + 19] = callers[i];
		assert_int_equal(stack_of(call)->type, MW_RING_SLOW);
		rest_is_one_event();
	}
	rig_saved.gpr[CPU_FP] = 0;
}

/* A frame that there is no room for is not begun. */
static void test_interpreted_truncated(void **state)
{
	struct mw_stub_call *call = java_frames();

	(void)state;
	rig.shared.control->depth = 4;
	expect_frames(stack_of(call), MW_RING_TRUNCATED, java, 4);
	rig.shared.control->depth = 2;
	rig.shared.control->generation++;
	expect_frames(stack_of(call), MW_RING_TRUNCATED, java, 0);
	rig_saved.gpr[CPU_FP] = 0;
}

static void answer_row(void)
{
	struct mw_ring_slot *slot = rig_slot();

	assert_int_equal(slot->ask, MW_RING_ASK_ROW);
	if (slot->ask_address == CODE_ASK + 1)
		learn(CODE_ASK + 1, mw_row(MW_ROW_SP, 16, MW_ROW_FP_SAME, 0));
	__atomic_store_n(&slot->answered, slot->asked, __ATOMIC_RELEASE);
}

static void test_row_is_asked_for(void **state)
{
	const uint64_t pcs[] = {CODE_SP + 1, CODE_ASK + 1, CODE_SP + 2, CODE_END + 1},
		       again[] = {CODE_SP + 3, CODE_ASK + 1, CODE_END + 1},
		       unknown[] = {CODE_SP + 1, CODE_ASK + 2, CODE_SP + 2}, signal[] = {CODE_SP + 1, CODE_SIGNAL + 1},
		       interrupted[] = {CODE_SP + 1, CODE_SIGNAL + 2, CODE_ASK + 2};
	uint32_t asked = rig_slot()->asked;
	struct mw_stub_call *call;

	(void)state;
	rig.on_pause = answer_row;
	rig.shared.control->learned_any = 1;
	expect_frames(stack_of(rig_frames(AT, pcs, 4)), MW_RING_COMPLETE, pcs, 4);
	assert_int_equal(rig_slot()->asked, asked + 1);
	/* Once. */
	expect_frames(stack_of(rig_frames(AT, again, 3)), MW_RING_COMPLETE, again, 3);
	assert_int_equal(rig_slot()->asked, asked + 1);
	/* memwatch does not know. */
	expect_frames(stack_of(rig_frames(AT, unknown, 3)), MW_RING_BROKEN, unknown, 2);
	assert_int_equal(rig_slot()->asked, asked + 2);
	/* Where a signal has interrupted such code nothing is known of it, and nobody is asked. */
	call = rig_frames(AT, signal, 2);
	rig.thread->stack[AT + 12 + CPU_SIGNAL_PC / 8] = CODE_ASK + 1;
	rig.thread->stack[AT + 12 + CPU_SIGNAL_SP / 8] = word_at(AT + 60);
	expect_frames(stack_of(call), MW_RING_BROKEN, interrupted, 3);
	assert_int_equal(rig_slot()->asked, asked + 2);
}

static void test_forget(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	const struct mw_ring_region other = {0x100000, 0x200000};
	const struct {
		uint32_t hook;
		uint64_t args[4];
		bool kept;
	} cases[] = {
		{HOOK_MUNMAP, {0x1ff000, 1}, false},
		{HOOK_MUNMAP, {0x200000, 4096}, true},
		{HOOK_MUNMAP, {0xff000, 4096}, true},
		{HOOK_MUNMAP, {0xff000, 4097}, false},
		{HOOK_MUNMAP, {0, UINT64_MAX}, false},
		{HOOK_MMAP, {0x180000, 4096, 3, 0x32}, false},
		{HOOK_MMAP, {0x180000, 4096, 3, 0x22}, true},
		{HOOK_MREMAP, {0x180000, 4096, 8192, 1}, false},
		{HOOK_BRK, {0x180000}, false},
		{HOOK_BRK, {0x200000}, true},
		{HOOK_SBRK, {(uint64_t)-4096}, false},
		{HOOK_SBRK, {4096}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_stub_call *call = rig_stack(AT, 3);

		slot->regions[0] = (struct mw_ring_region){word_at(0), word_at(STACK_WORDS)};
		slot->regions[3] = other;
		assert_int_equal(rig_enter(call, cases[i].hook, cases[i].args[0], cases[i].args[1], cases[i].args[2],
					   cases[i].args[3]),
				 MW_STUB_WRAP);
		mw_stub_leave(call, UINT64_MAX);
		assert_int_equal(slot->regions[3].high, cases[i].kept ? other.high : 0);
		while (rig_record())
			;
	}
}

/* A short-lived thread on the stack of one before it asks nothing: memwatch's answers end at the control block. */
static void test_answer_is_inherited(void **state)
{
	struct mw_ring_slot *slot = rig_slot();
	uint64_t tp = word_at(STACK_WORDS - 8), sp = word_at(AT);
	const struct mw_ring_region answer = {word_at(0) | MW_RING_REGION_OWN, tp};

	(void)state;
	slot->regions[1] = answer;
	slot->regions[2] = (struct mw_ring_region){word_at(AT + 1), tp};
	slot->regions[3] = (struct mw_ring_region){word_at(0), tp - 8};
	stub_region_inherit(slot, sp, tp, tp + 12);
	assert_int_equal(slot->regions[1].low, answer.low);
	assert_int_equal(slot->regions[1].high, answer.high);
	assert_int_equal(slot->regions[2].high, 0);
	assert_int_equal(slot->regions[3].high, 0);
}

/* Whatever stands in the index: nothing is read outside (the sanitizer sees), and no row is made of it. */
static void test_hostile_index(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_index *index = (void *)((uint8_t *)control + rig.shared.index);
	const uint64_t values[] = {0,
				   1,
				   7,
				   8,
				   UINT32_MAX,
				   UINT64_MAX,
				   UINT64_MAX - 7,
				   UINT64_C(1) << 63,
				   control->size,
				   control->size - 8,
				   control->size - 16};
	const size_t n = sizeof(values) / sizeof(values[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		index->count = values[i];
		stub_row_find(control, CODE_SP + 1);
	}
	index->count = 1;
	for (size_t i = 0; i < n * n * 4; i++) {
		index->code[0] = (struct mw_ring_code){.start = 0,
						       .end = UINT64_MAX,
						       .base = i / n / n == 3 ? UINT64_MAX : 0,
						       .rows = values[i % n],
						       .count = values[i / n % n]};
		control->dictionary_count = values[(i / n / n) % n];
		stub_row_find(control, CODE_SP + 1);
	}
	for (size_t i = 0; i < n; i++) {
		control->index = values[i];
		stub_row_find(control, CODE_SP + 1);
	}
}

static void test_rows(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_index *index = (void *)((uint8_t *)control + rig.shared.index);
	struct mw_ring_row *rows = (void *)((uint8_t *)control + rig.shared.rows);
	uint64_t *dictionary = (void *)((uint8_t *)control + control->dictionary);

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		rows[i] = (struct mw_ring_row){.pc = 0x100 + i * 0x10, .row = i};
		dictionary[i] = mw_row(MW_ROW_SP, (int32_t)(8 * i + 8), MW_ROW_FP_SAME, 0);
	}
	control->dictionary_count = 9;
	index->count = 1;
	index->code[0] = (struct mw_ring_code){
		.start = 0x500000, .end = 0x500200, .base = 0x500000, .rows = rig.shared.rows, .count = 10};
	control->generation++;
	assert_int_equal(mw_row_kind(stub_row(control, 0x500100)), MW_ROW_NONE);
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(stub_row(control, 0x500101 + i * 0x10), dictionary[i]);
		assert_int_equal(stub_row(control, 0x500110 + i * 0x10), dictionary[i]);
	}
	assert_int_equal(mw_row_kind(stub_row(control, 0x500191)), MW_ROW_NONE);
	assert_int_equal(mw_row_kind(stub_row(control, 0x500201)), MW_ROW_NONE);
	assert_int_equal(mw_row_kind(stub_row(control, (uint64_t)(uintptr_t)mw_stub_returned)), MW_ROW_OURS);
	/* A frame has room for its return address, and is of whole words. */
	for (int32_t i = 0; i < 8; i++) {
		dictionary[8] = mw_row(MW_ROW_SP, i % 2 ? i * 8 + 4 : -i, MW_ROW_FP_SAME, 0);
		control->generation++;
		assert_int_equal(mw_row_kind(stub_row(control, 0x500181)), MW_ROW_SLOW);
	}
	/* What was found is kept until another generation. */
	assert_int_equal(mw_row_kind(stub_row(control, 0x500101)), MW_ROW_SP);
	dictionary[0] = mw_row(MW_ROW_END, 0, 0, 0);
	assert_int_equal(mw_row_kind(stub_row(control, 0x500101)), MW_ROW_SP);
	control->generation++;
	assert_int_equal(mw_row_kind(stub_row(control, 0x500101)), MW_ROW_END);
	/* … and one is another, however many have been. */
	dictionary[0] = mw_row(MW_ROW_SP, 8, 0, 0);
	control->generation += 256;
	assert_int_equal(mw_row_kind(stub_row(control, 0x500101)), MW_ROW_SP);
}

/* Where rows say nothing the code as a whole does; what was learned of a pc counts before either. */
static void test_learned(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_index *index = (void *)((uint8_t *)control + rig.shared.index);
	struct mw_ring_row *rows = (void *)((uint8_t *)control + rig.shared.rows);
	uint64_t *dictionary = (void *)((uint8_t *)control + control->dictionary);

	(void)state;
	rows[0] = (struct mw_ring_row){.pc = 0, .row = 0};
	rows[1] = (struct mw_ring_row){.pc = 0x100, .row = 1};
	dictionary[0] = mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0);
	dictionary[1] = mw_row(MW_ROW_SP, 8, MW_ROW_FP_SAME, 0);
	control->dictionary_count = 2;
	index->count = 2;
	index->code[0] = (struct mw_ring_code){.start = 0x500000,
					       .end = 0x500200,
					       .base = 0x500000,
					       .rows = rig.shared.rows,
					       .count = 2,
					       .whole = mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_LOST, 0)};
	index->code[1] = index->code[0];
	index->code[1].start = index->code[1].base = 0x500200;
	index->code[1].end = 0x500400;
	index->code[1].whole = mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
	learn(0x500011, mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0));
	learn(0x500012, mw_row(MW_ROW_FP, 16, MW_ROW_FP_SAVED, -16));
	learn(0x500111, mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0));
	control->learned_any = 0;
	control->generation++;
	assert_int_equal(mw_row_kind(stub_row(control, 0x500011)), MW_ROW_SLOW);
	/* … and once it is learned it counts, without another generation. */
	control->learned_any = 1;
	assert_int_equal(mw_row_kind(stub_row(control, 0x500010)), MW_ROW_SLOW);
	assert_int_equal(mw_row_kind(stub_row(control, 0x500011)), MW_ROW_END);
	assert_int_equal(stub_row(control, 0x500012), mw_row(MW_ROW_FP, 16, MW_ROW_FP_SAVED, -16));
	assert_int_equal(mw_row_kind(stub_row(control, 0x500013)), MW_ROW_SLOW);
	learn(0x500013, mw_row(MW_ROW_SP, 8, MW_ROW_FP_SAME, 0));
	assert_int_equal(mw_row_kind(stub_row(control, 0x500013)), MW_ROW_SP);
	assert_int_equal(mw_row_kind(stub_row(control, 0x500211)), MW_ROW_FOREIGN);
	assert_int_equal(stub_row(control, 0x500311), dictionary[1]);
	/* What describes the code before it is another function's. */
	assert_int_equal(mw_row_kind(stub_row(control, 0x500111)), MW_ROW_END);
	assert_int_equal(stub_row(control, 0x500112), dictionary[1]);
	assert_int_equal(mw_row_kind(stub_row(control, 0x500014)), MW_ROW_SLOW);
}

UNIT_GROUP(walk)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_truncated),
		T(test_ends),
		T(test_slow_kinds),
		T(test_frame_pointer),
		T(test_realigned),
		T(test_lost_frame_pointer),
		T(test_upper_end),
		T(test_compare),
		T(test_many_stacks),
		T(test_ask),
		T(test_forget),
		T(test_hostile_index),
		T(test_rows),
		T(test_signal_frame),
		T(test_interpreted),
		T(test_interpreted_nonsense),
		T(test_interpreted_truncated),
		T(test_row_is_asked_for),
		T(test_answer_is_inherited),
		T(test_learned),
		T(test_slow_is_bounded),
		T(test_slow_needs_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
