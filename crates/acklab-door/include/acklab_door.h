/*
 * acklab's host with TCP sockets as a shared library: what a program finds behind
 *
 *     dlsym(handle, "packetdrill_interface_init")
 *
 * Order and types of the functions are those that packetdrill expects of a stack under test (--so_filename). Each
 * has the arguments, the result and the errors of the call of its name, behind the door itself. Payload has no
 * content: what is read is 'x' for every byte. Time is virtual and moves in usleep, by 1 us in gettimeofday, and
 * in netdev_receive to the next timer; it stands still while a thread that slept in a call has not asked for it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ACKLAB_DOOR_H
#define ACKLAB_DOOR_H

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The first argument of every function. */
typedef void *acklab_door;

struct packetdrill_interface {
    acklab_door userdata;
    void (*free)(acklab_door);

    /* Opening. */
    int (*socket)(acklab_door, int family, int type, int protocol);
    int (*bind)(acklab_door, int fd, const struct sockaddr *, socklen_t);
    int (*listen)(acklab_door, int fd, int backlog);
    int (*accept)(acklab_door, int fd, struct sockaddr *, socklen_t *);
    int (*connect)(acklab_door, int fd, const struct sockaddr *, socklen_t);

    /* Data. */
    ssize_t (*read)(acklab_door, int fd, void *, size_t);
    ssize_t (*readv)(acklab_door, int fd, const struct iovec *, int count);
    ssize_t (*recv)(acklab_door, int fd, void *, size_t, int flags);
    ssize_t (*recvfrom)(acklab_door, int fd, void *, size_t, int flags, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(acklab_door, int fd, struct msghdr *, int flags);
    ssize_t (*write)(acklab_door, int fd, const void *, size_t);
    ssize_t (*writev)(acklab_door, int fd, const struct iovec *, int count);
    ssize_t (*send)(acklab_door, int fd, const void *, size_t, int flags);
    ssize_t (*sendto)(acklab_door, int fd, const void *, size_t, int flags, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(acklab_door, int fd, const struct msghdr *, int flags);

    /* Control. */
    int (*fcntl)(acklab_door, int fd, int command, ...);
    int (*ioctl)(acklab_door, int fd, unsigned long request, ...);
    int (*close)(acklab_door, int fd);
    int (*shutdown)(acklab_door, int fd, int how);
    int (*getsockopt)(acklab_door, int fd, int level, int name, void *, socklen_t *);
    int (*setsockopt)(acklab_door, int fd, int level, int name, const void *, socklen_t);
    int (*poll)(acklab_door, struct pollfd *, nfds_t, int timeout_ms);

    /*
     * The wire: an IP packet for the host, 0 or -1; the next one that leaves it, where *size is the room before and
     * the packet's bytes after (0: none will ever leave), with its time in microseconds of gettimeofday.
     */
    int (*netdev_send)(acklab_door, const void *packet, size_t);
    int (*netdev_receive)(acklab_door, void *packet, size_t *size, long long *time_us);

    /* Time. */
    int (*usleep)(acklab_door, useconds_t);
    int (*gettimeofday)(acklab_door, struct timeval *, struct timezone *);

    /* More calls. */
    int (*epoll_create)(acklab_door, int size);
    int (*epoll_ctl)(acklab_door, int epoll, int operation, int fd, struct epoll_event *);
    int (*epoll_wait)(acklab_door, int epoll, struct epoll_event *, int most, int timeout_ms);
    int (*pipe)(acklab_door, int fds[2]);
    int (*splice)(acklab_door, int from, off64_t *, int to, off64_t *, size_t, unsigned int flags);
};

/*
 * Fills the table. `flags` are words with commas between them (may be NULL):
 * local=ADDRESS  where connections come from that were not bound (192.168.0.1, fd3d:a0b:17d6::1)
 * mtu=BYTES, initcwnd=SEGMENTS
 * packets        bursts leave packet by packet
 * late           timers are as late as a kernel's
 * proc           system controls are those of /proc/sys/net, read at each socket()
 * NAME=VALUE     any system control, as in tcp_sack=0
 */
void packetdrill_interface_init(const char *flags, struct packetdrill_interface *);

#endif
