// SPDX-License-Identifier: MIT
/* sample_library.c: a library of every kind of symbol that the image reader must tell apart. */

int sample_variable = 5;
extern int sample_missing(int) __attribute__((weak));
__thread int sample_thread_local __attribute__((tls_model("initial-exec")));

int sample_function(int x);
int sample_other(int x);
int sample_new(int x);
int sample_old(int x);
int sample_chosen(int x);

static __attribute__((noinline, used)) int sample_local(int x)
{
	return x * 3;
}

int sample_function(int x)
{
	return sample_local(x) + sample_variable;
}

int sample_other(int x)
{
	return sample_missing ? sample_missing(x) : x;
}

int sample_new(int x)
{
	return x + 2;
}

int sample_old(int x)
{
	return x + 1;
}

__asm__(".symver sample_old, sample_versioned@OLD_1");
__asm__(".symver sample_new, sample_versioned@@NEW_1");

static __attribute__((used)) int (*choose(void))(int)
{
	return sample_local;
}

int sample_chosen(int x) __attribute__((ifunc("choose")));
