// SPDX-License-Identifier: MIT
/* demangle_test.c: names in, names out. */
#include "symbol/demangle.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *symbol, *name;
} cases[] = {
	/* C, and what merely looks like something else */
	{"main", "main"},
	{"", ""},
	{"_", "_"},
	{"_start", "_start"},
	{"_Zfoo", "_Zfoo"},
	{"_Dfoo", "_Dfoo"},
	{"_Rfoo", "_Rfoo"},
	{"foo.constprop.0", "foo.constprop.0"},
	{"foo.cold", "foo.cold"},
	/* versions */
	{"malloc@@GLIBC_2.2.5", "malloc"},
	{"cfree@GLIBC_2.2.5", "cfree"},
	{"@odd", "@odd"},
	{"_ZNSsC1Ev@@GLIBCXX_3.4",
	 "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string()"},
	/* C++ */
	{"_Znwm", "operator new(unsigned long)"},
	{"_ZdaPvmSt11align_val_t", "operator delete[](void*, unsigned long, std::align_val_t)"},
	{"_ZN3FooC4Ev", "Foo::Foo()"},
	{"_ZN3FooD0Ev", "Foo::~Foo()"},
	{"_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo(int)"},
	{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
	{"_Z3fooIiEvT_", "foo<int>(int)"},
	{"_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"},
	{"_ZN3foo3barEv.part.0", "foo::bar() [clone .part.0]"},
	{"_ZN3foo3barEv.isra.0.constprop.1", "foo::bar() [clone .isra.0] [clone .constprop.1]"},
	/* Rust, legacy */
	{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
	{"_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17hb4f3a1c09e8d7265E", "alloc::vec::Vec<T,A>::push"},
	{"_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE.llvm.123", "alloc::alloc::exchange_malloc"},
	/* Rust, v0 */
	{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	{"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"},
	/* D */
	{"_D8demangle4testFaZv", "demangle.test(char)"},
	{"_Dmain", "D main"},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *name = mw_demangle(cases[i].symbol);

		assert_non_null(name);
		if (strcmp(name, cases[i].name) != 0)
			print_error("case %zu: %s\n", i, cases[i].symbol);
		assert_string_equal(name, cases[i].name);
		free(name);
	}
}

/* Names from a hostile file: no crash, a name in any case. */
static void test_long_names(void **state)
{
	const char *const openings[] = {"_Z", "_R", "_ZN", "_RI", "_D", "_ZP", "_RB"};
	char *symbol = malloc(200001);

	(void)state;
	assert_non_null(symbol);
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		for (size_t length = 1000; length <= 200000; length *= 200) {
			char *name;

			memset(symbol, openings[i][strlen(openings[i]) - 1], length);
			memcpy(symbol, openings[i], strlen(openings[i]));
			symbol[length] = '\0';
			name = mw_demangle(symbol);
			assert_non_null(name);
			free(name);
		}
	}
	free(symbol);
}

UNIT_GROUP(demangle)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
