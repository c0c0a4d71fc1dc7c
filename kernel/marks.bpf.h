/* SPDX-License-Identifier: GPL-2.0 */
/* The receiver's half of congestion controls whose routers mark: each ACK says
 * whether what it covers was marked (RFC 8257 section 3.2). When that changes,
 * what has waited for a delayed ACK is acknowledged first, as it was.
 */
#ifndef MARKS_BPF_H
#define MARKS_BPF_H

#include "control.bpf.h"

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define ECN_OK 1		/* tp->ecn_flags: both ends have it */
#define DEMAND_CWR 4		/* tp->ecn_flags: ACKs bear ECE */
#define ACK_TIMER 2		/* icsk_ack.pending: a delayed ACK waits */
#define ACK_NOW 16

struct marks {
	__u32 nxt;		/* rcv_nxt before the newest segment */
	__u32 marked;		/* the newest segment was */
};

/* Whether the SYN asked for ECN and was granted it; else the connection gets
 * Reno, as where the control was chosen after the SYN.
 */
static __always_inline bool marks_init(struct sock *sk, struct marks *m)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	char reno[] = "reno";

	m->nxt = tp->rcv_nxt;
	m->marked = 0;
	if (tp->ecn_flags & ECN_OK)
		return true;
	bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
	return false;
}

static __always_inline void echo(struct tcp_sock *tp, bool marked)
{
	if (marked)
		tp->ecn_flags |= DEMAND_CWR;
	else
		tp->ecn_flags &= ~DEMAND_CWR;
}

static __always_inline void marks_event(struct sock *sk, struct marks *m,
					enum tcp_ca_event event)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool marked = event == CA_EVENT_ECN_IS_CE;

	if (!marked && event != CA_EVENT_ECN_NO_CE)
		return;
	if (marked != m->marked) {
		if (icsk->icsk_ack.pending & ACK_TIMER) {
			echo(tp, m->marked);
			bpf_tcp_send_ack(tp, m->nxt);
		}
		icsk->icsk_ack.pending |= ACK_NOW;
	}
	m->nxt = tp->rcv_nxt;
	m->marked = marked;
	echo(tp, marked);
}

#endif /* MARKS_BPF_H */
