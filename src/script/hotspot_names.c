// SPDX-License-Identifier: MIT
/* hotspot_names.c: what Java methods, and other code of HotSpot's, are called (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#include "base/hash.h"
#include "proc/peek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX    1024u        /* characters of a name that are kept */
#define LINES_MAX   (512u << 10) /* bytes of a table of lines */
#define INLINED_MAX 128          /* frames at one address */
#define ANSWERS_MAX 65536u       /* that are kept */
#define WORD        8u

#define GONE "(Java code that is gone)"

/* It may be there the next time. */
static struct mw_error *name_gone(struct mw_hotspot *hotspot, uint32_t *number)
{
	hotspot->unnamed = true;
	return mw_named_frames_add(hotspot->named, GONE, NULL, 0, number);
}

/* --- methods ------------------------------------------------------------------------------------------------------ */

/* A method: its ConstMethod, of which the first bytes. */
struct method {
	mw_addr start;
	uint8_t bytes[128];
	size_t have;
};

static int64_t of_method(const struct mw_hotspot *hotspot, const struct method *method, enum hotspot_field_id id)
{
	return hotspot_number(&hotspot->layout, method->bytes, method->have, id);
}

static bool read_method(const struct mw_hotspot *hotspot, pid_t tid, mw_addr addr, struct method *out)
{
	if (addr % WORD || !hotspot_address(&hotspot->layout, tid, addr, HOTSPOT_METHOD_CONST, &out->start) ||
	    out->start % WORD)
		return false;
	out->have = mw_peek_some(tid, out->start, out->bytes, sizeof(out->bytes));
	return out->have;
}

/* A Symbol's text; false where it has none, or such as no name has. */
static bool read_symbol(const struct mw_hotspot *hotspot, pid_t tid, mw_addr symbol, char out[TEXT_MAX])
{
	const struct hotspot_layout *layout = &hotspot->layout;
	uint8_t head[64];
	size_t have = symbol % WORD ? 0 : mw_peek_some(tid, symbol, head, sizeof(head));
	uint64_t length = (uint64_t)hotspot_number(layout, head, have, HOTSPOT_SYMBOL_LENGTH) & UINT16_MAX;

	if (length >= TEXT_MAX)
		length = TEXT_MAX - 1;
	if (!length || !mw_peek(tid, symbol + layout->fields[HOTSPOT_SYMBOL_BODY].offset, out, length))
		return false;
	out[length] = '\0';
	for (uint64_t i = 0; i < length; i++)
		if ((unsigned char)out[i] < ' ')
			return false;
	return true;
}

/* A name in a constant pool. */
static bool read_entry(const struct mw_hotspot *hotspot, pid_t tid, mw_addr pool, int64_t index, char out[TEXT_MAX])
{
	const struct hotspot_layout *layout = &hotspot->layout;
	int32_t length;
	mw_addr symbol;

	return mw_peek(tid, pool + layout->fields[HOTSPOT_POOL_LENGTH].offset, &length, sizeof(length)) && index > 0 &&
	       index < length &&
	       mw_peek(tid, pool + layout->sizes[HOTSPOT_POOL_TYPE] + WORD * (uint64_t)index, &symbol, WORD) &&
	       read_symbol(hotspot, tid, symbol, out);
}

/* "java/util/Timer" with dots; without what HotSpot adds to the name of a hidden class, as a lambda's "+0x00007f…": it is
 * another one in each process. */
static void put_dots(char *name)
{
	char *address = strstr(name, "+0x");

	if (address)
		*address = '\0';
	for (; *name; name++)
		if (*name == '/')
			*name = '.';
}

static uint32_t line_of(const struct mw_hotspot *hotspot, pid_t tid, const struct method *method, uint32_t bci)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	uint64_t begin =
		layout->sizes[HOTSPOT_CONST_TYPE] + (uint64_t)of_method(hotspot, method, HOTSPOT_CONST_CODE_SIZE);
	uint64_t end = (uint64_t)of_method(hotspot, method, HOTSPOT_CONST_SIZE) * WORD;
	struct hotspot_packed table = {.base = hotspot_packed_base(layout)};
	uint32_t line;
	uint8_t *bytes;

	if (bci == HOTSPOT_NO_BCI || !(of_method(hotspot, method, HOTSPOT_CONST_FLAGS) & layout->has_lines) ||
	    end <= begin)
		return 0;
	if (end - begin > LINES_MAX)
		end = begin + LINES_MAX;
	bytes = malloc(end - begin);
	if (!bytes)
		return 0;
	table.at = bytes;
	table.end = bytes + mw_peek_some(tid, method->start + begin, bytes, end - begin);
	line = hotspot_line(table, bci);
	free(bytes);
	return line <= UINT16_MAX ? line : 0;
}

/* A method's class: its Klass, and what it is called. */
struct class_name {
	mw_addr klass;
	bool unloaded; /* it is no more, though nothing else stands in its place yet */
	char text[TEXT_MAX];
};

static bool read_class_name(const struct mw_hotspot *hotspot, pid_t tid, const struct method *method,
			    struct class_name *out)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	const struct hotspot_field *references = &layout->fields[HOTSPOT_SYMBOL_REFERENCES];
	mw_addr pool = (mw_addr)of_method(hotspot, method, HOTSPOT_CONST_CONSTANTS), symbol;
	uint16_t count;

	if (!hotspot_address(layout, tid, pool, HOTSPOT_POOL_HOLDER, &out->klass) ||
	    !hotspot_address(layout, tid, out->klass, HOTSPOT_KLASS_NAME, &symbol) ||
	    !read_symbol(hotspot, tid, symbol, out->text))
		return false;
	out->unloaded = references->there && mw_peek(tid, symbol + references->offset, &count, sizeof(count)) && !count;
	return true;
}

/* What is another where the address has another method: one class may stand where another of its shape has been. */
static uint64_t check_of(const struct mw_hotspot *hotspot, const struct method *method, const struct class_name *name)
{
	static const enum hotspot_field_id ids[] = {HOTSPOT_CONST_CONSTANTS, HOTSPOT_CONST_SIZE,
						    HOTSPOT_CONST_CODE_SIZE, HOTSPOT_CONST_NAME, HOTSPOT_CONST_NUMBER};
	uint64_t hash = mw_hash_add(method->start, name->klass);

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		hash = mw_hash_add(hash, (uint64_t)of_method(hotspot, method, ids[i]));
	for (const char *at = name->text; *at; at++)
		hash = mw_hash_add(hash, (unsigned char)*at);
	return mw_hash_mix(hash);
}

#define LOADER_HEAD (2 * WORD) /* of a ClassLoaderData: does not change before it is freed, and then does */

/* Classes go with their loader, and not before. */
static void watch_class(struct mw_hotspot *hotspot, pid_t tid, mw_addr klass)
{
	mw_addr loader;

	if (hotspot->layout.fields[HOTSPOT_KLASS_LOADER].there &&
	    hotspot_address(&hotspot->layout, tid, klass, HOTSPOT_KLASS_LOADER, &loader))
		hotspot_watch(hotspot, tid, loader, LOADER_HEAD);
	hotspot_watch(hotspot, tid, klass + hotspot->layout.fields[HOTSPOT_KLASS_NAME].offset, WORD);
}

static void watch_code(struct mw_hotspot *hotspot, pid_t tid, const struct hotspot_blob *blob)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	uint32_t head = layout->sizes[HOTSPOT_BLOCK_TYPE];

	hotspot_watch(hotspot, tid, blob->start - head + layout->fields[HOTSPOT_BLOCK_USED].offset, 1);
	hotspot_watch(hotspot, tid, blob->start + layout->fields[HOTSPOT_NMETHOD_COMPILE_ID].offset, sizeof(int32_t));
}

/* "java.util.Timer.run" */
static bool read_name(const struct mw_hotspot *hotspot, pid_t tid, const struct method *method, mw_addr pool,
		      char out[2 * TEXT_MAX])
{
	char name[TEXT_MAX];
	struct class_name class;

	if (!read_class_name(hotspot, tid, method, &class) ||
	    !read_entry(hotspot, tid, pool, of_method(hotspot, method, HOTSPOT_CONST_NAME), name))
		return false;
	memcpy(out, class.text, sizeof(class.text));
	put_dots(out);
	(void)snprintf(out + strlen(out), TEXT_MAX + 1, ".%s", name);
	return true;
}

static struct mw_error *name_method(struct mw_hotspot *hotspot, pid_t tid, const struct method *method, uint32_t bci,
				    uint32_t *number)
{
	mw_addr pool = (mw_addr)of_method(hotspot, method, HOTSPOT_CONST_CONSTANTS);
	char name[2 * TEXT_MAX], file[TEXT_MAX];
	uint16_t source = 0;
	bool has_file;

	if (!read_name(hotspot, tid, method, pool, name))
		return name_gone(hotspot, number);
	if (hotspot->layout.fields[HOTSPOT_POOL_SOURCE].there)
		(void)mw_peek(tid, pool + hotspot->layout.fields[HOTSPOT_POOL_SOURCE].offset, &source, sizeof(source));
	has_file = read_entry(hotspot, tid, pool, source, file);
	return mw_named_frames_add(hotspot->named, name, has_file ? file : NULL, line_of(hotspot, tid, method, bci),
				   number);
}

/* --- what was answered -------------------------------------------------------------------------------------------- */

/* An address has another method, or another blob, when what was there is gone: then the check is another. */
struct hotspot_answer {
	mw_addr asked[2];
	uint64_t check;
	unsigned count;
	uint32_t numbers[];
};

void hotspot_answers_deinit(struct mw_map *answers)
{
	void *answer;

	for (size_t i = 0; mw_map_next(answers, &i, &answer);)
		free(answer);
	mw_map_deinit(answers);
}

static uint64_t key_of(const mw_addr asked[2])
{
	return mw_hash_add(mw_hash_mix(asked[0]), asked[1]);
}

static const struct hotspot_answer *known(const struct mw_hotspot *hotspot, const mw_addr asked[2], uint64_t check)
{
	const struct hotspot_answer *answer = mw_map_get(&hotspot->answers, key_of(asked));

	return answer && answer->asked[0] == asked[0] && answer->asked[1] == asked[1] && answer->check == check ? answer
														: NULL;
}

static struct mw_error *keep(struct mw_hotspot *hotspot, const mw_addr asked[2], uint64_t check,
			     const uint32_t *numbers, unsigned count)
{
	struct hotspot_answer *answer = malloc(sizeof(*answer) + count * sizeof(*numbers));
	struct mw_error *err;

	if (!answer)
		return mw_error_nomem();
	*answer = (struct hotspot_answer){.asked = {asked[0], asked[1]}, .check = check, .count = count};
	memcpy(answer->numbers, numbers, count * sizeof(*numbers));
	if (hotspot->answers.count >= ANSWERS_MAX) {
		hotspot_answers_deinit(&hotspot->answers);
		hotspot->answers = (struct mw_map){0};
	}
	free(mw_map_remove(&hotspot->answers, key_of(asked)));
	err = mw_map_set(&hotspot->answers, key_of(asked), answer);
	if (err)
		free(answer);
	return err;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

static struct mw_error *name_scopes(struct mw_hotspot *hotspot, pid_t tid, const struct hotspot_blob *blob, mw_addr pc,
				    uint32_t numbers[INLINED_MAX], unsigned *count)
{
	struct hotspot_scope scopes[INLINED_MAX];

	*count = hotspot_scopes(hotspot, tid, blob, pc, scopes, INLINED_MAX);
	for (unsigned i = 0; i < *count; i++) {
		struct method method;

		if (read_method(hotspot, tid, scopes[i].method, &method))
			MW_TRY(name_method(hotspot, tid, &method, scopes[i].bci, &numbers[i]));
		else
			MW_TRY(name_gone(hotspot, &numbers[i]));
	}
	return NULL;
}

struct mw_error *mw_hotspot_name_compiled(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, uint32_t *numbers,
					  unsigned capacity, unsigned *count)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	const mw_addr asked[2] = {pc, 0};
	uint32_t made[INLINED_MAX];
	const uint32_t *found = made;
	const struct hotspot_answer *answer;
	struct hotspot_blob blob;
	uint64_t check;

	*count = 0;
	if (!hotspot_find_blob(hotspot, tid, pc, &blob) || blob.code.kind != MW_HOTSPOT_COMPILED)
		return NULL;
	watch_code(hotspot, tid, &blob);
	check = mw_hash_add(blob.start,
			    (uint64_t)hotspot_number(layout, blob.bytes, blob.have, HOTSPOT_NMETHOD_METHOD));
	check = mw_hash_add(check, (uint64_t)hotspot_number(layout, blob.bytes, blob.have, HOTSPOT_NMETHOD_COMPILE_ID));
	answer = known(hotspot, asked, check);
	if (answer) {
		found = answer->numbers;
		*count = answer->count;
	} else {
		MW_TRY(name_scopes(hotspot, tid, &blob, pc, made, count));
		MW_TRY(keep(hotspot, asked, check, made, *count));
	}
	if (*count > capacity)
		*count = capacity;
	memcpy(numbers, found, *count * sizeof(*numbers));
	return NULL;
}

struct mw_error *mw_hotspot_name_interpreted(struct mw_hotspot *hotspot, pid_t tid, mw_addr method, mw_addr bcp,
					     uint32_t *number)
{
	const mw_addr asked[2] = {method, bcp};
	const struct hotspot_answer *answer;
	struct method read;
	struct class_name name;
	uint64_t check, bci;

	if (!read_method(hotspot, tid, method, &read) || !read_class_name(hotspot, tid, &read, &name))
		return name_gone(hotspot, number);
	watch_class(hotspot, tid, name.klass);
	hotspot->unnamed |= name.unloaded;
	check = check_of(hotspot, &read, &name);
	answer = known(hotspot, asked, check);
	if (answer) {
		*number = answer->numbers[0];
		return NULL;
	}
	bci = bcp - read.start - hotspot->layout.sizes[HOTSPOT_CONST_TYPE];
	if (bci >= (uint64_t)of_method(hotspot, &read, HOTSPOT_CONST_CODE_SIZE))
		bci = HOTSPOT_NO_BCI;
	MW_TRY(name_method(hotspot, tid, &read, (uint32_t)bci, number));
	return keep(hotspot, asked, check, number, 1);
}

struct mw_error *mw_hotspot_name_stub(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, uint32_t *number)
{
	struct hotspot_blob blob;
	char name[sizeof(blob.name) + 1] = "~StubRoutines::call_stub";

	*number = 0;
	if (!hotspot_find_blob(hotspot, tid, pc, &blob))
		return NULL;
	if (blob.code.kind != MW_HOTSPOT_ENTRY)
		(void)snprintf(name, sizeof(name), "~%s", *blob.name ? blob.name : "CodeBlob");
	for (char *at = name; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = '?';
	return mw_named_frames_add(hotspot->named, name, NULL, 0, number);
}
