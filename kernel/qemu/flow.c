// SPDX-License-Identifier: GPL-2.0
/* One end of a bulk transfer inside the guest of tools/ack-limit-qemu. Each
 * end tells how long it ran on the processor, ns, when it is done; the sender
 * also how long the transfer took, ns, and the round trips that it saw, us:
 *
 *   flow receive		RAN
 *   flow send ADDRESS BYTES	RAN TOOK MEAN P95
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 5001
#define BLOCK (64 * 1024)
/* From one look at the round trip to the next. */
#define LOOK (512 * 1024)

static char block[BLOCK];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static unsigned long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int longer(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static void receive_all(int s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(!bind(s, (void *)&at, sizeof(at)) && !listen(s, 1), "listen");
	s = accept(s, NULL, NULL);
	check(s >= 0, "accept");
	while (read(s, block, BLOCK) > 0)
		;
	printf("%llu\n", now(CLOCK_PROCESS_CPUTIME_ID));
}

static void send_all(int s, const char *address, unsigned long bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned int *rtts = calloc(bytes / LOOK + 1, sizeof(*rtts)), looks = 0;
	unsigned long long began, sum = 0;
	unsigned long sent;
	struct tcp_info info;
	socklen_t size;

	check(inet_pton(AF_INET, address, &to.sin_addr) == 1, address);
	check(!connect(s, (void *)&to, sizeof(to)), "connect");
	began = now(CLOCK_MONOTONIC);
	for (sent = 0; sent < bytes; sent += BLOCK) {
		check(write(s, block, BLOCK) == BLOCK, "write");
		if (sent % LOOK)
			continue;
		size = sizeof(info);
		getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &size);
		sum += info.tcpi_rtt;
		rtts[looks++] = info.tcpi_rtt;
	}
	/* All is there when the other end has closed. */
	shutdown(s, SHUT_WR);
	while (read(s, block, BLOCK) > 0)
		;
	qsort(rtts, looks, sizeof(*rtts), longer);
	printf("%llu %llu %llu %u\n", now(CLOCK_PROCESS_CPUTIME_ID),
	       now(CLOCK_MONOTONIC) - began, sum / looks,
	       rtts[(looks * 19 + 19) / 20 - 1]);
}

int main(int argc, char **argv)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);

	check(s >= 0, "socket");
	if (argc == 2 && !strcmp(argv[1], "receive"))
		receive_all(s);
	else if (argc == 4 && !strcmp(argv[1], "send"))
		send_all(s, argv[2], strtoul(argv[3], NULL, 10));
	else
		check(0, "flow receive | flow send ADDRESS BYTES");
	return 0;
}
