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

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from math import log
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import bootstrap, trim_mean

from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.call_stacks import HZ, PerfSampler
from resources.libraries.python.drivers.probes.sampler.features import INTERVAL_S, LinuxFeatureSampler
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_on
from resources.libraries.python.drivers.probes.tracer.driver import PERIOD_S, KernelTracer
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.placement.cores import cpu_without_data
from resources.libraries.python.testbed.deployment.cell import Deployment
from resources.libraries.python.testbed.roles.part import TrafficGenerator
from tests.benchmarks.local_cell import LocalCell, local_cell
from tests.benchmarks.sides import figures

_GOAL = 0.005
_TIMES = 20
"""Frequency of watching in a block, as a multiple of that in a study."""
_BLOCK_S = PERIOD_S / _TIMES
_ROUNDS = 160
_FLOW_S, _ROUND_S = 15.0, 1.5
"""Duration of a flow, and upper bound of a round. Flows are renewed because the first packets may shape a whole
flow."""
_MAX_EMPTY = 3
_MIN_PPS, _MAX_PPS, _MORE = 400e3, 4e6, 1.4
"""Range of the search for a load above the capacity of the NF, and factor to the next load."""
_TRY_S = 0.5
_OVERLOADED, _MAX_FORWARDED = 0.7, 0.9
"""Largest share of packets forwarded at a suitable load, and in each flow. Above it, the NF is not, or hardly, the
bottleneck."""
_BEGIN_S, _SETTLE_S = 0.2, 0.04
"""Time until queues are full; time to settle after each switch, between a tracer window and the sampling interval."""
_STARTED_WITHIN_S = 20.0
_PRIORITY = 3
"""Above generator and data threads, so that packets are counted at the end of a block."""
SAMPLER, TRACER, STACKS = "sampler", "tracer", "stacks"
BOTH = "both"
NOTHING, AGAIN = "nothing", "nothing again"
BLOCKS: Mapping[str, Collection[str]] = {
    NOTHING: (),
    AGAIN: (),
    SAMPLER: (SAMPLER,),
    TRACER: (TRACER,),
    BOTH: (TRACER, SAMPLER),
    STACKS: (STACKS,),
}
"""Active probes by block."""
Rates = Mapping[str, float]
"""Packets per second by block of one round."""


class NotOverloaded(CsitError):
    """The NF forwarded nearly all packets, so the cost of watching would not show."""


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Measure throughput of a CSC 1R1C with and without watching, in rounds of six blocks.

    Returns:
        `ours`: cost of sampler and tracer together in a study, as a share of the throughput. `detail` has share and
        interval of each kind of block, and the CPU time of each probe in a study as a share of one CPU: an upper bound
        of what it takes from an NF by running, without the cost of events within the NF.
    """
    with local_cell() as cell, Deployment(cell.plan, cell.parts()) as deployed, ExitStack() as held:
        watchers = Watchers(cell, deployed, held)
        with _prompt(watchers.cpu):
            found = _rounds(deployed.parts.generator, watchers, list(orders(tuple(BLOCKS), rounds)))
        cpu = {name: share / _TIMES for name, share in watchers.end().items()}
    rows = costs(found)
    rate_pps = median(rates[NOTHING] for rates in found)
    note = f"peer is the goal; of {rate_pps / 1e3:.0f} kpps, {_TIMES} times as frequent, {len(found)} rounds: "
    note += ", ".join(f"{name} {_share(row)}" for name, row in rows.items()) + "; CPU time as a share of one CPU: "
    note += ", ".join(f"{name} {share:.2%}" for name, share in cpu.items())
    detail = {**{name: row._asdict() for name, row in rows.items()}, "cpu": cpu}
    return figures(rows[BOTH].middle, _GOAL, "ratio", note, detail=detail)


@contextmanager
def _prompt(cpu: int | None) -> Iterator[None]:
    """Run the calling thread with real-time priority, on the given CPU if there is one."""
    policy, parameters, cpus = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
    stay_on(cpu)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        os.sched_setaffinity(0, cpus)


class Watchers:
    """Sampler and tracer as a chain study uses them, and sampling of call stacks, `_TIMES` as frequent."""

    def __init__(self, cell: LocalCell, deployed: Deployment, held: ExitStack) -> None:
        """Start tracer and call stacks and pause them until a block: to start programs under load would take long."""
        plan, cores = cell.plan, cell.plan.cores
        (fabric,) = (part for part in deployed.parts.cables if isinstance(part, Fabric))
        threads = {owner: tasks.threads() for owner, tasks in tasks_on(plan, fabric).items()}
        cpus = {cpu for owner in threads for cpu in cores.cpus(owner)}
        del threads[VSWITCH]
        self.cpu = cpu_without_data(cores.threads)
        """On which probes run; None if the machine has none to spare."""
        self._sampler = LinuxFeatureSampler(plan, fabric, self.cpu, interval_s=INTERVAL_S / _TIMES)
        self._tracer = KernelTracer(lambda: threads, cell.lock, period_s=PERIOD_S / _TIMES, cpu=self.cpu)
        self._stacks = PerfSampler("here", cpus, dict, cell.lock, cpu=self.cpu, hz=HZ * _TIMES)
        self._switches: Mapping[str, tuple[Callable[[], None], Callable[[], None]]] = {
            SAMPLER: (self._sampler.start, self._end_sampling),
            TRACER: (self._tracer.resume, self._tracer.pause),
            STACKS: (self._stacks.resume, self._stacks.pause),
        }
        self._sampled_s = 0.0
        self._watched_s = Counter[str]()
        for probe in (self._tracer, self._stacks):
            held.callback(probe.stop)
            probe.start()
            probe.pause()
        if "window" not in self._tracer.facts():
            raise CsitError(f"the tracer does not work: {self._tracer.facts()}")

    @contextmanager
    def watching(self, names: Collection[str]) -> Iterator[None]:
        """Let some of them watch."""
        with ExitStack() as held:
            for name in names:
                on, off = self._switches[name]
                held.callback(off)
                on()
            begin_s = time.monotonic()
            yield
            self._watched_s.update(dict.fromkeys(names, time.monotonic() - begin_s))

    def _end_sampling(self) -> None:
        if not self._sampler.stop():
            raise CsitError(f"the sampler has no readings: {self._sampler.facts()}")
        self._sampled_s += self._sampler.cpu_s

    def end(self) -> dict[str, float]:
        """Stop; return the CPU time of each while it watched, as a share of one CPU."""
        self._tracer.stop()
        if not any(node.samples for node in self._stacks.stop()):
            raise CsitError("perf has sampled no call stack")
        cpu_s = {SAMPLER: self._sampled_s, TRACER: self._tracer.cpu_s, STACKS: self._stacks.cpu_s}
        return {name: used_s / self._watched_s[name] for name, used_s in cpu_s.items()}


def _rounds(generator: TrafficGenerator, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """Rounds of successive flows; rounds of a flow that did not overload the NF are repeated at a higher load."""
    found: list[Rates] = []
    load_pps, empty = _overload_pps(generator), 0
    while len(found) < len(every):
        try:
            rounds = _rounds_of_flow(generator, load_pps, watchers, every[len(found) :])
        except NotOverloaded:
            load_pps = _overload_pps(generator, load_pps * _MORE)
            continue
        empty = 0 if rounds else empty + 1
        if empty == _MAX_EMPTY:
            raise CsitError(f"{empty} successive flows without a round that has packets in every block")
        found += rounds
    return found


def _overload_pps(generator: TrafficGenerator, load_pps: float = _MIN_PPS) -> float:
    """Find a load of which the NF forwards only a part, so that the cost of watching shows at the receiver.

    Raises:
        NotOverloaded: The NF forwards the highest load of the generator.
    """
    share = 1.0
    while load_pps <= _MAX_PPS:
        result = _send(generator, load_pps, _TRY_S)
        share = result.received / result.sent
        if share <= _OVERLOADED:
            return load_pps
        load_pps *= _MORE
    raise NotOverloaded(f"{share:.0%} of packets received at the highest load: the NF is not the bottleneck")


def _send(generator: TrafficGenerator, load_pps: float, duration_s: float) -> TrialResult:
    return generator.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=frame("64B")))


def _received(generator: TrafficGenerator) -> int:
    """Packets received so far, in both directions."""
    return sum(row.rx_packets for row in generator.counters().values())


def _rounds_of_flow(
    generator: TrafficGenerator, load_pps: float, watchers: Watchers, every: Sequence[Sequence[str]]
) -> list[Rates]:
    """As many rounds as one flow has time for.

    Raises:
        NotOverloaded: The NF was not the bottleneck.
    """
    lasts_s = min(_FLOW_S, _ROUND_S * (len(every) + 1))
    rounds: list[Rates] = []
    with ThreadPoolExecutor(1, "flow") as pool:
        before = _received(generator)
        trial = pool.submit(_send, generator, load_pps, lasts_s)
        wait_until(
            "packets of a flow", lambda: "none received" if _received(generator) == before else "", _STARTED_WITHIN_S
        )
        end_s = time.monotonic() + lasts_s
        time.sleep(_BEGIN_S)
        for order in every:
            if end_s - time.monotonic() < _ROUND_S:
                break
            rates = {}
            for name in order:
                with watchers.watching(BLOCKS[name]):
                    rates[name] = _block_pps(generator)
                if trial.done():
                    trial.result()  # raises the error of the trial
                    raise CsitError("a flow ended within a block")
            if all(rates.values()):  # else the machine was stalled for a whole block
                rounds.append(rates)
    result = trial.result()
    if result.received > _MAX_FORWARDED * result.sent:
        raise NotOverloaded(f"{result.received} of {result.sent} packets received: the NF is not the bottleneck")
    return rounds


def _block_pps(generator: TrafficGenerator) -> float:
    """Wait for the system to settle, then count packets received for the time of a block."""
    time.sleep(_SETTLE_S)
    before, from_s = _received(generator), time.monotonic()
    time.sleep(max(0.0, from_s + _BLOCK_S - time.monotonic()))
    after, until_s = _received(generator), time.monotonic()
    return (after - before) / (until_s - from_s)


def orders(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Yield a random order for each round, each followed by its reverse, so that a linear drift cancels out."""
    chance, order = random.Random(1), list(names)
    for number in range(rounds):
        order = order[::-1] if number % 2 else chance.sample(names, len(names))
        yield order


def costs(found: Sequence[Rates]) -> "dict[str, Estimate]":
    """Return the cost in a study by kind of block, as a share of the throughput; that of `NOTHING` is the noise."""
    rows = [{name: log(rate_pps) for name, rate_pps in rates.items()} for rates in found]
    kinds = {name: [(row[NOTHING] + row[AGAIN]) / 2 - row[name] for row in rows] for name, on in BLOCKS.items() if on}
    kinds[NOTHING] = [row[NOTHING] - row[AGAIN] for row in rows]
    return {name: _estimate([each / _TIMES for each in row]) for name, row in kinds.items()}


class Estimate(NamedTuple):
    """An estimated difference."""

    middle: float
    interval: tuple[float, float] | None
    """95 % confidence interval; None with fewer than six differences."""


_FEWEST = 6
_MIDDLE = partial(trim_mean, proportiontocut=0.2)
"""The mean without the 20 % at each end, which a disturbed block does not move."""


def _estimate(differences: Sequence[float]) -> Estimate:
    middle = float(_MIDDLE(differences))
    if len(differences) < _FEWEST or len(set(differences)) == 1:
        return Estimate(middle, None)
    found = bootstrap((differences,), _MIDDLE, rng=np.random.default_rng(1)).confidence_interval
    return Estimate(middle, (float(found.low), float(found.high)))


def _share(row: Estimate) -> str:
    if row.interval is None:
        return f"{row.middle:.2%}"
    low, high = row.interval
    return f"{row.middle:.2%} [{low:.2%} to {high:.2%}: {'' if high < _GOAL else 'not shown to be '}below {_GOAL:.1%}]"
