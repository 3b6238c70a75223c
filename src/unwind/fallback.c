#include "unwind/fallback.h"
enum mw_fallback mw_fallback_step(const struct mw_modules *modules, const struct mw_arch *arch,
				  const struct mw_memory_view *memory, const struct mw_regs *regs, struct mw_regs *out)
{
	(void)modules;
	(void)arch;
	(void)memory;
	(void)regs;
	(void)out;
	return MW_FALLBACK_LOST;
}
