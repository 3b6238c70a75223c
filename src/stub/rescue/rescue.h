/* SPDX-License-Identifier: MIT */
/* rescue.h: the image of memwatch/rescue.h as it is embedded: it begins with struct mw_rescue_header. */
#ifndef MW_STUB_RESCUE_RESCUE_H
#define MW_STUB_RESCUE_RESCUE_H

#include <memwatch/rescue.h>

extern const uint8_t mw_rescue_image[];
extern const uint32_t mw_rescue_image_size; /* bytes, at most MW_RESCUE_CODE */

#endif
