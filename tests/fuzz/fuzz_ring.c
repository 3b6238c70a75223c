// SPDX-License-Identifier: MIT
/*
 * fuzz_ring: libFuzzer's bytes as what a target does to the memory that it shares with memwatch: the reader of rings,
 * the answers to what the recorder asks, and the index of code that is published there. Whenever these call back, the
 * target does something more, so between two looks of theirs as well. Nothing may be read or written outside (the
 * sanitizers say so), every round ends, and what is told fits together.
 */
#include "fuzz.h"

#include "engine/jump/jump.h"
#include "proc/file.h"
#include "proc/status.h"

#include <memwatch/arch.h>

#define SLOTS  16u
#define RINGS  8u
#define UNITS  64u
#define DEPTH  16u
#define SCRIPT 4u
#define ROWS   8192u
#define ROUNDS 64u
#define MORE   4u /* things done in one call back */

enum deed {
	DO_WORD,   /* any word */
	DO_SLOT,   /* a slot that makes sense */
	DO_RECORD, /* a record that makes sense */
	DO_RECORDS,
	DO_ASK,
	DO_DIE,
	DO_HARM, /* up to here: by the target */
	DO_ROUND = DO_HARM,
	DO_TIDY,
	DO_NAMES,
	DO_STATS,
	DO_ANSWER,
	DO_PUBLISH,
	DO_INTRODUCE,
	DEEDS
};

static struct {
	struct jump_process process;
	struct jump_clock clock;
	struct jump_drain *drain;
	struct fuzz_input input;
	uint64_t tick, emitted_ns;
	uint32_t stacks, threads;
	uint64_t dead; /* bit n: thread n */
	struct mw_module module;
	struct mw_modules modules; /* that one */
} rig;

/* --- what the parts under test are linked to ---------------------------------------------------- */

uint64_t jump_clock_tick(void)
{
	return rig.tick += 1000;
}

/* No process's: maps are those of below. */
pid_t mw_live_thread(pid_t pid)
{
	(void)pid;
	return 0;
}

/* It has no guard pages. */
bool mw_touched_clip(pid_t tid, mw_addr addr, mw_addr *low, mw_addr *high)
{
	(void)tid;
	(void)addr;
	(void)low;
	(void)high;
	return false;
}

struct mw_error *mw_proc_file_read(char **bytes, size_t *size, const char *format, ...)
{
	(void)format;
	*bytes = strdup("00001000-00003000 rw-p 00000000 00:00 0 \n"
			"10000000-20000000 rw-p 00000000 00:00 0 \n"
			"7ff000000000-7ff000021000 rw-p 00000000 00:00 0 [stack]\n");
	insist(*bytes != NULL);
	*size = strlen(*bytes);
	return NULL;
}

struct mw_error *mw_proc_link_read(char **out, const char *path)
{
	(void)path;
	*out = strdup("/");
	return NULL;
}

static void interfere(void);

bool jump_memory_ours(const struct jump_process *process, mw_addr addr)
{
	(void)process;
	interfere();
	return addr % 3 == 0;
}

struct mw_module *mw_modules_find(const struct mw_modules *modules, mw_addr addr)
{
	(void)modules;
	interfere();
	return addr % 2 ? &rig.module : NULL;
}

/* No module has a file. */
struct mw_error *mw_file_rows_get(struct mw_elf *elf, const struct mw_arch *arch, const struct mw_file_rows **out)
{
	(void)elf, (void)arch, (void)out;
	abort();
}

void mw_file_rows_drop(struct mw_elf *elf)
{
	(void)elf;
	abort();
}

struct mw_error *mw_row_dictionary_add(struct mw_row_dictionary *dictionary, uint64_t row, uint32_t *index)
{
	(void)dictionary, (void)row, (void)index;
	abort();
}

struct mw_error *mw_shared_memory_write(struct mw_shared_memory *memory, uint64_t offset, const void *bytes,
					size_t size)
{
	const struct jump_geometry *geometry = &rig.process.recorder.shared.geometry;

	const uint64_t dictionary_end = geometry->dictionary + geometry->dictionary_capacity * sizeof(uint64_t);
	bool in_rows = offset >= geometry->rows && offset <= geometry->rows_end && size <= geometry->rows_end - offset;
	bool in_dictionary =
		offset >= geometry->dictionary && offset <= dictionary_end && size <= dictionary_end - offset;

	(void)memory;
	insist(in_rows || in_dictionary);
	memcpy(rig.process.recorder.shared.base + offset, bytes, size);
	return NULL;
}

struct mw_error *mw_tracee_request(int request, pid_t tid, size_t address, void *data, const char *what)
{
	(void)request, (void)tid, (void)address, (void)data, (void)what;
	interfere();
	return NULL;
}

void mw_regs_from_kernel(const struct user_regs_struct *raw, struct mw_regs *out)
{
	(void)raw;
	memset(out, 0, sizeof(*out));
	out->thread_pointer = fuzz_odd(&rig.input);
	out->gpr[7] = fuzz_take(&rig.input, 1) % 2 ? 0x10000800 : 0x7ff000020000;
}

/* --- the sink and the help ---------------------------------------------------------------------- */

static struct mw_error *take_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	(void)context;
	insist(stack->count <= DEPTH && stack->cut <= MW_STACK_BROKEN && stack->kind < MW_KIND_COUNT &&
	       stack->hook < MW_RING_HOOKS);
	*id = rig.stacks++;
	return NULL;
}

static struct mw_error *take_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	(void)context, (void)tid;
	insist(strlen(name) <= 16);
	interfere();
	if (fresh)
		*number = rig.threads++;
	insist(*number < rig.threads);
	return NULL;
}

/* An interval is known by its bytes. */
static bool knows(void *context, mw_addr addr)
{
	(void)context;
	return addr % 3;
}

static struct mw_error *take_interval(void *context, uint64_t bytes, uint16_t *number)
{
	(void)context;
	*number = (uint16_t)bytes;
	return NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	(void)context;
	insist(event->type <= MW_EVENT_REMAP_FAIL && event->kind < MW_KIND_COUNT && event->thread < rig.threads);
	insist(event->stack == MW_STACK_NONE || event->stack < rig.stacks);
	insist(event->time_ns >= rig.emitted_ns);
	rig.emitted_ns = event->time_ns;
	return NULL;
}

static bool help_thread(void *context, uint32_t tid, pid_t *out, char name[17])
{
	(void)context;
	interfere();
	*out = (pid_t)tid;
	strcpy(name, "sixteen letters!");
	return !(rig.dead >> tid % 64 & 1);
}

static uint32_t help_module(void *context, mw_addr pc)
{
	(void)context;
	return (uint32_t)pc % 5;
}

static void help_walk(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		      struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	(void)context;
	interfere();
	*count = (uint32_t)(slow->pc % (capacity + 1));
	for (uint32_t i = 0; i < *count; i++)
		frames[i] = (struct mw_raw_frame){.addr = size ? bytes[i % size] : 0, .module = MW_MODULE_NONE};
	*cut = MW_STACK_COMPLETE;
}

/* There is no Java virtual machine. */
void jump_learn_asked(struct jump_process *process, const struct mw_ring_slot *slot, mw_addr pc)
{
	(void)process, (void)slot, (void)pc;
}

bool mw_hotspot_is_there(const struct mw_hotspot *hotspot)
{
	(void)hotspot;
	return false;
}

bool mw_hotspot_is_awaited(const struct mw_hotspot *hotspot)
{
	(void)hotspot;
	return false;
}

unsigned mw_hotspot_ranges(const struct mw_hotspot *hotspot, struct mw_hotspot_range *out, unsigned capacity)
{
	(void)hotspot, (void)out, (void)capacity;
	return 0;
}

struct mw_error *mw_hotspot_take_in(struct mw_hotspot *hotspot, pid_t tid)
{
	(void)hotspot, (void)tid;
	return NULL;
}

bool mw_v8_is_there(const struct mw_v8 *v8)
{
	(void)v8;
	return true;
}

const struct mw_javascript_layout *mw_v8_layout(const struct mw_v8 *v8)
{
	static const struct mw_javascript_layout layout = {.shared = 31};

	(void)v8;
	return &layout;
}

struct mw_error *mw_v8_learn(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, mw_addr pc)
{
	(void)v8, (void)tid;
	insist(!(pc & MW_JAVASCRIPT_FRAME));
	interfere();
	return frame->check % 16 ? NULL : mw_error_nomem();
}

void mw_v8_name(const struct mw_v8 *v8, const struct mw_raw_stack *native, const struct mw_javascript *functions,
		struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated)
{
	(void)v8;
	*count = 0;
	*truncated = false;
	for (uint32_t i = 0; i < native->count; i++)
		for (uint64_t j = functions[i].shared % 4 + 1; j; j--) {
			*truncated = *count == capacity;
			if (*truncated)
				return;
			out[(*count)++] = functions[i].shared ? (struct mw_raw_frame){j, 2} : native->frames[i];
		}
}

static void help_functions(void *context, const struct mw_raw_stack *native, const struct mw_javascript *functions,
			   struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated)
{
	(void)context;
	insist(native->count <= DEPTH && capacity == DEPTH);
	interfere();
	mw_v8_name(NULL, native, functions, out, capacity, count, truncated);
}

struct mw_error *mw_script_take_in(struct mw_script *script, pid_t tid)
{
	(void)script, (void)tid;
	interfere();
	return NULL;
}

const struct mw_script_layout *mw_script_layout_of(const struct mw_script *script, struct mw_script_place *place)
{
	static const struct mw_script_layout layout = {.frame = 8};

	(void)script;
	*place = (struct mw_script_place){.own = 16};
	return &layout;
}

bool mw_script_learn(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref, bool *forgotten)
{
	(void)script, (void)tid;
	interfere();
	*forgotten = ref->check % 2;
	return ref->code % 4;
}

struct mw_error *mw_script_merge(struct mw_script *script, pid_t tid, const struct mw_raw_stack *native,
				 const struct mw_script_ref *refs, uint32_t ref_count, struct mw_raw_frame *out,
				 uint32_t capacity, uint32_t *count, bool *truncated)
{
	(void)script, (void)tid;
	insist(ref_count <= SCRIPT && native->count <= DEPTH && capacity == DEPTH);
	interfere();
	*truncated = native->count + ref_count > capacity;
	*count = 0;
	for (uint32_t i = 0; i < ref_count && *count < capacity; i++)
		out[(*count)++] = (struct mw_raw_frame){.addr = refs[i].code, .module = 1};
	for (uint32_t i = 0; i < native->count && *count < capacity; i++)
		out[(*count)++] = native->frames[i];
	return NULL;
}

static bool help_lives(void *context, uint32_t tid)
{
	(void)context;
	interfere();
	return !(rig.dead >> tid % 64 & 1);
}

static bool help_fill(void *context, uint32_t first, uint32_t count)
{
	(void)context;
	insist(first <= RINGS && count <= RINGS - first);
	return true;
}

/* --- the target's deeds ------------------------------------------------------------------------- */

static void write_word(struct fuzz_input *input)
{
	const struct jump_geometry *geometry = &rig.process.recorder.shared.geometry;
	uint64_t at = fuzz_take(input, 2) * 8, value = fuzz_odd(input);

	memcpy(rig.process.recorder.shared.base + at % geometry->size, &value, sizeof(value));
}

static void write_slot(struct fuzz_input *input)
{
	struct mw_ring_slot *slot = jump_slot(&rig.process.recorder.shared, (uint32_t)fuzz_take(input, 1) % SLOTS);

	slot->owner = 0x1000 + fuzz_take(input, 1) * 16;
	slot->tid = (uint32_t)fuzz_take(input, 1);
	slot->ring = 1 + (uint32_t)fuzz_take(input, 1) % (RINGS + 1);
	slot->reserved = slot->drained + fuzz_take(input, 1) % (2 * UNITS);
	jump_control(&rig.process.recorder.shared)->rings_taken++;
}

/* A record where the ring is read next, or a little later. */
static uint64_t write_record(struct fuzz_input *input, uint32_t ring, uint64_t unit)
{
	uint32_t type = (uint32_t)fuzz_take(input, 1), flags = type >> 5;
	bool odd = type & 16;
	struct mw_ring_record *record = jump_ring(&rig.process.recorder.shared, ring) + unit % UNITS;

	type = (type & 15) + (type % 3 ? 0 : 8);
	record->time = odd ? fuzz_odd(input) : rig.tick - 30000 + fuzz_take(input, 1) * 100;
	record->addr = odd ? fuzz_odd(input) : fuzz_take(input, 1);
	record->size = odd ? fuzz_odd(input) : fuzz_take(input, 1);
	record->mark = mw_ring_mark(odd ? (uint32_t)fuzz_odd(input) : 7, 1, type % (MW_RING_TYPES + 1), flags,
				    mw_ring_lap(unit, UNITS));
	return unit + 1;
}

static void write_records(struct fuzz_input *input, unsigned count)
{
	struct mw_ring_slot *slot = jump_slot(&rig.process.recorder.shared, (uint32_t)fuzz_take(input, 1) % SLOTS);
	uint32_t ring = (slot->ring - 1) % RINGS;
	uint64_t unit = slot->drained + (count == 1 ? fuzz_take(input, 1) % UNITS : 0);

	while (count-- && input->left)
		unit = write_record(input, ring, unit);
}

static void ask(struct fuzz_input *input)
{
	struct mw_ring_slot *slot = jump_slot(&rig.process.recorder.shared, (uint32_t)fuzz_take(input, 1) % SLOTS);

	slot->ask = fuzz_take(input, 1) % 2 ? MW_RING_ASK_SCRIPT : MW_RING_ASK_REGION;
	slot->ask_address = fuzz_take(input, 1) % 2 ? 0x10001000 : fuzz_odd(input);
	slot->asked++;
	jump_control(&rig.process.recorder.shared)->asks++;
}

static void harm(enum deed deed)
{
	struct fuzz_input *input = &rig.input;

	switch (deed) {
	case DO_WORD:
		write_word(input);
		break;
	case DO_SLOT:
		write_slot(input);
		break;
	case DO_RECORD:
		write_records(input, 1);
		break;
	case DO_RECORDS:
		write_records(input, 16);
		break;
	case DO_ASK:
		ask(input);
		break;
	case DO_DIE:
		rig.dead ^= UINT64_C(1) << fuzz_take(input, 1) % 64;
		break;
	default:
		break;
	}
}

/* While memwatch is at something. */
static void interfere(void)
{
	if (!rig.input.left || fuzz_take(&rig.input, 1) % 4)
		return;
	for (unsigned i = 0; i < MORE && rig.input.left; i++)
		harm((enum deed)(fuzz_take(&rig.input, 1) % DO_HARM));
}

/* --- what memwatch does ------------------------------------------------------------------------- */

static void publish(struct fuzz_input *input)
{
	struct mw_mapping items[8] = {{.start = 0}};
	struct mw_maps maps = {.items = items, .count = fuzz_take(input, 1) % 9};

	for (size_t i = 0; i < maps.count; i++)
		items[i] =
			(struct mw_mapping){.start = i * 100, .end = i * 100 + 50 + fuzz_take(input, 1), .exec = true};
	insist(!jump_rows_publish(&rig.process, &maps, true));
}

static void introduce(void)
{
	struct mw_quiet_thread thread = {.tid = 1, .stopped = true};

	rig.process.quiesce.threads = &thread;
	rig.process.quiesce.count = 1;
	jump_introduce_threads(&rig.process);
	rig.process.quiesce.threads = NULL;
	rig.process.quiesce.count = 0;
}

static void act(enum deed deed)
{
	size_t events;

	switch (deed) {
	case DO_ROUND:
		rig.tick += fuzz_take(&rig.input, 2) * 1000;
		insist(!jump_drain_round(rig.drain, &events));
		break;
	case DO_TIDY:
		jump_drain_tidy(rig.drain);
		break;
	case DO_NAMES:
		insist(!jump_drain_rename(rig.drain));
		break;
	case DO_STATS:
		insist(jump_drain_stats(rig.drain)->lost_events <= JUMP_MOST_COUNTED);
		break;
	case DO_ANSWER:
		jump_answer(&rig.process);
		break;
	case DO_PUBLISH:
		publish(&rig.input);
		break;
	case DO_INTRODUCE:
		introduce();
		break;
	default:
		harm(deed);
	}
}

static void plan(struct jump_geometry *geometry)
{
	*geometry = (struct jump_geometry){.slot_count = SLOTS,
					   .ring_count = RINGS,
					   .ring_units = UNITS,
					   .queue_count = RINGS,
					   .depth = DEPTH,
					   .script_frames = SCRIPT,
					   .slots = sizeof(struct mw_ring_control)};
	geometry->queue = geometry->slots + SLOTS * sizeof(struct mw_ring_slot);
	geometry->rings = geometry->queue + RINGS * sizeof(uint32_t);
	geometry->scratch = geometry->rings + (uint64_t)RINGS * UNITS * MW_RING_UNIT;
	geometry->script_ranges = geometry->scratch + RINGS * mw_ring_scratch_words(DEPTH, SCRIPT) * sizeof(uint64_t);
	geometry->dictionary = geometry->script_ranges + MW_RING_SCRIPT_RANGES * sizeof(struct mw_ring_region) +
			       MW_RING_SCRIPT_CODES * sizeof(uint64_t);
	geometry->dictionary_capacity = 16;
	geometry->rows = geometry->dictionary + 16 * sizeof(uint64_t);
	geometry->rows_end = geometry->rows + ROWS;
	geometry->size = geometry->rows_end;
}

static void begin(const uint8_t *bytes, size_t size)
{
	static const struct mw_event_sink sink = {.stack = take_stack,
						  .thread = take_thread,
						  .event = take_event,
						  .knows = knows,
						  .interval = take_interval};
	static const struct jump_drain_help help = {.thread = help_thread,
						    .module = help_module,
						    .walk = help_walk,
						    .functions = help_functions,
						    .script = jump_help_script,
						    .thread_lives = help_lives,
						    .fill = help_fill};
	static uint64_t row = 1;

	memset(&rig, 0, sizeof(rig));
	rig.input = (struct fuzz_input){bytes, size};
	rig.tick = UINT64_C(1) << 40;
	rig.clock = (struct jump_clock){.start_tick = rig.tick - 1000000,
					.known_tick = rig.tick - 1000000,
					.rate = UINT64_C(1) << 32,
					.before_tick = rig.tick - 1000000,
					.before_rate = UINT64_C(1) << 32};
	plan(&rig.process.recorder.shared.geometry);
	rig.process.pid = 1;
	insist(mw_shared_list_add(&rig.modules.items, &rig.module));
	rig.process.survey.modules = &rig.modules;
	rig.process.rows.dictionary.rows = &row;
	rig.process.rows.dictionary.index.count = 1;
	rig.process.survey.arch = mw_arch_find(62);
	rig.process.recorder.shared.base = calloc(1, rig.process.recorder.shared.geometry.size);
	insist(rig.process.recorder.shared.base && rig.process.survey.arch);
	jump_shared_format(&rig.process.recorder.shared, 4);
	insist(!jump_drain_create(&rig.process.recorder.shared, &rig.clock, &sink, &help, &rig.drain));
	if (size % 2)
		jump_drain_sampling(rig.drain, 3, size % 4 == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	begin(bytes, size);
	for (unsigned i = 0; rig.input.left && i < ROUNDS * MORE; i++)
		act((enum deed)(fuzz_take(&rig.input, 1) % DEEDS));
	insist(!jump_drain_finish(rig.drain));
	jump_drain_destroy(rig.drain);
	mw_shared_list_deinit(&rig.modules.items);
	free(rig.process.rows.items);
	free(rig.process.rows.index);
	free(rig.process.recorder.shared.base);
	return 0;
}
