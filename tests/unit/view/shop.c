// SPDX-License-Identifier: MIT
/* shop.c: see shop.h. */
#include "shop.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct mw_report_frame order_frames[] = {
	{.function =
		 "void std::vector<shop::Order, std::allocator<shop::Order> >::_M_realloc_insert<shop::Order const&>()",
	 .module = APP,
	 .inlined = true},
	{.function = "shop::Basket::add(shop::Order const&)", .module = APP},
	{.function = "shop::serve", .module = APP},
	{.function = "main", .module = APP},
	{.module = LIBC, .offset = 0x1234},
};
static struct mw_report_frame put_frames[] = {
	{.function = "cache_put", .module = CACHE},
	{.function = "main", .module = APP},
	{.module = LIBC, .offset = 0x1234},
};
static struct mw_report_frame reserve_frames[] = {
	{.function = "arena_reserve", .module = CACHE},
	{.function = "cache_put", .module = CACHE},
	{.function = "main", .module = APP},
	{.module = LIBC, .offset = 0x1234},
};
static struct mw_report_frame internal_frames[] = {
	{.function = "sysmalloc", .module = LIBC},
};
static const struct mw_report_stack stacks[4] = {
	{.id = "00c0ffee00c0ffee",
	 .kind = MW_KIND_HEAP,
	 .api = "operator new(unsigned long)",
	 .frames = order_frames,
	 .frame_count = COUNT(order_frames),
	 .peak = {3, 300, 1.5},
	 .suspect = APP},
	{.id = "0123456789abcdef",
	 .kind = MW_KIND_HEAP,
	 .api = "malloc",
	 .frames = put_frames,
	 .frame_count = COUNT(put_frames),
	 .peak = {1, 50, 1.5},
	 .suspect = CACHE},
	{.id = "fedcba9876543210",
	 .kind = MW_KIND_VM,
	 .api = "mmap",
	 .frames = reserve_frames,
	 .frame_count = COUNT(reserve_frames),
	 .peak = {1, 8192, 1.5},
	 .suspect = CACHE},
	{.id = "1111111111111111",
	 .kind = MW_KIND_VM_INTERNAL,
	 .api = "mmap",
	 .frames = internal_frames,
	 .frame_count = COUNT(internal_frames),
	 .cut = MW_STACK_BROKEN,
	 .peak = {1, 4096, 1.5}},
};
static const uint32_t stack_of[SHOP_STACKS] = {0, 1, 2, 3, 0, UINT32_MAX};
static const struct mw_view_thread threads[SHOP_THREADS] = {{4242, "shopd"}, {4243, "worker 1"}};
static const char *const heaps[SHOP_HEAPS] = {NULL, "main", "arena 1"};

void shop_init(struct shop *shop)
{
	*shop = (struct shop){0};
	for (size_t i = 0; i < COUNT(stacks); i++)
		shop->stacks[i] = stacks[i];
	shop->report.target.pid = 4242;
	shop->report.target.comm = "shopd";
	shop->report.stacks = shop->stacks;
	shop->report.stack_count = COUNT(stacks);
	shop->process = (struct mw_view_process){
		.report = &shop->report,
		.stack_of = stack_of,
		.stack_count = SHOP_STACKS,
		.threads = threads,
		.thread_count = SHOP_THREADS,
		.heaps = heaps,
		.heap_count = SHOP_HEAPS,
	};
}

enum mw_kind shop_kind(uint32_t stack)
{
	static const enum mw_kind kinds[SHOP_STACKS] = {
		[RESERVE] = MW_KIND_VM,
		[INTERNAL] = MW_KIND_VM_INTERNAL,
	};

	return stack < SHOP_STACKS ? kinds[stack] : MW_KIND_HEAP;
}

struct mw_track_fate shop_fate(mw_addr addr, uint64_t bytes, uint32_t stack, uint32_t thread, uint64_t born_ms,
			       uint64_t died_ms)
{
	return (struct mw_track_fate){
		.addr = addr,
		.bytes = bytes,
		.size = bytes,
		.born_ns = born_ms ? born_ms * 1000000 : MW_TIME_UNKNOWN,
		.died_ns = died_ms ? died_ms * 1000000 : MW_TIME_UNKNOWN,
		.stack = stack,
		.thread = thread,
		.block = UINT32_MAX,
		.kind = shop_kind(stack),
		.older = born_ms < SHOP_FROM_NS / 1000000,
		.last = true,
	};
}

uint32_t shop_heap_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc)
{
	(void)context;
	(void)bytes;
	(void)pymalloc;
	if (kind != MW_KIND_HEAP)
		return 0;
	return addr / 16 % 2 ? 2 : 1;
}

uint64_t shop_random(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % below;
}

struct mw_track_fate shop_random_fate(uint64_t *state)
{
	static const uint64_t sizes[] = {0, 1, 16, 40, 4096, 5000, 1 << 20, MW_SIZE_UNKNOWN};
	uint32_t stack = (uint32_t)shop_random(state, SHOP_STACKS + 1);
	uint64_t born = shop_random(state, 2000), died = shop_random(state, 2) ? 2000 + shop_random(state, 500) : 0;
	struct mw_track_fate fate;

	stack = stack == SHOP_STACKS ? MW_STACK_NONE : stack;
	fate = shop_fate(shop_random(state, 1000) * 16, sizes[shop_random(state, 7 + (born == 0))], stack,
			 (uint32_t)shop_random(state, 3), born, died);
	fate.last = shop_random(state, 4) != 0;
	if (shop_random(state, 3) == 0 && fate.kind != MW_KIND_HEAP && born)
		fate.size += fate.bytes + shop_random(state, 2) * 4096;
	return fate;
}

enum mw_fate shop_type(const struct mw_track_fate *fate)
{
	if (fate->died_ns == MW_TIME_UNKNOWN)
		return fate->older ? MW_FATE_AOFO : MW_FATE_IMPACTING;
	return fate->older ? MW_FATE_AOFI : MW_FATE_TRANSIENT;
}
