"""A server of Redfish that is not ours, the emulator of sushy-tools, over HTTPS on loopback."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.libraries.python.model.testbed.access import Redfish
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node.energy import read_meter
from resources.libraries.python.testbed.roles.watching import Readings

USER, PASSWORD, PASSWORD_VARIABLE = "csit", "only-here", "CSIT_TEST_BMC"
RESOURCES = {
    "Power": {
        "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 211}, {"MemberId": "1", "PowerConsumedWatts": 33}]
    },
    "EnvironmentMetrics": {"PowerWatts": {"Reading": 187.5}},
}
STILL_W, EACH_CPU_W = 20.0, 50.0
"""Power of a machine whose power follows the CPU time of a program: without it, and for each CPU that it uses."""
SERVER = """\
import json, pathlib, ssl, sys, time
from sushy_tools.emulator.main import app, RedfishAuthMiddleware

port, certificate, key, passwords, names, program, still_w, each_cpu_w = sys.argv[1:]
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

def used_s():
    found = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if head.partition("(")[2] == program:
            found += sum(map(int, rest.split()[11:13])) / 100
    return found

LAST = [time.monotonic(), used_s()]

def watts():
    before_s, used_before_s = LAST
    LAST[:] = time.monotonic(), used_s()
    return float(still_w) + float(each_cpu_w) * max(0.0, LAST[1] - used_before_s) / (LAST[0] - before_s)

@app.route("/redfish/v1/Chassis/<identity>/<name>")
def power(identity, name):
    found = {"PowerWatts": {"Reading": watts()}} if program else RESOURCES[name]
    return {"@odata.id": f"/redfish/v1/Chassis/{identity}/{name}", "Id": name, "Name": name, **found}

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
app.run(host="127.0.0.1", port=int(port), ssl_context=context)
"""


@dataclass(frozen=True)
class Bmc:
    """A running emulator."""

    url: str
    certificate: Path

    def settings(self, interval_s: float = 0.5) -> dict[str, Any]:
        """`energy` of a node in a topology; the password is in the environment, as `PASSWORD_VARIABLE`."""
        password = f"env:{PASSWORD_VARIABLE}"
        told = {"user": USER, "password": password, "ca_file": str(self.certificate), "interval_s": interval_s}
        return {"meter": "redfish", "url": self.url, **told}

    def meter(self, **more: str) -> Redfish:
        """The same as the model has it, with other values."""
        return Redfish.model_validate(self.settings() | more)

    def read(self, meter: Redfish, duration_s: float = 1.2) -> Readings:
        with closing(LocalConnection()) as here:
            return read_meter("DUT1", meter, duration_s, here)


@contextmanager
def emulator(folder: Path, resource: str, program: str = "") -> Iterator[Bmc]:
    """Run the emulator with one of `RESOURCES`; its files are in the folder."""
    import bcrypt

    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request_of = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*request_of, *named], check=True, capture_output=True)
    passwords = folder / "passwords"
    passwords.write_bytes(USER.encode() + b":" + bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)) + b"\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    resources = {resource: RESOURCES[resource]}
    log = folder / "log"
    command = [sys.executable, "-c", SERVER, str(port), *map(str, (certificate, key, passwords)), json.dumps(resources)]
    command += [program, str(STILL_W), str(EACH_CPU_W)]
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as server:
        try:
            _wait(port, server, log)
            yield Bmc(f"https://localhost:{port}", certificate)
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
