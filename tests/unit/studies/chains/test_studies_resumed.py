"""Studies that are cut short go on where they stopped, with the results of studies that were not."""

from functools import cache
from pathlib import Path

import pytest

from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, VnfSpec, Workload
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.interference.model.record import Contender, InterferenceSpec, NfType
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed

SIM = load_topology(Path(__file__).parents[4] / "topologies" / "sim.yaml")
CHAINS = ChainStudySpec(
    name="chains",
    vnfs=(
        VnfSpec(name="gateway", kind=NfKind("linux_gateway")),
        VnfSpec(name="nat", kind=NfKind("linux_nat")),
    ),
    workloads=tuple(
        Workload(volume_bps=volume, sessions=sessions, frame=frame("64B"))
        for sessions in (1, 4)
        for volume in (2e6, 4e6)
    ),
    duration_s=2,
    faults=(Fault(chain=("nat", "gateway"), vnf="nat", limits=Limits(cpu=0.02)),),
)
PAIRS = InterferenceSpec(
    name="pairs",
    contenders=(
        Contender(name="gateway", type=NfType.GATEWAY, kind=NfKind("linux_gateway")),
        Contender(name="ids", type=NfType.INSPECTION, kind=NfKind("suricata"), stand_in=NfKind("ngrep")),
        Contender(name="monitor", type=NfType.MONITOR, kind=NfKind("pktstat")),
    ),
    frame=frame("512B"),
    duration_s=0.4,
    repetitions=2,
    guarantee=True,
)
"""The intrusion detection system and the monitor do not start in `World`: one has a stand-in, one is left out."""


class Killed(BaseException):
    """In the place of a signal that nothing can catch."""


@cache
def environment() -> Environment:
    """Fingerprint of this machine."""
    return SimulatedTestbed(SIM).environment()


class World(SimulatedTestbed):
    """Counts deployments, may be killed before one, and lacks two programs."""

    def __init__(self, killed_before: int | None = None, topology: Topology = SIM) -> None:
        super().__init__(topology)
        self._killed_before = killed_before
        self.deployed = 0

    def environment(self) -> Environment:
        """One for all worlds: a commit meanwhile is no difference of studies."""
        return environment()

    def parts(self, plan: Plan, asked: MeasurementRequest) -> Parts:
        if self.deployed == self._killed_before:
            raise Killed
        self.deployed += 1
        for kind in (NfKind("suricata"), NfKind("pktstat")):
            if kind in {function.kind for function in plan.functions}:
                raise Unsupported(f"{kind} missing")
        return super().parts(plan, asked)


def chains(world: World, path: Path, spec: ChainStudySpec = CHAINS, topology: Topology = SIM) -> ChainStudyTest:
    """As a test of the suite does it."""
    study = ChainStudyTest(topology, world, spec, world.environment())
    with study.journal()(path, study.digest()) as journal:
        study.resume(journal)
        study.run()
    return study


def pairs(world: World, path: Path, spec: InterferenceSpec = PAIRS, topology: Topology = SIM) -> InterferenceTest:
    """As a test of the suite does it."""
    study = InterferenceTest(topology, world, spec, world.environment())
    with study.journal()(path, study.digest()) as journal:
        study.resume(journal)
        study.plan()
        study.run()
    return study


def record(study: ChainStudyTest | InterferenceTest) -> str:
    """What becomes of a study, but for when."""
    draft = study.draft
    draft.started_at = ""
    made = draft.finish(test_id="t", test_name="t", tags=(), passed=True, message="")
    return made.model_copy(update={"finished_at": ""}).model_dump_json()


def test_a_study_goes_on_at_the_load_that_it_began_with(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(Killed):
        pairs(World(killed_before=7), path)
    text = path.read_text("utf-8")
    load_pps = float(text.split('"loads_pps":[')[1].split("]")[0])
    text = text.replace(f'"loads_pps":[{load_pps}]', '"loads_pps":[12345.0]')
    path.write_text(text.replace(f'"load_pps":{load_pps}', '"load_pps":12345.0'), "utf-8")
    found = pairs(World(), path).result()
    assert {measurement.load_pps for measurement in found.measurements} == {12345.0}
    assert [one.kind for one in found.spec.contenders] == [NfKind("linux_gateway"), NfKind("ngrep"), NfKind("pktstat")]


def test_a_chain_that_failed_is_measured_again(tmp_path: Path) -> None:
    vnfs = (*CHAINS.vnfs, VnfSpec(name="ids", kind=NfKind("suricata")))
    spec = CHAINS.model_copy(update={"vnfs": vnfs, "lengths": (1,)})
    spec = spec.model_copy(update={"faults": ()})
    path = tmp_path / "journal.jsonl"
    first = chains(World(), path, spec)
    assert first.draft.chain_study is not None
    assert sum(run.failed is not None for run in first.draft.chain_study.runs) == 4
    world = World()
    assert record(chains(world, path, spec)) == record(first)
    assert world.deployed == 2, "once for each number of sessions"


def test_results_of_a_chain_do_not_depend_on_what_was_measured_before_it() -> None:
    """Else a study that goes on would have other results than one that was not cut short."""
    world = World()
    whole = ChainStudyTest(SIM, world, CHAINS, world.environment()).run()
    turned = CHAINS.model_copy(update={"vnfs": CHAINS.vnfs[::-1], "workloads": CHAINS.workloads[2:]})
    less = ChainStudyTest(SIM, world, turned, world.environment()).run()
    assert [run.chain.name for run in less.runs] != [run.chain.name for run in whole.runs[: len(less.runs)]]
    assert len(less.runs) == 8
    assert all(run in whole.runs for run in less.runs)


def test_nothing_is_written_where_no_chain_could_be_measured(tmp_path: Path) -> None:
    spec = CHAINS.model_copy(update={"vnfs": (VnfSpec(name="ids", kind=NfKind("suricata")),), "faults": ()})
    path = tmp_path / "journal.jsonl"
    with pytest.raises(CsitError, match="no chain could be measured: suricata missing"):
        chains(World(), path, spec)
    assert path.read_bytes().count(b"\n") == 1, "the heading"
