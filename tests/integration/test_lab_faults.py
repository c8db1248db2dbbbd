"""What breaks between controller and nodes, on real packets: nothing is left on nodes, and the run goes on."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.testbed.connection.runtime import FOLDER
from tests.integration.lab import Lab
from tests.integration.lab_faults import (
    LabFault,
    agent_is_killed,
    agent_is_stopped,
    cable_is_pulled,
    node_is_reimaged,
    run_losing_nodes,
    sshd_is_killed,
    sshd_is_stopped,
)
from tests.integration.lab_runs import (
    RT_LIMIT,
    TG_CPUS,
    held_in_trial,
    needs_lab,
    opened,
    options,
    state,
    topology_of,
    wait_for_state,
)
from tests.integration.pauses import CALLING, REMOVING, Moment
from tests.integration.robot_runs import broke_once, going_on, results, run_robot

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
RUNTIMES = str(FOLDER)
MRR = ("-v", "CELLS:1x1", "--suite", "csc-mrr")
SILENCE_S = 5.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    limit = RT_LIMIT.read_text(encoding="ascii")
    with Lab(used=True) as made:
        yield made
    # Nodes of this lab share a kernel: what one has set back another may have changed before.
    RT_LIMIT.write_text(limit, encoding="ascii")


@pytest.fixture(autouse=True)
def _nodes_stay_as_they_were(lab: Lab) -> Iterator[None]:
    before = state(lab)
    yield
    wait_for_state(lab, before)


FAULTS: dict[str, tuple[LabFault, str]] = {
    "128B": (sshd_is_killed, "DUT1"),
    "129B": (agent_is_killed, "DUT1: the agent ended with 137"),
    "130B": (node_is_reimaged, "DUT1"),
    "131B": (cable_is_pulled, "TG"),
    "132B": (agent_is_stopped, "DUT1: nothing heard from the agent"),
}
"""By frame size of a test: what is done in the middle of its trial, and words that the reason must have."""


def impatient(lab: Lab, folder: Path) -> Path:
    """The lab's topology file, in which silence is noticed soon."""
    nodes = {name: {"access": {"silence_s": SILENCE_S}} for name in lab.nodes}
    return lab.topology(folder, nodes={**nodes, "TG": {**nodes["TG"], "cpus": TG_CPUS}})


def test_tests_that_lose_a_node_are_done_once_more(lab: Lab, tmp_path: Path) -> None:
    output, path = tmp_path / "out", impatient(lab, tmp_path)
    # Trials are so long that the fault comes in one of them.
    words = ("-v", "SEARCH:quick,sum=1,time=10,mrr=2", "-v", f"FRAMES:{','.join(FAULTS)}", *MRR)
    with going_on(output, *options(path, *words)) as run:
        for name, (inject, _) in FAULTS.items():
            # The run goes on before the fault comes: one that stands still is itself a node that nobody hears.
            with held_in_trial(lab, run, output, f"CSC 1R1C NF-1c vSwitch-1c {name}"):
                pass
            inject(lab)
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    broke_once(output, {name: words_of_it for name, (_, words_of_it) in FAULTS.items()})
    assert said.count("it is back") >= len(FAULTS)


FIRST, FOURTH = 1, 4
"""Calls of a deployment: before the fourth, cables on both nodes and the vSwitch are made, and NFs are not."""
MOMENTS: dict[str, tuple[int, LabFault, str, LabFault]] = {
    "128B": (FIRST, sshd_is_killed, "DUT1", agent_is_killed),
    "129B": (FOURTH, agent_is_killed, "DUT1: the agent ended with 137", sshd_is_killed),
    "130B": (FIRST, agent_is_stopped, "DUT1: nothing heard from the agent", agent_is_stopped),
    "131B": (FOURTH, sshd_is_stopped, "DUT1", sshd_is_stopped),
}
"""By frame size of a test: what is done before which call while its cell is deployed, words that the reason must have,
and what is done while the cell of the next attempt is removed."""


def test_a_node_that_is_lost_while_a_cell_is_deployed_or_removed_is_waited_for(lab: Lab, tmp_path: Path) -> None:
    path = impatient(lab, tmp_path)
    faults: list[tuple[Moment, LabFault]] = []
    for frame, (call, first, _, second) in MOMENTS.items():
        test = f"CSC 1R1C NF-1c vSwitch-1c {frame}"
        faults += [(Moment(CALLING, test, call, attempt=1), first), (Moment(REMOVING, test, attempt=2), second)]
    words = ("-v", f"FRAMES:{','.join(MOMENTS)}", *MRR)
    run_losing_nodes(lab, tmp_path, faults, *options(path, *words))
    broke_once(tmp_path / "out", {frame: words_of_it for frame, (_, _, words_of_it, _) in MOMENTS.items()})


def test_a_node_that_comes_back_with_another_host_key_ends_the_run(lab: Lab, tmp_path: Path) -> None:
    """At once, as waiting does not help; a lost node is else waited for during ten minutes."""
    path, output = topology_of(lab, tmp_path), tmp_path / "out"
    try:
        with going_on(output, *options(path, "-v", "CELLS:1-2x1", "--suite", "csc-mrr")) as run:
            with held_in_trial(lab, run, output, "CSC 1R1C"):
                lab.nodes["DUT1"].swap_host_key()
            said, _ = run.communicate(timeout=600)
    finally:
        lab.trust()
    assert run.returncode != 0
    assert "DUT1" in said
    assert "another host key" in said
    assert "Traceback" not in said
    assert "CSC 2R1C" not in said
    assert not [row for row in results(output) if row.passed]


def test_agents_clean_up_when_the_controller_is_killed(lab: Lab, tmp_path: Path) -> None:
    before, topology = state(lab), topology_of(lab, tmp_path)
    with going_on(tmp_path / "out", *options(topology, *MRR)) as run:
        with held_in_trial(lab, run, tmp_path / "out", "CSC 1R1C"):
            assert state(lab) != before
            run.kill()
        run.communicate(timeout=600)
    wait_for_state(lab, before)


def test_of_two_controllers_the_second_is_refused_and_the_first_goes_on(lab: Lab, tmp_path: Path) -> None:
    path = topology_of(lab, tmp_path)
    with opened(path) as first:
        second = run_robot(tmp_path / "out", *options(path, *MRR), check=False)
        assert first.environment().hostname == "dut1"
    assert second.returncode != 0
    assert "TG: this machine is in use by pid" in second.stdout
    assert f"--controller root@{os.uname().nodename} pid {os.getpid()}" in second.stdout
    assert not results(tmp_path / "out")


def test_a_node_with_another_identity_is_refused_before_anything_starts(lab: Lab, tmp_path: Path) -> None:
    topology = topology_of(lab, tmp_path)
    lab.nodes["DUT1"].swap_host_key()
    try:
        done = run_robot(tmp_path / "out", *options(topology, *MRR), check=False)
    finally:
        lab.trust()
    assert done.returncode != 0
    assert "host key" in done.stdout
    assert not results(tmp_path / "out")


def test_a_full_disk_on_a_node_is_one_sentence_with_path_and_bytes(lab: Lab, tmp_path: Path) -> None:
    lab.nodes["DUT1"].run("rm", "-rf", RUNTIMES)  # as on a node that is used for the first time
    lab.fill_disk("DUT1", str(FOLDER.parent))
    try:
        done = run_robot(tmp_path / "out", *options(topology_of(lab, tmp_path), *MRR), check=False)
        left = lab.nodes["DUT1"].run("ls", "-A", RUNTIMES).split()
    finally:
        lab.free_disk("DUT1", str(FOLDER.parent))
    assert done.returncode != 0
    assert f"DUT1: {RUNTIMES} needs " in done.stdout
    assert " bytes for what an agent runs on, " in done.stdout
    assert left == []
    assert "Traceback" not in done.stdout
