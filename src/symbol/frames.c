// SPDX-License-Identifier: MIT
/* frames.c: bounded reading of .eh_frame, .debug_frame and .eh_frame_hdr (frames.h). */
#include "symbol/frames.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "symbol/inflate.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define ENCODING_FORM     0x0f
#define ENCODING_RELATION 0xf0 /* with DW_EH_PE_indirect, which says the same as an unknown one: not to be read */

#define RECORD_LIMIT       (1U << 20) /* no description is that long */
#define AUGMENTATION_LIMIT 16         /* letters */
#define WIDE               UINT32_MAX /* a length of 64 bits follows */

static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & ENCODING_FORM) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

uint64_t mw_frame_take_pointer(struct mw_cursor *cursor, uint8_t encoding)
{
	uint8_t relation = encoding & ENCODING_RELATION;
	uint64_t base = relation == DW_EH_PE_pcrel ? cursor->vaddr : 0, value;
	size_t size = encoded_size(encoding);

	if (!size || (relation != DW_EH_PE_absptr && relation != DW_EH_PE_pcrel))
		cursor->ok = false;
	value = mw_cursor_take(cursor, size);
	switch (encoding & ENCODING_FORM) {
	case DW_EH_PE_sdata4:
		return base + (uint64_t)(int64_t)(int32_t)value;
	case DW_EH_PE_sdata2:
		return base + (uint64_t)(int64_t)(int16_t)value;
	default:
		return base + value;
	}
}

/* The section of that name for reading, of which .debug_frame may be compressed. False where there is none that can be
 * read. */
static bool bytes_init(struct mw_frame_bytes *bytes, const struct mw_elf *elf, const char *name)
{
	struct mw_elf_section section = mw_elf_section(elf, name);
	bool debug = strcmp(name, ".debug_frame") == 0;
	uint8_t *inflated = NULL;
	const uint8_t *at;

	if (!section.present || (!debug && (section.compressed || section.vaddr == 0)) ||
	    section.vaddr > UINT64_MAX - section.size)
		return false;
	at = mw_elf_file_bytes(elf, section.offset, section.size);
	if (at && section.compressed)
		at = inflated = mw_inflate_section(at, section.size, &section.size);
	*bytes = (struct mw_frame_bytes){
		.elf = elf,
		.section = at,
		.inflated = inflated,
		.size = section.size,
		.vaddr = debug ? 0 : section.vaddr,
		.debug = debug,
	};
	return at;
}

/* `size` bytes at `vaddr`, or NULL. */
static const uint8_t *bytes_at(const struct mw_frame_bytes *bytes, uint64_t vaddr, size_t size)
{
	uint64_t into = vaddr - bytes->vaddr;

	if (!bytes->section)
		return mw_elf_span(bytes->elf, vaddr, size);
	return into <= bytes->size && size <= bytes->size - into ? bytes->section + into : NULL;
}

struct record {
	uint64_t vaddr;        /* where it begins */
	struct mw_cursor body; /* what follows the length */
	uint64_t next;         /* where the next record begins */
	bool wide;             /* 64-bit DWARF */
};

/* The record at `vaddr`. False at the end, or where what stands there can't be one; length 0 is no record. */
static bool open_record(const struct mw_frame_bytes *bytes, uint64_t vaddr, struct record *record)
{
	const uint8_t *at = bytes_at(bytes, vaddr, sizeof(uint32_t));
	uint64_t length = 0;
	size_t head = sizeof(uint32_t);

	if (!at)
		return false;
	memcpy(&length, at, sizeof(uint32_t));
	record->vaddr = vaddr;
	record->wide = length == WIDE;
	if (record->wide) {
		at = bytes_at(bytes, vaddr + head, sizeof(length));
		head += sizeof(length);
		if (!at)
			return false;
		memcpy(&length, at, sizeof(length));
	}
	if (length == 0 || length > RECORD_LIMIT)
		return false;
	at = bytes_at(bytes, vaddr + head, (size_t)length);
	record->body = (struct mw_cursor){at, (size_t)length, vaddr + head, true};
	record->next = vaddr + head + length;
	return at;
}

/* The record at *vaddr, which goes on to the next; in a section, marks of an end with records behind them are passed. */
static bool next_record(const struct mw_frame_bytes *bytes, uint64_t *vaddr, struct record *record)
{
	while (!open_record(bytes, *vaddr, record)) {
		static const uint8_t end_mark[4];
		const uint8_t *at = bytes->section ? bytes_at(bytes, *vaddr, sizeof(end_mark)) : NULL;

		if (!at || memcmp(at, end_mark, sizeof(end_mark)) != 0)
			return false;
		*vaddr += sizeof(end_mark);
	}
	*vaddr = record->next;
	return true;
}

/* The letters of a CIE's augmentation, its data begun where 'z' says that there are some. */
static bool read_augmentation(struct mw_frame_cie *cie, const char *letters, struct mw_cursor *body)
{
	size_t size = mw_cursor_uleb(body);
	struct mw_cursor data = *body;
	uint8_t encoding;

	mw_cursor_skip(body, size);
	if (!body->ok)
		return false;
	data.left = size;
	for (; *letters && !cie->strange; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)mw_cursor_take(&data, 1);
			break;
		case 'P': /* a personality routine */
			encoding = (uint8_t)mw_cursor_take(&data, 1);
			if (!encoded_size(encoding) ||
			    (encoding & ENCODING_RELATION & ~DW_EH_PE_indirect) == DW_EH_PE_aligned)
				return false;
			mw_cursor_skip(&data, encoded_size(encoding));
			break;
		case 'L': /* encoding of what the routine is given */
			mw_cursor_skip(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* no data */
			break;
		default:
			cie->strange = true; /* nor is known what the letters behind it stand for */
			break;
		}
	}
	return data.ok;
}

/* .debug_frame's version 4 says how large addresses and segments are. */
static bool read_sizes(const struct mw_frame_bytes *bytes, uint8_t version, struct mw_cursor *body)
{
	uint64_t address, segment;

	if (!bytes->debug || version < 4)
		return true;
	address = mw_cursor_take(body, 1);
	segment = mw_cursor_take(body, 1);
	return address == sizeof(uint64_t) && segment == 0;
}

/* What a record begins with: in a CIE `*none`, in a description where its CIE is. */
static uint64_t take_id(const struct mw_frame_bytes *bytes, bool wide, struct mw_cursor *body, uint64_t *none)
{
	*none = !bytes->debug ? 0 : wide ? UINT64_MAX : UINT32_MAX;
	return mw_cursor_take(body, wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

static bool read_cie(const struct mw_frame_bytes *bytes, uint64_t vaddr, struct mw_frame_cie *cie)
{
	struct record record;
	struct mw_cursor *body = &record.body;
	const char *letters;
	uint64_t id, none;
	uint8_t version;

	*cie = (struct mw_frame_cie){.vaddr = vaddr, .encoding = DW_EH_PE_absptr};
	if (!open_record(bytes, vaddr, &record) || (record.wide && !bytes->debug))
		return false;
	id = take_id(bytes, record.wide, body, &none);
	version = (uint8_t)mw_cursor_take(body, 1);
	letters = (const char *)body->at;
	if (id != none || !memchr(letters, 0, body->left < AUGMENTATION_LIMIT ? body->left : AUGMENTATION_LIMIT))
		return false;
	mw_cursor_skip(body, strlen(letters) + 1);
	cie->augmented = *letters == 'z';
	if ((*letters && !cie->augmented) || !read_sizes(bytes, version, body))
		return false; /* what such letters stand for has no known size */
	cie->code_align = mw_cursor_uleb(body);
	cie->data_align = mw_cursor_sleb(body);
	cie->return_register = version == 1 ? mw_cursor_take(body, 1) : mw_cursor_uleb(body);
	if (cie->augmented && !read_augmentation(cie, letters + 1, body))
		return false;
	cie->program = *body;
	return body->ok;
}

/* False where the record is no description (a CIE), or is invalid. */
static bool describe(const struct mw_frame_bytes *bytes, const struct record *record, struct mw_frame_cie *cie,
		     struct mw_frame_description *description)
{
	struct mw_cursor body = record->body;
	uint64_t at = body.vaddr, back, none;

	if (record->wide && !bytes->debug)
		return false;
	back = take_id(bytes, record->wide, &body, &none);
	if (!body.ok || back == none || (!bytes->debug && back > at))
		return false;
	at = bytes->debug ? back : at - back;
	if (!cie->valid || cie->vaddr != at)
		cie->valid = read_cie(bytes, at, cie);
	if (!cie->valid)
		return false;
	description->start = mw_frame_take_pointer(&body, cie->encoding);
	/* How long it is stands there as a number of the same form. */
	description->length = mw_frame_take_pointer(&body, cie->encoding & ENCODING_FORM);
	if (cie->augmented)
		mw_cursor_skip(&body, mw_cursor_uleb(&body));
	description->program = body;
	return body.ok;
}

bool mw_frame_describe(const struct mw_frame_bytes *bytes, uint64_t vaddr, struct mw_frame_cie *cie,
		       struct mw_frame_description *description)
{
	struct record record;

	return open_record(bytes, vaddr, &record) && describe(bytes, &record, cie, description);
}

/* --- the search table ------------------------------------------------------------------------------------ */

#define SHORTEST_RECORD 12 /* length, CIE pointer and a word */

/* .eh_frame_hdr; the table is in the form that every linker gives it, or not used. */
static bool from_header(struct mw_frame_table *table)
{
	uint8_t bytes[4 + 2 * sizeof(uint64_t)] = {0}, frame_encoding, count_encoding, table_encoding;
	struct mw_cursor cursor = {.at = bytes, .ok = true};
	uint64_t size = table->elf->eh_frame_hdr_size, count, entries;

	if (!size)
		return false;
	cursor.vaddr = table->base = table->elf->eh_frame_hdr;
	cursor.left = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	while (cursor.left && !mw_elf_read(table->elf, cursor.vaddr, bytes, cursor.left))
		cursor.left--; /* nothing follows the section */
	if (mw_cursor_take(&cursor, 1) != 1)
		return false;
	frame_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	count_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	table_encoding = (uint8_t)mw_cursor_take(&cursor, 1);
	if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || count_encoding == DW_EH_PE_omit ||
	    !encoded_size(count_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit && !encoded_size(frame_encoding))
		return false;
	if (frame_encoding != DW_EH_PE_omit)
		mw_cursor_skip(&cursor, encoded_size(frame_encoding));
	count = mw_cursor_take(&cursor, encoded_size(count_encoding));
	entries = size - (cursor.vaddr - table->base);
	if (!cursor.ok || count > entries / sizeof(struct mw_frame_entry))
		return false;
	table->vaddr = cursor.vaddr;
	table->count = (size_t)count;
	return count > 0;
}

static int by_code(const void *a, const void *b)
{
	const struct mw_frame_entry *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static void make_entries(struct mw_frame_table *table)
{
	struct mw_frame_cie cie = {0};
	struct record record;

	for (uint64_t vaddr = table->base; open_record(&table->bytes, vaddr, &record); vaddr = record.next) {
		int64_t into = (int64_t)(vaddr - table->base), code;
		struct mw_frame_description description;

		if (!describe(&table->bytes, &record, &cie, &description))
			continue;
		code = (int64_t)(description.start - table->base);
		if (code == (int32_t)code && into == (int32_t)into)
			table->made[table->count++] = (struct mw_frame_entry){(int32_t)code, (int32_t)into};
	}
	qsort(table->made, table->count, sizeof(*table->made), by_code);
}

static struct mw_error *from_section(struct mw_frame_table *table)
{
	if (!bytes_init(&table->bytes, table->elf, ".eh_frame"))
		return NULL;
	table->base = table->bytes.vaddr;
	table->made = calloc(table->bytes.size / SHORTEST_RECORD + 1, sizeof(*table->made));
	if (!table->made)
		return mw_error_nomem();
	make_entries(table);
	return NULL;
}

struct mw_error *mw_frame_table_init(struct mw_frame_table *table, const struct mw_elf *elf)
{
	struct mw_frame_table found = {.elf = elf, .bytes.elf = elf};

	if (!from_header(&found))
		MW_TRY(from_section(&found));
	*table = found;
	return NULL;
}

void mw_frame_table_deinit(struct mw_frame_table *table)
{
	free(table->made);
	*table = (struct mw_frame_table){0};
}

bool mw_frame_table_entry(const struct mw_frame_table *table, size_t index, struct mw_frame_entry *entry)
{
	if (!table->made)
		return mw_elf_read(table->elf, table->vaddr + index * sizeof(*entry), entry, sizeof(*entry));
	*entry = table->made[index];
	return true;
}

bool mw_frame_table_find(const struct mw_frame_table *table, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	size_t low = 0, high = table->count;
	struct mw_frame_entry entry;
	struct mw_frame_description description;
	struct mw_frame_cie cie = {0};
	uint64_t begin;

	while (low < high) { /* the first entry that begins behind vaddr */
		size_t middle = low + (high - low) / 2;

		if (!mw_frame_table_entry(table, middle, &entry))
			return false;
		if (table->base + (uint64_t)(int64_t)entry.code <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !mw_frame_table_entry(table, low - 1, &entry))
		return false;
	begin = table->base + (uint64_t)(int64_t)entry.code;
	/* What the description says of its beginning is not asked: in a library it may be relocated only when loaded.
	 */
	if (!mw_frame_describe(&table->bytes, table->base + (uint64_t)(int64_t)entry.description, &cie, &description) ||
	    vaddr - begin >= description.length || description.length > UINT64_MAX - begin)
		return false;
	*start = begin;
	*end = begin + description.length;
	return true;
}

/* --- what code a file describes -------------------------------------------------------------------------- */

struct bounds {
	uint64_t low, high;
};

/* Of all executable segments. */
static struct bounds code_bounds(const struct mw_elf *elf)
{
	struct bounds bounds = {.low = UINT64_MAX};

	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (!segment->exec || segment->memory_size > UINT64_MAX - segment->vaddr)
			continue;
		if (segment->vaddr < bounds.low)
			bounds.low = segment->vaddr;
		if (segment->vaddr + segment->memory_size > bounds.high)
			bounds.high = segment->vaddr + segment->memory_size;
	}
	return bounds;
}

static struct mw_error *add_described(struct mw_described_list *list, uint64_t start, uint64_t length, uint64_t record)
{
	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count++] = (struct mw_described){start, start + length, record};
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct mw_described *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->record > y->record) - (x->record < y->record);
}

/* Linkers leave most sections sorted, and nothing to do. */
static void sort_described(struct mw_described_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		if (by_start(&list->items[i - 1], &list->items[i]) > 0) {
			qsort(list->items, list->count, sizeof(*list->items), by_start);
			return;
		}
	}
}

/* List the records that begin from `first` to `last`. */
static struct mw_error *list_records(struct mw_described_list *list, uint64_t first, uint64_t last)
{
	const struct mw_elf *elf = list->bytes.elf;
	struct bounds code = code_bounds(elf);
	struct mw_frame_cie cie = {0};
	struct record record;

	while (first <= last && next_record(&list->bytes, &first, &record)) {
		struct mw_frame_description description;

		if (!describe(&list->bytes, &record, &cie, &description))
			continue;
		/* Of what can be loaded anywhere, an address that isn't relative is known only when it is loaded. */
		if (!list->bytes.debug && !(cie.encoding & DW_EH_PE_pcrel) && !elf->is_executable)
			continue;
		/* 0 is left where the code that was described was thrown away. */
		if (description.start == 0 || description.start < code.low || description.start >= code.high)
			continue;
		if (description.length && description.length <= code.high - description.start)
			MW_TRY(add_described(list, description.start, description.length, record.vaddr));
	}
	sort_described(list);
	return NULL;
}

/* A file without section headers: from the first that its search table names to the last. */
static struct mw_error *list_by_table(struct mw_described_list *list, const struct mw_elf *elf)
{
	struct mw_frame_table table = {0};
	struct mw_frame_entry entry;
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint64_t base;

	MW_TRY(mw_frame_table_init(&table, elf));
	for (size_t i = 0; i < table.count && mw_frame_table_entry(&table, i, &entry); i++) {
		first = entry.description < first ? entry.description : first;
		last = entry.description > last ? entry.description : last;
	}
	base = table.base;
	list->bytes = table.bytes;
	mw_frame_table_deinit(&table);
	if (first > last)
		return NULL;
	return list_records(list, base + (uint64_t)first, base + (uint64_t)last);
}

struct mw_error *mw_described_init(struct mw_described_code *code, const struct mw_elf *elf, bool debug_only)
{
	struct mw_described_list *eh = &code->eh, *debug = &code->debug;

	*code = (struct mw_described_code){0};
	if (!debug_only && bytes_init(&eh->bytes, elf, ".eh_frame"))
		MW_TRY(list_records(eh, eh->bytes.vaddr, UINT64_MAX));
	else if (!debug_only)
		MW_TRY(list_by_table(eh, elf));
	/* Go's runtime changes stacks in the middle of functions, of which its descriptions say nothing. */
	if (mw_elf_is_go(elf) || !bytes_init(&debug->bytes, elf, ".debug_frame"))
		return NULL;
	return list_records(debug, 0, UINT64_MAX);
}

void mw_described_deinit(struct mw_described_code *code)
{
	free(code->eh.items);
	free(code->eh.bytes.inflated);
	free(code->debug.items);
	free(code->debug.bytes.inflated);
	*code = (struct mw_described_code){0};
}

/* --- V8's embedded blob --------------------------------------------------------------------------------- */

/*
 * v8_Default_embedded_blob_code_ (up to V8 10 that is a pointer to v8_Default_embedded_blob_code_data_) and, a word of 32
 * bits, v8_Default_embedded_blob_code_size_: the second word of the names is the variant that was built. They are local;
 * a stripped library still exports the function that tells where the code is.
 */
#define PREFIX   "v8_"
#define CODE     "_embedded_blob_code_"
#define OLD_CODE "_embedded_blob_code_data_"
#define SIZE     "_embedded_blob_code_size_"
#define EXPORTED "_ZN2v88internal23DefaultEmbeddedBlobCodeEv"

#define COLLECTOR "PushAllRegistersAndIterateStack"

#define SMALLEST_BLOB (UINT64_C(512) << 10) /* that is taken for one */

struct blob {
	uint64_t code, old_code, size, collector; /* vaddr of each; 0: not seen */
	bool exported;
};

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t wanted = strlen(end);

	return length > wanted && strcmp(name + length - wanted, end) == 0;
}

static bool see_blob(void *context, const struct mw_elf_symbol *symbol)
{
	struct blob *blob = context;
	size_t length;

	if (strcmp(symbol->name, EXPORTED) == 0)
		blob->exported = true;
	if (strcmp(symbol->name, COLLECTOR) == 0)
		blob->collector = symbol->vaddr;
	if (strncmp(symbol->name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return true;
	length = strlen(symbol->name);
	if (ends_with(symbol->name, length, CODE))
		blob->code = symbol->vaddr;
	else if (ends_with(symbol->name, length, OLD_CODE))
		blob->old_code = symbol->vaddr;
	else if (ends_with(symbol->name, length, SIZE))
		blob->size = symbol->vaddr;
	return true;
}

/* The end of the executable segment that holds `vaddr`; 0: none does. */
static uint64_t segment_end(const struct mw_elf *elf, uint64_t vaddr)
{
	MW_EACH(segment, elf->segments, elf->segment_count) {
		if (segment->exec && vaddr - segment->vaddr < segment->memory_size)
			return segment->vaddr + segment->memory_size;
	}
	return 0;
}

static void see_gap(const struct mw_elf *elf, uint64_t start, uint64_t end, struct mw_generated_code *largest)
{
	if (start < end && end - start > largest->end - largest->start && end <= segment_end(elf, start))
		*largest = (struct mw_generated_code){.start = start, .end = end};
}

/* The blob is by far the largest piece of code between two functions that are described. */
static struct mw_error *find_gap(const struct mw_elf *elf, struct mw_generated_code *out)
{
	MW_CLEANUP(mw_described_deinit) struct mw_described_code code;
	struct mw_generated_code largest = {.end = SMALLEST_BLOB};
	uint64_t end = UINT64_MAX;

	MW_TRY(mw_described_init(&code, elf, false));
	MW_EACH(item, code.eh.items, code.eh.count) {
		see_gap(elf, end, item->start, &largest);
		if (end == UINT64_MAX || item->end > end)
			end = item->end;
	}
	if (largest.start)
		*out = largest;
	return NULL;
}

static struct mw_error *find_generated(struct mw_elf *elf, struct mw_generated_code *out)
{
	struct blob blob = {.code = 0};
	uint64_t end;
	uint32_t size;

	MW_TRY(mw_elf_each_symbol(elf, see_blob, &blob));
	if (blob.old_code)
		blob.code = blob.old_code;
	end = segment_end(elf, blob.code);
	if (blob.code && blob.size && mw_elf_read(elf, blob.size, &size, sizeof(size)) && end > blob.code &&
	    size <= end - blob.code)
		*out = (struct mw_generated_code){blob.code, blob.code + size, blob.collector};
	else if (blob.exported)
		return find_gap(elf, out);
	return NULL;
}

static struct mw_error *make_generated(struct mw_elf *elf, const void *context, void **out)
{
	struct mw_generated_code *code = calloc(1, sizeof(*code));
	struct mw_error *err = code ? find_generated(elf, code) : mw_error_nomem();

	(void)context;
	if (err)
		free(code);
	else
		*out = code;
	return err;
}

struct mw_error *mw_generated_code_find(struct mw_elf *elf, struct mw_generated_code *out)
{
	static const struct mw_elf_fact_kind kind = {make_generated, free};
	static const uint64_t key[2]; /* there is one for a file */
	const void *code = NULL;

	MW_TRY(mw_elf_fact(elf, &kind, key, NULL, &code));
	*out = *(const struct mw_generated_code *)code;
	return NULL;
}
