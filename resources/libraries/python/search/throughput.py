"""NDR and PDR in one search, by MLRsearch (draft-ietf-bmwg-mlrsearch, the library of that name).

Units: our trials and results carry aggregate rates of both directions, the library's loads are per port, one
direction. They are converted in `_Measurer.measure` and `_goal_result`, by `DIRECTIONS`, and nowhere else.

Decisions where the library leaves a choice:

- A trial counts towards a duration sum with its overhead, as in CSIT (see `bounds.effective_s`).
- The library tells long trials from short ones by the *intended* duration, so that is what it is given, whatever the
  generator made of it.
- The library derives its grid of loads from the lowest and highest load. Both stay fixed within a search; a restart
  with a lower maximum has a new grid and starts from nothing, since no load of the old grid would be met again.
- Loss is what was sent and did not come back. What the generator did not send is no loss of the system under test:
  such a trial is repeated, and where that does not help the search is restarted below the rate that was reached.
- Bounds are the library's; the conditional throughput at the lower bound is our own (see `bounds.LoadEvidence`).
- A goal that no load meets is a result: `lower_pps` None, `lowest_tried_pps` given.
- The library's time limit is real time and discards all results, so it is set out of reach. Ours is kept by the
  injected clock before each trial, and ends the search with the bounds that are known by then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch import GoalResult as LibraryResult

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import Goal, GoalResult, SearchProfile
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search import profiles
from resources.libraries.python.search.bounds import best_known, gather, likely_bounds
from resources.libraries.python.search.eta import remaining_s
from resources.libraries.python.search.session import GeneratorTooSlow, Session, TimeUp

Measure = Callable[[Trial], TrialResult]

DIRECTIONS = 2
MIN_LOAD_PPS = DIRECTIONS * 9001.0
"""CSIT's lowest load, 9001 pps per direction."""
MOST_RESTARTS = 3
_LEAST_SPAN = 10.0
"""Highest over lowest load, at least: a slow generator is searched from lower down."""


class SearchOutcome(Frozen):
    """What a search found, and every trial it took."""

    goals: tuple[GoalResult, ...]
    """In the order of the profile."""
    trials: tuple[TrialResult, ...]
    generator_bound: bool
    """A goal was still met at the highest load that could be offered, or the generator kept failing to offer a load."""
    evidence: tuple[str, ...]
    """What was unusual, in sentences with numbers."""
    max_load_pps: float
    """The highest load of the last search, after restarts."""
    elapsed_s: float

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
    """Where a search is, after each trial."""

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
    on_progress: Callable[[Progress], None] | None = None,
) -> SearchOutcome:
    """Search the throughput for all goals of a profile at once.

    Args:
        measure: Runs one trial; whatever it raises ends the search.
        profile: Goals and time limit.
        frame: Of all trials.
        max_load_pps: Highest load that can be offered, aggregate.
        clock: Seconds; virtual in a simulated world.
        min_load_pps: Lowest load to try, aggregate; lower still where the highest is not 10 times as much.
        on_progress: Called after each trial.

    Raises:
        ValueError: The highest load is not positive, or there are no goals.
    """
    if max_load_pps <= 0:
        raise ValueError(f"the highest load must be positive, not {max_load_pps} pps")
    if not profile.goals:
        raise ValueError(f"the search profile '{profile.name}' has no goals")

    def report(result: TrialResult) -> None:
        if on_progress is not None:
            on_progress(_progress(session, profile, result))

    session = Session(measure, clock, profile.duration_max_s, report)
    notes: list[str] = []
    ceiling_pps = max_load_pps
    found: tuple[GoalResult, ...] | None = None
    gave_up = False
    for restart in range(MOST_RESTARTS + 1):
        try:
            found = _search(session, profile, frame, min(min_load_pps, ceiling_pps / _LEAST_SPAN), ceiling_pps)
        except TimeUp as limit:
            notes.append(str(limit))
        except GeneratorTooSlow as limit:
            notes.append(str(limit))
            gave_up = restart == MOST_RESTARTS or limit.reachable_pps <= 0
            if not gave_up:
                ceiling_pps = min(limit.reachable_pps, ceiling_pps)
                continue
        break
    results = found or tuple(best_known(session.trials, goal) for goal in profile.goals)
    unbounded = [result for result in results if found and result.upper_pps is None]
    notes += [
        f"{result.goal.name}: loss ratio {result.goal.loss_ratio:g} was still met at {ceiling_pps:.0f} pps, "
        "the highest load that can be offered"
        for result in unbounded
    ]
    if gave_up:
        notes.append(f"the search was given up after {restart} restarts with a lower highest load")
    return SearchOutcome(
        goals=results,
        trials=tuple(session.trials),
        generator_bound=gave_up or bool(unbounded),
        evidence=tuple(notes),
        max_load_pps=ceiling_pps,
        elapsed_s=session.elapsed_s,
    )


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    """Trials in the library's terms: load per port, counts of all ports."""

    def __init__(self, session: Session, frame: Frame) -> None:
        self._session = session
        self._frame = frame

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run one trial at a load per port."""
        trial = Trial(load_pps=intended_load * DIRECTIONS, duration_s=intended_duration, frame=self._frame)
        result, counted_s = self._session.run(trial)
        # A packet that came twice must not hide nor count as a lost one.
        lost = max(0, result.sent - result.received)
        return MeasurementResult(
            intended_duration,
            intended_load,
            offered_count=result.sent,
            loss_count=lost,
            duration_with_overheads=counted_s,
        )


def _search(
    session: Session, profile: SearchProfile, frame: Frame, min_load_pps: float, max_load_pps: float
) -> tuple[GoalResult, ...]:
    """Run the library once."""
    wanted = {goal.name: _library_goal(goal) for goal in profile.goals}
    config = Config()
    # Equal goals are one to the library, whatever we call them.
    config.goals = list(dict.fromkeys(wanted.values()))
    # The highest load is refused below the lowest one, which is 9001 pps until it is set.
    config.min_load, config.max_load = min_load_pps / DIRECTIONS, max_load_pps / DIRECTIONS
    config.search_duration_max = inf
    config.warmup_duration = 0.0
    found = MultipleLossRatioSearch(config).search(_Measurer(session, frame))
    return tuple(_goal_result(goal, found[wanted[goal.name]], session.trials) for goal in profile.goals)


def _library_goal(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.relative_width,
        initial_trial_duration=goal.initial_trial_duration_s,
        final_trial_duration=goal.final_trial_duration_s,
        duration_sum=goal.duration_sum_s,
        fail_fast=False,
    )


def _goal_result(goal: Goal, found: LibraryResult, trials: Sequence[TrialResult]) -> GoalResult:
    """The library's bounds for one goal in aggregate rates, and our throughput at the lower one."""
    per_port = (found.relevant_lower_bound, found.relevant_upper_bound)
    lower_pps, upper_pps = (None if load is None else float(load) * DIRECTIONS for load in per_port)
    throughput_pps = next((row.throughput_pps(goal) for row in gather(trials, goal) if row.load_pps == lower_pps), None)
    return GoalResult(
        goal=goal,
        lower_pps=lower_pps,
        upper_pps=upper_pps,
        throughput_pps=throughput_pps,
        complete=True,
        lowest_tried_pps=upper_pps if lower_pps is None else None,
    )


def _progress(session: Session, profile: SearchProfile, last: TrialResult) -> Progress:
    bounds: dict[str, tuple[float | None, float | None]] = {}
    left_s = 0.0
    for goal in profile.goals:
        rows = gather(session.trials, goal)
        bounds[goal.name] = likely_bounds(rows, goal).pair
        left_s += remaining_s(rows, goal)
    return Progress(
        trials=len(session.trials),
        elapsed_s=session.elapsed_s,
        remaining_s=min(left_s, max(0.0, session.limit_s - session.elapsed_s)),
        bounds=bounds,
        last=last,
    )
