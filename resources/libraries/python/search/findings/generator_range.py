"""Results beyond what the generator was qualified for: what they say may be about the generator. Pure."""

from collections.abc import Iterable, Mapping

from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import Finding, LatencyAtLoad, ReceiveRate, VerdictKind
from resources.libraries.python.quantities import counted, latency, rate, rates

QUEUE_FRAMES = 256
"""Frames that a receive queue holds, as for the noise floor."""
TOLERANCE = 1.1
"""A rate counts as beyond another one only above it by this factor: both were measured with some noise."""


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
        if lower_pps > TOLERANCE * limit_pps:
            return (
                f"{' is beyond '.join(rates(lower_pps, limit_pps))}, up to which the generator is qualified "
                f"({place_of(point)}): qualify it again on a quiet machine"
            )
        if upper_pps is not None and upper_pps > limit_pps >= lower_pps / TOLERANCE:
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
        if measured is None or point is None or measured.mean_pps <= TOLERANCE * point.received_pps:
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
        if least_ns * TOLERANCE >= point.floor_ns:
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
        if limit_pps is None or result.offered_pps <= TOLERANCE * limit_pps:
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
