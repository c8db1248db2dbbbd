"""One measurement of a network function that is deployed, alone or with neighbours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from resources.libraries.python.errors import CsitError, SystemBroken
from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.counters import Cost, Processed
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.trial import Protocol, Trial, TrialResult
from resources.libraries.python.studies.interference.model.record import InterferenceSpec, Meeting
from resources.libraries.python.studies.interference.planning import Turn
from resources.libraries.python.studies.sweep.analysis.seconds import probes_pps
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.roles.part import Processing
from resources.libraries.python.testbed.roles.watching import CostMeter

TARGET = 1
"""The service instance that is measured; its neighbours are the others."""
_WAYS = 2
_GLANCE_S = 0.2


@dataclass
class _TargetUse:
    """Of the target, filled in at the end."""

    cost: Cost = field(default_factory=Cost)


def met(
    cell: CellUnderTest, turn: Turn, spec: InterferenceSpec, load_pps: float, protocol: Protocol | None = None
) -> Meeting:
    """Load all that is deployed alike, and see what becomes of the target.

    Args:
        cell: Deployed; its first service instance is the target.
        turn: Which measurement this is.
        spec: Of the study.
        load_pps: Offered to each, one way.
        protocol: Of the load; None for what the generator sends as a rule.

    Raises:
        SystemBroken: A part died.
        CsitError: The generator sent nothing to the target.
    """
    deployment = cell.deployment
    frame, _ = spec.points()[turn.point]
    plan, target = deployment.plan, _target(deployment.plan)
    trial = Trial(
        load_pps=_WAYS * load_pps * len(plan.cell.instances),
        duration_s=spec.duration_s,
        frame=frame,
        probe_pps=probes_pps(plan, load_pps * len(plan.cell.instances)),
        purpose="interference",
        protocol=protocol,
    )
    with _used(deployment.parts.costs, target) as use:
        before = _processed(deployment.parts)
        result = cell.measure(trial)
        after = _processed(deployment.parts)
    if found := cell.problems():
        raise SystemBroken("; ".join(found))
    sent = sum(flow.sent for flow in result.flows if flow.instance == TARGET)
    if not sent or result.offered_duration_s <= 0:
        raise CsitError(f"the generator sent nothing of {load_pps:.0f} pps to {turn.target}")
    done = _done(result, before.get(target), after.get(target))
    return Meeting(
        target=turn.target,
        against=turn.against,
        repetition=turn.repetition,
        turn=turn.number,
        load_pps=load_pps,
        frame=frame.name,
        point=turn.point,
        guaranteed=turn.guaranteed,
        limit_pps=_limit_pps(plan),
        throughput_pps=done / result.offered_duration_s / _WAYS,
        loss_ratio=max(0.0, 1.0 - done / sent),
        response_s=_response_s(result),
        cpu=None if use.cost.cpu_s is None else use.cost.cpu_s / result.offered_duration_s,
        memory_bytes=use.cost.memory_bytes,
        cache_misses=use.cost.cache_misses,
    )


def missing(cell: CellUnderTest) -> dict[str, str]:
    """Quantities unknown for all network functions of a measured cell, with reasons."""
    costs = cell.deployment.parts.costs
    return dict(costs.facts()) if costs is not None else {}


def calibration(frame: Frame, load_pps: float, protocol: Protocol | None = None) -> Trial:
    """A moment of load, aggregate, to see what comes back."""
    return Trial(load_pps=load_pps, duration_s=_GLANCE_S, frame=frame, purpose="calibration", protocol=protocol)


def _target(plan: Plan) -> str:
    return next(function.name for function in plan.functions if function.instance == TARGET)


def _limit_pps(plan: Plan) -> float | None:
    return next((each.limits.network_pps for each in plan.functions if each.instance == TARGET), None)


def _done(result: TrialResult, before: Processed | None, after: Processed | None) -> int:
    """Packets of the load, both ways: what the target says itself but for probes, or what arrived behind it."""
    if before is not None and after is not None:
        probes = sum(row.received for row in result.latency if row.instance == TARGET)
        return max(0, (after - before).packets - probes)
    return sum(flow.received for flow in result.flows if flow.instance == TARGET)


def _processed(parts: Parts) -> Mapping[str, Processed]:
    return parts.functions.processed() if isinstance(parts.functions, Processing) else {}


def _response_s(result: TrialResult) -> float | None:
    """Mean one-way delay of both ways; None where no probe of the target came back."""
    rows = [row for row in result.latency if row.instance == TARGET and row.mean_ns is not None and row.received]
    arrived = sum(row.received for row in rows)
    return sum((row.mean_ns or 0.0) * row.received for row in rows) / arrived / 1e9 if arrived else None


@contextmanager
def _used(meter: CostMeter | None, target: str) -> Iterator[_TargetUse]:
    """Add up what the target uses until the context ends."""
    use = _TargetUse()
    if meter is None:
        yield use
        return
    meter.start()
    try:
        yield use
    finally:
        use.cost = meter.stop().get(target, Cost())
