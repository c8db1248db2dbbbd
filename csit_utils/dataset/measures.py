"""Declarations of measures: quantities of tests that are shown, explained, compared and followed over time."""

from dataclasses import dataclass
from typing import Self

from resources.libraries.python.model.request.cell import Dimensions

PPS = "pps"
"""Unit of rates."""
OF_WORKLOAD = "of the workload"
"""Unit of a measure in the unit of its workload, such as calls/s."""


@dataclass(frozen=True)
class Explanation:
    """Definition and interpretation of a metric."""

    name: str
    title: str
    what: str
    unit: str
    how: str
    misread: str
    also: tuple[str, ...] = ()
    """Further names of it, those of measures."""


@dataclass(frozen=True, eq=False, repr=False)
class Measure(str):
    """A quantity, which is equal to its name. Rates of other studies than density are of one direction.

    Attributes with names of columns are for measures of tests, see `rows.At`: a row has the values. In other studies
    each value comes with its bounds.
    """

    name: str
    unit: str = PPS
    """Empty: a ratio; or `OF_WORKLOAD`."""
    less_is_better: bool = False
    """Whether an increase is a regression, as of a time or a loss."""
    goal: str = ""
    """Goal of the search that decides what a value means; empty: all of the load, as `TestRow.goals` has it."""
    asked_by: str = ""
    """Part of the types of the tests that are to find it; empty: the goal, or the name."""
    optional: bool = False
    """Whether a test that is to find it may pass without."""
    beside: str = ""
    """Throughput that it follows in tables; empty: in none."""
    searched: str = ""
    """Column with a value wherever it was searched, whatever came out; empty: that of the measure."""
    lower_bound: str = ""
    """Column of the lower bound; empty: the value."""
    upper_bound: str = ""
    """Column of the upper bound; empty: without bounds."""
    complete: str = ""
    """Column of a search that says whether the bounds are as close as was asked for."""
    tried: str = ""
    """Column of the lowest load tried, the upper bound if no load was low enough."""
    stdev: str = ""
    """Column of the standard deviation of trials, of which the value is the mean."""
    trials: str = ""
    """Column of their number."""
    explanation: Explanation | None = None
    """None where it is listed with those of a study."""

    def __new__(cls, name: str, *_attributes: object, **_more: object) -> Self:
        """Create a name."""
        return super().__new__(cls, name)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a test beside that of the value."""
        names = (self.searched, self.lower_bound, self.upper_bound, self.complete, self.tried, self.stdev, self.trials)
        return tuple(filter(None, names))

    def worsening(self, change: float) -> float:
        """Return a change for the worse: the decrease, or the increase of what is better the less there is of it."""
        return change if self.less_is_better else -change


@dataclass(frozen=True)
class MeasuredValue:
    """A value of a measure."""

    measure: Measure
    value: float
    """In the unit of the measure."""
    lowest: float
    """Lower bound of the true value."""
    highest: float | None
    """Upper bound; None: not bounded by the offered load."""


@dataclass(frozen=True)
class MeasuredSubject:
    """What a record of another study than density has measured, with its values; none where they are not valid."""

    values: tuple[MeasuredValue, ...]
    service: str
    """With all that decides what is compared with what."""
    dimensions: Dimensions
    size: str
    """Of the NFs."""
    frame: str
    """Or the unit of the workload."""
    load: str
    vs_dtc: int | None = None
