/* SPDX-License-Identifier: MIT */
/* roles.h: the numbers of enum mw_role (memwatch/engine.h, which freestanding code can't have; a test compares them).
 */
#ifndef MW_STUB_ROLES_H
#define MW_STUB_ROLES_H

enum stub_role {
	STUB_ROLE_MALLOC,
	STUB_ROLE_CALLOC,
	STUB_ROLE_REALLOC,
	STUB_ROLE_REALLOCARRAY,
	STUB_ROLE_FREE,
	STUB_ROLE_POSIX_MEMALIGN,
	STUB_ROLE_RESIZE,
	STUB_ROLE_MMAP,
	STUB_ROLE_MUNMAP,
	STUB_ROLE_MREMAP,
	STUB_ROLE_BRK,
	STUB_ROLE_SBRK,
	STUB_ROLE_COUNT
};

#endif
