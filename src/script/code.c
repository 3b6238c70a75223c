// SPDX-License-Identifier: MIT
/* code.c: what CPython's code objects say of themselves: name, file, and lines (python.h). */
#include "script/python.h"

#include "proc/peek.h"

#include <stdlib.h>

#define TEXT_MAX    1024u        /* characters of a name that are kept */
#define KEPT_MAX    (64u << 20)  /* bytes of code objects that are kept */
#define TABLE_MAX   (256u << 10) /* bytes of a table of lines */
#define NUMBERS_MAX 65536u       /* places of a code object whose numbers are kept */

struct python_code {
	char *function, *file;
	uint32_t first_line;
	uint8_t *table;
	size_t table_size;
	struct mw_map numbers; /* of frames, as pointers, by where in the code they are, plus 1 */
};

static void code_destroy(struct python_code *code)
{
	if (!code)
		return;
	free(code->function);
	free(code->file);
	free(code->table);
	mw_map_deinit(&code->numbers);
	free(code);
}

void python_codes_deinit(struct mw_map *codes)
{
	void *code;

	for (size_t i = 0; mw_map_next(codes, &i, &code);)
		code_destroy(code);
	mw_map_deinit(codes);
}

static uint64_t word_at(const uint8_t *bytes, uint16_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static uint32_t half_at(const uint8_t *bytes, uint16_t offset)
{
	uint32_t half;

	memcpy(&half, bytes + offset, sizeof(half));
	return half;
}

static size_t put_utf8(uint32_t character, char *out)
{
	if (character < 0x80) {
		out[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = (char)(0xc0 | character >> 6);
		out[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		out[0] = (char)(0xe0 | character >> 12);
		out[1] = (char)(0x80 | (character >> 6 & 0x3f));
		out[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (character >> 18 & 7));
	out[1] = (char)(0x80 | (character >> 12 & 0x3f));
	out[2] = (char)(0x80 | (character >> 6 & 0x3f));
	out[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

/* A str object's text as UTF-8 (malloc'ed), or NULL where it is none, or can't be read. */
static char *read_text(const struct python_layout *layout, pid_t tid, mw_addr object)
{
	uint8_t head[PYTHON_TEXT_STATE + 4], *raw;
	uint64_t length;
	uint32_t state;
	unsigned kind;
	size_t used = 0;
	char *text;

	if (!mw_peek(tid, object, head, sizeof(head)))
		return NULL;
	length = word_at(head, PYTHON_TEXT_SIZE);
	state = half_at(head, PYTHON_TEXT_STATE);
	/* interned: 2 bits; kind: 3 bits, bytes of a character; compact; ascii. */
	kind = state >> 2 & 7;
	if (!(state & 1u << 5) || (kind != 1 && kind != 2 && kind != 4) || length > UINT32_MAX)
		return NULL;
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	raw = malloc(length * kind + 1);
	text = malloc(length * 4 + 1);
	if (!raw || !text ||
	    !mw_peek(tid, object + (state & 1u << 6 ? layout->ascii : layout->compact), raw, length * kind)) {
		free(raw);
		free(text);
		return NULL;
	}
	for (size_t i = 0; i < length; i++) {
		uint32_t character = 0;

		memcpy(&character, raw + i * kind, kind);
		if (!character || character > 0x10ffff)
			break;
		used += put_utf8(character, text + used);
	}
	text[used] = '\0';
	free(raw);
	return text;
}

static bool read_table(pid_t tid, mw_addr object, struct python_code *code)
{
	uint8_t head[MW_SCRIPT_BYTES_SIZE + 8];
	uint64_t size;

	if (!mw_peek(tid, object, head, sizeof(head)))
		return false;
	size = word_at(head, MW_SCRIPT_BYTES_SIZE);
	if (size > TABLE_MAX)
		return false;
	code->table = malloc(size + 1);
	code->table_size = size;
	return code->table && mw_peek(tid, object + MW_SCRIPT_BYTES_DATA, code->table, size);
}

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	return mw_peek(*(const pid_t *)context, addr, word, sizeof(*word));
}

/* NULL: what lies there is no code object, or another one than it was. */
static struct python_code *read_code(const struct python_layout *layout, pid_t tid, mw_addr object, uint64_t check)
{
	const struct mw_script_layout *walk = &layout->walk;
	struct python_code *code = calloc(1, sizeof(*code));
	uint64_t name, file, table, now;

	if (!code)
		return NULL;
	if (!mw_script_check(walk, read_word, &tid, object, &now) || now != check ||
	    !read_word(&tid, object + walk->name, &name) || !read_word(&tid, object + walk->file, &file) ||
	    !read_word(&tid, object + walk->table, &table) ||
	    !mw_script_half(read_word, &tid, object + walk->first_line, &code->first_line))
		goto failed;
	code->function = read_text(layout, tid, name);
	code->file = read_text(layout, tid, file);
	if (!code->function || !code->file || code->first_line > INT32_MAX || !read_table(tid, table, code))
		goto failed;
	return code;
failed:
	code_destroy(code);
	return NULL;
}

static struct mw_error *code_of(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref,
				struct python_code **out)
{
	uint64_t key = mw_script_key(ref);

	*out = mw_map_get(&script->codes, key);
	if (*out)
		return NULL;
	/* A program that makes code all the time: what is named has its name. */
	if (script->kept > KEPT_MAX) {
		python_codes_deinit(&script->codes);
		script->codes = (struct mw_map){0};
		script->kept = 0;
		script->forgotten = true;
	}
	*out = read_code(script->layout, tid, ref->code & ~MW_SCRIPT_LAST, ref->check);
	if (!*out)
		return NULL;
	script->kept += sizeof(**out) + (*out)->table_size + 2 * (size_t)TEXT_MAX;
	return mw_map_set(&script->codes, key, *out);
}

bool mw_script_learn(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref, bool *forgotten)
{
	struct python_code *code = NULL;

	if (ref->code & ~MW_SCRIPT_LAST)
		mw_error_destroy(code_of(script, tid, ref, &code));
	*forgotten = script->forgotten;
	script->forgotten = false;
	return code;
}

#define GONE "(Python code that is gone)"

struct mw_error *python_name(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref, uint32_t *number)
{
	struct python_code *code;
	void *known;
	uint32_t line;

	MW_TRY(code_of(script, tid, ref, &code));
	if (!code)
		return mw_named_frames_add(script->named, GONE, NULL, 0, number);
	known = mw_map_get(&code->numbers, ref->at + 1);
	if (known) {
		*number = (uint32_t)(uintptr_t)known;
		return NULL;
	}
	line = python_line(script->layout->lines, code->table, code->table_size, code->first_line, ref->at);
	MW_TRY(mw_named_frames_add(script->named, code->function, code->file, line, number));
	if (code->numbers.count >= NUMBERS_MAX)
		return NULL;
	script->kept += 2 * sizeof(struct mw_map_slot);
	return mw_map_set(&code->numbers, ref->at + 1, (void *)(uintptr_t)*number); // NOLINT(performance-no-int-to-ptr)
}
