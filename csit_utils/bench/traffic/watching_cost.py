"""Cost of watching: throughput of an overloaded NF with and without probes, in short alternating blocks.

In a block, watching is 20 times as frequent as in a study: one tracer window, two or three readings of the sampler, and
call stacks at 2,980 Hz. The cost is proportional to their number, so a study has a twentieth of the cost of a block,
and of the noise of this machine. Blocks are short because the speed of a machine varies less between moments than
between seconds. A tracer window has a random position within its period, and a block is one period long, so that it has
one window on average.

A round has two blocks without watching, and one each with the sampler, with the tracer, with both and with call stacks,
in random order.
Compared are logarithms of rates within a round. The comparison of the two blocks without watching shows the noise.
Packets are counted at the receiver, shortly after watching is switched.
"""

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations_with_replacement
from math import log
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from csit_utils.bench.traffic.nf_under_load import (
    BlockFlow,
    NotOverloadedError,
    ServiceUnderLoad,
    overload_pps,
    prompt,
    service,
)
from resources.libraries.python.drivers.probes.sampler.features import INTERVAL_S, LinuxFeatureSampler
from resources.libraries.python.drivers.probes.stacks.perf import HZ, PerfSampler
from resources.libraries.python.drivers.probes.tracer.driver import PERIOD_S, KernelTracer
from resources.libraries.python.errors import CsitError
from resources.libraries.python.planning.names import VSWITCH


class Estimate(NamedTuple):
    """An estimated difference."""

    middle: float
    interval: tuple[float, float] | None
    """95 % confidence interval; None with fewer than six differences."""

    def divided(self, by: float) -> "Estimate":
        """Return the estimate divided by a number."""
        return Estimate(self.middle / by, self.interval and (self.interval[0] / by, self.interval[1] / by))


def estimate(differences: Sequence[float]) -> Estimate:
    """Return the Hodges-Lehmann estimate: the median of the means of all pairs, each value paired with itself too.

    Its interval inverts Wilcoxon's signed-rank test, which is exact for any distribution that is symmetric about the
    median, as are differences between blocks in random order. Hollander, Wolfe and Chicken, Nonparametric Statistical
    Methods, 3rd edition, sections 3.2 and 3.3.

    Args:
        differences: At least one; six or more for an interval.
    """
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(differences, 2))
    cut = _cut(len(differences))
    return Estimate(median(means), (means[cut], means[-1 - cut]) if cut is not None else None)


def _cut(number: int, level: float = 0.95) -> int | None:
    """Number of sorted means outside the interval at each end."""
    ways = np.ones(1)
    for rank in range(1, number + 1):  # each rank is in the sum with probability 1/2
        ways = (np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))) / 2
    outside = int(np.searchsorted(np.cumsum(ways), (1 - level) / 2, "right"))
    return outside - 1 if outside else None


def orders(names: Sequence[str], rounds: int, seed: int = 1) -> Iterator[list[str]]:
    """Yield a random order for each round, each followed by its reverse, so that a linear drift cancels out."""
    chance = random.Random(seed)  # noqa: S311 - the order of blocks
    for number in range(rounds):
        if number % 2 == 0:
            order = chance.sample(names, len(names))
        else:
            order.reverse()
        yield list(order)


SAMPLER, TRACER, STACKS = "sampler", "tracer", "stacks"


class Watchers:
    """Sampler and tracer as a chain study uses them, and sampling of call stacks, at a multiple of their frequency."""

    def __init__(self, here: ServiceUnderLoad, held: ExitStack, times: int) -> None:
        """Start the tracer and pause it: starting its programs under load would take long.

        Args:
            here: The service.
            held: Stops the tracer at its end.
            times: Readings and windows, as a multiple of those of a study.

        Raises:
            CsitError: The tracer does not work on this machine.
        """
        self._sampler = LinuxFeatureSampler(here.plan, here.fabric, here.aside, interval_s=INTERVAL_S / times)
        self._tracer = KernelTracer(lambda: here.threads, here.lock, period_s=PERIOD_S / times, cpu=here.aside)
        self._cpu_s = dict.fromkeys((SAMPLER, TRACER, STACKS), 0.0)
        self._watched_s = dict.fromkeys((SAMPLER, TRACER, STACKS), 0.0)
        held.callback(self._tracer.stop)
        self._tracer.start()
        if "window" not in self._tracer.facts():
            raise CsitError(f"the tracer does not work: {self._tracer.facts()}")
        self._tracer.pause()
        cpus = {cpu for owner in (VSWITCH, *here.threads) for cpu in here.plan.cores.cpus(owner)}
        self._stacks = PerfSampler("here", cpus, dict, here.lock, cpu=here.aside, hz=HZ * times)
        held.callback(self._stacks.stop)
        self._stacks.start()
        self._stacks.pause()

    def switch(self, names: Collection[str], held: ExitStack) -> None:
        """Let some of them watch until the stack is closed."""
        if TRACER in names:
            held.callback(self._tracer.pause)
            self._tracer.resume()
        if STACKS in names:
            held.callback(self._stacks.pause)
            self._stacks.resume()
        if SAMPLER in names:
            held.callback(self._end_sampling)
            self._sampler.start()

    def _end_sampling(self) -> None:
        if not self._sampler.stop():
            raise CsitError(f"the sampler has no readings: {self._sampler.facts()}")
        self._cpu_s[SAMPLER] += self._sampler.cpu_s

    def watched(self, names: Collection[str], lasted_s: float) -> None:
        """Add to the time that some of them have watched."""
        for name in names:
            self._watched_s[name] += lasted_s

    def end(self) -> dict[str, float]:
        """Stop; return the CPU time of each while it watched, as a share of one CPU."""
        self._tracer.stop()
        self._cpu_s[TRACER] = self._tracer.cpu_s
        if not any(node.samples for node in self._stacks.stop()):
            raise CsitError("perf has sampled no call stack")
        self._cpu_s[STACKS] = self._stacks.cpu_s
        return {name: self._cpu_s[name] / self._watched_s[name] for name in self._cpu_s}


_GOAL = 0.005
_TIMES = 20
"""Frequency of watching in a block, as a multiple of that in a study."""
_BLOCK_S = PERIOD_S / _TIMES
_ROUNDS = 160
_FLOW_S, _ROUND_S = 15.0, 1.5
"""Duration of a flow, and upper bound of a round. Flows are renewed because the first packets may shape a whole
flow."""
_MOST_EMPTY = 3
_MORE = 1.4
"""Factor to the next load after one that did not overload the NF."""
BOTH = "both"
NOTHING, AGAIN = "nothing", "nothing again"
BLOCKS: Mapping[str, Collection[str]] = {
    NOTHING: (),
    AGAIN: (),
    SAMPLER: (SAMPLER,),
    TRACER: (TRACER,),
    BOTH: (SAMPLER, TRACER),
    STACKS: (STACKS,),
}
"""Active probes by block."""
Rates = Mapping[str, float]
"""Packets per second by block of one round."""


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure throughput with and without watching.

    Args:
        rounds: Of six blocks; at least six for a confidence interval.

    Returns:
        `ours`: cost of sampler and tracer together in a study, as a share of the throughput; there is no peer, `ratio`
        is to the goal. `detail` has share and 95 % interval (see `estimate`) of sampler, tracer, both, sampling of
        call stacks and nothing, and the CPU time of each probe in a study as a share of one CPU. CPU time is an upper
        bound of what a probe takes from an NF by running; it excludes the cost of events within the NF.

    Raises:
        Unsupported: This machine does not meet the requirements of local runs.
        CsitError: Sampler or tracer has no readings, or the NF was not the bottleneck.
    """
    with service() as here, ExitStack() as held:
        watchers = Watchers(here, held, _TIMES)
        with prompt(here.aside):
            found = _rounds(here, watchers, list(orders(tuple(BLOCKS), rounds)))
        return _summary(found, watchers.end())


def _rounds(here: ServiceUnderLoad, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """Rounds of successive flows; rounds of a flow that did not overload the NF are repeated at a higher load."""
    found: list[Rates] = []
    load_pps, empty = overload_pps(here), 0
    while len(found) < len(every):
        try:
            rounds = _flow(here, load_pps, watchers, every[len(found) :])
        except NotOverloadedError:
            load_pps = overload_pps(here, load_pps * _MORE)
            continue
        empty = 0 if rounds else empty + 1
        if empty == _MOST_EMPTY:
            raise CsitError(f"{empty} successive flows without a round that has packets in every block")
        found += rounds
    return found


def _flow(here: ServiceUnderLoad, load_pps: float, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """As many rounds as one flow has time for."""
    rounds: list[Rates] = []
    lasts_s = min(_FLOW_S, _ROUND_S * (len(every) + 1))
    with BlockFlow(here, load_pps, lasts_s) as flow:
        for order in every:
            if flow.left_s() < _ROUND_S:
                break
            rates = {name: _rate(flow, watchers, BLOCKS[name]) for name in order}
            if all(rates.values()):  # else the machine was stalled for a whole block
                rounds.append(rates)
    return rounds


def _rate(flow: BlockFlow, watchers: Watchers, names: Collection[str]) -> float:
    with ExitStack() as held:
        watchers.switch(names, held)
        rate_pps, lasted_s = flow.block(_BLOCK_S)
    watchers.watched(names, lasted_s)
    return rate_pps


def costs(found: Sequence[Rates]) -> dict[str, Estimate]:
    """Return the cost of each kind of block as a share of the throughput; that of `NOTHING` is the noise."""

    def compared(name: str, plain: Callable[[Rates], float]) -> Estimate:
        return estimate([plain(rates) - log(rates[name]) for rates in found])

    def unwatched(rates: Rates) -> float:
        return (log(rates[NOTHING]) + log(rates[AGAIN])) / 2

    rows = {name: compared(name, unwatched) for name, probes in BLOCKS.items() if probes}
    return {**rows, NOTHING: compared(AGAIN, lambda rates: log(rates[NOTHING]))}


def _summary(found: Sequence[Rates], cpu: Mapping[str, float]) -> dict[str, Any]:
    rows = {name: row.divided(_TIMES) for name, row in costs(found).items()}
    shares = {name: share / _TIMES for name, share in cpu.items()}
    rate_pps = median(rates[NOTHING] for rates in found)
    return {
        "name": "watching_cost",
        "ours": rows[BOTH].middle,
        "peer": None,
        "goal": _GOAL,
        "ratio": round(rows[BOTH].middle / _GOAL, 2),
        "unit": "ratio",
        "note": f"of {rate_pps / 1e3:.0f} kpps, measured at {_TIMES} times the frequency, {len(found)} rounds: "
        + ", ".join(f"{name} {_share(row)}" for name, row in rows.items())
        + "; CPU time as a share of one CPU: "
        + ", ".join(f"{name} {share:.2%}" for name, share in shares.items()),
        "detail": {**{name: row._asdict() for name, row in rows.items()}, "cpu": shares},
    }


def _share(row: Estimate) -> str:
    if row.interval is None:
        return f"{row.middle:.2%}"
    low, high = row.interval
    return f"{row.middle:.2%} [{low:.2%} to {high:.2%}: {'' if high < _GOAL else 'not shown to be '}below {_GOAL:.1%}]"
