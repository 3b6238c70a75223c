/* SPDX-License-Identifier: MIT */
/* plugin.h: what the libraries that a target loads define. */
#ifndef MW_TEST_PLUGIN_H
#define MW_TEST_PLUGIN_H

void plugin_leak(void);
void plugin_pair(void);

#endif
