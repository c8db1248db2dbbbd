"""Programs of generators that are killed or stopped in a trial are named, and not what the other end lost."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.ditg import programs as ditg
from resources.libraries.python.drivers.generators.ditg.programs import Script
from resources.libraries.python.drivers.generators.iperf3 import run as iperf3_runs
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError
from tests.builders import shell_program
from tests.unit.drivers.generators.iperf3.iperf3_reports import flow, trial

KILLS = (
    "while [ ! -s {0} ]; do sleep 0.01; done; kill {1} $(cat {0}); "
    "while [ {1} = -STOP ] && ! grep -q ') T ' /proc/$(cat {0})/stat; do sleep 0.01; done; "
)
"""Waits for a process that has written its PID, sends it a signal, and waits until it stands still by that."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[MachineLock]:
    with MachineLock(tmp_path / "lock") as lock:
        yield lock


def run_inside(_: str, work: Callable[[], Any]) -> Any:
    """As a fabric does: in a thread that ends."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


FABRIC = cast("Any", SimpleNamespace(run_inside=run_inside))


@pytest.mark.parametrize("victim", ["server", "client"])
@pytest.mark.parametrize(
    ("kill", "says"), [("-9", r"was killed by SIGKILL: nothing on stderr$"), ("-STOP", r"is stopped \(SIGSTOP\)$")]
)
def test_an_end_of_iperf3(
    tmp_path: Path, machine: MachineLock, monkeypatch: pytest.MonkeyPatch, *, victim: str, kill: str, says: str
) -> None:
    closed = 'echo \'{"error": "control socket has closed unexpectedly"}\'; '
    kills = KILLS.format(tmp_path / "pid", kill)
    server = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    client = f"{kills} {closed} exit 1"
    if victim == "client":
        server, client = f"{kills} {closed} exit 1", server
    monkeypatch.setattr(iperf3_runs, "server", lambda *_: ["sh", "-c", server])
    monkeypatch.setattr(iperf3_runs, "client", lambda *_: ["sh", "-c", client])
    monkeypatch.setattr(iperf3_runs, "tcp_ports", lambda: {5201})
    runs = iperf3_runs.Runs(FABRIC, machine, min(os.sched_getaffinity(0)))
    with pytest.raises(CsitError, match=rf"^iperf3 {victim} of instance 1 {says}"):
        runs.run([flow()], trial(), tmp_path)


@pytest.mark.parametrize(
    ("victim", "kill", "says"),
    [
        ("ITGRecv", "-9", r"^ITGRecv was killed by SIGKILL; it said last: nothing$"),
        ("ITGSend", "-9", r"^ITGSend was killed by SIGKILL: Started sending$"),
        ("ITGSend", "-STOP", r"^ITGSend is stopped \(SIGSTOP\)$"),
    ],
)
def test_an_end_of_d_itg(
    tmp_path: Path, machine: MachineLock, monkeypatch: pytest.MonkeyPatch, *, victim: str, kill: str, says: str
) -> None:
    receiver = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    sender = f"{KILLS.format(tmp_path / 'pid', kill)} exec sleep 600"
    if victim == "ITGSend":
        receiver, sender = "exec sleep 600", f"echo Started sending; kill {kill} $$"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, script in (("ITGRecv", receiver), ("ITGSend", sender), ("sar", "exec sleep 600")):
        shell_program(tmp_path / name, script)
    monkeypatch.setattr(ditg, "tcp_ports", lambda: {9000})
    programs = ditg.DitgPrograms(FABRIC, machine, min(os.sched_getaffinity(0)))
    programs.start()
    try:
        with pytest.raises(CsitError, match=says):
            programs.run(Script(("-a 10.0.0.1",), (1,)), 60.0, ["csg1p1"])
    finally:
        programs.stop()
