"""Flows of a plan as OTG's, and OTG's metrics as a result."""

import os
import subprocess
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg.driver import CONTROLLER, OtgClient, OtgRefusal, stop_left
from resources.libraries.python.drivers.generators.otg.flows import (
    ServerPort,
    configuration,
    figures,
    sender_of,
    sent_flows,
    trial_result,
)
from resources.libraries.python.errors import CsitError, InUse, Unsupported
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests.builders import raising
from tests.unit.drivers.generators.otg.otg_configurations import FLOWS, SENDER

PORTS = {"tg-1-1": ServerPort("tg-1-1", "tg-1-1"), "tg-1-2": ServerPort("tg-1-2", "eth7")}


def trial(name: str = "128B", **changes: object) -> Trial:
    return Trial(load_pps=10_000.0, duration_s=0.5, frame=frame(name)).model_copy(update=changes)


def result_of(asked: Trial, *rows: tuple[Any, ...]) -> TrialResult:
    """Of flow metrics as snappi gives them: packets sent and received, and perhaps a latency."""
    sent = sent_flows(FLOWS, asked, latency=True, sender=SENDER)
    nothing = SimpleNamespace(minimum_ns=None, average_ns=None, maximum_ns=None)
    told = {}
    for flow, (frames, arrived, *latency) in zip(sent, rows, strict=True):
        figure = latency[0] if latency else nothing
        told[flow.name] = SimpleNamespace(frames_tx=frames, frames_rx=arrived, transmit="stopped", latency=figure)
    found = figures(told, sent)
    return trial_result(asked, FLOWS, sent, found, started_at="2026-01-01", total_duration_s=1.0)


def test_a_flow_has_its_ports_addresses_size_rate_and_time() -> None:
    sent = sent_flows(FLOWS, trial(probe_pps=100.0), latency=True, sender=SENDER)
    load, probe, tagged, _ = configuration(sent, PORTS, 0.5)["flows"]
    for flow, pps, size in ((load, 5000, 128), (probe, 100, 128), (tagged, 5000, 132)):
        assert (flow["rate"]["pps"], flow["size"]["fixed"]) == (pps, size)
        assert flow["duration"]["fixed_seconds"] == {"seconds": 0.5}
        assert flow["metrics"]["latency"] == {"enable": flow is probe}
    assert probe["tx_rx"]["port"] == {"tx_name": "tg-1-1", "rx_names": ["tg-1-2"]}
    assert tagged["tx_rx"]["port"] == {"tx_name": "tg-1-2", "rx_names": ["tg-1-1"]}
    ethernet, ip, _ = (header[header["choice"]] for header in load["packet"])
    assert (ethernet["src"]["value"], ethernet["dst"]["value"]) == ("02:00:00:00:00:01", "02:00:00:00:00:02")
    assert ip["src"]["increment"] == {"start": "10.0.0.1", "step": "0.0.0.1", "count": 254}
    assert ip["dst"]["value"] == "20.0.0.1"
    assert [header["choice"] for header in tagged["packet"]] == ["ethernet", "vlan", "ipv6", "udp"]
    assert tagged["packet"][1]["vlan"]["id"]["value"] == 7


def test_a_load_of_tcp_is_segments_in_the_middle_of_a_connection() -> None:
    sent = sent_flows(FLOWS, trial(probe_pps=100.0, protocol=Protocol.TCP), latency=True, sender=SENDER)
    last = [flow["packet"][-1] for flow in configuration(sent, PORTS, 0.5)["flows"]]
    assert [header["choice"] for header in last] == ["tcp", "udp"] * 2
    fields = {name: field["value"] for name, field in last[0]["tcp"].items()}
    ports = {"src_port": 49191, "dst_port": 49191}
    assert fields == {**ports, "seq_num": 1, "ack_num": 1, "ctl_ack": 1, "window": 0xFFFF}


def test_a_mix_has_a_flow_of_each_size_with_its_share_and_a_direction_can_have_all() -> None:
    sent = sent_flows(FLOWS, trial("IMIX", load_pps=24_000.0), latency=True, sender=SENDER)
    assert [(each.frame_bytes, each.pps) for each in sent] == [(64, 7000), (570, 4000), (1518, 1000)] * 2
    only = sent_flows(FLOWS, trial(only=Direction.REVERSE), latency=True, sender=SENDER)
    assert [(each.flow.direction, each.pps) for each in only] == [(Direction.REVERSE, 10_000)]
    assert not [each for each in sent_flows(FLOWS, trial(probe_pps=9.0), latency=False, sender=SENDER) if each.probe]
    assert [each.pps for each in sent_flows(FLOWS, trial(load_pps=0.1), latency=True, sender=SENDER)] == [1, 1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"count_losses": True}, "numbers no packets"),
        ({"timeline_s": 0.1}, "numbers no packets"),
        ({"on_off_s": (1.0, 1.0)}, "sends no bursts"),
        ({"frame": frame("128B").model_copy(update={"flows": 1000})}, "1,000 flows: .* 254"),
    ],
)
def test_what_an_otg_server_cannot_do_is_named(changes: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(Unsupported, match=sentence):
        sent_flows(FLOWS, trial(**changes), latency=True, sender=SENDER)


def test_metrics_become_counts_and_latency_without_percentiles() -> None:
    latency = SimpleNamespace(minimum_ns=900.0, average_ns=1500.5, maximum_ns=9000.0)
    result = result_of(trial(probe_pps=100.0), (2500, 2400), (50, 49, latency), (2500, 2500), (50, 50))
    assert [(each.sent, each.received) for each in result.flows] == [(2500, 2400), (2500, 2500)]
    assert not result.generator_limited and result.offered_pps == 10_000
    forward, reverse = result.latency
    assert (forward.sent, forward.received) == (50, 49)
    assert (forward.min_ns, forward.mean_ns, forward.max_ns, forward.p99_ns) == (900, 1500.5, 9000, None)
    assert (reverse.received, reverse.min_ns, reverse.max_ns) == (50, None, None)


def test_a_server_that_sends_too_little_is_to_blame_and_one_without_counters_is_named() -> None:
    result = result_of(trial(), (2480, 2480), (2480, 2480))
    assert result.generator_limited
    assert result.note == "the OTG server sent 4,960 of 5,000 packets"
    with pytest.raises(CsitError, match="reports no counters of flow 'controller 4711 1 forward 128 load'"):
        figures({}, sent_flows(FLOWS, trial(), latency=True, sender=SENDER))


def test_a_server_that_is_gone_keeps_no_later_run_from_starting() -> None:
    (sentence,) = stop_left([Otg(location="http://127.0.0.1:1")])
    assert sentence.startswith("could not stop traffic: OTG server http://127.0.0.1:1: flow metrics: ")


def test_packets_cross_a_network_encrypted_only() -> None:
    assert Otg(location="https://otg.example:8443").verify
    assert Otg(location="http://localhost:8080")
    assert Otg(location="http://[::1]:8080")
    for location in ("http://192.0.2.1:8443", "http://otg.example", "ftp://127.0.0.1", "https://user@host"):
        with pytest.raises(ValidationError):
            Otg(location=location)


snappi = pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
URL = "http://127.0.0.1:8443"
TRIAL = Trial(load_pps=1000.0, duration_s=1.0, frame=frame("IMIX"), probe_pps=100.0)
OWN = [flow.name for flow in sent_flows(FLOWS, TRIAL, latency=True, sender=f"{CONTROLLER} {os.getpid()}")]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> OtgClient:
    """A client whose server sends one flow of this driver, and has one port that is down."""
    made = OtgClient(Otg(location=URL))
    answers(monkeypatch, made, get_metrics=metrics({OWN[0]: "started", OWN[1]: "stopped"}, {"p1": "up", "p2": "down"}))
    return made


def answers(monkeypatch: pytest.MonkeyPatch, client: OtgClient, **calls: Any) -> None:
    """Let calls of snappi do something, or raise an error."""
    for name, call in calls.items():
        monkeypatch.setattr(client._api, name, raising(call) if isinstance(call, Exception) else call)


def metrics(flows: dict[str, str], ports: dict[str, str | None] | None = None) -> Any:
    return lambda _: SimpleNamespace(
        flow_metrics=[SimpleNamespace(name=name, transmit=state) for name, state in flows.items()],
        port_metrics=[SimpleNamespace(name=name, link=link) for name, link in (ports or {}).items()],
    )


def error(code: int, text: str) -> Exception:
    """What snappi raises where a server answers with an error."""
    found = snappi.Error()
    found.code, found.errors = code, [text]
    return Exception(found)


def test_flows_of_this_driver_are_known_by_their_names() -> None:
    assert len(OWN) == 12 and {sender_of(name) for name in OWN} == {(CONTROLLER, os.getpid())}
    others = ["f1", "", "1 forward 64", "1 forward 64 load ", "0 forward 64 load", "1 sideways 64 load"]
    for name in (*others, "0 1 forward 64 load"):
        assert sender_of(f"{CONTROLLER} {name}") is sender_of(name) is None
    assert sender_of(f"{CONTROLLER} {OWN[0]}") is None


def test_only_started_flows_are_running_and_ports_are_down_where_the_server_says_so(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient
) -> None:
    assert client.own_running() == [OWN[0]]
    assert client.ports_down() == ["p2"]
    answers(monkeypatch, client, get_metrics=metrics({}, {"p1": "up", "p2": None}))
    assert client.ports_down() == []


def test_flows_of_another_run_are_not_stopped_and_those_of_one_that_has_ended_are(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient
) -> None:
    def running(sender: str) -> str:
        flow, *_ = sent_flows(FLOWS, TRIAL, latency=False, sender=sender)
        answers(monkeypatch, client, get_metrics=metrics({flow.name: "started"}))
        return flow.name

    with subprocess.Popen(["true"]) as ended:
        pass
    here, there = f"{CONTROLLER} {os.getppid()}", f"elsewhere {os.getpid()}"
    for sender, user in ((there, "a run on elsewhere"), (here, f"a run with pid {os.getppid()}")):
        running(sender)
        with pytest.raises(InUse, match=rf"{user} sends there \(1 flow, such as {sender} 1 forward "):
            client.own_running()
    left = running(f"{CONTROLLER} {ended.pid}")
    assert client.own_running() == [left]


def test_flows_of_another_program_are_not_stopped(monkeypatch: pytest.MonkeyPatch, client: OtgClient) -> None:
    sent: list[object] = []
    told = metrics({OWN[0]: "started", "soak": "started", "f2": "stopped"}, {})
    answers(monkeypatch, client, set_control_state=sent.append, get_metrics=told)
    with pytest.raises(InUse, match=rf"^OTG server {URL}: another program sends there \(1 flow, such as soak\)"):
        client.own_running()
    monkeypatch.setattr("resources.libraries.python.drivers.generators.otg.driver.OtgClient", lambda _: client)
    (left,) = stop_left([Otg(location=URL)])
    assert left.startswith("could not stop traffic: OTG server") and "another program" in left
    assert not sent
    answers(monkeypatch, client, get_metrics=metrics({OWN[0]: "started", "soak": "stopped"}))
    assert stop_left([Otg(location=URL)]) == [f"stopped 1 flow of {URL}"]
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (error(400, "no port 1/9"), OtgRefusal),
        (error(500, "no port 1/9"), OtgRefusal),
        (error(501, "no port 1/9"), Unsupported),
        (error(503, "no port 1/9"), CsitError),
        (OSError("no port 1/9"), CsitError),
    ],
)
def test_a_refusal_is_an_answer_of_the_server_itself_which_has_no_metrics_while_there_are_no_flows(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient, raised: Exception, kind: type[CsitError]
) -> None:
    answers(monkeypatch, client, set_config=raised, get_metrics=raised)
    with pytest.raises(CsitError, match=rf"^OTG server {URL}: configuration: no port 1/9") as caught:
        client.configure({})
    assert type(caught.value) is kind
    for ask in (client.own_running, client.ports_down):
        if kind is CsitError:
            with pytest.raises(CsitError, match="no port 1/9"):
                ask()
        else:
            assert ask() == []
