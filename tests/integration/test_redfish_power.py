"""Power over Redfish from a server that is not ours, the emulator of sushy-tools, over HTTPS on loopback."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest

from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.testbed.energy import Redfish
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node.energy import read_meter
from resources.libraries.python.testbed.roles.watching import Readings

pytest.importorskip("sushy", reason="sushy is not installed (requirements-redfish.txt)")
pytest.importorskip("sushy_tools", reason="sushy-tools are not installed (requirements-dev.txt)")
pytestmark = pytest.mark.parallel

USER, PASSWORD = "csit", "only-here"
RESOURCES = {
    "Power": {
        "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 211}, {"MemberId": "1", "PowerConsumedWatts": 33}]
    },
    "EnvironmentMetrics": {"PowerWatts": {"Reading": 187.5}},
}
SERVER = """\
import json, ssl, sys
from sushy_tools.emulator.main import app, RedfishAuthMiddleware

port, certificate, key, passwords, names = sys.argv[1:]
app.configure(extra_config={"SUSHY_EMULATOR_FAKE_DRIVER": True, "SUSHY_EMULATOR_AUTH_FILE": passwords})
RESOURCES = json.loads(names)

# The emulator has chassis and their temperatures, but no power: this adds the resources of DSP0268 to it.
@app.after_request
def with_links(response):
    if response.is_json and "Chassis.v1" in str((response.get_json() or {}).get("@odata.type")):
        document = response.get_json()
        for name in RESOURCES:
            document[name] = {"@odata.id": document["@odata.id"] + "/" + name}
        response.set_data(json.dumps(document))
    return response

@app.route("/redfish/v1/Chassis/<identity>/<name>")
def power(identity, name):
    return {"@odata.id": f"/redfish/v1/Chassis/{identity}/{name}", "Id": name, "Name": name, **RESOURCES[name]}

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
app.run(host="127.0.0.1", port=int(port), ssl_context=context)
"""


@dataclass(frozen=True)
class Bmc:
    """A running emulator."""

    url: str
    certificate: Path

    def meter(self, **more: str) -> Redfish:
        told = {"user": USER, "password": "env:CSIT_TEST_BMC", "ca_file": str(self.certificate), "interval_s": 0.5}
        return Redfish.model_validate({"meter": "redfish", "url": self.url, **told, **more})

    def read(self, meter: Redfish, duration_s: float = 1.2) -> Readings:
        with closing(LocalConnection()) as here:
            return read_meter("DUT1", meter, duration_s, here)


@pytest.fixture(scope="module", params=["Power", "EnvironmentMetrics"])
def bmc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Bmc]]:
    """The emulator with one of the resources that have the power."""
    folder = tmp_path_factory.mktemp("bmc")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request_of = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*request_of, *named], check=True, capture_output=True)
    passwords = folder / "passwords"
    passwords.write_bytes(USER.encode() + b":" + bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)) + b"\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    resources = {request.param: RESOURCES[request.param]}
    log = folder / "log"
    command = [sys.executable, "-c", SERVER, str(port), *map(str, (certificate, key, passwords)), json.dumps(resources)]
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as server:
        try:
            _wait(port, server, log)
            yield request.param, Bmc(f"https://localhost:{port}", certificate)
        finally:
            server.terminate()


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSIT_TEST_BMC", PASSWORD)


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
    monkeypatch.setenv("CSIT_TEST_BMC", "a-wrong-one")
    with pytest.raises(CsitError, match=r"nodes\.DUT1\.energy: https://localhost") as refused:
        server.read(server.meter())
    assert "a-wrong-one" not in str(refused.value)


def test_a_chassis_that_is_not_there_is_named(bmc: tuple[str, Bmc]) -> None:
    _, server = bmc
    with pytest.raises(CsitError, match="nowhere"):
        server.read(server.meter(chassis="nowhere"))


def test_a_chassis_without_power_says_so(bmc: tuple[str, Bmc], monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = bmc
    monkeypatch.setattr("resources.libraries.python.testbed.node.redfish.power_of", lambda *_: None)
    with pytest.raises(Unsupported, match="has no power in EnvironmentMetrics or Power"):
        server.read(server.meter())
