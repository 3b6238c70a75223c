/* SPDX-License-Identifier: MIT */
/* package_system.h: which distribution a root directory holds, and so how its packages are had. */
#ifndef MW_CLI_PACKAGE_SYSTEM_H
#define MW_CLI_PACKAGE_SYSTEM_H

enum mw_packaging {
	MW_PACKAGING_UNKNOWN,
	MW_PACKAGING_DEBIAN,
	MW_PACKAGING_UBUNTU,
	MW_PACKAGING_FEDORA, /* and all else with dnf */
	MW_PACKAGING_SUSE,
	MW_PACKAGING_ARCH,
	MW_PACKAGING_ALPINE,
};

/* All of it may be hostile, but for `codename`, which is letters, digits, '.' and '-'; "" where it is unknown. */
struct mw_distribution {
	enum mw_packaging packaging;
	char id[64];
	char like[256];
	char name[128]; /* as people write it: "Debian GNU/Linux 12 (bookworm)" */
	char codename[64];
};

/* By etc/os-release or usr/lib/os-release inside a root (mw_root_directory); unknown where neither can be read. */
void mw_distribution_read(int root, struct mw_distribution *out);

/* The debuginfod server that the distribution runs, or one for all. */
const char *mw_distribution_debuginfod(enum mw_packaging packaging);

#endif
