/* SPDX-License-Identifier: MIT */
/*
 * store.h: what a recording holds, for those who write one and those who read it. How it lies in a file: FORMAT.md.
 *
 * A recording is of one or more processes, numbered from 0. Numbers of stacks, threads and hooks are those that the
 * process's sink gave out; each is emitted before the first event that names it. What is emitted twice with one number is
 * news of the same thing (a thread's name, a module that has gone): the last word counts. Times are nanoseconds since
 * the process's window began. Strings are UTF-8 as the target had them, NULL is "unknown"; all that is pointed to is
 * good during the call only.
 */
#ifndef MW_STORE_STORE_H
#define MW_STORE_STORE_H

#include <memwatch/event.h>
#include <memwatch/heap.h>

/* A process that another has made. */
struct mw_stored_child {
	pid_t pid;
	const char *comm;
	bool watched;
};

#define MW_STORED_CHILDREN_MAX 1024

/* Who a process is. Emitted at the window's start, and again where it has become known better. */
struct mw_stored_target {
	pid_t pid;
	const char *comm, *exe;
	const char *const *command;
	size_t command_count;
	int64_t started_realtime_ns; /* CLOCK_REALTIME at the window's start */
	bool track_heap, track_vm;
	bool launched;                      /* by memwatch, and watched from its first instruction on … */
	bool attached;                      /* … or it ran already; neither: an older memwatch did not tell */
	uint32_t depth;                     /* deepest stack kept, frames */
	const char *engine, *engine_reason; /* which engine watched, and why that one */
	struct mw_memory_limit limit;       /* what the process comes to first if it grows; used: at the window's end */
	const char *distribution;           /* ID of os-release in its root directory, or a word of ID_LIKE; NULL */
	bool own_root;                      /* its root directory is another than memwatch's */
	bool by_root;                       /* memwatch was root */
	const char *frames_missing;         /* why frames of an interpreter are, a sentence; NULL: they are not */
	uint32_t runtimes;                  /* whose objects were not seen: a mask by name (alloc/families.h) */
	bool knows_children;
	const struct mw_stored_child *children; /* that were alive at the window's end */
	size_t child_count;                     /* at most MW_STORED_CHILDREN_MAX */
};

struct mw_stored_hook {
	uint32_t number;
	const char *function, *module, *refused;
	mw_addr address;
	uint32_t role, kind; /* enum mw_role, enum mw_kind */
};

/* A file with code that the process has or had mapped. */
struct mw_stored_module {
	uint32_t number;
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none */
	mw_addr start, end;   /* lowest and highest address of its mappings */
	uint64_t base;        /* offset in its file (vaddr) = address - base */
	bool suspect;         /* what it allocates is its own: neither an allocator nor the C/C++ runtime */
	bool has_file;        /* its file could be read */
};

struct mw_stored_thread {
	uint32_t number;
	pid_t tid;
	const char *name;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of a line of /proc/PID/maps
struct mw_stored_mapping {
	mw_addr start, end;
	uint32_t kind;     /* enum mw_region_kind */
	uint64_t resident; /* bytes; MW_SIZE_UNKNOWN where not known */
	const char *path;  /* "" for anonymous memory */
	bool exec;         /* may be executed */
	bool accessible;   /* … or read or written */
	/* Bytes, as a runtime says of all its memory of that name, at the first mapping of it; 0: nothing. */
	uint64_t committed, used;
};

/* When an address space was looked at. */
enum mw_stored_moment { MW_STORED_START, MW_STORED_END };

/* A process's memory at a moment; bytes, MW_SIZE_UNKNOWN where not known. */
struct mw_stored_sample {
	uint64_t time_ns;
	uint64_t rss, pss, vsize; /* without what is memwatch's own */
	uint64_t own_resident, own_mapped;
	uint64_t heap_impacting, vm_impacting;
	/* glibc's arenas: what is in use, what is free in them, what they have of the system. */
	uint64_t arena_used, arena_free, arena_size;
};

struct mw_stored_mark {
	uint32_t number; /* from 1 */
	uint64_t time_ns;
	const char *name;
};

/* A frame that an address was resolved to, innermost inlined one first. */
struct mw_stored_frame {
	const char *function, *file;
	uint32_t line;   /* 0: unknown */
	uint64_t offset; /* from the function's start, or from the module's */
	bool inlined;
};

struct mw_stored_symbol {
	uint32_t module;
	mw_addr addr; /* a return address */
	const struct mw_stored_frame *frames;
	size_t frame_count;
};

/* A named figure of the engine's (mw_engine_stats). */
struct mw_stored_figure {
	const char *name;
	uint64_t value;
};

/* How a process's window went. */
struct mw_stored_end {
	uint64_t length_ns;
	uint32_t ended; /* enum mw_window_end */
	bool has_exit_status;
	int exit_status; /* wait status as waitpid gives it */
	const char *left_behind;
	const struct mw_stored_figure *figures;
	size_t figure_count;
};

/* What a look at the heap has found of the blocks of a stack that were outstanding at the window's end. */
struct mw_stored_leaks {
	uint64_t stack; /* its id in reports */
	struct mw_amount amounts[MW_REACH_COUNT];
	const char *const *holder; /* how one of them is held, root first */
	size_t holder_count;       /* at most MW_STORED_HOLDERS_MAX */
};

#define MW_STORED_HOLDERS_MAX 64

/* By what the process's memory became more or less between looks at both ends of the window: a part of it; or the RSS. */
struct mw_stored_change {
	uint32_t kind;             /* enum mw_heap_change_kind, or one of those below; others are a newer writer's */
	const char *name, *detail; /* as in mw_heap_change, and so the next two */
	uint64_t stack;
	int64_t bytes;
};

enum { MW_STORED_CHANGE_RSS_BEFORE = 14, MW_STORED_CHANGE_RSS_AFTER = 15 };

/* Who uses blocks of a stack that a pool took and that were not freed, as they were read at the window's end. */
struct mw_stored_pool {
	uint64_t stack;                           /* its id in reports */
	const char *pool, *name, *path, *example; /* as in mw_report_pool; no name: all others */
	struct mw_amount blocks;
};

/* What of a look at a heap (memwatch/heap.h) is emitted: first all but its lists, then each item of these. */
enum mw_stored_heap_part {
	MW_STORED_HEAP_HEAD, /* with the lengths of its lists */
	MW_STORED_HEAP_LINE,
	MW_STORED_HEAP_ALLOCATOR,
	MW_STORED_HEAP_GROUP,   /* with how many contents it has, … */
	MW_STORED_HEAP_CONTENT, /* … which follow */
	MW_STORED_HEAP_GAP,
	MW_STORED_HEAP_HOLDER,
	MW_STORED_HEAP_ADVICE,
	MW_STORED_HEAP_PARTS /* or more: of a newer writer, nothing is known of it */
};

struct mw_stored_heap {
	uint32_t part; /* enum mw_stored_heap_part */
	union {
		struct mw_heap_report head;
		struct mw_heap_line line;
		struct mw_heap_figures allocator;
		struct mw_heap_group group;
		struct mw_heap_content content;
		struct mw_heap_gap gap;
		struct mw_heap_holder holder;
		const char *advice;
	};
};

/*
 * Who receives all of that: from a reader, in the order of the file, or from a window while it goes. Any may be NULL: it is
 * skipped. An error ends the reading.
 */
struct mw_store_visitor {
	void *context;
	struct mw_error *(*target)(void *context, uint32_t process, const struct mw_stored_target *target);
	struct mw_error *(*hook)(void *context, uint32_t process, const struct mw_stored_hook *hook);
	struct mw_error *(*module)(void *context, uint32_t process, const struct mw_stored_module *module);
	struct mw_error *(*before)(void *context, uint32_t process, mw_addr start, mw_addr end);
	struct mw_error *(*thread)(void *context, uint32_t process, const struct mw_stored_thread *thread);
	struct mw_error *(*stack)(void *context, uint32_t process, uint32_t number, const struct mw_raw_stack *stack);
	/* A sampling interval, before events that name it. Numbers are from 1 on, without gaps. */
	struct mw_error *(*interval)(void *context, uint32_t process, uint16_t number, uint64_t bytes);
	/* In order of time, numbers of threads, stacks and intervals as received before. */
	struct mw_error *(*events)(void *context, uint32_t process, const struct mw_event *events, size_t count);
	/* The window is over: events from here on are those of the settling time (mw_track_settle()). A reader calls it
	 * before each chunk of them. Where it is NULL they are skipped. */
	struct mw_error *(*settle)(void *context, uint32_t process);
	struct mw_error *(*sample)(void *context, uint32_t process, const struct mw_stored_sample *sample);
	struct mw_error *(*mark)(void *context, uint32_t process, const struct mw_stored_mark *mark);
	struct mw_error *(*mapping)(void *context, uint32_t process, enum mw_stored_moment moment,
				    const struct mw_stored_mapping *mapping);
	struct mw_error *(*symbol)(void *context, uint32_t process, const struct mw_stored_symbol *symbol);
	struct mw_error *(*end)(void *context, uint32_t process, const struct mw_stored_end *end);
	struct mw_error *(*leaks)(void *context, uint32_t process, const struct mw_stored_leaks *leaks);
	struct mw_error *(*change)(void *context, uint32_t process, const struct mw_stored_change *change);
	struct mw_error *(*heap)(void *context, uint32_t process, const struct mw_stored_heap *heap);
	struct mw_error *(*pool)(void *context, uint32_t process, const struct mw_stored_pool *pool);
	/* After each chunk, once all that it holds has been emitted: bytes read of all there are. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
};

/* What is received as one struct mw_stored_X, each by a function on_X(). */
#define MW_STORE_EACH(DEFINE)                                                                                          \
	DEFINE(target)                                                                                                 \
	DEFINE(hook)                                                                                                   \
	DEFINE(module)                                                                                                 \
	DEFINE(sample) DEFINE(mark) DEFINE(symbol) DEFINE(end) DEFINE(leaks) DEFINE(heap) DEFINE(change) DEFINE(pool)

/* A receiver of all but events, and stacks and threads that these name: its functions are on_target() and so on. */
#define MW_STORE_VISITOR(receiver)                                                                                     \
	(struct mw_store_visitor)                                                                                      \
	{                                                                                                              \
		.context = (receiver), .target = on_target, .hook = on_hook, .module = on_module, .before = on_before, \
		.settle = on_settle, .sample = on_sample, .mark = on_mark, .mapping = on_mapping, .symbol = on_symbol, \
		.end = on_end, .leaks = on_leaks, .heap = on_heap, .change = on_change, .pool = on_pool,               \
	}

#endif
