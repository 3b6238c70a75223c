// SPDX-License-Identifier: MIT
/* runtimes.c: runtimes whose objects are no blocks of malloc's. A new one is a row. */
#include "alloc/families.h"

#include "base/path.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct mw_runtime mw_runtimes[MW_RUNTIMES] = {
	{"python", LIST("libpython"), "PyObject_Malloc", LIST("PYTHONMALLOC=malloc", "PYTHONMALLOC=malloc_debug"),
	 "Python's arenas", NULL,
	 "Python's objects of up to 512 bytes: its allocator (pymalloc) keeps them in arenas of its own. "
	 "--python-objects shows them.",
	 false, "PyObject_Malloc"},
	{"php", LIST("libphp"), "_emalloc", LIST("USE_ZEND_ALLOC=0"), "PHP's chunks", NULL,
	 "PHP's own memory: its allocator (Zend) keeps it in chunks of 2 MiB. Started with USE_ZEND_ALLOC=0, PHP shows "
	 "each block. Frames are PHP's own, not those of scripts: phpspy -p PID shows these, memprof what holds "
	 "memory.",
	 false, NULL},
	{"v8",
	 LIST("libnode.so", "libv8.so", "chrome", "chromium", "electron", "libcef.so", "libQt6WebEngineCore",
	      "libQt5WebEngineCore"),
	 "_ZN2v87Isolate8AllocateEv", NULL, "the JavaScript heap", "V8 ",
	 "JavaScript's objects: V8 keeps its heap in anonymous mappings. A heap snapshot shows what is in it (Node: "
	 "--inspect, or --heapsnapshot-signal=SIGUSR2; a browser: its developer tools).",
	 true, NULL},
	{"jvm", LIST("libjvm.so"), NULL, NULL, "the Java heap", "Java heap",
	 "Java's objects: the JVM keeps its heap in anonymous mappings. jcmd PID GC.class_histogram shows what is in "
	 "it, and so does a heap dump: jcmd PID GC.heap_dump FILE.",
	 true, NULL},
	{"partition-alloc",
	 LIST("chrome", "chromium", "electron", "libcef.so", "libQt6WebEngineCore", "libQt5WebEngineCore"), NULL, NULL,
	 "PartitionAlloc's memory", NULL,
	 "What Chromium takes from PartitionAlloc, its own allocator, which keeps it in anonymous mappings.", false,
	 NULL},
	{"ruby", LIST("libruby"), "ruby_init", NULL, "Ruby's heap", NULL,
	 "Ruby's objects: they lie in pages of its own heap, of which no more than the pages are seen. ObjectSpace "
	 "shows what is in them. Frames are Ruby's own, not those of scripts: rbspy record -p PID shows these.",
	 true, NULL},
	{"dotnet", LIST("libcoreclr.so"), NULL, NULL, "the heap of .NET", NULL,
	 "The objects of .NET: its runtime keeps its heap in anonymous mappings. dotnet-gcdump collect -p PID shows "
	 "what "
	 "is in it.",
	 true, NULL},
	{"go", LIST("libgo.so"), NULL, NULL, "Go's heap", NULL,
	 "Go's objects: its runtime keeps its heap in anonymous mappings. " MW_ALLOC_GO_PROFILE " shows what is in it.",
	 true, NULL},
	/* What these two allocate is malloc's, or the program's that they are in. */
	{"perl", LIST("libperl"), "perl_alloc", NULL, NULL, NULL,
	 "Perl's subs and lines: frames are those of its interpreter. Devel::MAT shows which variables hold the "
	 "memory.",
	 false, NULL},
	{"lua", LIST("liblua"), "lua_newstate", NULL, NULL, NULL,
	 "Lua's functions and lines: frames are those of its interpreter. collectgarbage(\"count\") tells how much Lua "
	 "itself holds.",
	 false, NULL},
	{"erlang", LIST("beam.smp"), NULL, NULL, "Erlang's carriers", NULL,
	 "Erlang's terms: its runtime keeps them in memory of its own (carriers), and frames are the runtime's own. "
	 "recon_alloc and observer show which processes hold it.",
	 false, NULL},
};

static bool is_named(const struct mw_runtime *runtime, const char *path)
{
	const char *name = mw_path_name(path);

	for (const char *const *module = runtime->modules; *module; module++)
		if (strncmp(*module, "lib", 3) == 0 ? strncmp(name, *module, strlen(*module)) == 0
						    : strcmp(name, *module) == 0)
			return true;
	return false;
}

static bool visit(void *context, const struct mw_elf_symbol *symbol)
{
	uint32_t *found = context;

	for (unsigned i = 0; symbol->function && i < MW_RUNTIMES; i++)
		if (mw_runtimes[i].symbol && strcmp(mw_runtimes[i].symbol, symbol->name) == 0)
			*found |= 1u << i;
	return true;
}

uint32_t mw_runtimes_of(const char *path, struct mw_elf *elf)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < MW_RUNTIMES; i++) {
		if (is_named(&mw_runtimes[i], path))
			found |= 1u << i;
		if (elf && strcmp(mw_runtimes[i].name, "go") == 0 && mw_elf_is_go(elf))
			found |= 1u << i;
	}
	/* Of a file that can't be read they are not known. */
	if (elf)
		mw_error_destroy(mw_elf_each_symbol(elf, visit, &found));
	return found;
}

bool mw_runtimes_collect(const char *path, uint32_t held)
{
	for (unsigned i = 0; i < MW_RUNTIMES; i++)
		if (mw_runtimes[i].collects && (is_named(&mw_runtimes[i], path) || held >> i & 1))
			return true;
	return false;
}

uint32_t mw_runtimes_visible(const char *environment, size_t size)
{
	uint32_t visible = 0;

	for (size_t at = 0; at < size; at += strnlen(environment + at, size - at) + 1)
		for (unsigned i = 0; i < MW_RUNTIMES; i++)
			for (const char *const *setting = mw_runtimes[i].environment; setting && *setting; setting++)
				if (strlen(*setting) < size - at && strcmp(*setting, environment + at) == 0)
					visible |= 1u << i;
	return visible;
}

uint32_t mw_runtimes_hooked(const struct mw_hook_info *hooks, size_t count)
{
	uint32_t hooked = 0;

	for (size_t i = 0; i < count; i++)
		for (unsigned j = 0; j < MW_RUNTIMES; j++)
			if (mw_runtimes[j].hook && !hooks[i].refused &&
			    strcmp(hooks[i].function, mw_runtimes[j].hook) == 0)
				hooked |= 1u << j;
	return hooked;
}
