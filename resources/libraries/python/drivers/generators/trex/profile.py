"""Streams of a trial: for each flow of the plan one per frame size, and one more per size for its probes. Pure."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from resources.libraries.python.drivers.generators.trex import packets
from resources.libraries.python.drivers.generators.trex.wire import Stream, Vary
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.traffic import TrafficProfile
from resources.libraries.python.model.trial import Trial

MOST_PROBE_GROUPS = 128
"""Groups of probes that a server has at a time."""
_PROBES_FROM = 10_000


def load_group(index: int) -> int:
    """The group that the load of a flow is counted under; all its sizes are."""
    return index + 1


def probe_groups(index: int, sizes: int) -> range:
    """The groups of a flow's probes, one for each frame size."""
    return range(_PROBES_FROM + index * sizes, _PROBES_FROM + (index + 1) * sizes)


def streams(flows: Sequence[Flow], ports: Mapping[str, int], trial: Trial, profile: TrafficProfile) -> list[Stream]:
    """All streams of a trial.

    Args:
        flows: They share the load equally.
        ports: The port of each sending interface.
        trial: Loads and frame sizes; a size of a mix gets its share of the packets.
        profile: What packets are made of.

    Raises:
        Unsupported: More groups of probes than a server has.
    """
    total = sum(part.weight for part in trial.frame.parts)
    shares = [(part.frame_bytes, part.weight / total) for part in trial.frame.parts]
    wanted = len(flows) * len(shares)
    if trial.probe_pps > 0 and wanted > MOST_PROBE_GROUPS:
        raise Unsupported(
            f"{len(flows)} flows with {len(shares)} frame sizes each need {wanted} streams of latency probes, TRex has "
            f"{MOST_PROBE_GROUPS}; measure latency with one frame size or fewer instances"
        )
    found = []
    for index, flow in enumerate(flows):
        port, sources = ports[flow.tx_interface], _sources(flow, profile)
        if trial.load_pps > 0:
            found += [
                Stream(
                    port=port,
                    frame=packets.load_packet(flow, frame_bytes, profile.load).hex(),
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
                    frame=packets.probe_packet(flow, frame_bytes, profile.probes).hex(),
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


def _sources(flow: Flow, profile: TrafficProfile) -> Vary | None:
    """The source addresses of a flow; None where there is one."""
    if flow.sources == 1:
        return None
    return Vary(
        offset=packets.ipv4_offset(flow) + packets.SOURCE_OFFSET,
        first=int(IPv4Address(flow.source_ip)),
        count=flow.sources,
        order=profile.load.sources,
        checksum_offset=packets.ipv4_offset(flow),
    )
