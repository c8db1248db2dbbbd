"""Memory shared with the XDP program: the structures of `live_frames.bpf.c`, and what a trial writes into them.

Times are nanoseconds since the program first ran; those of the schedule have 20 more bits of fraction.
"""

import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec

FRACTION_BITS = 20
MAX_FLOWS = 512
"""254 instances, two directions."""
MAX_SIZES = 512
"""The longest cycle of frame sizes."""

STATE = np.dtype(
    [
        ("start_ns", "=u8"),  # on the kernel's clock; 0 until the program has run
        ("end_ns", "=u8"),  # nothing is sent from here on
        ("done", "=u8"),  # nothing more will be sent
        ("left", "=u8"),  # load frames to be sent
        ("due", "=u8"),  # when the next one is due, with fraction
        ("gap", "=u8"),  # time between two, with fraction
        ("slack_ns", "=u8"),  # a lag that is caught up at once
        ("least_gap_ns", "=u8"),  # on average, when further behind
        ("not_before_ns", "=u8"),
        ("flow", "=u8"),  # whose turn it is
        ("probes_left", "=u8"),
        ("probe_due", "=u8"),
        ("probe_gap", "=u8"),
        ("probe_flow", "=u8"),
        ("flows", "=u8"),
        ("sizes", "=u8"),
        ("largest", "=u8"),  # bytes of a frame before it is cut
        ("first_ns", "=u8"),  # when the first load frame was sent
        ("last_ns", "=u8"),
        ("worst_lag_ns", "=u8"),
        ("failed", "=u8"),  # frames that could not be made
        ("tai_ns", "=u8"),  # TAI minus CLOCK_MONOTONIC
        ("captured", "=u8"),  # frames of the capture that are the load; 0: there is none
    ]
)
KIND = np.dtype(
    [
        ("sent", "=u8"),
        ("sum", "=u8"),  # of fixed words, not folded: of the IPv4 header, or in the UDP checksum of IPv6
        ("source", "=u4"),  # whose turn it is
        ("row", "=u4"),  # how often all source addresses have been used
        ("size", "=u4"),  # whose turn it is
        ("ttl_protocol", "=u2"),  # as in the frame
        ("udp", "=u2"),  # what kind of UDP datagrams these are, if any
    ]
)
"""Load frames or probe frames of one flow."""
NO_UDP, UDP_LOAD, UDP_PROBE, UDP_NUMBERED = 0, 1, 2, 3
FLOW = np.dtype(
    [
        ("ethernet_1", "=u8"),  # the first 16 bytes of a frame
        ("ethernet_2", "=u8"),
        ("fragment", "=u4"),  # as in the frame, like the next two
        ("destination", "=u4"),
        ("mark", "=u4"),
        ("first_source", "=u4"),  # as a number
        ("sources", "=u4"),
        ("last_source", "=u4"),  # of the last 5-tuple, before the first one comes again
        ("last_row", "=u4"),
        ("interface", "=u4"),  # index
        ("ipv6", "=u4"),  # whether it is IPv6
        ("source_6", "=u4", (3,)),  # the first 12 bytes of IPv6 addresses, as in the frame like the next one
        ("destination_6", "=u4", (4,)),
        ("pad", "=u4", (4,)),
        ("load", KIND),
        ("probe", KIND),
    ]
)
SIZE = np.dtype([("length", "=u4"), ("total_length", "=u2"), ("udp_length", "=u2")])
"""Bytes of a frame without FCS; the two lengths as in the frame."""
MAX_CAPTURED_BYTES = 3496
"""Of a frame of a capture without FCS: no more fit into a live frame."""
CAPTURED = np.dtype(
    [
        ("length", "=u4"),  # without FCS
        ("source", "=u4"),  # index of its source address
        ("header_sum", "=u4"),  # of the words of the IPv4 header without addresses, not folded
        ("sum", "=u4"),  # likewise, of what the checksum of TCP, UDP or ICMPv6 covers
        ("checksum_offset", "=u4"),  # of that checksum; 0: it has none that covers addresses
        ("pad", "=u4"),
        ("bytes", "u1", (MAX_CAPTURED_BYTES,)),
    ]
)
SHARED = np.dtype([("state", STATE), ("flows", FLOW, (MAX_FLOWS,)), ("sizes", SIZE, (MAX_SIZES,))])


def gap(rate_pps: float | None) -> int:
    """The time between two frames, with fraction; 0 where there is no rate."""
    return round(1e9 / rate_pps * (1 << FRACTION_BITS)) if rate_pps else 0


def fill_flows(rows: NDArray[np.void], flows: Sequence[FlowSpec]) -> None:
    """Write flows' addresses, shape (at least the flows,)."""
    for row, flow in zip(rows, flows, strict=False):
        kind = b"\x86\xdd\x60\x00" if flow.ipv6 else b"\x08\x00\x45\x00"
        ethernet = frames.mac(flow.destination_mac) + frames.mac(flow.source_mac) + kind
        row["ethernet_1"], row["ethernet_2"] = np.frombuffer(ethernet, dtype="=u8")
        source, destination = ip_address(flow.source_ip), ip_address(flow.destination_ip)
        row["first_source"] = int(source) & 0xFFFFFFFF
        row["ipv6"] = flow.ipv6
        if flow.ipv6:
            row["source_6"] = np.frombuffer(source.packed[:12], dtype="=u4")
            row["destination_6"] = np.frombuffer(destination.packed, dtype="=u4")
        else:
            row["fragment"] = socket.htonl(frames.DONT_FRAGMENT)
            row["destination"] = socket.htonl(int(destination))
        row["interface"] = socket.if_nametoindex(flow.tx_interface)
        _set_protocol(row["load"], flow, frames.LOAD_PROTOCOL, NO_UDP)
        _set_protocol(row["probe"], flow, frames.PROBE_PROTOCOL, UDP_PROBE)


def choose_load(rows: NDArray[np.void], flows: Sequence[FlowSpec], spec: TrialSpec) -> None:
    """Set what load frames of a trial are, and their 5-tuples; all flows at the beginning, shape (at least the flows,).

    They are UDP datagrams, numbered and stamped ones, frames of the capture, or none of these.
    """
    kind = UDP_NUMBERED if spec.numbered else UDP_LOAD if spec.udp else NO_UDP
    for index, (row, flow) in enumerate(zip(rows, flows, strict=False)):
        own = struct.pack("!I", spec.mark_of(index)) if spec.mark else frames.PROBE_MARK
        row["mark"] = np.frombuffer(own, dtype="=u4")[0]
        tuples = frames.FlowTuples.of(flow, spec.flows)
        row["sources"] = tuples.sources
        row["last_row"], row["last_source"] = divmod(tuples.count - 1, tuples.sources)
        _set_protocol(row["load"], flow, frames.LOAD_PROTOCOL if kind == NO_UDP else frames.UDP, kind)
        if spec.captured:  # what is the same in the checksums of a flow
            row["load"]["sum"] = frames.fixed_sum(flow) - frames.UDP if flow.ipv6 else 0
    for part in ("load", "probe"):
        for name in ("sent", "source", "row", "size"):
            rows[part][name] = 0


def _set_protocol(kind: NDArray[np.void], flow: FlowSpec, protocol: int, udp: int) -> None:
    if flow.ipv6:
        kind["ttl_protocol"] = socket.htons(frames.UDP << 8 | frames.TTL)
        kind["sum"], kind["udp"] = frames.fixed_sum(flow), udp
        return
    ttl_protocol = frames.TTL << 8 | protocol
    destination = int(ip_address(flow.destination_ip))
    fixed = (0x4500, frames.DONT_FRAGMENT, ttl_protocol, destination >> 16, destination & 0xFFFF)
    kind["ttl_protocol"] = socket.htons(ttl_protocol)
    # the program adds the length of the whole frame
    kind["sum"] = sum(fixed) - frames.ETHERNET_BYTES
    kind["udp"] = udp


def fill_sizes(rows: NDArray[np.void], pattern: Sequence[int], *, ipv6: bool = False) -> None:
    """Write the cycle of frame sizes, with FCS, shape (at least their number,)."""
    header = frames.IPV6_BYTES if ipv6 else frames.IPV4_BYTES
    for row, size in zip(rows, pattern, strict=False):
        length = size - frames.FCS_BYTES
        total = length - frames.ETHERNET_BYTES
        row["length"], row["total_length"] = length, socket.htons(total)
        row["udp_length"] = socket.htons(total - header)


def fill_captured(rows: NDArray[np.void], load: CapturedLoad) -> None:
    """Write the frames of a capture, shape (their number,)."""
    for name, values in (
        ("length", load.lengths),
        ("source", load.sources),
        ("header_sum", load.header_sums),
        ("sum", load.sums),
        ("checksum_offset", load.offsets),
    ):
        rows[name] = values
    rows["bytes"][:, : load.data.shape[1]] = load.data
