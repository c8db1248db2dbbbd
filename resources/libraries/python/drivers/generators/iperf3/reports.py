"""The reports that client and server of iperf3 write at the end of a run (`-J`), read. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_REVERSE = "_bidir_reverse"
_LEAST_INTERVAL_S = 0.5
"""Shorter ones at the end of a report are leftovers."""


@dataclass(frozen=True, slots=True)
class DirectionReport:
    """One direction of a run, all sessions together."""

    sent: int | None
    """Packets; of UDP only, like the next."""
    received: int | None
    goodput_bps: float
    jitter_ns: float | None
    retransmits: int | None
    """Of TCP only."""


@dataclass(frozen=True, slots=True)
class Second:
    """One second of a run, one way: packets of UDP, bytes of payload of TCP."""

    duration_s: float
    sent: float
    received: float


def report(text: str, warned: str = "") -> dict[str, Any]:
    """A report.

    Args:
        text: Standard output of iperf3.
        warned: Its standard error, quoted if there is no report.

    Raises:
        ValueError: Not a report, or the report of an error.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        said = " ".join(filter(None, (text.strip()[-200:], warned.strip()[-200:])))
        raise ValueError(f"no report: {said or 'nothing was written'}") from error
    if "error" in found:
        raise ValueError(found["error"])
    return dict(found)


def udp(client: Mapping[str, Any], server: Mapping[str, Any]) -> tuple[DirectionReport, DirectionReport]:
    """Both ways of a run by UDP: each end knows what it sent and what it received."""
    return _udp_way(client["end"], server["end"], ""), _udp_way(server["end"], client["end"], _REVERSE)


def _udp_way(sender: Mapping[str, Any], receiver: Mapping[str, Any], way: str) -> DirectionReport:
    came = receiver[f"sum_received{way}"]
    return DirectionReport(
        sent=sender[f"sum_sent{way}"]["packets"],
        # Numbered packets: those that are missing in between are lost, and those at the end never counted.
        received=max(0, came["packets"] - came["lost_packets"]),
        goodput_bps=float(came["bits_per_second"]),
        jitter_ns=came["jitter_ms"] * 1e6,
        retransmits=None,
    )


def tcp(client: Mapping[str, Any]) -> DirectionReport:
    """The forward direction of a run by TCP, at whose end the client gets the server's counts."""
    end = client["end"]
    return DirectionReport(
        sent=None,
        received=None,
        goodput_bps=float(end["sum_received"]["bits_per_second"]),
        jitter_ns=None,
        retransmits=end["sum_sent"].get("retransmits"),
    )


def sent_for_s(client: Mapping[str, Any]) -> float:
    """How long the client sent."""
    return float(client["end"]["sum_sent"]["seconds"])


def by_second(client: Mapping[str, Any], server: Mapping[str, Any], *, by_udp: bool) -> tuple[Second, ...]:
    """Second by second, mean of the ways that data went. Both ends begin at the same moment, by their connection."""
    ways = ("", _REVERSE) if by_udp else ("",)
    ends = [(server, client) if way else (client, server) for way in ways]
    rows: list[Second] = []
    for here, there in zip(_whole(client["intervals"]), _whole(server["intervals"]), strict=False):
        of = {id(client): here, id(server): there}
        pairs = [
            (of[id(sender)][f"sum{way}"], of[id(receiver)][f"sum{way}"])
            for way, (sender, receiver) in zip(ways, ends, strict=True)
        ]
        rows.append(
            Second(
                duration_s=float(here["sum"]["seconds"]),
                sent=sum(_amount(sent, by_udp=by_udp) for sent, _ in pairs) / len(ways),
                received=sum(_amount(came, by_udp=by_udp) for _, came in pairs) / len(ways),
            )
        )
    return tuple(rows)


def _whole(intervals: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in intervals if row["sum"]["seconds"] >= _LEAST_INTERVAL_S]


def _amount(row: Mapping[str, Any], *, by_udp: bool) -> float:
    return float(row["packets"] - row.get("lost_packets", 0) if by_udp else row["bytes"])
