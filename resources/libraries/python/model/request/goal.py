"""Search goals: what NDR and PDR mean in a result is stored with the result."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty, is_none


class Goal(Frozen):
    """One goal of a throughput search, in the terms of draft-ietf-bmwg-mlrsearch."""

    name: str
    """`NDR`, `PDR` or `SOAK`."""
    loss_ratio: Annotated[float, Field(ge=0, lt=1)]
    exceed_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.5
    relative_width: Annotated[float, Field(gt=0, lt=1)] = 0.005
    initial_trial_duration_s: Annotated[float, Field(gt=0)] = 1.0
    final_trial_duration_s: Annotated[float, Field(gt=0)] = 1.0
    duration_sum_s: Annotated[float, Field(gt=0)] = 21.0


class Algorithm(StrEnum):
    """Algorithm that chooses and decides loads; see docs/search.md."""

    MLRSEARCH = "mlrsearch"
    """The library of that name with nothing added: no early abort, no warm start."""
    LADDER = "ladder"
    """Our own choice of loads on a fixed ladder, with MLRsearch's classification of loads."""
    RFC2544 = "rfc2544"
    """Binary search; one trial of full length decides a load."""
    PLR = "plr"
    """PLRsearch: functions fitted to all trials estimate the load of a mean loss ratio."""


class Prior(Frozen):
    """Result of an earlier search of the same cell on the same testbed, or a prediction by other cells of the run."""

    test_id: str
    """Of the earlier search; of a prediction the last of the cells that predict."""
    started_at: str
    """UTC, ISO 8601."""
    lower_pps: dict[str, float]
    """Goal name to relevant lower bound, aggregate."""
    cells: int | None = Field(default=None, exclude_if=is_none)
    """Cells of the same run that predict the bounds; None for an earlier result of this cell."""


class PredictedGoal(Frozen):
    """Lower bound of a goal that cells measured before in the same run predict, with an interval of 95 %."""

    goal: str
    pps: float
    low_pps: float
    high_pps: float
    cells: int
    """Cells that predict."""


class Deviation(Frozen):
    """A requirement of the MLRsearch specification that a result does not meet."""

    requirement: str
    """A word of `search.algorithms.conformance.REQUIREMENTS`."""
    text: str
    """How, with numbers."""


class SearchRecord(Frozen):
    """Description of the search of a test."""

    algorithm: Algorithm
    prior: Prior | None = None
    """The prior; None for a cold start."""
    prior_refuted: bool = False
    """The trials contradicted the prior, so the search went on without it."""
    trials: int
    aborted_trials: int
    elapsed_s: float
    predicted: tuple[PredictedGoal, ...] = Field(default=(), exclude_if=is_empty)
    """Predictions of a cell without an earlier result, used or too uncertain for that; what was measured is in `ndr`
    and `pdr` of the record."""
    overload_pps: tuple[float, ...] = Field(default=(), exclude_if=is_empty)
    """Forwarded in the trials at the highest load by which the search found its range."""
    deviations: tuple[Deviation, ...] | None = Field(default=None, exclude_if=is_none)
    """From the MLRsearch specification (draft-ietf-bmwg-mlrsearch-15, to be RFC 9971); None of other algorithms."""


class SearchProfile(Frozen):
    """A named set of goals with the time a search may take."""

    name: str
    algorithm: Algorithm = Algorithm.MLRSEARCH
    """Results without this key were searched by MLRsearch."""
    goals: tuple[Goal, ...]
    duration_max_s: Annotated[float, Field(gt=0)]
    """Wall time after which a search ends with the bounds it has."""
    latency_duration_s: Annotated[float, Field(gt=0)]
    latency_probe_pps: Annotated[float, Field(gt=0)]
    """Probe frames per instance and direction."""
    mrr_trials: Annotated[int, Field(ge=1)]
    mrr_duration_s: Annotated[float, Field(gt=0)]


class GoalResult(Frozen):
    """Bounds found for one goal. Rates are aggregates of all instances and both directions."""

    goal: Goal
    lower_pps: float | None
    """Relevant lower bound; None when no load was low enough."""
    upper_pps: float | None
    """Relevant upper bound; None when the highest load that can be offered still met the goal."""
    throughput_pps: float | None
    """Conditional throughput of draft-ietf-bmwg-mlrsearch."""
    complete: bool
    """Whether the bounds are as close as the goal's relative width asks."""
    lowest_tried_pps: float | None = None
    """Without a lower bound: the throughput is below this load."""
