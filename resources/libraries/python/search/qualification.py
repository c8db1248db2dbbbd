"""What a generator can do by itself: its search in a loop-back, and results of tests beyond what was found. Pure.

Rates, the error of a rate, gaps and latency are searched. They bound results from above (rates) and from below
(latency). A trial of a generator on a busy machine may lose packets by chance, so a rate counts as reached when one of
a few trials reaches it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import Finding, LatencyAtLoad, ReceiveRate, VerdictKind
from resources.libraries.python.quantities import counted, latency, rate, rates
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES

PURPOSE = "qualification"
GAP_PPS = 100_000.0
"""Load at which gaps are measured, of all flows."""
PROBE_PPS = 1000.0
"""Probe frames of each flow without load."""
_ERROR_SHARES = (0.1, 0.5)
"""Of the highest rate: loads at which the error of the rate is measured, besides that of gaps and the highest."""
_STEP = 0.98
"""A next load is this share of what arrived of a load that lost packets."""
_CLEARLY, _LOWER = 0.9, 0.7
"""Shares of a load that lost packets: a next load below the first is taken from what arrived, else it is the second."""
_HIGHER = 1.1
"""A next load is that much above one that lost nothing, where none has failed: generators give their highest load with
some headroom."""
_FLOOR_TRIALS = 3
"""Trials without load: the shortest latency of a thread that sleeps between two looks is another one in each."""
_MIN_PPS = 1000.0
_HIGHEST_S = 0.3
"""A trial of the most that a generator sends is no shorter."""
_TOLERANCE = 1.1
"""A rate counts as beyond another one only above it by this factor: both were measured with some noise."""


class Effort(Frozen):
    """How much is spent on a point."""

    trial_s: float = 0.5
    width: float = 0.02
    """Relative distance of the bounds of a rate at which its search ends."""
    tries: int = 2
    """Trials at a load before it counts as not reached."""
    most_trials: int = 24
    """Of the search for one rate."""


BRIEF = Effort(trial_s=0.1, width=0.05, tries=2, most_trials=9)
"""At the start of a run that finds none: at most 4 s for each point."""
LOGGED = Effort(trial_s=1.0, width=0.1, tries=1, most_trials=8)
"""The same for a generator that logs every second, whose trials take 2 to 3 s: at most 20 trials, a minute or two."""


class _Rate:
    """Search of the highest rate whose loss ratio is within a limit, over all trials so far."""

    def __init__(self, run: Callable[[float], TrialResult], effort: Effort, trials: list[TrialResult]) -> None:
        self._run = run
        self._effort = effort
        self._trials = trials

    def highest(self, offered_pps: float, allowed: float) -> float | None:
        """Return the highest rate found, from a load on that can be offered; None where no load was low enough."""
        good = max((each.trial.load_pps for each in self._trials if _passes(each, allowed)), default=0.0)
        failed = [each for each in self._trials if each.trial.load_pps > good]
        bad = min((each.trial.load_pps for each in failed), default=math.inf)
        arrived_pps = max((each.forwarded_pps for each in failed), default=0.0)
        load_pps = _next(good, bad, arrived_pps) if good or failed else offered_pps
        left = self._effort.most_trials
        while left > 0 and load_pps > _MIN_PPS and bad > good * (1 + self._effort.width):
            tried: list[TrialResult] = []
            while left > 0 and len(tried) < self._effort.tries:
                left -= 1
                tried.append(self._run(load_pps))
                self._trials.append(tried[-1])
                if _passes(tried[-1], allowed):
                    good = max(good, load_pps)
                    break
            else:
                bad = min(bad, load_pps)
            load_pps = _next(good, bad, max(each.forwarded_pps for each in tried))
        return good or None


def qualify_point(
    run: Callable[[Trial], TrialResult],
    highest_loads: Callable[[Trial], HighestLoads],
    frame: Frame,
    flows: int,
    effort: Effort,
    *,
    loss_ratio: float,
    numbers_packets: bool,
    sends_probes: bool,
) -> QualifiedPoint:
    """Measure a generator that is looped back.

    `numbers_packets`: Whether the generator counts packets by their numbers, too.

    Raises:
        CsitError: Nothing comes back.
    """
    trial = Trial(load_pps=0.0, duration_s=effort.trial_s, frame=frame, purpose=PURPOSE)

    def at(load_pps: float, **asked: float) -> TrialResult:
        return run(trial.model_copy(update={"load_pps": load_pps, **asked}))

    # Brief trials are many, and the most that a generator sends is measured once: a stall may not count for so much.
    offered_pps = highest_loads(trial.model_copy(update={"duration_s": max(trial.duration_s, _HIGHEST_S)})).offered_pps
    trials: list[TrialResult] = []
    search = _Rate(at, effort, trials)
    loss_free_pps = search.highest(offered_pps, 0.0)
    highest_pps = search.highest(offered_pps, loss_ratio)
    received_pps = max((each.forwarded_pps for each in trials), default=0.0)
    if not received_pps:
        raise CsitError(f"nothing of {rate(offered_pps)} of {frame.name} frames came back over the loop")
    best_pps = highest_pps or received_pps
    paced = [at(share * best_pps) for share in _ERROR_SHARES]
    gaps = at(min(GAP_PPS, best_pps / 2), measure_gaps=True)
    paced.append(gaps)
    counted = None
    if numbers_packets:
        with suppress(Unsupported):
            counted = at(offered_pps, count_losses=True)
    floors = [at(0.0, probe_pps=PROBE_PPS) for _ in range(_FLOOR_TRIALS)] if sends_probes else paced
    worst = max(gaps.gaps, key=lambda flow: flow.p999_ns, default=None)
    latency = [flow for each in floors for flow in each.latency]
    shortest = [flow.min_ns for flow in latency if flow.min_ns is not None]
    medians = [flow.p50_ns for flow in latency if flow.p50_ns is not None]
    errors = [error for each in (*trials, *paced) if (error := rate_error(each)) is not None]
    return QualifiedPoint(
        frame=frame,
        flows=flows,
        loss_free_pps=loss_free_pps,
        highest_pps=highest_pps,
        offered_pps=max(each.offered_pps for each in trials),
        received_pps=received_pps,
        counted_pps=counted.forwarded_pps or None if counted is not None else None,
        rate_error=max(errors, default=None),
        gap_load_pps=gaps.trial.load_pps if worst is not None else None,
        gap_p50_ns=worst.p50_ns if worst is not None else None,
        gap_p99_ns=worst.p99_ns if worst is not None else None,
        gap_p999_ns=worst.p999_ns if worst is not None else None,
        floor_ns=min(shortest, default=None),
        floor_p50_ns=min(medians, default=None),
    )


def rate_error(result: TrialResult) -> float | None:
    """Return the error of a trial's rate, relative; None of one that was short, or had no load."""
    if not result.trial.load_pps or result.generator_limited or not result.offered_duration_s:
        return None
    return abs(result.offered_pps / result.trial.load_pps - 1)


def _next(good: float, bad: float, arrived_pps: float) -> float:
    """Return the load between two bounds to try next: just below what arrived, where that is clearly lower."""
    if bad == math.inf:
        return _HIGHER * good
    hint = _STEP * arrived_pps
    if good < hint < _CLEARLY * bad:
        return hint
    return (good + bad) / 2 if good else _LOWER * bad


def _passes(result: TrialResult, allowed: float) -> bool:
    ratio = result.loss_ratio
    return not result.generator_limited and ratio is not None and ratio <= allowed


class GeneratorRange:
    """Limits of a generator for the results of a test.

    `qualification`: Of the generator; None where it is not qualified, and nothing is found.
    """

    def __init__(self, qualification: Qualification | None, frame: Frame, flows: int) -> None:
        self._qualification = qualification
        self._frame = frame
        self._flows = flows
        self.point: QualifiedPoint | None = qualification.bound(frame, flows) if qualification is not None else None

    def of_goals(self, goals: Iterable[GoalResult]) -> list[Finding]:
        """Bounds of a search that are beyond a limit, a finding for each goal at most."""
        found = []
        for goal in goals:
            text = self._of_goal(goal)
            if text:
                found.append(_finding(f"{goal.goal.name}: {text}", goal.goal.name))
        return found

    def _of_goal(self, goal: GoalResult) -> str:
        if self._qualification is None or self.point is None:
            return ""
        point, allowed = self.point, goal.goal.loss_ratio
        limit_pps = point.rate_for(allowed, self._qualification.loss_ratio)
        lower_pps, upper_pps = goal.lower_pps or 0.0, goal.upper_pps
        if limit_pps is None:
            return (
                f"the generator itself lost more than {allowed:g}, or sent too slowly, in every trial when it was "
                f"looped back ({place_of(point)}): losses may be its own"
            )
        if lower_pps > _TOLERANCE * limit_pps:
            return (
                f"{' is beyond '.join(rates(lower_pps, limit_pps))}, up to which the generator is qualified "
                f"({place_of(point)}): qualify it again on a quiet machine"
            )
        if upper_pps is not None and upper_pps > limit_pps >= lower_pps / _TOLERANCE:
            upper, limit = rates(upper_pps, limit_pps)
            return (
                f"{upper} did not meet the goal, but the generator is qualified up to {limit} "
                f"only ({place_of(point)}): it may limit this rate itself"
            )
        return self._of_pauses(point, goal)

    def _of_pauses(self, point: QualifiedPoint, goal: GoalResult) -> str:
        """A pause of the generator is followed by the frames that were due meanwhile, all at once."""
        upper_pps = goal.upper_pps
        if goal.goal.loss_ratio > 0 or upper_pps is None or point.gap_p999_ns is None or point.gap_p50_ns is None:
            return ""
        pause_s = (point.gap_p999_ns - point.gap_p50_ns) * 1e-9
        frames = pause_s * upper_pps / self._flows
        if frames <= QUEUE_FRAMES:
            return ""
        return (
            f"one of 1000 frames of the generator comes {latency(pause_s * 1e9)} late ({place_of(point)}); at "
            f"{rate(upper_pps)}, {frames:,.0f} frames of a flow follow at once, and a receive queue has "
            f"{QUEUE_FRAMES}: losses may be the generator's doing"
        )

    def of_rate(self, name: str, measured: ReceiveRate | None) -> list[Finding]:
        """A receive rate that is beyond what arrived at most when the generator was looped back."""
        point = self.point
        if measured is None or point is None or measured.mean_pps <= _TOLERANCE * point.received_pps:
            return []
        received = " is beyond ".join(rates(measured.mean_pps, point.received_pps))
        text = (
            f"{name}: {received}, the most that arrived when the generator was looped back ({place_of(point)}): "
            "qualify it again on a quiet machine"
        )
        return [_finding(text, name)]

    def of_latency(self, rows: Iterable[LatencyAtLoad], number: str) -> list[Finding]:
        """Latencies below the floor, which cannot be: the shortest of all loads."""
        point = self.point
        shortest = [(flow.min_ns, row.label, flow) for row in rows for flow in row.flows if flow.min_ns is not None]
        if point is None or point.floor_ns is None or not shortest:
            return []
        least_ns, label, flow = min(shortest, key=lambda each: each[0])
        if least_ns * _TOLERANCE >= point.floor_ns:
            return []
        text = (
            f"{label}: {latency(least_ns)} of instance {flow.instance} {flow.direction} is below "
            f"{latency(point.floor_ns)}, the latency of the generator alone ({place_of(point)}): its time "
            "stamps cannot be trusted, or it was qualified on a busy machine"
        )
        return [_finding(text, number)]


class UnqualifiedLoads:
    """Trials of a test that offered more than the generator is qualified for, whatever the study."""

    def __init__(self, qualification: Qualification) -> None:
        self.qualification = qualification
        self._beyond: dict[QualifiedPoint, list[float]] = {}
        self._disproved: dict[QualifiedPoint, float] = {}

    def look(self, result: TrialResult) -> None:
        """Take note of a trial. One without losses shows that the generator can do more than was found.

        A load of TCP is in connections, or in segments that the kernel cuts out of larger writes: the rate of datagrams
        that was qualified says nothing of it. ICMP was not looped back either.
        """
        if result.trial.protocol in (Protocol.TCP, Protocol.ICMP):
            return
        point = self.qualification.bound(result.trial.frame, len(result.flows))
        if point is None:
            return
        lost = result.received < result.sent
        limit_pps = point.highest_pps if lost else point.loss_free_pps or 0.0
        if limit_pps is None or result.offered_pps <= _TOLERANCE * limit_pps:
            return
        if lost:
            self._beyond.setdefault(point, []).append(result.offered_pps)
        elif result.trial.duration_s >= self.qualification.trial_s and not result.generator_limited:
            self._disproved[point] = max(self._disproved.get(point, 0.0), result.offered_pps)

    def take_disproved(self) -> dict[QualifiedPoint, float]:
        """Return the points that were too low, with the highest load beyond each that lost nothing; forget them."""
        found, self._disproved = self._disproved, {}
        return found

    def other_version(self, facts: Mapping[str, str]) -> list[str]:
        """Return a sentence where the generator of a test is another version of the program than was qualified.

        `facts`: Of the generator; the built-in one names no program, and its version is in the key.
        """
        program, qualified = facts.get("generator", ""), self.qualification.sending
        if not program or not qualified or program == qualified:
            return []
        return [f"the generator is {program}, and was qualified as {qualified}: ./csit qualify measures it again"]

    def take(self) -> list[str]:
        """Return a sentence for each frame size and number of flows, and forget the trials."""
        found, self._beyond = self._beyond, {}
        return [
            f"{counted(len(offered), 'trial')} offered up to {rate(max(offered))}, and the generator is "
            f"qualified up to {rate(point.highest_pps)} ({place_of(point)}): losses may be its own"
            for point, offered in found.items()
        ]


def place_of(point: QualifiedPoint) -> str:
    """Conditions of a point's measurement."""
    return f"looped back, {point.frame.name}, {counted(point.flows, 'flow')}"


def _finding(text: str, number: str) -> Finding:
    return Finding(kind=VerdictKind.UNQUALIFIED, text=text, numbers=(number,))


def in_words(found: Qualification) -> str:
    """A qualification in one line."""
    points = "; ".join(
        f"{point.frame.name} {point.flows} flows {_pps(point.loss_free_pps)} without loss, "
        f"{_pps(point.highest_pps)} with {100 * found.loss_ratio:g} %"
        for point in found.points
    )
    return f"generator {found.key.generator} looped back on {found.key.nic}: {points}"


def _pps(rate_pps: float | None) -> str:
    return "no rate" if rate_pps is None else rate(rate_pps)
