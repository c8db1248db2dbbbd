"""Power over Redfish from a server that is not ours, the emulator of sushy-tools, over HTTPS on loopback."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from resources.libraries.python.errors import LONGEST_MESSAGE, CsitError
from resources.libraries.python.model.testbed.access import Redfish
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.testbed.node import energy
from tests.integration.redfish_bmc import PASSWORD, PASSWORD_VARIABLE, Bmc, emulator

pytest.importorskip("sushy", reason="sushy is not installed (requirements-redfish.txt)")
pytest.importorskip("sushy_tools", reason="sushy-tools are not installed (requirements-dev.txt)")
pytestmark = pytest.mark.parallel


@pytest.fixture(scope="module", params=["Power", "EnvironmentMetrics"])
def bmc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Bmc]]:
    """The emulator with one of the resources that have the power."""
    with emulator(tmp_path_factory.mktemp("bmc"), request.param) as made:
        yield request.param, made


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)


def test_the_power_of_the_chassis_is_read(bmc: tuple[str, Bmc]) -> None:
    name, server = bmc
    found = server.read(server.meter())
    (node,) = node_powers(found.series)
    assert node.watts == {"Power": 244.0, "EnvironmentMetrics": 187.5}[name]
    assert node.meter == "redfish" and len(found.series[0].samples) >= 3


def test_a_certificate_that_is_not_trusted_is_refused(bmc: tuple[str, Bmc]) -> None:
    _, server = bmc
    with pytest.raises(CsitError, match=r"nodes\.DUT1\.energy: https://localhost:\d+: .*certificate verify failed"):
        server.read(server.meter().model_copy(update={"ca_file": None}))


def test_a_wrong_password_is_refused_and_never_shown(bmc: tuple[str, Bmc], monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = bmc
    monkeypatch.setenv(PASSWORD_VARIABLE, "a-wrong-one")
    with pytest.raises(CsitError, match=r"nodes\.DUT1\.energy: https://localhost") as refused:
        server.read(server.meter())
    assert "a-wrong-one" not in str(refused.value)


CHASSIS = "/redfish/v1/Chassis"
ANSWERS: dict[str, object] = {
    "/redfish/v1/": {"Id": "r", "Name": "r", "RedfishVersion": "1.6.0", "Chassis": {"@odata.id": CHASSIS}},
    CHASSIS: {"Name": "c", "Members": [{"@odata.id": f"{CHASSIS}/1"}]},
    f"{CHASSIS}/1": {
        **{"@odata.id": f"{CHASSIS}/1", "Id": "1", "Name": "c", "ChassisType": "RackMount"},
        "EnvironmentMetrics": {"@odata.id": "/power"},
    },
    "/power": {"PowerWatts": {"Reading": 100}},
}
"""A BMC's answers by path."""


@contextmanager
def answering(answers: Mapping[str, object], every_s: float = 0.0) -> Iterator[Redfish]:
    """A BMC on loopback that gives these answers, a byte every so many seconds; the value is how to reach it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            found = answers.get(self.path)
            body = found if isinstance(found, bytes) else json.dumps(found or {}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for byte in body if every_s else ():
                self.wfile.write(bytes([byte]))
                time.sleep(every_s)
            self.wfile.write(body if not every_s else b"")

        do_POST = do_GET

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The client has had enough."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        yield Bmc("https://bmc", Path("unused")).meter().model_copy(update={"url": url, "ca_file": None})
        server.shutdown()


@pytest.mark.parametrize(
    "changed",
    [
        {"/redfish/v1/": b"[]"},
        {"/redfish/v1/": b"null"},
        {"/redfish/v1/": b"[" * 100_000},
        {"/redfish/v1/": b" " * 2_000_000},
        {CHASSIS: {"Members": [5]}},
        {f"{CHASSIS}/1": {"Id": "1", "Name": "c", "ChassisType": "Card", "EnvironmentMetrics": {"@odata.id": [1]}}},
        {"/power": b'{"PowerWatts": {"Reading": ' + b"9" * 5_000 + b"}}"},
        {"/power": {"PowerWatts": {"Reading": -5}}},
        {"/power": {"PowerWatts": {"Reading": 1e300}}},
        {"/power": b'{"PowerWatts": {"Reading": NaN}}'},
    ],
)
def test_answers_of_another_form_are_one_sentence(changed: dict[str, object]) -> None:
    with answering({**ANSWERS, **changed}) as meter, pytest.raises(CsitError, match=r"^nodes\.DUT1\.energy: ") as said:
        energy.read_redfish("DUT1", meter, 0.0)
    assert len(str(said.value)) <= LONGEST_MESSAGE and str(said.value).isprintable()


def test_a_bmc_of_many_chassis_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "_REQUESTS_S", 0.5)
    many = {CHASSIS: {"Name": "c", "Members": [{"@odata.id": f"{CHASSIS}/1"}] * 15_000}}
    # On a busy machine one of the requests may take as long as all may.
    limit = r"did not end within 0\.5 s$|Connection (broken|aborted)"
    with answering({**ANSWERS, **many}) as meter, pytest.raises(CsitError, match=limit):
        energy.read_redfish("DUT1", meter, 0.0)


def test_an_answer_that_comes_a_byte_at_a_time_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "_REQUESTS_S", 0.5)
    with (
        answering(ANSWERS, every_s=0.1) as meter,
        # The latter where not even the head of the answer had come.
        pytest.raises(CsitError, match=r"Connection (broken: (IncompleteRead|ConnectionResetError)|aborted)"),
    ):
        energy.read_redfish("DUT1", meter, 0.0)
