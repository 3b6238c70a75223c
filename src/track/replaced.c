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

	/* A sum of unknown sizes may be 0 again. */
	for (uint32_t i = 0; i < MW_SIZE_CLASSES * MW_FLOWS; i++)
		if (flows->sums[i] || flows->series[i].changes)
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
#define SAMPLE 256u  /* blocks whose sizes are known: enough of any number */
#define OFF    0.125 /* of those that go: come more or less, at most … */
#define FEW    3.0   /* … or so many blocks */

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
	double *left;               /* by stack: outstanding blocks that took the place of none that is known */
	struct mw_track_kin *found; /* by freeing stack */
};

static struct mw_amount outstanding_of(const struct mw_track *track, uint32_t stack)
{
	struct mw_amount none = {0};

	return stack == MW_STACK_NONE ? none : mw_stack_table_at(&track->stacks, stack)->tally.impacting;
}

static bool are_sizes_known(const struct mw_replaced *gone)
{
	uint64_t known = gone->older_count - gone->unknown;

	return known * 2 >= gone->older_count || known >= SAMPLE;
}

/* How far the mean sizes of blocks are from each other, by their logarithm: 0 where they are not known. Those that came are of one
 * stack, or of two (`other`; MW_STACK_NONE: of one). */
static double sizes_apart(const struct kin *kin, uint32_t stack, uint32_t other, uint32_t freeing)
{
	const struct mw_replaced *gone = gone_of(kin->track, freeing);
	struct mw_amount came = outstanding_of(kin->track, stack);

	if (!are_sizes_known(gone))
		return 0;
	mw_amount_add(&came, outstanding_of(kin->track, other));
	return fabs(log(((double)came.bytes / (double)came.count + 8) /
			((double)gone->older_bytes / (double)(gone->older_count - gone->unknown))));
}

/* What stacks of that function free that has no owner yet. */
static double all_gone(const struct kin *kin, uint32_t freeing)
{
	double sum = 0;

	for (uint32_t i = 0; i < kin->count; i++)
		if (kin->found[kin->freeing[i]].owner == MW_STACK_NONE &&
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
		apart = sizes_apart(kin, i, MW_STACK_NONE, freeing);
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
	kin->found[freeing].owner = found;
	if (found != MW_STACK_NONE)
		kin->left[found] -= count;
}

/*
 * Do about as many blocks come as go, at any moment, of one stack or of two together (MW_STACK_NONE: of one)? A few may be
 * forgotten, and a limit of memory may be reached by other blocks as well.
 */
static bool goes_with(const struct mw_track *track, uint32_t stack, uint32_t other, uint32_t freeing)
{
	double count = (double)gone_of(track, freeing)->older_count, off = fmax(OFF * count, FEW);
	double all = (double)(outstanding_of(track, stack).count + outstanding_of(track, other).count);
	struct mw_track_series came, more = {0};
	struct mw_track_replaced gone;

	if (fabs(all - count) > OFF * count)
		return false;
	mw_track_stack_left(track, stack, track->now_ns, &came);
	if (other != MW_STACK_NONE)
		mw_track_stack_left(track, other, track->now_ns, &more);
	mw_track_stack_replaced(track, freeing, track->now_ns, &gone);
	for (uint32_t i = 0; i < came.count && i < gone.series.count; i++)
		if (fabs((double)came.bytes[i] + (double)more.bytes[i] - (double)gone.series.bytes[i]) > off)
			return false;
	return true;
}

/*
 * One part of the entries is allocated by either of two stacks: together they have as many blocks as `like`, another part, and
 * no other two have.
 */
static bool find_two(const struct kin *kin, uint32_t like, uint32_t freeing, uint32_t two[2])
{
	double count = (double)outstanding_of(kin->track, like).count;
	uint32_t stacks[KIN], stack_count = 0, found = 0;

	for (uint32_t i = 0; i < kin->track->stacks.records.used; i++) {
		double own = kin->left[i];

		if (own <= OFF * count || own >= (1 - OFF) * count || !meet(kin->track, i, freeing, false))
			continue;
		if (stack_count == KIN)
			return false;
		stacks[stack_count++] = i;
	}
	for (uint32_t i = 0; i < stack_count; i++)
		for (uint32_t j = 0; j < i; j++) {
			double both = kin->left[stacks[i]] + kin->left[stacks[j]];

			if (fabs(both - count) > OFF * count || !goes_with(kin->track, stacks[i], stacks[j], freeing))
				continue;
			if (found++)
				return false;
			two[0] = stacks[i];
			two[1] = stacks[j];
		}
	return found == 1;
}

/* Parts of entries: stacks that allocate them. Of one that two allocate, `other` is the second. */
struct parts {
	uint32_t stacks[KIN + 1], others[KIN + 1], count;
};

static double part_apart(const struct kin *kin, const struct parts *parts, uint32_t i, uint32_t freeing)
{
	return sizes_apart(kin, parts->stacks[i], parts->others[i], freeing);
}

/* The part that has the sizes of what went owns it. */
static void take_nearest(struct kin *kin, struct parts *parts, uint32_t freeing)
{
	uint32_t best = 0, stack, other;

	for (uint32_t i = 1; i < parts->count; i++)
		if (part_apart(kin, parts, i, freeing) < part_apart(kin, parts, best, freeing))
			best = i;
	if (!parts->count || part_apart(kin, parts, best, freeing) >= LIKE)
		return;
	stack = parts->stacks[best];
	other = parts->others[best];
	kin->found[freeing].owner = stack;
	kin->left[stack] = 0;
	kin->found[freeing].other = other;
	if (other != MW_STACK_NONE)
		kin->left[other] = 0;
	parts->count--;
	parts->stacks[best] = parts->stacks[parts->count];
	parts->others[best] = parts->others[parts->count];
}

/* Of which part are fewest left over, of what came less what went? */
static void find_fewest(struct kin *kin, const uint32_t *gone, uint32_t count)
{
	uint32_t fewest = MW_STACK_NONE;
	double least = INFINITY;

	for (uint32_t i = 0; i < count; i++) {
		const struct mw_track_kin *found = &kin->found[gone[i]];
		double over = (double)outstanding_of(kin->track, found->owner).count -
			      (double)gone_of(kin->track, gone[i])->older_count;

		if (found->owner == MW_STACK_NONE || found->other != MW_STACK_NONE || over >= least)
			continue;
		least = over;
		fewest = gone[i];
	}
	for (uint32_t i = 0; i < count; i++)
		kin->found[gone[i]].fewest = fewest;
}

/*
 * What is evicted in another function than it is put: entries of several blocks each, of which as many come as go, by as many
 * calls. One call that frees as often as another allocates can be anybody's.
 */
static void find_owners_of_entries(struct kin *kin, uint32_t freeing)
{
	struct parts came = {.count = 0};
	uint32_t gone[KIN], gone_count = 0, two[2];
	bool all_found;

	for (uint32_t i = 0; i < kin->track->stacks.records.used && came.count < KIN; i++)
		if (kin->left[i] > 0 && goes_with(kin->track, i, MW_STACK_NONE, freeing) &&
		    meet(kin->track, i, freeing, false)) {
			came.stacks[came.count] = i;
			came.others[came.count++] = MW_STACK_NONE;
		}
	for (uint32_t i = 0; i < kin->count && came.count; i++)
		if (kin->found[kin->freeing[i]].owner == MW_STACK_NONE &&
		    goes_with(kin->track, came.stacks[0], MW_STACK_NONE, kin->freeing[i]) &&
		    (kin->freeing[i] == freeing || meet(kin->track, kin->freeing[i], freeing, false)))
			gone[gone_count++] = kin->freeing[i];
	if (gone_count == came.count + 1 && find_two(kin, came.stacks[0], freeing, two)) {
		came.stacks[came.count] = two[0];
		came.others[came.count++] = two[1];
	}
	if (gone_count < 2 || came.count < 2 || gone_count < came.count)
		return;
	/* What may be of any size comes last. Where it is not found who allocates each part, it can be anybody's. */
	all_found = gone_count == came.count;
	for (uint32_t i = 0; i < gone_count; i++)
		if (are_sizes_known(gone_of(kin->track, gone[i])))
			take_nearest(kin, &came, gone[i]);
	for (uint32_t i = 0; i < gone_count && all_found; i++)
		if (!are_sizes_known(gone_of(kin->track, gone[i])))
			take_nearest(kin, &came, gone[i]);
	find_fewest(kin, gone, gone_count);
}

struct mw_error *mw_track_find_kin(const struct mw_track *track, struct mw_track_kin **out)
{
	uint32_t count = track->stacks.records.used;
	MW_FREE double *left = calloc((size_t)count + 1, sizeof(*left));
	struct kin kin = {.track = track, .left = left};

	kin.found = malloc(((size_t)count + 1) * sizeof(**out));
	if (!kin.found || !left) {
		free(kin.found);
		return mw_error_nomem();
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, i);
		const struct mw_replaced *gone = gone_of(track, i);
		uint32_t at;

		left[i] = mw_stack_table_kind(&track->stacks, i) == MW_KIND_HEAP ? (double)record->tally.impacting.count
										 : 0;
		kin.found[i] = (struct mw_track_kin){MW_STACK_NONE, MW_STACK_NONE, MW_STACK_NONE};
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
		if (kin.found[kin.freeing[i]].owner == MW_STACK_NONE)
			find_owners_of_entries(&kin, kin.freeing[i]);
	*out = kin.found;
	return NULL;
}
