"""Machines of an emulated testbed whose owner was killed: they end with it, or are found and ended later."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.emulation import testbed as module
from resources.libraries.python.emulation.layout import EmulatedLayout
from resources.libraries.python.emulation.machine import QEMU
from resources.libraries.python.emulation.testbed import EmulatedTestbed, TestbedRecord, end_unfinished

NEVER_S = 60.0
SLEEP = "import time; time.sleep(600)"


@contextmanager
def machine(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that looks like the QEMU of a testbed."""
    folder.mkdir()
    argv = [QEMU, "-c", SLEEP, "-name", "TG"]
    with subprocess.Popen(argv, executable=sys.executable, cwd=folder) as running:
        wait_until("its exec", lambda: "" if EmulatedTestbed(folder)._running() else "not yet", NEVER_S, pause_s=0.005)
        try:
            yield running
        finally:
            running.kill()


def test_machines_of_a_start_that_was_killed_are_ended(tmp_path: Path) -> None:
    with machine(tmp_path / "tests") as running:
        os.kill(running.pid, signal.SIGSTOP)  # a stopped one ends as well
        (sentence,) = end_unfinished(tmp_path)
        assert running.wait(NEVER_S) == -signal.SIGTERM
    assert sentence == "ended TG of testbed 'tests', whose start was interrupted"
    assert not (tmp_path / "tests").exists()
    assert end_unfinished(tmp_path) == ()


def test_machines_that_run_in_the_background_or_are_being_started_go_on(tmp_path: Path) -> None:
    record = TestbedRecord(layout=EmulatedLayout(), ports={"TG": 1})
    with machine(tmp_path / "up") as running, machine(tmp_path / "starting") as starting:
        (tmp_path / "up" / "testbed.json").write_text(record.model_dump_json(), encoding="utf-8")
        with (tmp_path / ".starting.lock").open("w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert end_unfinished(tmp_path) == ()
        assert (running.poll(), starting.poll()) == (None, None)
    assert end_unfinished(tmp_path / "none") == ()


OWNER = """
import sys
from pathlib import Path
from tests.unit.emulation.test_orphans import started
started(Path(sys.argv[1]))
sys.stdin.read()
"""


def started(folder: Path) -> None:
    """Start a machine that ends with this process, and print its PID."""
    module.arguments = lambda *_: ["sleep", "600"]  # type: ignore[attr-defined, assignment]
    testbed = EmulatedTestbed(folder, ends_with_us=True)
    named = cast("Any", SimpleNamespace(name="TG", nics=()))
    testbed._start_machine(named, cast("Any", None), EmulatedLayout(), {})
    print(testbed._children[0].pid, flush=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a signal at the parent's death is Linux's")
def test_machines_of_a_killed_test_end_with_it(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        child = process(int(owner.stdout.readline()))
        now = child.command_now
        wait_until("its exec", lambda: "" if now() == "sleep 600" else f"it is {now()}", NEVER_S)
        owner.kill()
    wait_until("its end", lambda: "it runs" if child.alive else "", NEVER_S)
