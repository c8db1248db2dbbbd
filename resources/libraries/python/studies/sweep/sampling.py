"""Loads on a deployed service, second by second: trials, and what data threads do meanwhile."""

from dataclasses import dataclass, field

from resources.libraries.python.errors import CsitError, NoTraffic
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.quantities import rate
from resources.libraries.python.studies.sweep.analysis.seconds import (
    SamplerReading,
    busiest,
    probes_pps,
    second_of,
    seconds_of,
    sender_pps,
    work,
)
from resources.libraries.python.studies.sweep.load_steps import LoadStep, MeasuredLoad, capacity
from resources.libraries.python.studies.sweep.model import SweepSpec
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.real_time import RealTime

_WAYS = 2
_GLANCE_S = 0.2
_LOOK_S = 0.25
_MIN_PPS = 1000.0
"""Aggregate: a service that forwards less needs explicit rates."""


@dataclass(frozen=True)
class Sampling:
    """Measures loads on a cell that is deployed.

    `by_log`: the generator keeps a log of every second, so that a load is one trial.
    """

    cell: CellUnderTest
    frame: Frame
    protocol: Protocol
    departures: Departures = Departures.CONSTANT
    by_log: bool = field(kw_only=True)

    def measure(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """Offer a load and sample it.

        Raises:
            SystemBroken: A part died.
        """
        return self._one_long(spec, load) if self.by_log else self._many_short(spec, load)

    def capacity_pps(self, flows: int) -> float:
        """Return the service's throughput in a short trial, per flow, one way.

        Raises:
            NoTraffic: Next to nothing comes back.
        """
        duration_s = 1.0 if self.by_log else _GLANCE_S

        def offer(load_pps: float) -> tuple[float, float]:
            result = self.cell.measure(self._trial(load_pps / _WAYS, duration_s, 0.0))
            return result.offered_pps, result.forwarded_pps

        found_pps = capacity(offer, self.cell.highest_loads().search_pps, _MIN_PPS)
        if not found_pps:
            raise NoTraffic(f"no load from {rate(_MIN_PPS)} was received: choose rates, or check the service")
        return found_pps / _WAYS / flows

    def _many_short(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """A trial for each second. Between two of them queues run empty and counters are read."""
        deployment, plan = self.cell.deployment, self.cell.deployment.plan
        one_way_pps = load.rate_pps * spec.flows
        trial = self._trial(one_way_pps, 1.0, probes_pps(plan, one_way_pps))
        ports, before = deployment.parts.generator.counters(), deployment.sample()
        results, samples = [], []
        for second in range(load.begin_s, load.begin_s + load.duration_s):
            result = self.cell.measure(trial)
            after = deployment.sample()
            cost = work(plan, before, after, result.offered_duration_s or trial.duration_s)
            samples.append(second_of(result, load.rate_pps, second, cost))
            results.append(result)
            before = after
        notes = dict.fromkeys(result.note for result in results if result.note)
        left_pps = sender_pps(plan, results, ports, deployment.parts.generator.counters()) if one_way_pps else None
        return MeasuredLoad(samples=tuple(samples), sender_pps=left_pps, note="; ".join(notes) or None)

    def _one_long(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """A single trial, whose generator reports every second; the CPUs are sampled meanwhile.

        Raises:
            CsitError: The generator reported nothing.
        """
        deployment, plan = self.cell.deployment, self.cell.deployment.plan
        ports = deployment.parts.generator.counters()
        trial = self._trial(load.rate_pps * spec.flows, float(load.duration_s), 0.0)
        if spec.bursts is not None:
            trial = trial.model_copy(update={"on_off_s": (float(spec.bursts.on_s), float(spec.bursts.off_s))})
        time, readings = RealTime(), list[SamplerReading]()
        with time.every(_LOOK_S, lambda: readings.append(SamplerReading(time.now(), deployment.sample()))):
            result = self.cell.measure(trial)
        costs = busiest(plan, readings, load.duration_s)
        samples = seconds_of(result, load.rate_pps, costs)
        if not samples:
            raise CsitError(f"the generator reported no second of {load.duration_s} s at {rate(load.rate_pps)}")
        left_pps = sender_pps(plan, [result], ports, deployment.parts.generator.counters())
        return MeasuredLoad(samples=samples, sender_pps=left_pps, note=result.note)

    def _trial(self, one_way_pps: float, duration_s: float, probe_pps: float) -> Trial:
        return Trial(
            load_pps=_WAYS * one_way_pps,
            duration_s=duration_s,
            frame=self.frame,
            probe_pps=probe_pps,
            purpose="sweep",
            protocol=None if self.protocol is Protocol.IP else self.protocol,
            departures=self.departures,
        )
