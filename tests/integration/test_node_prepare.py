"""Machines of a lab are prepared for measuring over SSH, and have the settings of before when they are released."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.testbed.node.scripts import tunables
from tests.integration import lab as labs
from tests.integration.robot_runs import csit, csit_going_on

# Not beside other tests: the kernel is the machine's, and its settings are those of all.
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(labs.missing()), reason=labs.missing())]

PAGES = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
MORE_PAGES = 8
RECORD = "/var/lib/csit-density/prepared.json"
RESERVATION = "/var/lib/csit-density/reservation.json"
DAEMON = 'import ctypes, time; ctypes.CDLL(None).prctl(15, b"irqbalance"); time.sleep(600)'


def settings() -> dict[str, str]:
    """All settings of the machine that could be changed."""
    files: dict[str, str] = tunables.answer({"do": "look"})["files"]
    return files


LAB = {"cables": 2}


@pytest.fixture(scope="module", autouse=True)
def interrupts_on_all_cpus() -> Iterator[None]:
    """Something for `prepare` to move, whatever an earlier run on this machine left."""
    before = {path: text for path, text in settings().items() if path.endswith("/smp_affinity_list")}
    set_all(dict.fromkeys(before, ",".join(map(str, sorted(os.sched_getaffinity(0))))))
    yield
    set_all(before)


@pytest.fixture
def testbed(lab: labs.Lab, tmp_path: Path) -> Iterator[str]:
    if PAGES not in settings():
        pytest.skip("the kernel has no huge pages of 2 MB on NUMA node 0")
    wanted = int(settings()[PAGES]) + MORE_PAGES
    memory = [{"node": 0, "total_mb": 1024 * 1024, "hugepages_2mb": wanted}]
    path = str(lab.topology(tmp_path, nodes={"DUT1": {"memory": memory}}))
    yield path
    csit("release", path, "--force")


def token_of(prepared: "subprocess.CompletedProcess[str]") -> str:
    variable, _, token = prepared.stdout.strip().partition("=")
    assert variable == "CSIT_RESERVATION", prepared.stderr
    return token


def test_a_testbed_is_prepared_and_put_back(lab: labs.Lab, testbed: str) -> None:
    before = settings()
    listed = csit("prepare", testbed, "--dry-run")
    assert listed.returncode == 0, listed.stderr
    pages, more = before[PAGES], int(before[PAGES]) + MORE_PAGES
    change = f"DUT1: huge pages of 2 MB on NUMA 0: {pages} -> {more} (as the topology declares)"
    assert change in listed.stdout.splitlines()
    assert settings() == before and csit("status", testbed).stdout == "TG: free\nDUT1: free\n"

    prepared = csit("prepare", testbed)
    assert prepared.returncode == 0, prepared.stderr
    assert change in prepared.stderr.splitlines()
    token, changed = token_of(prepared), settings()
    assert changed[PAGES] == str(more)
    moved = {path for path, text in before.items() if changed.get(path) != text}
    if os.cpu_count() != 1:
        assert any("/irq/" in path for path in moved)

    stranger = csit("prepare", testbed)
    assert stranger.returncode == 1 and "is reserved by" in stranger.stderr and "'prepared'" in stranger.stderr
    again = csit("prepare", testbed, token=token)
    assert again.returncode == 0 and not again.stdout and "huge pages" not in again.stderr
    kept = csit("cleanup", testbed, "--yes", token=token)
    assert "DUT1: prepared for this reservation; ./csit release puts its settings back" in kept.stdout
    assert settings() == changed
    assert "nodes.DUT1: prepared: " in csit("doctor", testbed).stdout

    released = csit("release", testbed, token=token)
    assert released.returncode == 0, released.stderr
    assert f"DUT1: huge pages of 2 MB on NUMA 0: {more} -> {pages}" in released.stdout
    assert settings() == before
    assert not has_record(lab)


def test_after_a_kill_cleanup_puts_it_back(lab: labs.Lab, testbed: str) -> None:
    before = settings()
    with csit_going_on("prepare", testbed) as run:
        wait_until("record", lambda: "" if has_record(lab) else "none", 60.0, pause_s=0.005)
        run.send_signal(signal.SIGKILL)
    refused = csit("cleanup", testbed, "--yes")
    assert refused.returncode == 1 and "is reserved by" in refused.stderr
    for node in lab.nodes.values():  # as when the lease has run out
        node.run("rm", RESERVATION)
    assert "settings to restore" in csit("cleanup", testbed).stdout
    removed = csit("cleanup", testbed, "--yes")
    assert removed.returncode == 0, removed.stderr
    assert "DUT1: huge pages of 2 MB on NUMA 0: " in removed.stdout
    assert settings() == before


def test_a_node_that_has_restarted_keeps_what_it_has(lab: labs.Lab, testbed: str) -> None:
    before = settings()
    token = token_of(csit("prepare", testbed))
    record = lab.nodes["DUT1"].read(RECORD)
    try:
        lab.reboot("DUT1", down_s=0.1)  # its kernel is this machine's, which goes on with what it has
        released = csit("release", testbed, token=token)
        assert released.returncode == 0, released.stderr
        assert "DUT1: it has restarted since it was prepared, and has the settings of its start" in released.stdout
        assert settings()[PAGES] == str(int(before[PAGES]) + MORE_PAGES)
    finally:
        restore_by(record)
    assert settings() == before


def test_irqbalance_is_stopped_and_started_again(testbed: str) -> None:
    with subprocess.Popen([sys.executable, "-c", DAEMON]) as daemon:
        wait_until("daemon", lambda: "" if daemons() == {daemon.pid} else "not there", 10.0)
        prepared = csit("prepare", testbed)
        assert "irqbalance: stopped" in prepared.stderr
        assert daemon.wait(30) == -signal.SIGTERM
    assert not daemons()
    released = csit("release", testbed, token=token_of(prepared))
    assert "irqbalance: started again" in released.stdout
    wait_until("daemon", lambda: "" if daemons() else "not there", 10.0)
    for pid in daemons():
        os.kill(pid, signal.SIGKILL)


def has_record(lab: labs.Lab) -> bool:
    return Path(RECORD).name in lab.nodes["DUT1"].run("ls", str(Path(RECORD).parent)).split()


def daemons() -> set[int]:
    return set(tunables._processes(Path("/")))


def restore_by(record: str) -> None:
    """Put the settings of a record back by hand."""
    set_all(json.loads(record)["settings"])


def set_all(wanted: dict[str, str]) -> None:
    """Write settings that differ; the kernel refuses to move some interrupts."""
    for path, text in wanted.items():
        if settings().get(path) not in (None, text):
            with contextlib.suppress(OSError):
                Path(path).write_text(text, encoding="ascii")
