"""Reservations by real processes: over pipes on this machine, and over real SSH servers of a lab in namespaces."""

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.ssh import SshConnection
from resources.libraries.python.testbed.node.lease import Lease
from resources.libraries.python.testbed.node.node_query import MARK, program
from resources.libraries.python.testbed.node.reservation import (
    Claim,
    HoldingProcess,
    ReservableNode,
    acquire,
    break_open,
    holder_of,
)
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.roles.connection import Connection
from tests.integration import lab as labs
from tests.integration.robot_runs import PROJECT, csit

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


@pytest.fixture(scope="module")
def lab() -> Iterator[labs.Lab]:
    with labs.Lab(cables=2) as made:
        yield made


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
    return Claim(**{"testbed": "lab", "reason": "a test", "lease_s": 60.0, "heartbeat": True, **changes})


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


def test_an_owner_that_was_killed_loses_it_when_its_lease_runs_out(tmp_path: Path) -> None:
    code = f"""
import sys, time
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node.lease import Lease
from resources.libraries.python.testbed.node.reservation import ReservableNode
node = ReservableNode(LocalConnection(), sys.executable, {str(tmp_path)!r})
with Lease({{"DUT1": node}}, "lab", "to be killed", 8.0):
    print("mine", flush=True)
    time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None and owner.stdout.readline() == b"mine\n"
        time.sleep(9.0)  # longer than the lease: it is kept alive
        with pytest.raises(InUse, match=rf"pid {owner.pid}\).* for 'to be killed', until .* unless renewed"):
            acquire({"DUT1": here(tmp_path)}, claim())
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()  # type: ignore[union-attr]
    begin = time.monotonic()
    while True:
        try:
            said = acquire({"DUT1": here(tmp_path)}, claim(owner="bob@elsewhere"))
            break
        except InUse:
            assert time.monotonic() - begin < 60.0
            time.sleep(0.2)  # each asking starts a program
    assert len(said) == 1 and re.search(
        rf"taken over from .*\(pid {owner.pid}\) .*'to be killed', which ran out", said[0]
    )


def test_a_run_that_was_killed_here_is_followed_at_once(tmp_path: Path) -> None:
    """It is resumed by the next command; only one who cannot know that it is dead waits for its lease."""
    with subprocess.Popen(["sleep", "60"]) as owner:
        run = claim(pid=owner.pid, process=HoldingProcess.of(owner.pid), heartbeat=True)
        assert acquire({"DUT1": here(tmp_path)}, run) == ()
        with pytest.raises(InUse):
            acquire({"DUT1": here(tmp_path)}, claim())
        owner.kill()
    with pytest.raises(InUse):
        acquire({"DUT1": here(tmp_path)}, claim(owner="bob@elsewhere"))
    (said,) = acquire({"DUT1": here(tmp_path)}, claim())
    assert re.search(rf"taken over from .*\(pid {owner.pid}\)", said)


def test_the_loss_of_a_lease_is_reported(tmp_path: Path) -> None:
    with Lease({"DUT1": here(tmp_path)}, "lab", "a run", 8.0) as lease:
        assert lease.lost() is None
        break_open({"DUT1": here(tmp_path)})
        wait_until("loss", lambda: "" if lease.lost() else "none", 60.0)
        assert re.match(r"the reservation of DUT1 is lost: broken by \S+@\S+ at 20", lease.lost() or "")
        assert acquire({"DUT1": here(tmp_path)}, claim(reason="the next one")) == ()
    holder, _ = holder_of(here(tmp_path))
    assert holder is not None and holder.reason == "the next one", "the loser must not release the winner's"


def test_a_run_joins_a_reservation_and_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserved = claim(heartbeat=False, lease_s=3600.0)
    acquire({"DUT1": here(tmp_path)}, reserved)
    monkeypatch.setenv("CSIT_RESERVATION", reserved.token)
    with Lease({"DUT1": here(tmp_path)}, "lab", "a run", 2.0) as lease:
        assert lease.lost() is None and lease.token == reserved.token
    holder, ours = holder_of(here(tmp_path), reserved.token)
    assert ours and holder is not None and holder.left_s > 3500
    monkeypatch.setenv("CSIT_RESERVATION", "5f0c2e9b-of-no-one")  # masked in all messages from now on
    with pytest.raises(InUse, match="DUT1 is not reserved with the token in CSIT_RESERVATION: it is that of"):
        Lease({"DUT1": here(tmp_path)}, "lab", "a run").__enter__()


def _try_over_ssh(access: dict[str, Any], connecting: Any, gate: Any, said: Any) -> None:
    connection = SshConnection("DUT1", Access(**access))
    try:
        with connecting:
            connection.run(["true"], within_s=120.0)
        gate.wait(240)
        parent = os.getppid()  # the winner may end before the others ask
        mine = claim(pid=parent, process=HoldingProcess.of(parent))
        said.put("won" if acquire({"DUT1": ReservableNode(connection)}, mine) == () else "took over")
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

    def test_a_node_that_is_cut_off_is_lost_after_its_lease_and_not_before(
        self, lab: labs.Lab, nodes: Mapping[str, Connection]
    ) -> None:
        begin = time.monotonic()
        with Lease({name: ReservableNode(each) for name, each in nodes.items()}, "lab", "a run", 12.0) as lease:
            lab.kill_sshd("DUT1")
            try:
                assert lease.lost() is None
                wait_until("loss", lambda: "" if lease.lost() else "none", 60.0)
                assert time.monotonic() - begin >= 12.0, "it was ours for longer than that"
                assert "the reservation of DUT1 ran out" in str(lease.lost())
            finally:
                lab.start_sshd("DUT1")
            # Nobody has taken it meanwhile, so it is ours again.
            wait_until("renewal", lambda: lease.lost() or "", 60.0)

    def test_a_reservation_outlives_a_restart_of_the_node(self, lab: labs.Lab, nodes: Mapping[str, Connection]) -> None:
        acquire({"DUT1": ReservableNode(nodes["DUT1"])}, claim(heartbeat=False, lease_s=100_000.0))
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
