"""Requirements of TRex, here and on nodes before an agent runs there, and the Python that runs its client."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.trex import Trex
from resources.libraries.python.drivers.generators.trex.client_process import LIBRARY
from resources.libraries.python.drivers.generators.trex.config import PROGRAM
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import InstalledProgram
from resources.libraries.python.model.findings import CheckFinding, PreflightProblem, Severity, ok, problem, warning
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.placement.sender_threads import counting_limit

_API = Path("trex", "stl", "api.py")


_ASK = (
    "import sys, importlib.util as u;"
    "sys.exit(0 if sys.version_info[:2] >= (3, 6) and (u.find_spec('cgi') or sys.version_info[:2] < (3, 13)) else 1)"
)
"""The library's copy of scapy needs the module `cgi`, which Python 3.13 has no more; the package legacy-cgi is that."""
_NAMES = ("python3", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8", "python3.6")
_WITHIN_S = 10.0


def interpreter(asked: str) -> str | None:
    """A Python that can run TRex's library; None where there is none.

    `asked`: `auto` for this process's own, or else the first of the system's that can; or a path, which is tried.
    """
    candidates = chain([sys.executable], filter(None, map(shutil.which, _NAMES))) if asked == "auto" else [asked]
    return next(filter(_can, candidates), None)


def _can(path: str) -> bool:
    if path == sys.executable:
        return sys.version_info < (3, 13) or importlib.util.find_spec("cgi") is not None
    try:
        subprocess.run([path, "-I", "-c", _ASK], check=True, timeout=_WITHIN_S, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def missing(settings: Trex) -> Iterator[PreflightProblem]:
    """Yield missing requirements, each with a fix."""
    directory = Path(settings.directory)
    fix = "unpack a release from https://trex-tgn.cisco.com/trex/release there, or say where it is by trex.directory"
    for path in (directory / PROGRAM, directory.joinpath(*LIBRARY, _API)):
        if not path.is_file():
            yield PreflightProblem(f"TRex is not at trex.directory {directory} (no {path})", fix)
            return
    # A doctor runs no program that a topology names; the start of TRex tries it.
    if (interpreter if settings.python == "auto" else shutil.which)(settings.python) is None:
        yield PreflightProblem(
            f"no Python for TRex's client library (trex.python: {settings.python})",
            "install a Python from 3.6 to 3.12, or the package legacy-cgi for a later one, and name it by trex.python",
        )


def missing_on(node: TgNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's generator that this machine lacks."""
    return missing(node.settings(Trex))


_READ_REQUEST_BYTES = 4096
"""That TRex's start script sets for mlx5 NICs, for the rate of small frames."""
_FIXED_BYTES = 128
"""Where a hypervisor shows this one the script leaves it: it cannot be set there."""


class TrexPortFacts(Frozen):
    """A port that TRex takes by DPDK."""

    driver: str | None
    read_request_bytes: int | None
    """The most that it asks for by one PCIe read request."""


class TrexFacts(InstalledProgram):
    """An installation of TRex, as `trex_facts` reports it, and its ports by PCI address."""

    directory: str
    client: bool
    """It has its own client library."""
    ports: dict[str, TrexPortFacts]
    neighbours: dict[str, str | None]
    """Drivers of other ports of the same cards."""


def check(place: str, node: TgNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield findings about an installation on a node; warnings where another generator is the node's own."""
    trex = TrexFacts.model_validate(answer)
    found = _installed(place, trex)
    if found.level is Severity.PROBLEM and node.generator.driver != "trex":
        found = found.model_copy(update={"level": Severity.WARNING})
    yield found
    if limit := counting_limit(node):
        fix = (
            "NICs of driver i40e (X710, XL710, XXV710) count themselves; ./csit qualify measures the bound over a "
            "cable between two ports of the TG"
        )
        yield warning(place, "TRex", limit, fix)
    yield from _cards(place, trex)
    yield from _read_requests(place, trex)


def _cards(place: str, trex: TrexFacts) -> Iterator[CheckFinding]:
    """Find ports of the kernel on cards of TRex's ports: its start script, which runs do without, refuses them."""
    for address, driver in trex.neighbours.items():
        if driver == "i40e":
            card = address.rpartition(".")[0]
            ours = ", ".join(each for each in trex.ports if each.rpartition(".")[0] == card)
            text = (
                f"{address}, a port of the same card as {ours}, is under the kernel's i40e, which disturbs the card's "
                "counters, by which TRex counts flows (trex-528)"
            )
            fix = f"use a card without ports of the kernel, or echo {address} > /sys/bus/pci/drivers/i40e/unbind"
            yield problem(place, "TRex", text, fix)


def _read_requests(place: str, trex: TrexFacts) -> Iterator[CheckFinding]:
    for address, port in trex.ports.items():
        size = port.read_request_bytes
        if port.driver == "mlx5_core" and size is not None and _FIXED_BYTES < size < _READ_REQUEST_BYTES:
            text = (
                f"{address} asks for {size} bytes at most by a PCIe read request (MaxReadReq), which slows small frames"
            )
            fix = f"setpci -s {address} CAP_EXP+8.w=5000:7000, for {_READ_REQUEST_BYTES}; a reboot undoes it"
            yield warning(place, "TRex", text, fix)


def _installed(place: str, trex: TrexFacts) -> CheckFinding:
    if not trex.there:
        text = f"{trex.directory} has no TRex that can be run"
        fix = "unpack a release there (https://trex-tgn.cisco.com/trex/release), or say trex.directory"
        return problem(f"{place}.trex.directory", "TRex", text, fix)
    if not trex.client:
        text = f"{trex.directory} has a TRex without its client library (automation/trex_control_plane/interactive)"
        return problem(f"{place}.trex.directory", "TRex", text, "unpack the whole release")
    return ok(place, "TRex", f"{trex.version or 'of an unknown version'} in {trex.directory}, with its client library")
