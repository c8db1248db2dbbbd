"""Trials of peers that open connections: how many are asked for, results, and the highest rate that is answered."""

from collections.abc import Callable, Sequence

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowCount,
    HighestLoads,
    Protocol,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Flow

FIRST_CPS = 500.0
"""Rate of each instance at the first step."""
_STEP = 1.5


def connections_of(trial: Trial, instances: int, most: int, tool: str) -> int:
    """Return how many connections of each instance a trial asks for.

    Args:
        trial: Its load is connections per second of all instances.
        instances: How many.
        most: Connections that a client address has ports for.
        tool: The peer's name.

    Raises:
        Unsupported: The trial asks for something else, or for more connections than there are ports.
    """
    if trial.protocol is not Protocol.TCP or not trial.load_pps or trial.probe_pps:
        raise Unsupported(f"{tool} opens TCP connections, for studies of stateful density; it sends no packets")
    connections = max(1, round(trial.load_pps / instances * trial.duration_s))
    if connections > most:
        raise Unsupported(
            f"{connections:,} connections of an instance in a trial: a client address has ports for {most:,}"
        )
    return connections


def connections_result(
    trial: Trial,
    rows: Sequence[tuple[Flow, int, int]],
    started_at: str,
    total_duration_s: float,
    *,
    limits: Sequence[str],
    remarks: Sequence[str] = (),
) -> TrialResult:
    """Return a result whose packets are connections.

    Args:
        trial: As it was asked.
        rows: The forward flow of each instance, connections opened, and those established.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of all.
        limits: What the peer was too slow for.
        remarks: What else is worth a note.
    """
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=trial.duration_s,
        total_duration_s=total_duration_s,
        flows=tuple(
            FlowCount(instance=flow.instance, direction=Direction.FORWARD, sent=opened, received=established)
            for flow, opened, established in rows
        ),
        generator_limited=bool(limits),
        note="; ".join([*limits, *remarks]) or None,
    )


def highest(all_answered: Callable[[float], bool], most_cps: float, instances: int) -> HighestLoads:
    """Raise the rate until some connections have no answer.

    Args:
        all_answered: Opens connections at a rate of each instance, and says whether all had an answer.
        most_cps: The highest rate of each instance that can be asked for.
        instances: How many.

    Returns:
        The highest rate of which all had an answer, in sum, as the one to begin a search at; as the highest one a rate
        two steps above, so that the search has a rate that is too high.
    """
    rate_cps, answered_cps = FIRST_CPS, 0.0
    while rate_cps <= most_cps and all_answered(rate_cps):
        answered_cps, rate_cps = rate_cps, _STEP * rate_cps
    offered_cps = instances * min(most_cps, _STEP * rate_cps)
    return HighestLoads(offered_pps=offered_cps, search_pps=instances * answered_cps or offered_cps)
