// SPDX-License-Identifier: MIT
/* image.c: asking an image for its mappings and pages (image.h). */
#include "heap/image.h"

#include "base/vector.h"

#define PAGE 4096u

const struct mw_image_mapping *mw_image_mapping_of(const struct mw_image *image, mw_addr addr)
{
	size_t count = mw_vector_up_to(image->mappings, image->mapping_count, sizeof(*image->mappings),
				       offsetof(struct mw_image_mapping, start), addr);

	return image->mappings && count && addr < image->mappings[count - 1].end ? &image->mappings[count - 1] : NULL;
}

static mw_addr run_end(const struct mw_image_run *run)
{
	return run->start + (mw_addr)run->pages * PAGE;
}

/* The first run that ends behind `addr`. */
static size_t run_behind(const struct mw_image *image, mw_addr addr)
{
	size_t count = mw_vector_up_to(image->runs, image->run_count, sizeof(*image->runs),
				       offsetof(struct mw_image_run, start), addr);

	return image->runs && count && run_end(&image->runs[count - 1]) > addr ? count - 1 : count;
}

struct mw_image_residence mw_image_residence(const struct mw_image *image, mw_addr start, mw_addr end)
{
	struct mw_image_residence sum = {0};

	if (!image->runs && end > start)
		sum.resident = end - start;
	for (size_t i = run_behind(image, start); image->runs && i < image->run_count && image->runs[i].start < end;
	     i++) {
		const struct mw_image_run *run = &image->runs[i];
		mw_addr from = run->start > start ? run->start : start;
		mw_addr to = run_end(run) < end ? run_end(run) : end;

		*(run->state == MW_PAGE_RESIDENT ? &sum.resident : &sum.swapped) += to - from;
	}
	return sum;
}

bool mw_image_next_present(const struct mw_image *image, mw_addr start, mw_addr end, mw_addr *from, mw_addr *to)
{
	size_t i;

	if (start >= end)
		return false;
	if (!image->runs) {
		*from = start;
		*to = end;
		return true;
	}
	i = run_behind(image, start);
	if (i == image->run_count || image->runs[i].start >= end)
		return false;
	*from = image->runs[i].start > start ? image->runs[i].start : start;
	*to = run_end(&image->runs[i]);
	while (++i < image->run_count && image->runs[i].start == *to && *to < end)
		*to = run_end(&image->runs[i]);
	if (*to > end)
		*to = end;
	return true;
}
