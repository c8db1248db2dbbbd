// SPDX-License-Identifier: Apache-2.0
/*
 * XDP programs of the built-in generator. resources/tools/bpf.sh compiles them to live_frames.bpf.o.
 *
 * The kernel runs `csit_generator` for one frame of its own after the other, as fast as it can (BPF_PROG_TEST_RUN with
 * live frames). A run waits until the next frame is due, writes its headers, counts it, and redirects it to the
 * interface of its flow. A run that finds nothing due polls the clock for about a microsecond and then returns the
 * frame, so that other tasks of this CPU wait for no longer than that and one batch of frames.
 *
 * What depends on the trial is in `shared`, which the worker maps into its memory and fills: memory.py declares the
 * same structures and constants. Times are nanoseconds since the first run; those of the schedule have FRACTION_BITS
 * more bits. `barrier_var` keeps an address in a register instead of computing it again: 3 of 50 ns per frame.
 */
#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FRACTION_BITS 20
#define MAX_FLOWS 512
#define MAX_SIZES 512
#define MAX_CAPTURED 3496 /* bytes of a frame of a capture: no more fit into a live frame */
#define CLOCK_READS 48 /* before a frame is returned, about 1 us */

#define ETHERNET_BYTES 14
#define SHORTEST 60 /* bytes of a frame without FCS */
#define SHORTEST_IPV6 78 /* with the contents of a probe */
#define PROBE_PORT 49190
#define UDP_LOAD_PORT 49191
#define FIRST_PORT 0x8000
#define PORTS 0x8000
#define PORT_FACTOR 40503
#define IPV4_CHECKSUM_OFFSET 24
#define IPV4_SOURCE_OFFSET 26
#define IPV6_SOURCE_OFFSET 22

struct state {
	__u64 start_ns; /* on CLOCK_MONOTONIC; 0 before the first run */
	__u64 end_ns; /* nothing is sent from here on */
	__u64 done; /* nothing more will be sent; the worker sets it too */
	__u64 left; /* load frames to send */
	__u64 due; /* when the next one is due, with fraction */
	__u64 gap; /* between two load frames, with fraction */
	__u64 slack_ns; /* a lag that is caught up at once */
	__u64 least_gap_ns; /* on average, when further behind */
	__u64 not_before_ns; /* when the next load frame may leave */
	__u64 flow; /* of the next load frame */
	__u64 probes_left;
	__u64 probe_due;
	__u64 probe_gap;
	__u64 probe_flow;
	__u64 flows;
	__u64 sizes;
	__u64 largest; /* bytes of a frame before it is cut */
	__u64 first_ns; /* when the first load frame was sent */
	__u64 last_ns;
	__u64 worst_lag_ns;
	__u64 failed; /* frames that could not be made */
	__u64 tai_ns; /* TAI minus CLOCK_MONOTONIC */
	__u64 captured; /* frames of the capture that are the load; 0: there is none */
};

enum { NO_UDP, UDP_LOAD, UDP_PROBE, UDP_NUMBERED };

enum { LOAD, PROBE, KINDS };

/* Frames of one kind of one flow. */
struct kind {
	__u64 sent;
	__u64 sum; /* of the fixed words of the IPv4 header, or of those in the UDP checksum of IPv6; not folded */
	__u32 source; /* index of the next source address */
	__u32 row; /* how often all addresses have been used: each time with other ports */
	__u32 size; /* index of the next frame size */
	__u16 ttl_protocol; /* in network order */
	__u16 udp; /* one of those above */
};

struct flow {
	__u64 ethernet_1; /* the first 16 bytes of a frame: Ethernet, IP version, and header length and DSCP of IPv4 */
	__u64 ethernet_2;
	__u32 fragment; /* IPv4 identification, flags and offset, in network order like the next two */
	__u32 destination;
	__u32 mark;
	__u32 first_source; /* in host order */
	__u32 sources;
	__u32 last_source; /* of the last 5-tuple, before the first one comes again */
	__u32 last_row;
	__u32 interface; /* index */
	__u32 ipv6; /* whether it is IPv6: always UDP */
	__u32 source_6[3]; /* the first 12 bytes of IPv6 addresses, the last 4 are those of `first_source` */
	__u32 destination_6[4];
	__u32 pad[4];
	struct kind kinds[KINDS];
};

struct size {
	__u32 length; /* bytes of a frame without FCS */
	__u16 total_length; /* in network order */
	__u16 udp_length;
};

struct shared {
	struct state state;
	struct flow flows[MAX_FLOWS];
	struct size sizes[MAX_SIZES];
};

/* A frame of a capture. Addresses and checksums are written into `bytes` for each flow. */
struct captured {
	__u32 length; /* without FCS */
	__u32 source; /* index of its source address */
	__u32 header_sum; /* of the words of the IPv4 header without addresses, not folded */
	__u32 sum; /* likewise, of what the checksum of TCP, UDP or ICMPv6 covers */
	__u32 checksum_offset; /* of that checksum; 0: it has none that covers addresses */
	__u32 pad;
	__u8 bytes[MAX_CAPTURED];
};

/* The number of entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct captured);
} captured_frames SEC(".maps");

/* What follows the UDP header of a probe. */
struct probe {
	__be32 mark;
	__be32 number;
	__be64 sent_tai_ns;
};

struct shared shared;

static __always_inline __u64 later(__u64 one, __u64 other)
{
	return one > other ? one : other;
}

static __always_inline __u64 next(__u64 index, __u64 count)
{
	return index + 1 < count ? index + 1 : 0;
}

/* When the next load frame, the next probe or the end is due. */
static __always_inline __u64 next_event(const struct state *state)
{
	__u64 event = state->end_ns;

	if (state->left) {
		__u64 load = later(state->due >> FRACTION_BITS, state->not_before_ns);

		if (load < event)
			event = load;
	}
	if (state->probes_left) {
		__u64 probe = state->probe_due >> FRACTION_BITS;

		if (probe < event)
			event = probe;
	}
	return event;
}

/* Note times of a load frame, and bound a burst after a lag: a token bucket of `slack_ns`. */
static __always_inline void note_load(struct state *state, __u64 now)
{
	__u64 lag = now - (state->due >> FRACTION_BITS);

	if (!state->last_ns)
		state->first_ns = now;
	state->last_ns = now;
	state->not_before_ns = later(state->not_before_ns, later(now, state->slack_ns) - state->slack_ns);
	state->not_before_ns += state->least_gap_ns;
	if (lag > state->worst_lag_ns)
		state->worst_lag_ns = lag;
}

/* The next packet is of the next 5-tuple. */
static __always_inline void next_tuple(const struct flow *flow, struct kind *kind)
{
	if (kind->source == flow->last_source && kind->row == flow->last_row) {
		kind->source = 0;
		kind->row = 0;
	} else if (kind->source + 1 == flow->sources) {
		kind->source = 0;
		kind->row++;
	} else {
		kind->source++;
	}
}

static __always_inline __u16 ipv4_checksum(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return bpf_htons(sum ^ 0xffff);
}

/* All fields each time: the kernel hands out used frames, as the last router left them. */
static __always_inline void write_headers(void *frame, const struct flow *flow, const struct kind *kind,
					  const struct size *size)
{
	struct iphdr *ip = frame + ETHERNET_BYTES;
	__u32 source = flow->first_source + kind->source;

	((__u64 *)frame)[0] = flow->ethernet_1;
	((__u64 *)frame)[1] = flow->ethernet_2;
	ip->tot_len = size->total_length;
	*(__u32 *)&ip->id = flow->fragment;
	*(__u16 *)&ip->ttl = kind->ttl_protocol;
	ip->check = ipv4_checksum(kind->sum + size->length + (source >> 16) + (source & 0xffff));
	ip->saddr = bpf_htonl(source);
	ip->daddr = flow->destination;
}

/*
 * UDP header without checksum, and mark, number and time stamp of a probe. The time stamp of a numbered load frame is the
 * time at which it was found to be due: another look at the clock would take as long as half of a frame.
 */
static __always_inline void write_udp(void *frame, const struct flow *flow, const struct kind *kind,
				      const struct size *size, __u64 due_tai_ns)
{
	struct iphdr *ip = frame + ETHERNET_BYTES;
	struct udphdr *udp = (void *)(ip + 1);

	udp->len = size->udp_length;
	udp->check = 0;
	if (kind->udp >= UDP_PROBE) {
		struct probe *probe = (void *)(udp + 1);

		udp->source = bpf_htons(PROBE_PORT + kind->row);
		udp->dest = bpf_htons(PROBE_PORT);
		probe->mark = flow->mark;
		probe->number = bpf_htonl(kind->sent);
		if (kind->udp == UDP_PROBE)
			due_tai_ns = bpf_ktime_get_tai_ns();
		probe->sent_tai_ns = bpf_cpu_to_be64(due_tai_ns);
	} else {
		__u32 address = bpf_ntohl(ip->saddr) & 0xffff;

		udp->source = bpf_htons(FIRST_PORT + (address * PORT_FACTOR + kind->row) % PORTS);
		udp->dest = bpf_htons(UDP_LOAD_PORT);
	}
}

static __always_inline __u64 words_of(__u64 value)
{
	return (value & 0xffff) + (value >> 16 & 0xffff) + (value >> 32 & 0xffff) + (value >> 48);
}

/* Headers of IPv6 and UDP, whose checksum is mandatory, and the contents of a probe; none of a load frame is left. */
static __always_inline void write_ipv6(void *frame, const struct flow *flow, const struct kind *kind,
				       const struct size *size, __u64 due_tai_ns)
{
	struct ipv6hdr *ip = frame + ETHERNET_BYTES;
	struct udphdr *udp = (void *)(ip + 1);
	struct probe *probe = (void *)(udp + 1);
	__u32 *address = (void *)&ip->saddr;
	__u32 source = flow->first_source + kind->source;
	__u32 mark = 0, number = 0, from, to;
	__u64 stamp = 0, sum;

	((__u64 *)frame)[0] = flow->ethernet_1;
	((__u64 *)frame)[1] = flow->ethernet_2;
	*(__u16 *)&ip->flow_lbl[1] = 0;
	ip->payload_len = size->udp_length;
	*(__u16 *)&ip->nexthdr = kind->ttl_protocol;
	address[0] = flow->source_6[0];
	address[1] = flow->source_6[1];
	address[2] = flow->source_6[2];
	address[3] = bpf_htonl(source);
	address[4] = flow->destination_6[0];
	address[5] = flow->destination_6[1];
	address[6] = flow->destination_6[2];
	address[7] = flow->destination_6[3];
	if (kind->udp >= UDP_PROBE) {
		from = PROBE_PORT + kind->row;
		to = PROBE_PORT;
		mark = bpf_ntohl(flow->mark);
		number = kind->sent;
		stamp = kind->udp == UDP_PROBE ? bpf_ktime_get_tai_ns() : due_tai_ns;
	} else {
		from = FIRST_PORT + ((source & 0xffff) * PORT_FACTOR + kind->row) % PORTS;
		to = UDP_LOAD_PORT;
	}
	sum = kind->sum + words_of(source) + 2 * (__u64)bpf_ntohs(size->udp_length) + from + to + words_of(mark) +
	      words_of(number) + words_of(stamp);
	udp->source = bpf_htons(from);
	udp->dest = bpf_htons(to);
	udp->len = size->udp_length;
	udp->check = ipv4_checksum(sum) ?: 0xffff;
	probe->mark = bpf_htonl(mark);
	probe->number = bpf_htonl(number);
	probe->sent_tai_ns = bpf_cpu_to_be64(stamp);
}

/* Write the next frame of the capture, with the addresses of a flow. */
static __always_inline int write_captured(struct xdp_md *ctx, const struct state *state, const struct flow *flow,
					  struct kind *kind)
{
	__u32 index = kind->size, source, offset, length;
	struct captured *captured = bpf_map_lookup_elem(&captured_frames, &index);
	__u32 *address;
	__u64 sum;

	kind->size = next(index, state->captured);
	if (!captured)
		return -1;
	length = captured->length;
	if (length < SHORTEST || length > MAX_CAPTURED)
		return -1;
	if (length != state->largest && bpf_xdp_adjust_tail(ctx, (int)(length - state->largest)))
		return -1;
	*(__u64 *)captured->bytes = flow->ethernet_1;
	*(__u32 *)(captured->bytes + 8) = flow->ethernet_2;
	source = flow->first_source + captured->source % flow->sources;
	sum = words_of(source);
	if (flow->ipv6) {
		address = (void *)(captured->bytes + IPV6_SOURCE_OFFSET);
		address[0] = flow->source_6[0];
		address[1] = flow->source_6[1];
		address[2] = flow->source_6[2];
		address[3] = bpf_htonl(source);
		address[4] = flow->destination_6[0];
		address[5] = flow->destination_6[1];
		address[6] = flow->destination_6[2];
		address[7] = flow->destination_6[3];
		sum += kind->sum; /* of the fixed words of the addresses */
	} else {
		address = (void *)(captured->bytes + IPV4_SOURCE_OFFSET);
		address[0] = bpf_htonl(source);
		address[1] = flow->destination;
		sum += words_of(bpf_ntohl(flow->destination));
		*(__u16 *)(captured->bytes + IPV4_CHECKSUM_OFFSET) = ipv4_checksum(captured->header_sum + sum);
	}
	offset = captured->checksum_offset;
	if (offset) {
		if (offset > MAX_CAPTURED - 2)
			return -1;
		*(__u16 *)(captured->bytes + offset) = ipv4_checksum(captured->sum + sum) ?: 0xffff;
	}
	return bpf_xdp_store_bytes(ctx, 0, captured->bytes, length);
}

/* Write and send a frame: LOAD or PROBE of a flow. */
static __always_inline int send(struct xdp_md *ctx, struct state *state, __u64 index, __u64 which, __u64 now)
{
	struct flow *flow;
	struct kind *kind;
	struct size *size;
	void *frame;

	if (index >= MAX_FLOWS)
		goto failed;
	flow = &shared.flows[index];
	barrier_var(flow);
	kind = &flow->kinds[which];
	barrier_var(kind);
	if (which == LOAD && state->captured) {
		if (write_captured(ctx, state, flow, kind))
			goto failed;
		goto sent;
	}
	if (kind->size >= MAX_SIZES)
		goto failed;
	size = &shared.sizes[kind->size];
	barrier_var(size);
	kind->size = next(kind->size, state->sizes);
	if (size->length != state->largest && bpf_xdp_adjust_tail(ctx, size->length - state->largest))
		goto failed;
	frame = (void *)(long)ctx->data;
	if (frame + SHORTEST > (void *)(long)ctx->data_end)
		goto failed;
	if (flow->ipv6) {
		if (frame + SHORTEST_IPV6 > (void *)(long)ctx->data_end)
			goto failed;
		write_ipv6(frame, flow, kind, size, now + state->start_ns + state->tai_ns);
	} else {
		write_headers(frame, flow, kind, size);
		if (kind->udp != NO_UDP)
			write_udp(frame, flow, kind, size, now + state->start_ns + state->tai_ns);
	}
	next_tuple(flow, kind);
sent:
	kind->sent++;
	return bpf_redirect(flow->interface, 0);
failed:
	state->failed++;
	return XDP_DROP;
}

SEC("xdp")
int csit_generator(struct xdp_md *ctx)
{
	struct state *state = &shared.state;
	__u64 now, event, index, which;
	int reads = 0;

	barrier_var(state);
	if (state->done)
		return XDP_DROP;
	now = bpf_ktime_get_ns();
	if (!state->start_ns)
		state->start_ns = now - 1;
	now -= state->start_ns;
	if (!state->left && !state->probes_left)
		goto done;
	event = next_event(state);
	while (now < event) {
		if (reads++ == CLOCK_READS)
			return XDP_DROP;
		now = bpf_ktime_get_ns() - state->start_ns;
	}
	if (now >= state->end_ns)
		goto done;
	if (state->probes_left && now >= state->probe_due >> FRACTION_BITS) {
		which = PROBE;
		index = state->probe_flow;
		state->probes_left--;
		state->probe_due += state->probe_gap;
		state->probe_flow = next(index, state->flows);
	} else {
		which = LOAD;
		index = state->flow;
		state->left--;
		note_load(state, now);
		state->due += state->gap;
		state->flow = next(index, state->flows);
	}
	return send(ctx, state, index, which, now);
done:
	state->done = 1;
	return XDP_DROP;
}

/* Attached to physical ports: the drivers of most NICs send XDP frames only while they have a program. */
SEC("xdp")
int csit_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";

/* Digest of this file and the compiler, for the unit test that compares the object with its source. */
char _origin[] SEC("origin") = SOURCE_SHA256 " " __VERSION__;
