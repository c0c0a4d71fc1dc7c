// SPDX-License-Identifier: GPL-2.0
/* TCP-Jersey as a congestion control of the running kernel, through BPF
 * struct_ops: Xu, Tian, Ansari, JSAC 22(4), 2004.
 *
 * The bandwidth is estimated from the ACKs: each that delivers L segments dt
 * after the last makes R = (RTT R + L) / (dt + RTT). Routers mark every packet
 * while they warn of congestion, and each ACK echoes it. A warning sets the
 * window to R RTTmin, at most once per round trip, which the kernel's
 * TCP_CA_CWR state sees to; a loss without a warning is taken for the link's
 * and leaves the window as it was. All else is Reno. Both ends need it: the
 * receiver echoes the marks.
 */
#include "marks.bpf.h"

/* The round trip that turns R into a window: the latest, or the smallest. */
#ifndef LATEST_RTT
#define LATEST_RTT 0
#endif

#define NO_TIME (~0U)
/* R is kept in segments per 2^24 us. */
#define RATE_SHIFT 24
/* Where us may have wrapped; the estimate is of no use after such a pause. */
#define PAUSE_MOST (1ULL << 30)

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

struct jersey {
	struct marks marks;
	__u64 updated_us;
	__u64 rate;
	__u32 delivered;	/* tp->delivered at that time */
	__u32 rtt_us;
	__u32 rtt_min_us;
	__u32 warned;		/* the newest ACK bore a warning */
};

SEC("struct_ops")
void BPF_PROG(jersey_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct jersey *ca = state(sk);

	if (!marks_init(sk, &ca->marks))
		return;
	ca->updated_us = tp->tcp_mstamp;
	ca->rate = 0;
	ca->delivered = tp->delivered;
	ca->rtt_us = NO_TIME;
	ca->rtt_min_us = NO_TIME;
	ca->warned = 0;
}

SEC("struct_ops")
void BPF_PROG(jersey_in_ack_event, struct sock *sk, __u32 flags)
{
	struct jersey *ca = state(sk);

	ca->warned = !!(flags & CA_ACK_ECE);
}

SEC("struct_ops")
void BPF_PROG(jersey_pkts_acked, struct sock *sk,
	      const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct jersey *ca = state(sk);
	__u64 pause, memory;

	if (sample->rtt_us > 0) {
		ca->rtt_us = sample->rtt_us;
		if (ca->rtt_us < ca->rtt_min_us)
			ca->rtt_min_us = ca->rtt_us;
	}
	memory = ca->rtt_us != NO_TIME ? ca->rtt_us : 0;
	pause = tp->tcp_mstamp - ca->updated_us;
	if (pause > PAUSE_MOST)
		pause = PAUSE_MOST;
	if (!(memory + pause))
		return;
	ca->rate = (memory * ca->rate +
		    ((__u64)(tp->delivered - ca->delivered) << RATE_SHIFT)) /
		   (memory + pause);
	ca->delivered = tp->delivered;
	ca->updated_us = tp->tcp_mstamp;
}

SEC("struct_ops")
void BPF_PROG(jersey_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct jersey *ca = state(sk);

	if (!ca->warned)
		tcp_reno_cong_avoid(sk, ack, acked);
}

/* Rate control with a warning, which never raises the window; without one the
 * window stays, as Reno's does not.
 */
SEC("struct_ops")
__u32 BPF_PROG(jersey_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct jersey *ca = state(sk);
	__u32 rtt = LATEST_RTT ? ca->rtt_us : ca->rtt_min_us;
	__u64 window = tp->snd_cwnd;

	if (ca->warned && rtt != NO_TIME && ca->rate * rtt >> RATE_SHIFT < window)
		window = ca->rate * rtt >> RATE_SHIFT;
	return window > 2 ? window : 2;
}

/* After a time-out, as Reno. */
SEC("struct_ops")
void BPF_PROG(jersey_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 flight;

	if (new_state != TCP_CA_Loss)
		return;
	flight = tp->packets_out < tp->prior_cwnd ? tp->packets_out :
						    tp->prior_cwnd;
	tp->snd_ssthresh = flight / 2 > 2 ? flight / 2 : 2;
}

SEC("struct_ops")
void BPF_PROG(jersey_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct jersey *ca = state(sk);

	marks_event(sk, &ca->marks, event);
}

SEC("struct_ops")
__u32 BPF_PROG(jersey_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops jersey = {
	.flags = NON_RESTRICTED | NEEDS_ECN,
	.init = (void *)jersey_init,
	.in_ack_event = (void *)jersey_in_ack_event,
	.pkts_acked = (void *)jersey_pkts_acked,
	.cong_avoid = (void *)jersey_cong_avoid,
	.ssthresh = (void *)jersey_ssthresh,
	.set_state = (void *)jersey_set_state,
	.cwnd_event = (void *)jersey_cwnd_event,
	.undo_cwnd = (void *)jersey_undo_cwnd,
	.name = "jersey",
};
