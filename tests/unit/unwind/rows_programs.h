/* SPDX-License-Identifier: MIT */
/* rows_programs.h: programs of frame descriptions, and what they say as rows. For test_rows.c. */
#ifndef TEST_ROWS_PROGRAMS_H
#define TEST_ROWS_PROGRAMS_H

#include <memwatch/ring.h>

#include <dwarf.h>
#include <stddef.h>
#include <stdint.h>

/* A program of a function that is 0x40 bytes long, and the row at 0x10 bytes into it. */
struct program {
	const char *what;
	uint8_t bytes[32];
	size_t size;
	enum mw_row_kind kind;
	int32_t n;
	enum mw_row_fp fp;
	int16_t fp_at;
};

#define PROGRAM(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})
#define STEP         (DW_CFA_advance_loc + 0x10) /* to that row */

/* 16 is the return address; a factored offset of 2 is -16. */
static const struct program programs[] = {
	{"nothing", PROGRAM(DW_CFA_nop), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"pushed", PROGRAM(STEP, DW_CFA_def_cfa_offset, 16), MW_ROW_SP, 16, MW_ROW_FP_SAME, 0},
	{"fp saved", PROGRAM(DW_CFA_def_cfa_offset, 16, DW_CFA_offset + 6, 2), MW_ROW_SP, 16, MW_ROW_FP_SAVED, -16},
	{"fp used", PROGRAM(DW_CFA_offset + 6, 2, DW_CFA_def_cfa_offset, 16, DW_CFA_def_cfa_register, 6), MW_ROW_FP, 16,
	 MW_ROW_FP_SAVED, -16},
	{"def_cfa", PROGRAM(DW_CFA_def_cfa, 6, 0x90, 1), MW_ROW_FP, 144, MW_ROW_FP_SAME, 0},
	{"def_cfa_sf", PROGRAM(DW_CFA_def_cfa_sf, 6, 0x7e), MW_ROW_FP, 16, MW_ROW_FP_SAME, 0},
	{"def_cfa_offset_sf", PROGRAM(DW_CFA_def_cfa_offset_sf, 0x7c), MW_ROW_SP, 32, MW_ROW_FP_SAME, 0},
	{"extended", PROGRAM(DW_CFA_offset_extended, 6, 3), MW_ROW_SP, 8, MW_ROW_FP_SAVED, -24},
	{"extended_sf", PROGRAM(DW_CFA_offset_extended_sf, 6, 0x7e), MW_ROW_SP, 8, MW_ROW_FP_SAVED, 16},
	{"negative", PROGRAM(DW_CFA_GNU_negative_offset_extended, 6, 2), MW_ROW_SP, 8, MW_ROW_FP_SAVED, 16},
	{"restore", PROGRAM(DW_CFA_offset + 6, 2, STEP, DW_CFA_restore + 6), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"restore_extended", PROGRAM(DW_CFA_offset + 6, 2, DW_CFA_restore_extended, 6), MW_ROW_SP, 8, MW_ROW_FP_SAME,
	 0},
	{"restore ra", PROGRAM(DW_CFA_undefined, 16, DW_CFA_restore + 16), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"same_value", PROGRAM(DW_CFA_offset + 6, 2, DW_CFA_same_value, 6), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"fp undefined", PROGRAM(DW_CFA_undefined, 6), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"fp in a register", PROGRAM(DW_CFA_register, 6, 3), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"fp too far", PROGRAM(DW_CFA_offset + 6, 0x80, 0x80, 2), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"fp is a value", PROGRAM(DW_CFA_val_offset, 6, 2), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"fp at sp + 4", PROGRAM(DW_CFA_expression, 6, 2, DW_OP_breg7, 4), MW_ROW_SP, 8, MW_ROW_FP_SAVED, -4},
	{"fp at fp", PROGRAM(DW_CFA_expression, 6, 2, DW_OP_breg6, 0), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"fp at fp, used", PROGRAM(DW_CFA_def_cfa, 6, 16, DW_CFA_expression, 6, 2, DW_OP_breg6, 0), MW_ROW_FP, 16,
	 MW_ROW_FP_SAVED, -16},
	{"fp is fp + 0", PROGRAM(DW_CFA_val_expression, 6, 2, DW_OP_breg6, 0), MW_ROW_SP, 8, MW_ROW_FP_LOST, 0},
	{"realigned",
	 PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression, 6, 2, DW_OP_breg6,
		 0x70),
	 MW_ROW_FP_DEREF, -8, MW_ROW_FP_SAVED, -16},
	{"realigned, fp from the CFA",
	 PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_offset + 6, 2), MW_ROW_FP_DEREF,
	 -8, MW_ROW_FP_LOST, 0},
	{"realigned by sp", PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 8, DW_OP_deref), MW_ROW_SLOW, 0,
	 MW_ROW_FP_SAME, 0},
	{"not dereferenced", PROGRAM(DW_CFA_def_cfa_expression, 2, DW_OP_breg6, 8), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"more behind it", PROGRAM(DW_CFA_def_cfa_expression, 4, DW_OP_breg6, 8, DW_OP_deref, DW_OP_deref), MW_ROW_SLOW,
	 0, MW_ROW_FP_SAME, 0},
	{"another operation", PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 8, DW_OP_neg), MW_ROW_SLOW, 0,
	 MW_ROW_FP_SAME, 0},
	{"another register", PROGRAM(DW_CFA_def_cfa, 10, 0), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"… and back", PROGRAM(DW_CFA_def_cfa, 10, 0, STEP, DW_CFA_def_cfa_register, 7), MW_ROW_SP, 0, MW_ROW_FP_SAME,
	 0},
	{"too far", PROGRAM(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 8), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"far", PROGRAM(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 7), MW_ROW_SP, INT32_MAX, MW_ROW_FP_SAME, 0},
	{"outermost", PROGRAM(DW_CFA_undefined, 16), MW_ROW_END, 0, MW_ROW_FP_SAME, 0},
	{"ra elsewhere", PROGRAM(DW_CFA_offset + 16, 2), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"ra in a register", PROGRAM(DW_CFA_register, 16, 2), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"ra is the same", PROGRAM(DW_CFA_same_value, 16), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"ra at sp", PROGRAM(DW_CFA_expression, 16, 2, DW_OP_breg7, 0), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"ra above sp", PROGRAM(DW_CFA_expression, 16, 2, DW_OP_breg7, 8), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"sp saved", PROGRAM(DW_CFA_offset + 7, 2), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"sp is the CFA", PROGRAM(DW_CFA_val_offset, 7, 0), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"sp is not the CFA", PROGRAM(DW_CFA_val_offset_sf, 7, 1), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"other registers", PROGRAM(DW_CFA_offset + 3, 2, DW_CFA_expression, 12, 1, DW_OP_lit0, DW_CFA_undefined, 0),
	 MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"args_size", PROGRAM(DW_CFA_GNU_args_size, 0x80, 1), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"remembered", PROGRAM(DW_CFA_remember_state, DW_CFA_def_cfa_offset, 99, DW_CFA_restore_state), MW_ROW_SP, 8,
	 MW_ROW_FP_SAME, 0},
	{"remembered twice",
	 PROGRAM(DW_CFA_remember_state, DW_CFA_def_cfa_offset, 24, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 32,
		 DW_CFA_restore_state),
	 MW_ROW_SP, 24, MW_ROW_FP_SAME, 0},
	{"later", PROGRAM(STEP + 1, DW_CFA_def_cfa_offset, 16), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	{"advance_loc1", PROGRAM(DW_CFA_advance_loc1, 0x10, DW_CFA_def_cfa_offset, 16), MW_ROW_SP, 16, MW_ROW_FP_SAME,
	 0},
	{"advance_loc2", PROGRAM(DW_CFA_advance_loc2, 0x10, 0, DW_CFA_def_cfa_offset, 16), MW_ROW_SP, 16,
	 MW_ROW_FP_SAME, 0},
	{"advance_loc4", PROGRAM(DW_CFA_advance_loc4, 0x10, 0, 0, 0, DW_CFA_def_cfa_offset, 16), MW_ROW_SP, 16,
	 MW_ROW_FP_SAME, 0},
	{"beyond the end", PROGRAM(STEP, DW_CFA_advance_loc4, 0, 1, 0, 0, 0x3f), MW_ROW_SP, 8, MW_ROW_FP_SAME, 0},
	/* What is invalid makes all of it slow. */
	{"unknown", PROGRAM(STEP + 4, 0x3f), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"another architecture's", PROGRAM(DW_CFA_GNU_window_save), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"cut short", PROGRAM(STEP + 4, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_expression, 6, 100),
	 MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"nothing remembered", PROGRAM(DW_CFA_restore_state), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"remembered too often", PROGRAM(10, 10, 10, 10, 10, 10, 10, 10, 10), MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"half of a CFA", PROGRAM(DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 8), MW_ROW_SLOW, 0,
	 MW_ROW_FP_SAME, 0},
	{"a number too large", PROGRAM(DW_CFA_def_cfa_offset, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2),
	 MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
	{"a product too large", PROGRAM(DW_CFA_offset + 6, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1), MW_ROW_SLOW,
	 0, MW_ROW_FP_SAME, 0},
	{"a number too long", PROGRAM(DW_CFA_def_cfa_offset, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0),
	 MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0},
};

#endif
