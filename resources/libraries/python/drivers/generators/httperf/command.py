"""Command line and report of httperf, and configuration of its server: pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resources.libraries.python.model.plan import Flow

PROGRAM = "httperf"
SERVER = "nginx"
PORT = 80
TELL_VERSION = ("--version", "--server", "127.0.0.1", "--port", "1")
"""It connects as well, here to a port without a listener."""
TIMEOUT_S = 1.0
"""The first repetition of a lost SYN comes no earlier: a connection that lost one fails."""
_BACKLOG = 4096
_CLIENT_ERRORS = ("fd-unavail", "addrunavail", "ftab-full")
_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_TOTAL = re.compile(r"^Total: connections (\d+) requests \d+ replies (\d+) test-duration ([\d.]+) s$", re.MULTILINE)
_ERROR = re.compile(r"(?<![a-z-])([a-z-]+) (\d+)")
"""Looks behind, so that a long word is not read once from each of its letters."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """What a client says of a trial."""

    established: int
    """Connections with an answer."""
    refused: int
    """Connections that the client could not open for want of descriptors or ports of its own."""
    failed: int
    """Connections that were opened, or tried, and had no answer."""
    duration_s: float
    """From the first connection to the end of the last one."""


def client(flow: Flow, connections: int, rate_cps: float) -> list[str]:
    """The argument vector of a client.

    Args:
        flow: The forward flow of an instance.
        connections: How many.
        rate_cps: Connections per second.
    """
    return [
        PROGRAM, "--server", flow.destination_ip, "--port", str(PORT), "--uri", "/", "--timeout", f"{TIMEOUT_S:g}",
        "--num-conns", str(connections), "--num-calls", "1", "--rate", f"{rate_cps:.6g}",
    ]  # fmt: skip


def read_report(text: str) -> ClientReport:
    """A report.

    Raises:
        ValueError: It is none.
    """
    total = _TOTAL.search(text)
    errors = {
        name: int(count)
        for line in text.splitlines()
        if line.startswith("Errors:")
        for name, count in _ERROR.findall(line.removeprefix("Errors:"))
    }
    if total is None or not {"total", *_CLIENT_ERRORS} <= errors.keys():
        raise ValueError(f"no report: {' '.join(text.split())[-200:] or 'nothing was written'}")
    refused = sum(errors[name] for name in _CLIENT_ERRORS)
    return ClientReport(int(total[2]), refused, errors["total"] - refused, float(total[3]))


def server_configuration(flows: Sequence[Flow]) -> str:
    """Configuration of the one server of all instances: an empty answer, then it closes the connection.

    Args:
        flows: The forward ones.
    """
    paths = "".join(f"{name}_temp_path tmp-{name}; " for name in _PATHS)
    listens = "".join(f"listen {flow.destination_ip}:{PORT} backlog={_BACKLOG}; " for flow in flows)
    return (
        "daemon off; master_process off; pid nginx.pid; worker_rlimit_nofile 65536;\n"
        "events { worker_connections 32768; multi_accept on; }\n"
        f"http {{ access_log off; keepalive_timeout 0; {paths}\n"
        f"server {{ {listens}return 204; }} }}\n"
    )
