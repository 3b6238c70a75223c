/* SPDX-License-Identifier: MIT */
/* unwritten.c: ends the program with status 9 if what lies where glibc keeps a thread's id is not what it was. */
#include <stdint.h>
#include <unistd.h>

static uint32_t before;

static uint32_t word(void)
{
	uint32_t value;

	__asm__ volatile("movl %%fs:0x2d0, %0" : "=r"(value));
	return value;
}

__attribute__((constructor)) static void look(void)
{
	before = word();
}

__attribute__((destructor)) static void look_again(void)
{
	if (word() != before)
		_exit(9);
}
