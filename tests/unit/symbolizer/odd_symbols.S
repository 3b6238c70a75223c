/* SPDX-License-Identifier: MIT */
/* Symbols in each other, over each other, of every binding, with and without a size (index_test.c). */
	.text
	.macro sym name, binding, start, size
	.ifc \binding, local
	.local \name
	.else
	.\binding \name
	.endif
	.type \name, @function
	.set \name, base + \start
	.size \name, \size
	.endm
	.p2align 12
base:
	.fill 4096, 1, 0x90

	sym weak_first, weak, 16, 64
	sym global_same, globl, 16, 64
	sym local_same, local, 16, 64
	sym global_shorter, globl, 16, 32
	sym weak_shortest, weak, 16, 8
	sym outer, globl, 128, 256
	sym inner_weak, weak, 192, 64
	sym inner_global, globl, 208, 16
	sym inner_local, local, 210, 4
	sym across, weak, 240, 256
	sym outer_weak, weak, 600, 200
	sym inner_of_weak, weak, 620, 20
	sym inner_local_of_weak, local, 640, 20
	sym alias_one, globl, 900, 20
	sym alias_two, globl, 900, 20
	sym local_outer, local, 1000, 100
	sym local_inner, local, 1020, 10
	sym local_label, local, 1030, 0
	sym global_label, globl, 1040, 0
	sym far_label, globl, 1200, 0
	sym weak_label, weak, 1210, 0
	sym label_again, local, 1210, 0
	sym reaches_far, globl, 1300, 1000
	sym covered_label, globl, 1400, 0
	sym after, local, 1500, 1
	sym right_before, globl, 2400, 10
	sym right_behind, globl, 2410, 10
	sym label_of_both, globl, 2410, 0
	.set absolute, 3000
	.globl absolute
	.globl object
	.type object, @object
	.set object, base + 3000
	.size object, 8
	.section .tbss, "awT", @nobits
	.globl of_threads
	.type of_threads, @object
	.size of_threads, 4000
of_threads:
	.zero 4000
	.section .note.GNU-stack, "", @progbits
