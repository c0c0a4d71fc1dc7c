/*
 * Drives the door as packetdrill does: packets by netdev_send and netdev_receive, calls that block on a thread of
 * their own whose state is read from /proc, times by gettimeofday. Ends with 0 if all that it expects was seen.
 *
 * usage: drive LIBRARY 4|6 [preloaded]
 */
#define _GNU_SOURCE
#include "acklab_door.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct packetdrill_interface door;
static int v6;

#define EXPECT(condition, ...)                                                      \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "line %d: %s; ", __LINE__, #condition);                 \
            fprintf(stderr, __VA_ARGS__);                                           \
            fprintf(stderr, "\n");                                                  \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static const char *host_name(void) { return v6 ? "fd3d:a0b:17d6::1" : "192.168.0.1"; }
static const char *peer_name(void) { return v6 ? "fd3d:fa7b:d17d::1" : "192.0.2.1"; }

static long long now(void) {
    struct timeval at;
    door.gettimeofday(door.userdata, &at, NULL);
    return at.tv_sec * 1000000LL + at.tv_usec;
}

static socklen_t place(struct sockaddr_storage *all, const char *name, int port) {
    memset(all, 0, sizeof *all);
    if (v6) {
        struct sockaddr_in6 *at = (void *)all;
        at->sin6_family = AF_INET6;
        at->sin6_port = htons(port);
        inet_pton(AF_INET6, name, &at->sin6_addr);
        return sizeof *at;
    }
    struct sockaddr_in *at = (void *)all;
    at->sin_family = AF_INET;
    at->sin_port = htons(port);
    inet_pton(AF_INET, name, &at->sin_addr);
    return sizeof *at;
}

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

struct seen {
    long long at;
    uint16_t from, to;
    uint32_t seq, ack;
    int flags, bytes, options;
    uint32_t stamp;
};

static uint32_t sum(const uint8_t *bytes, size_t count, uint32_t total) {
    for (size_t at = 0; at < count; at++) total += at % 2 ? bytes[at] : bytes[at] << 8;
    return total;
}

static uint16_t fold(uint32_t total) {
    while (total >> 16) total = (total >> 16) + (total & 0xffff);
    return total;
}

static size_t header(uint8_t *packet, int protocol, size_t behind, const char *from, const char *to) {
    if (v6) {
        memset(packet, 0, 40);
        packet[0] = 0x60;
        packet[4] = behind >> 8, packet[5] = behind;
        packet[6] = protocol, packet[7] = 255;
        inet_pton(AF_INET6, from, packet + 8);
        inet_pton(AF_INET6, to, packet + 24);
        return 40;
    }
    memset(packet, 0, 20);
    packet[0] = 0x45;
    packet[2] = (behind + 20) >> 8, packet[3] = behind + 20;
    packet[8] = 255, packet[9] = protocol;
    inet_pton(AF_INET, from, packet + 12);
    inet_pton(AF_INET, to, packet + 16);
    return 20;
}

static void put(uint8_t *at, uint32_t value) {
    for (int byte = 0; byte < 4; byte++) at[byte] = value >> (24 - 8 * byte);
}

static uint32_t get(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* A segment of the peer's; a SYN has an MSS of 1000 and permits SACK, the others have no options. */
static void inject(int from, int to, uint32_t seq, uint32_t ack, int flags, int bytes) {
    uint8_t packet[4096];
    int options = flags & SYN ? 8 : 0;
    size_t start = header(packet, 6, 20 + options + bytes, peer_name(), host_name());
    uint8_t *tcp = packet + start;
    memset(tcp, 0, 20 + options + bytes);
    tcp[0] = from >> 8, tcp[1] = from, tcp[2] = to >> 8, tcp[3] = to;
    put(tcp + 4, seq);
    put(tcp + 8, ack);
    tcp[12] = (20 + options) / 4 << 4, tcp[13] = flags;
    tcp[14] = 0xff, tcp[15] = 0xff;
    if (options) memcpy(tcp + 20, (uint8_t[]){2, 4, 1000 >> 8, 1000 & 255, 1, 1, 4, 2}, 8);
    EXPECT(door.netdev_send(door.userdata, packet, start + 20 + options + bytes) == 0, "send");
}

static struct seen sniff_to(int room) {
    static uint8_t packet[65536];
    size_t size = room;
    struct seen seen = {0};
    EXPECT(door.netdev_receive(door.userdata, packet, &size, &seen.at) == 0, "receive");
    if (size == 0) return seen;
    EXPECT(size <= (size_t)room, "%zu bytes", size);
    EXPECT(packet[0] >> 4 == (v6 ? 6 : 4), "version %d", packet[0] >> 4);
    size_t start = v6 ? 40 : 20, length = packet[v6 ? 4 : 2] << 8 | packet[v6 ? 5 : 3];
    EXPECT(length + (v6 ? 40 : 0) == size, "length %zu of %zu", length, size);
    uint8_t *tcp = packet + start;
    size_t count = size - start;
    /* The checksums are right: sums over all are 0xffff (RFC 1071). */
    uint32_t pseudo = sum(packet + (v6 ? 8 : 12), v6 ? 32 : 8, 6 + count);
    EXPECT(fold(sum(tcp, count, pseudo)) == 0xffff, "TCP checksum");
    if (!v6) EXPECT(fold(sum(packet, 20, 0)) == 0xffff, "IP checksum");
    seen.from = tcp[0] << 8 | tcp[1], seen.to = tcp[2] << 8 | tcp[3];
    seen.seq = get(tcp + 4), seen.ack = get(tcp + 8);
    seen.flags = tcp[13];
    seen.options = (tcp[12] >> 4) * 4 - 20;
    seen.bytes = count - 20 - seen.options;
    return seen;
}

static struct seen sniff(void) { return sniff_to(65536); }

/* Calls that block: each has its thread, and its result the time at which it ended. */
struct call {
    int kind, fd, result, error, port;
    pid_t thread;
    long long ended;
    pthread_t handle;
};
enum { ACCEPT, READ, POLL, CONNECT };

static void *blocks(void *argument) {
    struct call *call = argument;
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    char buffer[100];
    struct pollfd ready = {.fd = call->fd, .events = POLLIN};
    __atomic_store_n(&call->thread, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    switch (call->kind) {
    case ACCEPT:
        call->result = door.accept(door.userdata, call->fd, (void *)&peer, &length);
        call->port = ntohs(v6 ? ((struct sockaddr_in6 *)&peer)->sin6_port : ((struct sockaddr_in *)&peer)->sin_port);
        break;
    case READ:
        call->result = door.read(door.userdata, call->fd, buffer, sizeof buffer);
        break;
    case POLL:
        call->result = door.poll(door.userdata, &ready, 1, 50);
        break;
    case CONNECT:
        length = place(&peer, peer_name(), 9000);
        call->result = door.connect(door.userdata, call->fd, (void *)&peer, length);
    }
    call->error = errno;
    call->ended = now();
    return NULL;
}

/* Starts a call and waits until its thread sleeps. */
static void begin(struct call *call, int kind, int fd) {
    memset(call, 0, sizeof *call);
    call->kind = kind;
    call->fd = fd;
    EXPECT(pthread_create(&call->handle, NULL, blocks, call) == 0, "thread");
    for (;;) {
        pid_t thread = __atomic_load_n(&call->thread, __ATOMIC_SEQ_CST);
        char name[64], text[256] = "";
        snprintf(name, sizeof name, "/proc/self/task/%d/stat", thread);
        FILE *file = thread ? fopen(name, "r") : NULL;
        if (file) {
            char *got = fgets(text, sizeof text, file), *state = got ? strrchr(text, ')') : NULL;
            fclose(file);
            if (state && state[2] == 'S') return;
        }
        sched_yield();
    }
}

static void end(struct call *call) { pthread_join(call->handle, NULL); }

static uint32_t isn, port = 50000;

/* A connection of the peer's to `listener`, accepted by a blocked thread; the handshake takes 100 ms. */
static int connection(int listener, struct seen *answer) {
    struct call call;
    begin(&call, ACCEPT, listener);
    port++;
    inject(port, 8080, 0, 0, SYN, 0);
    *answer = sniff();
    EXPECT(answer->flags == (SYN | ACK) && answer->ack == 1, "flags %d ack %u", answer->flags, answer->ack);
    EXPECT(answer->from == 8080 && answer->to == port && answer->options == 8, "%d bytes of options", answer->options);
    isn = answer->seq;
    door.usleep(door.userdata, 100000);
    inject(port, 8080, 1, isn + 1, ACK, 0);
    long long at = now();
    end(&call);
    EXPECT(call.result > 2, "accept gave %d", call.result);
    EXPECT(call.port == (int)port, "port %d", call.port);
    EXPECT(call.ended - at <= 0 && at - call.ended < 100, "accept ended at %lld, the ACK came at %lld", call.ended, at);
    EXPECT(at - answer->at >= 100000 && at - answer->at < 100100, "%lld us", at - answer->at);
    return call.result;
}

static void time_outs(int fd) {
    char data[3000] = {0};
    EXPECT(door.write(door.userdata, fd, data, sizeof data) == 3000, "write");
    long long wrote = now();
    uint32_t next = isn + 1;
    while (next != isn + 3001) {
        /* A small room: the burst comes in packets. */
        struct seen seen = sniff_to(1500);
        EXPECT(seen.seq == next && seen.bytes == 1000, "%u: %d bytes", seen.seq - isn, seen.bytes);
        EXPECT(wrote - seen.at >= 0 && wrote - seen.at < 100, "late by %lld", wrote - seen.at);
        /* PSH ends each burst: of two packets first. */
        EXPECT(!!(seen.flags & PSH) == (seen.seq != isn + 1), "flags %d", seen.flags);
        next += seen.bytes;
    }
    /* A tail loss probe after two round trips of 100 ms (RFC 8985 section 7.2), then the time-out, doubled. */
    struct seen probe = sniff();
    EXPECT(probe.seq == isn + 2001 && probe.bytes == 1000, "%u", probe.seq - isn);
    EXPECT(probe.at - wrote >= 199900 && probe.at - wrote < 206000, "probe after %lld", probe.at - wrote);
    struct seen first = sniff();
    EXPECT(first.seq == isn + 1, "%u", first.seq - isn);
    /* Another thread sleeps in the meantime: its time-out of 50 ms is exact, and the clock waits for it. */
    struct call call;
    begin(&call, POLL, fd);
    long long before = now();
    struct seen second = sniff();
    end(&call);
    EXPECT(call.result == 0, "poll gave %d", call.result);
    EXPECT(call.ended - before >= 49900 && call.ended - before < 50100, "poll took %lld", call.ended - before);
    EXPECT(second.seq == isn + 1, "%u", second.seq - isn);
    EXPECT(second.at - first.at > 590000 && second.at - first.at < 640000, "doubled: %lld", second.at - first.at);
    inject(port, 8080, 1, isn + 3001, ACK, 0);
}

static void data_and_options(int fd, int preloaded) {
    struct call call;
    begin(&call, READ, fd);
    door.usleep(door.userdata, 10000);
    long long before = now();
    inject(port, 8080, 1, isn + 3001, ACK | PSH, 5);
    end(&call);
    EXPECT(call.result == 5, "read gave %d", call.result);
    EXPECT(call.ended - before < 100, "read ended %lld later", call.ended - before);
    struct seen ack = sniff();
    EXPECT(ack.flags == ACK && ack.ack == 6, "ack %u", ack.ack);

    int unread = -1;
    inject(port, 8080, 6, isn + 3001, ACK | PSH, 7);
    EXPECT(door.ioctl(door.userdata, fd, FIONREAD, &unread) == 0 && unread == 7, "FIONREAD %d", unread);
    char buffer[100];
    struct iovec parts[2] = {{buffer, 3}, {buffer + 3, 97}};
    EXPECT(door.readv(door.userdata, fd, parts, 2) == 7, "readv");
    EXPECT(door.recv(door.userdata, fd, buffer, 100, MSG_DONTWAIT) == -1 && errno == EAGAIN, "errno %d", errno);
    EXPECT(door.read(door.userdata, 12345, buffer, 1) == -1 && errno == EBADF, "errno %d", errno);

    struct tcp_info info;
    socklen_t length = sizeof info;
    memset(&info, 0, sizeof info);
    EXPECT(door.getsockopt(door.userdata, fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0, "TCP_INFO");
    EXPECT(info.tcpi_state == TCP_ESTABLISHED && info.tcpi_total_retrans == 3, "%u retransmissions", info.tcpi_total_retrans);
    EXPECT(info.tcpi_snd_mss == 1000, "mss %u", info.tcpi_snd_mss);
    struct tcp_info again;
    length = sizeof again;
    int done = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &again, &length);
    if (preloaded)
        EXPECT(done == 0 && memcmp(&info, &again, sizeof info) == 0, "the C library's is another");
    else
        EXPECT(done == -1 && errno == ENOTSOCK, "errno %d", errno);

    /* A poll of the thread that moves the clock moves it. */
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    before = now();
    EXPECT(door.poll(door.userdata, &ready, 1, 30) == 0, "poll");
    EXPECT(now() - before >= 30000 && now() - before < 30100, "%lld", now() - before);
    int epoll = door.epoll_create(door.userdata, 1);
    struct epoll_event event = {.events = EPOLLOUT, .data.u64 = 42}, got = {0};
    EXPECT(door.epoll_ctl(door.userdata, epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    EXPECT(door.epoll_wait(door.userdata, epoll, &got, 1, 0) == 1 && got.data.u64 == 42, "epoll_wait");
    EXPECT(got.events == EPOLLOUT, "%x", got.events);
    EXPECT(door.close(door.userdata, epoll) == 0, "close");
    /* Descriptors are the process's: nothing else gets this number. */
    EXPECT(fcntl(fd, F_GETFD) >= 0, "no descriptor");
    EXPECT(door.fcntl(door.userdata, fd, F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
    EXPECT(door.fcntl(door.userdata, fd, F_GETFL) == (O_RDWR | O_NONBLOCK), "F_GETFL");
}

static void ends(int fd) {
    EXPECT(door.close(door.userdata, fd) == 0, "close");
    EXPECT(fcntl(fd, F_GETFD) == -1, "still open");
    struct seen seen = sniff();
    while (seen.flags == ACK) seen = sniff();
    EXPECT(seen.flags == (FIN | ACK) && seen.seq == isn + 3001, "flags %d", seen.flags);
    inject(port, 8080, 13, isn + 3002, ACK | FIN, 0);
    seen = sniff();
    EXPECT(seen.flags == ACK && seen.ack == 14 && seen.seq == isn + 3002, "flags %d ack %u", seen.flags, seen.ack);
}

static void refused(void) {
    struct call call;
    int fd = door.socket(door.userdata, v6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP);
    begin(&call, CONNECT, fd);
    struct seen syn = sniff();
    EXPECT(syn.flags == SYN && syn.to == 9000, "flags %d", syn.flags);
    struct seen again = sniff();
    EXPECT(again.seq == syn.seq && again.at - syn.at == 1000000, "SYN again after %lld", again.at - syn.at);
    /* Port unreachable, about the SYN. */
    uint8_t message[200], *icmp;
    size_t quoted = v6 ? 60 : 40, start = header(message, v6 ? 58 : 1, 8 + quoted, peer_name(), host_name());
    icmp = message + start;
    memset(icmp, 0, 8 + quoted);
    icmp[0] = v6 ? 1 : 3, icmp[1] = v6 ? 4 : 3;
    uint8_t *tcp = icmp + 8 + header(icmp + 8, 6, 20, host_name(), peer_name());
    tcp[0] = syn.from >> 8, tcp[1] = syn.from, tcp[2] = 9000 >> 8, tcp[3] = 9000 & 255;
    put(tcp + 4, syn.seq);
    EXPECT(door.netdev_send(door.userdata, message, start + 8 + quoted) == 0, "send");
    end(&call);
    EXPECT(call.result == -1 && call.error == ECONNREFUSED, "connect gave %d, errno %d", call.result, call.error);
    EXPECT(call.ended - again.at < 100, "ended %lld later", call.ended - again.at);
    EXPECT(door.close(door.userdata, fd) == 0, "close");
}

int main(int count, char **words) {
    EXPECT(count > 2, "usage: drive LIBRARY 4|6 [preloaded]");
    v6 = words[2][0] == '6';
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND);
    EXPECT(library, "%s", dlerror());
    void (*init)(const char *, struct packetdrill_interface *) = dlsym(library, "packetdrill_interface_init");
    EXPECT(init, "%s", dlerror());
    init("tcp_ecn=0,tcp_congestion_control=reno", &door);

    int listener = door.socket(door.userdata, v6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP);
    struct sockaddr_storage here;
    socklen_t length = place(&here, host_name(), 8080);
    EXPECT(door.bind(door.userdata, listener, (void *)&here, length) == 0, "bind");
    EXPECT(door.listen(door.userdata, listener, 1) == 0, "listen");
    EXPECT(door.socket(door.userdata, AF_INET, SOCK_DGRAM, 0) == -1 && errno == ESOCKTNOSUPPORT, "UDP");

    struct seen answer;
    int fd = connection(listener, &answer);
    time_outs(fd);
    data_and_options(fd, count > 3);
    ends(fd);
    refused();
    EXPECT(door.close(door.userdata, listener) == 0, "close");
    /* Nothing will ever leave again; and a call that would sleep for ever ends. */
    EXPECT(sniff().at == 0, "a packet");
    int ends[2];
    char byte;
    EXPECT(door.pipe(door.userdata, ends) == 0, "pipe");
    EXPECT(door.read(door.userdata, ends[0], &byte, 1) == -1 && errno == EDEADLK, "errno %d", errno);
    door.free(door.userdata);
    puts("all was seen");
    return 0;
}
