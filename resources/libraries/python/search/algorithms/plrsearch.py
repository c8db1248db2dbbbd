"""PLRsearch, the search of soak rates: mean and deviation of the critical load, by Bayesian inference from trials.

The inference follows draft-vpolak-bmwg-plrsearch-03:

- Two functions r(load) give the mean loss rate (packets per second): `stretch`, the integral of a logistic function,
  and `erf`, that of the error function. Their parameters are m, what comes back in deep overload, and the spread a.
- Prior: m and a follow from two numbers that are uniform on (-1, 1): m = top (1 / (x + 1) - 1/2) + 1,
  a = m to the power of (y + 1) / 2.
- Likelihood of the losses of a trial with mean M: geometric, M^k / (1 + M)^(k + 1). The draft has a Poisson
  distribution; FD.io CSIT's implementation has the geometric one, which allows for losses that come in bursts.
- Integration by importance sampling: points are drawn from a bivariate Gaussian distribution around the moments of the
  posterior as they are known, its variance widened.
- Mean and deviation are those of a mixture of both functions in equal parts: their distance adds to the deviation.

Here the focus on the posterior is reached by tempering: in each round the weights are raised to the power (at most 1)
at which enough of the points matter. The last rounds, with the full weights, make the result. Random numbers start from
the same seed in each search.

The critical load is the one whose mean loss ratio is the goal's: both functions are fitted to all trials. The bounds
of the result are the mean minus and plus one standard deviation of the load at which they reach the ratio, as in FD.io
CSIT. So it speaks of loss ratios far below what a single trial can show, as far as the functions fit.

Loads, after the draft: the middle of the range, its top, twice what came back; then the present estimate. Trials
without loss far below the critical load teach little, so after each of them the estimate is drawn towards the smallest
load that lost enough, with a weight that doubles from one such trial to the next. Each trial is a tenth of a second
longer than the one before. The search ends at its time limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import erf, erfc, erfcx

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import GoalResult, Prior, SearchProfile
from resources.libraries.python.search.session import Session, TimeUp

_Array = npt.NDArray[np.float64]
Function = Callable[[_Array, _Array, _Array], _Array]
"""Load, m and a (pps) to the logarithm of the mean loss rate."""

_POINTS = 200
_ROUNDS, _LAST = 10, 4
_WIDER = 5.0
"""Variance of the points over that of the posterior; CSIT's value."""
_MATTER = 0.1
"""Effective sample size, as a share of the points."""
_HALVINGS = 36
_SMALL = -30.0
"""Below it softplus(x) is exp(x) to the last digit."""
_FAR = 1e3
"""Above it t erfcx(t) is 1 / sqrt(pi) but for its next terms."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class CriticalLoad:
    """The critical load, aggregate."""

    mean_pps: float
    stdev_pps: float
    """Standard deviation of the posterior distribution of both functions together."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A trial."""

    load_pps: float
    intended: int
    """Packets."""
    lost: int
    """Lost packets, including those that were not sent and are charged."""


def stretch(load: _Array, m: _Array, a: _Array) -> _Array:
    """Integral of a logistic function; the logarithm of a (1 + exp(-m / a)) (s((load - m) / a) - s(-m / a)).

    s(x) is log(1 + exp(x)).
    """
    x, x0 = (load - m) / a, -m / a
    direct = np.log(np.maximum(np.logaddexp(0.0, x) - np.logaddexp(0.0, x0), _TINY))
    # -expm1(x0 - x) = 1 - exp(-load / a)
    small = x + np.log(-np.expm1(-load / a))
    return np.asarray(np.log(a) + np.log1p(np.exp(x0)) + np.where(x > _SMALL, direct, small))


def bell(load: _Array, m: _Array, a: _Array) -> _Array:
    """Integral of the error function; the logarithm of a (G((load - m) / a) - G(-m / a)) / (1 + erf(m / a)).

    G(z) is exp(-z^2) / sqrt(pi) + z erfc(-z).
    """
    upper, lower = _log_g((load - m) / a), _log_g(-m / a)
    difference = np.log(np.maximum(-np.expm1(np.minimum(lower - upper, -1e-16)), _TINY))
    return np.asarray(np.log(a) + upper + difference - np.log1p(erf(m / a)))


def _log_g(z: _Array) -> _Array:
    t = np.abs(z)
    near = np.minimum(t, _FAR)
    rest = np.where(t > _FAR, 1 / (2 * sqrt(np.pi) * np.maximum(t, 1.0) ** 2), 1 / sqrt(np.pi) - near * erfcx(near))
    below = -(t**2) + np.log(np.maximum(rest, _TINY))
    above = np.log(np.exp(-(near**2)) / sqrt(np.pi) + t * erfc(-near))
    return np.asarray(np.where(z < 0, below, above))


FUNCTIONS: tuple[Function, ...] = (stretch, bell)


class Inference:
    """Trials of one search, and what they say.

    `min_load_pps`: The estimate is not below it, aggregate.
    `max_load_pps`: The estimate is not above it, aggregate.
    """

    def __init__(self, loss_ratio: float, min_load_pps: float, max_load_pps: float) -> None:
        self._target, self._min_pps, self._max_pps = log(loss_ratio), min_load_pps, max_load_pps
        self._rng = np.random.default_rng(0)
        self._focus = [(np.zeros(2), np.eye(2)) for _ in FUNCTIONS]
        self.seen: list[Observation] = []

    def add(self, trial: Observation) -> CriticalLoad:
        """Take in a trial; return the estimate by all of them."""
        self.seen.append(trial)
        parts = [self._estimate(index, function) for index, function in enumerate(FUNCTIONS)]
        means = np.array([mean for mean, _ in parts])
        variance = float(np.mean([deviation**2 for _, deviation in parts]) + np.var(means))
        return CriticalLoad(float(means.mean()), sqrt(variance))

    def _estimate(self, index: int, function: Function) -> tuple[float, float]:
        """Mean and deviation of the critical load by one function."""
        center, spread = self._focus[index]
        kept: list[tuple[_Array, _Array, _Array]] = []
        for number in range(_ROUNDS):
            points = self._points(center, spread * _WIDER)
            m, a = self._parameters(points)
            weights = self._log_likelihood(function, m, a) - _log_density(points, center, spread * _WIDER)
            tempered = _tempered(weights)
            center = tempered @ points
            off = points - center
            # A hair on the diagonal: points on a line have no density.
            spread = (off * tempered[:, None]).T @ off + np.eye(2) * 1e-18
            if number >= _ROUNDS - _LAST:
                kept.append((m, a, weights))
        self._focus[index] = center, spread
        # Densities are normalized, so points of all rounds count by one measure.
        m, a, weights = (np.concatenate(column) for column in zip(*kept, strict=True))
        loads, shares = self._critical_pps(function, m, a), _normalized(weights)
        mean = float(shares @ loads)
        return mean, sqrt(max(0.0, float(shares @ (loads - mean) ** 2)))

    def _points(self, center: _Array, spread: _Array) -> _Array:
        """Points of the Gaussian distribution that are within (-1, 1) twice."""
        found = np.empty((0, 2))
        while len(found) < _POINTS:
            drawn = self._rng.multivariate_normal(center, spread, 2 * _POINTS, check_valid="ignore")
            found = np.concatenate([found, drawn[(np.abs(drawn) < 1).all(axis=1)]])
        return found[:_POINTS]

    def _parameters(self, points: _Array) -> tuple[_Array, _Array]:
        m = self._max_pps * (1 / (points[:, 0] + 1) - 0.5) + 1
        return m, m ** ((points[:, 1] + 1) / 2)

    def _log_likelihood(self, function: Function, m: _Array, a: _Array) -> _Array:
        loads = np.array([trial.load_pps for trial in self.seen])
        sent = np.array([float(trial.intended) for trial in self.seen])
        lost = np.array([float(trial.lost) for trial in self.seen])
        mean = function(loads[None, :], m[:, None], a[:, None]) + np.log(sent / loads)
        each = -lost * np.logaddexp(0.0, -mean) - np.logaddexp(0.0, mean)
        return np.asarray(each.sum(axis=1))

    def _critical_pps(self, function: Function, m: _Array, a: _Array) -> _Array:
        """Where r(load) / load reaches the loss ratio, by halving: r is convex, so the ratio increases."""
        low, high = np.full_like(m, self._min_pps), np.full_like(m, self._max_pps)
        for _ in range(_HALVINGS):
            load = (low + high) / 2
            above = function(load, m, a) - np.log(load) > self._target
            low, high = np.where(above, low, load), np.where(above, load, high)
        return np.asarray((low + high) / 2)


def _log_density(points: _Array, center: _Array, spread: _Array) -> _Array:
    off = points - center
    distance = np.einsum("ij,ji->i", off, np.linalg.solve(spread, off.T))
    return np.asarray(-distance / 2 - np.linalg.slogdet(spread)[1] / 2)


def _normalized(log_weights: _Array) -> _Array:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _tempered(log_weights: _Array) -> _Array:
    """Weights to the highest power, at most 1, at which enough points matter."""

    def matter(power: float) -> bool:
        weights = _normalized(power * log_weights)
        return bool(1 / (weights**2).sum() >= _MATTER * len(weights))

    low, high = 0.0, 1.0
    if matter(high):
        return _normalized(log_weights)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if matter(middle) else (low, middle)
    return _normalized(low * log_weights)


PURPOSE = "soak"
_LONGER_S = 0.1
_ADDED, _DRAINED = 4, 3
"""Copies of a load that lost enough for each trial without such a loss before it; copies that each of these uses up."""
_BY_RATE = 4
"""From this trial on loads are chosen by the estimate."""
_ABOVE = 1 + 1e-6
"""An estimate that is no closer to the lowest load is above it."""


class Plr:
    """A search of the one goal of a profile.

    Raises:
        ValueError: There is not exactly one goal, or it allows no loss at all.
    """

    def __init__(self, session: Session, profile: SearchProfile, frame: Frame) -> None:
        if len(profile.goals) != 1 or not profile.goals[0].loss_ratio:
            raise ValueError("PLRsearch has one goal, with a loss ratio above 0")
        self._session, self._frame, self._goal = session, frame, profile.goals[0]
        self.prior: Prior | None = None
        self.prior_refuted = False
        self._estimate: CriticalLoad | None = None
        self._min_load_pps = 0.0

    def run(self, min_load_pps: float, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Search up to a highest load until the time is over."""
        self._min_load_pps = min_load_pps
        inference = Inference(self._goal.loss_ratio, min_load_pps, max_load_pps)
        lossy, without = [max_load_pps], 0
        load_pps, duration_s = (min_load_pps + max_load_pps) / 2, self._goal.final_trial_duration_s
        while True:
            trial = Trial(load_pps=load_pps, duration_s=duration_s, frame=self._frame, purpose=PURPOSE)
            try:
                result, _ = self._session.run(trial)
            except TimeUp:
                return tuple(each.model_copy(update={"complete": True}) for each in self.known(max_load_pps))
            seen = _observation(result)
            self._estimate = inference.add(seen)
            if seen.lost >= self._goal.loss_ratio * seen.intended:
                lossy = sorted([*lossy, *[load_pps] * (_ADDED * (without + 1))])
                without = 0
            else:
                without += 1
            load_pps = min(max_load_pps, max(min_load_pps, self._next_pps(result, lossy, without, max_load_pps)))
            if without and len(inference.seen) >= _BY_RATE and len(lossy) > _DRAINED:
                lossy = lossy[_DRAINED:]
            duration_s += _LONGER_S

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:  # noqa: ARG002 - loads above it count as well
        """Return the incomplete result from the trials so far; no trial that lost enough means no upper bound."""
        trials = [each for each in self._session.trials if each.is_evidence]
        lossy = any(each.lost >= self._goal.loss_ratio * each.intended for each in map(_observation, trials))
        lower_pps = upper_pps = lowest_pps = None
        if self._estimate is not None:
            low_pps = self._estimate.mean_pps - self._estimate.stdev_pps
            upper_pps = self._estimate.mean_pps + self._estimate.stdev_pps if lossy else None
            lower_pps = low_pps if low_pps > self._min_load_pps * _ABOVE else None
        if lower_pps is None:
            lowest_pps = min((each.trial.load_pps for each in trials), default=None)
        result = GoalResult(
            goal=self._goal,
            lower_pps=lower_pps,
            upper_pps=upper_pps,
            throughput_pps=None,
            complete=False,
            lowest_tried_pps=lowest_pps,
        )
        return (result,)

    def _next_pps(self, result: TrialResult, lossy: list[float], without: int, max_load_pps: float) -> float:
        done = sum(each.trial.purpose == PURPOSE and each.is_evidence for each in self._session.trials)
        if done == 1:
            return max_load_pps
        if done < _BY_RATE or self._estimate is None:
            return result.forwarded_pps / (1 - self._goal.loss_ratio)
        load_pps = self._estimate.mean_pps
        if without and lossy[0] > load_pps:
            weight = 2.0 ** (1 - without)
            load_pps = (lossy[0] + weight * load_pps) / (1 + weight)
        return load_pps


def _observation(result: TrialResult) -> Observation:
    lost, unsent = max(0, result.sent - result.received), result.unsent or 0
    return Observation(result.trial.load_pps, result.sent + unsent, lost + unsent)
