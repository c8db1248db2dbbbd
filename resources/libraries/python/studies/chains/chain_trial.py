"""One deployed chain under its workloads: latency without load, then each workload, watched."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Literal

from resources.libraries.python.errors import CsitError, NoTraffic, SystemBroken, Unsupported
from resources.libraries.python.model.findings import LocatedLosses
from resources.libraries.python.model.measurements.features import (
    HOST,
    JOINT,
    VSWITCH,
    FeatureSeries,
    HopDelay,
    StateGraph,
)
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.names import is_vswitch
from resources.libraries.python.planning.traffic import directions_of, keeps_a_log, protocol_of, resends
from resources.libraries.python.search.findings.locate import locate
from resources.libraries.python.studies.chains.model import ChainRun, ChainStacks, PartDelay, PartLoss, Step, StepCost
from resources.libraries.python.studies.chains.model.spec import Chain, Workload
from resources.libraries.python.studies.chains.planning import LEAD_S
from resources.libraries.python.studies.sweep.analysis.seconds import mean_delay_s, probes_pps
from resources.libraries.python.testbed.deployment.call_stacks import sample_stacks
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.watching import HopTimer, Tracer

_WAYS = 2
_IDLE_S = 0.3
_IDLE_LOGGED_S = 1.0
_IDLE_PPS = 200.0
_BITS = 8
_OTHERS = frozenset({HOST, VSWITCH})


class ChainUnderLoad:
    """A chain that is deployed.

    `names`: VNF by its name in the plan.
    `planted`: which faults are planted in it.
    """

    def __init__(
        self, cell: CellUnderTest, chain: Chain, names: Mapping[str, str], generator: str, planted: str | None
    ) -> None:
        self._cell = cell
        self._chain = chain
        self._names = names
        self._generator = generator
        self._planted = planted
        self._by_log = keeps_a_log(generator)
        self.notes: list[str] = []
        """Features that could not be sampled."""
        self.costs: list[StepCost] = []
        """Of watching, for each workload."""

    def measure(self, workloads: Sequence[Workload], duration_s: int) -> Iterator[ChainRun]:
        """Verify that packets arrive, then offer one workload after the other.

        A chain that loses some of its packets even without load is measured all the same: how many is the question.

        Raises:
            NoTraffic: No packet arrives without load.
            SystemBroken: A part died.
        """
        if lost := self._cell.connectivity(self._cell.measure):
            if not lost.some_arrive:
                raise NoTraffic(lost.text)
            self.notes.append(f"{self._chain.name}: {lost.text}")
        idle = self._without_load(workloads[0])
        for workload in workloads:
            run = self._under(workload, duration_s, *idle)
            self._check()
            yield run

    def stacks(self, workload: Workload, trial_s: float) -> ChainStacks:
        """Verify that packets arrive, then sample call stacks under a workload.

        `trial_s`: length of the trial.

        Raises:
            NoTraffic: Packets do not arrive without load.
            SystemBroken: A part died.
        """
        self._cell.verify_traffic()
        results: list[TrialResult] = []

        def measure(trial: Trial) -> TrialResult:
            results.append(self._cell.measure(trial))
            return results[-1]

        trial = self._trial(workload, trial_s, "stacks")
        found = sample_stacks(self._cell.deployment.parts, measure, trial, f"{workload.volume_bps / 1e6:g} Mbit/s")
        self._check()
        return ChainStacks(
            chain=self._chain,
            workload=workload,
            throughput_bps=self._rates_bps(workload, results[0])[1] if results else None,
            stacks=None if isinstance(found, str) else self._of_vnfs(found),
            failed=found if isinstance(found, str) else None,
        )

    def _of_vnfs(self, found: Stacks) -> Stacks:
        """Stacks and accounts with the names of the VNFs in the place of those in the plan."""
        nodes = []
        for node in found.nodes:
            stacks: dict[str, int] = {}
            for stack, count in node.stacks.items():
                owner, separator, rest = stack.partition(SEPARATOR)
                stacks[f"{self._names.get(owner, owner)}{separator}{rest}"] = count
            nodes.append(node.model_copy(update={"stacks": stacks}))
        accounts = [row.model_copy(update={"part": self._names.get(row.part, row.part)}) for row in found.accounts]
        return found.model_copy(update={"nodes": tuple(nodes), "accounts": tuple(accounts)})

    def _check(self) -> None:
        """Raise where a part has died: what was measured meanwhile is no result."""
        if found := self._cell.problems():
            raise SystemBroken("; ".join(found))

    def _trial(self, workload: Workload, duration_s: float, purpose: str) -> Trial:
        one_way_pps = workload.volume_bps / _BITS / workload.frame.mean_bytes
        protocol, ways = self._protocol(workload)
        return Trial(
            load_pps=len(ways) * one_way_pps,
            duration_s=duration_s,
            frame=workload.frame,
            probe_pps=0.0 if self._by_log else probes_pps(self._cell.deployment.plan, one_way_pps),
            purpose=purpose,
            protocol=None if protocol is Protocol.IP else protocol,
            sessions=workload.sessions,
        )

    def _protocol(self, workload: Workload) -> tuple[Protocol, tuple[Direction, ...]]:
        """Protocol on the wire, and directions of the load."""
        protocol = protocol_of(self._generator, workload.protocol)
        return protocol, directions_of(self._generator, protocol)

    def _rates_bps(self, workload: Workload, result: TrialResult) -> tuple[float, float]:
        """Offered load and throughput of a trial, one way.

        Raises:
            CsitError: Nothing was sent.
        """
        if result.offered_duration_s <= 0:
            raise CsitError(f"the generator sent nothing of {workload.volume_bps / 1e6:g} Mbit/s")
        _, ways = self._protocol(workload)
        bits = _BITS * workload.frame.mean_bytes / len(ways) / result.offered_duration_s
        flows = [flow for flow in result.flows if flow.direction in ways]
        return sum(flow.sent for flow in flows) * bits, sum(flow.received for flow in flows) * bits

    def _under(
        self, workload: Workload, duration_s: int, idle_s: float | None, delays: tuple[PartDelay, ...] | None
    ) -> ChainRun:
        deployment, cores = self._cell.deployment, self._cell.deployment.plan.cores
        trial = self._trial(workload, float(LEAD_S + duration_s), "sweep")
        before = deployment.counters()
        with watching(deployment.parts, self._names, duration_s) as watched:
            result = self._cell.measure(trial)
        located = locate(deployment.plan, [result], before, deployment.counters())
        self.notes += watched.notes
        self.costs += watched.costs
        offered_bps, throughput_bps = self._rates_bps(workload, result)
        return ChainRun(
            chain=self._chain,
            workload=workload,
            offered_bps=offered_bps,
            throughput_bps=throughput_bps,
            loss_ratio=None if resends(self._generator, self._protocol(workload)[0]) else result.loss_ratio,
            latency_s=_latency_s(result),
            idle_latency_s=idle_s,
            delays=delays,
            series=watched.series,
            cpus={
                self._names[each.name]: min(len(cores.cpus(each.name)), each.limits.cpu or inf)
                for each in deployment.plan.all_nfs
                if each.name in self._names
            },
            placed={
                owner: cpus
                for name in (VSWITCH, *self._names)
                if (cpus := cores.cpus(name)) and (owner := self._names.get(name, name))
            },
            losses=tuple(self._losses(located)),
            graphs=watched.graphs,
            planted=self._planted,
        )

    def _losses(self, located: LocatedLosses) -> Iterator[PartLoss]:
        """Losses of VNFs and of the vSwitch, both directions together.

        Those that the generator is charged with are left out: it does not count its probes, which ports do.
        """
        lost: Counter[tuple[str, Literal["queue", "inside", "link"]]] = Counter()
        for hop in located.hops:
            if owner := VSWITCH if is_vswitch(hop.owner) else self._names.get(hop.owner):
                lost[owner, hop.cause] += hop.lost
        for (owner, cause), packets in lost.items():
            yield PartLoss(owner=owner, cause=cause, ratio=min(1.0, packets / max(1, located.sent)))

    def _without_load(self, workload: Workload) -> tuple[float | None, tuple[PartDelay, ...] | None]:
        """Latency, of a generator without probes at next to no load, and where it arises."""
        protocol = protocol_of(self._generator, workload.protocol)
        trial = Trial(
            load_pps=_WAYS * _IDLE_PPS if self._by_log else 0.0,
            duration_s=_IDLE_LOGGED_S if self._by_log else _IDLE_S,
            frame=workload.frame,
            probe_pps=0.0 if self._by_log else _IDLE_PPS,
            purpose="latency",
            protocol=None if protocol is Protocol.IP else protocol,
        )
        return _latency_s(self._cell.measure(trial)), self._delays(trial)

    def _delays(self, trial: Trial) -> tuple[PartDelay, ...] | None:
        """Delay of each part in a trial of its own: each time stamp takes a microsecond of a packet's latency."""
        hops = self._cell.deployment.parts.hops
        try:
            if self._by_log:
                raise Unsupported(f"{self._generator} sends no numbered probes")
            if hops is None:
                raise Unsupported("not supported on this testbed")
            return tuple(_part_delays(self._timed(hops, trial), self._names))
        except SystemBroken:
            raise
        except CsitError as error:
            self.notes.append(f"no delays by part: {error}")
            return None

    def _timed(self, hops: HopTimer, trial: Trial) -> tuple[HopDelay, ...]:
        try:
            hops.start()
            self._cell.measure(trial)
        finally:  # in any case: of several machines one may have started
            found = hops.stop()
        if not found:
            raise Unsupported("; ".join(hops.facts().values()))
        return found


def _latency_s(result: TrialResult) -> float | None:
    """Mean of both ways, one way each, by probes or by the generator's log; None where it has neither."""
    probes: list[tuple[float | None, float]] = [(row.mean_ns, row.received) for row in result.latency]
    logged = [(row.delay_ns, row.received) for row in result.intervals]
    return mean_delay_s(probes or logged)


def _part_delays(delays: Sequence[HopDelay], names: Mapping[str, str]) -> Iterator[PartDelay]:
    """Both directions together, and the vSwitches of all machines, by the names of the VNFs."""
    found: dict[str, list[HopDelay]] = {}
    for delay in delays:
        owners = (VSWITCH if is_vswitch(each) else names.get(each, each) for each in delay.owner.split(JOINT))
        found.setdefault(JOINT.join(dict.fromkeys(owners)), []).append(delay)
    for owner, rows in found.items():
        ways = [way for direction in Direction if (way := [row for row in rows if row.direction is direction])]
        packets = [min(row.packets for row in way) for way in ways]
        means_s = [sum(row.mean_s for row in way) for way in ways]  # a packet crosses the vSwitch of each machine
        yield PartDelay(
            owner=owner,
            mean_s=sum(mean_s * count for mean_s, count in zip(means_s, packets, strict=True)) / sum(packets),
            median_s=fmean(sum(row.median_s for row in way) for way in ways),
            packets=sum(packets),
        )


@dataclass
class WatchedChain:
    """Measurements of a watched chain; filled when watching ends."""

    series: tuple[FeatureSeries, ...] = ()
    graphs: tuple[StateGraph, ...] = ()
    notes: list[str] = field(default_factory=list)
    """Reason why something could not be sampled or traced."""
    costs: tuple[StepCost, ...] = ()
    """Costs of sampler and tracer, if known."""


@contextmanager
def watching(parts: Parts, names: Mapping[str, str], duration_s: int) -> Iterator[WatchedChain]:
    """Watch until the context ends. What cannot be watched is noted, and the rest is watched.

    `names`: VNF by its name in the plan; other owners but the machine and the vSwitch are left out.
    `duration_s`: whole seconds that are kept after the first `LEAD_S`.
    """
    watched = WatchedChain()
    features, tracer = parts.features, parts.tracer
    began_s = time.monotonic()
    tracing = tracer is not None and _begun(tracer, watched)  # first: it takes a while, and seconds count from the next
    try:
        if features is None:
            watched.notes.append("no features were sampled: not supported on this testbed")
        else:
            features.start()
        yield watched
    finally:
        try:
            series = features.stop() if features is not None else ()
        finally:  # in any case: the kernel traces until it is stopped
            graphs = _ended(tracer, watched) if tracer is not None and tracing else None
        used: dict[Step, float | None] = {}
        if features is not None:
            used["sample features"] = features.cpu_s
        if tracer is not None and graphs is not None:
            used["read kernel events"] = tracer.cpu_s
        lasted_s = time.monotonic() - began_s
        watched.costs = tuple(
            StepCost(step=step, cpu_s=cpu_s, lasted_s=lasted_s) for step, cpu_s in used.items() if cpu_s is not None
        )
        watched.series = tuple(_kept(series, names, duration_s))
        watched.graphs = tuple(
            graph.model_copy(update={"owner": owner}) for graph in graphs or () if (owner := _vnf(graph.owner, names))
        )


def _begun(tracer: Tracer, watched: WatchedChain) -> bool:
    try:
        tracer.start()
    except CsitError as error:
        watched.notes.append(f"nothing was traced: {error}")
        return False
    return True


def _ended(tracer: Tracer, watched: WatchedChain) -> tuple[StateGraph, ...] | None:
    try:
        return tracer.stop()
    except CsitError as error:
        watched.notes.append(f"trace lost: {error}")
        return None


def _kept(series: Sequence[FeatureSeries], names: Mapping[str, str], duration_s: int) -> Iterator[FeatureSeries]:
    for row in series:
        values = row.values[LEAD_S : LEAD_S + duration_s]
        if (owner := _vnf(row.owner, names)) and any(value is not None for value in values):
            yield FeatureSeries(owner=owner, feature=row.feature, values=values)


def _vnf(owner: str, names: Mapping[str, str]) -> str | None:
    return names.get(owner) or (owner if owner in _OTHERS else None)
