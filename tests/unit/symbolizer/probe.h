/* SPDX-License-Identifier: MIT */
/* probe.h: addresses inside the fixture library, got by running it in the test's own process. */
#ifndef MW_TEST_PROBE_H
#define MW_TEST_PROBE_H

#include "symbol/symbolizer.h"

struct probe {
	void *library;
	struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
};

void probe_open(struct probe *probe, const char *library);
void probe_close(struct probe *probe);
/* Where the function `name` of the library calls out: the return address. */
mw_addr probe_address(const struct probe *probe, const char *name);
/* The frames there. */
size_t probe_frames(const struct probe *probe, const char *name, const struct mw_symbol_frame **frames);
const char *probe_source(const struct probe *probe, const char *name);
/* Assert a frame: `file` a base name. */
void probe_expect(const struct mw_symbol_frame *frame, const char *function, const char *file, uint32_t line,
		  bool inlined);

#endif
