"""A run is killed in a trial of its second cell; resumed, it removes what it left, and measures that cell only."""

import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.links.namespaces import run_inside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import NotReady
from tests.integration.robot_runs import DENSITY, events, going_on, held_in_a_trial
from tests.traffic.local_runs import LOCAL, FinishedRun, finished
from tests.traffic.machine_state import MachineState

pytestmark = pytest.mark.root

OPTIONS = ("-v", "CELLS:1x1,2x1", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick,mrr=4,mrr_trial=0.5", "--suite", "csc-mrr")
"""Two seconds in trials of the cell: where the machine stands still for one, the run is held in the other."""
FIRST, SECOND = "CSC 1R1C", "CSC 2R1C"
PORTS = {"csit-nf-1-1": ("csn1x1i1", "csn1x1i2"), "csit-nf-2-1": ("csn2x1i1", "csn2x1i2")}
"""Interfaces of the second cell's network functions, by their namespace."""
FEW = 10
"""Packets beyond those that the kernel sends by itself at a port that comes up."""
_CROSS_S = 60.0


@dataclass(frozen=True)
class KilledRun:
    """A run that was killed.

    Attributes:
        output: Its folder.
        silent: Ports of network functions that had received next to nothing until then; empty where none.
        status: Its exit status.
        left: What of it is on the machine, by kind.
        journal: Events of its tests.
    """

    output: Path
    silent: str
    status: int
    left: dict[str, set[str]]
    journal: list[tuple[str, str]]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, machine: MachineState) -> KilledRun:
    """A run of two cells, killed while the second one has traffic."""
    output = tmp_path_factory.mktemp("killed")
    with going_on(output, *LOCAL, *OPTIONS, sources=[DENSITY]) as run:
        with held_in_a_trial(run, output, SECOND):
            silent = silent_ports()
            run.send_signal(signal.SIGKILL)
        run.communicate()
    now = MachineState.now().found
    left = {kind: names - machine.found[kind] for kind, names in now.items()}
    return KilledRun(output, silent, run.returncode, left, journal(output))


@pytest.fixture(scope="module")
def resumed(killed: KilledRun, machine: MachineState) -> FinishedRun:
    """The same run, resumed to its end."""
    return finished(killed.output, *OPTIONS, "-v", f"RESUME:{killed.output}", sources=[DENSITY], before=machine)


def journal(output: Path) -> list[tuple[str, str]]:
    """Events of tests with the cell of each."""
    return [(row["event"], " ".join(row["test"].split()[:2])) for row in events(output) if "test" in row]


def silent_ports() -> str:
    """Wait until every port of the second cell's network functions has received packets; return those that have not."""
    try:
        wait_until("packets", lambda: ", ".join(name for name, count in received().items() if count < FEW), _CROSS_S)
    except NotReady as error:
        return error.last_seen
    return ""


def received() -> dict[str, int]:
    """Packets received, by port."""
    found = {}
    for namespace, ports in PORTS.items():
        text = run_inside(namespace, Path("/proc/thread-self/net/dev").read_text)
        rows = {
            name.strip(): numbers.split() for name, _, numbers in (line.partition(":") for line in text.splitlines())
        }
        found |= {port: int(rows[port][1]) for port in ports}
    return found


def test_each_port_of_each_network_function_receives_packets_before_the_kill(killed: KilledRun) -> None:
    assert not killed.silent


def test_killed_run_leaves_namespaces_its_record_of_them_and_a_test_without_result(killed: KilledRun) -> None:
    assert killed.status == -signal.SIGKILL
    assert killed.left["namespaces"] >= set(PORTS)
    assert killed.left["claims of a run"]
    # A test whose part was late is repeated, with a line of its own.
    assert [test for event, test in killed.journal if event == "finished"] == [FIRST]
    assert killed.journal[-1] == ("started", SECOND)


def test_next_run_removes_what_the_killed_run_left_and_says_so(resumed: FinishedRun) -> None:
    for namespace in PORTS:
        assert f"removed network namespace {namespace}" in resumed.text
    assert not resumed.left


def test_resumed_run_measures_only_the_cell_it_lacked(killed: KilledRun, resumed: FinishedRun) -> None:
    before, after = killed.journal, journal(resumed.output)
    assert after[: len(before)] == before
    assert {test for _, test in after[len(before) :]} == {SECOND}
    assert after[-1] == ("finished", SECOND)


def test_resumed_run_has_passed_records_of_both_cells(resumed: FinishedRun) -> None:
    resumed.assert_all_passed()
    assert set(resumed.cells()) == {FIRST, SECOND}
