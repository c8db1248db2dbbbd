"""Programs of generators that are killed or stopped in a trial are named, and not what the other end lost."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.ditg import programs as ditg
from resources.libraries.python.drivers.generators.iperf3 import driver as iperf3_runs
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests.builders import shell_program
from tests.unit.drivers.generators.iperf3.iperf3_reports import flow, result, trial, written

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
            programs.run(ditg.Script(("-a 10.0.0.1",), (1,)), 60.0, ["csg1p1"])
    finally:
        programs.stop()


def test_udp_has_packets_jitter_and_seconds_of_both_ways_without_lost_datagrams() -> None:
    found = result(trial(), written("udp_client"), written("udp_server"))
    flows = [(each.direction, each.sent, each.received) for each in found.flows]
    assert flows == [(Direction.FORWARD, 2500, 2500), (Direction.REVERSE, 2502, 2502)]
    assert [round(each.goodput_bps, -5) for each in found.sessions] == [2_000_000.0] * 2
    assert all(each.jitter_ns and 1e3 < each.jitter_ns < 1e6 for each in found.sessions)
    assert [(each.sent, each.received) for each in found.intervals] == [(1250, 1251), (1250, 1250)]
    assert not found.generator_limited
    found = result(trial(load_pps=20000.0), written("udp_client"), written("udp_server"))
    assert (found.generator_limited, found.note) == (True, "iperf3 offered 2.50 kpps of 20.0 kpps")
    server = written("udp_server")
    server["end"]["sum_received"] |= {"packets": 2400, "lost_packets": 400}
    server["intervals"][0]["sum"]["lost_packets"] = 400
    found = result(trial(), written("udp_client"), server)
    assert found.flows[0].received == 2000
    assert found.intervals[0].received == (1252 - 400 + 1250) / 2


def test_tcp_has_goodput_and_retransmits_of_the_way_forward_and_packets_of_the_ports() -> None:
    client, server = written("tcp_client"), written("tcp_server")
    client["end"]["sum_sent"]["retransmits"] = 3
    found = result(trial(protocol=Protocol.TCP), client, server)
    (forward,) = found.sessions
    assert forward.direction is Direction.FORWARD
    assert forward.goodput_bps == pytest.approx(2_096_784, rel=1e-3)
    assert (forward.retransmits, forward.jitter_ns, forward.sessions) == (3, None, 2)
    assert [(each.sent, each.received) for each in found.flows] == [(90, 70), (90, 70)]
    assert [each.sent for each in found.intervals] == [262144 / (256 - 18 - 20 - 32)] * 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (json.dumps({"start": {}, "error": "unable to connect to server: Connection refused"}), "unable to connect"),
        ("iperf3: parameter error", "no report: iperf3: parameter error"),
        ("", "nothing was written"),
    ],
)
def test_what_is_no_report_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        iperf3_runs.report(text)


def test_a_client_shares_the_load_between_ways_instances_and_sessions() -> None:
    words = iperf3_runs.client(flow(instance=2), trial(load_pps=8000.0), instances=2)
    told = dict(pairwise(words))
    assert (told["-c"], told["-B"], told["-p"], told["-P"], told["-t"]) == ("20.1.0.1", "10.1.0.1", "5202", "2", "2")
    payload = 256 - 18 - 28
    assert (told["-l"], told["-b"]) == (str(payload), str(1000 * payload * 8))
    assert "--bidir" in words
    by_tcp = iperf3_runs.client(flow(), trial(protocol=Protocol.TCP, load_pps=1000.0, sessions=None), instances=1)
    assert "--bidir" not in by_tcp
    assert dict(pairwise(by_tcp))["-M"] == str(256 - 18 - 40)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"protocol": Protocol.ICMP}, "iperf3 sends UDP, TCP, not ICMP"),
        ({"frame": frame("IMIX")}, "iperf3 sends frames of one size, and IMIX is a mix"),
        ({"frame": frame("64B"), "protocol": Protocol.TCP}, "TCP in frames of 146 bytes or more, and 64B has 64"),
        ({"sessions": 200}, "at most 128 sessions for a service instance, not 200"),
        ({"on_off_s": (1.0, 1.0)}, "iperf3 sends no bursts"),
    ],
)
def test_what_it_cannot_send_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        iperf3_runs.client(flow(), trial(**changes), instances=1)
