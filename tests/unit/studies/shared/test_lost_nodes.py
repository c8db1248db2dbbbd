"""A node that is lost in steps of a study is waited for, and each step is measured once more with the same result."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from resources.libraries.python.errors import CommandFailed, ConnectionFailed, CsitError, RunStopped
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, VnfSpec, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.interference.model.record import Contender, InterferenceSpec, NfType
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.outage.model.spec import load_outage
from resources.libraries.python.studies.outage.run import OutageTest
from resources.libraries.python.studies.stateful.model.spec import load_stateful
from resources.libraries.python.studies.stateful.run import StatefulTest
from resources.libraries.python.testbed.deployment.health import clean_up
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

_FAST = load_topology(Path(__file__).parents[4] / "topologies" / "sim.yaml")
SIM = _FAST.model_copy(update={"simulation": {**(_FAST.simulation or {}), "line_rate_pps": 1e6}})
"""At 10 Gbit/s each trial at the line rate opens half a million connections."""
WHY = "DUT1: the agent ended with 137"
OUTAGE = """
name: small
instances: 2
nf_kinds: [linux_router]
frame: 64B
rate_pps: 2000
repetitions: 2
before_s: 0.2
after_s: 0.3
events:
  - {event: kill, target: nf-1-1}
  - {event: restart, target: vswitch}
"""


STATEFUL = """
name: small
kind: linux_nat
instances: [1, 2]
nodes: [1, 2]
frame: 64B
search: quick,width=0.2,trial=0.1,sum=0.1
tear_downs: 1
connections: 500
capacity: false
"""


@cache
def environment() -> Environment:
    """Fingerprint of this machine."""
    return SimulatedTestbed(SIM).environment()


class World(SimulatedTestbed):
    """Loses a node in the first measurement of some deployments, and has it back only when it is waited for.

    With another error than that of a lost connection, its generator dies instead.
    """

    def __init__(self, lost_in: Collection[int] = (), error: CsitError = ConnectionFailed(WHY)) -> None:  # noqa: B008
        super().__init__(SIM)
        self._lost_in = lost_in
        self.error = error
        self.deployed = 0
        self.recovered = 0
        self.lost = False

    def environment(self) -> Environment:
        return environment()

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        if self.lost:
            raise ConnectionFailed(WHY)
        self.deployed += 1
        parts = super().parts(plan, asked)
        return replace(parts, generator=cast("Any", Cut(parts, self))) if self.deployed in self._lost_in else parts

    def recover(self) -> None:
        self.recovered += self.lost
        self.lost = False


class Cut:
    """A generator on a node that is lost while it sends."""

    def __init__(self, parts: Parts, world: World) -> None:
        self._parts = parts
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parts.generator, name)

    def run(self, _: Trial) -> TrialResult:
        self._world.lost = isinstance(self._world.error, ConnectionFailed)
        raise self._world.error


def chains(world: World, _: Path) -> ChainStudyTest:
    spec = ChainStudySpec(
        name="chains",
        vnfs=(VnfSpec(name="gateway", kind=NfKind("linux_gateway")), VnfSpec(name="nat", kind=NfKind("linux_nat"))),
        workloads=(Workload(volume_bps=2e6, sessions=1, frame=frame("64B")),),
        duration_s=2,
    )
    study = ChainStudyTest(SIM, world, spec, world.environment())
    study.run()
    return study


def interference(world: World, _: Path) -> InterferenceTest:
    spec = InterferenceSpec(
        name="pairs",
        frame=frame("512B"),
        duration_s=0.4,
        repetitions=1,
        load_pps=10_000,
        contenders=(
            Contender(name="gateway", type=NfType.GATEWAY, kind=NfKind("linux_gateway")),
            Contender(name="monitor", type=NfType.MONITOR, kind=NfKind("pktstat")),
        ),
    )
    study = InterferenceTest(SIM, world, spec, world.environment())
    study.plan()
    study.run()
    return study


def outage(world: World, folder: Path) -> OutageTest:
    (folder / "spec.yaml").write_text(OUTAGE, encoding="utf-8")
    study = OutageTest(SIM, world, load_outage(folder / "spec.yaml"), world.environment())
    study.plan()
    study.run()
    study.enough()
    return study


def stateful(world: World, folder: Path) -> StatefulTest:
    (folder / "spec.yaml").write_text(STATEFUL, encoding="utf-8")
    study = StatefulTest(SIM, world, load_stateful(folder / "spec.yaml"), world.environment())
    study.plan()
    study.measure()
    study.enough()
    return study


REPEATED = re.compile(rf'"[^"]+: measured once more: {re.escape(WHY)}",?')
"""Notes of a record that name the steps that were repeated, and why."""
AnyTest = ChainStudyTest | InterferenceTest | OutageTest | StatefulTest
AnyStudy = Callable[[World, Path], AnyTest]


def record(study: AnyTest) -> str:
    """What becomes of a study, but for when; of some what was measured, as the simulation's noise goes on."""
    if isinstance(study, StatefulTest):
        return str([(cell.name, len(cell.tear_downs), cell.rate.complete) for cell in study.result().cells])
    if isinstance(study, InterferenceTest):
        rows = study.result().measurements
        return str([(row.target, row.against, row.repetition, row.guaranteed) for row in rows])
    draft = study.draft
    draft.started_at = ""
    made = draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")
    return made.model_copy(update={"finished_at": ""}).model_dump_json()


@pytest.mark.parametrize("study", [chains, interference, outage, pytest.param(stateful, marks=pytest.mark.slow)])
def test_steps_that_lose_a_node_are_measured_once_more(tmp_path: Path, study: AnyStudy) -> None:
    whole = World()
    expected = record(study(whole, tmp_path))
    assert whole.deployed > 3
    world = World(lost_in={2, 4})  # the first is the one that finds the load, where there is one
    found = record(study(world, tmp_path))
    assert REPEATED.sub("", found) == expected
    assert len(REPEATED.findall(found)) == (0 if "schema_version" not in found else 2), found
    assert world.deployed == whole.deployed + 2
    assert world.recovered == 2


def searched(world: World, folder: Path) -> OutageTest:
    """One that searches NDR first."""
    (folder / "spec.yaml").write_text(OUTAGE.replace("rate_pps: 2000", "search: quick"), encoding="utf-8")
    study = OutageTest(SIM, world, load_outage(folder / "spec.yaml"), world.environment())
    study.plan()
    study.prepare()
    return study


KILLED = CommandFailed(("worker",), -9, "")


@pytest.mark.parametrize(("error", "recovered"), [(ConnectionFailed(WHY), 1), (KILLED, 0)])
def test_a_search_of_the_load_of_outages_that_breaks_is_repeated(
    tmp_path: Path, error: CsitError, recovered: int
) -> None:
    expected = searched(World(), tmp_path).load
    world = World({1}, error)
    found = searched(world, tmp_path)
    assert found.load == expected
    assert found.notes == [f"search of NDR: measured once more: {error}"]
    assert (world.deployed, world.recovered) == (2, recovered)


def test_a_network_function_whose_first_trial_loses_the_generator_is_not_left_out(tmp_path: Path) -> None:
    whole, world = World(), World({1}, KILLED)
    assert record(interference(world, tmp_path)) == record(interference(whole, tmp_path))
    assert world.deployed == whole.deployed + 1


@pytest.mark.parametrize("study", [chains, outage])
def test_a_step_that_loses_a_node_twice_is_given_up_and_the_study_continues(tmp_path: Path, study: AnyStudy) -> None:
    whole, world = World(), World(lost_in={2, 3})
    study(whole, tmp_path)
    try:
        found = study(world, tmp_path)
    except CsitError as error:  # the study says that it is not complete
        assert WHY in str(error)
    else:
        assert WHY in record(found)
    assert world.deployed == whole.deployed + 1
    assert world.recovered == 2


class LostWhileItIsCleaned(World):
    """Loses a node when it is asked what is left there."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        if self._left:
            self._left -= 1
            self.lost = True
            raise ConnectionFailed(WHY)
        return super().leftovers(plan)


def test_a_node_that_is_lost_while_it_is_cleaned_is_waited_for_once() -> None:
    world = LostWhileItIsCleaned(1)
    assert clean_up(world, None) == ()
    assert world.recovered == 1
    with pytest.raises(RunStopped, match="cannot be cleaned: DUT1: the agent ended with 137"):
        clean_up(LostWhileItIsCleaned(2), None)
