/* SPDX-License-Identifier: MIT */
/*
 * kernel_holds MODE: one block that nobody holds ("lost"), and one of another size ("held") that only the kernel holds:
 *
 *      uring     by a request of an io_uring that is not mapped any more
 *      polled    by one of an io_uring that a thread of the kernel's looks after
 *      ended     by an epoll set and a pipe, after the main thread has ended
 *      messages  by a message in a Unix socket of its own, behind another
 *      confined  by nothing (it is lost as well); a seccomp filter permits no fork
 *      executes  by nothing; executes another program in the end
 */
#include "target.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOST 5000
#define HELD 7000

static const char *mode;
static atomic_bool planted;

static KEEP void *block(const char *name, size_t size)
{
	target_say(name, size);
	return target_filled(size, 0);
}

static KEEP void lose(void)
{
	OPAQUE((void *){block("lost", LOST)});
}

static KEEP void plant_request(unsigned flags)
{
	struct io_uring_params params = {.flags = flags, .sq_thread_idle = 5000};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params), ends[2];
	size_t size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	struct io_uring_sqe *request;
	char *queue;

	if (ring < 0) {
		target_say("unavailable", (uint64_t)errno);
		return;
	}
	queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	request = mmap(NULL, params.sq_entries * sizeof(*request), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		       IORING_OFF_SQES);
	if (queue == MAP_FAILED || request == MAP_FAILED || pipe(ends) != 0)
		target_fail("no io_uring");
	request->opcode = IORING_OP_POLL_ADD;
	request->fd = ends[0];
	request->poll32_events = POLLIN;
	request->user_data = (uintptr_t)block("held", HELD);
	((unsigned *)(void *)(queue + params.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(void *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, ring, 1, 0, flags ? IORING_ENTER_SQ_WAKEUP : 0, NULL, 0);
	while (__atomic_load_n((unsigned *)(void *)(queue + params.sq_off.head), __ATOMIC_ACQUIRE) == 0)
		usleep(1000);
	memset(request, 0, sizeof(*request));
	if (flags)
		return;
	munmap(queue, size);
	munmap(request, params.sq_entries * sizeof(*request));
}

static KEEP void plant_descriptors(void)
{
	struct epoll_event event = {.data.ptr = block("held", HELD)};
	void *message = block("held_by_pipe", HELD + 64);
	int ends[2];

	epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, eventfd(0, 0), &event);
	if (pipe(ends) != 0 || write(ends[1], &message, sizeof(message)) != sizeof(message))
		target_fail("can't write to a pipe");
	memset(&event, 0, sizeof(event));
	OPAQUE(message);
}

static KEEP void plant_message(int type, const char *name, size_t size)
{
	void *message = block(name, size);
	int ends[2];

	if (socketpair(AF_UNIX, type, 0, ends) != 0 || write(ends[1], "x", 1) != 1 ||
	    write(ends[1], &message, sizeof(message)) != sizeof(message))
		target_fail("can't write to a socket");
	OPAQUE(message);
}

static KEEP void plant(void)
{
	lose();
	if (strcmp(mode, "uring") == 0)
		plant_request(0);
	else if (strcmp(mode, "polled") == 0)
		plant_request(IORING_SETUP_SQPOLL);
	else if (strcmp(mode, "ended") == 0)
		plant_descriptors();
	else if (strcmp(mode, "messages") == 0)
		plant_message(SOCK_STREAM, "held", HELD);
}

static KEEP void scrub(void)
{
	volatile char dead[32768];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
}

static void *run(void *unused)
{
	(void)unused;
	plant();
	scrub();
	planted = true;
	for (;;)
		pause();
	return NULL;
}

static void *finish(void *unused)
{
	(void)unused;
	target_done();
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;

	mode = argc > 1 ? argv[1] : "";
	target_ready();
	if (strcmp(mode, "polled") == 0 || strcmp(mode, "confined") == 0) {
		plant(); /* with no other thread that could be made to do anything */
		scrub();
	} else {
		if (pthread_create(&thread, NULL, run, NULL) != 0)
			target_fail("no thread");
		while (!planted)
			usleep(1000);
	}
	if (strcmp(mode, "ended") == 0) {
		if (pthread_create(&thread, NULL, finish, NULL) != 0)
			target_fail("no thread");
		pthread_exit(NULL);
	}
	if (strcmp(mode, "confined") == 0) {
		prctl(PR_SET_SECCOMP, 1);
		target_say_text("done");
		if (read(STDIN_FILENO, &byte, 1) >= 0)
			syscall(SYS_exit, 0);
	}
	target_done();
	if (strcmp(mode, "executes") == 0)
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
	return 0;
}
