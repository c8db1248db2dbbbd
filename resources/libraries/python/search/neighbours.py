"""Prediction of a cell's bounds by the cells of its matrix that were measured before it in the same run.

The cost model: a packet takes the time `(a + b (N - 1)) r(S)` of the vSwitch, with N NFs in each of S instances: `a` at
the edges, `b` for each further NF (NFs that share the vSwitch's CPUs are in both), `r` a factor of each number of
instances. NFs with CPUs of their own take `n / S`, and the longer of both times limits the cell. Both are fitted to the
measured cells by relative errors.

The error of a prediction is that of the earlier ones: each cell's prediction is compared with what was measured there,
apart for cells within the measured rows and columns and for cells outside of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from statistics import fmean

MIN_CELLS = 3
"""With fewer measured cells nothing is predicted."""
MAX_ERROR = 0.03
"""A prediction with a larger relative standard error does not start a search: it costs as much as none."""
_UNKNOWN_ERROR = 0.03
"""Relative error before any prediction was compared; it counts as much as one compared prediction."""
_COMPARED = 6
"""The last predictions that the error is taken from: a model that fits by now is not held to its first guesses."""
_ROUNDS = 8
_NEAR_HINTS = 5
_STEADY = 0.002
"""Relative difference of trials in overload that is none."""
_NEVER = 1_000_000
_FLAT = 0.01
"""Spread of the logarithms of hints below which a slope is not taken seriously."""
_STUDENT = (4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31)
"""Standard errors from a prediction to the ends of its interval of 95 %, by how many predictions its error is known of;
Student's t for two degrees of freedom more, which count for the error that is assumed."""


@dataclass(frozen=True, slots=True)
class CellRate:
    """A measured cell, with the throughput of one goal."""

    instances: int
    nfs: int
    pps: float


@dataclass(frozen=True, slots=True)
class Estimated:
    """Predicted throughput, with an interval of 95 %."""

    pps: float
    error: float
    """Relative standard error."""
    cells: int
    """Cells by which it was predicted."""
    compared: int
    """Earlier predictions by which its error is known."""

    @property
    def usable(self) -> bool:
        """Whether a search should start from it."""
        return self.error <= MAX_ERROR

    @property
    def interval_pps(self) -> tuple[float, float]:
        """Low and high end."""
        half = _STUDENT[self.compared] * self.error
        return self.pps * exp(-half), self.pps * exp(half)


@dataclass(slots=True)
class Overload:
    """How the throughput compares with what cells forward in overload, by the cells measured so far.

    Systems forward less than their throughput in overload, or begin to lose packets far below it; that is alike in
    cells that forward about as much.
    """

    _alike: int = 0
    """Cells of which all trials in overload were alike; below 0 once those of one were not."""
    _points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By goal: logarithms of the highest rate over its factor, the hint, and of throughput over hint."""

    def add(self, rates_pps: Sequence[float], lower_pps: Mapping[str, float], loss_ratios: Mapping[str, float]) -> None:
        """Take in a measured cell: what it forwarded in each trial in overload, and its bounds by goal."""
        if not rates_pps:
            return
        if min(rates_pps) < max(rates_pps) * (1 - _STEADY):
            self._alike = -_NEVER
        self._alike += len(rates_pps) > 1
        for goal, pps in lower_pps.items():
            hint_pps = max(rates_pps) / (1 - loss_ratios[goal])
            self._points.setdefault(goal, []).append((log(hint_pps), log(pps / hint_pps)))

    @property
    def steady(self) -> bool:
        """Trials in overload have not differed from each other in three cells: one is enough."""
        return self._alike >= MIN_CELLS

    def throughput_pps(self, goal: str, hint_pps: float) -> float | None:
        """Return the throughput that a hint stands for; None without measured cells."""
        points = self._points.get(goal)
        if not points:
            return None
        at = log(hint_pps)
        near = sorted(points, key=lambda point: abs(point[0] - at))[:_NEAR_HINTS]
        mean_x, mean_y = (fmean(column) for column in zip(*near, strict=True))
        spread = sum((x - mean_x) ** 2 for x, _ in near)
        slope = 0.0
        if len(near) >= MIN_CELLS and spread > 0:
            slope = sum((x - mean_x) * (y - mean_y) for x, y in near) / (spread + _FLAT)
        return hint_pps * exp(mean_y + slope * (at - mean_x))


@dataclass(slots=True)
class Neighbours:
    """Cells of a matrix that differ in instances and NFs only, and one goal.

    `predict` a cell, measure it, `add` it.
    """

    _points: list[CellRate] = field(default_factory=list)
    _errors: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    """Logarithms of predicted over measured, by whether the cell was outside of the measured rows and columns."""
    _model: "_CostModel | None" = None
    """Fitted to these cells; a cell that is predicted and then measured asks twice."""

    def add(self, point: CellRate) -> None:
        """Take in a measured cell, and the error of its prediction."""
        predicted_pps = self._fitted_pps(point.instances, point.nfs)
        if predicted_pps is not None:
            outside = self._outside(point.instances, point.nfs)
            self._errors[outside].append(log(predicted_pps / point.pps))
        self._points.append(point)
        self._model = None

    def predict(self, instances: int, nfs: int) -> Estimated | None:
        """Predict a cell; None with fewer than three cells."""
        fitted_pps = self._fitted_pps(instances, nfs)
        if fitted_pps is None:
            return None
        errors = self._errors[self._outside(instances, nfs)][-_COMPARED:]
        squares = sum(error**2 for error in errors) + _UNKNOWN_ERROR**2
        error = sqrt(squares / (len(errors) + 1))
        return Estimated(fitted_pps, error, len(self._points), len(errors))

    def _outside(self, instances: int, nfs: int) -> bool:
        return all(point.instances != instances for point in self._points) or all(
            point.nfs != nfs for point in self._points
        )

    def _fitted_pps(self, instances: int, nfs: int) -> float | None:
        if len(self._points) < MIN_CELLS:
            return None
        if self._model is None:
            self._model = _fit(self._points)
        return 1 / self._model.time_s(instances, nfs)


@dataclass(frozen=True, slots=True)
class _CostModel:
    """Times per packet of the whole cell."""

    edges_s: float
    inner_s: float
    factors: Mapping[int, float]
    """Of measured rows."""
    trend: tuple[float, float]
    """Logarithm of the factor over the logarithm of S: at 1, and slope."""
    nf_s: float

    def time_s(self, instances: int, nfs: int) -> float:
        level, slope = self.trend
        factor = self.factors.get(instances) or exp(level + slope * log(instances))
        return max((self.edges_s + self.inner_s * (nfs - 1)) * factor, self.nf_s / instances)


def _fit(points: Sequence[CellRate]) -> _CostModel:
    """The model that fits best: without NFs that limit, or where one of the cells is limited by them."""
    candidates = [0.0, *sorted({point.instances / point.pps for point in points})]
    models = [_fit_vswitch(points, nf_s) for nf_s in candidates]
    # A parameter more has to pay for itself.
    return min(models, key=lambda model: (_squares(model, points) + 1e-6) * (2.0 if model.nf_s else 1.0))


def _squares(model: _CostModel, points: Sequence[CellRate]) -> float:
    return sum(log(model.time_s(point.instances, point.nfs) * point.pps) ** 2 for point in points)


def _fit_vswitch(points: Sequence[CellRate], nf_s: float) -> _CostModel:
    """Fit edges, inner hops and rows in turns to the cells that NFs of this time do not limit."""
    limited = [point for point in points if nf_s / point.instances < 0.98 / point.pps] or points
    by_row: dict[int, list[CellRate]] = {}
    for point in limited:
        by_row.setdefault(point.instances, []).append(point)
    factors = dict.fromkeys(by_row, 1.0)
    trend = (0.0, 0.0)
    edges_s = inner_s = 0.0
    for _ in range(_ROUNDS):
        edges_s, inner_s = _line([(point.nfs - 1, 1 / point.pps / factors[point.instances]) for point in limited])
        rows = {
            each: fmean([log(1 / point.pps / (edges_s + inner_s * (point.nfs - 1))) for point in row])
            for each, row in by_row.items()
        }
        trend = _trend([(log(each), value) for each, value in rows.items()])
        factors = {each: exp(value) for each, value in rows.items()}
    return _CostModel(edges_s, inner_s, factors, trend, nf_s)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least squares of relative errors of a line that neither begins nor slopes below 0."""
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    weighted = [(weight, x, y) for weight, (x, y) in zip(weights, points, strict=True)]
    mean_x = sum([weight * x for weight, x, _ in weighted]) / total
    mean_y = sum([weight * y for weight, _, y in weighted]) / total
    spread = sum([weight * (x - mean_x) ** 2 for weight, x, _ in weighted])
    if spread <= 0:
        return mean_y, 0.0
    slope = sum([weight * (x - mean_x) * (y - mean_y) for weight, x, y in weighted]) / spread
    slope = min(max(0.0, slope), mean_y / mean_x if mean_x else slope)
    return max(mean_y - slope * mean_x, 1e-3 * mean_y), slope


def _trend(rows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Level and slope of the factors; the slope of the last two rows, as crowding need not begin with the first."""
    rows = sorted(rows)
    if len(rows) == 1:
        return rows[0][1], 0.0
    (one, low), (other, high) = rows[-2:]
    slope = (high - low) / (other - one)
    return high - slope * other, slope
