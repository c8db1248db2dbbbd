"""Trials at given loads: the first trial of a test, latency under load, and receive rates in overload.

The first trial of a test shows whether packets of each service instance arrive in each direction, and if not, how far
they get: a search on a broken path would only report zero.

Trials at a rate that was asked for decide each goal there without a search.

Receive rates in overload are what comes back at one load, whatever is lost:

- MRR, maximum receive rate, as in FD.io CSIT: at line rate, or at the most that the generator can send. RFC 2285
  (3.6.2) calls it forwarding rate at maximum offered load.
- ORR, overload receive rate: at the load where a search begins, which is lowered where so much more would only show how
  an overloaded system collapses.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Literal

from resources.libraries.python.model.measurements.trial import FlowCount, Trial, TrialResult
from resources.libraries.python.model.plan import Hop, Path, Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import Goal, SearchProfile
from resources.libraries.python.model.result import AtRate, LatencyAtLoad, ReceiveRate
from resources.libraries.python.quantities import rate
from resources.libraries.python.search.algorithms.bounds import GoalReading, LoadEvidence, gather
from resources.libraries.python.search.findings.itemize import itemize
from resources.libraries.python.search.findings.locate import Counters, count_at
from resources.libraries.python.search.profiles import PDR
from resources.libraries.python.search.session import NothingOffered, Session, TimeUp

LOADS_PERCENT = (90, 50, 10, 0)
"""CSIT's order: the heaviest load first, right after the search."""


def measure_latency(
    measure: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    full_pps: float | None,
    number: str = PDR,
) -> tuple[tuple[LatencyAtLoad, ...], tuple[TrialResult, ...]]:
    """Run the latency trials.

    `full_pps`: The rate that loads are shares of, aggregate; None where it was not reached, which leaves the trial
      without load.
    `number`: Name of that rate, for labels: `PDR` or `SOAK`.

    Returns:
        Latency by load, light loads first, and the trials in the order in which they ran.
    """
    percents = LOADS_PERCENT if full_pps else (0,)
    results = tuple(measure(_probing(profile, frame, (full_pps or 0.0) * percent / 100)) for percent in percents)
    rows = (
        LatencyAtLoad(label=f"{number}{percent}", load_pps=result.trial.load_pps, flows=result.latency)
        for percent, result in zip(percents, results, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: row.load_pps)), results


def _probing(profile: SearchProfile, frame: Frame, load_pps: float) -> Trial:
    return Trial(
        load_pps=load_pps,
        duration_s=profile.latency_duration_s,
        frame=frame,
        probe_pps=profile.latency_probe_pps,
        purpose="latency",
    )


def measure_receive_rate(
    measure: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    load_pps: float,
    purpose: Literal["mrr", "orr"] = "mrr",
) -> tuple[ReceiveRate, tuple[TrialResult, ...]]:
    """Run the profile's MRR trials at a load.

    A trial that the generator limited counts: the rate was received all the same, and `offered_pps` says at what load.
    """
    trial = Trial(load_pps=load_pps, duration_s=profile.mrr_duration_s, frame=frame, purpose=purpose)
    results = tuple(measure(trial) for _ in range(profile.mrr_trials))
    rates = tuple(result.forwarded_pps for result in results)
    found = ReceiveRate(
        offered_pps=fmean(result.offered_pps for result in results),
        receive_rates_pps=rates,
        mean_pps=fmean(rates),
        stdev_pps=stdev(rates) if len(rates) > 1 else None,
    )
    return found, results


AT_RATE = "RATE"
"""Name of figures of trials at a rate that was asked for."""


def measure_at_rate(
    measure: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    load_pps: float,
    clock: Callable[[], float],
) -> tuple[AtRate, LatencyAtLoad, tuple[TrialResult, ...]]:
    """Run trials at one load until every goal is decided there, as a search decides a load, and one for latency.

    A goal is sustained if the load would be a lower bound, and no flow lost more than it allows in the trials that met
    it. A generator that falls short decides nothing.

    Returns:
        What was found, latency, and the trials of loss.
    """
    note = ""
    session = Session(measure, clock, profile.duration_max_s, lambda _: None)
    longest_s = max(goal.final_trial_duration_s for goal in profile.goals)
    try:
        while any(_reading(session.trials, goal, load_pps) is GoalReading.OPEN for goal in profile.goals):
            result, _ = session.run(Trial(load_pps=load_pps, duration_s=longest_s, frame=frame, purpose="rate"))
            if result.generator_limited:
                note = result.note or "the generator fell short of the load"
                break
    except (TimeUp, NothingOffered) as error:
        note = str(error)
    trials = tuple(session.trials)
    readings = {} if note else {goal: _reading(trials, goal, load_pps) for goal in profile.goals}
    sustained = {
        goal.name: reading is GoalReading.GOOD and _within(goal, trials)
        for goal, reading in readings.items()
        if reading is not GoalReading.OPEN
    }
    probed = measure(_probing(profile, frame, load_pps))
    words = [f"{goal} {'sustained' if is_met else 'not sustained'}" for goal, is_met in sustained.items()]
    text = f"{rate(load_pps)} in all: {', '.join(words) or f'not decided: {note}'}"
    found = AtRate(text=text, load_pps=load_pps, sustained=sustained, trials=len(trials), note=note)
    return found, LatencyAtLoad(label=AT_RATE, load_pps=load_pps, flows=probed.latency), (*trials, probed)


def _reading(trials: Sequence[TrialResult], goal: Goal, load_pps: float) -> GoalReading:
    (row,) = gather(trials, goal) or [LoadEvidence(load_pps)]
    return row.proven(goal)


def _within(goal: Goal, trials: Sequence[TrialResult]) -> bool:
    """Whether no flow lost more than a goal allows, in the trials that met the goal."""
    good = [each for each in trials if each.loss_ratio is not None and each.loss_ratio <= goal.loss_ratio]
    found = itemize(AT_RATE, good)
    return found is not None and all(flow.loss_ratio <= goal.loss_ratio for flow in found.flows)


PACKETS_PER_FLOW = 200
DURATION_S = 0.2
MIN_ARRIVAL = 0.9
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

    `before`: Counters by interface name before the trial; the generator's own may be missing.

    Returns:
        A sentence for each flow that does not arrive; empty when all do.
    """
    seen = {name: after[name] - before[name] for name in after if name in before}
    paths = {(path.instance, path.direction): path for path in plan.paths}
    return tuple(
        _sentence(plan, flow, paths[flow.instance, flow.direction], seen)
        for flow in result.flows
        if flow.sent == 0 or flow.received < flow.sent * MIN_ARRIVAL
    )


def _sentence(plan: Plan, flow: FlowCount, path: Path, seen: Counters) -> str:
    head = f"{plan.cell.service_type} instance {flow.instance} {flow.direction}:"
    if flow.sent == 0:
        return f"{head} 0 sent, the generator sent nothing"
    counts = [(hop, count) for hop in path.hops if (count := count_at(hop, flow, path, seen)) is not None]
    # Interfaces count other packets too (neighbour discovery), so a few do not mean that the flow was seen.
    enough = (flow.sent + flow.received) / 2
    last = max(index for index, (_, count) in enumerate(counts) if count >= enough)
    what = f"{flow.sent} sent"
    if flow.received:
        what = f"{100 * (1 - flow.received / flow.sent):.0f} % of {flow.sent} packets are lost"
    (hop, count), (next_hop, next_count) = counts[last], counts[last + 1]
    return f"{head} {what}, last seen at {_place(hop)} ({count}), not at {_place(next_hop)} ({next_count})"


def _place(hop: Hop) -> str:
    return f"{hop.owner} {hop.interface} {hop.counter}"
