// SPDX-License-Identifier: GPL-2.0
/* An ACK filter at a device's egress, as a tc program: of the pure ACKs of one
 * direction of a connection that come in a row it lets one in EVERY leave.
 *
 * ACKs are cumulative, so the one that leaves says what the others said. All
 * leave that say more: SACK, ECN, SYN, FIN, RST, URG, duplicates, windows that
 * close or open from nothing, and those with data. A sender that waits for
 * the last of a burst would be stalled: so at least one leaves per PAUSE, and
 * the one that covers a short segment with PSH, the end of a write, always
 * does. (Full segments bear PSH whenever the sender's buffer was full.)
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

char _license[] SEC("license") = "GPL";

#ifndef EVERY
#define EVERY 4
#endif
#ifndef PAUSE_MS
#define PAUSE_MS 20
#endif

#define PASS (-1)		/* TC_ACT_UNSPEC: later filters decide */
#define DROP 2			/* TC_ACT_SHOT */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define TIMESTAMPS bpf_htonl(0x0101080a)	/* NOP, NOP, kind 8, length 10 */

struct way {
	__u32 from[4];
	__u32 to[4];
	__u16 sport;
	__u16 dport;
};

struct acks {
	__u64 left_ns;		/* when one left last */
	__u32 acked;		/* what the newest one covers */
	__u32 window;		/* as in the header */
	__u32 held;		/* since one left */
	__u32 pushed;		/* where the newest short data with PSH ends */
	__u32 full;		/* the longest segment's payload */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct way);
	__type(value, struct acks);
} acklab_acks SEC(".maps");

/* What a packet is, and its way as its ACK goes (@back: it is data). */
struct heard {
	struct way way;
	struct tcphdr tcp;
	__u32 flags;
	__u32 options;
	__u32 payload;
	__u32 header;
};

static __always_inline bool hear(struct __sk_buff *skb, bool back,
				 struct heard *h)
{
	__u32 at, length;

	__builtin_memset(h, 0, sizeof(*h));
	if (skb->protocol == bpf_htons(0x0800)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip),
						BPF_HDR_START_NET) ||
		    ip.protocol != 6 || ip.frag_off & bpf_htons(0x3fff))
			return false;
		at = ip.ihl * 4;
		length = bpf_ntohs(ip.tot_len);
		h->way.from[0] = back ? ip.daddr : ip.saddr;
		h->way.to[0] = back ? ip.saddr : ip.daddr;
	} else if (skb->protocol == bpf_htons(0x86dd)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip),
						BPF_HDR_START_NET) ||
		    ip.nexthdr != 6)
			return false;
		at = sizeof(ip);
		length = at + bpf_ntohs(ip.payload_len);
		__builtin_memcpy(h->way.from, back ? &ip.daddr : &ip.saddr, 16);
		__builtin_memcpy(h->way.to, back ? &ip.saddr : &ip.daddr, 16);
	} else {
		return false;
	}
	if (bpf_skb_load_bytes_relative(skb, at, &h->tcp, sizeof(h->tcp),
					BPF_HDR_START_NET))
		return false;
	h->way.sport = back ? h->tcp.dest : h->tcp.source;
	h->way.dport = back ? h->tcp.source : h->tcp.dest;
	h->header = h->tcp.doff * 4;
	if (length < at + h->header)
		return false;
	h->payload = length - at - h->header;
	/* CWR and ECE count, and NS and what is reserved, too. */
	if (bpf_skb_load_bytes_relative(skb, at + 12, &h->flags, 4,
					BPF_HDR_START_NET))
		return false;
	h->flags = bpf_ntohl(h->flags) >> 16 & 0xfff;
	if (h->header == 32)
		bpf_skb_load_bytes_relative(skb, at + 20, &h->options, 4,
					    BPF_HDR_START_NET);
	return true;
}

SEC("tc")
int ack_filter(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	struct acks *acks, fresh = {};
	struct heard h;
	__u32 acked, window, before;
	bool plain;

	if (!hear(skb, false, &h))
		return PASS;
	if (h.flags & (SYN | FIN | RST)) {
		bpf_map_delete_elem(&acklab_acks, &h.way);
		return PASS;
	}
	acked = bpf_ntohl(h.tcp.ack_seq);
	window = bpf_ntohs(h.tcp.window);
	acks = bpf_map_lookup_elem(&acklab_acks, &h.way);
	if (!acks) {
		fresh.left_ns = now;
		fresh.acked = acked;
		fresh.window = window;
		fresh.pushed = acked;
		bpf_map_update_elem(&acklab_acks, &h.way, &fresh, BPF_ANY);
		return PASS;
	}
	plain = h.flags == ACK && !h.payload &&
		(h.header == 20 || (h.header == 32 && h.options == TIMESTAMPS)) &&
		(__s32)(acked - acks->acked) > 0 && window && acks->window;
	before = acks->acked;
	acks->acked = acked;
	acks->window = window;
	/* It covers the end of a write. */
	if ((__s32)(acks->pushed - before) > 0 &&
	    (__s32)(acked - acks->pushed) >= 0)
		plain = false;
	if (plain && acks->held + 1 < EVERY &&
	    now - acks->left_ns < PAUSE_MS * 1000000ULL) {
		acks->held++;
		return DROP;
	}
	acks->held = 0;
	acks->left_ns = now;
	return PASS;
}

SEC("tc")
int ack_filter_data(struct __sk_buff *skb)
{
	struct acks *acks;
	struct heard h;
	__u32 last;

	if (!hear(skb, true, &h) || !h.payload)
		return PASS;
	acks = bpf_map_lookup_elem(&acklab_acks, &h.way);
	if (!acks)
		return PASS;
	/* Merged segments (GRO) end with a short one or are all alike. */
	last = skb->gso_size ? h.payload % skb->gso_size : h.payload;
	if (skb->gso_size > acks->full)
		acks->full = skb->gso_size;
	if (!skb->gso_size && last > acks->full)
		acks->full = last;
	if (h.flags & PSH && last && last < acks->full)
		acks->pushed = bpf_ntohl(h.tcp.seq) + h.payload;
	return PASS;
}
