/* SPDX-License-Identifier: MIT */
/* stub_cpu.h: instead of the instruction set's: time, waiting and the thread are the test's to say. */
#ifndef TEST_STUB_CPU_H
#define TEST_STUB_CPU_H

#include <stdint.h>

#define CPU_SP 7
#define CPU_FP 6

#define CPU_SIGNAL_FP    0x78u
#define CPU_SIGNAL_SP    0xa0u
#define CPU_SIGNAL_PC    0xa8u
#define CPU_SIGNAL_FRAME 0xb0u

uint64_t fake_ticks(void);
void fake_pause(void);
uint64_t fake_thread_pointer(void);

static inline uint64_t cpu_ticks(void)
{
	return fake_ticks();
}

static inline uint64_t cpu_ticks_after(void)
{
	return fake_ticks();
}

static inline void cpu_prefetch_write(const void *at)
{
	(void)at;
}

static inline void cpu_pause(void)
{
	fake_pause();
}

static inline uint64_t cpu_thread_pointer(uint32_t rdfsbase)
{
	(void)rdfsbase;
	return fake_thread_pointer();
}

static inline uint64_t cpu_take(uint64_t *from, uint64_t count)
{
	return __atomic_fetch_add(from, count, __ATOMIC_SEQ_CST);
}

static inline void cpu_add(uint64_t *to, uint64_t count)
{
	*to += count;
}

static inline void cpu_add32(uint32_t *to, uint32_t count)
{
	*to += count;
}

static inline uint64_t cpu_argument(const uint64_t gpr[16], unsigned index)
{
	static const uint8_t where[8] = {5, 4, 1, 2, 8, 9, 0, 0};

	return gpr[where[index & 7]];
}

#endif
