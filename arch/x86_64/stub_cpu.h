/* SPDX-License-Identifier: MIT */
/* stub_cpu.h: what the recorder in the target (src/stub) asks of the instruction set. Freestanding. */
#ifndef MW_ARCH_STUB_CPU_H
#define MW_ARCH_STUB_CPU_H

#include <stdint.h>

#define CPU_SP 7 /* DWARF numbers */
#define CPU_FP 6

/* Where a signal's frame has what was interrupted: from the stack pointer that the handler returns with (its
 * ucontext). */
#define CPU_SIGNAL_FP    0x78u
#define CPU_SIGNAL_SP    0xa0u
#define CPU_SIGNAL_PC    0xa8u
#define CPU_SIGNAL_FRAME 0xb0u

/* The time stamp counter. */
static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* … when all that was read before has been: a block may not seem to be allocated before another thread has freed it. */
static inline uint64_t cpu_ticks_after(void)
{
	__asm__ volatile("lfence" : : : "memory");
	return __builtin_ia32_rdtsc();
}

/* Memory that will be written soon, which another CPU has read meanwhile. No fault, whatever the address. */
static inline void cpu_prefetch_write(const void *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
}

static inline void cpu_pause(void)
{
	__builtin_ia32_pause();
}

static inline uint64_t cpu_thread_pointer(uint32_t rdfsbase)
{
	uint64_t tp;

	if (__builtin_expect(rdfsbase, 1))
		__asm__ volatile("rdfsbase %0" : "=r"(tp));
	else
		__asm__ volatile("movq %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* Add and give what was there, so that no signal handler of this thread can come between; other threads might. */
static inline uint64_t cpu_take(uint64_t *from, uint64_t count)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(count), "+m"(*from) : : "memory", "cc");
	return count;
}

/* As cpu_take, nothing given. */
static inline void cpu_add(uint64_t *to, uint64_t count)
{
	__asm__ volatile("addq %1, %0" : "+m"(*to) : "er"(count) : "memory", "cc");
}

static inline void cpu_add32(uint32_t *to, uint32_t count)
{
	__asm__ volatile("addl %1, %0" : "+m"(*to) : "er"(count) : "memory", "cc");
}

/* From the C functions back to the assembly, which takes their frames away. What never comes to its end a compiler takes
 * for cold: it is not told. */
static inline void cpu_entered(uint32_t answer, const void *saved)
{
	__asm__ volatile("jmp mw_stub_entered" : : "D"(answer), "S"(saved) : "memory");
}

static inline void cpu_left(const void *call)
{
	__asm__ volatile("jmp mw_stub_left" : : "S"(call) : "memory");
}

/* Integer argument `index` (0…5) of a function at its entry, from registers in DWARF order. */
static inline uint64_t cpu_argument(const uint64_t gpr[16], unsigned index)
{
	static const uint8_t where[8] = {5, 4, 1, 2, 8, 9, 0, 0};

	return gpr[where[index & 7]];
}

#endif
