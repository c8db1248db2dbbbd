"""What a measurement says is what became of the target, not what became of the others."""

from collections.abc import Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError, SystemBroken
from resources.libraries.python.model.measurements.counters import Cost, ProcessedPackets
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.traffic import datagrams_of
from resources.libraries.python.studies.interference.model import ColocationMeasurement
from resources.libraries.python.studies.interference.planning import PlannedMeasurement
from resources.libraries.python.studies.interference.run import measurement_of, missing
from resources.libraries.python.testbed.roles.part import NetworkFunctions
from tests.builders import Altered, finished
from tests.unit.planning.polled_ports import together
from tests.unit.studies.interference.measurements import FRAME, spec_of

PLAN = together([NfKind("linux_router"), NfKind("ngrep")])
TURN = PlannedMeasurement(number=7, target="A", against=("B",), repetition=2, point=0)
FORWARD, REVERSE = Direction
ROW = (1000, 600), (1000, 400), (1000, 999), (1000, 999)
"""Sent and received by flow: two of the target, two of its neighbour."""


def meter(costs: Mapping[str, Cost]) -> Any:
    reasons = {"cache misses": "this machine does not count them"}
    return SimpleNamespace(start=lambda: None, stop=lambda: costs, facts=lambda: reasons)


def latency(instance: int, direction: Direction, mean_ns: float | None, received: int) -> FlowLatency:
    return FlowLatency(
        instance=instance, direction=direction, sent=received + 1, received=received, mean_ns=mean_ns,
        min_ns=None, p50_ns=None, p90_ns=None, p99_ns=None, p999_ns=None, max_ns=None, histogram=None,
    )  # fmt: skip


def meet(
    *,
    counts: tuple[tuple[int, int], ...] = ROW,
    processed: Mapping[str, int] | None = None,
    costs: Mapping[str, Cost] | None = None,
    latencies: tuple[FlowLatency, ...] = (),
    problems: tuple[str, ...] = (),
    seen: list[Trial] | None = None,
) -> ColocationMeasurement:
    flows = tuple(
        FlowCount(instance=instance, direction=direction, sent=sent, received=received)
        for (instance, direction), (sent, received) in zip(product((1, 2), Direction), counts, strict=True)
    )

    def measure(trial: Trial) -> TrialResult:
        if seen is not None:
            seen.append(trial)
        return finished(trial, offered_duration_s=0.5, flows=flows, latency=latencies)

    functions: Any = NetworkFunctions()
    if processed is not None:
        before = {name: ProcessedPackets(100) for name in processed}
        after = {name: ProcessedPackets(100 + packets) for name, packets in processed.items()}
        functions = Altered(functions, processed=iter((before, after)).__next__)
    parts = SimpleNamespace(functions=functions, costs=None if costs is None else meter(costs))
    deployment = SimpleNamespace(plan=PLAN, parts=parts)
    cell: Any = SimpleNamespace(deployment=deployment, measure=measure, problems=lambda: problems)
    return measurement_of(cell, TURN, spec_of("A", "B"), 2000.0, Protocol.UDP)


def test_the_load_is_offered_to_each_both_ways_as_datagrams() -> None:
    seen: list[Trial] = []
    found = meet(seen=seen)
    (trial,) = seen
    assert (trial.load_pps, trial.protocol, trial.frame) == (2 * 2000.0 * 2, Protocol.UDP, FRAME)
    assert trial.probe_pps == 20.0
    assert (found.turn, found.repetition, found.target, found.against) == (7, 2, "A", ("B",))


def test_without_a_word_of_the_target_what_arrived_behind_it_counts_and_lost_probes_have_no_time() -> None:
    found = meet()
    assert found.throughput_pps == 1000 / 0.5 / 2
    assert found.loss_ratio == pytest.approx(0.5)
    assert (found.cpu, found.memory_bytes, found.cache_misses, found.response_s) == (None, None, None, None)
    assert meet(latencies=(latency(1, FORWARD, None, 0),)).response_s is None


def test_what_the_target_has_processed_counts_without_probes_and_the_neighbour_does_not() -> None:
    probes = (latency(1, FORWARD, 1e6, 30), latency(1, REVERSE, 3e6, 10), latency(2, FORWARD, 9e9, 5))
    found = meet(processed={"nf-1-1": 840, "nf-2-1": 5000}, latencies=probes)
    assert found.throughput_pps == 800 / 0.5 / 2
    assert found.loss_ratio == pytest.approx(0.6)
    assert found.response_s == pytest.approx(1.5e-3)


def test_costs_are_those_of_the_target_per_second_of_sending_or_the_meter_says_why_not() -> None:
    found = meet(costs={"nf-1-1": Cost(0.4, 1 << 20, 77), "nf-2-1": Cost(0.1, 5, 5)})
    assert (found.cpu, found.memory_bytes, found.cache_misses) == (0.8, 1 << 20, 77)
    assert meet(costs={}).cpu is None
    for costs, reasons in ((meter({}), {"cache misses": "this machine does not count them"}), (None, {})):
        cell: Any = SimpleNamespace(deployment=SimpleNamespace(parts=SimpleNamespace(costs=costs)))
        assert missing(cell) == reasons


def test_a_part_that_died_or_a_generator_that_sends_nothing_breaks_the_measurement() -> None:
    with pytest.raises(SystemBroken, match="nginx has ended; ngrep too"):
        meet(problems=("nginx has ended", "ngrep too"))
    with pytest.raises(CsitError, match=r"sent nothing of 2\.00 kpps to A"):
        meet(counts=((0, 0), (0, 0), (1000, 999), (1000, 999)))


def test_datagrams_are_sent_where_a_generator_has_them_as_a_load_of_packets() -> None:
    assert [datagrams_of(generator) for generator in ("auto", "ring", "sim")] == [Protocol.UDP] * 3
    assert [datagrams_of(generator) for generator in ("trex", "iperf3")] == [None] * 2
