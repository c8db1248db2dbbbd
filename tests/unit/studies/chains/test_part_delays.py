"""Delays by part in the record of a chain, and the one note where there are none."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.errors import ConnectionFailed, CsitError, SystemBroken, Unsupported
from resources.libraries.python.model.measurements.delays import LINK, HopDelay
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.studies.chains.chain_trial import ChainUnderLoad
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from resources.libraries.python.testbed.roles.watching import HopTimer
from tests.builders import SIM
from tests.unit.studies.chains.chain_runs import VNFS, four_vnfs

PAIR = VNFS[:2]


def study_of(**changed: object) -> ChainStudy:
    """The two VNFs and their chains, on the simulated testbed."""
    world = SimulatedTestbed(SIM)
    return ChainStudyTest(
        SIM, world, four_vnfs(**{"vnfs": PAIR, "duration_s": 1, **changed}), world.environment()
    ).run()


def both(owner: str, forward_s: float, reverse_s: float, packets: int = 60) -> tuple[HopDelay, ...]:
    """One part; medians are half of the means, and the reverse direction has half of the packets."""
    rows = ((Direction.FORWARD, forward_s, packets), (Direction.REVERSE, reverse_s, packets // 2))
    return tuple(
        HopDelay(owner=owner, direction=way, mean_s=mean_s, median_s=mean_s / 2, packets=count)
        for way, mean_s, count in rows
    )


class Timer:
    """A hop timer that has seen something, or cannot."""

    def __init__(
        self, seen: tuple[HopDelay, ...] = (), starts: CsitError | None = None, ends: CsitError | None = None
    ) -> None:
        self._seen, self._starts, self._ends = seen, starts, ends
        self.running = False

    def start(self) -> None:
        self.running = True
        if self._starts is not None:
            raise self._starts

    def stop(self) -> tuple[HopDelay, ...]:
        self.running = False
        if self._ends is not None:
            raise self._ends
        return self._seen

    def facts(self) -> Mapping[str, str]:
        return {"delays by part": "no numbered probe was seen at any port"}


@pytest.fixture
def studied(monkeypatch: pytest.MonkeyPatch) -> Callable[[HopTimer | None], ChainStudy]:
    plain = SimulatedTestbed.parts

    def study(hops: HopTimer | None) -> ChainStudy:
        def parts(world: SimulatedTestbed, plan: Plan, asked: MeasurementRequest) -> Parts:
            made = plain(world, plan, asked)
            object.__setattr__(made, "hops", hops)
            return made

        monkeypatch.setattr(SimulatedTestbed, "parts", parts)
        return study_of()

    return study


def test_parts_have_the_names_of_the_chain_and_add_up_to_its_latency_without_load() -> None:
    found = study_of()
    assert not [note for note in found.notes if "delay" in note]
    for run in found.runs:
        assert run.delays is not None and run.idle_latency_s is not None
        assert {each.owner for each in run.delays} == {VSWITCH, LINK, *run.chain.order}
        assert sum(each.mean_s for each in run.delays) == pytest.approx(run.idle_latency_s, abs=2e-9)
        assert ChainRun.model_validate_json(run.model_dump_json()) == run


@pytest.mark.parametrize(
    ("hops", "why"),
    [
        (None, "not supported on this testbed"),
        (Timer(), "no numbered probe was seen at any port"),
        (Timer(starts=Unsupported("no port is an interface of the kernel")), "no port is an interface of the kernel"),
        (Timer(ends=ConnectionFailed("DUT1 is lost")), "DUT1 is lost"),
    ],
)
def test_without_delays_all_else_is_measured_and_one_note_says_why(
    studied: Callable[[HopTimer | None], ChainStudy], hops: Timer | None, why: str
) -> None:
    found = studied(hops)
    assert [note for note in found.notes if "delay" in note] == [f"no delays by part: {why}"]
    assert all(run.failed is None and run.idle_latency_s and run.delays is None for run in found.runs)
    assert hops is None or not hops.running, "also one that did not start: another machine's may run"


def test_directions_are_weighted_by_packets_and_times_of_machines_are_added(
    studied: Callable[[HopTimer | None], ChainStudy],
) -> None:
    seen = (
        *both("vswitch", 1e-3, 4e-3),
        *both("vswitch-2", 2e-3, 5e-3, packets=58),
        *both("nf-1-1", 3e-3, 6e-3),
        *both("vswitch-2 + nf-1-2", 5e-3, 5e-3),
    )
    run = next(run for run in studied(Timer(seen)).runs if len(run.chain.order) == 2)
    first, second = run.chain.order
    found = {each.owner: each for each in run.delays or ()}
    assert found.keys() == {VSWITCH, first, f"{VSWITCH} + {second}"}
    assert found[first].mean_s == pytest.approx((60 * 3e-3 + 30 * 6e-3) / 90)
    assert found[first].median_s == pytest.approx((1.5e-3 + 3e-3) / 2)
    assert found[VSWITCH].mean_s == pytest.approx((58 * 3e-3 + 29 * 9e-3) / 87)
    assert (found[first].packets, found[VSWITCH].packets) == (90, 87)


def test_a_system_that_breaks_while_it_is_timed_is_no_chain_without_delays() -> None:
    hops = Timer()

    def measure(_: object) -> SimpleNamespace:
        if hops.running:
            raise SystemBroken("the vSwitch has ended")
        return SimpleNamespace(latency=(), intervals=())

    cell = SimpleNamespace(measure=measure, deployment=SimpleNamespace(parts=SimpleNamespace(hops=hops)))
    chain = ChainUnderLoad(cast(CellUnderTest, cell), cast(Chain, None), {}, "auto", None)
    with pytest.raises(SystemBroken, match="the vSwitch has ended"):
        chain._without_load(four_vnfs(vnfs=PAIR).workloads[0])
    assert not hops.running and not chain.notes


def test_a_generator_without_probes_is_named_and_nothing_is_timed() -> None:
    hops = Timer(starts=CsitError("it must not be started"))
    measured = SimpleNamespace(latency=(), intervals=())
    cell = SimpleNamespace(measure=lambda _: measured, deployment=SimpleNamespace(parts=SimpleNamespace(hops=hops)))
    asked = four_vnfs(vnfs=PAIR)
    chain = ChainUnderLoad(cast(CellUnderTest, cell), cast(Chain, None), {}, "iperf3", None)
    assert chain._without_load(asked.workloads[0]) == (None, None)
    assert chain.notes == ["no delays by part: iperf3 sends no numbered probes"]
