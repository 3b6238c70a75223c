/* SPDX-License-Identifier: MIT */
/*
 * fallback.h: one step outwards through code that has no .eh_frame description.
 */
#ifndef MW_UNWIND_FALLBACK_H
#define MW_UNWIND_FALLBACK_H

#include "base/map.h"
#include "symbol/elf_image.h"
#include "symbol/modules.h"

#include <memwatch/arch.h>
#include <memwatch/unwind.h>

struct mw_function_start {
	uint64_t vaddr, size; /* size 0: unknown */
	bool part;            /* of a function that begins elsewhere (its cold part) */
};

/* By vaddr. Zero-initialise. */
struct mw_function_starts {
	struct mw_function_start *items;
	size_t count, capacity;
	uint64_t exit; /* vaddr of the C library's exit(), 0: it is not there */
};

/* From the file's symbols, and, where its code is not large, from the calls in it. Best effort: what there is no memory
 * for is not there. */
void mw_function_starts_init(struct mw_function_starts *starts, struct mw_elf *elf, const struct mw_arch *arch);
void mw_function_starts_deinit(struct mw_function_starts *starts);
/* What is known of the function that holds `vaddr` (as addresses of the file). False: it begins elsewhere. */
bool mw_function_starts_find(const struct mw_function_starts *starts, uint64_t vaddr, struct mw_code_function *out);

enum mw_fallback_step {
	MW_FALLBACK_FOUND, /* `out` is the caller */
	MW_FALLBACK_END,   /* this is where the thread starts */
	MW_FALLBACK_LOST,
};

struct mw_fallback_module;
struct mw_made_code;

/* What is stepped through, and what was looked up in it, so that it is once: zero but for the first two. */
struct mw_fallback {
	const struct mw_modules *modules;
	const struct mw_arch *arch;
	struct mw_fallback_module *items; /* by module number */
	size_t count;
	struct mw_map rows;
	uint32_t looked_at; /* modules that were looked through for generated code */
	bool any_generated; /* … and one has some */
	/* Code of a runtime that says itself what its frames are (made.h); NULL: there is none. The owner sets it. */
	const struct mw_made_code *made;
	/* What frames of JavaScript are, where the generated code is V8's; NULL: nothing is known. The owner sets it. */
	const struct mw_javascript_layout *javascript;
};

/* Look for generated code in all modules that there are: it takes the longer, the more symbols they have. Modules that
 * come later are looked through when a walk comes to them. */
void mw_fallback_look_ahead(struct mw_fallback *fallback);
void mw_fallback_deinit(struct mw_fallback *fallback);

/*
 * The row (memwatch/ring.h) of a return address in code without frame descriptions, as the code alone says. SP, FP: it
 * is certain. CALLED: generated code, which says nothing else. END: nothing has called it. FOREIGN: no walk leads on.
 * SLOW: it can't be known for certain; NONE: there is no code that could say.
 */
uint64_t mw_fallback_row(struct mw_fallback *fallback, mw_addr pc);

/* Is there generated code at `addr` (mw_generated_code)? In a process that has a module with some, all code that is in
 * no module is taken for such. */
bool mw_fallback_is_generated(struct mw_fallback *fallback, mw_addr addr);
/* Can something return to `addr`, which may be in generated code? Its callees may return to what follows a call, and,
 * where V8 has put other frames in the place of one, to where a function or a call begins. */
bool mw_fallback_can_return(struct mw_fallback *fallback, const struct mw_memory_view *memory, mw_addr addr);
/* … is it such a beginning, not what follows a call? */
bool mw_fallback_is_entry(struct mw_fallback *fallback, mw_addr addr);

/* Does a signal handler return to `addr`? */
bool mw_fallback_is_signal_return(const struct mw_fallback *fallback, mw_addr addr);
/* Can something return to `addr`: is there code of a module, and right before it a call, or what a signal handler
 * returns to? */
bool mw_fallback_is_return(const struct mw_fallback *fallback, mw_addr addr);

/* The function of JavaScript that the frame of generated code at `regs` is of. `made`: by code that V8 has made as it
 * runs, else by its interpreter. False: it is of none. */
bool mw_fallback_javascript(const struct mw_fallback *fallback, const struct mw_memory_view *memory,
			    const struct mw_regs *regs, bool made, struct mw_javascript *out);

/*
 * Step from `regs` (its pc a return address) to the caller by that row, or where it can't be known for certain by what
 * the stack shows besides: the one way out of the function that leads to what looks like a return address. Sets pc,
 * stack pointer and the registers that were saved on the way.
 */
enum mw_fallback_step mw_fallback_step(struct mw_fallback *fallback, const struct mw_memory_view *memory,
				       const struct mw_regs *regs, struct mw_regs *out);

#endif
