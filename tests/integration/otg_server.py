"""The OTG server of tests as a process of its own."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.testbed.topology import Topology
from tests.builders import shipped
from tests.integration.robot_runs import PROJECT

_START_S, _END_S = 60.0, 30.0


class OtgServer:
    """A running server."""

    def __init__(self, log: Path, *arguments: str, network: Path | None = None) -> None:
        """Start it, in a network namespace where one is given, and wait until it listens."""
        self.log = log
        inside = [] if network is None else ["nsenter", f"--net={network}"]
        argv = [*inside, sys.executable, "-m", "tests.integration.otg_peer", *arguments]
        with log.open("wb") as written:
            self.process = subprocess.Popen(argv, cwd=PROJECT, stdout=written, stderr=subprocess.STDOUT)
        wait_until("the OTG server", lambda: "" if self.output.startswith("http") else self._state, _START_S)
        self.url = self.output.split()[0]

    @property
    def output(self) -> str:
        """What it has written."""
        return self.log.read_text(errors="replace")

    @property
    def _state(self) -> str:
        assert self.process.poll() is None, self.output
        return "says nothing"

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; return its status."""
        self.process.send_signal(number)
        return self.process.wait(_END_S)


@contextmanager
def serving(log: Path, *arguments: str, network: Path | None = None) -> Iterator[OtgServer]:
    """Run a server, and end it."""
    server = OtgServer(log, *arguments, network=network)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end()


def make_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """Files of a certificate for an address: with its key, as a server has it, and without, as clients do."""
    own, trusted = folder / "server.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", own, "-out", trusted, "-days", "1",
         "-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{address}"],
        check=True, capture_output=True,
    )  # fmt: skip
    own.write_text(own.read_text() + trusted.read_text())
    return own, trusted


def topology(url: str) -> Topology:
    """The testbed `local-otg`, with its server at another place."""
    found = shipped("local-otg")
    tg = found.tg.model_copy(update={"otg": Otg(location=url)})
    return found.model_copy(update={"nodes": {**found.nodes, found.tg_name: tg}})
