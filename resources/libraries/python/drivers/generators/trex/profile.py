"""Streams of a trial: one per flow of the plan and frame size, and one more per size for probes. Pure."""

import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from resources.libraries.python.drivers.generators.trex.wire import Stream, VariedField
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.frames import LoadPackets, ProbePackets, TrafficProfile

MAX_PROBE_GROUPS = 128
"""Groups of probes that a server has at a time."""
_PROBES_FROM = 10_000


FCS_BYTES = 4
TAG_BYTES = 4
ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
SOURCE_OFFSET = 12
"""Of the source address in the IPv4 header."""
_VLAN, _IPV4 = 0x8100, 0x0800
_DONT_FRAGMENT = 0x4000


def ipv4_offset(flow: Flow) -> int:
    """Where the IPv4 header of a flow's packets begins."""
    return ETHERNET_BYTES + (0 if flow.vlan is None else TAG_BYTES)


def packet(flow: Flow, frame_bytes: int, packets: LoadPackets | ProbePackets) -> bytes:
    """A packet of the load or a probe, with the first of the flow's source addresses.

    `frame_bytes`: L2 size with FCS, without the VLAN tag: what an NF behind the tagged cable sees.

    Returns:
        Without FCS.
    """
    addresses = bytes.fromhex((flow.destination_mac + flow.source_mac).replace(":", ""))
    tag = b"" if flow.vlan is None else struct.pack("!HH", _VLAN, flow.vlan)
    length = frame_bytes - FCS_BYTES - ETHERNET_BYTES
    words = struct.pack("!BBHHHBB", 0x45, packets.dscp << 2, length, 0, _DONT_FRAGMENT, packets.ttl, packets.protocol)
    ends = IPv4Address(flow.source_ip).packed + IPv4Address(flow.destination_ip).packed
    checksum = checksum_of(words + b"\0\0" + ends)
    made = addresses + tag + struct.pack("!H", _IPV4) + words + struct.pack("!H", checksum) + ends
    if isinstance(packets, ProbePackets):
        # A checksum of zero means that there is none.
        made += struct.pack("!HHHH", packets.port, packets.port, length - IPV4_BYTES, 0)
    return made.ljust(length + ETHERNET_BYTES + len(tag), b"\0")


def checksum_of(header: bytes) -> int:
    """The Internet checksum of an even number of bytes; 0 for a header that has the right one in it."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def load_group(index: int) -> int:
    """The group that the load of a flow is counted under; all its sizes are."""
    return index + 1


def probe_groups(index: int, sizes: int) -> range:
    """The groups of a flow's probes, one for each frame size."""
    return range(_PROBES_FROM + index * sizes, _PROBES_FROM + (index + 1) * sizes)


def streams(flows: Sequence[Flow], ports: Mapping[str, int], trial: Trial, profile: TrafficProfile) -> list[Stream]:
    """All streams of a trial.

    `flows`: They share the load equally.
    `ports`: The port of each sending interface.
    `trial`: Loads and frame sizes; a size of a mix gets its share of the packets.

    Raises:
        Unsupported: More groups of probes than a server has.
    """
    total = sum(part.weight for part in trial.frame.parts)
    shares = [(part.frame_bytes, part.weight / total) for part in trial.frame.parts]
    wanted = len(flows) * len(shares)
    if trial.probe_pps > 0 and wanted > MAX_PROBE_GROUPS:
        raise Unsupported(
            f"{len(flows)} flows with {len(shares)} frame sizes each need {wanted} streams of latency probes, TRex has "
            f"{MAX_PROBE_GROUPS}; measure latency with one frame size or fewer instances"
        )
    found = []
    for index, flow in enumerate(flows):
        port, sources = ports[flow.tx_interface], _sources(flow, profile)
        if trial.load_pps > 0:
            found += [
                Stream(
                    port=port,
                    frame=packet(flow, frame_bytes, profile.load).hex(),
                    vary=sources,
                    pps=trial.load_pps / len(flows) * share,
                    group=load_group(index),
                    probe=False,
                )
                for frame_bytes, share in shares
            ]
        if trial.probe_pps > 0:
            found += [
                Stream(
                    port=port,
                    frame=packet(flow, frame_bytes, profile.probes).hex(),
                    vary=sources,
                    pps=trial.probe_pps * share,
                    group=group,
                    probe=True,
                    # Flows take turns.
                    start_us=index / len(flows) * 1e6 / trial.probe_pps,
                )
                for (frame_bytes, share), group in zip(shares, probe_groups(index, len(shares)), strict=True)
            ]
    return found


def _sources(flow: Flow, profile: TrafficProfile) -> VariedField | None:
    """The source addresses of a flow; None where there is one."""
    if flow.sources == 1:
        return None
    return VariedField(
        offset=ipv4_offset(flow) + SOURCE_OFFSET,
        first=int(IPv4Address(flow.source_ip)),
        count=flow.sources,
        order=profile.load.sources,
        checksum_offset=ipv4_offset(flow),
    )
