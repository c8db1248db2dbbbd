"""The client and its server: whose flows are sent there, which ports are down, and what it is that was refused."""

import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.otg.client import CONTROLLER, OtgClient, OtgRefusal, stop_left
from resources.libraries.python.drivers.generators.otg.flows import sender_of, sent_flows
from resources.libraries.python.drivers.generators.otg.registration import Otg
from resources.libraries.python.errors import CsitError, InUse, Unsupported
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from tests.unit.drivers.generators.otg.otg_configurations import FLOWS

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


def answers(monkeypatch: pytest.MonkeyPatch, client: OtgClient, **calls: object) -> None:
    """Let calls of snappi return something, or raise it."""

    def answer(value: object) -> Any:
        def call(*_: object) -> object:
            if isinstance(value, Exception):
                raise value
            return value(*_) if callable(value) else value

        return call

    for name, value in calls.items():
        monkeypatch.setattr(client._api, name, answer(value))


def metrics(flows: dict[str, str], ports: dict[str, str | None]) -> Any:
    return lambda _: SimpleNamespace(
        flow_metrics=[SimpleNamespace(name=name, transmit=state) for name, state in flows.items()],
        port_metrics=[SimpleNamespace(name=name, link=link) for name, link in ports.items()],
    )


def error(code: int, text: str) -> Exception:
    """What snappi raises where a server answers with an error."""
    found = snappi.Error()
    found.code, found.errors = code, [text]
    return Exception(found)


def test_flows_of_this_driver_are_known_by_their_names() -> None:
    assert len(OWN) == 12 and {sender_of(name) for name in OWN} == {(CONTROLLER, os.getpid())}
    for name in (
        "f1",
        "",
        "1 forward 64",
        "1 forward 64 load ",
        "0 forward 64 load",
        "1 sideways 64 load",
        "0 1 forward 64 load",
        OWN[0],
    ):
        assert sender_of(f"{CONTROLLER} {name}") is None
        assert sender_of(name) is None or name == OWN[0]


def test_only_started_flows_are_running(client: OtgClient) -> None:
    assert client.own_running() == [OWN[0]]


def test_flows_of_another_run_are_not_stopped_and_those_of_one_that_has_ended_are(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    with subprocess.Popen(["sleep", "60"]) as alive:
        for sender, user in (
            (f"elsewhere {os.getpid()}", "a run on elsewhere"),
            (f"{CONTROLLER} {alive.pid}", f"a run with pid {alive.pid}"),
        ):
            other, *_ = sent_flows(FLOWS, TRIAL, latency=False, sender=sender)
            answers(monkeypatch, client, get_metrics=metrics({OWN[0]: "started", other.name: "started"}, {}))
            with pytest.raises(InUse, match=rf"{user} sends there \(1 flow, such as {sender} 1 forward "):
                client.own_running()
        alive.kill()
    left, *_ = sent_flows(FLOWS, TRIAL, latency=False, sender=f"{CONTROLLER} {ended.pid}")
    answers(monkeypatch, client, get_metrics=metrics({left.name: "started"}, {}))
    assert client.own_running() == [left.name]


def test_flows_of_another_program_are_not_stopped(monkeypatch: pytest.MonkeyPatch, client: OtgClient) -> None:
    sent: list[object] = []
    answers(monkeypatch, client, set_control_state=sent.append)
    answers(monkeypatch, client, get_metrics=metrics({OWN[0]: "started", "soak": "started", "f2": "stopped"}, {}))
    sentence = (
        rf"^OTG server {URL}: another program sends there \(1 flow, such as soak\); stop it, or wait for its end$"
    )
    with pytest.raises(InUse, match=sentence):
        client.own_running()
    monkeypatch.setattr("resources.libraries.python.drivers.generators.otg.client.OtgClient", lambda _: client)
    (left,) = stop_left([Otg(location=URL)])
    assert left.startswith("could not stop traffic: OTG server") and "another program" in left
    assert not sent
    answers(monkeypatch, client, get_metrics=metrics({OWN[0]: "started", "soak": "stopped"}, {}))
    assert stop_left([Otg(location=URL)]) == [f"stopped 1 flow of {URL}"]
    assert len(sent) == 1


@pytest.mark.parametrize("code", [400, 500, 501])
def test_a_server_may_refuse_metrics_while_there_are_no_flows(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient, code: int
) -> None:
    answers(monkeypatch, client, get_metrics=error(code, "no flows"))
    assert client.own_running() == [] and client.ports_down() == []


def test_ports_are_down_where_the_server_says_so(monkeypatch: pytest.MonkeyPatch, client: OtgClient) -> None:
    assert client.ports_down() == ["p2"]
    answers(monkeypatch, client, get_metrics=metrics({}, {"p1": "up", "p2": None}))
    assert client.ports_down() == []


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
def test_a_refusal_is_an_answer_of_the_server_itself(
    monkeypatch: pytest.MonkeyPatch, client: OtgClient, raised: Exception, kind: type[CsitError]
) -> None:
    answers(monkeypatch, client, set_config=raised, get_metrics=raised)
    with pytest.raises(CsitError, match=rf"^OTG server {URL}: configuration: no port 1/9") as caught:
        client.configure({})
    assert type(caught.value) is kind
    if kind is CsitError:
        for ask in (client.own_running, client.ports_down):
            with pytest.raises(CsitError, match="no port 1/9"):
                ask()
