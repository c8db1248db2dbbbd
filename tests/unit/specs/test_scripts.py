"""Scripts of shipped services: what they read from statistics, and what they report of a load."""

import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.paths import PROJECT

SPECS = PROJECT / "tests" / "characterization" / "specs"


def load(path: str) -> ModuleType:
    """The script at a path below the specifications, with the modules beside it."""
    file = SPECS / path
    name = f"shipped_{file.parent.name}_{file.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


COUNTERS = load("ids/counters.py")
UDP = load("ids/udp-64b.py")
NONE = {"inspected": 0.0, "missed": 0.0, "hits": 0.0, "blocked": 0.0}


def statistic(udp: int, alerts: int, drops: int = 0, blocked: int | None = None) -> str:
    """A line of eve.json as Suricata 7 writes it, without what is not read."""
    stats = {
        "uptime": 3,
        "capture": {"kernel_packets": udp + drops, "kernel_drops": drops},
        "decoder": {"pkts": udp + 2, "udp": udp},
        "detect": {"engines": [{"id": 0, "rules_loaded": 1000}], "alert": alerts},
    } | ({} if blocked is None else {"ips": {"accepted": udp - blocked, "blocked": blocked}})
    row = {"timestamp": "2026-01-01T00:00:00.000000+0000", "event_type": "stats", "stats": stats}
    return json.dumps(row, separators=(",", ":")) + "\n"


SNORT = """
Packet I/O Totals:
   Received:         1010
   Analyzed:         1000 ( 99.010%)
    Dropped:           10 (  0.980%)
   Filtered:            0 (  0.000%)
Breakdown by protocol (includes rebuilt packets):
        Eth:         1000 (100.000%)
        UDP:          {udp} ( 99.600%)
       UDP6:            0 (  0.000%)
Action Stats:
     Alerts:          {alerts} ( 24.900%)
     Logged:            0 (  0.000%)
Verdicts:
      Allow:         1000 ( 99.010%)
"""


def test_the_last_whole_statistic_of_suricata_and_report_of_snort_count() -> None:
    text = statistic(10, 1) + statistic(200, 50, drops=7, blocked=50)
    found = {"inspected": 200, "missed": 7, "hits": 50, "blocked": 50}
    assert COUNTERS.of_suricata(text) == found
    assert COUNTERS.of_suricata(text + statistic(999, 99)[:-9]) == found  # it is being written
    assert COUNTERS.of_suricata(text[30:]) == found  # the end of a long file
    assert COUNTERS.of_suricata(statistic(1, 0)) == {"inspected": 1, "missed": 0, "hits": 0, "blocked": 0}
    assert COUNTERS.of_suricata("") is None
    assert COUNTERS.of_suricata('{"event_type":"flow","flow":{}}\n') is None
    first, last = SNORT.format(udp=400, alerts=100), SNORT.format(udp=996, alerts=249)
    found = {"inspected": 996, "missed": 10, "hits": 249, "blocked": 0}
    assert COUNTERS.of_snort(first + last) == found
    assert COUNTERS.of_snort(first + last + "Packet I/O Totals:\n   Received:  5") == found
    assert COUNTERS.of_snort("Commencing packet processing (pid=7)") is None


NEVER_S = 60.0
"""A deadline that nothing here comes near."""


def test_a_report_of_snort_is_newer_than_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is the Snort: it reports 0.1 s after a signal, the second time in two parts, the third time not."""
    first, second = SNORT.format(udp=400, alerts=100), SNORT.format(udp=996, alerts=249)
    half, log = second.index("Action Stats:"), tmp_path / "ids.log"
    reports = iter([[first], [second[:half], second[half:]], []])

    def write(parts: list[str]) -> None:
        for part in parts:
            time.sleep(0.1)
            with log.open("a", encoding="ascii") as file:
                file.write(part)

    def report(*_: object) -> None:
        threading.Thread(target=write, args=(next(reports),)).start()

    log.write_text("Commencing packet processing\n", encoding="ascii")
    (tmp_path / "ids.pid").write_text(str(os.getpid()), encoding="ascii")
    monkeypatch.setattr(COUNTERS, "REPORT_WITHIN_S", NEVER_S)
    read, before = COUNTERS.reader("snort", tmp_path), signal.signal(signal.SIGUSR1, report)
    try:
        assert read()["inspected"] == 400
        assert read() == {"inspected": 996, "missed": 10, "hits": 249, "blocked": 0}
        monkeypatch.setattr(COUNTERS, "REPORT_WITHIN_S", 0.2)
        with pytest.raises(COUNTERS.LateReportError, match=r"Snort wrote no report within 0\.2 s after SIGUSR1"):
            read()
    finally:
        signal.signal(signal.SIGUSR1, before)


@given(st.text(max_size=200))
def test_no_text_is_a_statistic_by_accident(text: str) -> None:
    assert COUNTERS.of_snort(text) is None
    with suppress(ValueError):  # one line that is no JSON, which Suricata does not write
        assert COUNTERS.of_suricata(text) is None


def test_counters_are_read_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setattr(COUNTERS, "PORT", free.getsockname()[1])
    read = Mock(side_effect=[None, COUNTERS.LateReportError("no report within 4 s"), NONE])
    server = threading.Thread(target=COUNTERS.serve, args=(read, "127.0.0.1"), daemon=True)
    server.start()

    def ask() -> object:
        for _ in range(500):
            with suppress(ConnectionRefusedError):
                return COUNTERS.ask("127.0.0.1")
            server.join(0.01)
        return None

    with pytest.raises(ValueError, match="has no statistics yet"):
        ask()
    with pytest.raises(ValueError, match=r"the IDS at 127\.0\.0\.1: no report within 4 s"):
        ask()
    assert ask() == NONE


def test_every_share_of_the_workload_is_one_of_whole_senders_and_another_is_refused() -> None:
    workload = json.loads((SPECS / "ids" / "udp-64b.json").read_text(encoding="utf-8"))
    shares = [int(value) for value in workload["options"]["malicious"]["values"]]
    assert {share: UDP.malicious_senders(share) for share in shares} == {0: 0, 25: 1, 50: 2, 75: 3, 100: 4}
    for percent in (-25, 10, 125):
        with pytest.raises(ValueError, match="not a whole number of them"):
            UDP.malicious_senders(percent)


def test_only_the_malicious_payload_has_the_content_of_the_rule() -> None:
    rule = Path(SPECS, "ids", "malicious.rules").read_text(encoding="utf-8")
    content = rule.split('content:"')[1].split('"')[0].encode()
    assert content in UDP.PAYLOADS[True]
    assert content not in UDP.PAYLOADS[False]
    # Ethernet, IPv4, UDP, FCS.
    assert {14 + 20 + 8 + len(payload) + 4 for payload in UDP.PAYLOADS.values()} == {64}


def test_a_report_has_the_rate_and_what_was_detected() -> None:
    sent = [UDP.Sent(1000, 2.0) for _ in range(4)]
    before = {"inspected": 100.0, "missed": 5.0, "hits": 40.0, "blocked": 0.0}
    after = {"inspected": 3700.0, "missed": 405.0, "hits": 940.0, "blocked": 900.0}
    assert UDP.report(2.0, sent, 1, before, after) == {
        **{"indicator": 1.8, "offered": 2.0, "malicious": 1000, "missed": 400.0},
        **{"hits": 900.0, "blocked": 900.0, "detected": 0.9},
    }
    assert "detected" not in UDP.report(2.0, sent, 0, NONE, NONE)
    with pytest.raises(ValueError, match=r"2\.0 of 2\.5 kpps were offered: the generator is at its limit"):
        UDP.report(2.5, sent, 0, NONE, NONE)


def test_packets_go_out_at_the_rate_from_all_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        monkeypatch.setattr(UDP, "DISCARD", sink.getsockname()[1])
        now_s = [7.0]
        clock = SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda seconds: now_s.append(now_s.pop() + seconds))
        monkeypatch.setattr(UDP, "time", clock)
        sent = UDP.send(0, 1000, 0.2, UDP.PAYLOADS[True], ["127.0.0.1"])
        assert (sent.packets, sent.seconds) == (pytest.approx(198, abs=1), pytest.approx(0.2, abs=0.003))
        came = [sink.recvfrom(100) for _ in range(sent.packets)]
    assert {payload for payload, _ in came} == {UDP.PAYLOADS[True]}
    assert len({sender for _, sender in came}) == UDP.FLOWS


def test_counters_are_settled_when_all_packets_are_accounted_for_or_nothing_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UDP, "PAUSE_S", 0.0001)
    monkeypatch.setattr(UDP, "STILL_S", 0.1)
    rows = iter([{**NONE, "inspected": 5.0}, {**NONE, "inspected": 6.0, "missed": 3.0}, {**NONE, "inspected": 99.0}])
    monkeypatch.setattr(UDP, "ask", lambda _: next(rows))
    assert UDP.settled(["a"], NONE, 9) == {**NONE, "inspected": 6.0, "missed": 3.0}
    monkeypatch.setattr(UDP, "ask", lambda _: {**NONE, "inspected": 4.0})
    assert UDP.settled(["a", "b"], NONE, 9) == {**NONE, "inspected": 8.0}  # one packet is lost on its way


CALLS = load("sip-service/calls.py")
FOLDER = SPECS / "sip-service"
HEAD = "StartTime;ElapsedTime(C);TotalCallCreated;SuccessfulCall(C);FailedCall(C);\n"


def test_rates_are_those_of_whole_rows_without_the_first_second_in_times_of_all_versions(tmp_path: Path) -> None:
    assert CALLS.rates([(0.0, 0, 0), (1.0, 30, 20), (2.0, 60, 50), (3.0, 90, 78)]) == (30.0, 29.0)
    assert CALLS.rates([]) == CALLS.rates([(1.0, 30, 20)]) == (0.0, 0.0)
    assert [*map(CALLS.seconds, ("00:00:03:500000", "00:01:00.250", "01:00:00"))] == [3.5, 60.25, 3600.0]
    path = tmp_path / "statistics.csv"
    assert CALLS.rows(path) == []
    path.write_text(f"{HEAD}x;00:00:01;30;28;0;\nx;00:00:02;60;5", encoding="ascii")
    assert CALLS.rows(path) == [(1.0, 30, 28)]


@pytest.mark.parametrize("workload", sorted(FOLDER.glob("reg-*.json")), ids=lambda path: path.stem)
def test_every_kind_of_call_has_its_scenario(workload: Path) -> None:
    for name in json.loads(workload.read_text(encoding="utf-8"))["options"]["calls"]["values"]:
        sent = [node.text or "" for node in ET.parse(CALLS.scenario(name)).getroot().iter("send")]  # noqa: S314 - ours
        methods = [text.split()[0] for text in sent]
        assert [methods[0], methods[1], methods[-1]] == ["REGISTER"] * 3
        assert methods[2:-1] == (["INVITE", "ACK", "BYE"] if name == "reg-invite" else [])
        # The contact of a registration is the called side, where there is one.
        assert all(
            ("[answer_port]" in text) == (name == "reg-invite") for text in sent if text.split()[0] == "REGISTER"
        )
