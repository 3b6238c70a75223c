/* SPDX-License-Identifier: MIT */
/* auto_engine.h: the vtable of the engine that chooses, for the table of engines. */
#ifndef MW_ENGINE_AUTO_ENGINE_H
#define MW_ENGINE_AUTO_ENGINE_H

#include <memwatch/engine.h>

extern const struct mw_engine_ops mw_engine_auto;

#endif
