// SPDX-License-Identifier: MIT
/*
 * fuzz_remains: libFuzzer's bytes as what a killed memwatch is said to have left in a process: the control block, the
 * list of its memory, the recorder's image, and the texts of /proc that they are compared with.
 */
#include "fuzz.h"

#include "engine/jump/remains.h"

#include <stddef.h>

static volatile uint64_t sum;

static void read_control(struct fuzz_input *input)
{
	union {
		struct mw_ring_control control;
		uint8_t bytes[sizeof(struct mw_ring_control)];
	} there;
	struct mw_mapping items[] = {
		{.start = 0x1000, .end = 0x3000, .read = true, .path = (char[]){""}},
		{.start = 0x3000, .end = 0x8000, .read = true, .write = true, .path = (char[]){""}},
		{.start = 0x10000, .end = 0x20000, .read = true, .path = (char[]){"/file"}, .inode = 7},
	};
	const struct mw_maps maps = {.items = items, .count = 3};
	size_t size = input->left < sizeof(there) ? input->left : sizeof(there);
	uint64_t offset, all = 1 << 20;
	uint32_t count;

	memset(&there, 0, sizeof(there));
	memcpy(there.bytes, input->at, size);
	if (jump_remains_slots(&there.control, all, &offset, &count))
		insist(offset <= all && count * (uint64_t)sizeof(struct mw_ring_slot) <= all - offset);
	for (unsigned i = 0; i < MW_RING_OWNED; i++) {
		const struct mw_ring_owned *owned = &there.control.owned[i];

		if (jump_remains_owned(&maps, owned))
			insist(owned->size && owned->start >= 0x1000 && owned->start < 0x8000 &&
			       owned->size <= 0x8000 - owned->start);
	}
}

static void read_image(struct fuzz_input *input)
{
	size_t size = input->left;
	uint8_t *bytes = malloc(size + 1);
	bool other;

	insist(bytes != NULL);
	memcpy(bytes, input->at, size);
	if (jump_remains_is_image(bytes, size, &other)) {
		const struct mw_stub_context *context = jump_remains_context(bytes);

		for (unsigned i = 0; i < MW_STUB_MAX_HOOKS; i++)
			sum += context->hooks[i].start + context->hooks[i].original;
		sum += context->shared;
	}
	free(bytes);
}

static void read_text(struct fuzz_input *input)
{
	char *text = strndup((const char *)input->at, input->left);

	insist(text != NULL);
	sum += jump_remains_locked(text, 0, 1, 1056) + jump_remains_wiped_by_fork(text, 0x7f0000001000);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, size};

	switch (fuzz_take(&input, 1) % 3) {
	case 0:
		read_control(&input);
		break;
	case 1:
		read_image(&input);
		break;
	default:
		read_text(&input);
	}
	return 0;
}
