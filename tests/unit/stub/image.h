/* SPDX-License-Identifier: MIT */
/* image.h: the real image, put into this process as memwatch puts it into a target. */
#ifndef TEST_STUB_IMAGE_H
#define TEST_STUB_IMAGE_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct shared;
struct mw_stub_hook;

struct image *image_create(struct shared *shared);
/* As memwatch has it, where the kernel allows: does it? */
bool image_use_rdfsbase(struct image *image);
void image_destroy(struct image *image);
/* A trampoline for hook `number`: what a hooked function's callers call. `find_fde`: by that entry. */
void *image_trampoline(struct image *image, uint32_t number, const struct mw_stub_hook *hook, int find_fde);
/* … by an entry of the header's. */
void *image_trampoline_to(struct image *image, uint32_t number, const struct mw_stub_hook *hook, uint32_t entry);
void image_guard(struct image *image, uint32_t value);
uint32_t image_guard_now(const struct image *image);
uint64_t image_start(const struct image *image);
uint64_t image_returned(const struct image *image);

#ifdef __cplusplus
}
#endif

#endif
