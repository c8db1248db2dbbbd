"""A run is killed in a trial of its second cell; resumed, it removes what it left, and measures that cell only."""

import signal
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.links.namespaces import run_inside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import NotReady
from tests.integration.robot_runs import DENSITY, LOCAL, events, going_on, held_in_a_trial, variables
from tests.traffic.local_runs import finished
from tests.traffic.machine_state import MachineState

pytestmark = pytest.mark.root

OPTIONS = (*variables("CELLS:1x1,2x1 NF_SIZES:1c SEARCH:quick,mrr=4,mrr_trial=0.5"), "--suite", "csc-mrr")
"""Two seconds in trials of the cell: where the machine stands still for one, the run is held in the other."""
FIRST, SECOND = "CSC 1R1C", "CSC 2R1C"
PORTS = {"csit-nf-1-1": ("csn1x1i1", "csn1x1i2"), "csit-nf-2-1": ("csn2x1i1", "csn2x1i2")}
"""Interfaces of the second cell's network functions, by their namespace."""
FEW = 10
"""Packets beyond those that the kernel sends by itself at a port that comes up."""
_CROSS_S = 60.0


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


def test_a_killed_run_leaves_what_it_made_and_resumed_removes_it_and_measures_only_the_cell_it_lacked(
    tmp_path: Path, machine: MachineState
) -> None:
    with going_on(tmp_path, *LOCAL, *OPTIONS, sources=[DENSITY]) as run:
        with held_in_a_trial(run, tmp_path, SECOND):
            silent = silent_ports()
            run.send_signal(signal.SIGKILL)
        run.communicate()
    assert not silent, "ports of network functions that had received next to nothing until then"
    assert run.returncode == -signal.SIGKILL
    left = {kind: names - machine.found[kind] for kind, names in MachineState.now().found.items()}
    assert left["namespaces"] >= set(PORTS) and left["claims of a run"]
    before = journal(tmp_path)
    # A test whose part was late is repeated, with a line of its own.
    assert [test for event, test in before if event == "finished"] == [FIRST]
    assert before[-1] == ("started", SECOND)

    resumed = finished(tmp_path, *OPTIONS, "-v", f"RESUME:{tmp_path}", sources=[DENSITY], before=machine)
    for namespace in PORTS:
        assert f"removed network namespace {namespace}" in resumed.text
    assert not resumed.left
    after = journal(tmp_path)
    assert after[: len(before)] == before
    assert {test for _, test in after[len(before) :]} == {SECOND}
    assert after[-1] == ("finished", SECOND)
    resumed.assert_all_passed()
    assert set(resumed.cells()) == {FIRST, SECOND}
