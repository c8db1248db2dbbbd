"""NDR and PDR in one search, by the algorithm of the profile.

What all of them share:

- Loss is packets sent minus packets received. A trial of which the generator did not send all is repeated; where that
  does not help, what was not sent is charged as lost, so that the search goes on. An upper bound that only such
  charges have made says nothing about the system under test: it is reported as none, with a sentence.
- A goal that no load meets is a result: `lower_pps` None, `lowest_tried_pps` given.
- A lower bound of a goal is one of all goals that permit more loss.
- The time limit is kept by the injected clock before each trial, and ends the search with the bounds that are known by
  then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, inf, log, log2
from typing import Protocol

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import (
    Algorithm,
    Goal,
    GoalResult,
    Prior,
    SearchProfile,
    SearchRecord,
)
from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.search import profiles
from resources.libraries.python.search.algorithms.bounds import (
    GoalReading,
    LoadEvidence,
    best_known,
    gather,
    in_order,
    likely_bounds,
    proven_bounds,
)
from resources.libraries.python.search.algorithms.conformance import deviations
from resources.libraries.python.search.algorithms.laddersearch import LadderSearch, overload_rates_pps
from resources.libraries.python.search.findings.decay import Decaying, DecayWatch
from resources.libraries.python.search.neighbours import Overload
from resources.libraries.python.search.session import NothingOffered, Session, TimeUp

Measure = Callable[[Trial], TrialResult]

MIN_LOAD_PPS = 2 * 9001.0
"""CSIT's lowest load, 9001 pps per direction."""
_MIN_SPAN = 100.0
"""Minimum ratio of the highest to the lowest load. With a slow generator the search starts below CSIT's minimum load:
the system under test may be slower still, such as one with emulated NICs."""
_DECISION = 0.6
"""Share of a duration sum that deciding one load takes: just above a half when all trials agree."""
_ENDS: Mapping[type[Exception], VerdictKind] = {
    TimeUp: VerdictKind.MEASURED,
    NothingOffered: VerdictKind.GENERATOR_BOUND,
    Decaying: VerdictKind.DECAYING,
}
"""What ends a search early, as findings."""
_UNKNOWN_LOADS = 2
"""Decisions that the search of a missing bound is assumed to take."""


def remaining_s(rows: Sequence[LoadEvidence], goal: Goal) -> float:
    """Seconds until both bounds of a goal are decided and close enough.

    Counts what is missing at the present bounds, and half a decision for each halving of the interval: most halvings
    are made with less evidence, by the coarser goals that precede the goal itself.

    `rows`: Loads with their trials, ascending; the highest load that can be offered is among them.
    """
    if proven_bounds(rows, goal).narrow(goal):
        return 0.0
    bounds = likely_bounds(rows, goal)
    decision_s = goal.duration_sum_s * _DECISION
    if bounds.lower is None:
        return _UNKNOWN_LOADS * decision_s
    if bounds.upper is None:
        # Even the highest load meets the goal so far: there may be nothing to search.
        return bounds.lower.missing_s(goal)
    width = log(bounds.upper.load_pps / bounds.lower.load_pps) / -log(1 - goal.relative_width)
    halvings = max(0, ceil(log2(width) - 1e-6))
    return bounds.lower.missing_s(goal) + bounds.upper.missing_s(goal) + halvings * decision_s / 2


class SearchOutcome(Frozen):
    """Result of a search, with every trial."""

    goals: tuple[GoalResult, ...]
    """In the order of the profile."""
    trials: tuple[TrialResult, ...]
    findings: tuple[Finding, ...]
    """What ended the search early, and goals that the generator bounds: still met at the highest load that could be
    offered, or bounded by charges only."""
    max_load_pps: float
    """The highest load of the search; where the generator fell short, the lowest load at which that made a bound."""
    elapsed_s: float
    record: SearchRecord

    @property
    def decays(self) -> bool:
        """Whether the search ended because the system forwarded less and less."""
        return any(finding.kind is VerdictKind.DECAYING for finding in self.findings)

    def goal(self, name: str) -> GoalResult | None:
        """The result for the goal of that name; None when it was not asked for."""
        return next((result for result in self.goals if result.goal.name == name), None)

    @property
    def ndr(self) -> GoalResult | None:
        """No-drop rate."""
        return self.goal(profiles.NDR)

    @property
    def pdr(self) -> GoalResult | None:
        """Partial-drop rate."""
        return self.goal(profiles.PDR)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a search, after each trial."""

    trials: int
    elapsed_s: float
    remaining_s: float
    """A rough estimate, never more than the time limit leaves."""
    bounds: Mapping[str, tuple[float | None, float | None]]
    """Goal name to the bounds so far, aggregate pps."""
    last: TrialResult


def search_throughput(
    measure: Measure,
    profile: SearchProfile,
    frame: Frame,
    max_load_pps: float,
    clock: Callable[[], float],
    *,
    min_load_pps: float = MIN_LOAD_PPS,
    prior: Prior | None = None,
    from_overload: Overload | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> SearchOutcome:
    """Search the throughput for all goals of a profile at once.

    `measure`: Runs one trial; whatever it raises ends the search.
    `max_load_pps`: Highest load that can be offered, aggregate.
    `clock`: Seconds; virtual in a simulated world.
    `min_load_pps`: Lowest load to try, aggregate; lower still where the highest is not 100 times as much.
    `prior`: What an earlier search found, or neighbours predict; verified, never trusted. Only `Algorithm.LADDER`
      uses it, and what follows.

    Raises:
        ValueError: The highest load is not positive, or there are no goals.
    """
    if max_load_pps <= 0:
        raise ValueError(f"the highest load must be positive, not {max_load_pps} pps")
    if not profile.goals:
        raise ValueError(f"the search profile '{profile.name}' has no goals")

    watch = DecayWatch()

    def report(result: TrialResult) -> None:
        if on_progress is not None:
            on_progress(_progress(session, profile, result))
        if (found := watch.add(result, session.elapsed_s)) is not None:
            raise Decaying(str(found))

    session = Session(measure, clock, profile.duration_max_s, report)
    findings: list[Finding] = []
    found: tuple[GoalResult, ...] | None = None
    runner = _runner(session, profile, frame, prior, from_overload)
    try:
        found = runner.run(min(min_load_pps, max_load_pps / _MIN_SPAN), max_load_pps)
    except tuple(_ENDS) as limit:
        names = tuple(goal.name for goal in profile.goals)
        findings.append(Finding(kind=_ENDS[type(limit)], text=str(limit), numbers=names))
    raw = in_order(found or runner.known(max_load_pps))
    unbounded = [result for result in raw if found and result.upper_pps is None]
    bound_by = [(result.goal.name, _still_met(result, max_load_pps)) for result in unbounded]
    results = tuple(uncharged(result, session.trials) for result in raw)
    short = [(one, other) for one, other in zip(raw, results, strict=True) if one != other]
    bound_by += [(one.goal.name, shortfall(one, session.trials)) for one, _ in short]
    findings += [
        Finding(kind=VerdictKind.GENERATOR_BOUND, text=f"{name}: {text}", numbers=(name,)) for name, text in bound_by
    ]
    return SearchOutcome(
        goals=results,
        trials=tuple(session.trials),
        findings=tuple(findings),
        max_load_pps=min((one.upper_pps or max_load_pps for one, _ in short), default=max_load_pps),
        elapsed_s=session.elapsed_s,
        record=SearchRecord(
            algorithm=profile.algorithm,
            prior=runner.prior,
            prior_refuted=runner.prior_refuted,
            trials=len(session.trials),
            aborted_trials=sum(result.aborted for result in session.trials),
            elapsed_s=session.elapsed_s,
            overload_pps=overload_rates_pps(session.trials, max_load_pps),
            deviations=deviations(profile.algorithm, results, session.trials),
        ),
    )


def _still_met(result: GoalResult, max_load_pps: float) -> str:
    return (
        f"loss ratio {result.goal.loss_ratio:g} was still met at {rate(max_load_pps)}, the highest load that can be "
        "offered"
    )


class _Runner(Protocol):
    """An algorithm in the middle of a search."""

    prior: Prior | None
    """The prior."""
    prior_refuted: bool

    def run(self, min_load_pps: float, max_load_pps: float, /) -> tuple[GoalResult, ...]:
        """Search up to a highest load."""

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Return the result from the trials so far."""


@dataclass
class _Plain:
    """An algorithm that keeps nothing but trials."""

    session: Session
    profile: SearchProfile
    run: Callable[[float, float], tuple[GoalResult, ...]]
    prior: Prior | None = None
    prior_refuted: bool = False

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:  # noqa: ARG002 - loads above it count as well
        """By trials at all loads."""
        return tuple(best_known(self.session.trials, goal) for goal in self.profile.goals)


def _runner(
    session: Session, profile: SearchProfile, frame: Frame, prior: Prior | None, from_overload: Overload | None
) -> _Runner:
    match profile.algorithm:
        case Algorithm.MLRSEARCH:
            # Asked for rarely, and the library of MLRsearch takes long to import.
            from resources.libraries.python.search.algorithms.reference_searches import search_by_library  # noqa: PLC0415

            return _Plain(session, profile, partial(search_by_library, session, profile, frame))
        case Algorithm.LADDER:
            return LadderSearch(session, profile, frame, prior, from_overload)
        case Algorithm.RFC2544:
            from resources.libraries.python.search.algorithms.reference_searches import binary_search  # noqa: PLC0415

            return _Plain(session, profile, partial(binary_search, session, profile, frame))
        case Algorithm.PLR:
            # SciPy takes long to import too.
            from resources.libraries.python.search.algorithms.plrsearch import Plr  # noqa: PLC0415

            return Plr(session, profile, frame)


def _progress(session: Session, profile: SearchProfile, last: TrialResult) -> Progress:
    bounds: dict[str, tuple[float | None, float | None]] = {}
    left_s = 0.0
    for goal in profile.goals:
        rows = gather(session.trials, goal)
        proven = proven_bounds(rows, goal)
        bounds[goal.name] = (proven if proven.narrow(goal) else likely_bounds(rows, goal)).pair
        # PLRsearch goes on until its time is over.
        left_s += inf if profile.algorithm is Algorithm.PLR else remaining_s(rows, goal)
    return Progress(
        trials=len(session.trials),
        elapsed_s=session.elapsed_s,
        remaining_s=min(left_s, max(0.0, session.limit_s - session.elapsed_s)),
        bounds=bounds,
        last=last,
    )


def uncharged(result: GoalResult, trials: Sequence[TrialResult]) -> GoalResult:
    """The result without an upper bound that only charges have made.

    Without a lower bound nothing is left of it, and it is not complete.
    """
    if result.upper_pps is None or _lost_too_much(result, trials, result.upper_pps):
        return result
    reached = result.lower_pps is not None
    return result.model_copy(
        update={"upper_pps": None, "lowest_tried_pps": None, "complete": result.complete and reached}
    )


def shortfall(result: GoalResult, trials: Sequence[TrialResult]) -> str:
    """Return the shortfall of the generator at the upper bound of a result, as text."""
    at = [trial for trial in trials if trial.trial.load_pps == result.upper_pps and trial.is_evidence]
    short = [trial for trial in at if trial.unsent is not None]
    load, best = rates(result.upper_pps or 0.0, max(trial.offered_pps for trial in short))
    return (
        f"the generator fell short in {len(short)} of {len(at)} trials at {load}, also when they were repeated "
        f"(offered {best} in the best of them): the upper bound there is the generator's, "
        "not that of the system under test"
    )


def _lost_too_much(result: GoalResult, trials: Sequence[TrialResult], load_pps: float) -> bool:
    """Whether a load fails the goal by packets that were sent and lost."""
    at = [trial for trial in trials if trial.trial.load_pps == load_pps]
    if all(trial.unsent is None for trial in at):
        return True
    at = [trial.model_copy(update={"unsent": None if trial.unsent is None else 0}) for trial in at]
    row = gather(at, result.goal)[0]
    return (row.proven(result.goal) if result.complete else row.likely(result.goal)) is GoalReading.BAD
