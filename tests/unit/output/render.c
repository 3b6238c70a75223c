// SPDX-License-Identifier: MIT
/* render.c: see render.h. */
#include "render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct mw_output *find_output(const char *name)
{
	const struct mw_output *output;

	for (size_t i = 0; (output = mw_output_get(i)); i++)
		if (strcmp(output->name, name) == 0)
			break;
	return output;
}

static FILE *begin(const char *form, char **text, size_t *size, const struct mw_output **output)
{
	FILE *stream = open_memstream(text, size);

	*output = find_output(form);
	assert_non_null(*output);
	assert_non_null(stream);
	return stream;
}

static void end(FILE *stream, char *const *text, const size_t *size)
{
	assert_int_equal(fclose(stream), 0);
	/* No NUL in the middle. */
	assert_int_equal(strlen(*text), *size);
}

char *render(const char *form, const struct mw_report *const *reports, size_t count, struct mw_output_options options)
{
	const struct mw_output *output;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = begin(form, &text, &size, &output);

	assert_null(output->write(reports, count, &options, stream));
	end(stream, &text, &size);
	return text;
}

json_t *render_json(const char *form, const struct mw_report *const *reports, size_t count,
		    struct mw_output_options options)
{
	char *text = render(form, reports, count, options);
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s at line %d", error.text, error.line);
	free(text);
	return root;
}

char *render_heap(const char *form, const struct mw_heap_report *heap, bool all)
{
	const struct mw_output_options options = {.top = 10, .all = all};
	const struct mw_output *output;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = begin(form, &text, &size, &output);

	assert_null(output->write_heap(heap, &options, stream));
	end(stream, &text, &size);
	return text;
}

void assert_golden(const char *name, const char *text)
{
	char *path = NULL, *expected;
	size_t size;
	FILE *file;

	assert_true(asprintf(&path, "%s/%s", MW_GOLDEN_DIR, name) > 0);
	if (getenv("MEMWATCH_UPDATE_GOLDEN")) {
		file = fopen(path, "w");
		assert_non_null(file);
		assert_true(fputs(text, file) >= 0);
		assert_int_equal(fclose(file), 0);
		free(path);
		return;
	}
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing: set MEMWATCH_UPDATE_GOLDEN=1 to write it", path);
	expected = calloc(1, (size_t)1 << 20);
	assert_non_null(expected);
	size = fread(expected, 1, ((size_t)1 << 20) - 1, file);
	fclose(file);
	if (strlen(text) != size || memcmp(text, expected, size) != 0)
		fail_msg("differs from %s (MEMWATCH_UPDATE_GOLDEN=1 writes it anew). Got:\n%s", path, text);
	free(expected);
	free(path);
}
