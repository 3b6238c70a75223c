// SPDX-License-Identifier: MIT
/*
 * libunwind.c: the unwinder on libunwind's remote interface (unwind.h), and what steps where .eh_frame says nothing.
 *
 * libunwind asks through accessors for words of memory, registers and a table to search. Words
 * come from the module's file where they lie in read-only segments (the tables do) and else from the
 * memory view; so a walk costs no system call once the snapshot is there. Its own remote accessors
 * read each word by ptrace and map one file at a time, which is why they are not used.
 */
#include "base/vector.h"
#include "symbol/frames.h"
#include "unwind/fallback.h"
#include "unwind/made.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_ROWS 16384
#define PAGE       4096u
#define ABOVE      64u        /* bytes behind the end of a stack's memory where a return address may be sought */
#define MAX_FRAME  (1u << 20) /* bytes */
#define MAX_READS  1000000u   /* words a walk: a file's unwind information may be a program that never ends */

/* Addresses that no target has: entries of tables that are made for a module are read there. */
#define LOCAL_BASE 0x8100000000000000u
#define LOCAL_SPAN 0x0000000100000000u

/* Exported by libunwind for tools that find tables themselves; it has no header. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
					      unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* What a module describes, read when it is first asked for. */
struct known {
	struct mw_frame_table table;
	struct mw_rows rows; /* of .debug_frame: code compiled without unwind tables, but with debug information */
	bool table_tried, rows_tried;
};

struct libunwind {
	struct mw_unwinder base;
	const struct mw_modules *modules;
	const struct mw_arch *arch;
	unw_addr_space_t space;
	struct known *known; /* by module number */
	size_t known_count;
	struct mw_unwinder_code ours;
	struct mw_row_dictionary dictionary; /* of all `rows` */
	struct mw_fallback fallback;
	/* The walk under way. */
	const struct mw_regs *regs;
	const struct mw_memory_view *memory;
	mw_addr sp;                   /* of the frame that is stepped from */
	const struct mw_module *last; /* module of the last word read */
	bool no_info;                 /* a pc without frame description was met */
	uint32_t reads;               /* words that were asked for */
};

/* NULL: there is none. */
static const struct mw_frame_table *table_of(struct libunwind *self, const struct mw_module *module)
{
	struct known *known = MW_VECTOR_AT(self->known, self->known_count, module->number);

	if (!known)
		return NULL;
	if (!known->table_tried) {
		known->table_tried = true;
		if (module->elf)
			mw_error_destroy(mw_frame_table_init(&known->table, module->elf));
	}
	return known->table.count ? &known->table : NULL;
}

static bool is_ours(const struct libunwind *self, mw_addr pc)
{
	return pc - self->ours.start < self->ours.end - self->ours.start;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_info, void *arg)
{
	struct libunwind *self = arg;
	const struct mw_module *module = mw_modules_find(self->modules, ip);
	const struct mw_frame_table *table = module ? table_of(self, module) : NULL;
	unw_dyn_info_t tables;
	int ret = -UNW_ENOINFO;

	memset(&tables, 0, sizeof(tables));
	tables.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	if (is_ours(self, ip)) {
		tables.start_ip = self->ours.start;
		tables.end_ip = self->ours.end;
		tables.u.rti.segbase = self->ours.base;
		tables.u.rti.table_data = self->ours.table;
		tables.u.rti.table_len = self->ours.entries * sizeof(struct mw_frame_entry) / sizeof(unw_word_t);
	} else if (table) {
		tables.start_ip = module->start;
		tables.end_ip = module->end;
		tables.u.rti.segbase = table->base + module->bias;
		tables.u.rti.table_data =
			table->made ? LOCAL_BASE + module->number * LOCAL_SPAN : table->vaddr + module->bias;
		tables.u.rti.table_len = table->count * sizeof(*table->made) / sizeof(unw_word_t);
	}
	if (is_ours(self, ip) || table)
		ret = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &tables, info, need_info, arg);
	if (ret < 0)
		self->no_info = true;
	return ret < 0 ? -UNW_ENOINFO : ret;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	(void)space, (void)info, (void)arg;
}

static int get_dyn_info_list(unw_addr_space_t space, unw_word_t *out, void *arg)
{
	(void)space, (void)out, (void)arg;
	return -UNW_ENOINFO;
}

/* A word of one of our own tables. */
static int read_local(const struct libunwind *self, unw_word_t addr, unw_word_t *value)
{
	size_t number = (size_t)((addr - LOCAL_BASE) / LOCAL_SPAN);
	uint64_t offset = (addr - LOCAL_BASE) % LOCAL_SPAN;
	const struct mw_frame_table *table = number < self->known_count ? &self->known[number].table : NULL;

	if (!table || !table->made || offset + sizeof(*value) > table->count * sizeof(*table->made))
		return -UNW_EINVAL;
	memcpy(value, (const char *)table->made + offset, sizeof(*value));
	return 0;
}

/*
 * A coroutine's first function may have been jumped to with nothing on its stack: where its return address would stand,
 * at the top, the stack's memory has ended. It reads as 0 there, which ends the walk.
 */
static bool is_above_stack(const struct libunwind *self, mw_addr addr)
{
	const struct mw_memory_view *memory = self->memory;
	mw_addr top = addr & ~(mw_addr)(PAGE - 1);
	unw_word_t below;

	return memory->ends && addr - top < ABOVE && top - self->sp <= MAX_FRAME &&
	       memory->ends(memory->context, top) &&
	       memory->read(memory->context, top - sizeof(below), &below, sizeof(below));
}

static int access_memory(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct libunwind *self = arg;
	const struct mw_module *module = self->last;

	(void)space;
	if (write || self->reads++ >= MAX_READS)
		return -UNW_EINVAL;
	if (addr >= LOCAL_BASE && addr < LOCAL_BASE + ((uint64_t)UINT32_MAX << 24))
		return read_local(self, addr, value);
	if (!module || addr < module->start || addr >= module->end)
		module = mw_modules_find(self->modules, addr);
	if (module && module->elf) {
		self->last = module;
		if (mw_elf_read(module->elf, addr - module->bias, value, sizeof(*value)))
			return 0;
	}
	if (self->memory->read(self->memory->context, addr, value, sizeof(*value)))
		return 0;
	if (!is_above_stack(self, addr))
		return -UNW_EINVAL;
	*value = 0;
	return 0;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *arg)
{
	struct libunwind *self = arg;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	if (number == UNW_REG_IP) {
		/* The pc is a return address: the call before it is where this frame stands. */
		*value = self->regs->pc - 1;
		return 0;
	}
	if (number < 0 || number >= MW_REG_COUNT)
		return -UNW_EBADREG;
	self->base.registers_used |= 1u << number;
	*value = self->regs->gpr[number];
	return 0;
}

static int access_fp_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write, void *arg)
{
	(void)space, (void)number, (void)value, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t addr, char *out, size_t size, unw_word_t *offset, void *arg)
{
	(void)space, (void)addr, (void)out, (void)size, (void)offset, (void)arg;
	return -UNW_ENOINFO;
}

/* Take all registers of a cursor, to go on from them by other means. */
static void cursor_regs(unw_cursor_t *cursor, struct mw_regs *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < MW_REG_COUNT; i++) {
		unw_word_t value = 0;

		if (unw_get_reg(cursor, i, &value) == 0)
			out->gpr[i] = value;
	}
}

/* What a walk has so far. */
struct walk {
	struct mw_unwound_frame *frames;
	uint32_t capacity, count;
	enum mw_stack_cut cut;
	bool after_signal; /* the next frame is where a signal interrupted */
};

/* libunwind knows a signal frame only when it has stepped over it; here it is known by its code. */
static bool is_signal_frame(struct libunwind *self, mw_addr pc)
{
	return mw_fallback_is_signal_return(&self->fallback, pc);
}

/* Note a frame; false where the walk is to end with it. */
static bool note_frame(struct libunwind *self, struct walk *walk, mw_addr pc, mw_addr sp, bool signal)
{
	const struct mw_module *module;
	struct mw_unwound_frame *frame;
	bool interrupted = walk->after_signal;

	if (walk->count > 0)
		walk->frames[walk->count - 1].cfa = sp;
	if (is_ours(self, pc))
		return true;
	if (walk->count == walk->capacity) {
		walk->cut = MW_STACK_TRUNCATED;
		return false;
	}
	frame = &walk->frames[walk->count++];
	/* A trampoline is returned to at its very start, and a signal strikes before an instruction. */
	frame->pc = walk->after_signal || signal ? pc + 1 : pc;
	frame->cfa = 0;
	frame->signal = signal;
	frame->undescribed = false;
	frame->interpreted = (struct mw_interpreted){0};
	frame->javascript = (struct mw_javascript){0};
	walk->after_signal = signal;
	module = mw_modules_find(self->modules, frame->pc - 1);
	frame->module = module ? module->number : MW_MODULE_NONE;
	/* The frames of generated code are known only at its calls. */
	if (mw_fallback_is_generated(&self->fallback, frame->pc - 1) ? interrupted : !module) {
		walk->cut = MW_STACK_BROKEN;
		return false;
	}
	/* V8 has put the frame in the place of another, and it goes on at its very start. */
	if (mw_fallback_is_entry(&self->fallback, pc))
		frame->pc = pc + 1;
	return true;
}

static bool begins(struct libunwind *self, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(self->modules, pc);
	unw_proc_info_t info;

	if (!module || !module->elf || mw_fallback_is_return(&self->fallback, pc))
		return false;
	if (find_proc_info(self->space, pc - 1, &info, 0, self) >= 0)
		return info.end_ip <= pc;
	return find_proc_info(self->space, pc, &info, 0, self) >= 0 && info.start_ip == pc;
}

/* Nothing can be called from where nothing is: what a program leaves at the very top of a stack that it has made. */
static bool is_filler(const struct libunwind *self, mw_addr pc, mw_addr sp)
{
	const struct mw_memory_view *memory = self->memory;
	uint8_t code;

	return memory->ends && sp % PAGE == 0 && !mw_modules_find(self->modules, pc) &&
	       memory->ends(memory->context, sp) && !memory->read(memory->context, pc, &code, sizeof(code));
}

/*
 * Walk by libunwind from self->regs until the end (true), or until a frame that it has no information for, which
 * is then left to be stepped over from `stuck`.
 */
static bool walk_tables(struct libunwind *self, struct walk *walk, struct mw_regs *stuck)
{
	unw_cursor_t cursor, before;
	unw_word_t ip = self->regs->pc, sp = self->regs->gpr[self->arch->dwarf_sp];

	if (unw_init_remote(&cursor, self->space, self) < 0) {
		walk->cut = MW_STACK_BROKEN;
		return true;
	}
	for (;;) {
		bool interrupted = walk->after_signal, signal = is_signal_frame(self, ip);
		unw_word_t last_sp = sp;
		int ret;

		if (!note_frame(self, walk, ip, sp, signal))
			return true;
		if (!signal && !interrupted && walk->count && begins(self, ip)) {
			/* It stands there as a trampoline does. */
			walk->frames[walk->count - 1].pc = ip + 1;
			self->base.dead_end = ip;
			return true;
		}
		if (mw_fallback_is_generated(&self->fallback, ip - 1)) {
			cursor_regs(&cursor, stuck);
			stuck->pc = ip;
			return false;
		}
		self->sp = sp;
		memcpy(&before, &cursor, sizeof(before));
		self->no_info = false;
		ret = unw_step(&cursor);
		if (self->no_info && !walk->frames[walk->count - 1].signal) {
			cursor_regs(&before, stuck);
			stuck->pc = ip;
			return false;
		}
		if (ret == 0)
			return true;
		if (ret < 0 || unw_get_reg(&cursor, UNW_REG_IP, &ip) || unw_get_reg(&cursor, UNW_REG_SP, &sp)) {
			walk->cut = MW_STACK_BROKEN;
			return true;
		}
		if (ip == 0 || is_filler(self, ip, sp))
			return true;
		/* A stack grows one way; only a signal frame may lead to another stack. */
		if (sp <= last_sp && !walk->frames[walk->count - 1].signal) {
			walk->cut = MW_STACK_BROKEN;
			return true;
		}
	}
}

/* --- by .debug_frame ------------------------------------------------------------------------------------- */

/* NULL: there are none. */
static const struct mw_rows *rows_of(struct libunwind *self, const struct mw_module *module)
{
	struct known *known = MW_VECTOR_AT(self->known, self->known_count, module->number);

	if (!known)
		return NULL;
	if (!known->rows_tried) {
		known->rows_tried = true;
		mw_error_destroy(mw_rows_compile(module->elf, MW_ROWS_OF_DEBUG_FRAME, self->arch, &self->dictionary,
						 &known->rows));
	}
	return known->rows.count ? &known->rows : NULL;
}

static uint64_t add(uint64_t base, int32_t offset)
{
	return base + (uint64_t)(int64_t)offset;
}

static bool read_word(const struct mw_memory_view *memory, mw_addr at, uint64_t *word)
{
	return memory->read(memory->context, at, word, sizeof(*word));
}

static bool find_cfa(const struct libunwind *self, uint64_t row, const struct mw_regs *regs, mw_addr *cfa)
{
	mw_addr sp = regs->gpr[self->arch->dwarf_sp], fp = regs->gpr[self->arch->dwarf_fp];

	switch (mw_row_kind(row)) {
	case MW_ROW_SP:
		*cfa = add(sp, mw_row_n(row));
		return true;
	case MW_ROW_FP:
	case MW_ROW_SWITCH:
		*cfa = add(fp, mw_row_n(row));
		return true;
	case MW_ROW_FP_DEREF:
		return read_word(self->memory, add(fp, mw_row_n(row)), cfa);
	default:
		return false;
	}
}

/* May the caller's frame be on another stack? */
static bool switches_stack(struct libunwind *self, mw_addr at)
{
	const struct mw_module *module = mw_modules_find(self->modules, at);
	const struct mw_rows *rows = module && module->elf ? rows_of(self, module) : NULL;

	return rows && mw_row_kind(mw_rows_find(rows, &self->dictionary, at - module->bias)) == MW_ROW_SWITCH;
}

/* Step from `regs`, in code whose instruction at `at` was executed last, to the caller, of which `out` gets pc, stack
 * pointer and frame pointer. False where it is not described so, or in a way that rows can't say. */
static bool step_by_rows(struct libunwind *self, mw_addr at, const struct mw_regs *regs, struct mw_regs *out,
			 enum mw_fallback_step *found)
{
	const struct mw_module *module = mw_modules_find(self->modules, at);
	const struct mw_rows *rows = module && module->elf ? rows_of(self, module) : NULL;
	uint8_t fp = self->arch->dwarf_fp;
	struct mw_regs caller = *regs;
	uint64_t row;
	mw_addr cfa;

	if (!rows)
		return false;
	row = mw_rows_find(rows, &self->dictionary, at - module->bias);
	*found = MW_FALLBACK_END;
	if (mw_row_kind(row) == MW_ROW_END)
		return true;
	if (!find_cfa(self, row, regs, &cfa) || !read_word(self->memory, cfa - sizeof(caller.pc), &caller.pc))
		return false;
	if (mw_row_fp(row) == MW_ROW_FP_SAVED) {
		mw_addr from = mw_row_kind(row) == MW_ROW_FP_DEREF ? regs->gpr[fp] : cfa;

		if (!read_word(self->memory, add(from, mw_row_fp_at(row)), &caller.gpr[fp]))
			return false;
	}
	caller.gpr[self->arch->dwarf_sp] = cfa;
	if (caller.pc == 0)
		return true;
	*out = caller;
	*found = MW_FALLBACK_FOUND;
	return true;
}

/* --- a walk ---------------------------------------------------------------------------------------------- */

/* From a frame that .eh_frame does not describe. */
static enum mw_fallback_step step_otherwise(struct libunwind *self, struct walk *walk, const struct mw_regs *stuck,
					    struct mw_regs *out)
{
	/* Where a signal interrupted that is a place, not a return address. */
	mw_addr at = (walk->count ? walk->frames[walk->count - 1].pc : stuck->pc) - 1;
	enum mw_fallback_step found;
	struct mw_interpreted interpreted;

	if (mw_made_code_holds(self->fallback.made, at)) {
		mw_addr pc = stuck->pc;

		found = mw_made_step(self->fallback.made, self->arch, self->memory, stuck, out, &interpreted, &pc);
		if (walk->count)
			walk->frames[walk->count - 1].interpreted = interpreted;
		if (walk->count && pc != stuck->pc)
			walk->frames[walk->count - 1].pc = pc;
		return found;
	}
	if (step_by_rows(self, at, stuck, out, &found))
		return found;
	/* Code that a signal has interrupted is walked from its very place: no other walk comes there so. */
	if (walk->count > 0 && walk->frames[walk->count - 1].pc == stuck->pc)
		walk->frames[walk->count - 1].undescribed = true;
	found = mw_fallback_step(&self->fallback, self->memory, stuck, out);
	if (found == MW_FALLBACK_FOUND && walk->count && mw_fallback_is_generated(&self->fallback, at))
		(void)mw_fallback_javascript(&self->fallback, self->memory, stuck, !mw_modules_find(self->modules, at),
					     &walk->frames[walk->count - 1].javascript);
	return found;
}

static void libunwind_walk(struct mw_unwinder *unwinder, const struct mw_regs *regs,
			   const struct mw_memory_view *memory, struct mw_unwound_frame *frames, uint32_t capacity,
			   uint32_t *count, enum mw_stack_cut *cut)
{
	struct libunwind *self = (struct libunwind *)unwinder;
	struct walk walk = {.frames = frames, .capacity = capacity};
	struct mw_regs here = *regs, stuck;

	self->memory = memory;
	self->last = NULL;
	self->reads = 0;
	unwinder->registers_used = 0;
	unwinder->serial = 0;
	unwinder->dead_end = 0;
	for (;;) {
		enum mw_fallback_step found;

		self->regs = &here;
		if (walk_tables(self, &walk, &stuck))
			break;
		/* All registers have been looked at by then. */
		unwinder->registers_used = (1u << MW_REG_COUNT) - 1;
		found = step_otherwise(self, &walk, &stuck, &here);
		if (found == MW_FALLBACK_END)
			break;
		if (found != MW_FALLBACK_FOUND || (here.gpr[self->arch->dwarf_sp] <= stuck.gpr[self->arch->dwarf_sp] &&
						   !switches_stack(self, stuck.pc - 1))) {
			walk.cut = MW_STACK_BROKEN;
			break;
		}
	}
	*count = walk.count;
	*cut = walk.cut;
}

static bool read_nothing(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context, (void)addr, (void)out, (void)size;
	return false;
}

static bool libunwind_begins(struct mw_unwinder *unwinder, mw_addr pc, mw_addr inner)
{
	static const struct mw_memory_view files_only = {.read = read_nothing};
	struct libunwind *self = (struct libunwind *)unwinder;

	self->memory = &files_only;
	self->last = NULL;
	self->reads = 0;
	/* Where a signal strikes need not be behind a call. A signal frame's pc is one more than where it is. */
	return !(inner && is_signal_frame(self, inner - 1)) && begins(self, pc);
}

static void libunwind_flush(struct mw_unwinder *unwinder)
{
	struct libunwind *self = (struct libunwind *)unwinder;

	unw_flush_cache(self->space, 0, 0);
}

static void libunwind_destroy(struct mw_unwinder *unwinder)
{
	struct libunwind *self = (struct libunwind *)unwinder;

	for (size_t i = 0; i < self->known_count; i++) {
		mw_frame_table_deinit(&self->known[i].table);
		mw_rows_deinit(&self->known[i].rows);
	}
	free(self->known);
	mw_row_dictionary_deinit(&self->dictionary);
	mw_fallback_deinit(&self->fallback);
	if (self->space)
		unw_destroy_addr_space(self->space);
	free(self);
}

struct mw_error *mw_unwinder_libunwind(const struct mw_modules *modules, const struct mw_arch *arch,
				       struct mw_unwinder **out)
{
	static const struct mw_unwinder_ops ops = {.name = "libunwind",
						   .walk = libunwind_walk,
						   .begins = libunwind_begins,
						   .flush = libunwind_flush,
						   .destroy = libunwind_destroy};
	static unw_accessors_t accessors = {.find_proc_info = find_proc_info,
					    .put_unwind_info = put_unwind_info,
					    .get_dyn_info_list_addr = get_dyn_info_list,
					    .access_mem = access_memory,
					    .access_reg = access_register,
					    .access_fpreg = access_fp_register,
					    .resume = resume,
					    .get_proc_name = get_proc_name};
	struct libunwind *self = calloc(1, sizeof(*self));

	if (!self)
		return mw_error_nomem();
	self->base.ops = &ops;
	self->modules = modules;
	self->arch = arch;
	self->fallback = (struct mw_fallback){.modules = modules, .arch = arch};
	self->space = unw_create_addr_space(&accessors, 0);
	if (!self->space) {
		free(self);
		return mw_error_nomem();
	}
	unw_set_caching_policy(self->space, UNW_CACHE_GLOBAL);
	unw_set_cache_size(self->space, CACHE_ROWS, 0);
	*out = &self->base;
	return NULL;
}

void mw_unwinder_libunwind_pass_over(struct mw_unwinder *unwinder, const struct mw_unwinder_code *code)
{
	struct libunwind *self = (struct libunwind *)unwinder;

	self->ours = *code;
	unw_flush_cache(self->space, 0, 0);
}

struct mw_fallback *mw_unwinder_libunwind_fallback(struct mw_unwinder *unwinder)
{
	return &((struct libunwind *)unwinder)->fallback;
}
