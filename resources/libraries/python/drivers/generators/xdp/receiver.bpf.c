// SPDX-License-Identifier: Apache-2.0
/*
 * XDP program that counts the numbered frames of one flow where they arrive. resources/tools/bpf.sh compiles it to
 * receiver.bpf.o. receiver.py declares the same structures and constants.
 *
 * A bit for each number, and the order of those that came late: with both, the sequence of arrivals is known exactly,
 * and everything else is computed after the trial. Frames are dropped once they are counted, before an skb is
 * allocated where the driver has a frame. Each flow has its own mark in each trial: frames of other flows, which a system
 * may flood, and late ones of an earlier trial are dropped too, and counted apart. All other packets pass.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PROBE_PORT 49190
#define UDP 17
#define NUMBERS 64 /* of a word */
#define FRAGMENT 0x3fff /* flag and offset of a fragment */

/* What arrived of 64 consecutive numbers. */
struct word {
	__u64 bits;
	__u64 sent_tai_ns; /* of the first one that arrived; its lowest 6 bits are those of the number */
};

/* A frame that arrived after one with a higher number. */
struct late {
	__u32 number;
	__u32 order; /* frames that arrived before, duplicates not counted */
};

struct state {
	__u64 arrived; /* duplicates not counted */
	__u64 duplicates;
	__u64 late;
	__u64 next; /* one more than the highest number that has arrived */
	__u64 queue; /* receive queue of the first frame, plus one */
	__u64 elsewhere; /* frames of other receive queues: their order is unknown */
	__u64 foreign; /* frames of other flows or trials, duplicates included */
	__u64 mark; /* of the flow in this trial, in network order; set before attaching */
};

/* What follows the UDP header of a numbered frame. */
struct probe {
	__be32 mark;
	__be32 number;
	__be64 sent_tai_ns;
} __attribute__((packed, aligned(2)));

struct state state;

/* The numbers of entries are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct word);
} words SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct late);
} lates SEC(".maps");

static __always_inline void count(__u32 number, __u64 sent_tai_ns, __u64 queue)
{
	__u32 index = number / NUMBERS;
	__u64 bit = 1ULL << number % NUMBERS, before, order;
	struct word *word = bpf_map_lookup_elem(&words, &index);
	struct late *late;

	if (!word) {
		__sync_fetch_and_add(&state.foreign, 1);
		return;
	}
	before = __sync_fetch_and_or(&word->bits, bit);
	if (before & bit) {
		__sync_fetch_and_add(&state.duplicates, 1);
		return;
	}
	if (!before)
		word->sent_tai_ns = (sent_tai_ns & ~(__u64)(NUMBERS - 1)) | number % NUMBERS;
	if (!state.queue)
		__sync_val_compare_and_swap(&state.queue, 0, queue);
	if (state.queue != queue) {
		__sync_fetch_and_add(&state.elsewhere, 1);
		return;
	}
	order = state.arrived++;
	if (number >= state.next) {
		state.next = (__u64)number + 1;
		return;
	}
	index = state.late++;
	late = bpf_map_lookup_elem(&lates, &index);
	if (late) {
		late->number = number;
		late->order = order;
	}
}

SEC("xdp.frags")
int csit_receiver(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct ipv6hdr *ipv6 = (void *)(ethernet + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct probe *probe = (void *)(udp + 1);

	if ((void *)(probe + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		udp = (void *)(ipv6 + 1);
		probe = (void *)(udp + 1);
		if ((void *)(probe + 1) > (void *)(long)ctx->data_end || ipv6->nexthdr != UDP)
			return XDP_PASS;
	} else if (ethernet->h_proto != bpf_htons(ETH_P_IP) || *(__u8 *)ip != 0x45 || ip->protocol != UDP ||
		   ip->frag_off & bpf_htons(FRAGMENT)) {
		return XDP_PASS;
	}
	if (udp->dest != bpf_htons(PROBE_PORT))
		return XDP_PASS;
	if (probe->mark != (__u32)state.mark) {
		__sync_fetch_and_add(&state.foreign, 1);
		return XDP_DROP;
	}
	count(bpf_ntohl(probe->number), bpf_be64_to_cpu(probe->sent_tai_ns), (__u64)ctx->rx_queue_index + 1);
	return XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";

/* Digest of this file and the compiler, for the unit test that compares the object with its source. */
char _origin[] SEC("origin") = SOURCE_SHA256 " " __VERSION__;
