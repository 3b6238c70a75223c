// SPDX-License-Identifier: MIT
/* glibc_memory.c: an image as what src/alloc reads glibc's arenas from (glibc.h). */
#include "heap/glibc.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static bool is_file(const struct mw_image_mapping *mapping)
{
	/* Huge pages are files, of memory. */
	return mapping->inode && strncmp(mapping->path, "/anon_hugepage", 14) != 0;
}

static bool is_anonymous(const struct mw_image_mapping *mapping)
{
	return mapping->read && mapping->write && !mapping->shared && !mapping->device && !is_file(mapping) &&
	       (mapping->path[0] != '[' || strncmp(mapping->path, "[anon:", 6) == 0);
}

/* Up to `size` bytes of one mapping. Pages of anonymous memory that are not there are zeros, and stay so. */
static size_t read_mapping(const struct mw_image *image, const struct mw_image_mapping *mapping, mw_addr addr,
			   unsigned char *out, size_t size)
{
	mw_addr end, from, to;

	if (size > mapping->end - addr)
		size = (size_t)(mapping->end - addr);
	if (!mapping->read || mapping->device)
		return 0;
	if (is_file(mapping))
		return mw_image_read_some(image, addr, out, size);
	end = addr + size;
	for (mw_addr at = addr; at < end; at = to) {
		if (!mw_image_next_present(image, at, end, &from, &to))
			from = to = end;
		memset(out + (at - addr), 0, (size_t)(from - at));
		if (from < to && !mw_image_read(image, from, out + (from - addr), (size_t)(to - from)))
			return (size_t)(from - addr);
	}
	return size;
}

size_t mw_glibc_read(void *context, mw_addr addr, void *out, size_t size)
{
	const struct mw_image *image = context;
	size_t got = 0;

	while (got < size) {
		const struct mw_image_mapping *mapping = mw_image_mapping_of(image, addr + got);
		size_t more =
			mapping ? read_mapping(image, mapping, addr + got, (unsigned char *)out + got, size - got) : 0;

		if (!more)
			break;
		got += more;
	}
	return got;
}

void mw_glibc_spans_deinit(struct mw_glibc_spans *spans)
{
	free(spans->anonymous);
	free(spans->data);
}

struct mw_error *mw_glibc_spans_find(const struct mw_image *image, struct mw_glibc_spans *out)
{
	MW_EACH(mapping, image->mappings, image->mapping_count) {
		const struct mw_glibc_span span = {mapping->start, mapping->end};

		/* The kernel may tell it in several mappings. */
		if (strcmp(mapping->path, "[heap]") == 0) {
			out->heap.start = out->heap.end ? out->heap.start : span.start;
			out->heap.end = span.end;
		} else if (is_anonymous(mapping)) {
			if (!MW_VECTOR_ROOM(out->anonymous, out->anonymous_count, out->anonymous_capacity))
				return mw_error_nomem();
			out->anonymous[out->anonymous_count++] = span;
		} else if (mapping->read && mapping->write && !mapping->shared && !mapping->device &&
			   is_file(mapping)) {
			if (!MW_VECTOR_ROOM(out->data, out->data_count, out->data_capacity))
				return mw_error_nomem();
			out->data[out->data_count++] = span;
		}
	}
	return NULL;
}
