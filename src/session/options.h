/* SPDX-License-Identifier: MIT */
/* options.h: what is asked of a session. */
#ifndef MW_SESSION_OPTIONS_H
#define MW_SESSION_OPTIONS_H

#include <memwatch/engine.h>
#include <memwatch/export.h>
#include <memwatch/output.h>
#include <memwatch/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Process ids in the order they were named, each once, and names of others, which are to be found. */
struct mw_pids {
	pid_t *items;
	size_t count;
	char **names; /* malloc'ed, as each of them */
	size_t name_count;
	size_t found; /* so many of `items`, at the end, were found by a name or what else they have in common */
};

#define MW_LABELS_MAX 16

/* Exports that are asked for. Zero-initialise. */
struct mw_export_wishes {
	struct {
		const struct mw_export_format *format;
		const char *file; /* "-": standard output */
	} items[MW_EXPORTS_MAX];
	size_t count;
	enum mw_export_measure measure;
	const struct mw_filter *filter; /* of their blocks; NULL: all */
	bool alone;                     /* there is no report beside them */
};

/* All strings, and the command, are borrowed. */
struct mw_session_options {
	struct mw_pids pids;
	const char *cgroup, *container, *user; /* processes that are to be found; NULL: not given */
	char **command;                        /* NULL-terminated; NULL: attach to `pids` */
	size_t command_count;
	uint64_t duration_ns;      /* 0: no limit */
	uint64_t settle_ns;        /* how long frees are recorded after a window that lasted so long; 0: not at all */
	const char *engine;        /* a name that mw_engine_find() knows */
	const char *engine_reason; /* why that one; NULL: the engine says */
	bool track_heap, track_vm;
	bool python_objects; /* as engines have it */
	uint32_t depth;
	size_t top;
	enum mw_frames frames; /* that are shown of a stack */
	bool all;              /* everything in the report for reading */
	const char
		*files[MW_OUTPUTS_MAX]; /* what is written of it, by format (mw_output_get()); NULL: not in that one */
	const char *output;             /* the recording; NULL: none is kept */
	struct mw_fail_on fail_on;      /* what is to end memwatch with a status of its own */
	bool force;                     /* these may replace whatever files are there */
	bool no_symbols;                /* none are kept in it */
	uint64_t max_memory;            /* bytes of memwatch's own that end the window; 0: no limit */
	uint32_t max_stopped;           /* millionths of five seconds; 0: no limit */
	uint64_t sample_interval;       /* as engines have it */
	uint32_t budget;                /* likewise: millionths of the process's CPU time; 0: none */
	enum mw_overload overload;      /* likewise; MW_OVERLOAD_COUNT: not given */
	uint32_t max_wait;              /* likewise: millionths; 0: no limit */
	uint64_t mark_every_ns;         /* 0: only those that are asked for by SIGUSR1 */
	bool leaks;                     /* a look at the heap at the window's end */
	bool heap_before;               /* and one at its start, to be compared with that */
	bool children, no_children;     /* given: follow what these fork and exec; or not what a command does */
	bool unsafe;                    /* also where a target may not outlive memwatch */
	bool quiet;
	const char *listen;                /* where others may fetch figures and profiles meanwhile; NULL: nowhere */
	const char *listen_token;          /* the file with the token that they have to know; NULL: none */
	const char *push;                  /* the URL that profiles are sent to; NULL: none */
	uint64_t push_every_ns;            /* … how often; 0: once, at the window's end */
	const char *labels[MW_LABELS_MAX]; /* NAME=VALUE, of these */
	size_t label_count;

	struct mw_export_wishes exports;
};

#endif
