// SPDX-License-Identifier: MIT
/* v8_names.c: what JavaScript functions are called (v8.h). */
#include "script/v8_parts.h"

#include "proc/peek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX    1024u      /* bytes of a name that are kept */
#define FRAMES_MAX  (1u << 18) /* that have names */
#define INLINE_MAX  75u        /* names of locals that stand in a ScopeInfo itself */
#define LOCALS_MAX  (1u << 20)
#define WORD        8u
#define ANONYMOUS   "(anonymous)"
#define SHARED_DATA 8u /* in a SharedFunctionInfo: its bytecode, or code made of that */
#define SCOPE_FLAGS 8u /* in a ScopeInfo */

/* Kinds of functions that V8 has made for members of a class, and what it calls them. */
#define MEMBERS_KIND   24u
#define MEMBERS        "<instance_members_initializer>"
#define STATIC_MEMBERS "<static_initializer>"

/* Flags of a ScopeInfo. */
#define SCOPE_TYPE(flags)      ((flags)&0xf)
#define HAS_SAVED_CLASS(flags) ((flags) >> 10 & 1)
#define HAS_FUNCTION(flags)    ((flags) >> 12 & 3)
#define HAS_INFERRED(flags)    ((flags) >> 14 & 1)
#define KIND(flags)            ((flags) >> 17 & 0x1f)

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	return mw_peek(*(const pid_t *)context, addr, word, sizeof(*word));
}

static bool name_at(const struct mw_v8 *v8, pid_t tid, mw_addr scope, uint32_t index, char out[TEXT_MAX])
{
	uint64_t name;

	return v8_field(tid, scope, WORD * (index + 1), &name) && v8_text(v8, tid, name, out, TEXT_MAX);
}

/*
 * The name in a ScopeInfo:
 *     flags, parameters, number of locals, [where it stands in the source], [of a module: its variables], the locals' names,
 *     or one table of them where they are many, what they are, [a class's variable], [name, place], [inferred name], …
 * False: it makes no sense.
 */
static bool scope_name(const struct mw_v8 *v8, pid_t tid, mw_addr scope, char out[TEXT_MAX])
{
	const struct v8_version *version = v8->version;
	uint32_t index = (uint32_t)v8->constants[V8_SCOPE_FIRST], flags, locals;
	uint64_t word;

	*out = '\0';
	if (!v8_field(tid, scope, SCOPE_FLAGS, &word) || (!version->raw_flags && word & UINT32_MAX))
		return false;
	flags = (uint32_t)(version->raw_flags ? word : word >> 32);
	if (!v8_field(tid, scope, WORD * ((uint32_t)v8->constants[V8_SCOPE_LOCALS] + 1), &word) ||
	    !v8_number(word, &locals) || locals > LOCALS_MAX)
		return false;
	if (SCOPE_TYPE(flags) == version->scopes.eval)
		return snprintf(out, TEXT_MAX, "eval") > 0;
	if (SCOPE_TYPE(flags) != version->scopes.function)
		return true;
	index += (locals < INLINE_MAX ? locals : 1) + locals + HAS_SAVED_CLASS(flags);
	if (HAS_FUNCTION(flags)) {
		if (!name_at(v8, tid, scope, index, out))
			*out = '\0';
		index += 2;
	}
	if (!*out && KIND(flags) >= MEMBERS_KIND && KIND(flags) <= MEMBERS_KIND + 1)
		return snprintf(out, TEXT_MAX, "%s", KIND(flags) == MEMBERS_KIND ? MEMBERS : STATIC_MEMBERS) > 0;
	if (!*out && HAS_INFERRED(flags) && !name_at(v8, tid, scope, index, out))
		*out = '\0';
	return true;
}

static bool function_name(const struct mw_v8 *v8, pid_t tid, mw_addr shared, char out[TEXT_MAX])
{
	uint64_t name;

	if (!v8_field(tid, shared, (uint32_t)v8->constants[V8_SHARED_NAME], &name))
		return false;
	if (v8_is(v8, tid, name, V8_TYPE_SCOPE))
		return scope_name(v8, tid, name, out);
	return v8_text(v8, tid, name, out, TEXT_MAX);
}

/* The name of a script, which may be a URL: of a file its path. False: it has none. */
static bool script_name(const struct mw_v8 *v8, pid_t tid, mw_addr script, char out[TEXT_MAX])
{
	static const char url[] = "file://";
	uint64_t name;

	if (!v8_field(tid, script, (uint32_t)v8->constants[V8_SCRIPT_NAME], &name) ||
	    !v8_text(v8, tid, name, out, TEXT_MAX) || !*out)
		return false;
	if (strncmp(out, url, strlen(url)) == 0)
		memmove(out, out + strlen(url), strlen(out + strlen(url)) + 1);
	return true;
}

/* Is that the function's bytecode? Where a frame of another kind has not written yet, there may be what one of the
 * interpreter's has left. */
static bool has_bytecode(const struct mw_v8 *v8, pid_t tid, mw_addr shared, mw_addr bytecode)
{
	uint64_t data, inner;

	if (!v8_field(tid, shared, SHARED_DATA, &data))
		return false;
	if (data == bytecode)
		return v8_is(v8, tid, bytecode, V8_TYPE_BYTECODE);
	/* Code that was made of it, or what holds it beside code of the interpreter's own. */
	return (v8_is(v8, tid, data, V8_TYPE_CODE) && v8_field(tid, data, v8->version->code.deoptimization, &inner) &&
		inner == bytecode) ||
	       (v8_field(tid, data, WORD, &inner) && inner == bytecode);
}

/* Is all still where it was? */
static bool is_current(const struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame)
{
	uint64_t check;

	return mw_javascript_check(&v8->layout, read_word, &tid, frame->shared, &check) && check == frame->check;
}

/* The frame of a function. `at`: where it is in that, if that is known. `*number` 0: it has no name. */
static struct mw_error *name_function(struct mw_v8 *v8, pid_t tid, mw_addr shared, const struct v8_place *at,
				      uint32_t *number)
{
	char function[TEXT_MAX], file[TEXT_MAX] = "";
	uint64_t script;
	uint32_t line = 0;

	*number = 0;
	if (!v8_is(v8, tid, shared, V8_TYPE_SHARED) || !function_name(v8, tid, shared, function))
		return NULL;
	if (v8_field(tid, shared, (uint32_t)v8->constants[V8_SHARED_SCRIPT], &script) &&
	    v8_is(v8, tid, script, V8_TYPE_SCRIPT)) {
		if (!script_name(v8, tid, script, file))
			*file = '\0';
		line = v8_line_of(v8, tid, script, at);
	}
	return mw_named_frames_add(v8->named, *function ? function : ANONYMOUS, *file ? file : NULL, line, number);
}

static struct mw_error *name_all(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, mw_addr pc,
				 struct v8_named_frame *out)
{
	struct v8_at functions[V8_INLINED] = {{.shared = frame->shared}};
	unsigned count = 1;

	/* It may have moved since the frame was read. */
	if (!is_current(v8, tid, frame))
		return NULL;
	if (frame->at && !has_bytecode(v8, tid, frame->shared, mw_javascript_bytecode_of(frame->at)))
		return NULL;
	if (frame->at) {
		functions[0].place.bytecode = mw_javascript_bytecode_of(frame->at);
		functions[0].place.offset = (uint32_t)mw_javascript_offset_of(frame->at);
	} else {
		count = v8_code_at(v8, tid, frame->shared, pc, functions);
	}
	if (!count)
		functions[count++] = (struct v8_at){.shared = frame->shared};
	for (unsigned i = 0; i < count; i++) {
		MW_TRY(name_function(v8, tid, functions[i].shared, &functions[i].place, &out->numbers[out->count]));
		out->count += out->numbers[out->count] != 0;
	}
	return NULL;
}

void v8_names_deinit(struct mw_v8 *v8)
{
	void *value;

	for (size_t i = 0; mw_map_next(&v8->named_frames, &i, &value);)
		free(value);
	mw_map_deinit(&v8->named_frames);
}

struct mw_error *mw_v8_learn(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, mw_addr pc)
{
	uint64_t key = mw_javascript_key(frame, pc);
	struct v8_named_frame named = {0}, *kept;
	struct mw_error *err;

	if (v8->named_frames.count >= FRAMES_MAX || mw_map_get(&v8->named_frames, key))
		return NULL;
	MW_TRY(name_all(v8, tid, frame, pc, &named));
	kept = malloc(sizeof(*kept));
	if (!kept)
		return mw_error_nomem();
	*kept = named;
	err = mw_map_set(&v8->named_frames, key, kept);
	if (err)
		free(kept);
	return err;
}

void mw_v8_name(const struct mw_v8 *v8, const struct mw_raw_stack *native, const struct mw_javascript *functions,
		struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated)
{
	*count = 0;
	*truncated = false;
	for (uint32_t i = 0; i < native->count; i++) {
		const struct mw_raw_frame *frame = &native->frames[i];
		const struct v8_named_frame *named =
			functions[i].shared
				? mw_map_get(&v8->named_frames, mw_javascript_key(&functions[i], frame->addr))
				: NULL;
		unsigned several = named && named->count ? named->count : 1;

		for (unsigned j = 0; j < several; j++) {
			if (*count == capacity) {
				*truncated = true;
				return;
			}
			out[(*count)++] =
				named && named->count ? (struct mw_raw_frame){named->numbers[j], v8->module} : *frame;
		}
	}
}
