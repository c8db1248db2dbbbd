"""Location of losses: counters of all hops around trials in which more is offered than the system can take.

Along the path of a flow every hop has a counter. Between two neighbouring hops there is either an owner (it received
and did not send) or a link (it was sent and not received). What is missing in between has three causes:

- queue: the next owner's receive queue was full. Where the counter shows depends on the link. Of a virtual link it is
  the sender that drops (`tx_dropped` of veth, of vhost and memif ports: their ring is full), of a physical one the
  receiver (`rx_dropped`). Either way it is the receiver that did not keep up, and it is charged.
- inside: the owner received them, sent them not, and its port to the next one dropped none: it dropped them itself.
- link: they were sent, and neither arrived nor count as dropped anywhere, such as those that still waited in a queue
  when the counters were read. The receiver is charged, with that remark.

Losses of neighbouring hops add up to the loss of the flow exactly, since each is a difference of the same counters.

Where instances share ports, the counters there are sums over all of them. Losses before, at and behind such a port are
found from sums of the instances' own counters, and reported for all instances together, as instance 0.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from resources.libraries.python.model.findings import HopLoss, LocatedLosses, Usage
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.plan import Hop, Path, Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import GoalResult, SearchProfile

BEYOND = 1.1
"""Load of the locating trial over the highest upper bound. A system that just forwards its limit then loses a tenth:
far more than the noise of a search. Much more load would move the loss to the first queue there is."""
AND = " and "
"""Between the first port and the number of others, where a loss is known of all instances together only."""
_MIN_LOST = 3
"""Packets of the system's own (neighbour discovery) may be counted at some hops and not at others."""

ALL = 0
"""Instance of a loss that is known of all instances together only."""

Counters = Mapping[str, InterfaceCounters]


def locating_trial(profile: SearchProfile, frame: Frame, goals: Iterable[GoalResult], max_load_pps: float) -> Trial:
    """The trial that is to lose packets: a little beyond the highest upper bound, else the highest load.

    `max_load_pps`: Highest load that can be offered, aggregate.
    """
    uppers = [found.upper_pps for found in goals if found.upper_pps is not None]
    load_pps = min(max_load_pps, BEYOND * max(uppers)) if uppers else max_load_pps
    return Trial(load_pps=load_pps, duration_s=profile.mrr_duration_s, frame=frame, purpose="locate")


def locate(
    plan: Plan, results: Sequence[TrialResult], before: Counters, after: Counters, usage: Usage | None = None
) -> LocatedLosses:
    """Find out between which hops the packets of some trials of one load were lost.

    `before`: Counters by interface before the trials. Hops without a counter are passed over.
    """
    seen = {name: after[name] - before[name] for name in after if name in before}
    paths = {(path.instance, path.direction): path for path in plan.paths}
    flows = list(_sum(results))
    rows = [_readings(paths[flow.instance, flow.direction], flow, seen) for flow in flows]
    losses = [
        loss
        for flow, row in zip(flows, rows, strict=True)
        for loss in _along(row, [(flow.instance, row)], flow.direction, at_shared=False)
    ]
    for direction in Direction:
        own = [(flow, row) for flow, row in zip(flows, rows, strict=True) if flow.direction is direction]
        if any(reading.hop.shared for _, row in own for reading in row):
            members = [(flow.instance, row) for flow, row in own]
            losses += _along(_together([row for _, row in own], seen), members, direction, at_shared=True)
    first = results[0].trial
    return LocatedLosses(
        purpose="mrr" if first.purpose == "mrr" else "locate",
        load_pps=first.load_pps,
        offered_pps=sum(result.offered_pps for result in results) / len(results),
        trials=len(results),
        sent=sum(result.sent for result in results),
        received=sum(result.received for result in results),
        hops=tuple(sorted(losses, key=lambda loss: -loss.lost)),
        usage=usage,
    )


def by_owner(losses: Iterable[HopLoss]) -> dict[str, int]:
    """Packets lost by owner, most first."""
    sums: dict[str, int] = {}
    for loss in losses:
        sums[loss.owner] = sums.get(loss.owner, 0) + loss.lost
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _sum(results: Sequence[TrialResult]) -> Iterator[FlowCount]:
    for flow in results[0].flows:
        same = [
            each
            for result in results
            for each in result.flows
            if (each.instance, each.direction) == (flow.instance, flow.direction)
        ]
        yield flow.model_copy(
            update={"sent": sum(each.sent for each in same), "received": sum(each.received for each in same)}
        )


def count_at(hop: Hop, flow: FlowCount, path: Path, seen: Counters) -> int | None:
    """Packets of a flow at a hop, by the hop's counter for that direction.

    Returns:
        None where there is no counter, or where it counts other instances too.
    """
    if hop is path.hops[0]:
        return flow.sent
    if hop is path.hops[-1]:
        return flow.received
    return None if hop.shared else _counted(hop, seen)


def _counted(hop: Hop, seen: Counters) -> int | None:
    if hop.interface not in seen:
        return None
    return seen[hop.interface].rx_packets if hop.counter == "rx" else seen[hop.interface].tx_packets


def _dropped(hop: Hop, seen: Counters) -> int:
    if hop.interface not in seen:
        return 0
    return seen[hop.interface].rx_dropped if hop.counter == "rx" else seen[hop.interface].tx_dropped


@dataclass(frozen=True, slots=True)
class _Reading:
    """A hop with what was counted there."""

    hop: Hop
    count: int | None
    """Packets that passed; None where there is no counter for them."""
    dropped: int
    """Packets dropped at the hop for want of room."""


def _readings(path: Path, flow: FlowCount, seen: Counters) -> list[_Reading]:
    return [
        _Reading(hop, count_at(hop, flow, path, seen), 0 if hop.shared else _dropped(hop, seen)) for hop in path.hops
    ]


def _together(rows: Sequence[Sequence[_Reading]], seen: Counters) -> list[_Reading]:
    """The hops of all flows of a direction as those of one: sums, and the counters of shared ports as they are."""
    found = []
    for index, column in enumerate(zip(*rows, strict=True)):
        first, at_an_end = column[0], index in {0, len(rows[0]) - 1}
        counts = [reading.count for reading in column if reading.count is not None]
        total = sum(counts) if len(counts) == len(column) else None
        if first.hop.shared:
            count = total if at_an_end else _counted(first.hop, seen)
            found.append(_Reading(first.hop, count, _dropped(first.hop, seen)))
        else:
            found.append(_Reading(first.hop, total, sum(reading.dropped for reading in column)))
    return found


_Members = Sequence[tuple[int, Sequence[_Reading]]]
"""Instances with their own paths."""


def _along(row: Sequence[_Reading], members: _Members, direction: Direction, *, at_shared: bool) -> Iterator[HopLoss]:
    """Losses between neighbouring counters of a path.

    `at_shared`: Return losses before, at and behind shared ports, or all others.
    """
    counted = [(index, reading.count) for index, reading in enumerate(row) if reading.count is not None]
    for (here, upto), (there, beyond) in pairwise(counted):
        if any(reading.hop.shared for reading in row[here : there + 1]) is not at_shared:
            continue
        for owner_index, cause, lost in _causes(row, here, there, upto - beyond):
            following = owner_index if cause == "queue" else there
            shares: list[tuple[int, int, _Members]] = [(ALL, lost, members)]
            if len(members) == 1 or (owner_index > there and not row[owner_index].hop.shared):
                # Each instance has its own port there, which has counted what it dropped.
                drops = [lost] if len(members) == 1 else [each[there].dropped for _, each in members]
                shares = [(member[0], drop, [member]) for member, drop in zip(members, drops, strict=True)]
            for instance, own_lost, own in shares:
                if own_lost >= _MIN_LOST:
                    yield HopLoss(
                        instance=instance,
                        direction=direction,
                        last=_named(own, here),
                        next=_named(own, following),
                        owner=own[0][1][owner_index].hop.owner,
                        cause=cause,
                        lost=own_lost,
                    )


def _named(members: _Members, index: int) -> str:
    """The port at a place of a path, and how many more there are where each instance has its own."""
    names = list(dict.fromkeys(row[index].hop.interface for _, row in members))
    return names[0] if len(names) == 1 else f"{names[0]}{AND}{len(names) - 1} more"


_Cause = tuple[int, Literal["queue", "inside", "link"], int]
"""Index of a hop whose owner is charged, why, and packets."""


def _causes(row: Sequence[_Reading], here: int, there: int, missing: int) -> Iterator[_Cause]:
    """Owner that is charged with packets missing between two hops."""
    last, following = row[here], row[there]
    if last.hop.counter == "tx":
        # A link, or an owner without counters behind it, which is then charged as a whole.
        if there == here + 1:
            dropped = min(max(missing, 0), last.dropped + following.dropped)
            yield there, "queue", dropped
            yield there, "link", missing - dropped
        else:
            yield here + 1, "inside", missing
        return
    if following.hop.counter == "tx" and there == here + 1:
        # What an owner's port could not send met a full queue of the next owner.
        dropped = min(max(missing, 0), following.dropped) if there + 1 < len(row) else 0
        yield there + 1, "queue", dropped
        yield here, "inside", missing - dropped
        return
    yield here, "inside", missing
