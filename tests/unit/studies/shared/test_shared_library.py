"""The base of all Robot libraries of studies: testbed and journal, variables, the console, earlier records."""

from pathlib import Path

import pytest
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError
from robot.variables import Variables

from csit_utils.analysis.comparisons.comparability import Difference, environment_differences
from docs.keywords import library_names
from resources.libraries.python.drivers.functions.monitor import Suricata
from resources.libraries.python.drivers.functions.nftables import Firewall
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.qualifications import FOLDER
from resources.libraries.python.recording.records import earlier_records
from resources.libraries.python.studies.shared import library as measuring
from resources.libraries.python.studies.shared import run_state
from resources.libraries.python.studies.shared.boundary import variable
from resources.libraries.python.studies.shared.library import TestbedSession
from resources.libraries.python.studies.shared.StudyLibrary import StudyLibrary
from tests.builders import SIM, TOPOLOGIES
from tests.unit.csit_utils.builders import ENVIRONMENT
from tests.unit.recording.characterizations import characterization as whole


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Drivers of the generators with which testbeds were opened. No machine is touched."""
    said = {"TOPOLOGY": str(TOPOLOGIES / "local.yaml"), "OUTPUT DIR": str(tmp_path), "GENERATOR": "ring"}
    drivers: list[str] = []

    def open_nothing(_: TestbedSession, topology: Topology, noise_s: float, *, qualifications: Path) -> object:
        assert noise_s > 0 and qualifications == FOLDER
        drivers.append(topology.tg.generator.driver)
        return ENVIRONMENT

    for module in (measuring, run_state):
        monkeypatch.setattr(module, "variable", said.get)
    monkeypatch.setattr(TestbedSession, "open", open_nothing)
    return drivers


def test_suites_of_one_run_share_its_journal_whatever_their_generator(opened: list[str], tmp_path: Path) -> None:
    """Studies of chains take the generator that the user chose, those of outages the one of the testbed's file."""
    for library in map(StudyLibrary, ("outage", "chains", "outage")):
        library.open_testbed()
        library.close_testbed()
    assert opened == ["auto", "ring", "auto"]
    begun, *events = (tmp_path / JOURNAL_FILE).read_text(encoding="utf-8").splitlines()
    assert '"GENERATOR":"ring"' in begun
    assert sum('"event":"resumed"' in event for event in events) == 2


def test_an_inner_suite_neither_opens_nor_closes_what_an_outer_one_has_open(opened: list[str]) -> None:
    library = StudyLibrary("outage")
    for _ in range(2):
        library.open_testbed()
    library.close_testbed()
    assert len(opened) == 1
    with pytest.raises(CsitError, match="still active"):
        StudyLibrary("outage").open_testbed()  # the journal is still held
    library.close_testbed()
    StudyLibrary("outage").open_testbed()


def test_options_of_drivers_that_a_topology_sets_are_facts_of_the_testbed() -> None:
    """Two runs with the same machine and program differ by them: `compare` has to say so."""
    dut = SIM.dut.model_copy(update={"firewall": Firewall(rules=7), "suricata": Suricata()})
    environments = []
    for topology in (SIM, SIM.model_copy(update={"nodes": {**SIM.nodes, "DUT1": dut}})):
        session = TestbedSession()
        environments.append(session.open(topology, 0.0, qualifications=None))
        session.close()
    assert environment_differences(*environments) == (
        Difference("settings.option firewall.rules of DUT1", None, "7"),
    )  # fmt: skip


def test_every_library_is_among_those_whose_keywords_are_checked() -> None:
    sources = (PROJECT / "resources" / "libraries" / "python").rglob("*.py")
    declared = {source.stem for source in sources if "\n@library(" in source.read_text(encoding="utf-8")}
    assert {name.rpartition(".")[2] for name in library_names()} == declared != set()


def test_a_variable_is_found_as_robot_finds_it_and_none_outside_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RobotNotRunningError):
        variable("NF_SIZES")
    known = Variables()
    known["${NF_SIZES}"] = "1c"
    monkeypatch.setattr(BuiltIn, "_variables", known)
    assert [variable(name) for name in ("NF_SIZES", "nf sizes", "NFSIZES")] == ["1c"] * 3


@pytest.mark.slow
def test_a_file_of_a_terabyte_is_not_read_and_the_others_are(tmp_path: Path) -> None:
    (results := tmp_path / "night" / "results").mkdir(parents=True)
    (results / "one.json").write_text(whole().model_dump_json(), encoding="utf-8")
    with (results / "disk.json").open("wb") as file:
        file.truncate(1 << 40)  # without blocks
    (results / "folder.json").mkdir()
    assert earlier_records(tmp_path, Record) == [whole()]
