// SPDX-License-Identifier: GPL-2.0
/* ANCE as a congestion control of the running kernel, through BPF struct_ops.
 *
 * The sender estimates the queue of its path, Q = B (RTT - RTTmin), and keeps
 * it near QUEUE_MIN: below it the window W grows by one segment per W ACKs,
 * above it W shrinks by one segment per BF ACKs; BF is halved when W grows and
 * grows by half when W shrinks. B is what the last ACK acknowledged over the
 * shortest time between two ACKs. Sup, Moraes, Bauchspiess:
 * "Acknowledge-Based Non-Congestion Estimation", algorithm 1, equation 2
 * corrected. Loss does as in RFC 5681.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

/* Bytes on the wire, headers included: Qmin. */
#ifndef QUEUE_MIN
#define QUEUE_MIN 3000
#endif
/* Which time between ACKs is the shortest one: the SMALLEST of the connection,
 * the SECOND smallest, or the smallest of a ROUND trip. DELIVERY asks for none
 * of them: B is then the rate at which the last round trip's data was
 * delivered (tcp_rate_gen), which hosts that bunch ACKs do not spoil.
 */
#define SMALLEST 0
#define SECOND 1
#define ROUND 2
#define DELIVERY 3
#ifndef SPACING
#define SPACING DELIVERY
#endif
/* ACKs; BF never falls below it. */
#ifndef BF_FLOOR
#define BF_FLOOR 1
#endif
/* Segments: the paper's advertised window, where slow start ends at most. */
#ifndef RWND
#define RWND 64
#endif

#define INFINITE_SSTHRESH 0x7fffffff
#define NO_TIME (~0U)
/* BF is kept in 256ths of an ACK. */
#define BF_ONE 256
#define BF_MOST (1U << 24)

struct ance {
	__u64 last_us;		/* when the last ACK came */
	__u64 round_end_us;
	__u32 rtt_us;		/* last round trip */
	__u32 rtt_min_us;
	__u32 smallest_us;	/* times between ACKs */
	__u32 second_us;
	__u32 round_us;
	__u32 previous_round_us;
	__u32 acked;		/* bytes on the wire that the last ACK acknowledged */
	__u32 bf;
	__u32 free;		/* ACKs on a free path since W changed */
	__u32 congested;	/* ACKs on a congested one */
	__u32 avoiding;
};

static __always_inline struct ance *state(struct sock *sk)
{
	return (struct ance *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void avoid(struct ance *ca, __u32 window)
{
	ca->avoiding = 1;
	ca->bf = (window > BF_FLOOR ? window : BF_FLOOR) * BF_ONE;
	ca->free = 0;
	ca->congested = 0;
}

SEC("struct_ops")
void BPF_PROG(ance_init, struct sock *sk)
{
	struct ance *ca = state(sk);

	ca->last_us = 0;
	ca->round_end_us = 0;
	ca->rtt_us = 0;
	ca->rtt_min_us = NO_TIME;
	ca->smallest_us = NO_TIME;
	ca->second_us = NO_TIME;
	ca->round_us = NO_TIME;
	ca->previous_round_us = NO_TIME;
	ca->acked = 0;
	ca->bf = BF_ONE;
	ca->free = 0;
	ca->congested = 0;
	ca->avoiding = 0;
}

static __always_inline void spaced(struct ance *ca, __u64 now_us)
{
	__u32 gap;

	if (now_us >= ca->round_end_us) {
		if (ca->round_us != NO_TIME)
			ca->previous_round_us = ca->round_us;
		ca->round_us = NO_TIME;
		ca->round_end_us = now_us + ca->rtt_us;
	}
	gap = ca->last_us ? now_us - ca->last_us : 0;
	ca->last_us = now_us;
	/* ACKs of one instant have no spacing. */
	if (!gap)
		return;
	if (gap < ca->round_us)
		ca->round_us = gap;
	if (gap < ca->smallest_us) {
		ca->second_us = ca->smallest_us;
		ca->smallest_us = gap;
	} else if (gap < ca->second_us) {
		ca->second_us = gap;
	}
}

static __always_inline __u32 shortest(const struct ance *ca)
{
	switch (SPACING) {
	case SMALLEST:
		return ca->smallest_us;
	case SECOND:
		return ca->second_us != NO_TIME ? ca->second_us :
						  ca->smallest_us;
	default:
		return ca->previous_round_us != NO_TIME ?
			ca->previous_round_us : ca->round_us;
	}
}

/* A full segment with its headers, bytes. */
static __always_inline __u32 on_wire(struct tcp_sock *tp)
{
	return tp->mss_cache + tp->tcp_header_len + 20;
}

/* Equation 1, bytes. */
static __always_inline __u64 queue(struct tcp_sock *tp, const struct ance *ca)
{
	__u64 bytes = ca->acked;
	__u32 spacing = shortest(ca);

	if (SPACING == DELIVERY) {
		bytes = (__u64)tp->rate_delivered * on_wire(tp);
		spacing = tp->rate_interval_us ? tp->rate_interval_us : NO_TIME;
	}
	if (spacing == NO_TIME || ca->rtt_us <= ca->rtt_min_us)
		return 0;
	return bytes * (ca->rtt_us - ca->rtt_min_us) / spacing;
}

SEC("struct_ops")
void BPF_PROG(ance_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ance *ca = state(sk);

	if (sample->rtt_us > 0) {
		ca->rtt_us = sample->rtt_us;
		if (tp->snd_cwnd <= 1 || ca->rtt_us < ca->rtt_min_us)
			ca->rtt_min_us = ca->rtt_us;
	}
	spaced(ca, tp->tcp_mstamp);
	if (sample->pkts_acked)
		ca->acked = sample->pkts_acked * on_wire(tp);
}

/* Whether the window held the sender back (tcp_is_cwnd_limited). */
static __always_inline bool limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh &&
	       tp->snd_cwnd < 2 * tp->max_packets_out;
}

SEC("struct_ops")
void BPF_PROG(ance_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ance *ca = state(sk);
	bool congested = queue(tp, ca) >= QUEUE_MIN;
	__u32 window = tp->snd_cwnd;

	if (!ca->avoiding) {
		__u32 ssthresh = tp->snd_ssthresh;

		if (congested) {
			if (ssthresh < INFINITE_SSTHRESH)
				window = ssthresh < RWND ? ssthresh : RWND;
			tp->snd_cwnd = window;
			avoid(ca, window);
		} else {
			if (window < ssthresh && limited(tp)) {
				window += acked ? 1 : 0;
				tp->snd_cwnd = window;
			}
			if (window >= ssthresh)
				avoid(ca, window);
		}
		if (!ca->avoiding)
			return;
	}
	if (congested) {
		ca->congested++;
		if (ca->congested < (ca->bf + BF_ONE / 2) / BF_ONE || window < 2)
			return;
		tp->snd_cwnd = window - 1;
		ca->bf += ca->bf / 2;
		if (ca->bf > BF_MOST)
			ca->bf = BF_MOST;
	} else {
		if (!limited(tp) || ++ca->free < window)
			return;
		tp->snd_cwnd = window + 1;
		ca->bf /= 2;
		if (ca->bf < BF_FLOOR * BF_ONE)
			ca->bf = BF_FLOOR * BF_ONE;
	}
	ca->free = 0;
	ca->congested = 0;
}

SEC("struct_ops")
__u32 BPF_PROG(ance_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 flight = tp->packets_out < tp->snd_cwnd ? tp->packets_out :
							tp->snd_cwnd;
	__u32 half = flight / 2 > 2 ? flight / 2 : 2;

	avoid(state(sk), half);
	return half;
}

SEC("struct_ops")
void BPF_PROG(ance_set_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		state(sk)->avoiding = 0;
}

SEC("struct_ops")
void BPF_PROG(ance_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		state(sk)->avoiding = 0;
}

SEC("struct_ops")
__u32 BPF_PROG(ance_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops ance = {
	.init = (void *)ance_init,
	.pkts_acked = (void *)ance_pkts_acked,
	.cong_avoid = (void *)ance_cong_avoid,
	.ssthresh = (void *)ance_ssthresh,
	.set_state = (void *)ance_set_state,
	.cwnd_event = (void *)ance_cwnd_event,
	.undo_cwnd = (void *)ance_undo_cwnd,
	.name = "ance",
};
