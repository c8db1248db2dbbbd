"""Sampling of call stacks after a search: a trial of its own, and a failure costs nothing but the stacks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.stacks import NodeStacks
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from resources.libraries.python.testbed.roles.part import VSwitch
from tests.builders import SIM

COUNTED = NodeCost(part="vswitch", thread="vpp_wk_0", node="ip4-lookup", packets=500, calls=10, cost=30.0)


@pytest.fixture
def searched() -> Iterator[DensityTest]:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_sizes=("1c",), vs_dtc=1)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile("quick"))
    test = DensityTest(SIM, SimulatedTestbed(SIM), asked, fingerprint())
    test.deploy()
    test.search(["NDR", "PDR"])
    yield test
    test.remove()


class Failing:
    """A sampler that fails in one of its calls."""

    def __init__(self, start: CsitError | None = None, stop: CsitError | None = None) -> None:
        self._start, self._stop = start, stop
        self.stopped = False

    def start(self) -> None:
        if self._start:
            raise self._start

    def stop(self) -> tuple[NodeStacks, ...]:
        self.stopped = True
        if self._stop:
            raise self._stop
        return ()


def test_stacks_are_sampled_at_pdr_in_a_trial_after_the_search(searched: DensityTest) -> None:
    trials = len(searched.draft.trials)
    assert searched.stacks(5.0) == searched.draft.stacks_sampled
    found, pdr = searched.draft.stacks, searched.draft.pdr
    (last,) = searched.draft.trials[trials:]
    assert (last.trial.purpose, last.trial.load_pps, last.trial.duration_s) == ("stacks", pdr.lower_pps, 5.0)
    assert (found.label, found.load_pps, found.received) == ("PDR", pdr.lower_pps, last.received)
    (node,) = found.nodes
    assert node.event == "sim" and found.total > 100
    assert {stack.split(";")[0] for stack in node.stacks} == {"nf-1-1", "vswitch"}


@pytest.mark.parametrize(
    "sampler",
    [
        Failing(start=Unsupported("perf is not installed")),
        Failing(start=NotReady("perf", 30.0, "nothing")),
        Failing(stop=CommandFailed(("perf", "script"), 1, "no such data")),
    ],
)
def test_a_sampler_that_fails_is_a_warning(searched: DensityTest, sampler: Failing) -> None:
    searched.deployment.parts = replace(searched.deployment.parts, stacks=sampler)
    said = searched.stacks(1.0)
    assert said.startswith("call stacks were not sampled: ") and searched.draft.warnings[-1] == said
    assert searched.draft.stacks is None and searched.draft.stacks_sampled is None


def test_a_trial_that_fails_is_the_error_and_the_sampler_is_stopped(
    searched: DensityTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Failing(stop=NotReady("perf", 30.0, "nothing"))
    searched.deployment.parts = replace(searched.deployment.parts, stacks=sampler)

    def broken(_: object) -> None:
        raise NotReady("the generator", 1.0, "nothing")

    monkeypatch.setattr(searched, "measure", broken)
    with pytest.raises(NotReady, match="the generator"):
        searched.stacks(1.0)
    assert sampler.stopped


def test_without_a_rate_nothing_is_sampled(searched: DensityTest) -> None:
    searched.draft.ndr = searched.draft.pdr = None
    assert searched.stacks(1.0) == "call stacks were not sampled: no rate was found"


def test_a_vswitch_that_counts_its_own_work_does_so_in_this_trial(searched: DensityTest) -> None:
    noted: list[str] = []
    run = searched.measure

    class Counting:
        def begin_accounts(self) -> tuple[str, ...]:
            noted.append("begin")
            return ("vswitch",)

        def accounts(self) -> tuple[NodeCost, ...]:
            noted.append("end")
            return (COUNTED,)

    def measure(trial: Trial) -> TrialResult:
        noted.append(trial.purpose)
        return run(trial)

    parts = replace(searched.deployment.parts, switch=cast(VSwitch, Counting()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched.deployment, "parts", parts)
        patch.setattr(searched, "measure", measure)
        searched.stacks(1.0)
    assert noted == ["begin", "stacks", "end"]
    assert searched.draft.stacks is not None and searched.draft.stacks.accounts == (COUNTED,)
