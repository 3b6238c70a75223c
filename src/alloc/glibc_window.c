// SPDX-License-Identifier: MIT
/* glibc_window.c: memory of a process, read page by page or more at once (glibc_layout.h). */
#include "alloc/glibc_layout.h"
#include "base/clock.h"

#include <stdlib.h>

#define PAGE        4096u
#define WINDOW_SIZE ((size_t)256 << 10)
#define LOOKS       4096u /* from one at the clock to the next */

struct mw_error *glibc_window_init(struct glibc_window *window, const struct mw_glibc_process *process,
				   uint64_t deadline_ns)
{
	*window = (struct glibc_window){.process = process, .deadline_ns = deadline_ns};
	window->bytes = malloc(WINDOW_SIZE);
	return window->bytes ? NULL : mw_error_nomem();
}

void glibc_window_deinit(struct glibc_window *window)
{
	free(window->bytes);
	*window = (struct glibc_window){0};
}

static bool is_late(struct glibc_window *window)
{
	window->late = window->late || mw_clock_ns() > window->deadline_ns;
	return window->late;
}

static bool fill(struct glibc_window *window, mw_addr addr, uint64_t ahead)
{
	const struct mw_glibc_process *process = window->process;
	mw_addr start = addr & ~(mw_addr)(PAGE - 1);
	size_t wanted = PAGE;

	if (is_late(window))
		return false;
	if (ahead > PAGE)
		wanted = ahead < WINDOW_SIZE ? ((size_t)ahead + PAGE - 1) & ~(size_t)(PAGE - 1) : WINDOW_SIZE;
	window->start = start;
	window->size = process->read(process->context, start, window->bytes, wanted);
	return window->size != 0;
}

static bool holds(const struct glibc_window *window, mw_addr addr, size_t size)
{
	return addr >= window->start && addr - window->start < window->size &&
	       size <= window->size - (addr - window->start);
}

const void *glibc_window_at(struct glibc_window *window, mw_addr addr, size_t size, uint64_t ahead)
{
	if (++window->looks % LOOKS == 0 && is_late(window))
		return NULL;
	if (!holds(window, addr, size) && (!fill(window, addr, ahead) || !holds(window, addr, size)))
		return NULL;
	return window->bytes + (addr - window->start);
}
