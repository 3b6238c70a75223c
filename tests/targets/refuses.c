/* SPDX-License-Identifier: MIT */
/* refuses: a program whose own valloc begins with an instruction that no breakpoint and no jump can take the place of.
 */
#include "target.h"

#include <stdlib.h>

#define ROUNDS 50

void *refuses_inner(size_t size);
extern void *(*refuses_pointer)(size_t size);
void *(*refuses_pointer)(size_t size) = refuses_inner;
void *refuses_valloc(size_t size) __asm__("valloc");

__asm__(".pushsection .text\n"
	".globl valloc\n"
	".type valloc, @function\n"
	"valloc:\n"
	"	call *refuses_pointer(%rip)\n"
	"	ret\n"
	".size valloc, . - valloc\n"
	".popsection\n");

KEEP void *refuses_inner(size_t size)
{
	return malloc(size);
}

int main(void)
{
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		void *block = refuses_valloc(40);

		OPAQUE(block);
	}
	target_say("refuses_inner.impacting.count", ROUNDS);
	target_done();
	return 0;
}
