// SPDX-License-Identifier: MIT
#include "image.h"

#include "shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define TID_OFFSET_MAX   4096
#define TRAMPOLINES_SIZE 4096
#define TRAMPOLINE_SIZE  32

struct image {
	uint8_t *bytes;
	uint8_t *trampolines;
	uint32_t *guard;
	struct mw_stub_context *context;
	size_t size;
};

struct image *image_create(struct shared *shared)
{
	struct image *image = calloc(1, sizeof(*image));
	const struct mw_stub_header *header = mw_stub_header();

	image->size = (mw_stub_image_size + 4095u) & ~4095u;
	image->bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	image->trampolines =
		mmap(NULL, TRAMPOLINES_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	image->guard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (image->bytes == MAP_FAILED || image->trampolines == MAP_FAILED || image->guard == MAP_FAILED)
		abort();
	if (madvise(image->guard, 4096, 18 /* MADV_WIPEONFORK */))
		abort();
	memcpy(image->bytes, mw_stub_image, mw_stub_image_size);
	image->context = (struct mw_stub_context *)(void *)(image->bytes + header->context);
	image->context->guard = (uint64_t)(uintptr_t)image->guard;
	image->context->shared = (uint64_t)(uintptr_t)shared->control;
	image->context->cookie = UINT64_C(0x1234567890abcdef);
	image->context->tid_offset = 0x2d0; /* glibc's since 2.4 */
	image->context->rdfsbase = 0;
	image->context->slots = image->context->shared + shared->control->slots;
	image->context->filter = image->context->shared + shared->filter;
	image->context->slot_mask = shared->control->slot_count - 1;
	image->context->hook_count = MW_STUB_MAX_HOOKS;
	return image;
}

bool image_use_rdfsbase(struct image *image)
{
	image->context->rdfsbase = (getauxval(AT_HWCAP2) & 2 /* HWCAP2_FSGSBASE */) != 0;
	return image->context->rdfsbase;
}

void image_destroy(struct image *image)
{
	munmap(image->bytes, image->size);
	munmap(image->trampolines, TRAMPOLINES_SIZE);
	munmap(image->guard, 4096);
	free(image);
}

/*
 *	lea  -72(%rsp), %rsp
 *	movl $number, (%rsp)
 *	jmp  *0(%rip)
 *	.quad entry
 */
void *image_trampoline_to(struct image *image, uint32_t number, const struct mw_stub_hook *hook, uint32_t where)
{
	static const uint8_t code[] = {0x48, 0x8d, 0x64, 0x24, 0xb8, 0xc7, 0x04, 0x24, 0,
				       0,    0,    0,    0xff, 0x25, 0,    0,    0,    0};
	uint8_t *trampoline = image->trampolines + number * TRAMPOLINE_SIZE;
	uint64_t entry = image_start(image) + where;

	if ((number + 1) * TRAMPOLINE_SIZE > TRAMPOLINES_SIZE)
		abort();
	memcpy(trampoline, code, sizeof(code));
	memcpy(trampoline + 8, &number, 4);
	memcpy(trampoline + sizeof(code), &entry, 8);
	image->context->hooks[number] = *hook;
	return trampoline;
}

void *image_trampoline(struct image *image, uint32_t number, const struct mw_stub_hook *hook, int find_fde)
{
	return image_trampoline_to(image, number, hook,
				   find_fde ? mw_stub_header()->find_fde : mw_stub_header()->enter);
}

void image_guard(struct image *image, uint32_t value)
{
	__atomic_store_n(image->guard, value, __ATOMIC_SEQ_CST);
}

uint32_t image_guard_now(const struct image *image)
{
	return *image->guard;
}

uint64_t image_start(const struct image *image)
{
	return (uint64_t)(uintptr_t)image->bytes;
}

uint64_t image_returned(const struct image *image)
{
	return image_start(image) + mw_stub_header()->returned;
}
