/* SPDX-License-Identifier: MIT */
/* stub_layout.h: what the recorder's assembly knows of C structures (src/stub/record.c checks it), for both. */
#ifndef MW_ARCH_STUB_LAYOUT_H
#define MW_ARCH_STUB_LAYOUT_H

#define STUB_CALL_SIZE     72
#define STUB_CALL_HOOK     0
#define STUB_CALL_ORIGINAL 8
#define STUB_CALL_PREV     16
#define STUB_CALL_COOKIE   24
#define STUB_CALL_SLOT     32
#define STUB_CALL_FLAGS    40
#define STUB_SILENT_FREE   0xa00 /* MW_STUB_FREE | MW_STUB_SILENT */
#define STUB_TAKEN         0x2000

#define STUB_SLOT_OWNER     0
#define STUB_SLOT_TOP       32
#define STUB_SLOT_COUNTDOWN 40
#define STUB_SLOT_SHIFT     8
#define STUB_SLOT_OPEN      188

#define STUB_SAVED_SIZE  144 /* struct mw_stub_saved: gpr[16] in DWARF order, flags */
#define STUB_SAVED_FLAGS 128
#define STUB_LEFT_SIZE   128 /* the same at the return: what it returns, the others, flags */
#define STUB_LEFT_FLAGS  120

#define STUB_CONTEXT_SIZE       21096
#define STUB_CONTEXT_GUARD      0
#define STUB_CONTEXT_SHARED     8
#define STUB_CONTEXT_COOKIE     16
#define STUB_CONTEXT_RDFSBASE   28
#define STUB_CONTEXT_SLOTS      456
#define STUB_CONTEXT_FILTER     464
#define STUB_CONTEXT_SLOT_MASK  608
#define STUB_CONTEXT_HOOK_COUNT 612
#define STUB_CONTEXT_HOOKS      616
#define STUB_HOOK_SIZE          40
#define STUB_HOOK_ORIGINAL      0

#define STUB_CONTROL_RECORDING 188

#define STUB_GUARD_SAMPLING 5
#define STUB_FILTER_MASK    0x7ffff
#define STUB_FILTER_PIECE   7

#define STUB_LAYOUT     3
#define STUB_MAGIC_LOW  0x68637461
#define STUB_MAGIC_HIGH 0x62757473

#endif
