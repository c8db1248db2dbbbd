"""Search of the maximum connection establishment rate (RFC 9693), as NDR is searched."""

from collections.abc import Callable
from dataclasses import dataclass

from resources.libraries.python.errors import NoTraffic
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.studies.stateful.model.record import EstablishmentRate


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of a trial, beside the system under test."""

    offered_cps: float
    """Highest rate that can be offered, aggregate."""
    most: int
    """Most connections of each instance in a trial."""
    full: str
    """What more of them would need."""
    line: str = ""
    """Why a line carries no higher rate; empty where the generator offers none."""


def most_one_way_pps(plan: Plan, frame: Frame, both_pps: float) -> tuple[float, str]:
    """Return the most packets per second in one direction, and the line that decides them.

    They fill the slowest port, where its speed is known; empty where the generator sends fewer.

    `both_pps`: most that can be offered in both directions, in sum. A generator whose directions share a CPU may reach
    as much in one.
    """
    line = max_rate(plan, frame)
    if line is None or line.direction_pps > both_pps:
        return both_pps, ""
    return line.direction_pps, line.reason


def search_rate(
    run: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    room: ConnectionLimits,
    clock: Callable[[], float],
    *,
    instances: int,
    least_cps: float,
) -> EstablishmentRate:
    """Search the highest rate at which all connections are established.

    Args:
        run: Runs a trial, whose load is new connections per second; what its result calls received is established.
        profile: With one goal, which allows no loss.
        frame: Of the packets.
        room: What bounds a trial.
        clock: Seconds.
        instances: Service instances.
        least_cps: Lowest rate, of each instance.

    Raises:
        NoTraffic: No rate is low enough.
    """
    final_s = profile.goals[0].final_trial_duration_s
    fitting_cps = room.most * instances / final_s
    begun_s = clock()
    outcome = search_throughput(
        run, profile, frame, min(room.offered_cps, fitting_cps), clock, min_load_pps=least_cps * instances
    )
    search_s = clock() - begun_s
    found = outcome.goals[0]
    if found.lower_pps is None:
        if found.lowest_tried_pps is None:
            count = len(outcome.trials)
            raise NoTraffic(f"no rate was decided by {count} trial{'s'[: count != 1]} in {search_s:.0f} s")
        early = "" if found.complete else f"; the search ended early, at its limit of {profile.duration_max_s:g} s"
        raise NoTraffic(
            f"no rate without a failed connection was found down to {found.lowest_tried_pps:,.0f} per second{early}"
        )
    at = next(each for each in reversed(outcome.trials) if each.trial.load_pps == found.lower_pps)
    remarks = [finding.text for finding in outcome.findings]
    if found.upper_pps is None and fitting_cps <= room.offered_cps:
        remarks = [f"a trial of {final_s:g} s at a higher rate {room.full}"]
    elif found.upper_pps is None and room.line:
        remarks.append(f"a line carries no more connections in one direction, of one packet each ({room.line})")
    return EstablishmentRate(
        lower_cps=found.lower_pps,
        upper_cps=found.upper_pps,
        by_instance_cps=tuple(
            each.received / at.trial.duration_s for each in sorted(at.flows, key=lambda flow: flow.instance)
        ),
        complete=found.complete,
        trials=len(outcome.trials),
        search_s=search_s,
        sending_s=sum(each.total_duration_s for each in outcome.trials),
        remark="; ".join(remarks),
    )
