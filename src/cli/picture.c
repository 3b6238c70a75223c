// SPDX-License-Identifier: MIT
/*
 * picture.c: see picture.h.
 *
 * In which heap a block lies is known when the window is over, and where heaps are has been looked at. Until then
 * blocks are told apart by places: as long a stretch of addresses as one of glibc's arenas has at least.
 */
#include "cli/picture.h"

#include "base/vector.h"
#include "view/heaps.h"
#include "view/numbering.h"

#include <stdlib.h>

#define PLACE_SHIFT 26u    /* glibc's HEAP_MAX_SIZE, to which its arenas' heaps are aligned */
#define PLACES_MAX  65536u /* blocks in others: heap unknown */

struct place {
	mw_addr lowest; /* of a block in it */
	bool mapped;    /* its blocks seem to have mappings of their own */
};

struct mw_picture {
	struct mw_track *track;
	struct mw_cube *cube;
	struct mw_numbering numbering;
	struct place *places; /* by number */
	size_t capacity;
	uint64_t last_key; /* the place that was asked for last, and its number */
	uint32_t last;
	uint32_t *stack_of, *thread_of;
	struct mw_timeline *timeline;
};

/* Its number plus one; 0: there are too many, or there is no memory. */
static uint32_t find_place(struct mw_picture *picture, uint64_t key)
{
	uint32_t number = 0;
	struct place *places;

	if (key == picture->last_key)
		return picture->last;
	places = mw_vector_room(picture->places, picture->numbering.count, &picture->capacity, sizeof(*places));
	if (!places)
		return 0;
	picture->places = places;
	places[picture->numbering.count] = (struct place){.lowest = UINT64_MAX, .mapped = key & 1};
	if (picture->numbering.count >= PLACES_MAX || !mw_numbering_add(&picture->numbering, key, &number))
		return 0;
	picture->last_key = key;
	picture->last = number + 1;
	return picture->last;
}

static uint32_t place_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind)
{
	struct mw_picture *picture = context;
	uint32_t number;

	if (kind != MW_KIND_HEAP)
		return 0;
	number = find_place(picture, addr >> PLACE_SHIFT << 1 | mw_heaps_seems_mapped(addr, bytes));
	if (number && addr < picture->places[number - 1].lowest)
		picture->places[number - 1].lowest = addr;
	return number;
}

struct mw_error *mw_picture_create(struct mw_track *track, struct mw_picture **out)
{
	struct mw_picture *picture = calloc(1, sizeof(*picture));
	const struct mw_cube_options options = {.heap_of = place_of, .heap_context = picture};
	struct mw_error *err;

	if (!picture)
		return mw_error_nomem();
	picture->track = track;
	picture->last_key = UINT64_MAX;
	err = mw_cube_create(&options, &picture->cube);
	if (err) {
		free(picture);
		return err;
	}
	mw_track_watch(track, mw_cube_fate, picture->cube);
	*out = picture;
	return NULL;
}

void mw_picture_destroy(struct mw_picture *picture)
{
	if (!picture)
		return;
	mw_track_watch(picture->track, NULL, NULL);
	mw_cube_destroy(picture->cube);
	mw_numbering_deinit(&picture->numbering);
	mw_timeline_destroy(picture->timeline);
	free(picture->places);
	free(picture->stack_of);
	free(picture->thread_of);
	free(picture);
}

uint32_t **mw_picture_stack_of(struct mw_picture *picture)
{
	return &picture->stack_of;
}

uint32_t **mw_picture_thread_of(struct mw_picture *picture)
{
	return &picture->thread_of;
}

static struct mw_error *know_heaps(const struct mw_picture_end *end, struct mw_heaps *heaps)
{
	for (size_t look = 0; look < 2; look++)
		for (size_t i = 0; end->looks[look]->taken && i < end->looks[look]->count; i++)
			MW_TRY(mw_heaps_add_mapping(heaps, &end->looks[look]->mappings[i]));
	for (size_t i = 0; i < end->hook_count; i++)
		MW_TRY(mw_heaps_add_hook(heaps, (uint32_t)i, end->hooks[i].function, end->hooks[i].module));
	return NULL;
}

/* Which heap each place is of, and their names. */
static void find_heaps(const struct mw_picture *picture, struct mw_heaps *heaps, uint32_t *heap_of, const char **names)
{
	for (uint32_t i = 0; i < picture->numbering.count; i++) {
		const struct place *place = &picture->places[i];
		uint64_t bytes = place->mapped ? MW_SIZE_UNKNOWN - 1 : 0;

		heap_of[i + 1] = mw_heaps_of(heaps, place->lowest, bytes, MW_KIND_HEAP, UINT32_MAX);
	}
	for (uint32_t i = 0; i < mw_heaps_count(heaps); i++)
		names[i] = mw_heaps_name(heaps, i);
}

static struct mw_error *finish(struct mw_picture *picture, const struct mw_picture_end *end, struct mw_heaps *heaps)
{
	size_t places = (size_t)picture->numbering.count + 1, heap_count;
	uint32_t *heap_of = calloc(places, sizeof(*heap_of));
	const char **names;
	struct mw_error *err = know_heaps(end, heaps);

	heap_count = mw_heaps_count(heaps);
	names = calloc(heap_count + 1, sizeof(*names));
	if (!err && (!heap_of || !names))
		err = mw_error_nomem();
	if (!err) {
		const struct mw_cube_names known = {
			.to_ns = end->length_ns,
			.stack_of = picture->stack_of,
			.stack_count = mw_track_stack_count(picture->track),
			.thread_of = picture->thread_of,
			.thread_count = mw_track_thread_count(picture->track),
			.heap_of = heap_of,
			.heap_of_count = places,
			.heaps = names,
			.heap_count = heap_count,
		};

		find_heaps(picture, heaps, heap_of, names);
		err = mw_cube_finish(picture->cube, &known, &picture->timeline);
	}
	free(heap_of);
	free(names);
	return err;
}

struct mw_error *mw_picture_finish(struct mw_picture *picture, const struct mw_picture_end *end)
{
	struct mw_heaps *heaps = NULL;
	struct mw_error *err;

	mw_track_watch(picture->track, NULL, NULL);
	mw_track_each_survivor(picture->track, mw_cube_survivor, picture->cube);
	/* Until then its thread still makes places. */
	mw_cube_stop(picture->cube);
	MW_TRY(mw_heaps_create(&heaps));
	err = finish(picture, end, heaps);
	mw_heaps_destroy(heaps);
	return err;
}

const struct mw_timeline *mw_picture_timeline(const struct mw_picture *picture)
{
	return picture->timeline;
}
