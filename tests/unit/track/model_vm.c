// SPDX-License-Identifier: MIT
/* model_vm.c: mapping events of the plain model, page by page (model.h). */
#include "model.h"

#include <stdlib.h>

static uint32_t first_page(const struct mw_event *event)
{
	return (uint32_t)((event->addr - MODEL_VM_AT) / MODEL_PAGE);
}

static uint32_t page_count(const struct mw_event *event)
{
	return (uint32_t)(event->size / MODEL_PAGE);
}

/* One page of the owner is gone; gives how many bytes of it were from before the window. */
static uint64_t lose_page(struct model *model, uint32_t owner, uint64_t time)
{
	struct model_map *map;

	if (owner == 0)
		return 0;
	if (owner == MODEL_BEFORE)
		return MODEL_PAGE;
	map = &model->maps[owner - 1];
	map->pages--;
	model_release(model, map->stack, map->thread, map->pages == 0, MODEL_PAGE);
	if (map->pages == 0)
		model_lived(model, map->stack, time - map->time);
	return 0;
}

static uint64_t map_over(struct model *model, const struct mw_event *event)
{
	uint32_t first = first_page(event), count = page_count(event);
	uint64_t before = 0;

	for (uint32_t i = first; i < first + count; i++) {
		before += lose_page(model, model->pages[i], event->time_ns);
		model->pages[i] = model->map_count + 1;
	}
	if (model->map_count == model->map_capacity) {
		model->map_capacity = model->map_capacity ? model->map_capacity * 2 : 1024;
		model->maps = realloc(model->maps, model->map_capacity * sizeof(*model->maps));
		assert_non_null(model->maps);
	}
	model->maps[model->map_count++] = (struct model_map){event->time_ns, count, event->stack, event->thread};
	model_add(model, event->stack, event->thread, event->size, event->time_ns);
	return before;
}

static void begin(struct model *model, const struct mw_event *event)
{
	struct model_call *call = model_begin_call(model, event);

	call->first = first_page(event);
	call->count = page_count(event);
	call->owners = calloc(call->count + 1, sizeof(*call->owners));
	assert_non_null(call->owners);
	for (uint32_t i = 0; i < call->count; i++) {
		call->owners[i] = model->pages[call->first + i];
		model->pages[call->first + i] = 0;
	}
}

static void end(struct model *model, const struct mw_event *event)
{
	struct model_call call = model_end_call(model, event->thread);
	uint64_t before = 0;

	for (uint32_t i = 0; i < call.count; i++)
		before += lose_page(model, call.owners[i], call.time);
	if (event->type == MW_EVENT_REMAP_END)
		before += map_over(model, event);
	if (before > 0)
		model_aofi(model, event->stack, before);
	free(call.owners);
}

static void fail_call(struct model *model, const struct mw_event *event)
{
	struct model_call call = model_end_call(model, event->thread);
	uint64_t before = 0;

	for (uint32_t i = 0; i < call.count; i++) {
		if (model->pages[call.first + i] == 0)
			model->pages[call.first + i] = call.owners[i];
		else
			before += lose_page(model, call.owners[i], call.time);
	}
	if (before > 0)
		model_aofi(model, event->stack, before);
	free(call.owners);
}

void model_vm_event(struct model *model, const struct mw_event *event)
{
	uint64_t before;

	switch (event->type) {
	case MW_EVENT_MAP:
		before = map_over(model, event);
		if (before > 0)
			model_aofi(model, event->stack, before);
		break;
	case MW_EVENT_UNMAP_BEGIN:
	case MW_EVENT_REMAP_BEGIN:
		begin(model, event);
		break;
	case MW_EVENT_UNMAP_END:
	case MW_EVENT_REMAP_END:
		end(model, event);
		break;
	default:
		fail_call(model, event);
	}
}

void model_before(struct model *model, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		if (model->pages[i] == 0)
			model->pages[i] = MODEL_BEFORE;
	}
}
