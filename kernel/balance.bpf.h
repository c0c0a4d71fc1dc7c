/* SPDX-License-Identifier: GPL-2.0 */
/* Balance fairness: the window that ANCE and ENCN share.
 *
 * In congestion avoidance the window W grows by one segment per W ACKs while
 * the path is free and shrinks by one per BF ACKs while it is congested. BF is
 * halved when W grows and grows by half when W shrinks. Loss does as in
 * RFC 5681. Sup, Moraes, Bauchspiess: "Acknowledge-Based Non-Congestion
 * Estimation", algorithm 1 and table 1.
 */
#ifndef BALANCE_BPF_H
#define BALANCE_BPF_H

/* ACKs; BF never falls below it. */
#ifndef BF_FLOOR
#define BF_FLOOR 1
#endif
/* Segments: the paper's advertised window, where slow start ends at most. */
#ifndef RWND
#define RWND 64
#endif

#define INFINITE_SSTHRESH 0x7fffffff
/* BF is kept in 256ths of an ACK. */
#define BF_ONE 256
#define BF_MOST (1U << 24)

struct balance {
	__u32 bf;
	__u32 free;		/* ACKs on a free path since W changed */
	__u32 congested;	/* ACKs on a congested one */
	__u32 avoiding;
};

static __always_inline void balance_init(struct balance *b)
{
	b->bf = BF_ONE;
	b->free = 0;
	b->congested = 0;
	b->avoiding = 0;
}

static __always_inline void avoid(struct balance *b, __u32 window)
{
	b->avoiding = 1;
	b->bf = (window > BF_FLOOR ? window : BF_FLOOR) * BF_ONE;
	b->free = 0;
	b->congested = 0;
}

/* Whether the window held the sender back (tcp_is_cwnd_limited). */
static __always_inline bool limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh &&
	       tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* RFC 5681 equation 4, of the window @window. */
static __always_inline __u32 half(struct tcp_sock *tp, __u32 window)
{
	__u32 flight = tp->packets_out < window ? tp->packets_out : window;

	return flight / 2 > 2 ? flight / 2 : 2;
}

/* Slow start: @leave ends it, with W = min(RWND, ssthresh). */
static __always_inline void slow_start(struct tcp_sock *tp, struct balance *b,
				       bool leave, __u32 acked)
{
	__u32 ssthresh = tp->snd_ssthresh, window = tp->snd_cwnd;

	if (leave) {
		if (ssthresh < INFINITE_SSTHRESH)
			window = ssthresh < RWND ? ssthresh : RWND;
		tp->snd_cwnd = window;
		avoid(b, window);
		return;
	}
	if (window < ssthresh && limited(tp)) {
		window += acked ? 1 : 0;
		tp->snd_cwnd = window;
	}
	if (window >= ssthresh)
		avoid(b, window);
}

/* Congestion avoidance, one ACK. */
static __always_inline void balance(struct tcp_sock *tp, struct balance *b,
				    bool congested)
{
	__u32 window = tp->snd_cwnd;

	if (congested) {
		b->congested++;
		if (b->congested < (b->bf + BF_ONE / 2) / BF_ONE || window < 2)
			return;
		tp->snd_cwnd = window - 1;
		b->bf += b->bf / 2;
		if (b->bf > BF_MOST)
			b->bf = BF_MOST;
	} else {
		if (!limited(tp) || ++b->free < window)
			return;
		tp->snd_cwnd = window + 1;
		b->bf /= 2;
		if (b->bf < BF_FLOOR * BF_ONE)
			b->bf = BF_FLOOR * BF_ONE;
	}
	b->free = 0;
	b->congested = 0;
}

#endif /* BALANCE_BPF_H */
