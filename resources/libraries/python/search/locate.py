"""Where packets are lost: counters of all hops around trials in which more is offered than the system can take.

Along the path of a flow every hop has a counter. Between two neighbouring hops there is either an owner (it received
and did not send) or a link (it was sent and not received). What is missing in between has three causes:

- queue: the next owner's receive queue was full. Where the counter shows depends on the link. Of a virtual link it is
  the sender that drops (`tx_dropped` of veth, of vhost and memif ports: their ring is full), of a physical one the
  receiver (`rx_dropped`). Either way it is the receiver that did not keep up, and it is charged.
- inside: the owner received them, sent them not, and its port to the next one dropped none: it dropped them itself.
- link: they were sent, and neither arrived nor count as dropped anywhere, such as those that still waited in a queue
  when the counters were read. The receiver is charged, with that remark.

Losses of neighbouring hops add up to the loss of the flow exactly, since each is a difference of the same counters.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.evidence import HopLoss, Located, Usage
from resources.libraries.python.model.goal import GoalResult, SearchProfile
from resources.libraries.python.model.plan import Hop, Path, Plan
from resources.libraries.python.model.trial import FlowCount, Trial, TrialResult

BEYOND = 1.1
"""Load of the locating trial over the highest upper bound. A system that just forwards its limit then loses a tenth:
far more than the noise of a search. Much more load would move the loss to the first queue there is."""
_LEAST_LOST = 3
"""Packets of the system's own (neighbour discovery) may be counted at some hops and not at others."""

Counters = Mapping[str, InterfaceCounters]


def locating_trial(profile: SearchProfile, frame: Frame, goals: Iterable[GoalResult], max_load_pps: float) -> Trial:
    """The trial that is to lose packets: a little beyond the highest upper bound, else the highest load.

    Args:
        profile: Its MRR trials have the duration.
        frame: Of the trial.
        goals: What the search found.
        max_load_pps: Highest load that can be offered, aggregate.
    """
    uppers = [found.upper_pps for found in goals if found.upper_pps is not None]
    load_pps = min(max_load_pps, BEYOND * max(uppers)) if uppers else max_load_pps
    return Trial(load_pps=load_pps, duration_s=profile.mrr_duration_s, frame=frame, purpose="locate")


def locate(
    plan: Plan, results: Sequence[TrialResult], before: Counters, after: Counters, usage: Usage | None = None
) -> Located:
    """Find out between which hops the packets of some trials of one load were lost.

    Args:
        plan: Has the paths.
        results: Of all trials between the two readings, at least one.
        before: Counters by interface before the trials. Hops without a counter are passed over.
        after: The same after them.
        usage: Of CPUs in the meantime.
    """
    seen = {name: after[name] - before[name] for name in after if name in before}
    paths = {(path.instance, path.direction): path for path in plan.paths}
    losses = [loss for flow in _sum(results) for loss in _along(paths[flow.instance, flow.direction], flow, seen)]
    first = results[0].trial
    return Located(
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
    """Packets of a flow at a hop: an interface belongs to one instance, with a counter for each direction.

    Args:
        hop: Of the path.
        flow: What the generator counted: the first and the last hop.
        path: Of the flow.
        seen: Differences of counters.

    Returns:
        None where there is no counter.
    """
    if hop is path.hops[0]:
        return flow.sent
    if hop is path.hops[-1]:
        return flow.received
    if hop.interface not in seen:
        return None
    return seen[hop.interface].rx_packets if hop.counter == "rx" else seen[hop.interface].tx_packets


def _along(path: Path, flow: FlowCount, seen: Counters) -> Iterator[HopLoss]:
    counted = [
        (index, count) for index, hop in enumerate(path.hops) if (count := count_at(hop, flow, path, seen)) is not None
    ]
    for (here, upto), (there, beyond) in pairwise(counted):
        missing = upto - beyond
        for owner_index, cause, lost in _causes(path, here, there, missing, seen):
            if lost >= _LEAST_LOST:
                yield HopLoss(
                    instance=flow.instance,
                    direction=flow.direction,
                    last=path.hops[here].interface,
                    next=path.hops[owner_index if cause == "queue" else there].interface,
                    owner=path.hops[owner_index].owner,
                    cause=cause,
                    lost=lost,
                )


_Cause = tuple[int, Literal["queue", "inside", "link"], int]
"""Index of a hop whose owner is charged, why, and packets."""


def _causes(path: Path, here: int, there: int, missing: int, seen: Counters) -> Iterator[_Cause]:
    """Who is to be charged with packets that are missing between two hops."""
    last, following = path.hops[here], path.hops[there]
    if last.counter == "tx":
        # A link, or an owner without counters behind it, which is then charged as a whole.
        if there == here + 1:
            dropped = min(max(missing, 0), _dropped(last, seen) + _dropped(following, seen))
            yield there, "queue", dropped
            yield there, "link", missing - dropped
        else:
            yield here + 1, "inside", missing
        return
    if following.counter == "tx" and there == here + 1:
        # What an owner's port could not send met a full queue of the next owner.
        dropped = min(max(missing, 0), _dropped(following, seen)) if there + 1 < len(path.hops) else 0
        yield there + 1, "queue", dropped
        yield here, "inside", missing - dropped
        return
    yield here, "inside", missing


def _dropped(hop: Hop, seen: Counters) -> int:
    if hop.interface not in seen:
        return 0
    return seen[hop.interface].rx_dropped if hop.counter == "rx" else seen[hop.interface].tx_dropped
