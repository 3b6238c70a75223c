// SPDX-License-Identifier: MIT
/* v8.c: which V8 a process has (v8.h). */
#include "script/v8_parts.h"

#include "proc/peek.h"
#include "symbol/frames.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes from a Code object to its instructions, where it holds them. */
#define INSTRUCTIONS 128

static const struct v8_version versions[] = {
	{.major = 10,
	 .minor = 2,
	 .positions = 32,
	 .scopes = {1, 2},
	 .code = {.deoptimization = 16, .positions = 24, .size = 40, .inside = INSTRUCTIONS, .flags = 48, .maglev = 12},
	 .deoptimization = {.literals = 2, .function = 6, .inlined = 7}},
	{.major = 11,
	 .minor = 3,
	 .positions = 32,
	 .scopes = {1, 2},
	 .code = {.deoptimization = 16,
		  .positions = 24,
		  .stream = 32,
		  .start = 40,
		  .size = 56,
		  .flags = 48,
		  .maglev = 12},
	 .deoptimization = {.literals = 2, .function = 6, .inlined = 7}},
	{.major = 12,
	 .minor = 4,
	 .positions = 24,
	 .scopes = {1, 2},
	 .code = {.deoptimization = 8,
		  .positions = 16,
		  .stream = 32,
		  .start = 40,
		  .size = 52,
		  .flags = 48,
		  .maglev = 11},
	 .deoptimization = {.literals = 2, .function = 6, .inlined = 7}},
	{.major = 13,
	 .minor = 6,
	 .positions = 24,
	 .scopes = {3, 4},
	 .raw_flags = true,
	 .code = {.deoptimization = 8,
		  .positions = 16,
		  .stream = 32,
		  .start = 40,
		  .size = 56,
		  .flags = 52,
		  .maglev = 11},
	 .deoptimization = {.literals = 3,
			    .function = 7,
			    .is_wrapped = true,
			    .inlined = 8,
			    .translation = 0,
			    .bytecodes = 2,
			    .entries = 12}},
};

/* The beginnings of their names: what follows is the field's type, which is called otherwise in each version. */
static const char *const constants[V8_CONSTANTS] = {
	[V8_SMI_SHIFT] = "SmiShiftSize",
	[V8_FRAME_FUNCTION] = "off_fp_function",
	[V8_FRAME_CONTEXT] = "off_fp_context_or_frame_type",
	[V8_FRAME_BYTECODE] = "off_fp_bytecode_array",
	[V8_FRAME_OFFSET] = "off_fp_bytecode_offset",
	[V8_FUNCTION_SHARED] = "class_JSFunction__shared__",
	[V8_SHARED_NAME] = "class_SharedFunctionInfo__name_or_scope_info__",
	[V8_SHARED_SCRIPT] = "class_SharedFunctionInfo__script_",
	[V8_SCRIPT_SOURCE] = "class_Script__source__",
	[V8_SCRIPT_NAME] = "class_Script__name__",
	[V8_MAP_TYPE] = "class_Map__instance_type__",
	[V8_STRING_LENGTH] = "class_String__length__",
	[V8_ONE_BYTE_CHARS] = "class_SeqOneByteString__chars__",
	[V8_TWO_BYTE_CHARS] = "class_SeqTwoByteString__chars__",
	[V8_CONS_FIRST] = "class_ConsString__first__",
	[V8_CONS_SECOND] = "class_ConsString__second__",
	[V8_SLICED_PARENT] = "class_SlicedString__parent__",
	[V8_SLICED_OFFSET] = "class_SlicedString__offset__",
	[V8_THIN_ACTUAL] = "class_ThinString__actual__",
	[V8_EXTERNAL_RESOURCE] = "class_ExternalString__resource__",
	[V8_ARRAY_LENGTH] = "class_FixedArrayBase__length__",
	[V8_ARRAY_DATA] = "class_FixedArray__data__",
	[V8_BYTECODE_DATA] = "class_BytecodeArray__data__",
	[V8_SCOPE_LOCALS] = "scopeinfo_idx_ncontextlocals",
	[V8_SCOPE_FIRST] = "scopeinfo_idx_first_vars",
	[V8_TYPE_SHARED] = "type_SharedFunctionInfo__",
	[V8_TYPE_SCOPE] = "type_ScopeInfo__",
	[V8_TYPE_SCRIPT] = "type_Script__",
	[V8_TYPE_BYTECODE] = "type_BytecodeArray__",
	[V8_TYPE_BYTES] = "type_ByteArray__",
	[V8_TYPE_CODE] = "type_Code__",
	[V8_TYPE_ARRAY] = "type_FixedArray__",
	[V8_TYPE_TRUSTED_BYTES] = "type_TrustedByteArray__",
	[V8_TYPE_TRUSTED_ARRAY] = "type_TrustedFixedArray__",
	[V8_TYPE_PROTECTED_ARRAY] = "type_ProtectedFixedArray__",
	[V8_TYPE_STREAM] = "type_InstructionStream__",
};

#define PREFIX    "v8dbg_"
#define MAJOR     "_ZN2v88internal7Version6major_E"
#define MINOR     "_ZN2v88internal7Version6minor_E"
#define SIZES     "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE"
#define FIELD_MAX 256 /* offset of a field */

/* Where a file has its constants. */
struct file {
	uint64_t major, minor, sizes, constants[V8_CONSTANTS]; /* vaddr; 0: it has none */
	uint64_t sizes_length;
};

static bool see_symbol(void *context, const struct mw_elf_symbol *symbol)
{
	struct file *file = context;

	if (strcmp(symbol->name, MAJOR) == 0)
		file->major = symbol->vaddr;
	else if (strcmp(symbol->name, MINOR) == 0)
		file->minor = symbol->vaddr;
	else if (strcmp(symbol->name, SIZES) == 0) {
		file->sizes = symbol->vaddr;
		file->sizes_length = symbol->size;
	}
	if (strncmp(symbol->name, PREFIX, strlen(PREFIX)) != 0)
		return true;
	for (unsigned i = 0; i < V8_CONSTANTS; i++)
		if (strncmp(symbol->name + strlen(PREFIX), constants[i], strlen(constants[i])) == 0)
			file->constants[i] = symbol->vaddr;
	return true;
}

static struct mw_error *make_file(struct mw_elf *elf, const void *context, void **out)
{
	struct file *file = calloc(1, sizeof(*file));
	struct mw_error *err;

	(void)context;
	if (!file)
		return mw_error_nomem();
	err = mw_error_if_memory(mw_elf_each_symbol(elf, see_symbol, file));
	if (err) {
		free(file);
		return err;
	}
	*out = file;
	return NULL;
}

struct mw_error *mw_v8_create(struct mw_modules *modules, struct mw_v8 **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return mw_error_nomem();
	(*out)->modules = modules;
	return NULL;
}

void mw_v8_destroy(struct mw_v8 *v8)
{
	if (!v8)
		return;
	v8_names_deinit(v8);
	v8_lines_deinit(v8);
	free(v8);
}

bool mw_v8_is_there(const struct mw_v8 *v8)
{
	return v8 && v8->layout.shared;
}

const struct mw_javascript_layout *mw_v8_layout(const struct mw_v8 *v8)
{
	return &v8->layout;
}

static bool read_int(pid_t tid, uint64_t bias, uint64_t vaddr, int32_t *out)
{
	return vaddr && mw_peek(tid, bias + vaddr, out, sizeof(*out));
}

static bool read_constants(struct mw_v8 *v8, pid_t tid, const struct file *file, uint64_t bias)
{
	for (unsigned i = 0; i < V8_CONSTANTS; i++) {
		v8->constants[i] = -1;
		if (!read_int(tid, bias, file->constants[i], &v8->constants[i]) && i < V8_NEEDED)
			return false;
	}
	return true;
}

/* Best effort: three tables of equal length. */
static void read_sizes(struct mw_v8 *v8, pid_t tid, const struct file *file, uint64_t bias)
{
	if (file->sizes && file->sizes_length % 3 == 0 && file->sizes_length <= sizeof(v8->sizes) &&
	    mw_peek(tid, bias + file->sizes, v8->sizes, file->sizes_length))
		v8->bytecodes = (unsigned)(file->sizes_length / 3);
}

/* Are the constants such as this reader goes by? */
static bool makes_sense(const struct mw_v8 *v8)
{
	const int32_t *values = v8->constants;

	for (unsigned i = V8_FUNCTION_SHARED; i <= V8_BYTECODE_DATA; i++)
		if (values[i] < 0 || values[i] > FIELD_MAX || (i < V8_BYTECODE_DATA && values[i] % 2))
			return false;
	for (unsigned i = V8_SCOPE_LOCALS; i < V8_NEEDED; i++)
		if (values[i] <= 0 || values[i] > UINT16_MAX)
			return false;
	/* Words are whole: nothing is compressed. */
	return values[V8_SMI_SHIFT] == 31 && values[V8_FRAME_FUNCTION] == MW_JAVASCRIPT_FUNCTION &&
	       values[V8_FRAME_CONTEXT] == MW_JAVASCRIPT_CONTEXT &&
	       values[V8_FRAME_BYTECODE] == MW_JAVASCRIPT_BYTECODE && values[V8_FRAME_OFFSET] == MW_JAVASCRIPT_OFFSET &&
	       values[V8_FUNCTION_SHARED] % 8 == 0 && values[V8_SHARED_NAME] % 8 == 0 &&
	       values[V8_SHARED_SCRIPT] % 8 == 0 && values[V8_ARRAY_LENGTH] % 8 == 0;
}

static void refuse(struct mw_v8 *v8, int32_t major, int32_t minor, const char *how)
{
	char *out = v8->modules->frames_missing;

	if (!*out)
		(void)snprintf(out, sizeof(v8->modules->frames_missing), "V8 %d.%d %s: JavaScript frames are missing",
			       major, minor, how);
}

static struct mw_error *take(struct mw_v8 *v8, pid_t tid, const struct file *file, uint64_t bias)
{
	const int32_t *values = v8->constants;
	int32_t major = 0, minor = 0;

	if (!read_int(tid, bias, file->major, &major) || !read_int(tid, bias, file->minor, &minor))
		return NULL;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].major == (unsigned)major && versions[i].minor == (unsigned)minor)
			v8->version = &versions[i];
	if (!v8->version) {
		refuse(v8, major, minor, "is not known to this memwatch");
		return NULL;
	}
	if (!read_constants(v8, tid, file, bias) || !makes_sense(v8)) {
		refuse(v8, major, minor, "does not say where its fields are");
		return NULL;
	}
	read_sizes(v8, tid, file, bias);
	MW_TRY(mw_modules_add_named(v8->modules, MW_NAMED_FRAMES_JAVASCRIPT, &v8->named, &v8->module));
	v8->layout = (struct mw_javascript_layout){
		.shared = (int16_t)(values[V8_FUNCTION_SHARED] - 1),
		.name = (int16_t)(values[V8_SHARED_NAME] - 1),
		.script = (int16_t)(values[V8_SHARED_SCRIPT] - 1),
		.bytecode_length = (int16_t)(values[V8_ARRAY_LENGTH] - 1),
		.bytecode = (int16_t)(values[V8_BYTECODE_DATA] - 1),
	};
	return NULL;
}

/* One in which code stands that V8's own generator has written. */
static struct mw_error *look_at(struct mw_v8 *v8, pid_t tid, const struct mw_module *module)
{
	static const struct mw_elf_fact_kind kind = {make_file, free};
	static const uint64_t key[2] = {0, 0};
	struct mw_generated_code code = {0};
	const void *file = NULL;

	if (!module->elf || module->gone || module->elf->machine != EM_X86_64)
		return NULL;
	MW_TRY(mw_generated_code_find(module->elf, &code));
	if (!code.end)
		return NULL;
	MW_TRY(mw_elf_fact(module->elf, &kind, key, NULL, &file));
	return take(v8, tid, file, module->bias);
}

struct mw_error *mw_v8_take_in(struct mw_v8 *v8, pid_t tid)
{
	while (!v8->layout.shared && v8->seen < mw_modules_count(v8->modules))
		MW_TRY(look_at(v8, tid, mw_modules_get(v8->modules, v8->seen++)));
	return NULL;
}
