"""The first trial of every test: do packets of each service instance arrive in each direction?

And if not, how far do they get? A search on a broken path would only report zero.
"""

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.plan import Hop, Path, Plan
from resources.libraries.python.model.trial import FlowCount, Trial, TrialResult
from resources.libraries.python.search.findings.locate import Counters, count_at

PACKETS_PER_FLOW = 200
DURATION_S = 0.2
LEAST_ARRIVAL = 0.9
"""Share of its packets that a flow has to deliver. A path that works loses nothing at this rate; a receiver that is
still waking up may lose the first few."""


def connectivity_trial(plan: Plan, frame: Frame) -> Trial:
    """A trial of 200 packets for each flow of a plan, at 1000 packets per second and flow."""
    return Trial(
        load_pps=len(plan.flows) * PACKETS_PER_FLOW / DURATION_S,
        duration_s=DURATION_S,
        frame=frame,
        purpose="connectivity",
    )


def diagnose(plan: Plan, result: TrialResult, before: Counters, after: Counters) -> tuple[str, ...]:
    """Name, for each flow that does not arrive, the last hop that saw its packets.

    Args:
        plan: What is deployed.
        result: Of the connectivity trial.
        before: Counters by interface name before the trial; the generator's own may be missing.
        after: The same after it.

    Returns:
        A sentence for each flow that does not arrive; empty when all do.
    """
    seen = {name: after[name] - before[name] for name in after if name in before}
    paths = {(path.instance, path.direction): path for path in plan.paths}
    return tuple(
        _sentence(plan, flow, paths[flow.instance, flow.direction], seen)
        for flow in result.flows
        if flow.sent == 0 or flow.received < flow.sent * LEAST_ARRIVAL
    )


def _sentence(plan: Plan, flow: FlowCount, path: Path, seen: Counters) -> str:
    head = f"{plan.cell.service_type} instance {flow.instance} {flow.direction}: {flow.sent} sent"
    if flow.sent == 0:
        return f"{head}, the generator sent nothing"
    counts = [(hop, count) for hop in path.hops if (count := count_at(hop, flow, path, seen)) is not None]
    # Interfaces count other packets too (neighbour discovery), so a few do not mean that the flow was seen.
    enough = (flow.sent + flow.received) / 2
    last = max(index for index, (_, count) in enumerate(counts) if count >= enough)
    received = f", {flow.received} received" if flow.received else ""
    (hop, count), (next_hop, next_count) = counts[last], counts[last + 1]
    return f"{head}{received}, last seen at {_place(hop)} ({count}), not at {_place(next_hop)} ({next_count})"


def _place(hop: Hop) -> str:
    return f"{hop.owner} {hop.interface} {hop.counter}"
