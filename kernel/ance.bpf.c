// SPDX-License-Identifier: GPL-2.0
/* ANCE as a congestion control of the running kernel, through BPF struct_ops.
 *
 * The sender estimates the queue of its path, Q = B (RTT - RTTmin), and keeps
 * it near QUEUE_MIN by the window of balance.bpf.h. B is what the last ACK
 * acknowledged over the shortest time between two ACKs. Sup, Moraes,
 * Bauchspiess: "Acknowledge-Based Non-Congestion Estimation", algorithm 1,
 * equation 2 corrected.
 */
#include "control.bpf.h"
#include "balance.bpf.h"

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

#define NO_TIME (~0U)

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
	struct balance window;
};

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
	balance_init(&ca->window);
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

SEC("struct_ops")
void BPF_PROG(ance_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ance *ca = state(sk);
	bool congested = queue(tp, ca) >= QUEUE_MIN;

	if (!ca->window.avoiding)
		slow_start(tp, &ca->window, congested, acked);
	if (ca->window.avoiding)
		balance(tp, &ca->window, congested);
}

SEC("struct_ops")
__u32 BPF_PROG(ance_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ance *ca = state(sk);
	__u32 window = half(tp, tp->snd_cwnd);

	avoid(&ca->window, window);
	return window;
}

SEC("struct_ops")
void BPF_PROG(ance_set_state, struct sock *sk, __u8 new_state)
{
	struct ance *ca = state(sk);

	if (new_state == TCP_CA_Loss)
		ca->window.avoiding = 0;
}

SEC("struct_ops")
void BPF_PROG(ance_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct ance *ca = state(sk);

	if (event == CA_EVENT_CWND_RESTART)
		ca->window.avoiding = 0;
}

SEC("struct_ops")
__u32 BPF_PROG(ance_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops ance = {
	.flags = NON_RESTRICTED,
	.init = (void *)ance_init,
	.pkts_acked = (void *)ance_pkts_acked,
	.cong_avoid = (void *)ance_cong_avoid,
	.ssthresh = (void *)ance_ssthresh,
	.set_state = (void *)ance_set_state,
	.cwnd_event = (void *)ance_cwnd_event,
	.undo_cwnd = (void *)ance_undo_cwnd,
	.name = "ance",
};
