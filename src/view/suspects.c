// SPDX-License-Identifier: MIT
/* suspects.c: see suspects.h. */
#include "view/suspects.h"

#include "base/cleanup.h"
#include "base/function_name.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/path.h"
#include "track/sampling.h"
#include "view/growth.h"
#include "view/pools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLLECTED   300.0 /* seconds in which a heap's garbage is collected, whatever the runtime waits for */
#define FEW_SAMPLES 8     /* blocks: more are not worth a word */
#define CERTAIN     10    /* so many times faster growth that is not certain comes before one that is */
#define TRIFLE      4096u /* bytes: less comes after all else that grows */
#define NEAR_MAIN   3     /* frames from the allocation: further out main() is no answer */

/* --- whose line it is ------------------------------------------------------------------------------------ */

/* As mw_function_is_of() takes them. */

/* Of languages' libraries, which call the program's functions as well; beside the standard ones. */
static const char *const libraries[] = {"operator new", "__cxxabiv1::", "__cxa_", "boost::", "absl::", "folly::", NULL};

static const char *const allocators[] = {
	/* of languages and allocators */
	"__rust_", "__rdl_", "__rg_", "malloc", "calloc$", "realloc", "reallocarray$", "strdup$", "strndup$",
	"__strdup$", "__strndup$", "asprintf$", "vasprintf$", "__vasprintf_internal$", "__libc_", "__GI_",
	"posix_memalign$", "aligned_alloc$", "memalign$", "je_", "tc_", "mi_", "_mi_", "tcmalloc::", "rallocx$",
	"mallocx$", "imalloc", "do_malloc",
	/* of programs and their libraries */
	"zmalloc", "zcalloc", "zrealloc", "ztrymalloc", "ztrycalloc", "ztryrealloc", "zstrdup$", "_sds", "sdsnew",
	"sdsdup$", "sdsempty$", "sdscat", "sdsMakeRoomFor", "createStringObject$", "createRawStringObject$",
	"createEmbeddedStringObject$", "dictAddRaw$", "xmalloc", "xcalloc", "xrealloc", "xstrdup", "xstrndup",
	"xmemdup", "xzalloc", "xnmalloc$", "xnrealloc$", "x2realloc", "x2nrealloc$", "ximalloc", "xpalloc$",
	"sh_malloc", "sh_xmalloc", "sh_realloc", "sh_xrealloc", "savestring$", "g_malloc", "g_realloc", "g_try_malloc",
	"g_try_realloc", "g_slice_alloc", "g_strdup", "g_strndup$", "g_memdup", "ngx_alloc$", "ngx_calloc$",
	"ngx_memalign$", "ngx_palloc", "ngx_pnalloc$", "ngx_pcalloc$", "ngx_pmemalign$", "ngx_create_pool$",
	"apr_palloc", "apr_pcalloc", "apr_allocator_alloc", "allocator_alloc$", "os::malloc", "os::realloc",
	"os::strdup", "os::commit_memory", "os::pd_commit_memory", "os::reserve_memory", "os::pd_reserve_memory",
	"AllocateHeap", "ReallocateHeap", "CHeapObj", "Unsafe_AllocateMemory", "Unsafe_ReallocateMemory", "Arena::grow",
	"Arena::Amalloc", "ChunkPool::", "Chunk::operator new", "PyMem_", "_PyMem_", "PyObject_Malloc$",
	"PyObject_Calloc$", "PyObject_Realloc$", "_PyObject_Malloc", "_PyObject_Calloc$", "_PyObject_Realloc$",
	"pymalloc_alloc$", "PyType_GenericAlloc$", "_PyObject_GC_", "gc_alloc$", "_PyObject_New", "_PyObject_NewVar$",
	"allocate_from_new_pool$", "v8::base::OS::Allocate", "v8::base::Malloc", "v8::base::Realloc",
	"v8::internal::Malloced::", "v8::internal::AllocWithRetry", "v8::internal::NewArray",
	"v8::internal::AlignedAlloc", "node::Malloc", "node::Realloc", "node::UncheckedMalloc",
	"node::UncheckedRealloc", "node::UncheckedCalloc",
	"node::NodeArrayBufferAllocator::", "v8::internal::Heap::AllocateExternalBackingStore",
	"v8::internal::BackingStore::Allocate", "v8::ArrayBuffer::New",
	"WTF::Partitions::", "partition_alloc::", "CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_strdup",
	"CRYPTO_memdup", "OPENSSL_malloc", "sqlite3Malloc", "sqlite3_malloc", "sqlite3DbMalloc", "sqlite3Realloc",
	"sqlite3_realloc", "sqlite3DbRealloc", "sqlite3MemMalloc$", "sqlite3MemRealloc$", "mallocWithAlarm$",
	"pcache1Alloc", "dbMallocRawFinish$", "dbReallocFinish$", "MemoryContextAlloc", "AllocSetAlloc",
	"AllocSetRealloc$", "AllocSetContextCreate", "palloc", "repalloc", "pstrdup$", "GenerationAlloc", "SlabAlloc$",
	"pg_malloc", "copyObjectImpl$", "list_copy", "talloc_", "_talloc_", "__talloc", "_emalloc", "_ecalloc$",
	"_erealloc", "_estrdup$", "_safe_malloc", "_safe_emalloc$", "_safe_femalloc$", "__zend_malloc",
	"__zend_realloc$", "zend_mm_", "_zend_mm_", "ruby_xmalloc", "ruby_xcalloc", "ruby_xrealloc", "objspace_x",
	"rb_gc_impl_malloc", "Perl_safesys", "Perl_sv_grow$", "Perl_more_bodies$", "Perl_more_sv$", "S_more_",
	"lua_newuserdata", "luaM_", "l_alloc$", "mem_malloc$", "safe_malloc", "safe_calloc", "safe_realloc",
	"my_malloc$", "my_realloc$", "ut_allocator", "mem_heap_", "av_malloc", "av_mallocz", "av_realloc", "av_calloc$",
	"SDL_malloc", "Qt_malloc", "qMalloc", "qRealloc", "QArrayData::allocate", "QArrayData::reallocate", "xmlMalloc",
	"wmem_", "erts_alloc", "erts_sys_alloc", "erts_realloc", "erts_sys_realloc", NULL};

/* What cgo puts around each function of C that Go calls. */
static bool is_of_cgo(const char *function)
{
	return (strncmp(function, "_cgo_", 5) == 0 && strstr(function, "_Cfunc_")) || strstr(function, "._Cfunc_") ||
	       strstr(function, "._cgo_") || strncmp(function, "runtime.asmcgocall", 18) == 0;
}

bool mw_suspects_is_wrapper(const char *function)
{
	return is_of_cgo(function) || mw_function_is_std(function) || mw_function_is_of(libraries, function) ||
	       mw_function_is_of(allocators, function);
}

/* Functions that get memory for a heap that a runtime keeps by itself: whoever happened to call them is no answer. */
static bool is_runtime_heap(const struct mw_report_frame *frame)
{
	static const char *const heaps[] = {"v8::internal::MemoryAllocator::AllocatePage",
					    "v8::internal::MemoryAllocator::AllocateLargePage",
					    "new_arena$",
					    "zend_mm_chunk_alloc$",
					    "heap_page_allocate$",
					    "G1PageBasedVirtualSpace::commit$",
					    "PSVirtualSpace::expand_by$",
					    NULL};

	return frame->function && mw_function_is_of(heaps, frame->function);
}

/* Did a runtime collect all its garbage in the window? Its collector allocates while it does. */
static bool was_collected(const struct mw_report *report)
{
	static const char *const collectors[] = {"v8::internal::MarkCompactCollector::", NULL};

	for (size_t i = 0; i < report->stack_count; i++)
		for (size_t j = 0; j < report->stacks[i].frame_count; j++)
			if (report->stacks[i].frames[j].function &&
			    mw_function_is_of(collectors, report->stacks[i].frames[j].function))
				return true;
	return false;
}

/* Such a heap, and what its objects have outside it, grows until its garbage is collected. */
static bool is_collected(const struct mw_report *report, const struct mw_report_frame *frame)
{
	static const char *const heaps[] = {"v8::", "heap_page_allocate$",
					    "G1PageBasedVirtualSpace::", "PSVirtualSpace::", NULL};
	static const char *const buffers[] = {"v8::internal::JSArrayBuffer::",
					      "v8::internal::BackingStore::",
					      "v8::internal::(anonymous namespace)::ConstructBuffer",
					      "v8::ArrayBuffer::",
					      "node::Buffer::",
					      NULL};

	if (!frame || !frame->function || report->window.to - report->window.from >= COLLECTED)
		return false;
	return is_runtime_heap(frame) ? mw_function_is_of(heaps, frame->function)
				      : mw_function_is_of(buffers, frame->function) && !was_collected(report);
}

static bool is_of_system(const char *module)
{
	static const char *const directories[] = {"/usr/lib",     "/lib",       "/usr/local/lib",
						  "/usr/libexec", "/nix/store", "/snap/core"};

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (strncmp(module, directories[i], strlen(directories[i])) == 0)
			return true;
	return module[0] != '/';
}

/* Inlined, or made of a template, from a header that came with a library. */
static bool is_of_header(const char *file)
{
	static const char *const directories[] = {"/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm",
						  "/usr/local/include/"};

	for (size_t i = 0; file && i < sizeof(directories) / sizeof(directories[0]); i++)
		if (strncmp(file, directories[i], strlen(directories[i])) == 0)
			return true;
	return false;
}

/* Of an installation of Python: its standard library, and what was installed beside that. */
static bool is_of_python(const char *file)
{
	static const char directory[] = "/lib/python3";
	const char *found = strstr(file, directory);

	return found && found[sizeof(directory) - 1] && strchr("./", found[sizeof(directory) - 1]);
}

/* HotSpot, and the native code of the class library, wherever a JDK is installed. */
static bool is_of_java(const char *name)
{
	static const char *const names[] = {"libjvm.so",    "libjava.so",    "libjli.so",     "libnio.so",
					    "libnet.so",    "libextnet.so",  "libzip.so",     "libjimage.so",
					    "libverify.so", "libmanagement", "libinstrument", "libsyslookup.so",
					    "libawt",       "libprefs.so",   "libattach.so",  "libjdwp.so",
					    "libj2",        "librmi.so",     "libjsvml.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* V8, where Node.js has it: the program, or a library. */
static bool has_v8(const char *name)
{
	return strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0 || strncmp(name, "libnode.so", 10) == 0 ||
	       strncmp(name, "libv8", 5) == 0 || strcmp(name, "electron") == 0;
}

bool mw_suspects_interprets(const char *module)
{
	const char *name = module ? mw_path_name(module) : "";

	return strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0 || is_of_java(name) ||
	       has_v8(name) || (module && is_of_python(module));
}

/* A method of the class library, whose files have no directories. */
static bool is_of_jdk(const struct mw_report_frame *frame)
{
	static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

	for (size_t i = 0; frame->function && i < sizeof(packages) / sizeof(packages[0]); i++)
		if (strncmp(frame->function, packages[i], strlen(packages[i])) == 0)
			return true;
	return false;
}

/* Of node itself, or of a package that was installed beside the program. */
static bool is_of_node(const char *file)
{
	return strncmp(file, "node:", 5) == 0 || strstr(file, "/node_modules/");
}

/* A line of a script that somebody has written for this program. */
static bool is_own_script(const struct mw_report_frame *frame)
{
	return mw_language_is_script(frame->language) && frame->file && frame->file[0] != '<' &&
	       !is_of_python(frame->file) && !(frame->language == MW_LANGUAGE_JAVA && is_of_jdk(frame)) &&
	       !(frame->language == MW_LANGUAGE_JAVASCRIPT && is_of_node(frame->file));
}

/*
 * Go's runtime, or its library, which are compiled into each program: in src/ of an installation (…/go/src/net/http/…),
 * where packages of others begin with a host's name, or, where paths are cut (-trimpath), in src/ itself.
 */
static bool is_of_go(const struct mw_report_frame *frame)
{
	static const char *const packages[] = {"runtime/", "internal/", "syscall/", "net/", "os/", "reflect/", "sync/"};
	const char *file = frame->file, *go = file ? strstr(file, "/go") : NULL;
	const char *package = go ? strchr(go + 1, '/') : NULL;

	if (frame->language != MW_LANGUAGE_GO || !file)
		return false;
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (strncmp(file, packages[i], strlen(packages[i])) == 0)
			return true;
	if (!package || strncmp(package, "/src/", 5) != 0 ||
	    strspn(go + 3, "-.0123456789") != (size_t)(package - go - 3))
		return false;
	package += 5;
	return !memchr(package, '.', strcspn(package, "/"));
}

static bool is_own(const struct mw_report_frame *frame, const char *exe)
{
	return frame->module && !is_of_go(frame) && !frame->generated && !is_of_header(frame->file) &&
	       ((exe && strcmp(frame->module, exe) == 0) || !is_of_system(frame->module));
}

/* The innermost line of a script, one of the program's own where there is one; or a native line within that which is the
 * program's own, as an extension's. SIZE_MAX: the stack has no script. */
static size_t script_frame(const struct mw_report_stack *stack)
{
	size_t native = SIZE_MAX, script = SIZE_MAX;

	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (mw_language_is_script(frame->language)) {
			if (native != SIZE_MAX || is_own_script(frame))
				return native != SIZE_MAX ? native : i;
			script = script != SIZE_MAX ? script : i;
		} else if (native == SIZE_MAX && script == SIZE_MAX && is_own(frame, NULL) && !frame->interprets &&
			   !(frame->function && mw_suspects_is_wrapper(frame->function))) {
			native = i;
		}
	}
	return script;
}

/* What runs a program's scripts. */
static bool is_loop(const char *function)
{
	static const char *const loops[] = {"_PyEval_EvalFrame", "PyEval_EvalFrame", "execute_ex$", "rb_vm_exec$",
					    "Perl_runops_",      "luaV_execute$",    NULL};

	return mw_function_is_of(loops, function);
}

/* Is it the inside, whose name is not known, of an allocator or of an interpreter's function? One with a name calls it,
 * through others like it. */
static bool is_inside(const struct mw_report_stack *stack, size_t i, bool interpreted)
{
	const char *module = stack->frames[i].module;

	while (module && i < stack->frame_count && stack->frames[i].module &&
	       strcmp(stack->frames[i].module, module) == 0) {
		const char *function = stack->frames[i].function;

		if (function)
			return mw_function_is_of(allocators, function) || (interpreted && !is_loop(function));
		i++;
	}
	return false;
}

static bool is_main(const struct mw_report_stack *stack, size_t i)
{
	const char *function = stack->frames[i].function;

	if (function)
		return strcmp(function, "main") == 0;
	function = i + 1 < stack->frame_count ? stack->frames[i + 1].function : NULL;
	return function && strncmp(function, "__libc_start_", 13) == 0;
}

/* Does the program run scripts here? What it calls in a library is theirs, not the program's. */
static bool is_interpreted(const struct mw_report_stack *stack)
{
	for (size_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i].function && is_loop(stack->frames[i].function))
			return true;
	return false;
}

/* Where all are wrappers, or are not in modules that anybody suspects. */
static size_t outermost_wrapper(const struct mw_report_stack *stack)
{
	size_t i = 0;

	while (i < stack->frame_count && stack->frames[i].function && mw_suspects_is_wrapper(stack->frames[i].function))
		i++;
	if (i < stack->frame_count && !stack->frames[i].generated)
		return i;
	return i ? i - 1 : 0;
}

size_t mw_suspects_frame(const struct mw_report_stack *stack, const char *exe)
{
	bool interpreted = is_interpreted(stack);
	size_t charged = SIZE_MAX, script = script_frame(stack);

	for (size_t i = 0; i < stack->frame_count; i++)
		if (is_runtime_heap(&stack->frames[i]))
			return i;
	if (script != SIZE_MAX)
		return script;
	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (frame->function ? mw_suspects_is_wrapper(frame->function) || is_of_go(frame)
				    : is_inside(stack, i, interpreted))
			continue;
		if (charged == SIZE_MAX && stack->suspect && frame->module &&
		    strcmp(frame->module, stack->suspect) == 0)
			charged = i;
		if (!is_own(frame, exe))
			continue;
		if (charged < i &&
		    ((i > NEAR_MAIN && is_main(stack, i)) || (interpreted && exe && strcmp(frame->module, exe) == 0)))
			break;
		return i;
	}
	return charged == SIZE_MAX ? outermost_wrapper(stack) : charged;
}

/* --- merging --------------------------------------------------------------------------------------------- */

#define ELEMENTS 16 /* blocks, to one of their container's storage */

/* What a verdict means to somebody who looks for a leak. */
enum rank { LOST, GROWS, OPEN, CALM };

static enum rank rank_of(const struct mw_report_growth *growth)
{
	if (growth->verdict >= MW_GROWTH_STEADY)
		return GROWS;
	return growth->verdict == MW_GROWTH_TOO_SHORT ? OPEN : CALM;
}

/* Whatever its course is: a block that is lost is a leak. */
static bool is_lost(const struct mw_report_stack *stack)
{
	return mw_report_lost(stack->leaks).count != 0;
}

struct line {
	const struct mw_report_frame *frame; /* NULL: stacks without frames */
	bool several;                        /* stacks */
	bool grows;                          /* one of them does */
	struct mw_report_growth growth;      /* of all together, where several */
	const struct mw_report_stack *most;  /* of most blocks */
	uint32_t suspects[CALM + 1];         /* its suspect of that rank + 1; 0: none yet */
};

struct merger {
	struct mw_report *report;
	struct mw_arena *arena;
	struct mw_index index;
	struct line *lines;
	uint32_t *line_of; /* of each of the report's stacks */
	size_t *next;      /* the stack of the same suspect that follows, or SIZE_MAX … */
	size_t *first, *last;
};

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_line(const struct mw_report_frame *a, const struct mw_report_frame *b)
{
	if (!a || !b)
		return a == b;
	if (!same(a->module, b->module) || !same(a->function, b->function))
		return false;
	return a->function ? a->line == b->line && same(a->file, b->file) : a->offset == b->offset;
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

static uint32_t hash_line(const void *context, uint32_t number)
{
	const struct mw_report_frame *frame = ((const struct line *)context)[number].frame;
	uint64_t hash;

	if (!frame)
		return 0;
	hash = hash_text(hash_text(2166136261u, frame->module), frame->function);
	return (uint32_t)(mw_hash_mix(hash ^ (frame->function ? frame->line : frame->offset) << 32) >> 32);
}

static bool find_line(struct merger *merger, const struct mw_report_frame *frame, uint32_t *out)
{
	struct line *added = &merger->lines[merger->index.count];
	uint32_t number, hash;

	*added = (struct line){.frame = frame};
	hash = hash_line(merger->lines, merger->index.count);
	MW_INDEX_EACH(&merger->index, hash, number)
		if (is_same_line(merger->lines[number].frame, frame)) {
			merger->lines[number].several = true;
			*out = number;
			return true;
		}
	if (!mw_index_reserve(&merger->index, hash_line, merger->lines))
		return false;
	*out = mw_index_put(&merger->index, hash);
	return true;
}

/* Blocks that come and go are nobody's to suspect. */
static bool counts(const struct mw_report_stack *stack)
{
	return is_lost(stack) ||
	       (stack->growth.known && stack->kind != MW_KIND_VM_INTERNAL && stack->growth.verdict != MW_GROWTH_CHURN);
}

static struct mw_error *find_lines(struct merger *merger)
{
	struct mw_report *report = merger->report;

	for (size_t i = 0; i < report->stack_count; i++) {
		struct mw_report_stack *stack = &report->stacks[i];

		merger->line_of[i] = UINT32_MAX;
		if (!counts(stack))
			continue;
		if (!find_line(merger, mw_report_line(stack), &merger->line_of[i]))
			return mw_error_nomem();
		if (rank_of(&stack->growth) == GROWS && is_collected(report, merger->lines[merger->line_of[i]].frame))
			stack->growth.verdict = MW_GROWTH_TOO_SHORT;
	}
	return NULL;
}

/*
 * Storage grows with what is in it: where that comes by the same line, and is known not to grow, neither does the storage;
 * where it is not known of what is more than the storage, nor is it of this.
 */
static void judge_storage(struct merger *merger)
{
	struct mw_report *report = merger->report;

	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		struct line *line = merger->line_of[i] == UINT32_MAX ? NULL : &merger->lines[merger->line_of[i]];

		if (line && (!line->most || stack->impacting.count > line->most->impacting.count))
			line->most = stack;
	}
	for (size_t i = 0; i < report->stack_count; i++) {
		struct mw_report_growth *growth = &report->stacks[i].growth;
		struct line *line = merger->line_of[i] == UINT32_MAX ? NULL : &merger->lines[merger->line_of[i]];
		const struct mw_report_stack *most = line ? line->most : NULL;

		if (!most)
			continue;
		if (growth->storage && rank_of(growth) < rank_of(&most->growth) &&
		    (rank_of(growth) == OPEN ||
		     (rank_of(&most->growth) == OPEN && most->impacting.bytes > report->stacks[i].impacting.bytes)) &&
		    most->impacting.count >= ELEMENTS) {
			growth->verdict = most->growth.verdict;
			growth->certain = false;
		}
		line->grows |= rank_of(growth) == GROWS;
	}
}

/* Of several stacks of which none can be judged by itself all together are judged. */
static struct mw_error *judge_lines(struct merger *merger, const struct mw_summary_input *input,
				    const uint32_t *group_of)
{
	struct mw_report *report = merger->report;
	size_t count = merger->index.count;
	uint32_t stack_count = mw_track_stack_count(input->track);
	MW_FREE uint32_t *line_of_group = calloc(report->stack_count + 1, sizeof(*line_of_group));
	MW_FREE uint32_t *line_of_stack = calloc(stack_count + 1u, sizeof(*line_of_stack));
	MW_FREE struct mw_report_growth **out = calloc(count + 1, sizeof(*out));
	bool any = false;

	if (!line_of_group || !line_of_stack || !out)
		return mw_error_nomem();
	for (size_t i = 0; i < report->stack_count; i++)
		line_of_group[report->stacks[i].group] = merger->line_of[i];
	for (uint32_t i = 0; i < stack_count; i++)
		line_of_stack[i] = group_of[i] == UINT32_MAX ? UINT32_MAX : line_of_group[group_of[i]];
	for (size_t i = 0; i < count; i++)
		if (merger->lines[i].several && !merger->lines[i].grows &&
		    !is_collected(report, merger->lines[i].frame)) {
			out[i] = &merger->lines[i].growth;
			any = true;
		}
	return any ? mw_view_judge(input, report, line_of_stack, out, count) : NULL;
}

static void add_stack(struct merger *merger, size_t i)
{
	struct mw_report *report = merger->report;
	const struct mw_report_stack *stack = &report->stacks[i];
	struct line *line = &merger->lines[merger->line_of[i]];
	const struct mw_report_growth *growth = &stack->growth;
	struct mw_report_suspect *suspect;
	double rate;
	uint32_t *number;

	/* Together they grow, or too little is known of them all. */
	if (line->growth.known && rank_of(&line->growth) < rank_of(growth) && rank_of(growth) == OPEN)
		growth = &line->growth;
	number = &line->suspects[is_lost(stack) ? LOST : rank_of(growth)];
	if (!*number) {
		suspect = &report->suspects[report->suspect_count++];
		*suspect = (struct mw_report_suspect){.frame = line->frame,
						      .verdict = growth->verdict,
						      .certain = true,
						      .runtime_heap = line->frame && is_runtime_heap(line->frame)};
		*number = (uint32_t)report->suspect_count;
		merger->first[*number - 1] = i;
	} else {
		merger->next[merger->last[*number - 1]] = i;
	}
	merger->last[*number - 1] = i;
	merger->next[i] = SIZE_MAX;
	suspect = &report->suspects[*number - 1];
	/* The verdict is that of the stack with most bytes. */
	suspect->certain &= growth->certain;
	suspect->bytes += stack->impacting.bytes;
	suspect->blocks += stack->impacting.count;
	mw_amount_add(&suspect->lost, mw_report_lost(stack->leaks));
	mw_amount_add(&suspect->settled_later, stack->settled_later);
	mw_spreads_add(&suspect->spreads, &stack->spreads);
	suspect->freed += stack->transient.count;
	suspect->stack_count++;
	rate = stack->growth.bytes_per_second;
	suspect->bytes_per_hour += rate > 0 && rank_of(growth) == GROWS ? rate * 3600 : 0;
}

/* What is certain comes before what grows faster, unless that grows much faster. */
static double weight_of(const struct mw_report_suspect *suspect)
{
	return suspect->bytes_per_hour * (suspect->certain ? CERTAIN : 1);
}

static int compare_suspects(const void *left, const void *right)
{
	const struct mw_report_suspect *a = left, *b = right;
	struct mw_report_growth a_growth = {.verdict = a->verdict}, b_growth = {.verdict = b->verdict};
	enum rank a_rank = a->lost.count ? LOST : rank_of(&a_growth);
	enum rank b_rank = b->lost.count ? LOST : rank_of(&b_growth);

	if (a_rank != b_rank)
		return a_rank < b_rank ? -1 : 1;
	if (a_rank == LOST && a->lost.bytes != b->lost.bytes)
		return a->lost.bytes > b->lost.bytes ? -1 : 1;
	if (a_rank == GROWS && (a->bytes < TRIFLE) != (b->bytes < TRIFLE))
		return a->bytes < TRIFLE ? 1 : -1;
	if (a_rank == GROWS && weight_of(a) != weight_of(b))
		return weight_of(a) > weight_of(b) ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a->stacks[0] > b->stacks[0]) - (a->stacks[0] < b->stacks[0]);
}

static struct mw_error *merge(struct merger *merger)
{
	struct mw_report *report = merger->report;

	for (size_t i = 0; i < report->stack_count; i++)
		if (merger->line_of[i] != UINT32_MAX)
			add_stack(merger, i);
	for (size_t i = 0; i < report->suspect_count; i++) {
		struct mw_report_suspect *suspect = &report->suspects[i];
		const struct mw_spread *spread = &suspect->spreads.impacting;
		struct mw_limits limits =
			mw_sampling_limits((double)suspect->bytes, spread->bytes,
					   report->sampling.count > 1 ? (double)report->sampling.interval : 0);
		size_t at = 0;

		suspect->low = limits.low;
		suspect->high = limits.high;
		suspect->stacks = mw_arena_array(merger->arena, suspect->stack_count, sizeof(*suspect->stacks));
		if (!suspect->stacks)
			return mw_error_nomem();
		for (size_t stack = merger->first[i]; stack != SIZE_MAX; stack = merger->next[stack])
			suspect->stacks[at++] = stack;
	}
	qsort(report->suspects, report->suspect_count, sizeof(*report->suspects), compare_suspects);
	return NULL;
}

/* --- words ----------------------------------------------------------------------------------------------- */

static const char *meaning(enum mw_growth_verdict verdict)
{
	switch (verdict) {
	case MW_GROWTH_STEADY:
		return "It kept on taking memory up to the end and did not give it back";
	case MW_GROWTH_STEPWISE:
		return "It took memory in bursts, again and again, and did not give it back";
	case MW_GROWTH_ACCELERATING:
		return "It kept on taking memory, ever faster, and did not give it back";
	case MW_GROWTH_CONTAINER:
		return "Its storage was replaced by a larger one again and again, up to the end";
	case MW_GROWTH_TOO_SHORT:
		return "The window is too short to tell a leak from memory in use";
	case MW_GROWTH_PLATEAU:
		return "It grew, then stopped growing, as a cache does that has filled";
	case MW_GROWTH_STEADY_STATE:
		return "As much that is older was freed as came, as in a ring or a cache at its limit";
	case MW_GROWTH_ONE_OFF:
		return "It was allocated once, in a short time, and kept";
	case MW_GROWTH_CHURN:
		break;
	}
	return "It comes and goes";
}

/* How long to watch, where blocks live too long for the window: in seconds, 0 where that is not known. */
static double longer(const struct mw_report *report, const struct mw_report_suspect *suspect)
{
	double longest = 0;

	for (size_t i = 0; i < suspect->stack_count; i++) {
		const struct mw_report_growth *growth = &report->stacks[suspect->stacks[i]].growth;

		longest = growth->settle_age > longest ? growth->settle_age : longest;
	}
	return longest / 1.5;
}

static const char *sentence(const struct mw_report *report, const struct mw_report_suspect *suspect,
			    struct mw_arena *arena)
{
	double length = report->window.to - report->window.from, life = longer(report, suspect);
	char text[400];
	uint64_t sampled = suspect->spreads.impacting.blocks;
	bool few = sampled && sampled < FEW_SAMPLES;
	int at = snprintf(text, sizeof(text), "%s", meaning(suspect->verdict));

	if (suspect->verdict == MW_GROWTH_TOO_SHORT && is_collected(report, suspect->frame))
		(void)snprintf(text + at, sizeof(text) - (size_t)at,
			       ": a runtime keeps its objects in it, and garbage that it has not collected yet; watch "
			       "for %.0f s or longer.",
			       COLLECTED);
	else if (suspect->verdict == MW_GROWTH_TOO_SHORT && few)
		(void)snprintf(text, sizeof(text),
			       "Only %" PRIu64
			       " of its block%s sampled, too few to tell a leak from memory in use; watch "
			       "for longer, or sample more blocks (--sample with fewer bytes).",
			       sampled, sampled == 1 ? " was" : "s were");
	else if (suspect->verdict == MW_GROWTH_TOO_SHORT && report->window.ended == MW_END_EXIT &&
		 report->window.to >= report->window.seconds)
		(void)snprintf(text, sizeof(text), "The process ended too early to tell a leak from memory in use.");
	else if (suspect->verdict == MW_GROWTH_TOO_SHORT && life > length / 10)
		(void)snprintf(text + at, sizeof(text) - (size_t)at,
			       ": blocks of it live %.0f s; watch for %.0f s or longer.", life,
			       life * 5 > 60 ? life * 5 : 60);
	else if (suspect->verdict == MW_GROWTH_TOO_SHORT)
		(void)snprintf(text + at, sizeof(text) - (size_t)at, "; watch for %.0f s or longer.",
			       length * 5 > 60 ? length * 5 : 60);
	else if (suspect->lost.count)
		(void)snprintf(text + at, sizeof(text) - (size_t)at, ". What is lost can't be freed any more.");
	else if (suspect->verdict >= MW_GROWTH_STEADY && suspect->runtime_heap)
		(void)snprintf(text + at, sizeof(text) - (size_t)at, ". A runtime keeps its objects in it.");
	else if (suspect->verdict >= MW_GROWTH_STEADY && !suspect->certain && sampled && !report->target.launched)
		(void)snprintf(text + at, sizeof(text) - (size_t)at,
			       ". Not certain: as blocks are sampled it is not known what older memory was freed "
			       "meanwhile, so a cache or a ring that is full would look the same.");
	else if (suspect->verdict >= MW_GROWTH_STEADY && !suspect->certain)
		(void)snprintf(
			text + at, sizeof(text) - (size_t)at,
			suspect->freed ? ". Not certain: memory that is freed much later would look the same."
			: sampled ? ". No sampled block of it was freed, so a cache that is still filling would look "
				    "the same."
				  : ". None of these blocks was freed, so a cache that is still filling would look the "
				    "same.");
	else if (suspect->verdict == MW_GROWTH_STEADY_STATE && !suspect->certain)
		(void)snprintf(text + at, sizeof(text) - (size_t)at,
			       ". That is judged by sizes, as who allocated the older blocks is not known.");
	else
		(void)snprintf(text + at, sizeof(text) - (size_t)at, ".");
	return mw_arena_string(arena, text);
}

struct mw_error *mw_view_suspects(const struct mw_summary_input *input, struct mw_arena *arena,
				  struct mw_report *report, const uint32_t *group_of)
{
	size_t count = report->stack_count + 1;
	MW_FREE struct line *lines = calloc(count, sizeof(*lines));
	MW_FREE uint32_t *line_of = calloc(count, sizeof(*line_of));
	MW_FREE size_t *chains = calloc(3 * count, sizeof(*chains));
	struct merger merger = {.report = report, .arena = arena, .lines = lines, .line_of = line_of};
	struct mw_error *err;

	report->suspects = mw_arena_array(arena, count, sizeof(*report->suspects));
	if (!lines || !line_of || !chains || !report->suspects)
		return mw_error_nomem();
	merger.next = chains;
	merger.first = chains + count;
	merger.last = chains + 2 * count;
	err = find_lines(&merger);
	if (!err)
		judge_storage(&merger);
	if (!err)
		err = judge_lines(&merger, input, group_of);
	if (!err)
		err = merge(&merger);
	if (!err)
		err = mw_view_pools_merge(arena, report);
	mw_index_deinit(&merger.index);
	for (size_t i = 0; i < report->suspect_count && !err; i++)
		report->suspects[i].sentence = sentence(report, &report->suspects[i], arena);
	return err;
}
