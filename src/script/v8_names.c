// SPDX-License-Identifier: MIT
/* v8_names.c: what JavaScript functions are called (v8.h). */
#include "script/v8_parts.h"

#include "proc/peek.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX    1024u     /* bytes of a name that are kept */
#define FRAMES_MAX  (1u << 20) /* that are known */
#define INLINE_MAX  75u       /* names of locals that stand in a ScopeInfo itself */
#define LOCALS_MAX  (1u << 20)
#define WORD        8u
#define ANONYMOUS   "(anonymous)"
#define NO_NAME     UINT32_MAX /* a frame of which nothing is known */
#define SCOPE_FLAGS 8u         /* in a ScopeInfo */

/* Flags of a ScopeInfo. */
#define SCOPE_TYPE(flags)     ((flags)&0xf)
#define HAS_SAVED_CLASS(flags) ((flags) >> 10 & 1)
#define HAS_FUNCTION(flags)   ((flags) >> 12 & 3)
#define HAS_INFERRED(flags)   ((flags) >> 14 & 1)

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
	if (SCOPE_TYPE(flags) == version->eval_scope)
		return snprintf(out, TEXT_MAX, "eval") > 0;
	if (SCOPE_TYPE(flags) != version->function_scope)
		return true;
	index += (locals < INLINE_MAX ? locals : 1) + locals + HAS_SAVED_CLASS(flags);
	if (HAS_FUNCTION(flags)) {
		if (!name_at(v8, tid, scope, index, out))
			*out = '\0';
		index += 2;
	}
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

/* What is said of the frame. False: nothing can be. */
static bool read_frame(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, char function[TEXT_MAX],
		       char file[TEXT_MAX], uint32_t *line)
{
	uint64_t check, script;

	/* It may have moved since the frame was read. */
	if (!mw_javascript_check(&v8->layout, read_word, &tid, frame->shared, &check) || check != frame->check ||
	    !v8_is(v8, tid, frame->shared, V8_TYPE_SHARED) || !function_name(v8, tid, frame->shared, function))
		return false;
	*line = 0;
	*file = '\0';
	if (!*function)
		(void)snprintf(function, TEXT_MAX, ANONYMOUS);
	if (!v8_field(tid, frame->shared, (uint32_t)v8->constants[V8_SHARED_SCRIPT], &script) ||
	    !v8_is(v8, tid, script, V8_TYPE_SCRIPT))
		return true;
	(void)script_name(v8, tid, script, file);
	if (frame->at)
		*line = v8_line_of(v8, tid, script, mw_javascript_bytecode_of(frame->at),
				   (uint32_t)mw_javascript_offset_of(frame->at));
	return true;
}

struct mw_error *mw_v8_learn(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, mw_addr pc)
{
	uint64_t key = mw_javascript_key(frame, pc);
	char function[TEXT_MAX], file[TEXT_MAX];
	uint32_t line, number = NO_NAME;

	if (mw_map_get(&v8->numbers, key))
		return NULL;
	if (read_frame(v8, tid, frame, function, file, &line))
		MW_TRY(mw_named_frames_add(v8->named, function, *file ? file : NULL, line, &number));
	if (v8->numbers.count >= FRAMES_MAX)
		mw_map_deinit(&v8->numbers);
	// NOLINTNEXTLINE(performance-no-int-to-ptr)
	return mw_map_set(&v8->numbers, key, (void *)(uintptr_t)number);
}

uint32_t mw_v8_number(const struct mw_v8 *v8, const struct mw_javascript *frame, mw_addr pc)
{
	uint32_t number = (uint32_t)(uintptr_t)mw_map_get(&v8->numbers, mw_javascript_key(frame, pc));

	return number == NO_NAME ? 0 : number;
}
