// SPDX-License-Identifier: MIT
/* fallback.c: a step through code without frame descriptions (fallback.h). */
#include "unwind/fallback.h"

#include "base/vector.h"
#include "symbol/frames.h"
#include "unwind/made.h"

#include <memwatch/ring.h>

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE       65536u /* code looked at before the pc, for jumps back */
#define AFTER        65536u /* … and behind it */
#define ABOVE        64u    /* words of the stack looked at for a return address */
#define CALL_BYTES   8u
#define MAX_WAYS     8u
#define EXIT_WITHIN  8u                  /* bytes of a call that hands on the result of the one before it */
#define KEY_BITS     48                  /* of an address in a file */
#define NO_MODULE    UINT64_C(0xffff)    /* in a key, for code that is in none */
#define ALIGNMENT    32u                 /* of V8's built-in functions, at least */
#define FRAME_LIMIT  (1u << 20)          /* bytes of a frame of generated code */
#define SCANNED_CODE (UINT64_C(8) << 20) /* bytes of code that are looked through for calls */

/* --- where functions begin and end ------------------------------------------------------------------------ */

static bool add_start(struct mw_function_starts *starts, uint64_t vaddr, uint64_t size, bool part)
{
	if (!MW_VECTOR_ROOM(starts->items, starts->count, starts->capacity))
		return false;
	starts->items[starts->count++] = (struct mw_function_start){vaddr, size, part};
	return true;
}

/* gcc and clang name what they put aside of a function "f.cold" or "f.cold.1". */
static bool is_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (cold[5] == '\0' || cold[5] == '.');
}

static bool see_function(void *context, const struct mw_elf_symbol *symbol)
{
	struct mw_function_starts *starts = context;

	if (!symbol->function)
		return true;
	if (strcmp(symbol->name, "exit") == 0)
		starts->exit = symbol->vaddr;
	return add_start(starts, symbol->vaddr, symbol->size, is_part(symbol->name));
}

/* Where the program begins is often no function by its symbol, and nothing calls it. */
static void add_entry(struct mw_function_starts *starts, const struct mw_elf *elf)
{
	const uint8_t *bytes = mw_elf_file_bytes(elf, offsetof(Elf64_Ehdr, e_entry), sizeof(Elf64_Addr));
	Elf64_Addr entry = 0;

	if (bytes)
		memcpy(&entry, bytes, sizeof(entry));
	if (entry)
		(void)add_start(starts, entry, 0, false);
}

static void scan_segment(struct mw_function_starts *starts, const struct mw_elf *elf, const struct mw_arch *arch,
			 const struct mw_elf_segment *segment)
{
	size_t size = (size_t)segment->file_size;
	const uint8_t *bytes = mw_elf_span(elf, segment->vaddr, size);
	mw_addr target;

	for (size_t at = 0; bytes && (at = arch->call_target(bytes, size, segment->vaddr, at, &target)) < size;)
		if (target - segment->vaddr < size && !add_start(starts, target, 0, false))
			return;
}

static void scan_calls(struct mw_function_starts *starts, const struct mw_elf *elf, const struct mw_arch *arch)
{
	if (mw_elf_code_size(elf) > SCANNED_CODE)
		return;
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].exec)
			scan_segment(starts, elf, arch, &elf->segments[i]);
}

/* Of those at one place the largest, parts of others last: they are named so by somebody who knows. */
static int compare_starts(const void *a, const void *b)
{
	const struct mw_function_start *left = a, *right = b;

	if (left->vaddr != right->vaddr)
		return left->vaddr < right->vaddr ? -1 : 1;
	if (left->part != right->part)
		return left->part ? -1 : 1;
	return (left->size < right->size) - (left->size > right->size);
}

void mw_function_starts_init(struct mw_function_starts *starts, struct mw_elf *elf, const struct mw_arch *arch)
{
	size_t kept = 0;

	*starts = (struct mw_function_starts){0};
	mw_error_destroy(mw_elf_each_symbol(elf, see_function, starts));
	add_entry(starts, elf);
	scan_calls(starts, elf, arch);
	if (starts->count)
		qsort(starts->items, starts->count, sizeof(*starts->items), compare_starts);
	for (size_t i = 0; i < starts->count; i++)
		if (!kept || starts->items[kept - 1].vaddr != starts->items[i].vaddr)
			starts->items[kept++] = starts->items[i];
	starts->count = kept;
}

void mw_function_starts_deinit(struct mw_function_starts *starts)
{
	free(starts->items);
	*starts = (struct mw_function_starts){0};
}

/* How many begin at `vaddr` or before it. */
static size_t starts_up_to(const struct mw_function_starts *starts, uint64_t vaddr)
{
	return mw_vector_up_to(starts->items, starts->count, sizeof(*starts->items),
			       offsetof(struct mw_function_start, vaddr), vaddr);
}

bool mw_function_starts_find(const struct mw_function_starts *starts, uint64_t vaddr, struct mw_code_function *out)
{
	size_t next = starts_up_to(starts, vaddr);
	const struct mw_function_start *start = next ? &starts->items[next - 1] : NULL;

	*out = (struct mw_code_function){0};
	if (next < starts->count)
		out->end = starts->items[next].vaddr;
	/* A call may lead into a function whose size is known: that is its own affair, or none. */
	for (size_t i = next, tried = 0; i-- > 0 && tried < 16; tried++)
		if (starts->items[i].size && vaddr - starts->items[i].vaddr < starts->items[i].size) {
			start = &starts->items[i];
			break;
		}
	if (!start)
		return true;
	if (start->part)
		return false;
	if (start->size && vaddr - start->vaddr < start->size) {
		*out = (struct mw_code_function){
			.start = start->vaddr, .end = start->vaddr + start->size, .exact = true};
		return true;
	}
	if (start->size == 0)
		out->start = start->vaddr;
	return true;
}

/* --- the step --------------------------------------------------------------------------------------------- */

static bool is_behind_call(const struct mw_fallback *fallback, const struct mw_module *module, mw_addr addr)
{
	uint8_t code[CALL_BYTES];

	return mw_elf_read(module->elf, addr - module->bias - sizeof(code), code, sizeof(code)) &&
	       fallback->arch->is_call_before(code, sizeof(code));
}

/* Is there code of a module at `addr`, and right before it a call? */
static bool is_return_address(const struct mw_fallback *fallback, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, addr - 1);

	return module && module->elf && is_behind_call(fallback, module, addr);
}

/* Code of a module around a place in it. */
struct around {
	const uint8_t *bytes;
	mw_addr base;
	size_t size;
};

static bool code_around(const struct mw_module *module, mw_addr pc, struct around *out)
{
	uint64_t vaddr = pc - 1 - module->bias;

	MW_EACH(segment, module->elf->segments, module->elf->segment_count) {
		uint64_t into = vaddr - segment->vaddr, before, size;

		if (!segment->exec || into >= segment->file_size)
			continue;
		before = into < BEFORE ? into : BEFORE;
		size = segment->file_size - into < AFTER ? segment->file_size - into : AFTER;
		out->base = pc - 1 - before;
		out->size = (size_t)(before + size);
		out->bytes = mw_elf_span(module->elf, vaddr - before, out->size);
		return out->bytes != NULL;
	}
	return false;
}

/* `guessed`: only what a call has put there will do; a signal handler returns to what is no call's. */
static bool take_way(struct mw_fallback *fallback, const struct mw_memory_view *memory, const struct mw_way_out *way,
		     bool guessed, const struct mw_regs *regs, struct mw_regs *out)
{
	mw_addr ret;

	if (!memory->read(memory->context, way->return_at, &ret, sizeof(ret)) ||
	    !(guessed ? is_return_address(fallback, ret) : mw_fallback_can_return(fallback, memory, ret)))
		return false;
	*out = *regs;
	for (uint32_t mask = way->restored; mask; mask &= mask - 1) {
		unsigned reg = (unsigned)__builtin_ctz(mask);

		if (!memory->read(memory->context, way->restored_at[reg], &out->gpr[reg], sizeof(out->gpr[reg])))
			return false;
	}
	out->pc = ret;
	out->gpr[fallback->arch->dwarf_sp] = way->sp;
	return true;
}

/* What was looked up of a module. */
struct mw_fallback_module {
	struct mw_function_starts starts;
	struct mw_generated_code generated;
	bool known, generated_known;
};

static bool is_generated_in(struct mw_fallback *fallback, const struct mw_module *module, mw_addr addr)
{
	struct mw_fallback_module *found = MW_VECTOR_AT(fallback->items, fallback->count, module->number);

	if (!found)
		return false;
	if (!found->generated_known && module->elf) {
		found->generated_known = true;
		mw_error_destroy(mw_generated_code_find(module->elf, &found->generated));
	}
	return mw_generated_code_holds(&found->generated, addr - module->bias);
}

static bool any_generated(struct mw_fallback *fallback)
{
	while (!fallback->any_generated && fallback->looked_at < mw_modules_count(fallback->modules)) {
		const struct mw_module *module = mw_modules_get(fallback->modules, fallback->looked_at++);
		struct mw_generated_code code = {0};

		if (module->elf)
			mw_error_destroy(mw_generated_code_find(module->elf, &code));
		fallback->any_generated = code.end > code.start;
	}
	return fallback->any_generated;
}

void mw_fallback_look_ahead(struct mw_fallback *fallback)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(fallback->modules, &i));)
		(void)is_generated_in(fallback, module, module->bias);
}

bool mw_fallback_is_generated(struct mw_fallback *fallback, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, addr);

	if (module)
		return is_generated_in(fallback, module, addr);
	return mw_made_code_holds(fallback->made, addr) || any_generated(fallback);
}

/* NULL without memory. */
static const struct mw_fallback_module *look_up(struct mw_fallback *fallback, const struct mw_module *module)
{
	struct mw_fallback_module *found = MW_VECTOR_AT(fallback->items, fallback->count, module->number);

	if (!found)
		return NULL;
	if (!found->known) {
		found->known = true;
		mw_function_starts_init(&found->starts, module->elf, fallback->arch);
	}
	return found;
}

void mw_fallback_deinit(struct mw_fallback *fallback)
{
	for (size_t i = 0; i < fallback->count; i++)
		mw_function_starts_deinit(&fallback->items[i].starts);
	free(fallback->items);
	mw_map_deinit(&fallback->rows);
	*fallback = (struct mw_fallback){0};
}

/* Where the function that holds the call before `pc` ends at the latest: where the next one begins. */
static mw_addr ends_at(const struct mw_fallback_module *known, const struct mw_module *module, mw_addr pc)
{
	size_t next = known ? starts_up_to(&known->starts, pc - module->bias - 1) : 0;
	uint64_t end = module->end - module->bias;

	if (known && next < known->starts.count && known->starts.items[next].vaddr < end)
		end = known->starts.items[next].vaddr;
	return end + module->bias;
}

static uint64_t row_of(const struct mw_code_frame *frame)
{
	enum mw_row_kind kind = frame->by_fp ? MW_ROW_FP : MW_ROW_SP;

	if (frame->outermost)
		return mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0);
	if (frame->fp == MW_CODE_FP_SAVED && frame->fp_at == (int16_t)frame->fp_at)
		return mw_row(kind, frame->cfa, MW_ROW_FP_SAVED, (int16_t)frame->fp_at);
	return mw_row(kind, frame->cfa, frame->fp == MW_CODE_FP_SAME ? MW_ROW_FP_SAME : MW_ROW_FP_LOST, 0);
}

/* That a frame pointer is saved where generated code saves it says the same as mw_row_generated(). */
static uint64_t row_of_generated(const struct mw_code_frame *frame)
{
	if (frame->unknown)
		return mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0);
	if (frame->fp == MW_CODE_FP_SAVED && frame->fp_at == mw_row_fp_at(mw_row_generated()))
		return mw_row_generated();
	return row_of(frame);
}

/*
 * exit(main(…)): what a C library's start function does, and nobody else in a file that has exit. The result goes on as
 * the argument, by an instruction or two.
 */
static bool exits_next(const struct mw_fallback *fallback, const struct mw_fallback_module *known,
		       const struct around *around, mw_addr bias, mw_addr pc)
{
	size_t at = (size_t)(pc - around->base), left = around->size - at;
	mw_addr target;

	if (!known->starts.exit || left < EXIT_WITHIN)
		return false;
	return fallback->arch->call_target(around->bytes + at, EXIT_WITHIN, pc, 0, &target) < EXIT_WITHIN &&
	       target - bias == known->starts.exit;
}

/* The code alone: what each walk that comes there finds. */
static uint64_t read_code(struct mw_fallback *fallback, const struct mw_module *module, mw_addr pc)
{
	const struct mw_fallback_module *known = look_up(fallback, module);
	uint64_t lost = mw_row(MW_ROW_FOREIGN, 0, MW_ROW_FP_LOST, 0), row = mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_LOST, 0);
	bool called = is_behind_call(fallback, module, pc), generated = is_generated_in(fallback, module, pc - 1),
	     blind;
	struct mw_code_function function;
	struct mw_way_out ways[MAX_WAYS];
	struct mw_regs regs = {.pc = pc};
	struct around around;

	if (!known || !code_around(module, pc, &around))
		return row;
	if (called && mw_function_starts_find(&known->starts, pc - 1 - module->bias, &function) &&
	    (!generated || function.exact)) {
		struct mw_code_frame frame;

		function.start += function.start ? module->bias : 0;
		function.end += function.end ? module->bias : 0;
		function.alone = generated;
		if (fallback->arch->frame_at(around.bytes, around.size, around.base, pc, &function, &frame))
			return generated ? row_of_generated(&frame) : row_of(&frame);
	}
	if (generated)
		return mw_row_generated();
	if (called && exits_next(fallback, known, &around, module->bias, pc))
		return mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0);
	if (fallback->arch->ways_out(around.bytes, around.size, around.base, pc, &regs, ways, MAX_WAYS, &blind) == 0)
		/* What no call stands before was put there to begin with (makecontext): nothing has called it. */
		return blind && called ? lost : mw_row(MW_ROW_END, 0, MW_ROW_FP_LOST, 0);
	return row;
}

uint64_t mw_fallback_row(struct mw_fallback *fallback, mw_addr pc)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, pc - 1);
	uint64_t vaddr = module ? pc - module->bias : 0, key, row;
	void *held;

	if (!module && mw_made_code_holds(fallback->made, pc - 1))
		return fallback->made->row(fallback->made->context, pc);
	if (!module && any_generated(fallback))
		return mw_row_generated();
	if (!module || !module->elf)
		return mw_row(MW_ROW_NONE, 0, MW_ROW_FP_LOST, 0);
	if (vaddr >> KEY_BITS || module->number >= NO_MODULE)
		return read_code(fallback, module, pc);
	key = vaddr | (uint64_t)module->number << KEY_BITS;
	held = mw_map_get(&fallback->rows, key);
	if (held)
		return (uint64_t)(uintptr_t)held;
	row = read_code(fallback, module, pc);
	/* Where it can't be kept, it is looked up again. */
	mw_error_destroy(mw_map_set(&fallback->rows, key, (void *)(uintptr_t)row)); // NOLINT(performance-no-int-to-ptr)
	return row;
}

bool mw_fallback_is_signal_return(const struct mw_fallback *fallback, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, addr);
	uint8_t code[MW_SIGNAL_RETURN_MAX];
	size_t size = sizeof(code);

	if (!module || !module->elf)
		return false;
	while (size > 0 && !mw_elf_read(module->elf, addr - module->bias, code, size))
		size--;
	return fallback->arch->is_signal_return(code, size);
}

bool mw_fallback_is_return(const struct mw_fallback *fallback, mw_addr addr)
{
	return is_return_address(fallback, addr) || mw_fallback_is_signal_return(fallback, addr);
}

bool mw_fallback_is_entry(struct mw_fallback *fallback, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, addr);

	return module && module->elf && is_generated_in(fallback, module, addr) &&
	       (addr - module->bias) % ALIGNMENT == 0 && !is_behind_call(fallback, module, addr);
}

/* Code in no module can only be read where it is. What was found so stays true as long as the code; else it is a place
 * that code was at. */
static bool can_return_to_generated(struct mw_fallback *fallback, const struct mw_memory_view *memory, mw_addr addr)
{
	uint8_t code[2 * CALL_BYTES];
	uint64_t key = addr | NO_MODULE << KEY_BITS;
	bool found;

	if (mw_map_get(&fallback->rows, key))
		return true;
	if (addr >> (KEY_BITS - 1) || addr < CALL_BYTES ||
	    !memory->read(memory->context, addr - CALL_BYTES, code, sizeof(code)))
		return false;
	found = fallback->arch->is_call_before(code, CALL_BYTES);
	/* Where the code is left for the deoptimiser. */
	for (size_t size = 1; !found && size < CALL_BYTES; size++)
		found = fallback->arch->is_call_before(code + CALL_BYTES, size);
	if (found)
		mw_error_destroy(mw_map_set(&fallback->rows, key, fallback));
	return found;
}

bool mw_fallback_can_return(struct mw_fallback *fallback, const struct mw_memory_view *memory, mw_addr addr)
{
	if (mw_fallback_is_return(fallback, addr) || mw_fallback_is_entry(fallback, addr))
		return true;
	if (mw_made_code_holds(fallback->made, addr - 1))
		return mw_row_kind(mw_fallback_row(fallback, addr)) != MW_ROW_FOREIGN;
	return !mw_modules_find(fallback->modules, addr - 1) && any_generated(fallback) &&
	       can_return_to_generated(fallback, memory, addr);
}

static bool any_return_above(const struct mw_fallback *fallback, const struct mw_memory_view *memory,
			     const struct mw_regs *regs)
{
	mw_addr sp = regs->gpr[fallback->arch->dwarf_sp];

	for (unsigned i = 0; i < ABOVE; i++) {
		mw_addr word;

		if (!memory->read(memory->context, sp + i * sizeof(word), &word, sizeof(word)))
			return false;
		if (is_return_address(fallback, word))
			return true;
	}
	return false;
}

/* Nothing leads on: is it the function that a thread begins with? It is if what is left of it ends with a call that
 * does not return, or if nothing above on the stack looks like a return address. */
static enum mw_fallback_step no_caller(struct mw_fallback *fallback, const struct mw_memory_view *memory,
				       const struct mw_module *module, const struct mw_regs *regs, struct around around)
{
	mw_addr end = ends_at(look_up(fallback, module), module, regs->pc);
	struct mw_way_out ways[MAX_WAYS];
	bool blind;

	if (end - around.base < around.size)
		around.size = (size_t)(end - around.base);
	if (fallback->arch->ways_out(around.bytes, around.size, around.base, regs->pc, regs, ways, MAX_WAYS, &blind) ==
	    0)
		return blind ? MW_FALLBACK_LOST : MW_FALLBACK_END;
	return any_return_above(fallback, memory, regs) ? MW_FALLBACK_LOST : MW_FALLBACK_END;
}

/* By what the code says for certain; the way out that leads to the same place says which registers come back. */
static bool take_row(struct mw_fallback *fallback, const struct mw_memory_view *memory, uint64_t row,
		     const struct mw_way_out *ways, size_t count, const struct mw_regs *regs, struct mw_regs *out)
{
	mw_addr base = regs->gpr[mw_row_kind(row) == MW_ROW_FP ? fallback->arch->dwarf_fp : fallback->arch->dwarf_sp];
	mw_addr cfa = base + (uint64_t)(int64_t)mw_row_n(row), at = cfa + (uint64_t)(int64_t)mw_row_fp_at(row);
	struct mw_way_out way = {.return_at = cfa - sizeof(cfa), .sp = cfa};

	for (size_t i = 0; i < count; i++)
		if (ways[i].return_at == way.return_at)
			way = ways[i];
	/* The way out may save it first, where something else stands yet. */
	if (mw_row_fp(row) == MW_ROW_FP_SAME)
		way.restored &= ~(1u << fallback->arch->dwarf_fp);
	if (mw_row_fp(row) == MW_ROW_FP_SAVED) {
		way.restored |= 1u << fallback->arch->dwarf_fp;
		way.restored_at[fallback->arch->dwarf_fp] = at;
	}
	return take_way(fallback, memory, &way, false, regs, out);
}

/* By frame pointer. */
static enum mw_fallback_step step_generated(struct mw_fallback *fallback, const struct mw_memory_view *memory,
					    const struct mw_regs *regs, struct mw_regs *out)
{
	uint64_t row = mw_row_generated();
	mw_addr sp = regs->gpr[fallback->arch->dwarf_sp], fp = regs->gpr[fallback->arch->dwarf_fp];
	mw_addr cfa = fp + (uint64_t)(int64_t)mw_row_n(row);
	struct mw_way_out way = {.return_at = cfa - sizeof(cfa), .sp = cfa, .restored = 1u << fallback->arch->dwarf_fp};

	way.restored_at[fallback->arch->dwarf_fp] = cfa + (uint64_t)(int64_t)mw_row_fp_at(row);
	if (fp % sizeof(fp) || fp < sp || fp - sp > FRAME_LIMIT)
		return MW_FALLBACK_LOST;
	return take_way(fallback, memory, &way, false, regs, out) ? MW_FALLBACK_FOUND : MW_FALLBACK_LOST;
}

static bool read_aligned(void *context, uint64_t addr, uint64_t *word)
{
	const struct mw_memory_view *memory = context;

	return addr % sizeof(*word) == 0 && memory->read(memory->context, addr, word, sizeof(*word));
}

bool mw_fallback_javascript(const struct mw_fallback *fallback, const struct mw_memory_view *view,
			    const struct mw_regs *regs, bool made, struct mw_javascript *out)
{
	const struct mw_javascript_layout *layout = fallback->javascript;
	mw_addr sp = regs->gpr[fallback->arch->dwarf_sp], fp = regs->gpr[fallback->arch->dwarf_fp];
	struct mw_memory_view memory = *view;
	uint64_t context, function, bytecode, offset;
	struct mw_javascript found = {0};

	if (!layout || !layout->shared || fp < sp || fp - sp > FRAME_LIMIT || fp - sp < MW_JAVASCRIPT_SIZE(made) ||
	    !read_aligned(&memory, fp + (uint64_t)MW_JAVASCRIPT_CONTEXT, &context) || !(context & 1) ||
	    !read_aligned(&memory, fp + (uint64_t)MW_JAVASCRIPT_FUNCTION, &function))
		return false;
	if (!made && (!read_aligned(&memory, fp + (uint64_t)MW_JAVASCRIPT_BYTECODE, &bytecode) ||
		      !read_aligned(&memory, fp + (uint64_t)MW_JAVASCRIPT_OFFSET, &offset) ||
		      !mw_javascript_place(layout, read_aligned, &memory, bytecode, offset, &found.at)))
		return false;
	if (!mw_javascript_of(layout, read_aligned, &memory, function, &found))
		return false;
	*out = found;
	return true;
}

enum mw_fallback_step mw_fallback_step(struct mw_fallback *fallback, const struct mw_memory_view *memory,
				       const struct mw_regs *regs, struct mw_regs *out)
{
	const struct mw_module *module = mw_modules_find(fallback->modules, regs->pc - 1);
	uint64_t row = mw_fallback_row(fallback, regs->pc);
	enum mw_row_kind kind = mw_row_kind(row);
	struct mw_way_out ways[MAX_WAYS];
	struct around around;
	struct mw_regs caller;
	bool found = false, blind;
	size_t count;

	if (kind == MW_ROW_CALLED)
		return step_generated(fallback, memory, regs, out);
	if (kind == MW_ROW_FOREIGN)
		return MW_FALLBACK_LOST;
	if (kind == MW_ROW_END)
		return MW_FALLBACK_END;
	if (kind == MW_ROW_NONE || !code_around(module, regs->pc, &around))
		return MW_FALLBACK_LOST;
	count = fallback->arch->ways_out(around.bytes, around.size, around.base, regs->pc, regs, ways, MAX_WAYS,
					 &blind);
	if (kind != MW_ROW_SLOW) {
		if (take_row(fallback, memory, row, ways, count, regs, out))
			return MW_FALLBACK_FOUND;
		return no_caller(fallback, memory, module, regs, around);
	}
	for (size_t i = 0; i < count; i++) {
		if (!take_way(fallback, memory, &ways[i], true, regs, &caller))
			continue;
		/* Two places that both look like a return address: guessing would make a stack that never was. */
		if (found)
			return MW_FALLBACK_LOST;
		*out = caller;
		found = true;
	}
	return found ? MW_FALLBACK_FOUND : no_caller(fallback, memory, module, regs, around);
}
