"""TCP connections by TRex's advanced stateful mode (ASTF): loads and results of trials. Pure."""

from collections.abc import Sequence
from ipaddress import IPv4Address

from resources.libraries.python.drivers.generators.connection_rates import connections_result
from resources.libraries.python.drivers.generators.trex.wire import ConnectionCounts, ConnectionLoad
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import Trial, TrialResult

PORT = 80
REST_S = 1.5
"""Time that connections have to end, where they go on to do so."""
_COUNTED = frozenset({"client: tcps_rexmttimeo_syn", "client: tcps_conndrops"})
"""Errors that are counts of their own here."""
_LATE, _LATE_S = 0.05, 0.1


def most_s(duration_s: float) -> float:
    """Return the most time that opening the connections of a trial may take: after that, the rate was not offered."""
    return duration_s + max(_LATE * duration_s, _LATE_S)


def load_of(flow: Flow, connections: int, rate_cps: float) -> ConnectionLoad:
    """Connections of an instance: from all of its flow's source addresses in turns.

    Args:
        flow: The forward flow of the instance.
        connections: How many.
        rate_cps: Connections per second.
    """
    first = IPv4Address(flow.source_ip)
    return ConnectionLoad(
        clients=(str(first), str(first + flow.sources - 1)),
        server=flow.destination_ip,
        port=PORT,
        connections=connections,
        rate_cps=rate_cps,
    )


def established(counts: ConnectionCounts) -> int:
    """Connections that were opened at the first try, answered, and closed by both ends.

    A client closes when the server has, and counts the end when the server has acknowledged that.

    Where SYNs were repeated, it is not known which of the connections were established all the same: as many count as
    failed.
    """
    ended = min(counts.connected, counts.closed - counts.dropped, counts.accepted)
    return max(0, ended - counts.repeated)


def trial_result(
    trial: Trial,
    rows: Sequence[tuple[Flow, int, ConnectionCounts]],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what the servers count; packets of the result are connections.

    Args:
        trial: As it was asked.
        rows: The forward flow of each instance, connections asked for, and the counts.
        started_at: UTC, ISO 8601.
        total_duration_s: Wall time of all.
    """
    limits = []
    asked, opened = sum(number for _, number, _ in rows), sum(counts.attempted for _, _, counts in rows)
    if opened < asked:
        limits.append(f"TRex opened {opened} of {asked} connections in the time for them")
    took_s = max((counts.sending_s for _, _, counts in rows), default=0.0)
    if opened == asked and took_s > most_s(trial.duration_s):
        late_s = took_s - trial.duration_s
        limits.append(f"TRex took {late_s * 1000:.0f} ms longer than {trial.duration_s:g} s to open the connections")
    opened_ones = [(flow, each.attempted, min(each.attempted, established(each))) for flow, _, each in rows]
    remarks = _remarks([counts for _, _, counts in rows])
    return connections_result(trial, opened_ones, started_at, total_duration_s, limits=limits, remarks=remarks)


def _remarks(rows: Sequence[ConnectionCounts]) -> list[str]:
    """How connections failed."""
    found = []
    if dropped := sum(each.dropped for each in rows):
        found.append(f"{dropped} connections were reset or given up")
    if repeated := sum(each.repeated for each in rows):
        found.append(f"{repeated} SYNs were repeated")
    if unanswered := sum(max(0, each.attempted - each.connected) for each in rows):
        found.append(f"{unanswered} SYNs had no answer")
    if open_ones := sum(max(0, each.connected - each.closed) for each in rows):
        found.append(f"{open_ones} connections were not closed")
    errors = sorted({name for each in rows for name, count in each.errors.items() if count and name not in _COUNTED})
    return [*found, *(f"{name} {sum(each.errors.get(name, 0) for each in rows)}" for name in errors)]
