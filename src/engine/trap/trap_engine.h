/* SPDX-License-Identifier: MIT */
/* trap_engine.h: the trap engine's vtable, for the table of engines. */
#ifndef MW_ENGINE_TRAP_TRAP_ENGINE_H
#define MW_ENGINE_TRAP_TRAP_ENGINE_H

#include <memwatch/engine.h>

extern const struct mw_engine_ops mw_engine_trap;

#endif
