// SPDX-License-Identifier: MIT
/* diff_builds.c: see diff_builds.h. */
#include "view/diff_builds.h"

#include <stdlib.h>
#include <string.h>

/* A module with a build-id of its own. */
struct build {
	const struct mw_view_module *module;
	enum mw_diff_side side;
};

static int compare_paths(const struct build *a, const struct build *b)
{
	return strcmp(a->module->path, b->module->path);
}

static int compare_ids(const struct build *a, const struct build *b)
{
	size_t a_size = a->module->build_id_size, b_size = b->module->build_id_size;

	return a_size == b_size ? memcmp(a->module->build_id, b->module->build_id, a_size)
				: (a_size > b_size) - (a_size < b_size);
}

/* By path, then by build, so that equal ones stand side by side. */
static int compare_builds(const void *left, const void *right)
{
	const struct build *a = left, *b = right;
	int order = compare_paths(a, b);

	if (!order)
		order = compare_ids(a, b);
	return order ? order : (int)a->side - (int)b->side;
}

static size_t list_builds(const struct mw_diff_input *input, enum mw_diff_side side, struct build *out)
{
	size_t count = 0;

	for (size_t i = 0; i < input->summary->module_count; i++) {
		const struct mw_view_module *module = &input->summary->modules[i];

		if (module->path && module->build_id && module->build_id_size)
			out[count++] = (struct build){module, side};
	}
	return count;
}

/* Of sorted builds of one path: does each side have some, and do none of them agree? */
static bool is_rebuilt(const struct build *builds, size_t count)
{
	bool has[MW_DIFF_SIDES] = {false};

	for (size_t i = 0; i < count; i++) {
		has[builds[i].side] = true;
		if (i && builds[i - 1].side != builds[i].side && compare_ids(&builds[i - 1], &builds[i]) == 0)
			return false;
	}
	return has[MW_DIFF_OLD] && has[MW_DIFF_NEW];
}

struct mw_error *mw_diff_builds(const struct mw_diff_input inputs[MW_DIFF_SIDES], struct mw_arena *arena,
				struct mw_diff *diff)
{
	size_t most = inputs[MW_DIFF_OLD].summary->module_count + inputs[MW_DIFF_NEW].summary->module_count, count;
	struct build *builds = calloc(most + 1, sizeof(*builds));

	diff->rebuilt = mw_arena_array(arena, most, sizeof(*diff->rebuilt));
	if (!builds || !diff->rebuilt) {
		free(builds);
		return mw_error_nomem();
	}
	count = list_builds(&inputs[MW_DIFF_OLD], MW_DIFF_OLD, builds);
	count += list_builds(&inputs[MW_DIFF_NEW], MW_DIFF_NEW, builds + count);
	qsort(builds, count, sizeof(*builds), compare_builds);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && compare_paths(&builds[first], &builds[end]) == 0;)
			end++;
		if (is_rebuilt(builds + first, end - first))
			diff->rebuilt[diff->rebuilt_count++] = mw_arena_string(arena, builds[first].module->path);
	}
	free(builds);
	return NULL;
}
