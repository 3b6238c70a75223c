// SPDX-License-Identifier: MIT
/* births.c: see births.h. */
#include "proc/births.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BUFFER    (1 << 20) /* bytes of messages that wait, for a few thousand of them */
#define ANSWER_MS 20

/* What stands before an event, and the largest message that has one. */
#define HEAD    (NLMSG_HDRLEN + sizeof(struct cn_msg))
#define MESSAGE (HEAD + sizeof(struct proc_event))

/* One message: 1: an event; 0: something else; -1: nothing, errno says why. */
static int receive(int fd, struct proc_event *event)
{
	uint8_t bytes[MESSAGE];
	struct sockaddr_nl from = {.nl_family = AF_UNSPEC};
	socklen_t from_size = sizeof(from);
	struct cn_msg head;
	ssize_t got = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);

	if (got < 0)
		return -1;
	/* Only the kernel may say so. */
	if (from.nl_pid != 0 || (size_t)got < HEAD)
		return 0;
	memcpy(&head, bytes + NLMSG_HDRLEN, sizeof(head));
	if (head.id.idx != CN_IDX_PROC || head.id.val != CN_VAL_PROC)
		return 0;
	memset(event, 0, sizeof(*event));
	memcpy(event, bytes + HEAD, (size_t)got - HEAD);
	return 1;
}

/* struct proc_input of the kernel; without `kinds` it sends all, and an answer first. */
static bool ask(int fd, uint32_t kinds)
{
	const uint32_t input[] = {PROC_CN_MCAST_LISTEN, kinds};
	const uint16_t size = kinds ? sizeof(input) : sizeof(*input);
	struct cn_msg head = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = size};
	struct nlmsghdr message = {.nlmsg_len = (uint32_t)HEAD + size, .nlmsg_type = NLMSG_DONE};
	uint8_t bytes[HEAD + sizeof(input)];

	memcpy(bytes, &message, sizeof(message));
	memcpy(bytes + NLMSG_HDRLEN, &head, sizeof(head));
	memcpy(bytes + HEAD, input, size);
	return send(fd, bytes, HEAD + size, 0) == (ssize_t)(HEAD + size);
}

/* Before 6.6 the kernel would go on to make these messages, for nobody, when memwatch has been killed. */
static bool stops_by_itself(void)
{
	struct utsname kernel;
	char *end;
	unsigned long major, minor;

	if (uname(&kernel) != 0)
		return false;
	major = strtoul(kernel.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > 6 || (major == 6 && minor >= 6);
}

/* The kernel says nothing at all to those that it refuses. */
static bool is_answered(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	struct proc_event event;

	while (poll(&wait, 1, ANSWER_MS) == 1) {
		int got = receive(fd, &event);

		if (got < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
			return false;
		if (got > 0 && event.what == PROC_EVENT_NONE)
			return event.event_data.ack.err == 0;
		if (got > 0)
			return true;
	}
	return false;
}

int mw_births_open(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	int size = BUFFER, fd;

	if (!stops_by_itself())
		return -1;
	fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && ask(fd, 0) && is_answered(fd) &&
	    ask(fd, PROC_EVENT_FORK | PROC_EVENT_EXEC))
		return fd;
	close(fd);
	return -1;
}

struct mw_birth mw_birth_next(int fd)
{
	struct proc_event event;
	int got;

	while ((got = receive(fd, &event)) >= 0) {
		if (!got)
			continue;
		if (event.what == PROC_EVENT_EXEC)
			return (struct mw_birth){.kind = MW_BIRTH_EXEC, .pid = event.event_data.exec.process_tgid};
		/* Its own group: not a thread. */
		if (event.what == PROC_EVENT_FORK &&
		    event.event_data.fork.child_pid == event.event_data.fork.child_tgid)
			return (struct mw_birth){.kind = MW_BIRTH_FORK,
						 .pid = event.event_data.fork.child_tgid,
						 .parent = event.event_data.fork.parent_tgid};
	}
	return (struct mw_birth){.kind = errno == ENOBUFS ? MW_BIRTH_LOST : MW_BIRTH_NONE};
}
