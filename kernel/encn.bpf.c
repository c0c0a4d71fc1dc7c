// SPDX-License-Identifier: GPL-2.0
/* ENCN as a congestion control of the running kernel, through BPF struct_ops.
 *
 * Routers mark packets while their queue is short, and each ACK echoes it: a
 * mark says that the path is free. The window is balance.bpf.h; the first mark
 * ends slow start. Sup, Moraes, Bauchspiess (INDIN 2016), as ANCE's paper
 * describes it. Both ends need it: the receiver echoes the marks.
 *
 * The kernel takes an echo for congestion and enters TCP_CA_CWR, in which only
 * cong_control sets the window.
 */
#include "marks.bpf.h"
#include "balance.bpf.h"

/* net/ipv4/tcp_input.c */
#define FLAG_ECE 0x40
#define FLAG_SND_UNA_ADVANCED 0x400

struct encn {
	struct marks marks;
	struct balance window;
};

SEC("struct_ops")
void BPF_PROG(encn_init, struct sock *sk)
{
	struct encn *ca = state(sk);

	if (!marks_init(sk, &ca->marks))
		return;
	balance_init(&ca->window);
}

SEC("struct_ops")
void BPF_PROG(encn_cong_control, struct sock *sk, __u32 ack, int flag,
	      const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct encn *ca = state(sk);
	bool marked = flag & FLAG_ECE;

	if (!(flag & FLAG_SND_UNA_ADVANCED) ||
	    BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) ==
		    TCP_CA_Recovery)
		return;
	if (!ca->window.avoiding)
		slow_start(tp, &ca->window, marked, 1);
	if (ca->window.avoiding)
		balance(tp, &ca->window, !marked);
}

/* A mark is good news: set_state sees to losses. */
SEC("struct_ops")
__u32 BPF_PROG(encn_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(encn_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct encn *ca = state(sk);

	if (new_state == TCP_CA_Recovery) {
		tp->snd_ssthresh = half(tp, tp->snd_cwnd);
		if (tp->snd_cwnd > tp->snd_ssthresh)
			tp->snd_cwnd = tp->snd_ssthresh;
		avoid(&ca->window, tp->snd_cwnd);
	} else if (new_state == TCP_CA_Loss) {
		/* tcp_enter_loss has shrunk the window. */
		tp->snd_ssthresh = half(tp, tp->prior_cwnd);
		ca->window.avoiding = 0;
	}
}

SEC("struct_ops")
void BPF_PROG(encn_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct encn *ca = state(sk);

	if (event == CA_EVENT_CWND_RESTART)
		ca->window.avoiding = 0;
	marks_event(sk, &ca->marks, event);
}

SEC("struct_ops")
__u32 BPF_PROG(encn_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops encn = {
	.flags = NON_RESTRICTED | NEEDS_ECN,
	.init = (void *)encn_init,
	.cong_control = (void *)encn_cong_control,
	.ssthresh = (void *)encn_ssthresh,
	.set_state = (void *)encn_set_state,
	.cwnd_event = (void *)encn_cwnd_event,
	.undo_cwnd = (void *)encn_undo_cwnd,
	.name = "encn",
};
