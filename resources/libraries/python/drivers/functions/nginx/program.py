"""The program nginx with its stream module, on this machine."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import Processed
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode

NAME = "nginx"
ABOUT = {
    "nginx_balancer": "a session for each datagram, destinations in turns, sources kept",
    "nginx_proxy": "a session for each datagram, destinations in turns, sources its own",
}
"""What becomes of a datagram, for a person."""
_MODULES = (Path("/usr/lib/nginx/modules"), Path("/usr/lib64/nginx/modules"))
_MODULE = "ngx_stream_module.so"
_WITHIN_S = 15.0


def missing() -> Iterator[Problem]:
    """What this machine lacks."""
    path = path_of(NAME)
    if path is None or (module() is None and not _has_stream_built_in(path)):
        lacks = "nginx" if path is None else "nginx's stream module"
        yield Problem(
            f"{lacks} missing for NFs of kind nginx_balancer and nginx_proxy",
            "install it: apt-get install nginx libnginx-mod-stream",
        )


def module() -> str | None:
    """Path of the stream module; None where it is no file of its own."""
    return next((str(folder / _MODULE) for folder in _MODULES if (folder / _MODULE).exists()), None)


def version() -> str:
    """Return the version, such as `nginx/1.22.1`.

    Raises:
        CsitError: nginx cannot be run.
    """
    return _said(path_of(NAME) or NAME, "-v").rpartition(" ")[2].strip()


def counted(snmp: str) -> tuple[Processed, int]:
    """Datagrams that nginx sent on and those that it lost, and the number of all that came for it.

    Args:
        snmp: The kernel's counters of protocols (/proc/net/snmp), where nginx is the only program with UDP sockets.

    Raises:
        ValueError: It has no counters of UDP.
        KeyError: One of them is missing.
    """
    names, values = (line.split()[1:] for line in snmp.splitlines() if line.startswith("Udp:"))
    row = dict(zip(names, map(int, values), strict=True))
    came, sent = row["InDatagrams"] + row["InErrors"], row["OutDatagrams"]
    return Processed(sent, max(0, came - sent)), came


def _has_stream_built_in(path: str) -> bool:
    return "--with-stream" in _said(path, "-V").split()


def _said(path: str, option: str) -> str:
    try:
        done = subprocess.run([path, option], capture_output=True, timeout=_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CsitError(f"{path} cannot be run: {error}") from error
    return done.stderr.decode(errors="replace")


def missing_on(_: DutNode, __: NfKind) -> Iterator[Problem]:
    """What this machine lacks for NFs of a node."""
    return missing()
