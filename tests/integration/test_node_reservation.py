"""Reservations by real processes: over pipes on this machine, and over real SSH servers of a lab in namespaces."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.ssh import SshConnection
from resources.libraries.python.testbed.node.node_query import MARK, program
from resources.libraries.python.testbed.node.reservation import (
    Claim,
    ReservableNode,
    acquire,
    break_open,
    holder_of,
    join,
)
from resources.libraries.python.testbed.node.scripts import leases
from tests.integration import lab as labs
from tests.integration.robot_runs import csit

TRIES = 100
TRIES_OVER_SSH = 20
"""Each takes 0.2 s of CPU time for its keys; what they ask runs on the node as without SSH."""
ROUNDS = int(os.environ.get("CSIT_RESERVATION_ROUNDS", "1"))
"""Of the test of 100 processes: 100 rounds take about five minutes."""
pytestmark = pytest.mark.parallel
needs_lab = [pytest.mark.root, pytest.mark.skipif(bool(labs.missing()), reason=labs.missing())]


@pytest.fixture(autouse=True)
def _nothing_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CSIT_RESERVATION", raising=False)


LAB = {"cables": 2}


@pytest.fixture
def nodes(lab: labs.Lab) -> Iterator[Mapping[str, Connection]]:
    made = {name: SshConnection(name, Access(**lab.access(name))) for name in lab.nodes}
    yield made
    break_open({name: ReservableNode(connection) for name, connection in made.items()})
    for connection in made.values():
        connection.close()


def here(folder: Path) -> ReservableNode:
    return ReservableNode(LocalConnection(), sys.executable, str(folder))


def claim(**changes: Any) -> Claim:
    return Claim(**{"testbed": "lab", "reason": "a test", "lease_s": 60.0, **changes})


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_of_100_processes_exactly_one_wins(_round: int, tmp_path: Path) -> None:
    """The very programs that connections run, all waiting at the gate before the first one is let in."""
    ask = {"do": "acquire", "directory": str(tmp_path), "within_s": 60.0}
    tries = [
        subprocess.Popen([sys.executable, "-I", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(TRIES)
    ]
    texts = [program({leases: {**ask, **claim().words()}}) for _ in tries]
    for process, text in zip(tries, texts, strict=True):
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.flush()
    for process in tries:
        assert process.stdin is not None
        process.stdin.close()
    said = []
    for process in tries:
        assert process.stdout is not None
        said.append(process.stdout.read().decode().partition(MARK)[2])
        process.stdout.close()
        assert process.wait(600) == 0
    assert [sum(word in text for text in said) for word in ('"won": true', '"won": false')] == [1, TRIES - 1]


def test_a_run_uses_what_is_free_or_its_own_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, reserved = {"DUT1": here(tmp_path)}, claim()
    assert not join(nodes)
    monkeypatch.setenv("CSIT_RESERVATION", "5f0c2e9b-of-no-one")  # masked in all messages from now on
    with pytest.raises(InUse, match="DUT1 is not reserved with the token in CSIT_RESERVATION: it is free"):
        join(nodes)
    acquire(nodes, reserved)
    with pytest.raises(InUse, match=r"DUT1 is reserved by .* for 'a test', until "):
        join(nodes)
    monkeypatch.setenv("CSIT_RESERVATION", reserved.token)
    assert join(nodes)


def _try_over_ssh(access: dict[str, Any], connecting: Any, gate: Any, said: Any) -> None:
    connection = SshConnection("DUT1", Access(**access))
    try:
        with connecting:
            connection.run(["true"], within_s=120.0)
        gate.wait(240)
        said.put("won" if acquire({"DUT1": ReservableNode(connection)}, claim()) == () else "took over")
    except InUse:
        said.put("in use")
    except CsitError as error:
        gate.abort()
        said.put(str(error))
    except threading.BrokenBarrierError:
        said.put("not all were connected")
    finally:
        connection.close()


class TestLab:
    pytestmark = needs_lab

    @pytest.mark.usefixtures("nodes")
    def test_of_20_processes_over_ssh_exactly_one_wins(self, lab: labs.Lab) -> None:
        """Each with a connection of its own; all are connected before the first one asks."""
        forked = multiprocessing.get_context("fork")
        connecting = forked.Semaphore(2)  # all at once would exceed the time limit of a connection
        gate, said = forked.Barrier(TRIES_OVER_SSH), forked.SimpleQueue()
        tries = [
            forked.Process(target=_try_over_ssh, args=(lab.access("DUT1"), connecting, gate, said), daemon=True)
            for _ in range(TRIES_OVER_SSH)
        ]
        for process in tries:
            process.start()
        answers = [said.get() for _ in tries]
        for process in tries:
            process.join(60)
        assert {answer: answers.count(answer) for answer in answers} == {"won": 1, "in use": TRIES_OVER_SSH - 1}

    def test_two_that_want_all_nodes_in_another_order_do_not_block_each_other(
        self, nodes: Mapping[str, Connection]
    ) -> None:
        def take(names: list[str]) -> bool:
            try:
                acquire({name: ReservableNode(nodes[name]) for name in names}, claim())
            except InUse:
                return False
            return True

        for _ in range(5):
            with ThreadPoolExecutor(4) as pool:
                won = list(pool.map(take, [["TG", "DUT1"], ["DUT1", "TG"]] * 2))
            assert sum(won) == 1
            holders = [holder_of(ReservableNode(connection))[0] for connection in nodes.values()]
            assert None not in holders
            break_open({name: ReservableNode(connection) for name, connection in nodes.items()})

    def test_all_nodes_or_none(self, nodes: Mapping[str, Connection]) -> None:
        acquire({"TG": ReservableNode(nodes["TG"])}, claim(reason="the second node of two"))
        with pytest.raises(InUse, match=r"TG is reserved by .*'the second node of two'"):
            acquire({name: ReservableNode(connection) for name, connection in nodes.items()}, claim())
        assert holder_of(ReservableNode(nodes["DUT1"])) == (None, False)

    def test_a_reservation_outlives_a_restart_of_the_node(self, lab: labs.Lab, nodes: Mapping[str, Connection]) -> None:
        acquire({"DUT1": ReservableNode(nodes["DUT1"])}, claim(lease_s=100_000.0))
        lab.reboot("DUT1", down_s=0.1)
        with pytest.raises(InUse, match="DUT1 is reserved by"):
            acquire({"DUT1": ReservableNode(nodes["DUT1"])}, claim())

    @pytest.mark.usefixtures("nodes")
    def test_commands(self, lab: labs.Lab, tmp_path: Path) -> None:
        path = str(lab.topology(tmp_path))
        assert csit("status", path).stdout == "TG: free\nDUT1: free\n"
        reserved = csit("reserve", path, "--reason", "by hand", "--lease", "2h")
        assert reserved.returncode == 0, reserved.stderr
        variable, _, token = reserved.stdout.strip().partition("=")
        assert variable == "CSIT_RESERVATION"
        refused = csit("reserve", path, "--reason", "me too")
        assert refused.returncode == 1 and "DUT1 is reserved by" in refused.stderr and "'by hand'" in refused.stderr
        waited = csit("reserve", path, "--reason", "me too", "--wait", "1s")
        assert waited.returncode == 1 and "not ready after " in waited.stderr
        shown = csit("status", path, token=token).stdout
        assert shown.count("ours: ") == 2 and "'by hand'" in shown and "120 min left" in shown
        assert token not in shown
        assert csit("release", path, "--token", "another").returncode == 1
        assert csit("release", path).returncode == 2
        assert csit("release", path, token=token).returncode == 0
        assert csit("status", path).stdout == "TG: free\nDUT1: free\n"
