"""Answers of the OTG server, in OTG's own form."""

import json
import tempfile
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.defects import DEFECT
from resources.libraries.python.drivers.generators.otg.server.http_api import answer, serve
from resources.libraries.python.drivers.generators.otg.server.traffic import CounterRates, Traffic
from resources.libraries.python.errors import ConfigError, CsitError
from tests.unit.drivers.generators.otg.otg_configurations import configuration


class NoTraffic:
    """Ports and flows of which nothing is sent."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.did: list[object] = []

    def configure(self, config: Any, given: dict[str, Any]) -> list[str]:
        self.given = given
        return list(config.warnings)

    def start(self, names: tuple[str, ...]) -> None:
        self.did.append(("start", names))

    def stop(self, _: tuple[str, ...]) -> None:
        raise CsitError("port eth1 is gone")

    def flow_metrics(self, names: tuple[str, ...]) -> list[dict[str, object]]:
        if names:
            raise ConfigError(f"there is no flow '{names[0]}' (f1)")
        return [{"name": "f1", "frames_tx": 7, "frames_rx": 6}]

    def port_metrics(self, names: tuple[str, ...]) -> list[dict[str, object]]:
        return [{"name": name} for name in names or ("p1",)]


def asked(request: str, body: object = None, traffic: NoTraffic | None = None) -> tuple[int, dict[str, Any]]:
    """The answer to a request such as `GET /config`."""
    method, path = request.split()
    return answer(
        cast(Traffic, traffic or NoTraffic()), method, path, b"" if body is None else json.dumps(body).encode()
    )


def test_a_configuration_is_kept_as_it_came() -> None:
    traffic, given = NoTraffic(), {**configuration(), "layer1": [{"name": "l1"}]}
    assert asked("POST /config", given, traffic) == (
        200,
        {"warnings": ["layer1: ignored, ports stay as the kernel has them"]},
    )
    assert asked("GET /config", None, traffic) == (200, given)


@pytest.mark.parametrize(
    ("request_line", "body", "status", "kind", "sentence"),
    [
        ("POST /config", {"flows": [{}]}, 400, "validation", "flows[0]"),
        ("POST /control/state", {}, 400, "validation", "traffic.flow_transmit is missing"),
        (
            "POST /control/state",
            {"traffic": {"flow_transmit": {"state": "stop"}}},
            500,
            "internal",
            "port eth1 is gone",
        ),
        ("POST /monitor/metrics", {"flow": {"flow_names": ["f9"]}}, 400, "validation", "there is no flow 'f9' (f1)"),
        ("PATCH /config", {}, 501, "validation", "PATCH /config: not supported by this server"),
        ("GET /", None, 501, "validation", "GET /: not supported by this server"),
    ],
)
def test_errors_have_their_status_and_kind(
    request_line: str, body: object, status: int, kind: str, sentence: str
) -> None:
    found, error = asked(request_line, body)
    assert (found, error["code"], error["kind"]) == (status, status, kind)
    (text,) = error["errors"]
    assert text.startswith(sentence)


def test_a_defect_is_one_sentence_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended: Future[tuple[int, dict[str, Any]]] = Future()
    asked: SimpleQueue[object] = SimpleQueue()
    asked.put((("POST", "/monitor/metrics", b"{}"), ended))
    asked.put(None)
    with pytest.raises(TypeError, match="unpack"):  # no further request
        serve(cast(Any, SimpleNamespace(asked=asked)), cast(Traffic, None))
    status, error = ended.result(0)
    (text,) = error["errors"]
    (log,) = tmp_path.glob("csit-*.log")
    assert status == 500 and text.startswith(f"{DEFECT} AttributeError: ")
    assert "Traceback" in log.read_text(encoding="utf-8") and str(log) in text


def test_control_and_metrics_name_flows_and_columns() -> None:
    traffic = NoTraffic()
    start = {"choice": "traffic", "traffic": {"flow_transmit": {"state": "start", "flow_names": ["f1"]}}}
    assert asked("POST /control/state", start, traffic) == (200, {"warnings": []})
    assert traffic.did == [("start", ("f1",))]
    protocols = {"choice": "protocol", "protocol": {"all": {"state": "start"}}}
    assert asked("POST /control/state", protocols)[1] == {
        "warnings": ["protocol: ignored, this server has no protocols"]
    }
    rows = asked("POST /monitor/metrics", {"flow": {"metric_names": ["frames_rx"]}})[1]
    assert rows == {"choice": "flow_metrics", "flow_metrics": [{"name": "f1", "frames_rx": 6}]}
    assert asked("POST /monitor/metrics", {})[1] == {"choice": "port_metrics", "port_metrics": [{"name": "p1"}]}


def test_rates_are_those_of_the_last_second() -> None:
    rates = CounterRates()
    assert rates.over(5.0) == (0.0, 0.0)
    for tenth in range(30):
        rates.add(tenth / 10, tenth * 100, tenth * 50)
    assert rates.over(2.9) == pytest.approx((1000, 500))
    assert rates.over(9.0) == (0.0, 0.0)
