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
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import bootstrap, trim_mean

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.call_stacks import HZ, PerfSampler
from resources.libraries.python.drivers.probes.sampler.features import INTERVAL_S, LinuxFeatureSampler
from resources.libraries.python.drivers.probes.tracer.driver import PERIOD_S, KernelTracer
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.planning.placement.cores import cpu_without_data
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.kinds import machine
from resources.libraries.python.testbed.roles.part import TrafficGenerator

_FRAME = frame("64B")
_NO_REALTIME_LIMIT = ("kernel/sched_rt_runtime_us", "-1")


@dataclass(frozen=True)
class ServiceUnderLoad:
    """A deployed service of one NF."""

    plan: Plan
    lock: MachineLock
    fabric: Fabric
    generator: TrafficGenerator
    threads: dict[str, tuple[int, ...]]
    """Pids of data threads by name of the NF."""
    aside: int | None
    """CPU of sampler and tracer; None if the machine has none to spare."""

    def send(self, load_pps: float, duration_s: float) -> TrialResult:
        """Run a trial."""
        return self.generator.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=_FRAME))

    def received(self) -> int:
        """Return the packets that the generator has received so far, in both directions."""
        return sum(row.rx_packets for row in self.fabric.counters([GENERATOR]).values())


@contextmanager
def service() -> Iterator[ServiceUnderLoad]:
    """Deploy a CSC 1R1C, and remove it at the end."""
    topology = load_topology(LOCAL_TOPOLOGY)
    if problems := [*check(), *machine.missing(topology.tg)]:
        raise Unsupported("; ".join(map(str, problems)))
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, **Dimensions(1, 1).columns), discover())
    with ExitStack() as held:
        lock = held.enter_context(MachineLock())
        lock.remove_leftovers()
        lock.set_for_run(*_NO_REALTIME_LIMIT)
        fabric = Fabric(plan, lock, _FRAME.largest_bytes)
        context = DriverContext(plan, fabric, lock, _FRAME.largest_bytes)
        generator = machine.make_generator(topology.tg, context)
        routers = LinuxRouters(topology.dut, context, plan.functions)
        for part in (fabric, LinuxBridge(plan, fabric), routers, generator):
            held.callback(part.stop)
            part.start()
        rows = fabric.threads()
        threads = {
            function.name: tuple(thread for port in plan.ports(function.name) for thread in rows[port.interface])
            for function in plan.functions
        }
        yield ServiceUnderLoad(plan, lock, fabric, generator, threads, cpu_without_data(plan.cores.threads))


MIN_PPS, _MAX_PPS, _STEP = 400e3, 4e6, 1.4
"""Range and factor of the search for a load above the capacity of the NF."""
_TRY_S = 0.5
_OVERLOADED, _MAX_FORWARDED = 0.7, 0.9
"""Largest share of packets forwarded at a suitable load, and in each flow. Above it, the NF is not, or hardly, the
bottleneck."""
_BEGIN_S, _SETTLE_S = 0.2, 0.04
"""Time until queues are full; time to settle after each switch, between a tracer window and the sampling interval."""
_STARTED_WITHIN_S = 20.0
_PRIORITY = 3
"""Above generator and data threads, so that packets are counted at the end of a block."""


class NotOverloaded(CsitError):
    """The NF forwarded nearly all packets, so the cost of watching would not show."""


@contextmanager
def prompt(cpu: int | None) -> Iterator[None]:
    """Run the calling thread with real-time priority, on the given CPU if there is one."""
    policy, parameters, cpus = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
    stay_on(cpu)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        os.sched_setaffinity(0, cpus)


def overload_pps(here: ServiceUnderLoad, load_pps: float = MIN_PPS) -> float:
    """Find a load of which the NF forwards only a part, so that the cost of watching shows at the receiver.

    Raises:
        NotOverloaded: The NF forwards the highest load of the generator.
    """
    share = 1.0
    while load_pps <= _MAX_PPS:
        sent, received = _packets(here.send(load_pps, _TRY_S))
        share = received / sent
        if share <= _OVERLOADED:
            return load_pps
        load_pps *= _STEP
    raise NotOverloaded(f"{share:.0%} of packets received at the highest load: the NF is not the bottleneck")


def _packets(result: TrialResult) -> tuple[int, int]:
    return sum(flow.sent for flow in result.flows), sum(flow.received for flow in result.flows)


@dataclass(frozen=True)
class BlockFlow:
    """A trial in the background."""

    here: ServiceUnderLoad
    trial: "Future[TrialResult]"
    end_s: float

    def left_s(self) -> float:
        """Return the time until the flow ends, in seconds."""
        return self.end_s - time.monotonic()

    def block(self, block_s: float) -> tuple[float, float]:
        """Wait for the system to settle, then count packets for `block_s` seconds.

        Returns:
            Packets received per second, and the elapsed time with settling in seconds.
        """
        begin_s = time.monotonic()
        time.sleep(_SETTLE_S)
        before, from_s = self.here.received(), time.monotonic()
        time.sleep(max(0.0, from_s + block_s - time.monotonic()))
        after, until_s = self.here.received(), time.monotonic()
        if self.trial.done():
            self.trial.result()  # raises the error of the trial
            raise CsitError("a flow ended within a block")
        return (after - before) / (until_s - from_s), until_s - begin_s


@contextmanager
def flow(here: ServiceUnderLoad, load_pps: float, lasts_s: float) -> Iterator[BlockFlow]:
    """Send meanwhile, from when packets are received; wait for the end of the trial.

    Raises:
        NotOverloaded: The NF was not the bottleneck.
    """
    with ThreadPoolExecutor(1, "flow") as pool:
        before = here.received()
        trial = pool.submit(here.send, load_pps, lasts_s)
        wait_until("packets of a flow", lambda: "none received" if here.received() == before else "", _STARTED_WITHIN_S)
        end_s = time.monotonic() + lasts_s
        time.sleep(_BEGIN_S)
        yield BlockFlow(here, trial, end_s)
    sent, received = _packets(trial.result())
    if received > _MAX_FORWARDED * sent:
        raise NotOverloaded(f"{received} of {sent} packets received: the NF is not the bottleneck")


class Estimate(NamedTuple):
    """An estimated difference."""

    middle: float
    interval: tuple[float, float] | None
    """95 % confidence interval; None with fewer than six differences."""


def estimate(differences: Sequence[float]) -> Estimate:
    """Return the mean without the 20 % at each end, which a disturbed block does not move, and a bootstrap interval."""
    middle = _middle(np.array(differences))
    if len(differences) < _FEWEST or len(set(differences)) == 1:
        return Estimate(float(middle), None)
    found = bootstrap((differences,), _middle, rng=np.random.default_rng(1)).confidence_interval
    return Estimate(float(middle), (float(found.low), float(found.high)))


_FEWEST, _TRIMMED = 6, 0.2


def _middle(differences: Any, axis: int = -1) -> Any:
    return trim_mean(differences, _TRIMMED, axis=axis)


def orders(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Yield a random order for each round, each followed by its reverse, so that a linear drift cancels out."""
    chance, order = random.Random(1), list(names)
    for number in range(rounds):
        order = order[::-1] if number % 2 else chance.sample(names, len(names))
        yield order


SAMPLER, TRACER, STACKS = "sampler", "tracer", "stacks"


class Watchers:
    """Sampler and tracer as a chain study uses them, and sampling of call stacks, at a multiple of their frequency."""

    def __init__(self, here: ServiceUnderLoad, held: ExitStack, times: int) -> None:
        """Start the tracer and pause it until a block: starting its programs under load would take long."""
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
_MAX_EMPTY = 3
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
    """Measure throughput with and without watching, in rounds of six blocks.

    Returns:
        `ours`: cost of sampler and tracer together in a study, as a share of the throughput. `detail` has share and
        interval of each kind of block, and the CPU time of each probe in a study as a share of one CPU: an upper bound
        of what it takes from an NF by running, without the cost of events within the NF.
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
        except NotOverloaded:
            load_pps = overload_pps(here, load_pps * _MORE)
            continue
        empty = 0 if rounds else empty + 1
        if empty == _MAX_EMPTY:
            raise CsitError(f"{empty} successive flows without a round that has packets in every block")
        found += rounds
    return found


def _flow(here: ServiceUnderLoad, load_pps: float, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """As many rounds as one flow has time for."""
    rounds: list[Rates] = []
    lasts_s = min(_FLOW_S, _ROUND_S * (len(every) + 1))
    with flow(here, load_pps, lasts_s) as sent:
        for order in every:
            if sent.left_s() < _ROUND_S:
                break
            rates = {name: _rate(sent, watchers, BLOCKS[name]) for name in order}
            if all(rates.values()):  # else the machine was stalled for a whole block
                rounds.append(rates)
    return rounds


def _rate(sent: BlockFlow, watchers: Watchers, names: Collection[str]) -> float:
    with ExitStack() as held:
        watchers.switch(names, held)
        rate_pps, lasted_s = sent.block(_BLOCK_S)
    watchers.watched(names, lasted_s)
    return rate_pps


def costs(found: Sequence[Rates]) -> dict[str, Estimate]:
    """Return the cost in a study by kind of block, as a share of the throughput; that of `NOTHING` is the noise."""
    rows = [{name: log(rate_pps) for name, rate_pps in rates.items()} for rates in found]
    kinds = {name: [(row[NOTHING] + row[AGAIN]) / 2 - row[name] for row in rows] for name, on in BLOCKS.items() if on}
    kinds[NOTHING] = [row[NOTHING] - row[AGAIN] for row in rows]
    return {name: estimate([each / _TIMES for each in row]) for name, row in kinds.items()}


def _summary(found: Sequence[Rates], cpu: Mapping[str, float]) -> dict[str, Any]:
    rows = costs(found)
    shares = {name: share / _TIMES for name, share in cpu.items()}
    rate_pps = median(rates[NOTHING] for rates in found)
    return {
        "ours": rows[BOTH].middle,
        "peer": _GOAL,
        "ratio": rows[BOTH].middle / _GOAL,
        "unit": "ratio",
        "note": f"peer is the goal; of {rate_pps / 1e3:.0f} kpps, {_TIMES} times as frequent, {len(found)} rounds: "
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
