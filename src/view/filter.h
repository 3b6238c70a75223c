/* SPDX-License-Identifier: MIT */
/*
 * filter.h: which blocks are meant: terms, `and`, `or`, `not`, parentheses.
 *
 *     function:parse and size:>=4K        module:libcache or module:libpool
 *     not thread:worker                   function:~^shop::(Order|Basket)
 *     stack:00c0ffee (api:malloc or api:calloc)     "operator new" type:transient
 *
 * Terms side by side are joined by `and`, which binds closer than `or`; `not` binds closest. A term is FIELD:VALUE, or
 * a word that a function's or module's name contains. Values with blanks or parentheses stand in quotes, "" or ''.
 *
 *     function: module: api: thread: heap: process:   a part of the name, case counts; ~ before it makes it an extended
 *                             regular expression. function and module look at every frame of the stack. thread takes a
 *                             thread id, process a process id too
 *     size:                   bytes of one block: 4096, 1K-64K (both included), >=1M, <100; K, M, G, T are powers of 1024
 *     kind:                   heap, vm, vm-internal
 *     type:                   impacting, transient, aofi, aofo
 *     stack:                  the first digits of a stack id
 *
 * What is unknown (a size, a name) is no match. Bounded: MW_FILTER_LENGTH bytes, MW_FILTER_TERMS terms, no recursion.
 */
#ifndef MW_VIEW_FILTER_H
#define MW_VIEW_FILTER_H

#include <memwatch/error.h>
#include <memwatch/table.h>

#define MW_FILTER_LENGTH 4096u
#define MW_FILTER_TERMS  64u

struct mw_filter;

/* Errors: USAGE, which names the place and says what would be right; MEMORY. */
struct mw_error *mw_filter_parse(const char *text, struct mw_filter **out) MW_MUST_CHECK;
void mw_filter_destroy(struct mw_filter *filter);
/* As it was given. */
const char *mw_filter_text(const struct mw_filter *filter);
/* What it looks at: bits 1 << MW_COLUMN_… */
uint32_t mw_filter_columns(const struct mw_filter *filter);
/* Does a term ask for vm-internal blocks? They are left out of views otherwise: the heap's blocks lie in them. */
bool mw_filter_names_internal(const struct mw_filter *filter);

/*
 * Each tells which terms are true of a thing, as bits; of other things' terms it tells nothing. A block is meant where
 * mw_filter_match() says so of the bits of the block, its stack, thread, heap and process, or'ed.
 */
uint64_t mw_filter_stack(const struct mw_filter *filter, const struct mw_report_stack *stack);
uint64_t mw_filter_thread(const struct mw_filter *filter, pid_t tid, const char *name);
uint64_t mw_filter_heap(const struct mw_filter *filter, const char *name);
uint64_t mw_filter_process(const struct mw_filter *filter, pid_t pid, const char *name);
uint64_t mw_filter_block(const struct mw_filter *filter, enum mw_kind kind, enum mw_fate fate, uint64_t bytes);
bool mw_filter_match(const struct mw_filter *filter, uint64_t bits);

#endif
