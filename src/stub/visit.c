// SPDX-License-Identifier: MIT
/*
 * visit.c: a thread comes into the recorder and goes: its slot, ring and stacks; records, and room in the ring for them,
 * waited for but never for long (recorder.h).
 */
#include "stub/recorder.h"

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* Recording ends, for this process, for good. */
static void give_up(struct mw_ring_control *control)
{
	__atomic_store_n(&control->given_up, 1, __ATOMIC_RELAXED);
	/* Else a guard of 0 would be taken for a forked child's. */
	__atomic_store_n(&control->recording, 0, __ATOMIC_RELEASE);
	__atomic_store_n((uint32_t *)(uintptr_t)stub_context()->guard, MW_STUB_GUARD_ENDING, __ATOMIC_RELEASE);
}

bool stub_wait_on(struct mw_ring_control *control, uint64_t start)
{
	uint64_t now, heartbeat;

	cpu_pause();
	now = cpu_ticks();
	if (!stub_on())
		return false;
	heartbeat = __atomic_load_n(&control->heartbeat, __ATOMIC_RELAXED);
	if ((int64_t)(now - heartbeat) > 0 && now - heartbeat > control->heartbeat_limit) {
		give_up(control);
		return false;
	}
	return now - start <= control->wait_limit;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

#define AHEAD 16 /* units: memwatch has read them in the last lap, so they are in another CPU's cache */

/* How long a thread has waited since it last looked. Where that is long it had no CPU meanwhile. */
static uint64_t waited_since(const struct mw_ring_control *control, uint64_t *last)
{
	uint64_t now = cpu_ticks(), ticks = now - *last;

	*last = now;
	return ticks < control->wait_gap ? ticks : control->wait_gap;
}

/* See that `end` units fit the ring, waiting for memwatch to read. */
static STUB_RARE bool make_room(struct stub_visit *visit, uint32_t units, bool reserved, uint64_t number)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slot = visit->slot;
	uint64_t start = 0, last = 0, waited = 0;
	bool room = false, goes_on = true;

	if (units > control->ring_units)
		return false;
	for (;;) {
		uint64_t drained = __atomic_load_n(&slot->drained, __ATOMIC_ACQUIRE);

		/* memwatch has not read what was never there. */
		if (drained <= slot->reserved)
			slot->limit = drained + control->ring_units;
		room = (reserved ? number : slot->reserved) + units <= slot->limit;
		if (room || control->drop || !goes_on)
			break;
		if (!last)
			start = last = cpu_ticks();
		goes_on = stub_wait_on(control, start);
		waited += waited_since(control, &last);
	}
	slot->waited += waited;
	slot->waited_room += waited;
	return room;
}

bool stub_reserve(struct stub_visit *visit, uint32_t units, uint64_t *number)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t n = slot->reserved;

	if (unlikely(n + units > slot->limit) && !make_room(visit, units, false, 0)) {
		/* When recording is over, nothing is missed. */
		slot->lost_events += stub_on();
		return false;
	}
	/* Said before it is so: a signal may strike right behind it, and its handler jump away. */
	__atomic_store_n(&slot->pending, slot->reserved | (uint64_t)units << 48, __ATOMIC_RELEASE);
	n = cpu_take(&slot->reserved, units);
	__atomic_store_n(&slot->pending, n | (uint64_t)units << 48, __ATOMIC_RELEASE);
	/* A handler took the room that had been seen. What is reserved can't be given back. */
	if (unlikely(n + units > slot->limit) && !make_room(visit, units, true, n)) {
		slot->lost_events++;
		give_up(visit->control);
		return false;
	}
	*number = n;
	return true;
}

struct mw_ring_record *stub_unit(const struct stub_visit *visit, uint64_t number)
{
	uint64_t units = visit->control->ring_units, ring = (uint64_t)visit->slot->ring - 1;
	struct mw_ring_record *records = stub_at(visit->control, visit->control->rings);

	return &records[ring * units + (number & (units - 1))];
}

void stub_mark(struct stub_visit *visit, uint64_t number, uint32_t stack, uint32_t type, uint32_t flags, bool done)
{
	uint64_t mark =
		mw_ring_mark(stack, visit->call->hook, type, flags, mw_ring_lap(number, visit->control->ring_units));

	if (likely(stub_on()))
		__atomic_store_n(&stub_unit(visit, number)->mark, mark, __ATOMIC_RELEASE);
	if (done)
		__atomic_store_n(&visit->slot->pending, 0, __ATOMIC_RELEASE);
}

STUB_RARE void stub_void(struct stub_visit *visit, uint64_t number, uint32_t units)
{
	struct mw_ring_record *record = stub_unit(visit, number);

	record->time = cpu_ticks();
	record->addr = 0;
	record->size = units;
	stub_mark(visit, number, MW_RING_STACK_NONE, MW_RING_NOTHING, 0, true);
}

static inline bool emit_now(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack,
			    bool after)
{
	struct mw_ring_record *record;
	uint64_t number;

	if (unlikely(!stub_reserve(visit, 1, &number)))
		return false;
	record = stub_unit(visit, number);
	cpu_prefetch_write(stub_unit(visit, number + AHEAD));
	record->time = after ? cpu_ticks_after() : cpu_ticks();
	record->addr = addr;
	record->size = size;
	stub_mark(visit, number, stack, type, (uint32_t)visit->call->flags & (MW_RING_VM | MW_RING_INTERNAL), true);
	return true;
}

bool stub_emit(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack)
{
	return emit_now(visit, type, addr, size, stack, false);
}

bool stub_emit_after(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack)
{
	return emit_now(visit, type, addr, size, stack, true);
}

/* --- which memory of the stack may be read ------------------------------------------------------------------------ */

#define NEAR      (UINT64_C(64) << 10)
#define ATTEMPTS  64   /* at asking, as handlers come between */
#define ASK_AGAIN 256u /* entries, where memwatch knew of no stack there */

static struct mw_ring_region load(const struct mw_ring_slot *slot, unsigned i)
{
	struct mw_ring_region region = {.high = __atomic_load_n(&slot->regions[i].high, __ATOMIC_ACQUIRE)};

	region.low = __atomic_load_n(&slot->regions[i].low, __ATOMIC_RELAXED);
	/* Whoever changes a region makes its end 0 first. */
	if (__atomic_load_n(&slot->regions[i].high, __ATOMIC_ACQUIRE) != region.high)
		region.high = 0;
	return region;
}

/* The one that holds `sp`; zeroed: none does. */
static struct mw_ring_region region_of(const struct mw_ring_slot *slot, uint64_t sp)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low <= sp && sp < region.high)
			return region;
	}
	return (struct mw_ring_region){0, 0};
}

uint64_t stub_region_known(const struct mw_ring_slot *slot, uint64_t sp)
{
	return region_of(slot, sp).high & ~UINT64_C(7);
}

STUB_RARE bool stub_region_own(const struct mw_ring_slot *slot, uint64_t sp)
{
	return region_of(slot, sp).low & MW_RING_REGION_OWN;
}

bool stub_region_same(const struct mw_ring_slot *slot, uint64_t a, uint64_t b)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low <= a && a < region.high && region.low <= b && b < region.high)
			return true;
	}
	return false;
}

/* The end of the region that holds `sp`, or 0; always 0 for what else is asked for. */
static STUB_RARE uint64_t ask(struct stub_visit *visit, uint32_t what, uint64_t sp)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t distance = sp - slot->ask_address + NEAR / 2, high = 0, start, last;
	bool answered = true;

	/* It was asked here before, and memwatch did not know: not every time anew. */
	if (slot->ask == MW_RING_ASK_REFUSED && distance < NEAR && slot->entries % ASK_AGAIN)
		return 0;
	start = last = cpu_ticks();
	/* Again: the handler of a signal may have asked for something else meanwhile. */
	for (unsigned i = 0; i < ATTEMPTS && answered && !high; i++) {
		uint32_t number;

		slot->ask_address = sp;
		slot->ask = what;
		number = __atomic_add_fetch(&slot->asked, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&visit->control->asks, 1, __ATOMIC_RELEASE);
		while (answered && (int32_t)(__atomic_load_n(&slot->answered, __ATOMIC_ACQUIRE) - number) < 0) {
			answered = stub_wait_on(visit->control, start);
			slot->waited += waited_since(visit->control, &last);
		}
		high = what == MW_RING_ASK_REGION ? stub_region_known(slot, sp) : 0;
		if (answered && slot->ask_address == sp)
			break;
	}
	slot->ask = high || what != MW_RING_ASK_REGION ? MW_RING_ASK_NOTHING : MW_RING_ASK_REFUSED;
	return high;
}

uint64_t stub_region(struct stub_visit *visit, uint64_t sp)
{
	uint64_t high = stub_region_known(visit->slot, sp);

	return likely(high) ? high : ask(visit, MW_RING_ASK_REGION, sp);
}

STUB_RARE void stub_ask_script(struct stub_visit *visit, uint64_t addr)
{
	(void)ask(visit, MW_RING_ASK_SCRIPT, addr);
}

STUB_RARE void stub_ask_javascript(struct stub_visit *visit, uint32_t count)
{
	(void)ask(visit, MW_RING_ASK_JAVASCRIPT, count);
}

STUB_RARE void stub_ask_row(struct stub_visit *visit, uint64_t pc)
{
	(void)ask(visit, MW_RING_ASK_ROW, pc);
}

void stub_region_forget(struct mw_ring_slot *slot, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low < end && start < region.high)
			__atomic_store_n(&slot->regions[i].high, 0, __ATOMIC_RELEASE);
	}
}

void stub_region_forget_others(struct mw_ring_slot *slot, uint64_t sp)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (!(region.low & MW_RING_REGION_OWN && region.low <= sp && sp < region.high))
			__atomic_store_n(&slot->regions[i].high, 0, __ATOMIC_RELEASE);
	}
}

void stub_region_inherit(struct mw_ring_slot *slot, uint64_t sp, uint64_t tp, uint64_t tp_end)
{
	/* A stack with the control block at its end holds for as far as that; of others nothing is known any more. What
	 * memwatch answers of a thread's own stack ends where the control block begins. */
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);
		bool both = region.low <= sp && sp < tp && tp <= region.high;

		if (both && region.high <= tp_end)
			continue;
		__atomic_store_n(&slot->regions[i].high, both ? tp_end : 0, __ATOMIC_RELEASE);
	}
}

/* --- which slot is the thread's; its ring ------------------------------------------------------------------------- */

#define CLAIM_ATTEMPTS 64

/* A thread has ended, and this one was given its stack and control block. */
static STUB_RARE bool take_over(const struct stub_visit *visit, struct mw_ring_slot *slot, uint32_t old, uint32_t tid,
				uint64_t tp)
{
	if (old == MW_RING_NO_TID ||
	    !__atomic_compare_exchange_n(&slot->tid, &old, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (old == 0)
		return true;
	slot->top = 0; // NOLINT(clang-analyzer-core.NullDereference): no slot lies at 0
	stub_region_inherit(slot, (uint64_t)(uintptr_t)visit->call, tp, tp + stub_context()->tid_offset + sizeof(tid));
	/* It may have died in the recorder, and in calls. */
	slot->pending_sp = 0;
	slot->open = 0;
	return true;
}

static STUB_RARE struct mw_ring_slot *claim(struct mw_ring_slot *slot, uint64_t owner, uint64_t tp, uint32_t tid)
{
	if (!__atomic_compare_exchange_n(&slot->owner, &owner, tp, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	__atomic_store_n(&slot->tid, tid, __ATOMIC_RELEASE);
	return slot;
}

/* The thread's slot, or one that it may have; *found says which. NULL: neither. */
static struct mw_ring_slot *look(const struct stub_visit *visit, uint64_t tp, uint32_t tid, bool *found, bool *fresh)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slots = stub_at(control, control->slots), *vacant = NULL;
	uint32_t count = control->slot_count, first = mw_ring_slot_first(tp, count);

	*found = true;
	for (uint32_t i = 0; i < count; i++) {
		struct mw_ring_slot *slot = &slots[(first + i) & (count - 1)];
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (likely(owner == tp)) {
			uint32_t old = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);

			if (likely(old == tid))
				return slot;
			*fresh = true;
			if (take_over(visit, slot, old, tid, tp))
				return slot;
		} else if (owner == MW_RING_FREE || owner == MW_RING_TOMB) {
			if (!vacant)
				vacant = slot;
			if (owner == MW_RING_FREE)
				break;
		}
	}
	*found = false;
	return vacant;
}

struct mw_ring_slot *stub_slot_find(const struct stub_visit *visit, bool *fresh)
{
	uint64_t tp = cpu_thread_pointer(stub_context()->rdfsbase);
	uint32_t tid = *(const uint32_t *)(uintptr_t)(tp + stub_context()->tid_offset);

	*fresh = false;
	for (unsigned i = 0; i < CLAIM_ATTEMPTS; i++) {
		bool found;
		struct mw_ring_slot *slot = look(visit, tp, tid, &found, fresh);

		if (likely(found))
			return slot;
		if (!slot)
			return NULL;
		*fresh = true;
		slot = claim(slot, __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) & MW_RING_TOMB, tp, tid);
		if (slot)
			return slot;
	}
	return NULL;
}

struct mw_ring_slot *stub_slot_known(struct mw_ring_control *control)
{
	uint64_t tp = cpu_thread_pointer(stub_context()->rdfsbase);
	struct mw_ring_slot *slots = stub_at(control, control->slots);
	uint32_t count = control->slot_count, first = mw_ring_slot_first(tp, count);

	for (uint32_t i = 0; i < count; i++) {
		struct mw_ring_slot *slot = &slots[(first + i) & (count - 1)];
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (owner == tp)
			return slot;
		if (owner == MW_RING_FREE)
			break;
	}
	return NULL;
}

static bool next_ring(struct mw_ring_control *control, uint32_t *ring)
{
	const uint32_t *queue = stub_at(control, control->queue);
	uint64_t taken = __atomic_load_n(&control->rings_taken, __ATOMIC_RELAXED);

	do {
		if (taken >= __atomic_load_n(&control->rings_offered, __ATOMIC_ACQUIRE))
			return false;
	} while (!__atomic_compare_exchange_n(&control->rings_taken, &taken, taken + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	*ring = __atomic_load_n(&queue[taken & (control->queue_count - 1)], __ATOMIC_RELAXED);
	return *ring < control->ring_count;
}

/* False where there is none to be had. `limit` has no other use before there is a ring: until then it says when waiting
 * for one is worth the while again. */
static STUB_RARE bool take_ring(struct mw_ring_control *control, struct mw_ring_slot *slot)
{
	uint32_t ring, none = 0;
	bool got = next_ring(control, &ring);

	if (!got && !__atomic_load_n(&control->rings_all, __ATOMIC_RELAXED) && cpu_ticks() >= slot->limit) {
		uint64_t start = cpu_ticks(), last = start;

		while (!got && stub_wait_on(control, start)) {
			got = next_ring(control, &ring);
			slot->waited += waited_since(control, &last);
		}
	}
	if (!got) {
		slot->limit = cpu_ticks() + control->wait_limit;
		return false;
	}
	slot->limit = 0;
	/* A signal handler may have got one meanwhile; then there is one too many. */
	(void)__atomic_compare_exchange_n(&slot->ring, &none, ring + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return true;
}

/* --- visits ------------------------------------------------------------------------------------------------------- */

/*
 * A visit may be interrupted by a signal whose handler visits too. While it lasts, slot->inside counts it, and
 * pending_sp says where it began. A handler that jumps away leaves both behind; a later visit from further up the same
 * stack knows that by what it finds.
 *
 * slot->open counts what has come in and not left, the calls that are to come back included. Nothing ever corrects it:
 * where a handler switches to another stack, and may switch back much later, that is how memwatch knows of it.
 */

#define PENDING_UNITS(pending)  ((uint32_t)((pending) >> 48))
#define PENDING_NUMBER(pending) ((pending) & ((UINT64_C(1) << 48) - 1))

/* Is a visit still on the stack that began at `sp`? */
static bool goes_on(const struct stub_visit *visit, uint64_t sp)
{
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	return sp != 0 && !(sp <= here && stub_region_same(visit->slot, sp, here));
}

static STUB_RARE void settle(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t pending = slot->pending, number = PENDING_NUMBER(pending);
	uint32_t units = PENDING_UNITS(pending);
	bool reserved = units && number != slot->reserved;

	if (goes_on(visit, slot->pending_sp)) {
		visit->inside = slot->inside;
		visit->pending = pending;
		visit->pending_sp = slot->pending_sp;
		visit->unreserved = units && !reserved;
		slot->pending = 0;
		return;
	}
	visit->inside = 0;
	slot->pending = 0;
	if (!reserved || !slot->ring)
		return;
	if (number + units <= slot->limit)
		stub_void(visit, number, units);
	else
		give_up(visit->control);
}

static inline void open_visit(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	visit->inside = 0;
	if (unlikely(__atomic_load_n(&slot->inside, __ATOMIC_RELAXED)))
		settle(visit);
	/* Twice: a handler between leaves its own. */
	__atomic_store_n(&slot->pending_sp, here, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->inside, visit->inside + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->pending_sp, here, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The slot is this thread's: it may be added to in one instruction. */
static bool own(const struct mw_ring_slot *slot)
{
	return likely(slot->owner == cpu_thread_pointer(stub_context()->rdfsbase));
}

static STUB_RARE bool begin_fresh(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t number;

	if (!slot->ring && !take_ring(visit->control, slot)) {
		slot->lost_events++;
		stub_visit_end(visit);
		return false;
	}
	if (stub_reserve(visit, 1, &number)) {
		struct mw_ring_record *record = stub_unit(visit, number);

		record->time = cpu_ticks();
		record->addr = slot->tid;
		record->size = slot->owner;
		stub_mark(visit, number, MW_RING_STACK_NONE, MW_RING_THREAD, 0, true);
	}
	return true;
}

bool stub_visit_begin(struct stub_visit *visit)
{
	bool fresh;

	visit->slot = stub_slot_find(visit, &fresh);
	if (unlikely(!visit->slot)) {
		__atomic_fetch_add(&visit->control->lost_events, 1, __ATOMIC_RELAXED);
		return false;
	}
	cpu_add32(&visit->slot->open, 1);
	visit->stays = false;
	open_visit(visit);
	cpu_add(&visit->slot->entries, 1);
	return likely(!fresh && visit->slot->ring) || begin_fresh(visit);
}

void stub_visit_count_out(struct mw_ring_slot *slot)
{
	if (own(slot))
		cpu_add32(&slot->open, UINT32_MAX);
	else
		__atomic_fetch_sub(&stub_control()->open, 1, __ATOMIC_RELAXED);
}

bool stub_visit_resume(struct stub_visit *visit, struct mw_ring_slot *slot)
{
	if (unlikely(!own(slot))) {
		__atomic_fetch_add(&visit->control->lost_events, 1, __ATOMIC_RELAXED);
		stub_visit_count_out(slot);
		return false;
	}
	visit->slot = slot;
	visit->stays = false;
	open_visit(visit);
	return true;
}

static STUB_RARE void restore(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;

	/* What it was about to reserve is what comes next now. */
	if (visit->unreserved)
		visit->pending = slot->reserved | (uint64_t)PENDING_UNITS(visit->pending) << 48;
	slot->pending = visit->pending;
	slot->pending_sp = visit->pending_sp;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void stub_visit_end(struct stub_visit *visit)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(visit->inside))
		restore(visit);
	__atomic_store_n(&visit->slot->inside, visit->inside, __ATOMIC_RELEASE);
	if (!visit->stays)
		cpu_add32(&visit->slot->open, UINT32_MAX);
}
