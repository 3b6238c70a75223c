// SPDX-License-Identifier: MIT
/* symbolizer.c: modules opened through libdwfl when they are first asked about, and what is known of addresses. */
#include "symbol/symbolizer.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/io.h"
#include "base/vector.h"
#include "proc/perf_map.h"
#include "proc/root.h"
#include "symbol/demangle.h"
#include "symbol/inflate.h"
#include "symbol/symbolizer_data.h"
#include "symbol/symbolizer_go.h"
#include "symbol/symbolizer_index.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define FEW 8u /* questions for symbols: for no more it does not pay to make an index */

void (*__attribute__((noreturn)) mw_symbol_no_memory)(void);

/* --- what libdw opens ------------------------------------------------------------------------------------ */

/*
 * The name of a file with debug information (.gnu_debuglink, .gnu_debugaltlink, DW_AT_dwo_name) is anything that the
 * target's maker likes, and libdw opens it: a FIFO's open would wait for ever, a device's may do something. So this
 * program has an open() of its own, which libraries find before that of libc; while a thread is quiet it opens nothing
 * for reading but regular files, and does not wait.
 */

/* While a thread is quiet ELF files are opened with their sections uncompressed (inflate.h), but for `plain`: as they
 * are, for their checksums. */
static _Thread_local unsigned quiet, plain;

/* By another name here, as the headers may have open() inlined. */
int mw_quiet_open(const char *path, int flags, ...) __asm__("open") __attribute__((visibility("default")));
int mw_quiet_open64(const char *path, int flags, ...) __asm__("open64")
	__attribute__((alias("open"), visibility("default")));

/* Takes over `fd` (may be negative); what is compressed by zstd in the file is uncompressed behind the descriptor
 * returned. */
static int inflated(int fd, const char **obstacle)
{
	int copy = fd >= 0 ? mw_inflate_file(fd, obstacle) : -1;

	if (copy < 0)
		return fd;
	close(fd);
	return copy;
}

static int open_quietly(const char *path)
{
	unsigned before = quiet;
	int fd;

	quiet = 0;
	fd = mw_root_open_link(path);
	if (!plain)
		fd = inflated(fd, NULL);
	quiet = before;
	return fd;
}

int mw_quiet_open(const char *path, int flags, ...)
{
	/* Cryptography, for debuginfod, may want randomness. */
	bool reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_DIRECTORY | O_PATH)) &&
		     strcmp(path, "/dev/urandom") != 0;
	mode_t mode = 0;
	va_list args;

	if (quiet && reads)
		return open_quietly(path);
	va_start(args, flags);
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		mode = va_arg(args, mode_t);
	va_end(args);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/*
 * --- which symbol an address belongs to -------------------------------------------------------------------------
 *
 * libdwfl goes through the table in its order, globals first, and locals only where no global with a size holds the
 * address. One that begins nearer to the address is taken for the one that it had, and so is one of a stronger binding
 * wherever it begins; of those that begin together the shorter one unless its binding is weaker. So the order of the
 * table counts, and those that hold the address are gone through in that order here. A symbol without a size is an
 * assembler's label, and is taken only where nothing with a size ends behind it: such an address is libdwfl's to judge.
 */

#define MOST   (1 << 21) /* symbols */
#define AROUND 32u       /* symbols that hold an address */

static uint32_t strength_of(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	case STB_LOCAL:
		return 1;
	default:
		return 0;
	}
}

static bool is_of_interest(const char *name, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	return name && name[0] && symbol->st_shndx != SHN_UNDEF && type != STT_SECTION && type != STT_FILE &&
	       type != STT_TLS;
}

bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module)
{
	int count = dwfl_module_getsymtab(module), first_global = dwfl_module_getsymtab_first_global(module);

	if (count < 1 || count > MOST || first_global < 0)
		return false;
	*index = (struct mw_symbol_index){.first_global = (uint32_t)first_global};
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &start, NULL, NULL, NULL);

		if (!is_of_interest(name, &symbol))
			continue;
		/* One that ends beyond all addresses can't be known of here. */
		if (symbol.st_size > UINT64_MAX - start ||
		    !mw_ranges_add(&index->symbols, start, start + symbol.st_size,
				   (uint64_t)strength_of(&symbol) << 32 | (uint32_t)i)) {
			mw_ranges_deinit(&index->symbols);
			return false;
		}
	}
	mw_ranges_sort(&index->symbols);
	return true;
}

static uint32_t number_of(const struct mw_range *symbol)
{
	return (uint32_t)symbol->value;
}

/* Symbols that hold an address, in the table's order. */
struct around {
	const struct mw_range *symbols[AROUND];
	size_t count;
};

/* False: there are too many. */
static bool look_around(const struct mw_symbol_index *index, size_t before, uint64_t address, struct around *around)
{
	const struct mw_range *symbol;

	around->count = 0;
	while ((symbol = mw_ranges_next(&index->symbols, address, &before)) != NULL) {
		size_t at = around->count;

		if (at == AROUND)
			return false;
		for (; at > 0 && number_of(around->symbols[at - 1]) > number_of(symbol); at--)
			around->symbols[at] = around->symbols[at - 1];
		around->symbols[at] = symbol;
		around->count++;
	}
	return true;
}

static bool is_better(const struct mw_range *symbol, const struct mw_range *best)
{
	if (!best || best->start < symbol->start || best->value >> 32 < symbol->value >> 32)
		return true;
	return best->start == symbol->start && best->end > symbol->end && best->value >> 32 == symbol->value >> 32;
}

/* The best of those that are global, or of the others; NULL: there is none. */
static const struct mw_range *best_of(const struct mw_symbol_index *index, const struct around *around, bool global)
{
	const struct mw_range *best = NULL;

	for (size_t i = 0; i < around->count; i++)
		if ((number_of(around->symbols[i]) >= index->first_global) == global &&
		    is_better(around->symbols[i], best))
			best = around->symbols[i];
	return best;
}

enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_range **symbol)
{
	size_t before = mw_ranges_up_to(&index->symbols, address);
	const struct mw_range *last = before ? &index->symbols.items[before - 1] : NULL;
	struct around around;

	if (!look_around(index, before, address, &around))
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, true);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* A symbol without a size right there, which comes last, keeps libdwfl from looking at locals. */
	if (last && last->start == address && last->end == address)
		return MW_INDEX_ASK;
	*symbol = best_of(index, &around, false);
	if (*symbol)
		return MW_INDEX_FOUND;
	/* One behind all that has a size? */
	return last && last->start >= last->reach ? MW_INDEX_ASK : MW_INDEX_NOTHING;
}

/* --- one module: a session of libdwfl, which has it where its file says that it lies; addresses are vaddr --- */

struct debug {
	const struct mw_elf *elf;
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias; /* libdwfl's address = vaddr + bias */
	bool sought;    /* debug information has been looked for */
	bool has_dwarf;
	bool is_embedded;      /* … stands in the file itself */
	Dwarf_Addr dwarf_bias; /* libdwfl's address = DWARF's + dwarf_bias */
	struct mw_units units;
	struct mw_declarations declarations; /* of variables; empty until they are asked for */
	bool has_declarations;
	struct mw_symbol_index index; /* empty until it is made, or where it can't be */
	uint32_t asked;               /* questions for symbols */
	const char *obstacle;         /* why a file's debug information can't be read; NULL: it can */
};

/* A function symbol of the file. */
struct symbol {
	const char *name; /* as the file has it; good as long as the debug */
	uint64_t start;   /* vaddr */
};

/* libdwfl wants it writable. */
static char debuginfo_path[] = "+:.debug:/usr/lib/debug";
static char *debuginfo_path_pointer = debuginfo_path;

/* The file that a static program's symbols come from, which may lie in another root; -1: there is none. */
static int companion_fd(const struct mw_elf *elf, char **path)
{
	const struct mw_elf *companion = elf->companion;
	int fd = companion && companion->bytes.fd >= 0 ? fcntl(companion->bytes.fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (fd >= 0)
		*path = strdup(companion->name);
	return fd;
}

/*
 * libdwfl keeps the file open whose build-id it has compared, so that must be uncompressed from the start; of one
 * without it compares the checksum, which is that of the file as it is.
 */
static int find_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word checksum, char **path)
{
	struct debug *debug = *user;
	const unsigned char *build_id;
	GElf_Addr address;
	bool by_checksum = dwfl_module_build_id(module, &build_id, &address) <= 0;
	int fd;

	if (by_checksum)
		plain++;
	fd = dwfl_standard_find_debuginfo(module, user, name, base, file, link, checksum, path);
	if (by_checksum)
		plain--;
	/* A link without a checksum names what several debug files share (dwz): the companion is another file. */
	if (fd < 0 && debug && (checksum || !link))
		fd = companion_fd(debug->elf, path);
	return inflated(fd, debug ? &debug->obstacle : NULL);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path_pointer,
};

/* A descriptor of our own for the image, or -1. libdw reads files only, so what comes from memory becomes one. */
static int image_fd(const struct mw_elf *elf)
{
	int fd;

	if (elf->bytes.fd >= 0)
		return fcntl(elf->bytes.fd, F_DUPFD_CLOEXEC, 0);
	fd = memfd_create("memwatch-image", MFD_CLOEXEC);
	if (fd >= 0 && !mw_write_at(fd, elf->bytes.base, elf->bytes.size, 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool report(struct debug *debug, const struct mw_elf *elf, const char *path)
{
	int fd = inflated(image_fd(elf), &debug->obstacle);
	void **user;

	if (fd < 0)
		return false;
	dwfl_report_begin(debug->dwfl);
	debug->module = dwfl_report_elf(debug->dwfl, path, path, fd, 0, true);
	if (!debug->module)
		close(fd); /* consumed on success only */
	dwfl_report_end(debug->dwfl, NULL, NULL);
	if (debug->module && dwfl_module_info(debug->module, &user, NULL, NULL, NULL, NULL, NULL, NULL))
		*user = debug;
	return debug->module && dwfl_module_getelf(debug->module, &debug->bias);
}

static void debug_close(struct debug *debug)
{
	if (!debug)
		return;
	mw_declarations_deinit(&debug->declarations);
	mw_units_deinit(&debug->units);
	mw_ranges_deinit(&debug->index.symbols);
	if (debug->dwfl)
		dwfl_end(debug->dwfl);
	free(debug);
}

/* The image must outlive it; `path` is for finding what belongs to it. NULL where libdw can't make anything of it. */
static struct debug *debug_open(const struct mw_elf *elf, const char *path)
{
	struct debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return NULL;
	debug->elf = elf;
	debug->dwfl = dwfl_begin(&callbacks);
	if (!debug->dwfl || !report(debug, elf, path)) {
		debug_close(debug);
		return NULL;
	}
	debug->is_embedded = mw_elf_section(elf, ".debug_info").present || mw_elf_section(elf, ".zdebug_info").present;
	return debug;
}

/* Look for debug information, once. False without memory. */
static bool seek(struct debug *debug)
{
	Dwarf *dwarf;
	bool good;

	if (debug->sought)
		return true;
	quiet++;
	dwarf = dwfl_module_getdwarf(debug->module, &debug->dwarf_bias);
	if (dwarf && mw_symbol_no_memory)
		dwarf_new_oom_handler(dwarf, mw_symbol_no_memory);
	good = !dwarf || mw_units_init(&debug->units, dwarf);
	quiet--;
	if (!good)
		return false;
	debug->has_dwarf = debug->units.unit_count > 0;
	debug->sought = true;
	return true;
}

/* As dwfl_module_addrinfo. */
static const char *look_up(struct debug *debug, GElf_Addr address, GElf_Off *offset, GElf_Sym *sym)
{
	const struct mw_range *found;
	GElf_Addr start;
	const char *name;

	if (debug->asked < FEW && ++debug->asked == FEW)
		(void)mw_symbol_index_init(&debug->index, debug->module);
	if (debug->index.symbols.items) {
		switch (mw_symbol_index_find(&debug->index, address, &found)) {
		case MW_INDEX_NOTHING:
			return NULL;
		case MW_INDEX_FOUND:
			name = dwfl_module_getsym_info(debug->module, (int)(uint32_t)found->value, sym, &start, NULL,
						       NULL, NULL);
			*offset = address - start;
			return name;
		default:
			break;
		}
	}
	return dwfl_module_addrinfo(debug->module, address, offset, sym, NULL, NULL, NULL);
}

/* The symbol that `vaddr` belongs to; false where there is none. */
static bool debug_symbol(struct debug *debug, uint64_t vaddr, struct symbol *symbol)
{
	GElf_Off offset;
	GElf_Sym sym;
	const char *name;

	quiet++;
	name = look_up(debug, vaddr + debug->bias, &offset, &sym);
	quiet--;
	if (!name || !*name || offset > vaddr)
		return false;
	if (sym.st_size && offset >= sym.st_size)
		return false;
	*symbol = (struct symbol){name, vaddr - offset};
	return true;
}

/* Append the frames at `vaddr` by DWARF, `offset_from` being the address whose offsets are reported and `symbol` (may be
 * NULL) the function's. `*found` is false, and nothing appended, where DWARF knows nothing. False without memory. */
static bool debug_frames(struct debug *debug, uint64_t vaddr, uint64_t offset_from, const struct symbol *symbol,
			 struct mw_frame_list *list, bool *found)
{
	struct mw_dwarf_query query = {0};
	bool good;

	if (!seek(debug))
		return false;
	query.address = vaddr + debug->bias - debug->dwarf_bias;
	query.units = &debug->units;
	query.past = offset_from - vaddr;
	if (symbol) {
		query.symbol = symbol->name;
		query.has_offset = true;
		query.offset = offset_from - symbol->start;
	}
	quiet++;
	good = mw_dwarf_frames(&query, list, found);
	quiet--;
	return good;
}

static const char *debug_source(struct debug *debug)
{
	const char *main_file = NULL, *debug_file = NULL;
	int symbols;

	if (seek(debug) && debug->has_dwarf) {
		dwfl_module_info(debug->module, NULL, NULL, NULL, NULL, NULL, &main_file, &debug_file);
		if (debug->is_embedded)
			return "embedded";
		/* Files that come through debuginfod have a descriptor and no name. */
		return debug_file ? debug_file : "debuginfod";
	}
	quiet++;
	symbols = dwfl_module_getsymtab(debug->module);
	quiet--;
	return symbols > 1 ? "only symbols" : "none";
}

/* --- the symbolizer ---------------------------------------------------------------------------------------- */

static void frame_list_deinit(struct mw_frame_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free((char *)(uintptr_t)list->items[i].function);
		free((char *)(uintptr_t)list->items[i].file);
	}
	free(list->items);
	*list = (struct mw_frame_list){0};
}

/* What is known of one address; in a file a vaddr, and number 0. */
struct answer {
	mw_addr addr;
	uint32_t number;
	bool is_return;
	struct mw_frame_list list;
};

/* Answers, which stay as they are: of the symbolizer for code in no file, or of an image for all who have it. */
struct answers {
	pthread_mutex_t lock;
	struct answer *items;
	size_t capacity;
	struct mw_index index;
};

struct mw_symbolizer {
	const struct mw_modules *modules;
	const struct mw_perf_map *names; /* of code in no file; NULL: none */
	struct slot {
		bool tried;
		struct debug *debug; /* NULL: tried in vain */
	} * slots;                   /* by module number */
	size_t slot_count;
	struct answers *answers; /* of code in no file */
};

static struct mw_error *make_answers(struct mw_elf *elf, const void *context, void **out)
{
	struct answers *answers = calloc(1, sizeof(*answers));

	(void)elf, (void)context;
	if (!answers)
		return mw_error_nomem();
	(void)pthread_mutex_init(&answers->lock, NULL);
	*out = answers;
	return NULL;
}

static void destroy_answers(void *fact)
{
	struct answers *answers = fact;

	if (!answers)
		return;
	for (uint32_t i = 0; i < answers->index.count; i++)
		frame_list_deinit(&answers->items[i].list);
	free(answers->items);
	mw_index_deinit(&answers->index);
	(void)pthread_mutex_destroy(&answers->lock);
	free(answers);
}

struct mw_error *mw_symbolizer_create(const struct mw_modules *modules, struct mw_symbolizer **out)
{
	struct mw_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	void *answers = NULL;
	struct mw_error *err;

	if (!symbolizer)
		return mw_error_nomem();
	err = make_answers(NULL, NULL, &answers);
	if (err) {
		free(symbolizer);
		return err;
	}
	symbolizer->modules = modules;
	symbolizer->answers = answers;
	*out = symbolizer;
	return NULL;
}

void mw_symbolizer_destroy(struct mw_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->slot_count; i++)
		debug_close(symbolizer->slots[i].debug);
	free(symbolizer->slots);
	destroy_answers(symbolizer->answers);
	free(symbolizer);
}

void mw_symbolizer_set_names(struct mw_symbolizer *symbolizer, const struct mw_perf_map *names)
{
	symbolizer->names = names;
}

static uint32_t hash_of(const void *answers, uint32_t number)
{
	const struct answer *answer = &((const struct answer *)answers)[number];

	return (uint32_t)mw_hash_mix(mw_hash_add(answer->addr, (uint64_t)answer->number << 1 | answer->is_return));
}

/* The frames of an answer that is there; false: there is none. */
static bool find_answer(const struct answers *answers, const struct answer *wanted, struct mw_frame_list *list)
{
	uint32_t hash = hash_of(wanted, 0), number;

	MW_INDEX_EACH(&answers->index, hash, number) {
		const struct answer *answer = &answers->items[number];

		if (answer->addr != wanted->addr || answer->number != wanted->number ||
		    answer->is_return != wanted->is_return)
			continue;
		*list = answer->list;
		return true;
	}
	return false;
}

static bool is_answered(struct answers *answers, const struct answer *wanted, struct mw_frame_list *list)
{
	bool found;

	(void)pthread_mutex_lock(&answers->lock);
	found = find_answer(answers, wanted, list);
	(void)pthread_mutex_unlock(&answers->lock);
	return found;
}

/* Keep an answer, whose frames are taken over, or the one that another thread has given meanwhile: *list. False without
 * memory. */
static bool keep_answer(struct answers *answers, struct answer *answer, struct mw_frame_list *list)
{
	bool good, given;

	(void)pthread_mutex_lock(&answers->lock);
	given = find_answer(answers, answer, list);
	good = given || (mw_index_reserve(&answers->index, hash_of, answers->items) &&
			 MW_VECTOR_ROOM(answers->items, answers->index.count, answers->capacity));
	if (good && !given) {
		answers->items[mw_index_put(&answers->index, hash_of(answer, 0))] = *answer;
		*list = answer->list;
	}
	(void)pthread_mutex_unlock(&answers->lock);
	if (given || !good)
		frame_list_deinit(&answer->list);
	return good;
}

/* Where answers about code in the module are kept: what belongs to a file may be looked for by its path. */
static struct mw_error *answers_of(struct mw_symbolizer *symbolizer, const struct mw_module *module,
				   struct answers **out)
{
	static const struct mw_elf_fact_kind kind = {make_answers, destroy_answers};
	uint64_t key[2] = {0};
	const void *answers = symbolizer->answers;

	if (module && module->elf) {
		for (const char *at = module->path; *at; at++)
			key[0] = mw_hash_add(key[0], (uint8_t)*at);
		MW_TRY(mw_elf_fact(module->elf, &kind, key, NULL, &answers));
	}
	*out = (struct answers *)(uintptr_t)answers;
	return NULL;
}

/* `*debug` becomes NULL where nothing can be had of the module. False without memory. */
static bool open_module(struct mw_symbolizer *symbolizer, uint32_t number, struct debug **debug)
{
	const struct mw_module *module = mw_modules_get(symbolizer->modules, number);
	struct slot *slot;

	*debug = NULL;
	if (!module || !module->elf)
		return true;
	slot = MW_VECTOR_AT(symbolizer->slots, symbolizer->slot_count, number);
	if (!slot)
		return false;
	if (!slot->tried) {
		slot->debug = debug_open(module->elf, module->path);
		slot->tried = true;
	}
	*debug = slot->debug;
	return true;
}

/* A frame from the symbol alone, or from nothing. `vaddr` is the address whose offset is reported. */
static bool add_symbol(const struct symbol *symbol, uint64_t vaddr, struct mw_frame_list *list)
{
	char *name;

	if (!symbol)
		return mw_frame_list_add(list, NULL, NULL, 0, vaddr, false);
	name = mw_demangle(symbol->name);
	return name && mw_frame_list_add(list, name, NULL, 0, vaddr - symbol->start, false);
}

/* Code in no file that the program has named. `*found` where it has. */
static bool add_named(const struct mw_symbolizer *symbolizer, mw_addr addr, bool is_return, struct mw_frame_list *list,
		      bool *found)
{
	const struct mw_perf_name *named =
		symbolizer->names ? mw_perf_map_find(symbolizer->names, is_return && addr ? addr - 1 : addr) : NULL;
	char *name;

	*found = named != NULL;
	if (!named)
		return true;
	name = strdup(named->name);
	return name && mw_frame_list_add(list, name, NULL, 0, addr - named->from, false);
}

static bool resolve(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr, bool is_return,
		    struct mw_frame_list *list)
{
	const struct mw_module *module = mw_modules_get(symbolizer->modules, number);
	uint64_t vaddr = module ? addr - module->bias : addr;
	/* A call may be the last instruction of its function, or of its line. */
	uint64_t code = is_return && vaddr ? vaddr - 1 : vaddr;
	struct symbol symbol, *known;
	struct debug *debug;
	bool found = false;

	if ((!module || !module->elf) && !add_named(symbolizer, addr, is_return, list, &found))
		return false;
	if (!found && module && module->elf && !mw_go_symbol_frames(module->elf, code, vaddr, list, &found))
		return false;
	if (found)
		return true;
	if (!open_module(symbolizer, number, &debug))
		return false;
	if (!debug)
		return add_symbol(NULL, vaddr, list);
	known = debug_symbol(debug, code, &symbol) ? &symbol : NULL;
	if (!debug_frames(debug, code, vaddr, known, list, &found))
		return false;
	return found || add_symbol(known, vaddr, list);
}

struct mw_error *mw_symbolizer_resolve(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr, bool is_return,
				       const struct mw_symbol_frame **frames, size_t *count)
{
	const struct mw_module *module = mw_modules_get(symbolizer->modules, number);
	struct answer wanted = {addr, number, is_return, {0}};
	struct mw_frame_list list;
	struct answers *answers;

	if (module && module->named) {
		*frames = mw_named_frames_get(module->named, addr);
		*count = *frames != NULL;
		return NULL;
	}
	if (module && module->elf) {
		wanted.addr -= module->bias;
		wanted.number = 0;
	}
	MW_TRY(answers_of(symbolizer, module, &answers));
	if (!is_answered(answers, &wanted, &list)) {
		/* Nothing is locked meanwhile: this may never come back (mw_symbol_no_memory). */
		if (!resolve(symbolizer, number, addr, is_return, &wanted.list)) {
			frame_list_deinit(&wanted.list);
			return mw_error_nomem();
		}
		if (!keep_answer(answers, &wanted, &list))
			return mw_error_nomem();
	}
	*frames = list.items;
	*count = list.count;
	return NULL;
}

/* False without memory. */
static bool debug_declaration(struct debug *debug, uint64_t vaddr, const char **file, uint32_t *line)
{
	const struct mw_declaration *declaration;

	if (!seek(debug))
		return false;
	if (!debug->has_declarations) {
		bool good;

		quiet++;
		good = mw_declarations_init(&debug->declarations, &debug->units);
		quiet--;
		if (!good)
			return false;
		debug->has_declarations = true;
	}
	declaration = mw_declarations_find(&debug->declarations, vaddr + debug->bias - debug->dwarf_bias);
	if (declaration) {
		*file = declaration->file;
		*line = declaration->line;
	}
	return true;
}

struct mw_error *mw_symbolizer_variable(struct mw_symbolizer *symbolizer, uint32_t number, mw_addr addr,
					const char **file, uint32_t *line)
{
	const struct mw_module *module = mw_modules_get(symbolizer->modules, number);
	struct debug *debug;

	*file = NULL;
	*line = 0;
	if (!open_module(symbolizer, number, &debug))
		return mw_error_nomem();
	if (!debug || debug_declaration(debug, addr - module->bias, file, line))
		return NULL;
	return mw_error_nomem();
}

const char *mw_symbolizer_source(struct mw_symbolizer *symbolizer, uint32_t number, const char **obstacle)
{
	struct debug *debug;

	if (obstacle)
		*obstacle = NULL;
	if (!open_module(symbolizer, number, &debug) || !debug)
		return "none";
	if (obstacle && seek(debug) && !debug->has_dwarf)
		*obstacle = debug->obstacle;
	return debug_source(debug);
}
