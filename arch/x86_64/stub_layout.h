/* SPDX-License-Identifier: MIT */
/* stub_layout.h: what the recorder's assembly knows of C structures (src/stub/record.c checks it), for both. */
#ifndef MW_ARCH_STUB_LAYOUT_H
#define MW_ARCH_STUB_LAYOUT_H

#define STUB_CALL_SIZE     72
#define STUB_CALL_HOOK     0
#define STUB_CALL_ORIGINAL 8
#define STUB_CALL_FLAGS    40
#define STUB_CALL_DRAWN    0x2000

#define STUB_SAVED_SIZE  144 /* struct mw_stub_saved: gpr[16] in DWARF order, flags */
#define STUB_SAVED_FLAGS 128

#define STUB_GUARD_SAMPLING 4

#define STUB_CONTEXT_SIZE       21112
#define STUB_CONTEXT_GUARD      0
#define STUB_CONTEXT_SHARED     8
#define STUB_CONTEXT_RDFSBASE   28
#define STUB_CONTEXT_SLOTS      32
#define STUB_CONTEXT_SLOTS_END  40
#define STUB_CONTEXT_FILTER     48
#define STUB_CONTEXT_SLOT_MASK  56
#define STUB_CONTEXT_HOOK_COUNT 624
#define STUB_CONTEXT_HOOKS      632
#define STUB_HOOK_SIZE          40
#define STUB_HOOK_ORIGINAL      0

#define STUB_CONTROL_RECORDING 252

#define STUB_SLOT_SHIFT     8
#define STUB_SLOT_TOP       32
#define STUB_SLOT_COUNTDOWN 216

#define STUB_FILTER_MASK    0x7ffff
#define STUB_FILTER_BLOCK   4
#define STUB_FILTER_FOLD    23
#define STUB_INTERVAL_SHIFT 48

#define STUB_LAYOUT     3
#define STUB_MAGIC_LOW  0x68637461
#define STUB_MAGIC_HIGH 0x62757473

#endif
