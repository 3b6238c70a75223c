// SPDX-License-Identifier: MIT
/*
 * scripted: looks like CPython 3.11 to whoever looks for its frames, and has some. While its main thread allocates,
 * another one writes anything into the interpreter's structures: pointers to nothing, to itself, to the ends of mappings,
 * odd ones, the kernel's, numbers.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE   4096u
#define FRAMES 24
#define CODES  8
#define BLOCKS 60000u
#define WORDS  32

/* As CPython 3.11 has them, as far as they are looked at. */
struct fake_text {
	uint64_t head[2], length, hash;
	uint32_t state, unused;
	uint64_t more;
	char text[40];
};

struct fake_bytes {
	uint64_t head[2], size, hash;
	uint8_t data[32];
};

uint64_t _PyRuntime[128];
#ifndef VERSION
#define VERSION 0x030b02f0
#endif
extern const unsigned long Py_Version;
const unsigned long Py_Version = VERSION;

static struct fake_text names[CODES], file;
static struct fake_bytes lines;
static uint64_t *codes[CODES], *frames[FRAMES], *state, *interpreter, *cframe;
static uint8_t *ends; /* its last word ends where nothing follows */
static _Atomic bool stop;

KEEP void _PyEval_EvalFrameDefault(unsigned count);
KEEP void scripted_allocate(unsigned count);

static void set_text(struct fake_text *text, const char *what)
{
	text->length = strlen(what);
	text->state = 1u << 2 | 1u << 5 | 1u << 6; /* one byte a character, compact, ASCII */
	memcpy((uint8_t *)text + 48, what, strlen(what));
}

static void *page(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		target_fail("mmap");
	return at;
}

static void set_half(uint64_t *object, size_t offset, uint32_t value)
{
	memcpy((uint8_t *)object + offset, &value, sizeof(value));
}

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

/* All as it should be. */
static void make(void)
{
	_PyRuntime[40 / 8] = address_of(interpreter);
	_PyRuntime[576 / 8] = address_of(state);
	interpreter[16 / 8] = address_of(state);
	state[152 / 8] = (uint64_t)pthread_self();
	state[56 / 8] = address_of(cframe);
	cframe[1] = address_of(frames[0]);
	for (int i = 0; i < CODES; i++) {
		codes[i][112 / 8] = address_of(&file);
		codes[i][128 / 8] = address_of(&names[i]);
		codes[i][136 / 8] = address_of(&lines);
		set_half(codes[i], 72, (uint32_t)(10 * i + 1));
		set_half(codes[i], 168, 0);
	}
	for (int i = 0; i < FRAMES; i++) {
		uint64_t *code = codes[i % CODES];

		frames[i][32 / 8] = address_of(code);
		frames[i][48 / 8] = i + 1 < FRAMES ? address_of(frames[i + 1]) : 0;
		frames[i][56 / 8] = address_of(code) + 184;
		((uint8_t *)frames[i])[68] = i + 1 == FRAMES;
		((uint8_t *)frames[i])[69] = 0;
	}
}

static uint64_t draw(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static uint64_t anything(void)
{
	switch (draw() % 12) {
	case 0:
		return 0;
	case 1:
		return draw();
	case 2:
		return draw() & 0x7fffffffffffu;
	case 3:
		return draw() % 5000;
	case 4:
		return address_of(ends) + PAGE - 8 * (draw() % 30);
	case 5:
		return address_of(ends) + PAGE + 8 * (draw() % 30); /* PROT_NONE */
	case 6:
		return address_of(frames[draw() % FRAMES]);
	case 7:
		return address_of(codes[draw() % CODES]) + draw() % 16;
	case 8:
		return address_of(frames[draw() % FRAMES]) + draw() % PAGE;
	case 9:
		return UINT64_C(0xffff888000000000) | draw() >> 20;
	case 10:
		return UINT64_C(0x8000000000000000) | draw();
	default:
		return address_of(&_PyRuntime[draw() % 128]);
	}
}

static void *spoil(void *unused)
{
	(void)unused;
	while (!stop) {
		for (int i = 0; i < 40; i++) {
			uint64_t value = anything();

			switch (draw() % 8) {
			case 0:
				state[draw() % WORDS] = value;
				break;
			case 1:
				codes[draw() % CODES][draw() % WORDS] = value;
				break;
			case 2:
				_PyRuntime[draw() % 128] = value;
				break;
			case 3:
				cframe[draw() % 3] = value;
				break;
			case 4:
				lines.size = value;
				break;
			case 5:
				names[draw() % CODES].length = value;
				break;
			default:
				frames[draw() % FRAMES][draw() % 10] = value;
			}
		}
		make();
		set_text(&names[0], "first");
		lines.size = sizeof(lines.data);
	}
	return NULL;
}

void scripted_allocate(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *block = malloc(100 + i % 7);

		OPAQUE(block);
		if (i % 2)
			free(block);
	}
}

void _PyEval_EvalFrameDefault(unsigned count)
{
	scripted_allocate(count);
	OPAQUE(count);
}

int main(int argc, char **argv)
{
	bool spoils = argc <= 1 || strcmp(argv[1], "sound") != 0;
	uint8_t *both = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread, main_thread = pthread_self();
	pthread_key_t key;
	char name[16];

	if (both == MAP_FAILED || mprotect(both + PAGE, PAGE, PROT_NONE) != 0 || pthread_key_create(&key, NULL) != 0)
		target_fail("mmap");
	ends = both;
	state = page();
	interpreter = page();
	cframe = page();
	for (int i = 0; i < CODES; i++) {
		codes[i] = page();
		(void)snprintf(name, sizeof(name), "function_%d", i);
		set_text(&names[i], name);
	}
	for (int i = 0; i < FRAMES; i++)
		frames[i] = page();
	set_text(&file, "/made/up.py");
	lines.size = sizeof(lines.data);
	memset(lines.data, 0xf8, sizeof(lines.data));
	lines.data[0] = 0x80 | 10 << 3 | 7; /* the first line, 8 units */
	(void)main_thread;
	make();
	pthread_setspecific(key, state);
	target_ready();
	if (spoils && pthread_create(&thread, NULL, spoil, NULL) != 0)
		target_fail("pthread_create");
	_PyEval_EvalFrameDefault(BLOCKS);
	stop = true;
	if (spoils)
		pthread_join(thread, NULL);
	target_say("blocks", BLOCKS);
	target_done();
	return 0;
}
