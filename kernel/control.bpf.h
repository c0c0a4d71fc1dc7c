/* SPDX-License-Identifier: GPL-2.0 */
/* What every congestion control of ours includes. */
#ifndef CONTROL_BPF_H
#define CONTROL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

/* tcp_congestion_ops.flags (net/tcp.h). Any user and any network namespace may
 * choose it, as root loaded it for that. Without it a namespace's attempt to
 * make it its default is refused, and on Linux up to 6.18 at least the refusal
 * keeps a reference for ever (tcp_set_default_congestion_control), so that
 * nothing can take the program out of memory.
 */
#define NON_RESTRICTED 0x1
/* Packets are ECN-capable, and marks are the program's business. */
#define NEEDS_ECN 0x2

/* The connection's state, of at most 104 bytes. */
static __always_inline void *state(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

#endif /* CONTROL_BPF_H */
