/* SPDX-License-Identifier: MIT */
/* frames.h: the frames of samples as all formats show them: distinct ones by number, with names that any text may hold. */
#ifndef MW_EXPORT_FRAMES_H
#define MW_EXPORT_FRAMES_H

#include "base/map.h"

#include <memwatch/export.h>

struct mw_export_frame {
	char *name;         /* of the function, or of what stands for it; UTF-8 without control characters */
	const char *file;   /* NULL: unknown */
	const char *module; /* NULL: of none */
	uint32_t line;      /* 0: unknown */
	mw_addr address;    /* 0: frames are not distinguished by it, or it has none */
	bool inlined;       /* into the next one outwards */
	enum mw_language language;
};

/* When the outermost frame of each stack is its process. */
enum mw_export_root {
	MW_EXPORT_ROOT_NEVER,
	MW_EXPORT_ROOT_OF_SEVERAL, /* where there are several processes */
	MW_EXPORT_ROOT_ALWAYS,
};

/* Zero-initialise but for the first three; mw_export_frames_deinit() frees. */
struct mw_export_frames {
	const struct mw_export *export;
	bool by_address; /* calls from different places in a line are different frames */
	enum mw_export_root root;
	struct mw_map numbering;
	struct mw_export_frame *items; /* numbering.count of them */
	size_t capacity;
	/* Of the sample that was asked for last, innermost first. */
	uint32_t *numbers;
	size_t count, number_capacity;
};

/* Set the numbers to those of a sample's frames: at least one. Errors: MEMORY. */
struct mw_error *mw_export_frames_of(struct mw_export_frames *frames, const struct mw_export_process *process,
				     const struct mw_export_sample *sample) MW_MUST_CHECK;
void mw_export_frames_deinit(struct mw_export_frames *frames);

struct mw_line;

/* Set the line to the command that the process ran, or its name. Errors: MEMORY. */
struct mw_error *mw_export_command(const struct mw_report *report, struct mw_line *out) MW_MUST_CHECK;

/* Text that may be any bytes, as a value of JSON. Errors: MEMORY. */
struct mw_error *mw_export_put_json(FILE *stream, const char *text) MW_MUST_CHECK;

/* What of the sample that measure is. */
uint64_t mw_export_measure_of(enum mw_export_measure measure, const struct mw_export_sample *sample);

#endif
