// SPDX-License-Identifier: MIT
/*
 * natively.c: memwatch under a valgrind that does not know some system calls (that of Debian 12, 3.19).
 *
 * libnatively.so is preloaded into memwatch and has pidfd_open() and pidfd_getfd() made by the program `natively`
 * beside it, which valgrind does not follow into (--trace-children=no). What the call returned comes back as a message:
 * a descriptor, or errno. openat2() is denied, which memwatch has an answer to. What some requests of ptrace() write
 * valgrind does not know of either: it is zeroed before.
 *
 *   natively SOCKET pidfd_open PID
 *   natively SOCKET pidfd_getfd PIDFD FD
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

#ifdef NATIVELY_PROGRAM

/* The descriptor, or -1 and what stopped it. */
static int answer(int socket, int fd, int error)
{
	union control control = {.room = {0}};
	struct iovec data = {&error, sizeof(error)};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0;
}

int main(int argc, char **argv)
{
	int fd = -1;

	if (argc < 4)
		return 2;
	errno = ENOSYS;
	if (strcmp(argv[2], "pidfd_open") == 0)
		fd = (int)syscall(SYS_pidfd_open, atoi(argv[3]), 0);
	else if (argc > 4 && strcmp(argv[2], "pidfd_getfd") == 0)
		fd = (int)syscall(SYS_pidfd_getfd, atoi(argv[3]), atoi(argv[4]), 0);
	return answer(atoi(argv[1]), fd, fd < 0 ? errno : 0);
}

#else

#include <fcntl.h>

#define FIRST_PASSED 10 /* descriptors for the program: above those that it might use itself */

static char program[4096];

/* Neither the launched process nor anything else that memwatch starts is to have this library. valgrind is started with
 * it as well, and hands it on together with its own. */
__attribute__((constructor)) static void find_program(void)
{
	const char *preloaded = getenv("LD_PRELOAD");
	Dl_info info;
	const char *slash;

	if (preloaded && strstr(preloaded, "vgpreload"))
		unsetenv("LD_PRELOAD");
	if (!dladdr((const void *)find_program, &info) || !(slash = strrchr(info.dli_fname, '/')))
		return;
	(void)snprintf(program, sizeof(program), "%.*s/natively", (int)(slash - info.dli_fname), info.dli_fname);
}

static int receive(int socket)
{
	union control control = {.room = {0}};
	int error = EIO, fd = -1;
	struct iovec data = {&error, sizeof(error)};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got == (ssize_t)sizeof(error) && !error && message.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	if (fd < 0)
		errno = got == (ssize_t)sizeof(error) && error ? error : EIO;
	return fd;
}

/* In the child: what is passed must outlive the exec. */
static _Noreturn void start(int socket, const char *call, int process, int fd)
{
	char texts[3][16];

	socket = fcntl(socket, F_DUPFD, FIRST_PASSED);
	if (fd >= 0) /* of the process that its pidfd tells */
		process = fcntl(process, F_DUPFD, FIRST_PASSED);
	(void)snprintf(texts[0], sizeof(texts[0]), "%d", socket);
	(void)snprintf(texts[1], sizeof(texts[1]), "%d", process);
	(void)snprintf(texts[2], sizeof(texts[2]), "%d", fd);
	execl(program, "natively", texts[0], call, texts[1], fd >= 0 ? texts[2] : NULL, (char *)NULL);
	_exit(127);
}

/* pidfd_open of a process, where `fd` is -1; pidfd_getfd of a pidfd. */
static int natively(const char *call, int process, int fd)
{
	int ends[2], got, saved;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	child = fork();
	if (child == 0)
		start(ends[1], call, process, fd);
	close(ends[1]);
	got = child < 0 ? -1 : receive(ends[0]);
	saved = errno;
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	errno = saved;
	return got;
}

long syscall(long number, ...)
{
	static long (*next)(long number, ...);
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat2) {
		errno = ENOSYS;
		return -1;
	}
	if (number == SYS_pidfd_open)
		return natively("pidfd_open", (int)arguments[0], -1);
	if (number == SYS_pidfd_getfd)
		return natively("pidfd_getfd", (int)arguments[0], (int)arguments[1]);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

long ptrace(enum __ptrace_request request, ...)
{
	static long (*next)(enum __ptrace_request request, ...);
	va_list list;
	pid_t tid;
	void *addr, *data;

	va_start(list, request);
	tid = va_arg(list, pid_t);
	addr = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_GETSIGMASK)
		memset(data, 0, (size_t)addr);
	else if (request == PTRACE_PEEKSIGINFO)
		memset(data, 0, (size_t)((struct __ptrace_peeksiginfo_args *)addr)->nr * sizeof(siginfo_t));
	if (!next)
		next = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
	return next(request, tid, addr, data);
}

#endif
