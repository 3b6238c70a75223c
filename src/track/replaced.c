// SPDX-License-Identifier: MIT
/* replaced.c: see replaced.h. */
#include "track/replaced.h"

#include "base/cleanup.h"
#include "track/state.h"

#include <math.h>
#include <stdlib.h>

#define FACTOR      8u /* of sizes: blocks that differ by more have nothing to do with each other */
#define PAGE        4096u
#define MOST_PAGES  (1u << 18) /* that are known */
#define MOST_USABLE (UINT64_C(1) << 47)
#define SMALL       (PAGE / 2) /* usable bytes: several such blocks are in one page */
#define MIXED       4u  /* small blocks in known pages, to one of another size than the one before: fewer are mixed */
#define STORAGE     48u /* bytes: what is smaller is hardly a container's storage */

void mw_replaced_deinit(struct mw_replaced *replaced)
{
	mw_series_deinit(&replaced->older);
	*replaced = (struct mw_replaced){0};
}

void mw_class_flows_restart(struct mw_class_flows *flows)
{
	for (uint32_t i = 0; i < MW_SIZE_CLASSES * MW_FLOWS; i++)
		mw_series_deinit(&flows->series[i]);
	mw_map_deinit(&flows->pages);
	*flows = (struct mw_class_flows){0};
	for (uint32_t i = 1; i < MW_SMALL_SIZES; i++) {
		uint64_t usable = mw_replaced_usable(UINT64_C(16) * i - 8);

		flows->small[i].usable = (uint16_t)usable;
		flows->small[i].first = (uint16_t)(mw_size_class(usable) * MW_FLOWS);
	}
}

struct mw_error *mw_class_flows_follow(struct mw_class_flows *flows, const struct mw_series_clock *clock)
{
	struct mw_error *err = NULL;

	for (uint32_t i = 0; i < MW_SIZE_CLASSES * MW_FLOWS; i++)
		if (flows->sums[i])
			err = mw_track_first_error(
				err, mw_series_catch_up(&flows->series[i], flows->known, clock, flows->sums[i]));
	flows->known = clock->now;
	return err;
}

uint64_t mw_class_flows_memory(const struct mw_class_flows *flows)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < MW_SIZE_CLASSES * MW_FLOWS; i++)
		bytes += mw_series_memory(&flows->series[i]);
	return bytes + mw_map_memory(&flows->pages);
}

/* --- sizes by pages -------------------------------------------------------------------------------------- */

/* What is known of a page, in a value of the map, which is never 0. */
struct page {
	uint64_t usable;  /* of the latest block that was allocated there; 0: none */
	uint32_t waiting; /* older blocks that were freed there before that */
};

static uint64_t page_of(mw_addr addr)
{
	return addr / PAGE;
}

static bool get_page(const struct mw_class_flows *flows, uint64_t number, struct page *out)
{
	uint64_t value = (uint64_t)(uintptr_t)mw_map_get(&flows->pages, number);

	*out = (struct page){.usable = value >> 16, .waiting = (uint32_t)(value & 0xffff) >> 1};
	return value != 0;
}

static struct mw_error *set_page(struct mw_class_flows *flows, uint64_t number, struct page page)
{
	return mw_map_set(&flows->pages, number, (void *)(uintptr_t)(page.usable << 16 | page.waiting << 1 | 1));
}

static bool are_pages_mixed(const struct mw_class_flows *flows)
{
	return flows->other_sizes * MIXED > flows->seen_sizes;
}

/* Classes are up to a quarter of a size wide, and small ones 16 bytes. */
static bool can_be_of_one_class(uint64_t a, uint64_t b)
{
	return a <= b + b / 4 + 16 && b <= a + a / 4 + 16;
}

/* The class that stands for all that are alike, so far as is known. */
static uint32_t root_of(const struct mw_class_flows *flows, uint32_t size_class)
{
	while (flows->alike[size_class])
		size_class = flows->alike[size_class];
	return size_class;
}

uint32_t mw_class_flows_alike(const struct mw_class_flows *flows, uint32_t size_class)
{
	return are_pages_mixed(flows) ? size_class : root_of(flows, size_class);
}

struct mw_error *mw_class_flows_gone_unknown(struct mw_class_flows *flows, mw_addr addr)
{
	uint64_t number = page_of(addr);
	struct page page;

	if (get_page(flows, number, &page) && page.usable && !are_pages_mixed(flows)) {
		mw_class_flows_gone_older(flows, page.usable);
		return NULL;
	}
	mw_class_flows_gone_older(flows, MW_SIZE_UNKNOWN);
	if (page.usable || page.waiting == PAGE / 8 || flows->pages.count >= MOST_PAGES)
		return NULL;
	page.waiting++;
	return set_page(flows, number, page);
}

uint64_t mw_class_flows_page_size(const struct mw_class_flows *flows, mw_addr addr)
{
	struct page page;

	return get_page(flows, page_of(addr), &page) && page.usable && !are_pages_mixed(flows) ? page.usable
											       : MW_SIZE_UNKNOWN;
}

void mw_class_flows_see_page(struct mw_class_flows *flows, mw_addr addr, uint64_t bytes)
{
	uint64_t number = page_of(addr), usable = mw_replaced_usable(bytes), *sums;
	struct page page;
	uint32_t class = mw_size_class(usable), other;

	if (usable > MOST_USABLE || !get_page(flows, number, &page))
		return;
	if (page.usable && usable <= SMALL && page.usable <= SMALL) {
		flows->seen_sizes++;
		flows->other_sizes += !can_be_of_one_class(usable, page.usable);
	}
	if (are_pages_mixed(flows))
		page.waiting = 0;
	sums = &flows->sums[class * MW_FLOWS];
	for (enum mw_class_flow flow = MW_FLOW_GONE; flow <= MW_FLOW_OLDER; flow++) {
		sums[flow] += page.waiting * usable;
		flows->sums[flow] -= page.waiting;
	}
	if (page.usable && mw_size_class(page.usable) != class) {
		class = root_of(flows, class);
		other = root_of(flows, mw_size_class(page.usable));
		if (class != other)
			flows->alike[class] = (uint16_t)other;
	}
	if (page.usable != usable || page.waiting)
		/* There is room: the page is known. */
		mw_error_destroy(set_page(flows, number, (struct page){.usable = usable}));
}

static struct mw_error *replaced_of(struct mw_track *track, uint32_t stack, struct mw_replaced **out)
{
	struct mw_stack_record *record = mw_stack_table_at(&track->stacks, stack);

	if (!record->replaced) {
		MW_TRY(mw_pool_reserve(&track->replaced, 1));
		record->replaced = mw_pool_take(&track->replaced) + 1;
	}
	*out = mw_pool_at(&track->replaced, record->replaced - 1);
	return NULL;
}

/* What its series is of, `amount` by now, is about to change. */
static struct mw_error *follow(struct mw_replaced *replaced, const struct mw_series_clock *clock, uint64_t amount)
{
	uint16_t known = replaced->known;

	if (known == clock->now)
		return NULL;
	replaced->known = clock->now;
	return mw_series_catch_up(&replaced->older, known, clock, amount);
}

struct mw_error *mw_replaced_take(struct mw_track *track, uint32_t stack, uint64_t bytes, uint64_t old_bytes,
				  bool older)
{
	struct mw_replaced *replaced = NULL;

	MW_TRY(replaced_of(track, stack, &replaced));
	/* Its calls don't only free. */
	if (!replaced->count && replaced->older_count)
		mw_replaced_deinit(replaced);
	replaced->count++;
	if (older) {
		MW_TRY(follow(replaced, &track->clock, replaced->older_bytes));
		replaced->older_count++;
		replaced->unknown += old_bytes == MW_SIZE_UNKNOWN;
		/* A block of the same usable size counts as the same size. */
		if (old_bytes == MW_SIZE_UNKNOWN || old_bytes == mw_replaced_usable(bytes))
			old_bytes = bytes;
		replaced->older_bytes += old_bytes;
	}
	replaced->larger += bytes > old_bytes && old_bytes != MW_SIZE_UNKNOWN;
	return NULL;
}

static void make_ambiguous(const struct mw_track *track, uint32_t stack)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, stack);

	/* Without memory it has none, though the place is taken. */
	if (record->replaced)
		((struct mw_replaced *)mw_pool_at(&track->replaced, record->replaced - 1))->ambiguous++;
}

/*
 * How well does a block that was allocated `distance` calls from the free of an older one take its place? What has its size
 * comes before what was only next to it.
 */
enum fit { NO_FIT, IS_NEXT, SAME_SIZE };

static enum fit fits(uint64_t bytes, uint64_t old_bytes, uint32_t distance)
{
	if (old_bytes == mw_replaced_usable(bytes))
		return SAME_SIZE;
	return distance == 1 && (old_bytes == MW_SIZE_UNKNOWN ||
				 (bytes / FACTOR <= old_bytes && old_bytes / FACTOR <= bytes))
		       ? IS_NEXT
		       : NO_FIT;
}

/* The thread has freed older blocks of late: does the new one take the place of one of them? */
static struct mw_error *match_frees(struct mw_track *track, struct mw_recent *recent, struct mw_recent_call *own)
{
	struct mw_recent_call *found = NULL;
	enum fit best = NO_FIT;
	bool has_frees = false;

	for (uint32_t i = 0; i < MW_RECENT; i++) {
		struct mw_recent_call *old = &recent->frees[i];
		enum fit fit;

		if (own->call - old->call > MW_NEAR)
			old->call = 0;
		if (!old->call)
			continue;
		has_frees = true;
		fit = fits(own->bytes, old->bytes, own->call - old->call);
		if (fit == NO_FIT || own->stack == MW_STACK_NONE)
			continue;
		if (old->stack != MW_STACK_NONE) {
			if (old->stack != own->stack)
				make_ambiguous(track, old->stack);
		} else if (fit > best) {
			found = old;
			best = fit;
		}
	}
	recent->has_frees = has_frees;
	if (!found)
		return NULL;
	found->stack = own->stack;
	own->stack = MW_STACK_NONE;
	return mw_replaced_take(track, found->stack, own->bytes, found->bytes, true);
}

struct mw_error *mw_replaced_match(struct mw_track *track, struct mw_recent *recent, struct mw_recent_call *own)
{
	const struct mw_recent_call *old = &recent->own_free;
	uint32_t stack = own->stack;

	if (old->call && old->stack == stack && own->call - old->call == 1) {
		own->stack = MW_STACK_NONE;
		return mw_replaced_take(track, stack, own->bytes, old->bytes, false);
	}
	return recent->has_frees ? match_frees(track, recent, own) : NULL;
}

struct mw_error *mw_replaced_look_back(struct mw_track *track, struct mw_recent *recent, const struct mw_block *block)
{
	uint32_t stack = block->stack;

	if (block->bytes < STORAGE)
		return NULL;
	for (uint32_t i = 1; i <= MW_RECENT; i++) {
		struct mw_recent_call *own = &recent->allocations[(recent->next_allocation - i) % MW_RECENT];

		if (!own->call || recent->calls - own->call > MW_NEAR)
			break;
		/* What was there before the block is not its replacement. */
		if (own->addr == block->addr)
			break;
		if (own->stack == stack) {
			own->stack = recent->own_free.stack = MW_STACK_NONE;
			return mw_replaced_take(track, stack, own->bytes, block->bytes, false);
		}
	}
	return NULL;
}

/*
 * The latest allocation of the thread, of those that fit best, that can have taken the place of what it frees now; NULL:
 * there is none. What has the size of others that took a place is one of them, and no storage that was next to it.
 */
static struct mw_recent_call *match_allocations(struct mw_recent *recent, uint64_t bytes, bool *ambiguous)
{
	struct mw_recent_call *found = NULL;
	enum fit best = NO_FIT;

	*ambiguous = false;
	for (uint32_t i = 1; i <= MW_RECENT; i++) {
		struct mw_recent_call *own = &recent->allocations[(recent->next_allocation - i) % MW_RECENT];
		uint32_t distance = recent->calls - own->call;
		enum fit fit;

		if (!own->call || distance > MW_NEAR)
			break;
		fit = fits(own->bytes, bytes, distance);
		if (fit > best) {
			found = NULL;
			best = fit;
			*ambiguous = false;
		}
		if (fit == NO_FIT || fit < best || own->stack == MW_STACK_NONE)
			continue;
		if (found)
			*ambiguous |= found->stack != own->stack;
		else
			found = own;
	}
	return found;
}

struct mw_error *mw_replaced_count_gone(struct mw_track *track, uint32_t stack, uint64_t bytes)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, stack)->tally;
	struct mw_replaced *replaced = NULL;

	if (tally->impacting.count || tally->transient.count)
		return NULL;
	MW_TRY(replaced_of(track, stack, &replaced));
	MW_TRY(follow(replaced, &track->clock, replaced->older_count));
	replaced->older_count++;
	replaced->unknown += bytes == MW_SIZE_UNKNOWN;
	replaced->older_bytes += bytes == MW_SIZE_UNKNOWN ? 0 : bytes;
	return NULL;
}

struct mw_error *mw_replaced_look_for_new(struct mw_track *track, struct mw_recent *recent, struct mw_recent_call *old)
{
	bool ambiguous;
	struct mw_recent_call *own = match_allocations(recent, old->bytes, &ambiguous);

	if (!own)
		return NULL;
	old->stack = own->stack;
	own->stack = MW_STACK_NONE;
	MW_TRY(mw_replaced_take(track, old->stack, own->bytes, old->bytes, true));
	if (ambiguous)
		make_ambiguous(track, old->stack);
	return NULL;
}

/* --- whose older blocks a function frees ----------------------------------------------------------------- */

#define CODE   4096u /* bytes: calls that are nearer to each other can be of one function */
#define ROOTS  3u    /* outermost frames, which calls of all functions have */
#define KIN    64u   /* freeing stacks that are looked at: those that free most */
#define LIKE   0.5   /* of logarithms of sizes and counts */
#define CLEAR  0.3   /* so much the second must be further off */
#define ENOUGH 0.85  /* of blocks, to be as many */
#define MORE   0.02  /* of those that go: come, at most … */
#define FEW    3.0   /* … or so many blocks … */
#define LESS   0.125 /* … and as much less */

/* Are both calls of one function; `alone`: with nothing but an allocator's or a library's own functions below it on one side? */
static bool meet(const struct mw_track *track, uint32_t a, uint32_t b, bool alone)
{
	uint32_t ids[2] = {a, b}, nodes[2], depths[2], own[2] = {0}, modules[2];
	const struct mw_stack_node *outer[2] = {NULL, NULL};

	for (int i = 0; i < 2; i++) {
		nodes[i] = mw_stack_table_at(&track->stacks, ids[i])->node;
		depths[i] = mw_stack_table_at(&track->stacks, ids[i])->frame_count;
	}
	while (nodes[0] != nodes[1] && nodes[0] != MW_POOL_NONE && nodes[1] != MW_POOL_NONE) {
		int deeper = depths[1] > depths[0];

		outer[deeper] = mw_pool_at(&track->stacks.nodes, nodes[deeper]);
		nodes[deeper] = outer[deeper]->parent;
		depths[deeper]--;
	}
	if (nodes[0] != nodes[1] || depths[0] < ROOTS)
		return false;
	/* One jumped to the allocator's function, where it would have returned to its caller. */
	if (!outer[0] || !outer[1])
		return !alone;
	if (outer[0]->module != outer[1]->module || outer[0]->addr - outer[1]->addr + CODE > 2 * CODE)
		return false;
	if (!alone)
		return true;
	modules[0] = modules[1] = outer[0]->module;
	for (int i = 0; i < 2; i++)
		for (uint32_t node = mw_stack_table_at(&track->stacks, ids[i])->node; node != nodes[i];) {
			const struct mw_stack_node *frame = mw_pool_at(&track->stacks.nodes, node);

			own[i] += frame->module == modules[i];
			node = frame->parent;
		}
	return own[0] == 1 || own[1] == 1;
}

/* What the calls of a stack freed of older blocks; NULL: nothing. */
static const struct mw_replaced *gone_of(const struct mw_track *track, uint32_t stack)
{
	uint32_t number = mw_stack_table_at(&track->stacks, stack)->replaced;
	const struct mw_replaced *replaced = number ? mw_pool_at(&track->replaced, number - 1) : NULL;

	return replaced && !replaced->count ? replaced : NULL;
}

/* Stacks that free older blocks, those that free most first, and what is still to be matched. */
struct kin {
	const struct mw_track *track;
	uint32_t freeing[KIN], count;
	double *left; /* by stack: outstanding blocks that took the place of none that is known */
	uint32_t *owner;
};

/* How far the mean sizes of blocks are from each other, by their logarithm: 0 where they are not known. */
static double sizes_apart(const struct kin *kin, uint32_t stack, uint32_t freeing)
{
	const struct mw_tally *tally = &mw_stack_table_at(&kin->track->stacks, stack)->tally;
	const struct mw_replaced *gone = gone_of(kin->track, freeing);
	double known = (double)(gone->older_count - gone->unknown);

	if (known * 2 < (double)gone->older_count)
		return 0;
	return fabs(log(((double)tally->impacting.bytes / (double)tally->impacting.count + 8) /
			((double)gone->older_bytes / known)));
}

/* What stacks of that function free that has no owner yet. */
static double all_gone(const struct kin *kin, uint32_t freeing)
{
	double sum = 0;

	for (uint32_t i = 0; i < kin->count; i++)
		if (kin->owner[kin->freeing[i]] == MW_STACK_NONE &&
		    (kin->freeing[i] == freeing || meet(kin->track, kin->freeing[i], freeing, true)))
			sum += (double)gone_of(kin->track, kin->freeing[i])->older_count;
	return sum;
}

/*
 * The stack whose outstanding blocks are like those that went, by their sizes and their number. Where several are, they share
 * what goes, unless less goes than they have.
 */
static void find_owner(struct kin *kin, uint32_t freeing)
{
	const struct mw_replaced *gone = gone_of(kin->track, freeing);
	double best = INFINITY, second = INFINITY, all = 0, nearest = INFINITY, count = (double)gone->older_count;
	uint32_t found = MW_STACK_NONE, like = MW_STACK_NONE;

	for (uint32_t i = 0; i < kin->track->stacks.records.used; i++) {
		double apart, off;

		if (kin->left[i] <= 0)
			continue;
		apart = sizes_apart(kin, i, freeing);
		if (apart >= LIKE || !meet(kin->track, i, freeing, true))
			continue;
		all += kin->left[i];
		off = apart + fabs(log(kin->left[i] / count)) / 2;
		second = fmin(second, fmax(best, off));
		if (off < best) {
			best = off;
			found = i;
		}
		if (apart < nearest && kin->left[i] >= count * ENOUGH) {
			nearest = apart;
			like = i;
		}
	}
	if (best >= LIKE || second < best + CLEAR)
		found = all * ENOUGH <= all_gone(kin, freeing) ? like : MW_STACK_NONE;
	kin->owner[freeing] = found;
	if (found != MW_STACK_NONE)
		kin->left[found] -= count;
}

/*
 * Do as many blocks of the stack come as go, at any moment? More that go are less dangerous: a limit of memory is reached by
 * other blocks as well.
 */
static bool goes_with(const struct mw_track *track, uint32_t stack, uint32_t freeing)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, stack)->tally;
	double count = (double)gone_of(track, freeing)->older_count, each = 1;
	struct mw_track_replaced gone;
	struct mw_track_series came;

	if (fabs((double)tally->impacting.count - count) > LESS * count)
		return false;
	if (tally->transient.count) {
		each = (double)tally->impacting.bytes / (double)tally->impacting.count;
		mw_track_stack_series(track, stack, track->now_ns, &came);
	} else {
		mw_track_stack_births(track, stack, track->now_ns, &came);
	}
	mw_track_stack_replaced(track, freeing, track->now_ns, &gone);
	for (uint32_t i = 0; i < came.count && i < gone.series.count; i++) {
		double more = (double)came.bytes[i] / each - (double)gone.series.bytes[i];

		if (more > fmax(MORE * count, FEW) || -more > LESS * count)
			return false;
	}
	return true;
}

/*
 * What is evicted in another function than it is put: entries of several blocks each, of which as many come as go, by as many
 * calls. One call that frees as often as another allocates can be anybody's.
 */
static void find_owners_of_entries(struct kin *kin, uint32_t freeing)
{
	uint32_t gone[KIN], came[KIN], gone_count = 0, came_count = 0;

	for (uint32_t i = 0; i < kin->track->stacks.records.used && came_count < KIN; i++)
		if (kin->left[i] > 0 && goes_with(kin->track, i, freeing) && meet(kin->track, i, freeing, false))
			came[came_count++] = i;
	for (uint32_t i = 0; i < kin->count && came_count; i++)
		if (kin->owner[kin->freeing[i]] == MW_STACK_NONE && goes_with(kin->track, came[0], kin->freeing[i]) &&
		    (kin->freeing[i] == freeing || meet(kin->track, kin->freeing[i], freeing, false)))
			gone[gone_count++] = kin->freeing[i];
	if (gone_count < 2 || gone_count != came_count)
		return;
	for (uint32_t i = 0; i < gone_count; i++) {
		uint32_t best = 0;

		for (uint32_t j = 1; j < came_count; j++)
			if (sizes_apart(kin, came[j], gone[i]) < sizes_apart(kin, came[best], gone[i]))
				best = j;
		if (sizes_apart(kin, came[best], gone[i]) >= LIKE)
			continue;
		kin->owner[gone[i]] = came[best];
		kin->left[came[best]] = 0;
		came[best] = came[--came_count];
	}
}

struct mw_error *mw_track_find_kin(const struct mw_track *track, uint32_t **out)
{
	uint32_t count = track->stacks.records.used;
	MW_FREE double *left = calloc((size_t)count + 1, sizeof(*left));
	struct kin kin = {.track = track, .left = left};

	kin.owner = malloc(((size_t)count + 1) * sizeof(**out));
	if (!kin.owner || !left) {
		free(kin.owner);
		return mw_error_nomem();
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, i);
		const struct mw_replaced *gone = gone_of(track, i);
		uint32_t at;

		left[i] = mw_stack_table_kind(&track->stacks, i) == MW_KIND_HEAP ? (double)record->tally.impacting.count
										 : 0;
		kin.owner[i] = MW_STACK_NONE;
		if (!gone || gone->older_count < 3)
			continue;
		at = kin.count < KIN ? kin.count++ : KIN;
		for (; at > 0 && gone_of(track, kin.freeing[at - 1])->older_count < gone->older_count; at--)
			if (at < KIN)
				kin.freeing[at] = kin.freeing[at - 1];
		if (at < KIN)
			kin.freeing[at] = i;
	}
	for (uint32_t i = 0; i < kin.count; i++)
		find_owner(&kin, kin.freeing[i]);
	for (uint32_t i = 0; i < kin.count; i++)
		if (kin.owner[kin.freeing[i]] == MW_STACK_NONE)
			find_owners_of_entries(&kin, kin.freeing[i]);
	*out = kin.owner;
	return NULL;
}
